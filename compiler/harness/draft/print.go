package draft

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Quote writes a text between double quotes, with the escapes that JSON and YAML share.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// scalar writes a text plain when YAML reads it as the same text, else in quotes.
func scalar(s string) string {
	if s == "" || !plainStart(s[0]) {
		return Quote(s)
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_./@+", c) >= 0) {
			if strings.Contains(s, "://") && strings.IndexByte(":=&?%", c) >= 0 {
				continue
			}
			return Quote(s)
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return Quote(s)
	}
	if strings.Contains(s, "://") && (strings.HasSuffix(s, ":") || strings.Contains(s, ": ")) {
		return Quote(s)
	}
	return s
}

func plainStart(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/' }

// line of the printed profile: a field, how it is written.
type form struct {
	field string
	kind  byte
}

// The forms of a value: a word or truth value as it is, a text, a list of texts.
const (
	word byte = iota
	text
	list
)

var forms = []form{
	{Model, text}, {Models, list}, {Enforce, word},
	{Mode, word}, {Allow, list}, {Ask, list}, {Deny, list}, {Bypass, word}, {Required, word},
	{Sandbox, word}, {WritableRoots, list}, {Protected, list}, {"sandbox.policy", text},
	{Default, word}, {Allowed, list}, {Denied, list},
	{ManagedOnly, word}, {MCPServers, 0}, {MCPDenied, list},
	{HooksOnly, word}, {HookItems, 0},
	{Telemetry, word}, {Endpoint, text}, {Protocol, text}, {LogPrompts, word}, {Attributes, 0},
}

// Print writes the documents: the profile of that name and, when the files name a gateway, a Gateway. head are the lines of the comment at the top.
func (d *Draft) Print(name string, head []string) []byte {
	var b strings.Builder
	for _, l := range head {
		b.WriteString(strings.TrimRight("# "+comment(l), " "))
		b.WriteByte('\n')
	}
	b.WriteString("apiVersion: halos.dev/v1\nkind: Profile\nname: " + scalar(name) + "\nharnesses:\n  " + d.Harness + ":\n")
	for _, e := range d.values[Version] {
		d.added(&b, Version, "    ")
		b.WriteString("    version: " + Quote(e.Text) + "\n")
	}
	if len(d.Overrides) > 0 {
		b.WriteString("    overrides:\n")
		for _, o := range d.Overrides {
			b.WriteString("      " + Quote(o.Key) + ": " + o.Value + "\n")
		}
	}
	section := ""
	for _, f := range forms {
		body := d.value(f)
		if body == "" {
			continue
		}
		s, key, _ := strings.Cut(f.field, ".")
		if s != section {
			section = s
			b.WriteString(s + ":\n")
		}
		d.added(&b, f.field, "  ")
		b.WriteString("  " + key + ":" + body)
	}
	for _, e := range d.values[Instructions] {
		b.WriteString("instructions: " + Quote(e.Text) + "\n")
	}
	if len(d.Env) > 0 {
		b.WriteString("env:" + pairs(d.Env))
	}
	if d.Gateway.Text != "" {
		b.WriteString("---\n# The model gateway that the files name. A repo has one Gateway: remove this document where there is one already.\n" +
			"apiVersion: halos.dev/v1\nkind: Gateway\nname: main\nbaseURL: " + Quote(d.Gateway.Text) + "\n")
	}
	b.WriteString(d.Documents)
	return []byte(b.String())
}

// comment makes one line of a text.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == 0xfeff || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

func (d *Draft) added(b *strings.Builder, field, indent string) {
	for _, a := range d.Additions {
		if a.Field == field {
			b.WriteString(indent + "# Added: " + a.Reason + ".\n")
		}
	}
}

func (d *Draft) value(f form) string {
	var b strings.Builder
	switch f.field {
	case MCPServers:
		for _, s := range d.Servers {
			b.WriteString("\n    - name: " + scalar(s.Name))
			if s.URL != "" {
				b.WriteString("\n      url: " + Quote(s.URL))
			} else {
				b.WriteString("\n      command: " + flow(s.Command))
			}
			if len(s.Headers) > 0 {
				b.WriteString("\n      headers:")
				for _, h := range s.Headers {
					b.WriteString("\n        " + Quote(h[0]) + ": " + Quote(h[1]))
				}
			}
		}
	case HookItems:
		for _, h := range d.Hooks {
			b.WriteString("\n    - event: " + h.Event)
			if h.Matcher != "" {
				b.WriteString("\n      matcher: " + Quote(h.Matcher))
			}
			b.WriteString("\n      command: " + Quote(h.Command))
		}
	case Attributes:
		return pairsAt(d.Attributes, "    ")
	default:
		l := d.values[f.field]
		if len(l) == 0 {
			return ""
		}
		switch f.kind {
		case word:
			return " " + l[len(l)-1].Text + "\n"
		case text:
			return " " + Quote(l[len(l)-1].Text) + "\n"
		}
		for _, e := range l {
			b.WriteString("\n    - " + Quote(e.Text))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "\n"
}

func flow(l []string) string {
	q := make([]string, len(l))
	for i, s := range l {
		q[i] = Quote(s)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

func pairs(l []Pair) string { return pairsAt(l, "  ") }

func pairsAt(l []Pair, indent string) string {
	if len(l) == 0 {
		return ""
	}
	l = slices.Clone(l)
	slices.SortStableFunc(l, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	var b strings.Builder
	for _, p := range l {
		b.WriteString("\n" + indent + Quote(p.Key) + ": " + Quote(p.Value))
	}
	return b.String() + "\n"
}
