package mdm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// writeIntune makes two things that do not overlap: an ADMX policy for what a harness reads from the registry, and scripts for the files.
func writeIntune(e *export) error {
	if ds := e.domains(Registry); len(ds) > 0 {
		e.admx(ds)
		e.source(Registry, "registry/oma-uri.json")
	}
	files := e.of(Script)
	if len(files) > 0 {
		e.Files["remediation/detect.ps1"] = e.powershell(detectScript)
		e.Files["remediation/remediate.ps1"] = e.powershell(putScript)
		e.Files["win32/detect.ps1"] = e.powershell(detectWin32Script)
		e.Files["win32/install.ps1"] = e.powershell(putScript)
		e.Files["win32/uninstall.ps1"] = e.powershell(deleteScript)
		e.source(Script, "remediation/remediate.ps1")
	}
	return nil
}

const admxApp = "HaloPolicy"

// omaURI is one row of an Intune custom configuration profile.
type omaURI struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	OMAURI      string `json:"omaUri"`
	DataType    string `json:"dataType"`
	// Value is the text to enter, ValueFile the file whose text it is.
	Value     string `json:"value,omitempty"`
	ValueFile string `json:"valueFile,omitempty"`
}

// admx writes the policy definitions, their texts (which Group Policy and Intune's import want), and the rows of a custom profile that ingest the definitions and
// set the values. Form: Microsoft, "Win32 and Desktop Bridge app ADMX policy ingestion" and "Understanding ADMX-backed policies"; keys below Software\Policies
// are allowed but for Software\Policies\Microsoft.
func (e *export) admx(ds []domain) {
	var policies, texts, views strings.Builder
	rows := []omaURI{{
		Name: "halo: policy definitions", Description: "Ingest first: the definitions of the policies below.",
		OMAURI:   "./Device/Vendor/MSFT/Policy/ConfigOperations/ADMXInstall/" + admxApp + "/Policy/HaloPolicyAdmx",
		DataType: "String (XML file)", ValueFile: "registry/halo.admx",
	}}
	for _, d := range ds {
		name := map[string]string{"claude-code": "ClaudeCode", "copilot-cli": "GitHubCopilot"}[d.harness]
		var elements, boxes, data strings.Builder
		for i, m := range d.settings {
			id := fmt.Sprintf("%s%d", name, i+1)
			text, _ := m.Value.(string)
			fmt.Fprintf(&elements, "        <text id=\"%s\" valueName=\"%s\" maxLength=\"%d\" required=\"true\" />\n", id, xmlEscape(m.Key), maxText)
			fmt.Fprintf(&boxes, "        <textBox refId=\"%s\"><label>%s</label></textBox>\n", id, xmlEscape(m.Key))
			fmt.Fprintf(&data, `<data id="%s" value="%s"/>`, id, xmlEscape(text))
		}
		fmt.Fprintf(&policies, "    <policy name=\"%s\" class=\"Machine\" displayName=\"$(string.%s)\" explainText=\"$(string.%sHelp)\" presentation=\"$(presentation.%s)\" key=\"%s\">\n"+
			"      <parentCategory ref=\"Halo\" />\n      <supportedOn ref=\"windows:SUPPORTED_Windows_10_0\" />\n      <elements>\n%s      </elements>\n    </policy>\n",
			name, name, name, name, xmlEscape(d.name), elements.String())
		fmt.Fprintf(&texts, "      <string id=\"%s\">%s policy</string>\n      <string id=\"%sHelp\">The managed settings of %s, one value of HKEY_LOCAL_MACHINE\\%s each.</string>\n",
			name, d.harness, name, d.harness, xmlEscape(d.name))
		fmt.Fprintf(&views, "      <presentation id=\"%s\">\n%s      </presentation>\n", name, boxes.String())
		rows = append(rows, omaURI{
			Name: "halo: " + d.harness, Description: printable("Sets HKEY_LOCAL_MACHINE\\" + d.name + "."),
			OMAURI:   "./Device/Vendor/MSFT/Policy/Config/" + admxApp + "~Policy~Halo/" + name,
			DataType: "String", Value: "<enabled/>" + data.String(),
		})
	}
	e.Files["registry/halo.admx"] = fmt.Appendf(nil, `<?xml version="1.0" encoding="utf-8"?>
<policyDefinitions xmlns="http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions" revision="1.0" schemaVersion="1.0">
  <policyNamespaces>
    <target prefix="halo" namespace="Halos.Policies.Halo" />
    <using prefix="windows" namespace="Microsoft.Policies.Windows" />
  </policyNamespaces>
  <resources minRequiredRevision="1.0" />
  <categories>
    <category name="Halo" displayName="$(string.Halo)" />
  </categories>
  <policies>
%s  </policies>
</policyDefinitions>
`, policies.String())
	e.Files["registry/en-US/halo.adml"] = fmt.Appendf(nil, `<?xml version="1.0" encoding="utf-8"?>
<policyDefinitionResources xmlns="http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions" revision="1.0" schemaVersion="1.0">
  <displayName>halo</displayName>
  <description>Policies of AI agents</description>
  <resources>
    <stringTable>
      <string id="Halo">AI agents</string>
%s    </stringTable>
    <presentationTable>
%s    </presentationTable>
  </resources>
</policyDefinitionResources>
`, texts.String(), views.String())
	e.Files["registry/oma-uri.json"] = indented(rows)
}

// indented is v as JSON for people.
func indented(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// Only texts, numbers and lists of them are given; they always encode.
	_ = enc.Encode(v)
	return []byte(b.String())
}
