package mdm

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"

	"halos.dev/halo/compiler/harness/jsondoc"
)

// namespace is the UUID namespace of everything that halo names.
var namespace = [16]byte{0x5b, 0x0e, 0x1c, 0x84, 0x0d, 0x5b, 0x4e, 0x0a, 0x9f, 0x2f, 0x6d, 0x1f, 0x0a, 0x2c, 0x7e, 0x31}

// uuid returns the name-based UUID (version 5, RFC 9562) of texts: the same texts, the same UUID.
func uuid(texts ...string) string {
	h := sha1.New()
	h.Write(namespace[:])
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	x := hex.EncodeToString(u)
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:])
}

// identifier is the reverse-DNS name of the profile: the same for every release of a target, so that a new release replaces the old one.
func (e *export) identifier() string {
	return "dev.halos.policy." + slug(e.manifest.Org) + "." + e.slug
}

// domain is a preference domain with its settings.
type domain struct {
	name     string
	harness  string
	settings jsondoc.Object
}

// domains collects the documents of a channel by domain, sorted by name.
func (e *export) domains(c Channel) []domain {
	var out []domain
	for _, it := range e.of(c) {
		i := slices.IndexFunc(out, func(d domain) bool { return d.name == it.Domain })
		if i < 0 {
			i = len(out)
			out = append(out, domain{name: it.Domain, harness: it.Harness})
		}
		for _, v := range it.values {
			out[i].settings.Add(v.key, v.v)
		}
	}
	slices.SortFunc(out, func(a, b domain) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return out
}

// mobileconfig is the configuration profile with one Custom Settings payload for each domain, forced for the whole device. Its UUIDs follow from what is in it, so
// that the same settings are the same profile and other settings are another. Form: Apple, "Custom Settings" (com.apple.ManagedClient.preferences).
func (e *export) mobileconfig(domains []domain) []byte {
	id := e.identifier()
	var payloads []any
	content := []string{id}
	for _, d := range domains {
		inner := id + "." + d.name
		own := uuid(inner, string(plist(d.settings)))
		content = append(content, own)
		payloads = append(payloads, jsondoc.Object{
			{Key: "PayloadContent", Value: jsondoc.Object{{Key: d.name, Value: jsondoc.Object{
				{Key: "Forced", Value: []any{jsondoc.Object{{Key: "mcx_preference_settings", Value: d.settings}}}},
			}}}},
			{Key: "PayloadDisplayName", Value: d.harness + " policy"},
			{Key: "PayloadEnabled", Value: true},
			{Key: "PayloadIdentifier", Value: inner},
			{Key: "PayloadType", Value: "com.apple.ManagedClient.preferences"},
			{Key: "PayloadUUID", Value: own},
			{Key: "PayloadVersion", Value: 1},
		})
	}
	return plist(jsondoc.Object{
		{Key: "PayloadContent", Value: payloads},
		{Key: "PayloadDescription", Value: "Agent policy of " + e.release()},
		{Key: "PayloadDisplayName", Value: "halo policy " + e.Target.ID},
		{Key: "PayloadIdentifier", Value: id},
		{Key: "PayloadOrganization", Value: printable(e.manifest.Org)},
		{Key: "PayloadRemovalDisallowed", Value: true},
		{Key: "PayloadScope", Value: "System"},
		{Key: "PayloadType", Value: "Configuration"},
		{Key: "PayloadUUID", Value: uuid(append(content, e.digest)...)},
		{Key: "PayloadVersion", Value: 1},
	})
}

// source names the file of the export that carries the items of a channel.
func (e *export) source(c Channel, path string) {
	for _, it := range e.of(c) {
		it.Source = path
	}
}

func writeJamf(e *export) error {
	if ds := e.domains(Profile); len(ds) > 0 {
		name := "halo-" + e.slug + ".mobileconfig"
		e.Files[name] = e.mobileconfig(ds)
		for _, d := range ds {
			e.Files["plists/"+d.name+".plist"] = plist(d.settings)
		}
		e.source(Profile, name)
	}
	e.Files["scripts/audit.sh"] = e.shell(auditScript, "<result>%s</result>")
	e.Files["scripts/install.sh"] = e.shell(installScript, "")
	e.Files["scripts/remove.sh"] = e.shell(removeScript, "")
	e.source(Script, "scripts/install.sh")
	return nil
}

// writeKandji lays out what iructl (formerly kst) pushes: profiles/NAME and scripts/NAME, each with an info.yaml. Read in iructl 1.4: an audit and a remediation
// file by the beginning of their names, info with id and name, no unknown keys, other files ignored. The ids do not depend on the release, so that a new release
// is an update.
func writeKandji(e *export) error {
	name := "halo-" + e.slug
	info := func(kind, rest string) []byte {
		return fmt.Appendf(nil, "id: %s\nname: %s\nactive: true\n%s", uuid("iru", kind, e.identifier()), yamlString(name), rest)
	}
	if ds := e.domains(Profile); len(ds) > 0 {
		e.Files["profiles/"+name+"/info.yaml"] = info("profile", "runs_on_mac: true\nruns_on_iphone: false\nruns_on_ipad: false\nruns_on_tv: false\nruns_on_vision: false\n")
		e.Files["profiles/"+name+"/profile.mobileconfig"] = e.mobileconfig(ds)
		e.source(Profile, "profiles/"+name+"/profile.mobileconfig")
	}
	dir := "scripts/" + name + "/"
	e.Files[dir+"info.yaml"] = info("script", "execution_frequency: every_15_min\nrestart: false\n")
	e.Files[dir+"audit.sh"] = e.shell(auditScript, "halo: %s")
	e.Files[dir+"remediation.sh"] = e.shell(installScript, "")
	e.Files["remove.sh"] = e.shell(removeScript, "")
	e.source(Script, dir+"remediation.sh")
	return nil
}
