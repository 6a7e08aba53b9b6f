package claudecode

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// The names of the rendered files, in the managed directory.
const (
	settingsName     = "managed-settings.json"
	serversName      = "managed-mcp.json"
	instructionsName = "CLAUDE.md"
)

// destination returns the place of a managed file.
func destination(os, name string) string {
	switch os {
	case "darwin":
		return dirDarwin + "/" + name
	case "windows":
		return dirWindows + `\` + name
	}
	return dirLinux + "/" + name
}

// renderer collects what is rendered for one target.
type renderer struct {
	harness.Target
	p *effective.Policy
	// shell is set when the sandbox block is rendered, so that Bash is confined.
	shell bool

	doc, perms, sandbox, env jsondoc.Object
	allow, ask, deny         []string

	files []harness.File
	gaps  []harness.Gap
}

func render(t harness.Target) ([]harness.File, []harness.Gap) {
	r := &renderer{Target: t, p: t.Policy}
	r.shell = r.p.Sandboxed() && t.OS != "windows"
	r.confine()
	r.egress()
	r.permissions()
	r.mcp()
	r.hooks()
	r.models()
	r.environment()
	r.instructions()
	r.pin()
	r.overrides()
	return r.finish(), r.gaps
}

// finish writes the settings file when there is anything to say in it.
func (r *renderer) finish() []harness.File {
	for _, l := range []struct {
		key   string
		rules []string
	}{{"allow", r.allow}, {"ask", r.ask}, {"deny", r.deny}} {
		if len(l.rules) > 0 {
			slices.Sort(l.rules)
			r.perms.Set(l.key, slices.Compact(l.rules))
		}
	}
	for _, part := range []struct {
		key string
		o   jsondoc.Object
	}{{"env", r.env}, {"permissions", r.perms}, {"sandbox", r.sandbox}} {
		if len(part.o) > 0 {
			r.doc.Set(part.key, part.o)
		}
	}
	if len(r.doc) > 0 {
		r.file(settingsName, r.doc.Sort().Bytes())
	}
	slices.SortFunc(r.files, func(a, b harness.File) int { return strings.Compare(a.Dest, b.Dest) })
	return r.files
}

func (r *renderer) file(name string, content []byte) {
	r.files = append(r.files, harness.File{Dest: destination(r.OS, name), Owner: harness.Owner(r.OS), Mode: 0o644, Content: content})
}

func (r *renderer) gap(c harness.Concept, g harness.Grade, field, entry, reason, remedy string, bypass ...string) {
	r.gaps = append(r.gaps, harness.Gap{Concept: c, Field: field, Entry: entry, Harness: policy.ClaudeCode, OS: r.OS, Grade: g, Reason: reason, Remedy: remedy, Bypass: bypass})
}

// standing reports the weakness that a concept always has on this target, when it has one.
func (r *renderer) standing(c harness.Concept, field, remedy string) {
	if w := row(c, r.Target); w.Grade < harness.Enforced {
		r.gap(c, w.Grade, field, "", w.Limit, remedy, w.Bypass...)
	}
}

// unsupported reports a field that has no counterpart here.
func (r *renderer) unsupported(c harness.Concept, field, remedy string) {
	r.gap(c, harness.None, field, "", gap.Unsupported(policy.ClaudeCode, field), remedy)
}

const windowsRemedy = "the sandbox of native Windows is behind a vendor gate; run Claude Code in WSL 2, where the linux files apply"

// confine renders where commands may write and what they may not read.
func (r *renderer) confine() {
	s := &r.p.Sandbox
	locks := r.p.Permissions.SandboxRequired
	if !r.shell {
		if r.p.Sandboxed() {
			if s.Mode.IsSet() {
				r.unsupported(harness.Sandbox, s.ModeField, windowsRemedy)
			}
			if locks.V {
				r.unsupported(harness.Sandbox, "permissions.sandboxRequired", windowsRemedy)
			}
			if len(s.WritableRoots.Items) > 0 {
				r.unsupported(harness.WritableRoots, "sandbox.writableRoots", windowsRemedy)
			}
			if r.p.Mode() == policy.ModeReadOnly {
				r.deny = append(r.deny, readOnlyTools[:]...)
			}
		}
		r.protect()
		return
	}
	r.sandbox.Set("enabled", true)
	r.sandbox.Set("allowUnsandboxedCommands", false)
	if !r.Version.Less(hasFailClosed) {
		r.sandbox.Set("failIfUnavailable", true)
	}
	switch {
	case s.Mode.IsSet():
		r.standing(harness.Sandbox, s.ModeField, "")
	case locks.V:
		r.standing(harness.Sandbox, "permissions.sandboxRequired", "")
	}
	denyRead := r.protect()
	denyWrite := slices.Clone(denyRead)
	if r.p.Mode() == policy.ModeReadOnly {
		denyWrite = append(denyWrite, ".")
		r.deny = append(r.deny, readOnlyTools[:]...)
		r.gap(harness.Sandbox, harness.Overridable, s.ModeField, policy.ModeReadOnly,
			"the temporary folder of the session and folders added with --add-dir stay writable for commands, and MCP tools are not confined", "", "--add-dir")
	}
	var allowWrite []string
	for _, root := range s.WritableRoots.Items {
		allowWrite = append(allowWrite, fspath.Spellings(root.Path, r.OS)...)
	}
	if len(allowWrite) > 0 {
		r.standing(harness.WritableRoots, "sandbox.writableRoots", "")
	}
	if r.Version.Less(hasFilesystem) {
		return
	}
	var files jsondoc.Object
	for _, l := range []struct {
		key   string
		paths []string
	}{{"allowWrite", allowWrite}, {"denyRead", denyRead}, {"denyWrite", denyWrite}} {
		if len(l.paths) > 0 {
			slices.Sort(l.paths)
			files.Set(l.key, slices.Compact(l.paths))
		}
	}
	if len(s.ProtectedPaths.Items) > 0 && !r.Version.Less(hasReadLock) {
		files.Set("allowManagedReadPathsOnly", true)
	}
	if len(files) > 0 {
		r.sandbox.Set("filesystem", files)
	}
}

// readOnlyTools are every tool that edits: denying Edit alone leaves Write (observed on 2.1.332).
var readOnlyTools = [...]string{"Edit", "NotebookEdit", "Write"}

// protect renders the rules for protected paths and returns what the sandbox is told.
func (r *renderer) protect() (sandbox []string) {
	items := r.p.Sandbox.ProtectedPaths.Items
	if len(items) == 0 {
		return nil
	}
	const field = "sandbox.protectedPaths"
	r.standing(harness.ProtectedPaths, field, "")
	for _, item := range items {
		p := item.Path
		if p.Kind() == fspath.Absolute && r.OS == "windows" {
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(), "an absolute path without a drive is no place on Windows and is not rendered", "protect a path below ~/")
			continue
		}
		rules, dirs := pathRules(p, r.OS)
		if len(rules) == 0 {
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(), "its braces cannot be written out as alternatives here, so it is not rendered", "list the paths one by one")
			continue
		}
		r.deny = append(r.deny, rules...)
		sandbox = append(sandbox, dirs...)
		if r.shell && p.Kind() == fspath.Relative {
			r.gap(harness.ProtectedPaths, harness.Overridable, field, p.String(),
				"shell commands are kept from the files that exist below the session folder when a command starts, not from later ones or from those above it", "")
		}
	}
	return sandbox
}

// hosts returns the patterns of a list, sorted, each once.
func hosts(entries []egress.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Pattern.String()
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// undeniable reports whether an allowed pattern must not be opened because commands cannot be kept from the denied hosts in it: before 2.1.113 the sandbox
// knows no denied hosts.
func undeniable(t harness.Target, p host.Pattern) bool {
	return t.OS != "windows" && t.Policy.Sandboxed() && t.Version.Less(hasDenied) && slices.ContainsFunc(t.Policy.Hosts.Denied(), func(d egress.Entry) bool {
		return p.Covers(d.Pattern) || d.Pattern.Covers(p)
	})
}

// openable returns the hosts to allow, sorted, each once.
func openable(t harness.Target) []string {
	out := hosts(t.Policy.Hosts.Allowed())
	if !t.Version.Less(hasDenied) {
		return out
	}
	return slices.DeleteFunc(out, func(s string) bool {
		p, _ := host.ParsePattern(s)
		return undeniable(t, p)
	})
}

// egress renders the host lists, for commands and for the fetch tool.
//
// An open default is a managed allow rule for every domain: such rules open the sandbox too and denied entries still win (observed on 2.1.332). Without it
// every unlisted host would be asked about.
func (r *renderer) egress() {
	if !r.p.EgressRules() && !r.p.Egress.Default.IsSet() {
		if r.shell && r.p.Sandbox.Mode.IsSet() {
			r.gap(harness.Sandbox, harness.Overridable, r.p.Sandbox.ModeField, "", "commands in the sandbox ask about every host, because the policy says nothing about egress", "set egress.default")
		}
		return
	}
	open, _ := r.p.Hosts.Default()
	allowed, denied := openable(r.Target), hosts(r.p.Hosts.Denied())
	for _, e := range r.p.Hosts.Allowed() {
		switch {
		case r.Version.Less(hasDenied) && undeniable(r.Target, e.Pattern):
			r.gap(harness.Egress, harness.None, e.Field, e.Name, "before 2.1.113 commands cannot be kept from a denied host within allowed ones, so "+e.Pattern.String()+" is not allowed", "pin 2.1.113 or newer")
		case r.shell && e.Pattern.Suffix() == "localhost":
			r.gap(harness.Egress, harness.Overridable, e.Field, e.Name, "commands do not reach a name that resolves to an address of the device itself, whatever is allowed", "")
		}
	}
	for _, h := range allowed {
		r.allow = append(r.allow, "WebFetch(domain:"+h+")")
	}
	for _, h := range denied {
		r.deny = append(r.deny, "WebFetch(domain:"+h+")")
	}
	field := gap.EgressField(r.p)
	switch {
	case open && r.shell && len(denied) > 0 && r.Version.Less(hasDenied):
		r.gap(harness.Egress, harness.None, field, "", "before 2.1.113 commands cannot be kept from denied hosts, so every host is asked about", "pin 2.1.113 or newer")
	case open:
		r.allow = append(r.allow, "WebFetch(domain:*)")
	case len(allowed) == 0:
		r.deny = append(r.deny, "WebFetch")
	default:
		r.standing(harness.Fetch, field, "list hosts that must stay closed in egress.deniedDomains")
	}
	if !r.p.EgressRules() {
		return
	}
	var remedy string
	if !r.shell {
		remedy = windowsRemedy
	}
	r.standing(harness.Egress, field, remedy)
	if !r.shell {
		return
	}
	var network jsondoc.Object
	if !open && !r.Version.Less(hasManagedLists) {
		network.Set("allowManagedDomainsOnly", true)
		network.Set("allowedDomains", allowed)
	}
	if len(denied) > 0 && !r.Version.Less(hasDenied) {
		network.Set("deniedDomains", denied)
	}
	if len(network) > 0 {
		r.sandbox.Set("network", network)
	}
}

// permissions renders the rule lists, the start mode and the bypass lock.
func (r *renderer) permissions() {
	p := &r.p.Permissions
	for _, s := range p.Deny.Items {
		r.restrict("permissions.deny", s, &r.deny)
	}
	for _, s := range p.Ask.Items {
		r.restrict("permissions.ask", s, &r.ask)
	}
	for _, s := range p.Allow.Items {
		text, why := r.permit(s.V)
		if why != "" {
			r.gap(harness.Permissions, harness.None, "permissions.allow", s.V, "the rule "+why+", so it is not rendered", "")
			continue
		}
		r.allow = append(r.allow, text)
	}
	if p.DisableBypass.V {
		r.perms.Set("disableBypassPermissionsMode", "disable")
		r.standing(harness.BypassLock, "permissions.disableBypass", "")
	}
	switch mode := p.Mode.V; mode {
	case "", "bypassPermissions":
	default:
		r.perms.Set("defaultMode", mode)
		reason := "the mode is where a session starts: a user may change to another one"
		if mode != "auto" {
			// Auto is the mode of a session that says nothing (2.1.332): a classifier would answer what the policy wants a person to answer.
			if r.Version.Less(hasAutoLock) {
				reason = "the mode is where a session starts: a user may change to another one, auto included before 2.1.219"
			} else {
				r.perms.Set("disableAutoMode", "disable")
				reason = "the mode is where a session starts: a user may change to another one, except auto"
			}
		}
		r.gap(harness.Permissions, harness.Default, "permissions.mode", mode, reason, "", "~/.claude/settings.json permissions.defaultMode", "--permission-mode")
	}
}

func (r *renderer) restrict(field string, s source.Str, into *[]string) {
	x := restrictRule(s.V)
	if x.reason != "" {
		r.gap(harness.Permissions, harness.None, field, s.V, "the rule "+x.reason+", so it is not rendered", x.remedy)
		return
	}
	*into = append(*into, x.text)
}

// permit returns an allow rule, or why it is not rendered. Managed allow rules also open the sandbox: a domain for its network, a path for writing. One that
// reaches further than the host lists or the writable roots would undo them.
func (r *renderer) permit(s string) (text, why string) {
	x, problem := parseRule(s)
	if problem != "" {
		return "", problem
	}
	open, _ := r.p.Hosts.Default()
	switch {
	case x.paths():
		if why := deadPath(x.content); why != "" {
			return "", why
		}
		if x.tool != "Read" && x.tool != "Edit" {
			return "", "names a tool that is not asked about paths (write Read or Edit)"
		}
		if x.tool == "Edit" && r.shell && !r.writable(x.content) {
			return "", "would make a place writable that is neither the session folder nor in sandbox.writableRoots"
		}
	case x.tool == "WebFetch" && !x.hasContent:
		if !open {
			return "", "would let the fetch tool reach hosts that egress does not allow"
		}
	case x.tool == "WebFetch":
		p, all, problem := x.domain()
		if problem != "" {
			return "", problem
		}
		if open {
			break
		}
		if all {
			return "", "would open every host"
		}
		if _, ok := r.p.Hosts.AllowSet().Covers(p); !ok || undeniable(r.Target, p) {
			return "", "would open a host that egress does not allow, for commands too"
		}
	}
	return x.String(), ""
}

// writable reports whether a path of an Edit rule is below the session folder or a writable root.
func (r *renderer) writable(p string) bool {
	if strings.Contains("/"+p+"/", "/../") {
		return false
	}
	switch {
	case strings.HasPrefix(p, "//"):
		p = p[1:]
	case !strings.HasPrefix(p, "~"):
		return r.p.Mode() != policy.ModeReadOnly
	}
	return slices.ContainsFunc(r.p.Sandbox.WritableRoots.Items, func(root policy.FilePath) bool {
		return slices.ContainsFunc(fspath.Spellings(root.Path, r.OS), func(dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") })
	})
}

// mcp renders servers. Servers that are managed only become managed-mcp.json, whose presence shuts out every other server, and, should that file be missing,
// an allow list by identity: names are the user's choice. Other servers are added beside the user's own.
func (r *renderer) mcp() {
	m := &r.p.MCP
	const servers = "mcp.servers"
	denied := func(name string) bool {
		return slices.ContainsFunc(m.Denied.Items, func(s source.Str) bool { return s.V == name })
	}
	var defined jsondoc.Object
	matchers := []jsondoc.Object{}
	for i := range m.Servers {
		s := &m.Servers[i]
		if denied(s.Name.V) {
			r.gap(harness.MCP, harness.Enforced, servers, s.Name.V, "the server is on the list of denied ones, so it is not rendered", "take it out of mcp.denied")
			continue
		}
		if !m.ManagedOnly.V {
			switch {
			case r.Version.Less(hasServers):
				r.gap(harness.MCP, harness.None, servers, s.Name.V, "before 2.1.259 a server can only be shipped as the exclusive set of managed-mcp.json, which would shut out the user's own, so it is not rendered",
					"set mcp.managedOnly, or pin a newer version")
			case !s.URL.IsSet():
				r.gap(harness.MCP, harness.None, servers, s.Name.V, "a server that is a command can only be shipped as the exclusive set of managed-mcp.json, which would shut out the user's own, so it is not rendered",
					"set mcp.managedOnly")
			default:
				defined.Set(s.Name.V, serverObject(s))
			}
			continue
		}
		if strings.Contains(s.URL.V, "*") {
			r.gap(harness.MCP, harness.None, servers, s.Name.V, "* in a server's URL matches any text here, so the server is not rendered", "write the URL in full")
			continue
		}
		defined.Set(s.Name.V, serverObject(s))
		if s.URL.IsSet() {
			matchers = append(matchers, jsondoc.Object{{Key: "serverUrl", Value: s.URL.V}})
			continue
		}
		matchers = append(matchers, jsondoc.Object{{Key: "serverCommand", Value: texts(s.Command)}})
	}
	switch {
	case m.ManagedOnly.V:
		if defined == nil {
			defined = jsondoc.Object{}
		}
		r.file(serversName, jsondoc.Object{{Key: "mcpServers", Value: defined}}.Sort().Bytes())
		r.standing(harness.MCP, "mcp.managedOnly", "")
		if !r.Version.Less(hasManagedOnly) {
			r.doc.Set("allowManagedMcpServersOnly", true)
			r.doc.Set("allowedMcpServers", sorted(matchers))
		}
	case len(defined) > 0:
		r.doc.Set("managedMcpServers", defined)
	}
	var out []jsondoc.Object
	for _, s := range m.Denied.Items {
		if !serverName(s.V) {
			if m.ManagedOnly.V {
				continue // the exclusive set does not have it
			}
			r.gap(harness.MCP, harness.None, "mcp.denied", s.V, "a denied server is named with letters, digits, - and _ here, so the entry is not rendered", "")
			continue
		}
		out = append(out, jsondoc.Object{{Key: "serverName", Value: s.V}})
		if !m.ManagedOnly.V {
			r.gap(harness.MCP, harness.Overridable, "mcp.denied", s.V, "the server is denied by its name, which the user chooses: renamed it runs", "set mcp.managedOnly", "~/.claude.json mcpServers", ".mcp.json")
		}
	}
	if len(out) > 0 {
		r.doc.Set("deniedMcpServers", sorted(out))
	}
}

// sorted orders matchers by what they say and drops repetitions.
func sorted(l []jsondoc.Object) []jsondoc.Object {
	text := func(o jsondoc.Object) string { return string(o.Sort().Bytes()) }
	slices.SortFunc(l, func(a, b jsondoc.Object) int { return strings.Compare(text(a), text(b)) })
	return slices.CompactFunc(l, func(a, b jsondoc.Object) bool { return text(a) == text(b) })
}

// serverName reports whether a name can stand in a serverName matcher.
func serverName(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return s != ""
}

func serverObject(s *policy.Server) jsondoc.Object {
	if !s.URL.IsSet() {
		argv := texts(s.Command)
		if len(argv) == 0 {
			argv = []string{""}
		}
		return jsondoc.Object{{Key: "type", Value: "stdio"}, {Key: "command", Value: argv[0]}, {Key: "args", Value: argv[1:]}}
	}
	o := jsondoc.Object{{Key: "type", Value: "http"}, {Key: "url", Value: s.URL.V}}
	if len(s.Headers) > 0 {
		var h jsondoc.Object
		for _, p := range s.Headers {
			h.Set(p.Key.V, p.Value.V)
		}
		o.Set("headers", h)
	}
	return o
}

func texts(l source.Strs) []string {
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.V
	}
	return out
}

// hooks renders the policy's hooks, those of one event in the order of the policy.
func (r *renderer) hooks() {
	h := &r.p.Hooks
	var events jsondoc.Object
	for _, event := range policy.HookEvents {
		var groups []jsondoc.Object
		for _, k := range h.Items {
			if k.Event.V != event {
				continue
			}
			command := jsondoc.Object{{Key: "type", Value: "command"}, {Key: "command", Value: k.Command.V}}
			g := jsondoc.Object{{Key: "hooks", Value: []jsondoc.Object{command}}}
			if k.Matcher.V != "" {
				g.Set("matcher", k.Matcher.V)
			}
			groups = append(groups, g)
			if event == "SessionStart" {
				r.gap(harness.Hooks, harness.Overridable, "hooks.items", strings.TrimSpace(event+" "+k.Matcher.V), "a bare session starts without its SessionStart hooks; the hooks of other events run",
					"hook UserPromptSubmit instead", bare...)
			}
		}
		if len(groups) > 0 {
			events.Set(event, groups)
		}
	}
	if len(events) > 0 {
		r.doc.Set("hooks", events)
	}
	if !h.ManagedOnly.V {
		return
	}
	r.standing(harness.Hooks, "hooks.managedOnly", "pin 2.1.76 or newer")
	if !r.Version.Less(hasManagedOnly) {
		r.doc.Set("allowManagedHooksOnly", true)
	}
}

// model returns the name that is sent to the model's API for an alias of the gateway.
func (r *renderer) model(alias string) string {
	if name := r.Models[alias]; name != "" {
		return name
	}
	return alias
}

// models renders the default model and the list with its lock.
func (r *renderer) models() {
	m := &r.p.Models
	start, field := m.Default, "models.default"
	if pin := r.p.Pin(policy.ClaudeCode); pin != nil && pin.Model.IsSet() {
		start, field = pin.Model, "harnesses.claude-code.model"
	}
	if start.IsSet() {
		r.doc.Set("model", r.model(start.V))
		if len(m.Allowed.Items) == 0 {
			r.gap(harness.Models, harness.Default, field, "", "the model is where a session starts: a user may choose another one", "list the models in models.allowed", "--model", "ANTHROPIC_MODEL")
		}
	}
	if len(m.Allowed.Items) == 0 {
		if m.Enforce.V {
			r.gap(harness.Models, harness.None, "models.enforce", "", "no list of models means every model here, and an empty one the vendor's default, so nothing is rendered", "list the models")
		}
		return
	}
	var allowed []string
	for _, s := range m.Allowed.Items {
		if name := r.model(s.V); !slices.Contains(allowed, name) {
			allowed = append(allowed, name)
		}
	}
	r.doc.Set("availableModels", allowed)
	if m.Enforce.IsSet() && !m.Enforce.V {
		r.gap(harness.Models, harness.Default, "models.allowed", "", "without models.enforce the list is a choice for the user and does not bind the default model", "set models.enforce: true", "--model")
	} else {
		r.standing(harness.Models, "models.allowed", "")
		if !r.Version.Less(hasModelLock) {
			r.doc.Set("enforceAvailableModels", true)
		}
	}
	if !r.Version.Less(hasExactModels) {
		r.doc.Set("availableModelsMatch", "exact")
	}
}

// environment renders the policy's variables, the gateway and telemetry: Claude Code takes the last two from its environment, and managed values win over the
// process environment.
func (r *renderer) environment() {
	for _, p := range r.p.Env {
		r.env.Set(p.Key.V, p.Value.V)
	}
	if len(r.p.Env) > 0 {
		r.standing(harness.Env, "env", "")
	}
	if r.GatewayURL != "" {
		r.env.Set("ANTHROPIC_BASE_URL", apiRoot(r.GatewayURL))
	}
	t := &r.p.Telemetry
	switch {
	case t.Enabled.V:
		r.env.Set("CLAUDE_CODE_ENABLE_TELEMETRY", "1")
		r.env.Set("OTEL_METRICS_EXPORTER", "otlp")
		r.env.Set("OTEL_LOGS_EXPORTER", "otlp")
	case t.Enabled.IsSet():
		r.env.Set("CLAUDE_CODE_ENABLE_TELEMETRY", "0")
	}
	if t.OTLPEndpoint.IsSet() {
		r.env.Set("OTEL_EXPORTER_OTLP_ENDPOINT", t.OTLPEndpoint.V)
	}
	if p := protocol(t); p != "" {
		r.env.Set("OTEL_EXPORTER_OTLP_PROTOCOL", p)
	}
	if t.LogPrompts.IsSet() {
		on := "0"
		if t.LogPrompts.V {
			on = "1"
		}
		r.env.Set("OTEL_LOG_USER_PROMPTS", on)
	}
	if len(t.Attributes) > 0 {
		r.env.Set("OTEL_RESOURCE_ATTRIBUTES", attributes(t.Attributes))
	}
	if t.Enabled.IsSet() || t.OTLPEndpoint.IsSet() || t.Protocol.IsSet() || t.LogPrompts.IsSet() || len(t.Attributes) > 0 {
		r.standing(harness.Telemetry, "telemetry", "pin 2.1.217 or newer")
	}
	if t.Enabled.V && !t.OTLPEndpoint.IsSet() {
		r.gap(harness.Telemetry, harness.Overridable, "telemetry.enabled", "", "without an endpoint in the policy telemetry goes where a user's own variables send it", "set telemetry.otlpEndpoint",
			"OTEL_EXPORTER_OTLP_ENDPOINT")
	}
}

// protocol is the protocol of telemetry, or "". An endpoint without one has the default of OpenTelemetry: left out, a user's own variable would choose another,
// with which nothing arrives (observed on 2.1.332).
func protocol(t *policy.Telemetry) string {
	if t.OTLPEndpoint.IsSet() && !t.Protocol.IsSet() {
		return "http/protobuf"
	}
	return t.Protocol.V
}

// apiRoot is the gateway's address as this program wants it: it appends /v1/messages itself.
func apiRoot(url string) string {
	return strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
}

// attributes writes resource attributes as OpenTelemetry reads them: key=value pairs with commas between, values percent-encoded like baggage (W3C).
func attributes(pairs []source.Pair) string {
	l := make([]string, len(pairs))
	for i, p := range pairs {
		l[i] = percent(p.Key.V) + "=" + percent(p.Value.V)
	}
	slices.Sort(l)
	return strings.Join(l, ",")
}

func percent(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`",;\%=`, c) >= 0 {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// instructions renders the organization's text as the CLAUDE.md of the managed directory. A variable of the process would leave it out; the managed
// environment takes that back (observed on 2.1.332).
func (r *renderer) instructions() {
	text := r.p.Instructions.V
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	r.file(instructionsName, []byte(text))
	r.env.Set("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "0")
	r.standing(harness.Instructions, "instructions", "")
}

// pin renders the pinned version as both bounds: the program then refuses to start at any other.
func (r *renderer) pin() {
	pin := r.p.Pin(policy.ClaudeCode)
	if pin == nil || !pin.Version.IsSet() {
		return
	}
	const field = "harnesses.claude-code.version"
	v, ok := harness.ParseVersion(pin.Version.V)
	if !ok || v.Pre != "" {
		r.gap(harness.VersionPin, harness.None, field, "", "only a version of three numbers is taken as a bound here; another text would be ignored, so it is not rendered", "pin a release")
		return
	}
	if r.Version.Less(hasVersionPin) {
		r.standing(harness.VersionPin, field, "pin 2.1.163 or newer")
		return
	}
	r.doc.Set("requiredMinimumVersion", v.String())
	r.doc.Set("requiredMaximumVersion", v.String())
}

// overrides merges raw keys, last. A value that the program would refuse is left out: it has voided whole files.
func (r *renderer) overrides() {
	pin := r.p.Pin(policy.ClaudeCode)
	if pin == nil {
		return
	}
	// The order of a map does not show: the file is sorted, and so are these gaps.
	var bad []string
	for key, v := range pin.Overrides {
		x := jsondoc.Of(v)
		if !slices.Contains(overrides[:], key) || !fits(key, x, nil) {
			bad = append(bad, key)
			continue
		}
		r.doc.Set(key, x)
	}
	slices.Sort(bad)
	for _, key := range bad {
		r.gap(harness.Overrides, harness.None, "harnesses.claude-code.overrides."+key, "", "the value is not one that this setting takes, so it is not rendered", "")
	}
}
