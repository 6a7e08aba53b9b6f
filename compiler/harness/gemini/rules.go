package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// rule is one [[rule]] of an admin policy. The rule of the highest priority that matches decides.
type rule struct {
	tools            []string
	mcp              string
	pattern, command string
	decision         string
	priority         int
	message          string
}

// The priorities, 0 to 999. What denies stands above what asks.
const (
	denyPermission = 930
	denyPath       = 920
	denyHost       = 910
	fetchDefault   = 500
	askPermission  = 400
	denyServer     = 300
	askServer      = 200
	otherServers   = 100
)

// maxPattern is the length above which the program takes a pattern for unsafe and drops its whole file (read in 0.61.0).
const maxPattern = 2048

// fileTools are the tools that take a path.
var fileTools = []string{"read_file", "write_file", "replace", "list_directory", "glob", "grep_search"}

// policyFile is one file of rules. One broken file is dropped as a whole, so each concern has its own.
type policyFile struct {
	name  string
	rules []rule
}

func policies(t harness.Target, g *gap.List) []policyFile {
	all := []policyFile{
		{"10-halo-egress.toml", egressRules(t, g)},
		{"20-halo-paths.toml", pathRules(t, g)},
		{"30-halo-mcp.toml", serverRules(t, g)},
		{"40-halo-permissions.toml", permissionRules(t, g)},
	}
	out := slices.DeleteFunc(all, func(f policyFile) bool { return len(f.rules) == 0 })
	if len(out) == 0 {
		// Without a file in the folder a user's --admin-policy is read at the rank of an administrator.
		out = append(out, policyFile{name: "00-halo.toml"})
	}
	return out
}

func (f *policyFile) bytes() []byte {
	b := append(make([]byte, 0, 256+256*len(f.rules)), "# Written by halo. A file in this folder also keeps --admin-policy from being read.\n"...)
	for i := range f.rules {
		r := &f.rules[i]
		b = append(b, "\n[[rule]]\n"...)
		if len(r.tools) == 1 {
			b = pair(b, "toolName", r.tools[0])
		} else {
			b = append(b, "toolName = ["...)
			for j, tool := range r.tools {
				if j > 0 {
					b = append(b, ", "...)
				}
				b = quote(b, tool)
			}
			b = append(b, "]\n"...)
		}
		for _, p := range [...][2]string{{"mcpName", r.mcp}, {"argsPattern", r.pattern}, {"commandPrefix", r.command}, {"decision", r.decision}} {
			if p[1] != "" {
				b = pair(b, p[0], p[1])
			}
		}
		b = strconv.AppendInt(append(b, "priority = "...), int64(r.priority), 10)
		b = append(b, '\n')
		if r.message != "" {
			b = pair(b, "denyMessage", r.message)
		}
	}
	return b
}

func pair(b []byte, key, value string) []byte {
	b = append(append(b, key...), " = "...)
	return append(quote(b, value), '\n')
}

// quote writes a TOML text: literal when it has a backslash and can be, else basic.
func quote(b []byte, s string) []byte {
	plain := strings.IndexByte(s, '\'') < 0
	special := false
	for _, r := range s {
		special = special || r == '\\' || r == '"'
		plain = plain && r >= ' ' && r != 0x7f
	}
	if plain && special {
		return append(append(append(b, '\''), s...), '\'')
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			const hex = "0123456789ABCDEF"
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// literal writes a text as a regular expression that matches just it, letters in both cases when fold is set. There are no flags in the program's expressions.
func literal(b []byte, s string, fold bool) []byte {
	for _, r := range s {
		lower, upper := r|0x20, r&^0x20
		switch {
		case fold && lower >= 'a' && lower <= 'z' && r < 0x80:
			b = append(b, '[', byte(upper), byte(lower), ']')
		case r == '"':
			// The pattern is matched with JSON.
			b = append(b, `\\"`...)
		case r < 0x80 && strings.IndexByte(`.*+?^${}()|[]\/`, byte(r)) >= 0:
			b = append(b, '\\', byte(r))
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}

// hostPattern finds a host in free text: the name in any case, not as a part of a longer label. What comes after the name is not looked at, so name.other.example is
// found too; a regular expression over free text cannot tell the two apart.
func hostPattern(p host.Pattern) string {
	b := make([]byte, 0, 48+4*len(p.Suffix()))
	if p.Wildcard() {
		b = append(b, `[A-Za-z0-9-]\.`...)
	} else {
		b = append(b, `(^|[^A-Za-z0-9.-])`...)
	}
	b = literal(b, p.Suffix(), true)
	return string(append(b, `([^A-Za-z0-9-]|$)`...))
}

func egressRules(t harness.Target, g *gap.List) []rule {
	p := t.Policy
	if !p.EgressRules() {
		return nil
	}
	g.Row(harness.Fetch, gap.EgressField(p))
	var out []rule
	for _, d := range denied(t) {
		out = append(out, rule{tools: []string{"web_fetch"}, pattern: hostPattern(d), decision: "deny", priority: denyHost, message: "egress.deniedDomains " + d.String()})
	}
	if open, _ := p.Hosts.Default(); !open {
		if len(p.Hosts.Allowed()) == 0 {
			return []rule{{tools: []string{"web_fetch"}, decision: "deny", priority: denyHost, message: "egress.default deny"}}
		}
		out = append(out, rule{tools: []string{"web_fetch"}, decision: "ask_user", priority: fetchDefault})
	}
	return out
}

// denied returns the denied patterns, sorted and each once.
func denied(t harness.Target) []host.Pattern {
	es := t.Policy.Hosts.Denied()
	out := make([]host.Pattern, len(es))
	for i := range es {
		out[i] = es[i].Pattern
	}
	slices.SortFunc(out, func(a, b host.Pattern) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

func pathRules(t harness.Target, g *gap.List) []rule {
	p := t.Policy
	var out []rule
	if len(p.Sandbox.ProtectedPaths.Items) > 0 {
		g.Row(harness.ProtectedPaths, "sandbox.protectedPaths")
	}
	for _, r := range p.Sandbox.ProtectedPaths.Items {
		pattern, why := pathPattern(r.Path, t.OS)
		if why != "" {
			g.Add(harness.Gap{Concept: harness.ProtectedPaths, Field: "sandbox.protectedPaths", Entry: r.Path.String(), Grade: harness.None, Reason: why})
			continue
		}
		out = append(out, rule{tools: fileTools, pattern: pattern, decision: "deny", priority: denyPath, message: "sandbox.protectedPaths " + r.Path.String()})
	}
	slices.SortFunc(out, func(a, b rule) int { return strings.Compare(a.message, b.message) })
	if p.Mode() == policy.ModeReadOnly {
		out = append(out, rule{tools: []string{"write_file", "replace"}, decision: "deny", priority: denyPath, message: gap.ModeField(p) + " read-only"})
	}
	return out
}

// pathPattern finds a path in the arguments of a tool: its names one after the other, at any place, followed by nothing or by what is below it. Where names do not
// distinguish case, the pattern does not either.
func pathPattern(p fspath.Path, os string) (pattern, why string) {
	if p.Kind() == fspath.Absolute && os == "windows" {
		return "", "an absolute path with / names nothing on Windows, so the entry was not rendered"
	}
	// Of two spellings the first is the end of the other.
	if short, problem := fspath.ParseProtected(fspath.Spellings(p, os)[0]); problem == nil {
		p = short
	}
	for _, fold := range [...]bool{os != "linux", false} {
		b := append(make([]byte, 0, 64), `(^|[/\\"])`...)
		segs := p.Segments()
		for len(segs) > 1 && segs[0] == "**" {
			segs = segs[1:]
		}
		for i, s := range segs {
			switch {
			case s == "**" && i == len(segs)-1:
				continue
			case s == "**":
				// Between two names: a separator, or anything between two separators. A group with a quantifier behind it would be refused.
				b = append(b, `([/\\]+|[/\\][^"]*[/\\])`...)
				continue
			case i > 0 && segs[i-1] != "**":
				b = append(b, `[/\\]+`...)
			}
			b = segment(b, s, fold)
		}
		b = append(b, `("|/|\\)`...)
		if len(b) <= maxPattern {
			return string(b), ""
		}
	}
	return "", "the pattern of this path is longer than gemini-cli reads, so the entry was not rendered"
}

// segment writes one name of a path glob. A class becomes any character, which denies more.
func segment(b []byte, s string, fold bool) []byte {
	const any = `[^/\\"]`
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '*':
			if i == 0 || s[i-1] != '*' {
				b = append(append(b, any...), '*')
			}
		case '?':
			b = append(b, any...)
		case '[':
			end := strings.IndexByte(s[i:], ']')
			if end < 0 {
				return append(append(b, any...), '*')
			}
			b = append(b, any...)
			i += end
		case '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 || strings.ContainsAny(s[i+1:i+end], "{[*?") {
				return append(append(b, any...), '*')
			}
			b = append(b, '(')
			for j, alt := range strings.Split(s[i+1:i+end], ",") {
				if j > 0 {
					b = append(b, '|')
				}
				b = literal(b, alt, fold)
			}
			b = append(b, ')')
			i += end
		default:
			end := i + 1
			for end < len(s) && strings.IndexByte("*?[{", s[end]) < 0 {
				end++
			}
			b = literal(b, s[i:end], fold)
			i = end
			continue
		}
		i++
	}
	return b
}

func serverRules(t harness.Target, g *gap.List) []rule {
	m := &t.Policy.MCP
	const field = "mcp.managedOnly"
	var out []rule
	for _, d := range texts(m.Denied) {
		out = append(out, rule{tools: []string{"*"}, mcp: d, decision: "deny", priority: denyServer, message: "mcp.denied " + d})
		if strings.Contains(d, "_") && t.Version.Less(known) {
			// That 0.61.0 matches it was observed.
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.denied", Entry: d, Grade: harness.None, Reason: "a server name with an underscore may not be matched by the policies of gemini-cli"})
		}
	}
	if len(m.Denied.Items) > 0 {
		g.Row(harness.MCP, "mcp.denied")
	}
	if !m.ManagedOnly.V {
		return out
	}
	g.Row(harness.MCP, field)
	for _, s := range admitted(m) {
		name := s.Name.V
		if strings.Contains(name, "_") {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Entry: name, Grade: harness.Enforced, Reason: "a server name with an underscore is not matched by the policies of gemini-cli, so the server stays denied", Remedy: "write the name with a hyphen"})
			continue
		}
		out = append(out, rule{tools: []string{"*"}, mcp: name, decision: "ask_user", priority: askServer})
	}
	return append(out, rule{tools: []string{"*"}, mcp: "*", decision: "deny", priority: otherServers, message: field})
}

// admitted returns the servers that are defined, sorted. One that is not must not be admitted either: its name would be free for a server of the user.
func admitted(m *policy.MCP) []*policy.Server {
	out := make([]*policy.Server, 0, len(m.Servers))
	for i := range m.Servers {
		s := &m.Servers[i]
		if _, ok := define(s); ok && !refused(m, s.Name.V) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *policy.Server) int { return strings.Compare(a.Name.V, b.Name.V) })
	return out
}

// refused reports whether a server is denied by its name.
func refused(m *policy.MCP, name string) bool {
	return slices.ContainsFunc(m.Denied.Items, func(d source.Str) bool { return d.V == name })
}

func texts(l source.Strs) []string {
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.V
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// toolNames are the tools by the names used in policies.
var toolNames = [...][2]string{{"Bash", "run_shell_command"}, {"Edit", "replace"}, {"Glob", "glob"}, {"Grep", "grep_search"}, {"LS", "list_directory"}, {"Read", "read_file"},
	{"WebFetch", "web_fetch"}, {"WebSearch", "google_web_search"}, {"Write", "write_file"}}

func toolName(name string) string {
	for _, n := range toolNames {
		if n[0] == name {
			return n[1]
		}
	}
	return ""
}

func permissionRules(t harness.Target, g *gap.List) []rule {
	perms := &t.Policy.Permissions
	var out []rule
	if len(perms.Allow.Items) > 0 {
		g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.allow", Grade: harness.None, Reason: "a rule that allows would beat the stricter rules of users in gemini-cli, so none was rendered"})
	}
	list := func(l source.Strs, field, decision string, priority int) {
		before := len(out)
		for _, text := range texts(l) {
			r, ok := permission(text)
			if !ok {
				g.Add(harness.Gap{Concept: harness.Permissions, Field: field, Entry: text, Grade: harness.None, Reason: "gemini-cli has no exact form of this rule, so it was not rendered"})
				continue
			}
			r.decision, r.priority = decision, priority
			if decision == "deny" {
				r.message = field + " " + text
			}
			out = append(out, r)
		}
		if len(out) > before {
			g.Row(harness.Permissions, field)
		}
	}
	list(perms.Deny, "permissions.deny", "deny", denyPermission)
	list(perms.Ask, "permissions.ask", "ask_user", askPermission)
	return out
}

// permission reads a rule that has an exact form: a whole tool, a prefix of a command, a domain of the fetch tool.
func permission(text string) (rule, bool) {
	name, rest, content := strings.Cut(text, "(")
	tool := toolName(name)
	rest, closed := strings.CutSuffix(rest, ")")
	switch {
	case tool == "" || content && !closed:
		return rule{}, false
	case !content || rest == "*" || rest == "":
		return rule{tools: []string{tool}}, true
	case name == "Bash":
		prefix, wild := strings.CutSuffix(rest, ":*")
		if !wild {
			prefix, wild = strings.CutSuffix(rest, " *")
		}
		if !wild || prefix == "" || strings.Contains(prefix, "*") || strings.TrimSpace(prefix) != prefix {
			return rule{}, false
		}
		return rule{tools: []string{tool}, command: prefix}, true
	case name == "WebFetch":
		domain, ok := strings.CutPrefix(rest, "domain:")
		p, problem := host.ParseDenyPattern(domain)
		if !ok || problem != nil {
			return rule{}, false
		}
		return rule{tools: []string{tool}, pattern: hostPattern(p)}, true
	}
	return rule{}, false
}
