package opencode

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

func folder(os string) string {
	switch os {
	case "darwin":
		return "/Library/Application Support/opencode/"
	case "windows":
		return `C:\ProgramData\opencode\`
	}
	return "/etc/opencode/"
}

const instructionsFile = "halo-instructions.md"

// reference is how the configuration names the file of instructions: with slashes, because the program takes the names for globs.
func reference(os string) string { return strings.ReplaceAll(folder(os), `\`, "/") + instructionsFile }

// renderable reports whether the pinned version is of the line that is rendered for.
func renderable(v harness.Version) bool {
	return v.AtLeast(1, 1, 53) && v.Less(harness.Version{Major: 2})
}

func render(t harness.Target) ([]harness.File, []harness.Gap) {
	p, g := t.Policy, gap.New(&table, t)
	fields := gap.Fields(p, policy.OpenCode)
	if !renderable(t.Version) {
		if t.GatewayURL != "" {
			g.Row(harness.Models, "gateway.baseURL")
		}
		for _, f := range fields {
			if counterpart(f.Concept) {
				g.Row(f.Concept, f.Path)
			} else {
				g.Unsupported(f.Concept, f.Path)
			}
		}
		return nil, g.Gaps()
	}
	for _, f := range fields {
		switch f.Concept {
		case harness.Sandbox, harness.Egress, harness.BypassLock, harness.VersionPin:
			g.Row(f.Concept, f.Path)
		default:
			if !counterpart(f.Concept) {
				g.Unsupported(f.Concept, f.Path)
			}
		}
	}
	doc := jsondoc.Object{{Key: "$schema", Value: "https://opencode.ai/config.json"}}
	if pin := p.Pin(policy.OpenCode); pin != nil && pin.Version.IsSet() {
		doc.Add("autoupdate", false)
	}
	m := models(t, g)
	if len(m.providers) > 0 {
		doc.Add("enabled_providers", m.providers)
	}
	if p.Instructions.V != "" {
		g.Row(harness.Instructions, "instructions")
		doc.Add("instructions", []string{reference(t.OS)})
	}
	if s := servers(t, g); len(s) > 0 {
		doc.Add("mcp", s)
	}
	if m.model != "" {
		doc.Add("model", m.model)
	}
	if perm := permission(t, g); len(perm) > 0 {
		doc.Add("permission", perm)
	}
	if len(m.definitions) > 0 {
		doc.Add("provider", m.definitions)
	}
	if open, _ := p.Hosts.Default(); !open {
		// Sharing uploads the session to the vendor's host.
		doc.Add("share", "disabled")
	}
	var files []harness.File
	if p.Instructions.V != "" {
		files = append(files, file(t.OS, instructionsFile, []byte(strings.TrimRight(p.Instructions.V, "\n")+"\n")))
	}
	if len(doc) > 1 {
		files = append(files, file(t.OS, "opencode.json", doc.Bytes()))
	}
	return files, g.Gaps()
}

// counterpart reports whether opencode has anything for a concept.
func counterpart(c harness.Concept) bool {
	switch c {
	case harness.Hooks, harness.Telemetry, harness.Env, harness.Overrides:
		return false
	}
	return true
}

func file(os, name string, content []byte) harness.File {
	return harness.File{Dest: folder(os) + name, Owner: harness.Owner(os), Mode: 0o644, Content: content}
}

// tools are the tools that a rule can name as a whole, by the names used in policies.
var tools = [...][2]string{{"Bash", "bash"}, {"Edit", "edit"}, {"Glob", "glob"}, {"Grep", "grep"}, {"Read", "read"}, {"Task", "task"}, {"WebFetch", "webfetch"}, {"WebSearch", "websearch"}}

// answers are the answers to whole tools and to patterns of commands.
type answers struct {
	tool     map[string]string
	ask, ban []string
}

// permission is written in an order that is its meaning: the last pattern that matches wins, so a catch-all comes first and what denies comes last. A catch-all that
// allows is never written: it would take away the program's own questions and a user's stricter ones.
func permission(t harness.Target, g *gap.List) jsondoc.Object {
	p := t.Policy
	d := protect(t, g)
	if len(p.Sandbox.ProtectedPaths.Items) > 0 {
		g.Row(harness.ProtectedPaths, "sandbox.protectedPaths")
	}
	open := roots(t, g)
	if len(p.Sandbox.WritableRoots.Items) > 0 {
		g.Row(harness.WritableRoots, "sandbox.writableRoots")
	}
	a := translate(t, g)
	var o jsondoc.Object
	if v, ok := a.tool["bash"]; ok && (v == "deny" || len(a.ban) == 0) {
		o.Add("bash", v)
	} else if ok || len(a.ask)+len(a.ban) > 0 {
		o.Add("bash", patternMap(v, nil, a.ask, a.ban))
	}
	edit := a.tool["edit"]
	if readOnly(t) {
		edit = "deny"
	}
	tool := func(name, whole string, deny []string) {
		switch {
		case whole == "deny" || whole != "" && len(deny) == 0:
			o.Add(name, whole)
		case whole != "" || len(deny) > 0:
			o.Add(name, patternMap(whole, nil, nil, deny))
		}
	}
	tool("edit", edit, d.files)
	if len(open) > 0 || len(d.folders) > 0 {
		o.Add("external_directory", patternMap("ask", open, nil, d.folders))
	}
	for _, name := range [...]string{"glob", "grep"} {
		tool(name, a.tool[name], nil)
	}
	tool("read", a.tool["read"], d.files)
	tool("task", a.tool["task"], nil)
	fetch, search := web(t, g)
	tool("webfetch", stricter(fetch, a.tool["webfetch"]), nil)
	tool("websearch", stricter(search, a.tool["websearch"]), nil)
	return o
}

func stricter(a, b string) string {
	if a == "deny" || b == "deny" {
		return "deny"
	}
	return max(a, b)
}

func patternMap(catchAll string, allow, ask, deny []string) jsondoc.Object {
	o := make(jsondoc.Object, 0, 1+len(allow)+len(ask)+len(deny))
	if catchAll != "" {
		o.Add("*", catchAll)
	}
	for _, s := range allow {
		o.Add(s, "allow")
	}
	for _, s := range ask {
		if !slices.Contains(deny, s) {
			o.Add(s, "ask")
		}
	}
	for _, s := range deny {
		o.Add(s, "deny")
	}
	return o
}

// web is the answer of the two tools that reach the web. They have no rule per host.
func web(t harness.Target, g *gap.List) (fetch, search string) {
	p := t.Policy
	if !p.EgressRules() {
		return "", ""
	}
	field := gap.EgressField(p)
	g.Row(harness.Fetch, field)
	open, _ := p.Hosts.Default()
	switch {
	case open:
		g.Add(harness.Gap{Concept: harness.Fetch, Field: "egress.deniedDomains", Grade: harness.None, Reason: "opencode cannot tell a denied host from another: every fetch becomes a question, and the web search is left as it is"})
		return "ask", ""
	case len(p.Hosts.Allowed()) == 0:
		return "deny", "deny"
	}
	return "ask", "deny"
}

// translate reads the rules that opencode has an exact form for and names the others.
func translate(t harness.Target, g *gap.List) answers {
	perms := &t.Policy.Permissions
	a := answers{}
	if perms.Mode.IsSet() {
		g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.mode", Entry: "", Grade: harness.None, Reason: "opencode has no permission modes, so the mode was not rendered"})
	}
	if len(perms.Allow.Items) > 0 {
		g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.allow", Grade: harness.None, Reason: "opencode allows what no rule mentions, and an allow rule would only undo stricter rules of users, so none was rendered"})
	}
	list := func(l source.Strs, field, answer string, commands *[]string) {
		done := false
		for _, r := range l.Items {
			name, content, whole := rule(r.V)
			i := slices.IndexFunc(tools[:], func(x [2]string) bool { return x[0] == name })
			switch {
			case i >= 0 && whole:
				if a.tool == nil {
					a.tool = make(map[string]string, 4)
				}
				a.tool[tools[i][1]] = stricter(a.tool[tools[i][1]], answer)
			case name == "Bash" && command(content) != "":
				*commands = append(*commands, command(content))
			default:
				g.Add(harness.Gap{Concept: harness.Permissions, Field: field, Entry: r.V, Grade: harness.None, Reason: "opencode has no exact form of this rule, so it was not rendered"})
				continue
			}
			done = true
		}
		slices.Sort(*commands)
		*commands = slices.Compact(*commands)
		if done {
			g.Row(harness.Permissions, field)
		}
	}
	list(perms.Deny, "permissions.deny", "deny", &a.ban)
	list(perms.Ask, "permissions.ask", "ask", &a.ask)
	return a
}

// rule splits Tool(content); whole is set for a rule about the tool itself.
func rule(s string) (name, content string, whole bool) {
	name, rest, ok := strings.Cut(s, "(")
	content, closed := strings.CutSuffix(rest, ")")
	if !ok {
		return s, "", true
	}
	if !closed {
		return "", "", false
	}
	return name, content, content == "*" || content == ""
}

// command returns the pattern of a command rule: an exact command, or a prefix written as "x:*" or "x *". A pattern that ends in " *" matches the bare command too.
func command(s string) string {
	prefix, wild := strings.CutSuffix(s, ":*")
	if !wild {
		prefix, wild = strings.CutSuffix(s, " *")
	}
	if prefix == "" || strings.ContainsAny(prefix, "*?{}\\") || strings.TrimSpace(prefix) != prefix {
		return ""
	}
	if wild {
		return prefix + " *"
	}
	return prefix
}

// servers defines the policy's servers and switches the denied ones off; deny wins.
func servers(t harness.Target, g *gap.List) jsondoc.Object {
	m := &t.Policy.MCP
	for _, f := range [...]struct {
		on    bool
		field string
	}{{m.ManagedOnly.V, "mcp.managedOnly"}, {len(m.Servers) > 0, "mcp.servers"}, {len(m.Denied.Items) > 0, "mcp.denied"}} {
		if f.on {
			g.Row(harness.MCP, f.field)
		}
	}
	if m.ManagedOnly.V {
		g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.managedOnly", Grade: harness.None, Reason: "opencode has no list of allowed servers: users and repositories add their own"})
	}
	o := make(jsondoc.Object, 0, len(m.Servers)+len(m.Denied.Items))
	for _, d := range m.Denied.Items {
		if expands(d.V) {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.denied", Entry: d.V, Grade: harness.None, Reason: "opencode would expand the braces of this name, so it was not rendered"})
			continue
		}
		if _, twice := o.Get(d.V); !twice {
			o.Add(d.V, jsondoc.Object{{Key: "enabled", Value: false}})
		}
	}
	for i := range m.Servers {
		s := &m.Servers[i]
		if _, denied := o.Get(s.Name.V); denied {
			continue
		}
		def, ok := define(s)
		if !ok {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Entry: s.Name.V, Grade: harness.None, Reason: "opencode has no form for a variable with a default, and would expand other braces, so the server was not rendered"})
			continue
		}
		o.Add(s.Name.V, def)
	}
	slices.SortFunc(o, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
	return o
}

func define(s *policy.Server) (jsondoc.Object, bool) {
	if s.URL.IsSet() {
		url, ok := variables(s.URL.V)
		o := jsondoc.Object{{Key: "type", Value: "remote"}, {Key: "url", Value: url}}
		if len(s.Headers) > 0 {
			headers := make(jsondoc.Object, 0, len(s.Headers))
			for _, h := range s.Headers {
				v, fine := variables(h.Value.V)
				ok = ok && fine && !expands(h.Key.V)
				headers.Add(h.Key.V, v)
			}
			slices.SortFunc(headers, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
			o.Add("headers", headers)
		}
		o.Add("enabled", true)
		return o, ok
	}
	argv, ok := make([]string, len(s.Command.Items)), len(s.Command.Items) > 0
	for i, a := range s.Command.Items {
		v, fine := variables(a.V)
		argv[i], ok = v, ok && fine
	}
	return jsondoc.Object{{Key: "type", Value: "local"}, {Key: "command", Value: argv}, {Key: "enabled", Value: true}}, ok
}

// expands reports whether the program would put something else into a text.
func expands(s string) bool { return strings.Contains(s, "{env:") || strings.Contains(s, "{file:") }

// variables writes ${NAME} as the program's {env:NAME}.
func variables(s string) (string, bool) {
	if expands(s) {
		return "", false
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name == "" || strings.ContainsAny(name, ":-+=?") {
			return "", false
		}
		b.WriteString("{env:" + name + "}")
		s = after
	}
}

// choice is what the policy's models come to: the providers that are left, their definitions, and the model to begin with.
type choice struct {
	providers   []string
	definitions jsondoc.Object
	model       string
}

func models(t harness.Target, g *gap.List) choice {
	p, m := t.Policy, &t.Policy.Models
	pin := p.Pin(policy.OpenCode)
	first, firstField := m.Default, "models.default"
	if pin != nil && pin.Model.IsSet() {
		first, firstField = pin.Model, "harnesses.opencode.model"
	}
	var c choice
	no := func(field, entry, why string) {
		g.Add(harness.Gap{Concept: harness.Models, Field: field, Entry: entry, Grade: harness.None, Reason: why})
	}
	list := func() {
		switch {
		case len(m.Allowed.Items) == 0 && m.Enforce.V:
			no("models.enforce", "", "there is no list of models to hold, and an empty one would leave nothing to work with, so none was rendered")
			return
		case len(m.Allowed.Items) == 0:
			return
		case !m.Enforce.V:
			no("models.allowed", "", "a list of models that is not enforced has no counterpart in opencode and was not rendered")
			return
		}
		byProvider := map[string][]string{}
		for _, a := range m.Allowed.Items {
			id, name := provider(t, a.V)
			if id == "" {
				no("models.allowed", a.V, "without a gateway the name must be PROVIDER/MODEL for opencode, so no list of models was rendered")
				return
			}
			if !slices.Contains(byProvider[id], name) {
				byProvider[id] = append(byProvider[id], name)
			}
		}
		for id, names := range byProvider {
			slices.Sort(names)
			c.providers = append(c.providers, id)
			c.definitions.Add(id, definition(t, id, names))
		}
		slices.Sort(c.providers)
		slices.SortFunc(c.definitions, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
		g.Row(harness.Models, "models.allowed")
	}
	list()
	if t.GatewayURL != "" && len(c.providers) == 0 {
		no("gateway.baseURL", "", "opencode is set up for a gateway only with an enforced list of models, so its traffic is not sent to it")
	}
	if first.IsSet() {
		id, name := provider(t, first.V)
		switch {
		case id == "":
			no(firstField, first.V, "without a gateway the name must be PROVIDER/MODEL for opencode, so it was not rendered")
		case id == gatewayID(t) && len(c.providers) == 0:
			no(firstField, first.V, "the model is behind the gateway, which is only set up with an enforced list of models, so it was not rendered")
		default:
			c.model = id + "/" + name
			g.Add(harness.Gap{Concept: harness.Models, Field: firstField, Grade: harness.Default, Reason: "the model is where a session begins: -m and the model picker choose another allowed one", Bypass: []string{"-m"}})
		}
	}
	return c
}

// gatewayID is the id of the provider that stands for the gateway; it must not be the id of a vendor.
func gatewayID(t harness.Target) string {
	if t.GatewayURL == "" {
		return ""
	}
	org := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Org))
	return strings.Trim(org, "-") + "-gateway"
}

// provider returns where a model of the policy is found, and its name there. Behind a gateway every name is one of the gateway's.
func provider(t harness.Target, name string) (id, model string) {
	if id = gatewayID(t); id != "" {
		if real, ok := t.Models[name]; ok {
			return id, real
		}
		return id, name
	}
	id, model, ok := strings.Cut(name, "/")
	if !ok || model == "" || expands(name) {
		return "", ""
	}
	return id, model
}

func definition(t harness.Target, id string, names []string) jsondoc.Object {
	if id != gatewayID(t) {
		return jsondoc.Object{{Key: "whitelist", Value: names}}
	}
	defs := make(jsondoc.Object, 0, len(names))
	for _, n := range names {
		defs.Add(n, jsondoc.Object{})
	}
	return jsondoc.Object{
		{Key: "models", Value: defs},
		{Key: "name", Value: t.Org},
		{Key: "npm", Value: "@ai-sdk/openai-compatible"},
		{Key: "options", Value: jsondoc.Object{{Key: "baseURL", Value: t.GatewayURL}}},
		{Key: "whitelist", Value: names},
	}
}
