package gemini

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// noCounterpart are the keys of the program that a profile has no field for, with the reason. Keys and meanings as of 0.61.0.
var noCounterpart = []draft.Reason{
	{Pointer: "/admin", Text: "from a file these keys have no effect"},
	{Pointer: "/adminPolicyPaths", Text: "files of other places are no part of a release"},
	{Pointer: "/advanced", Text: "a profile has no field for it"},
	{Pointer: "/context", Text: "a profile takes the name of the context file and its import form only, as overrides"},
	{Pointer: "/experimental", Text: "a profile pins no feature flags"},
	{Pointer: "/general", Text: "a profile takes settings of taste only, as overrides"},
	{Pointer: "/hooksConfig", Text: "a profile ships hooks, and has no switch for them"},
	{Pointer: "/ide", Text: "a profile has no field for editors"},
	{Pointer: "/model", Text: "a profile has a default model only, one that gemini-cli can ask for"},
	{Pointer: "/policyPaths", Text: "files of other places are no part of a release"},
	{Pointer: "/privacy", Text: "a profile has no field for the vendor's own statistics"},
	{Pointer: "/rules", Text: "the program reads rule, not rules"},
	{Pointer: "/security", Text: "a profile has no field for logins and folder trust"},
	{Pointer: "/skills", Text: "a profile has no field for skills"},
	{Pointer: "/telemetry", Text: "halo sends telemetry by OTLP to one endpoint only"},
	{Pointer: "/tools", Text: "a profile has no field for it"},
	{Pointer: "/tools/allowed", Text: "a profile answers no question in advance for gemini-cli: such rules beat the stricter ones of users"},
	{Pointer: "/tools/core", Text: "tools on this list run without a question, which halo never writes"},
	{Pointer: "/ui", Text: "the value is not one that this setting takes"},
}

// adopter reads the files of a draft.
type adopter struct {
	*draft.Draft
	doc *draft.Node
	// servers are the names that rules admit.
	admitted []*draft.Node
}

// union reports whether the lists of all files count (read in the settings table of 0.61.0).
func union(pointer string) bool {
	switch pointer {
	case "/tools/exclude", "/policyPaths", "/adminPolicyPaths", "/hooksConfig/disabled", "/skills/disabled", "/advanced/excludedEnvVars", "/context/includeDirectories":
		return true
	}
	return strings.HasPrefix(pointer, "/hooks/")
}

// importFiles reads settings.json, system-defaults.json and the policies beside them.
func importFiles(d *draft.Draft) error {
	a := &adopter{Draft: d}
	d.Reasons(noCounterpart)
	var layers [2]*draft.Node
	var rules []*draft.Node
	files := slices.Clone(d.Files)
	slices.SortStableFunc(files, func(x, y draft.File) int { return strings.Compare(x.Base(), y.Base()) })
	for _, f := range files {
		if strings.HasSuffix(f.Base(), ".toml") {
			n, err := draft.TOML(f.Name, f.Data)
			if err != nil {
				return fmt.Errorf("%s: %w, and the program drops the whole file", f.Name, err)
			}
			d.Roots = append(d.Roots, n)
			rules = append(rules, n.Get("rule").Items()...)
			if r := n.Get("rules"); r != nil {
				a.Warn("the program reads rule and not rules, and ignores this without a word", r)
			}
			continue
		}
		n, err := draft.JSON(f.Name, f.Data, draft.Dialect{Comments: true})
		if err != nil {
			return fmt.Errorf("%s: %w, and the program refuses to start on it", f.Name, err)
		}
		draft.RepeatedKeys(n)
		d.Roots = append(d.Roots, n)
		layer := 1
		if f.Base() == "system-defaults.json" {
			layer = 0
			a.Warn("the settings of this file are defaults that users change", n)
		}
		if layers[layer] != nil {
			return fmt.Errorf("%s: there is one file of its kind, and this is the second", f.Name)
		}
		layers[layer] = n
	}
	a.doc = draft.Merge(slices.DeleteFunc(layers[:], func(n *draft.Node) bool { return n == nil }), func(p string) bool { return !union(p) })
	a.settings()
	a.servers()
	for _, r := range rules {
		a.rule(r)
	}
	a.admit()
	a.tools()
	a.hooks()
	a.telemetry()
	a.overrides()
	return nil
}

func (a *adopter) settings() {
	if n := a.doc.At("security", "toolSandboxing"); n.Is(true) || n.Is("true") {
		a.Set(draft.Sandbox, policy.ModeWorkspaceWrite, "", n)
	}
	switch n := a.doc.At("tools", "sandbox"); {
	case n == nil:
	case n.Is(false), n.Get("enabled").Is(false):
		a.Drop("the sandbox of the whole process is switched off", n)
	default:
		a.Set(draft.Sandbox, policy.ModeWorkspaceWrite, "halo sandboxes the tools instead of the whole process", n)
		a.Warn("GEMINI_SANDBOX=false, a flag or a repository's .env switches the sandbox of the whole process off", n)
	}
	if n := a.doc.At("advanced", "ignoreLocalEnv"); n.Is(true) && a.Has(draft.Sandbox, "") {
		a.Keep("halo writes it with a sandbox", n)
	}
	if n := a.doc.At("security", "disableYoloMode"); n.Is(true) || n.Is("true") {
		a.Set(draft.Bypass, "true", "", n)
	}
	if n := a.doc.At("security", "disableAlwaysAllow"); n.Is(true) || n.Is("true") {
		a.Keep("halo writes it with the bypass lock", n)
	}
	if n := a.doc.At("general", "defaultApprovalMode"); n != nil {
		word, _ := n.Text()
		if i := slices.IndexFunc(modes[:], func(m [2]string) bool { return m[1] == word }); i >= 0 {
			a.Set(draft.Mode, modes[i][0], "", n)
		} else {
			a.Drop("the start mode has no counterpart in a profile", n)
		}
	}
	if n := a.doc.At("general", "enableAutoUpdate"); n.Is(false) {
		a.Keep("halo writes it with a pinned version", n)
	}
	if n := a.doc.At("model", "name"); n != nil {
		if s, ok := n.Text(); ok && strings.HasPrefix(s, "gemini") {
			a.Set(draft.Model, s, "", n)
		}
	}
	if n := a.doc.Get("admin"); n != nil {
		a.Warn("from a file these keys have no effect", n)
	}
}

// servers reads the definitions of servers, and the lists of names.
func (a *adopter) servers() {
	for _, n := range a.doc.Get("mcpServers").Members() {
		s := draft.Server{Name: n.Key}
		var nodes []*draft.Node
		ok := true
		for _, key := range [...]string{"httpUrl", "command", "args"} {
			if k := n.Get(key); k != nil {
				nodes = append(nodes, k)
			}
		}
		if url, has := n.Get("httpUrl").Text(); has {
			s.URL, ok = url, sameVariables(url)
		} else if command, has := n.Get("command").Text(); has {
			args, _ := n.Get("args").Texts()
			s.Command = append([]string{command}, args...)
			ok = !slices.ContainsFunc(s.Command, func(x string) bool { return !sameVariables(x) })
		} else {
			a.Drop("a profile has servers that are a command or are reached by streamable HTTP (httpUrl)", n)
			continue
		}
		if !ok {
			a.Drop("a variable is written $NAME, and a profile has ${NAME}", n)
			continue
		}
		for _, h := range n.Get("headers").Members() {
			if v, isText := h.Text(); isText && s.URL != "" && sameVariables(v) && a.Public(h.Key, v, h) && a.Fit(v, h) {
				s.Headers = append(s.Headers, [2]string{h.Key, v})
				a.Map(draft.MCPServers, "", h)
			}
		}
		if a.AddServer(s, nodes...) {
			a.Drop("a profile has no field for it in a server", n)
		} else {
			a.Drop("its server was not taken", n)
		}
	}
	allowed := a.doc.At("mcp", "allowed")
	if allowed != nil {
		a.Put(draft.ManagedOnly, "true", "")
		a.Warn("--allowed-mcp-server-names replaces the list", allowed)
		if len(allowed.Kids) == 0 {
			a.Map(draft.ManagedOnly, "", allowed)
		}
	}
	a.admitted = append(a.admitted, allowed.Items()...)
	for _, n := range a.doc.At("mcp", "excluded").Items() {
		if s, ok := n.Text(); ok {
			a.Put(draft.MCPDenied, s, "", n)
		}
	}
}

// admit says what became of servers that are admitted by name.
func (a *adopter) admit() {
	allowed := map[string]bool{}
	for _, n := range a.admitted {
		name, ok := n.Text()
		if !ok {
			name, _ = n.Get("mcpName").Text()
		}
		name = draft.ServerName(name)
		allowed[name] = true
		if slices.ContainsFunc(a.Servers, func(s draft.Server) bool { return s.Name == name }) {
			a.Map(draft.MCPServers, "", n)
		} else {
			a.Drop("the server is admitted by its name, which the user chooses, and no file defines it", n)
		}
	}
	if !a.Has(draft.ManagedOnly, "true") {
		return
	}
	for _, s := range slices.Clone(a.Servers) {
		if !allowed[s.Name] && !strings.Contains(s.Name, "_") {
			a.Unrendered(draft.MCPServers, s.Name, "no list and no rule admits the server")
		}
	}
}

// knownTool returns the name that policies have for a tool.
func knownTool(tool string) string {
	for _, n := range toolNames {
		if n[1] == tool {
			return n[0]
		}
	}
	return ""
}

// ruleKeys are the keys of a rule that are understood.
var ruleKeys = []string{"toolName", "mcpName", "argsPattern", "commandPrefix", "decision", "priority", "denyMessage"}

// rule reads one rule of a policy. Denials win in a profile whatever their priority, so a rule of a higher one never opens anything.
func (a *adopter) rule(n *draft.Node) {
	var tools []string
	if s, ok := n.Get("toolName").Text(); ok {
		tools = []string{s}
	} else {
		tools, _ = n.Get("toolName").Texts()
	}
	if why := broken(n, tools); why != "" {
		a.Warn("the program drops the whole file: "+why, n)
	}
	for _, k := range n.Members() {
		switch {
		case slices.Contains(ruleKeys, k.Key):
		case slices.Contains([]string{"modes", "interactive", "subagent", "toolAnnotations", "allowRedirection"}, k.Key):
			a.Drop("a rule of a profile holds without conditions", k)
		case k.Key == "commandRegex":
		default:
			a.Drop("the program knows no such key of a rule", k)
			a.Warn("the program does not read this key, so the rule holds for every call", k)
		}
	}
	pattern, _ := n.Get("argsPattern").Text()
	message, _ := n.Get("denyMessage").Text()
	server, hasServer := n.Get("mcpName").Text()
	deny := n.Get("decision").Is("deny")
	switch {
	case !deny && !n.Get("decision").Is("ask_user"):
		a.Drop("a rule that allows would beat the stricter rules of users, and halo writes none", n)
	case n.Get("commandRegex") != nil:
		a.Drop("a profile has no expressions over commands", n)
		if s, _ := n.Get("commandRegex").Text(); strings.HasPrefix(s, "^") {
			a.Warn("an expression that begins with ^ never matches", n)
		}
	case hasServer:
		a.serverRule(n, server, tools, deny)
	case n.Get("commandPrefix") != nil:
		a.prefixRule(n, deny)
	case pattern == "":
		a.toolRule(n, tools, deny)
	case deny && a.own(n, message, pattern):
	case slices.Equal(tools, []string{"web_fetch"}):
		a.hostRule(n, pattern, deny)
	default:
		a.pathRule(n, tools, pattern, deny)
	}
}

// broken says why the program refuses a rule, or "".
func broken(n *draft.Node, tools []string) string {
	priority, ok := n.Get("priority").Int()
	switch {
	case len(tools) == 0:
		return "a rule has no toolName"
	case !ok || priority < 0 || priority > 999:
		return "a rule has no priority of 0 to 999"
	case !n.Get("decision").Is("deny") && !n.Get("decision").Is("ask_user") && !n.Get("decision").Is("allow"):
		return "a rule has no decision"
	}
	return ""
}

// own reads a rule that halo wrote: its message names the entry, which must be rendered to the same pattern.
func (a *adopter) own(n *draft.Node, message, pattern string) bool {
	if h, ok := strings.CutPrefix(message, "egress.deniedDomains "); ok {
		p, problem := host.ParseDenyPattern(h)
		return problem == nil && hostPattern(p) == pattern && a.DenyHost(h, true, n)
	}
	if s, ok := strings.CutPrefix(message, "sandbox.protectedPaths "); ok && a.Has(draft.Sandbox, "") {
		p, problem := fspath.ParseProtected(s)
		if problem != nil {
			return false
		}
		got, why := pathPattern(p, a.OS)
		return why == "" && got == pattern && a.Put(draft.Protected, p.String(), "", n)
	}
	if s, ok := strings.CutPrefix(message, "permissions.deny "); ok {
		r, fine := permission(s)
		return fine && r.pattern == pattern && a.Put(draft.Deny, s, "", n)
	}
	return false
}

func (a *adopter) serverRule(n *draft.Node, server string, tools []string, deny bool) {
	switch {
	case !slices.Equal(tools, []string{"*"}) || n.Get("argsPattern") != nil:
		a.Drop("a profile has rules for whole servers only", n)
	case server == "*" && deny:
		a.Put(draft.ManagedOnly, "true", "", n)
	case server == "*":
		a.Drop("questions about every server are what the program asks anyway", n)
	case deny:
		a.Put(draft.MCPDenied, server, "", n)
	default:
		a.admitted = append(a.admitted, n)
	}
}

func list(deny bool) string {
	if deny {
		return draft.Deny
	}
	return draft.Ask
}

func (a *adopter) prefixRule(n *draft.Node, deny bool) {
	var prefixes []string
	if s, ok := n.Get("commandPrefix").Text(); ok {
		prefixes = []string{s}
	} else {
		prefixes, _ = n.Get("commandPrefix").Texts()
	}
	if len(prefixes) == 0 {
		a.Drop("the rule has no command", n)
	}
	for _, p := range prefixes {
		text := "Bash(" + p + ":*)"
		if message, _ := n.Get("denyMessage").Text(); message == draft.Deny+" Bash("+p+" *)" {
			text = "Bash(" + p + " *)"
		}
		if _, ok := permission(text); !ok {
			a.Drop("the command has no form in a profile", n)
			continue
		}
		a.Put(list(deny), text, "", n)
	}
}

// toolRule reads a rule for whole tools.
func (a *adopter) toolRule(n *draft.Node, tools []string, deny bool) {
	switch {
	case slices.Equal(tools, []string{"web_fetch"}) && deny && a.Has(draft.Sandbox, ""):
		a.Set(draft.Default, "deny", "", n)
		return
	case slices.Equal(tools, []string{"web_fetch"}) && !deny && a.Has(draft.Sandbox, ""):
		if !a.Has(draft.Default, "") {
			a.Set(draft.Default, "deny", "commands have no network and hosts are asked about; the files do not say which may be reached, so none is", n)
		}
		a.Map(draft.Default, "commands have no network, and hosts on no list are denied instead of asked about", n)
		return
	case slices.Equal(tools, []string{"write_file", "replace"}) && deny && a.Has(draft.Sandbox, policy.ModeWorkspaceWrite):
		a.Restate(draft.Sandbox, policy.ModeReadOnly, n)
		return
	}
	for _, t := range tools {
		name := knownTool(t)
		if name == "" {
			a.Drop("a profile has rules for tools it knows only", n)
			continue
		}
		text := name
		if message, _ := n.Get("denyMessage").Text(); message == draft.Deny+" "+name+"(*)" {
			text = name + "(*)"
		}
		a.Put(list(deny), text, "", n)
	}
	if len(tools) == 0 {
		a.Drop("the rule names no tool", n)
	}
}

// The parts of expressions over hosts and paths.
const (
	notName    = `(^|[^A-Za-z0-9.-])`
	notLabel   = `(^|[^A-Za-z0-9-])`
	labelDot   = `[A-Za-z0-9-]\.`
	nameEnd    = `([^A-Za-z0-9-]|$)`
	pathStart  = `(^|[/\\"])`
	pathEnd    = `("|/|\\)`
	anyInName  = `[^/\\"]`
	separators = `[/\\]+`
)

// hostRule reads an expression over the text of a fetch.
func (a *adopter) hostRule(n *draft.Node, pattern string, deny bool) {
	body := strings.TrimSuffix(pattern, nameEnd)
	var hosts []string
	if rest, ok := strings.CutPrefix(body, labelDot); ok {
		hosts = []string{"*." + spelled(rest)}
	} else if rest, ok := strings.CutPrefix(body, notName); ok {
		hosts = []string{spelled(rest)}
	} else {
		name := spelled(strings.TrimPrefix(body, notLabel))
		hosts = []string{name, "*." + name}
	}
	for _, h := range hosts {
		if _, problem := host.ParseDenyPattern(h); problem != nil {
			a.Drop("the expression is not one over a host name that is understood", n)
			return
		}
	}
	for _, h := range hosts {
		if deny {
			a.DenyHost(h, true, n)
		} else {
			a.Put(draft.Ask, "WebFetch(domain:"+h+")", "", n)
		}
	}
}

// pathRule reads an expression over the path of file tools.
func (a *adopter) pathRule(n *draft.Node, tools []string, pattern string, deny bool) {
	body, ok := strings.CutPrefix(pattern, pathStart)
	body, end := strings.CutSuffix(body, pathEnd)
	body = strings.ReplaceAll(body, anyInName+"*", "\x01")
	body = strings.ReplaceAll(body, anyInName, "\x02")
	body = strings.ReplaceAll(body, separators, "/")
	path := strings.NewReplacer("\x01", "*", "\x02", "?").Replace(spelled(body))
	p, problem := fspath.ParseProtected(path)
	switch {
	case !deny || !ok || !end || problem != nil || path == "" || strings.ContainsAny(path, `[](){}|^$+\`):
		a.Drop("the expression is not one over a path that is understood", n)
		return
	case !slices.Contains(tools, "read_file") || !slices.Contains(tools, "write_file") && !slices.Contains(tools, "replace"):
		a.Drop("a protected path is kept from every file tool, and the rule is for some", n)
		return
	case !a.Has(draft.Sandbox, ""):
		a.Drop("without security.toolSandboxing nothing keeps commands from the path; a profile protects it from both", n)
		return
	}
	reason := ""
	if got, _ := pathPattern(p, a.OS); got != pattern || !slices.Equal(tools, fileTools) {
		reason = "for every file tool, and at any depth"
	}
	a.ProtectAs(path, reason, n)
}

// spelled takes the escapes and the pairs of cases out of an expression that stands for one text. Whatever else it has stays, and is no name.
func spelled(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && !(s[i+1]|0x20 >= 'a' && s[i+1]|0x20 <= 'z' || s[i+1] >= '0' && s[i+1] <= '9'):
			i++
			b.WriteByte(s[i])
		case s[i] == '[' && i+3 < len(s) && s[i+3] == ']' && s[i+1]|0x20 == s[i+2]|0x20 && s[i+1]|0x20 >= 'a' && s[i+1]|0x20 <= 'z':
			b.WriteByte(s[i+1] | 0x20)
			i += 3
		case s[i] == '.':
			// Any character: not one text.
			return ""
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// tools reads the tools that are taken away.
func (a *adopter) tools() {
	for _, n := range a.doc.At("tools", "exclude").Items() {
		s, ok := n.Text()
		tool, rest, content := strings.Cut(s, "(")
		name := knownTool(tool)
		switch {
		case !ok || name == "":
			a.Drop("a profile has rules for tools it knows only", n)
		case !content:
			a.Put(draft.Deny, name, "", n)
		default:
			text := name + "(" + strings.TrimSuffix(rest, ")") + ":*)"
			if _, ok := permission(text); !ok {
				a.Drop("the command has no form in a profile", n)
				continue
			}
			a.Warn("an entry with a command does nothing", n)
			a.Put(draft.Deny, text, "", n)
		}
	}
}

func (a *adopter) hooks() {
	off := a.doc.At("hooksConfig", "enabled")
	all := a.doc.Get("hooks")
	if off.Is(false) {
		if all != nil {
			a.Drop("hooksConfig.enabled: false switches the hooks of administrators off too", all)
			a.Warn("hooksConfig.enabled: false switches the hooks of administrators off too", all)
		}
		return
	}
	for _, ev := range all.Members() {
		i := slices.IndexFunc(events[:], func(e [2]string) bool { return e[1] == ev.Key })
		for _, group := range ev.Items() {
			m := group.Get("matcher")
			s, _ := m.Text()
			names, known := policyMatcher(ev.Key, s)
			taken := false
			for _, h := range group.Get("hooks").Items() {
				command, ok := h.Get("command").Text()
				switch {
				case i < 0:
					a.Drop("a profile has no hook of this event", h)
				case !known:
					a.Drop("the matcher names tools that a profile does not know", h)
				case !ok || !h.Get("type").Is("command"):
					a.Drop("a profile has hooks that run a command only", h)
				default:
					if a.AddHook(draft.Hook{Event: events[i][0], Matcher: names, Command: command}, h.Get("command"), h.Get("type")) {
						taken = true
						a.Drop("a profile has no field for it in a hook", h)
					}
				}
			}
			if taken && m != nil {
				a.Map(draft.HookItems, "", m)
			}
			a.Drop("no hook of the group was taken", group)
		}
	}
	if off != nil && len(a.Hooks) > 0 {
		a.Keep("halo writes it with hooks", off)
	}
}

// policyMatcher writes the names of the program's tools as policies do.
func policyMatcher(event, s string) (string, bool) {
	switch {
	case s == "" || s == "*" || s == ".*" || event == "AfterAgent" || event == "BeforeAgent":
		return "", true
	case event == "SessionStart":
		return s, s == "startup" || s == "resume" || s == "clear"
	}
	var out []string
	for t := range strings.SplitSeq(s, "|") {
		name := knownTool(t)
		if name == "" {
			return "", false
		}
		out = append(out, name)
	}
	return strings.Join(out, "|"), true
}

func (a *adopter) telemetry() {
	t := a.doc.Get("telemetry")
	if n := t.Get("enabled"); n.Is(true) || n.Is(false) {
		a.Set(draft.Telemetry, n.Compact(), "", n)
	}
	if n := t.Get("otlpEndpoint"); n != nil {
		s, _ := n.Text()
		if a.SetURL(draft.Endpoint, s, n, "https", "http") {
			if target := t.Get("target"); target.Is("local") {
				a.Keep("halo writes it with an endpoint", target)
			}
		}
	}
	switch n := t.Get("otlpProtocol"); {
	case n.Is("grpc"):
		a.Set(draft.Protocol, "grpc", "", n)
	case n.Is("http"):
		a.Set(draft.Protocol, "http/protobuf", "", n)
	}
	if n := t.Get("logPrompts"); n.Is(true) || n.Is(false) {
		a.Set(draft.LogPrompts, n.Compact(), "", n)
	}
}

// overrides reads the settings of taste that a profile takes as they are.
func (a *adopter) overrides() {
	take := func(path []string) {
		n := a.doc.At(path...)
		if n == nil || a.Said(n) || n.Kind == draft.Object && len(n.Members()) == 0 {
			return
		}
		v := n.Document()
		for _, key := range slices.Backward(path) {
			v = jsondoc.Object{{Key: key, Value: v}}
		}
		fits := true
		settingsShape.Check(v, "", func(string, string) { fits = false })
		if fits {
			a.Override(strings.Join(path, "."), n)
		}
	}
	for _, key := range table.Overrides {
		path := strings.Split(strings.TrimSuffix(key, ".*"), ".")
		if path[0] != "ui" {
			take(path)
			continue
		}
		for _, m := range a.doc.Get("ui").Members() {
			take([]string{"ui", m.Key})
		}
	}
}
