package mdm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
)

// native is a document that a harness reads from a preference domain or a registry key as well, where it outranks the file.
type native struct {
	harness string
	// dest is the place of the file that holds the same document.
	dest    string
	channel Channel
	// domain is the preference domain or the registry key.
	domain string
	// convert returns the keys and values for a document, or why it must stay a file.
	convert func(data []byte, version harness.Version) ([]value, error)
	// note says what changes by the other form; usually nothing.
	note string
}

// value is one key of a domain: a string, bool, json.Number, jsondoc.Object or []any.
type value struct {
	key string
	v   any
}

// domains are the preference domains of macOS that harnesses read when they are forced by a profile. Read in the darwin packages and vendor documentation of
// Claude Code 2.1.332, Codex 0.171.0, Copilot CLI 1.0.102 and OpenCode 1.18.33; not run on macOS. Gemini CLI 0.61.0 has none.
var domains = []native{
	{"claude-code", "/Library/Application Support/ClaudeCode/managed-settings.json", Profile, "com.anthropic.claudecode", claudePlist, ""},
	{"codex", "/etc/codex/requirements.toml", Profile, "com.openai.codex", codexKey("requirements_toml_base64"), ""},
	{"codex", "/etc/codex/config.toml", Profile, "com.openai.codex", codexKey("config_toml_base64"),
		"as config_toml_base64 it outranks what users set, while the file only sets start values"},
	{"copilot-cli", "/Library/Application Support/GitHubCopilot/managed-settings.json", Profile, "com.github.copilot", copilotStrings, ""},
	{"opencode", "/Library/Application Support/opencode/opencode.json", Profile, "ai.opencode.managed", opencodePlist, ""},
}

// registry are the policy keys of Windows that harnesses read. Read in the win32 packages and vendor documentation of Claude Code 2.1.332 and Copilot CLI 1.0.102;
// not run on Windows. Codex, Gemini CLI and OpenCode have none.
var registry = []native{
	{"claude-code", `C:\Program Files\ClaudeCode\managed-settings.json`, Registry, `SOFTWARE\Policies\ClaudeCode`, claudeRegistry, ""},
	{"copilot-cli", `C:\Program Files\GitHubCopilot\managed-settings.json`, Registry, `SOFTWARE\Policies\GitHubCopilot`, copilotRegistry, ""},
}

// Claude Code reads the domain and the key since 2.1.51 (its changelog), and takes 2 MiB at most.
func claudeVersion(v harness.Version, size int) error {
	if !v.AtLeast(2, 1, 51) {
		return fmt.Errorf("versions before 2.1.51 do not read it (pinned: %s)", shown(v))
	}
	if size > 2<<20 {
		return errors.New("it is larger than 2 MiB")
	}
	return nil
}

func shown(v harness.Version) string {
	if v == (harness.Version{}) {
		return "unknown"
	}
	return v.String()
}

// parse reads a settings document whose keys become values.
func parse(data []byte) (jsondoc.Object, error) {
	twice := ""
	o, err := jsondoc.Parse(data, func(pointer string) { twice = pointer })
	if err == nil && twice != "" {
		err = fmt.Errorf("%s is there twice", twice)
	}
	return o, err
}

func claudePlist(data []byte, version harness.Version) ([]value, error) {
	if err := claudeVersion(version, len(data)); err != nil {
		return nil, err
	}
	return members(data)
}

// members are the keys of a document that becomes a plist as it is.
func members(data []byte) ([]value, error) {
	o, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := plistable("", o); err != nil {
		return nil, err
	}
	var out []value
	for _, m := range o {
		out = append(out, value{m.Key, m.Value})
	}
	return out, nil
}

// codexKey puts a TOML file into one key, in standard base64 without line breaks.
func codexKey(key string) func([]byte, harness.Version) ([]value, error) {
	return func(data []byte, _ harness.Version) ([]value, error) {
		if !utf8.Valid(data) {
			return nil, errors.New("it is not UTF-8")
		}
		return []value{{key, base64.StdEncoding.EncodeToString(data)}}, nil
	}
}

// opencodePlist keeps ordered rules out of a plist: the last rule that matches decides in OpenCode, and a preference dictionary has no order.
func opencodePlist(data []byte, _ harness.Version) ([]value, error) {
	o, err := parse(data)
	if err != nil {
		return nil, err
	}
	if rules(o.At("permission")) > 1 {
		return nil, errors.New("the order of its permission rules has a meaning, which a preference domain does not keep")
	}
	if o.At("agent") != nil {
		return nil, errors.New("the order of an agent's permission rules has a meaning, which a preference domain does not keep")
	}
	return members(data)
}

// rules counts the leaves of a value.
func rules(v any) int {
	o, ok := v.(jsondoc.Object)
	if !ok {
		return 1
	}
	n := 0
	for _, m := range o {
		n += rules(m.Value)
	}
	return n
}

// copilotWhole are the objects whose keys are free names; they are one value each. Their flattened leaves beside them would make Copilot skip both.
var copilotWhole = []string{"telemetry.headers", "telemetry.resourceAttributes"}

// copilotFile are the keys that Copilot does not take from a domain or the registry (x-mdm-delivery false in the schema that ships in 1.0.102).
var copilotFile = []string{"effortLevel", "contextTier", "vscode", "permissions.model"}

// copilotStrings writes every setting as a string under its dot-joined key: texts as they are, everything else as JSON text. The CLI takes no other type.
// Read in the schema and the runtimes of 1.0.102; sandbox keys are taken from there since 1.0.77.
func copilotStrings(data []byte, version harness.Version) ([]value, error) {
	o, err := parse(data)
	if err != nil {
		return nil, err
	}
	if !version.AtLeast(1, 0, 77) {
		return nil, fmt.Errorf("versions before 1.0.77 do not take the sandbox from there (pinned: %s)", shown(version))
	}
	return flatten(nil, "", o)
}

func flatten(out []value, prefix string, o jsondoc.Object) ([]value, error) {
	for _, m := range o {
		if m.Key == "" || strings.Contains(m.Key, ".") {
			return nil, fmt.Errorf("the key %s cannot be part of a dot-joined key", strconv.Quote(m.Key))
		}
		key := prefix + m.Key
		if slices.Contains(copilotFile, key) {
			return nil, fmt.Errorf("copilot-cli does not take %s from there", key)
		}
		switch v := m.Value.(type) {
		case nil:
			return nil, fmt.Errorf("%s is null", key)
		case string:
			out = append(out, value{key, v})
			continue
		case jsondoc.Object:
			if len(v) > 0 && !slices.Contains(copilotWhole, key) {
				var err error
				if out, err = flatten(out, key+".", v); err != nil {
					return nil, err
				}
				continue
			}
		}
		text, err := compact(m.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, value{key, text})
	}
	for _, v := range out {
		if s, ok := v.v.(string); ok && !xmlText(s) {
			return nil, fmt.Errorf("%s has a control character, which XML cannot hold", v.key)
		}
	}
	return out, nil
}

func claudeRegistry(data []byte, version harness.Version) ([]value, error) {
	if err := claudeVersion(version, len(data)); err != nil {
		return nil, err
	}
	o, err := parse(data)
	if err != nil {
		return nil, err
	}
	text, err := compact(o)
	if err != nil {
		return nil, err
	}
	// Versions before 2.1.331 broke on anything but ASCII in the registry.
	return limited([]value{{"Settings", ascii(text)}})
}

func copilotRegistry(data []byte, version harness.Version) ([]value, error) {
	values, err := copilotStrings(data, version)
	if err != nil {
		return nil, err
	}
	return limited(values)
}

// maxText is the length that the text elements of the ADMX allow; it is the vendor's own in ClaudeCode.admx.
const maxText = 1_000_000

// limited refuses values that the policy would not take whole: a longer one, an empty one (which a policy cannot set), and one that a registry string cannot hold.
func limited(values []value) ([]value, error) {
	for _, v := range values {
		s, _ := v.v.(string)
		switch {
		case len(s) > maxText:
			return nil, fmt.Errorf("%s is longer than %d characters", v.key, maxText)
		case s == "":
			return nil, fmt.Errorf("%s is empty, which a policy cannot set", v.key)
		case strings.ContainsAny(s, "\r\n\t"):
			return nil, fmt.Errorf("%s has more than one line", v.key)
		}
	}
	return values, nil
}

// compact writes a value as one line of JSON.
func compact(v any) (string, error) {
	var b strings.Builder
	var write func(any) error
	write = func(v any) error {
		switch v := v.(type) {
		case jsondoc.Object:
			b.WriteByte('{')
			for i, m := range v {
				if i > 0 {
					b.WriteByte(',')
				}
				if err := write(m.Key); err != nil {
					return err
				}
				b.WriteByte(':')
				if err := write(m.Value); err != nil {
					return err
				}
			}
			b.WriteByte('}')
		case []any:
			b.WriteByte('[')
			for i, x := range v {
				if i > 0 {
					b.WriteByte(',')
				}
				if err := write(x); err != nil {
					return err
				}
			}
			b.WriteByte(']')
		default:
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			return enc.Encode(v)
		}
		return nil
	}
	if err := write(v); err != nil {
		return "", err
	}
	// Encode ends each scalar with a newline, and text itself never holds one.
	return strings.ReplaceAll(b.String(), "\n", ""), nil
}

// ascii escapes what is not ASCII in JSON text, which only strings can hold.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
