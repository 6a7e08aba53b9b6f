package codex

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// The names of the rendered files, in the managed directory. managed_config.toml is never written: three of its keys are read as requirements and win over
// requirements.toml, and Windows no longer reads it.
const (
	requirementsName = "requirements.toml"
	configName       = "config.toml"
)

// destination returns the place of a managed file.
func destination(os, name string) string {
	if os == "windows" {
		return dirWindows + `\` + name
	}
	return dirUnix + "/" + name
}

// scanDepth is how many folders deep patterns are looked for before a command. Without a bound every session warns and the scan has no end.
const scanDepth = 8

// renderer collects what is rendered for one target.
type renderer struct {
	harness.Target
	p *effective.Policy
	// req is requirements.toml, conf config.toml.
	req, conf object
	// profile is the managed permission profile, rooms its filesystem table, denyRead what no profile at all may read.
	profile  object
	rooms    indexed
	denyRead []string
	// search is set when the hosted web search is switched off.
	search bool

	gaps []harness.Gap
}

func render(t harness.Target) ([]harness.File, []harness.Gap) {
	r := &renderer{Target: t, p: t.Policy}
	r.egress()
	r.permissions()
	r.confine()
	r.mcp()
	r.hooks()
	r.models()
	r.telemetry()
	r.texts()
	r.pin()
	var files []harness.File
	for _, f := range []struct {
		name string
		doc  object
	}{{configName, r.conf}, {requirementsName, r.req}} {
		if len(f.doc) > 0 {
			files = append(files, harness.File{Dest: destination(t.OS, f.name), Owner: harness.Owner(t.OS), Mode: 0o644, Content: f.doc.file()})
		}
	}
	return files, r.gaps
}

func (r *renderer) gap(c harness.Concept, g harness.Grade, field, entry, reason, remedy string, bypass ...string) {
	r.gaps = append(r.gaps, harness.Gap{Concept: c, Field: field, Entry: entry, Harness: policy.Codex, OS: r.OS, Grade: g, Reason: reason, Remedy: remedy, Bypass: bypass})
}

// standing reports the weakness that a concept always has on this target, when it has one.
func (r *renderer) standing(c harness.Concept, field, remedy string) {
	if w := row(c, r.Target); w.Grade < harness.Enforced {
		r.gap(c, w.Grade, field, "", w.Limit, remedy, w.Bypass...)
	}
}

// unsupported reports a field that has no counterpart here.
func (r *renderer) unsupported(c harness.Concept, field, remedy string) {
	r.gap(c, harness.None, field, "", gap.Unsupported(policy.Codex, field), remedy)
}

// profilePrefix begins the name of the managed permission profile. A profile of the user with the same name keeps the program from starting.
const profilePrefix = "halo-"

const newerProfiles = "pin 0.138.0 or newer, which takes a managed permission profile"

// newer is the remedy that a newer version is, or nothing when this one takes a managed profile.
func (r *renderer) newer() string {
	if r.Version.Less(hasProfiles) {
		return newerProfiles
	}
	return ""
}

// confine renders the sandbox: from 0.138.0 a managed profile, which nothing of the user beats, before that the modes and defaults that version knows.
func (r *renderer) confine() {
	p := r.p
	if !p.Sandboxed() {
		r.readRules()
		return
	}
	readOnly := p.Mode() == policy.ModeReadOnly
	modes := []string{policy.ModeReadOnly, policy.ModeWorkspaceWrite}
	if readOnly {
		modes = modes[:1]
	}
	if !r.Version.Less(hasRequirements) {
		r.req.set("allowed_sandbox_modes", modes)
	}
	r.standing(harness.Sandbox, sandboxField(p), r.newer())
	r.protect()
	r.roots()
	r.readRules()
	if r.Version.Less(hasProfiles) {
		return
	}
	name := profilePrefix + p.Profile
	r.req.set("default_permissions", name)
	r.req.set("allowed_permission_profiles", object{{name, true}})
	r.profile.set("extends", ":workspace")
	if readOnly {
		r.profile.set("extends", ":read-only")
	}
	if len(r.rooms.object) > 0 {
		r.profile.set("filesystem", r.rooms.object)
	}
	r.permission(name, r.profile)
}

// sandboxField is the key by which a policy comes to a sandbox.
func sandboxField(p *effective.Policy) string {
	switch {
	case p.Sandbox.Mode.IsSet():
		return p.Sandbox.ModeField
	case p.Permissions.SandboxRequired.V:
		return "permissions.sandboxRequired"
	case len(p.Sandbox.ProtectedPaths.Items) > 0:
		return "sandbox.protectedPaths"
	case len(p.Sandbox.WritableRoots.Items) > 0:
		return "sandbox.writableRoots"
	}
	return gap.EgressField(p)
}

// permission sets a member of the permissions table.
func (r *renderer) permission(key string, value object) {
	for i := range r.req {
		if r.req[i].key == "permissions" {
			t, _ := r.req[i].value.(object)
			t.set(key, value)
			r.req[i].value = t
			return
		}
	}
	r.req.set("permissions", object{{key, value}})
}

// place reports whether a path can be written down for the operating system: Windows knows no absolute path without a drive and refuses to start on one.
func (r *renderer) place(p fspath.Path) bool { return p.Kind() != fspath.Absolute || r.OS != "windows" }

func (r *renderer) roots() {
	items := r.p.Sandbox.WritableRoots.Items
	const field = "sandbox.writableRoots"
	if len(items) == 0 {
		return
	}
	var legacy []string
	for _, item := range items {
		if !r.place(item.Path) {
			r.gap(harness.WritableRoots, harness.None, field, item.Path.String(), "an absolute path without a drive is no place on Windows and is not rendered", "use a folder below ~/")
			continue
		}
		for _, s := range fspath.Spellings(item.Path, r.OS) {
			if r.Version.Less(hasProfiles) {
				legacy = append(legacy, s)
			} else {
				r.rooms.set(s, "write")
			}
		}
	}
	r.standing(harness.WritableRoots, field, "create the roots on the devices, writable for their users")
	if len(legacy) == 0 {
		return
	}
	slices.Sort(legacy)
	r.conf.set("sandbox_mode", policy.ModeWorkspaceWrite)
	r.conf.set("sandbox_workspace_write", object{{"writable_roots", slices.Compact(legacy)}})
}

// protect renders protected paths. A pattern of the profile names files, not what is below a folder, so each is written with and without /** (observed on
// 0.171.0, as is that braces match nothing).
func (r *renderer) protect() {
	items := r.p.Sandbox.ProtectedPaths.Items
	const field = "sandbox.protectedPaths"
	if len(items) == 0 {
		return
	}
	r.standing(harness.ProtectedPaths, field, r.newer())
	var relative indexed
	for _, item := range items {
		p := item.Path
		spellings := protectedForms(p, r.OS)
		switch {
		case !r.place(p):
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(), "an absolute path without a drive is no place on Windows and is not rendered", "protect a path below ~/")
		case len(spellings) == 0:
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(), "its braces cannot be written out as alternatives here, so it is not rendered", "list the paths one by one")
		case rootGlob(p):
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(),
				"a pattern in the first folder below / keeps every session from starting on Linux, so it is rendered nowhere", "name the folder in full")
		case p.Kind() == fspath.Relative && r.Version.Less(hasProfiles):
			r.gap(harness.ProtectedPaths, harness.None, field, p.String(), "before 0.138.0 a path relative to the workspace means a place beside the requirements file, so it is not rendered", newerProfiles)
		case p.Kind() == fspath.Relative:
			for _, s := range spellings {
				relative.set(s, "deny")
			}
			r.gap(harness.ProtectedPaths, row(harness.ProtectedPaths, r.Target).Grade, field, p.String(),
				"only files that exist when a command starts are held, at most 8 folders below a workspace root", "")
		default:
			for _, s := range spellings {
				r.rooms.set(s, "deny")
			}
			if !r.Version.Less(hasDenyRead) {
				r.denyRead = append(r.denyRead, spellings...)
			}
			if p.Glob() && !r.Version.Less(hasDenyRead) {
				r.gap(harness.ProtectedPaths, row(harness.ProtectedPaths, r.Target).Grade, field, p.String(), "only files that exist when a command starts are held, at most 8 folders deep", "")
			}
		}
	}
	if len(relative.object) > 0 {
		r.rooms.set(":workspace_roots", relative.object)
	}
	if slices.ContainsFunc(r.rooms.object, func(m member) bool { return strings.ContainsAny(m.key, "*?[") }) || len(relative.object) > 0 {
		r.rooms.set("glob_scan_max_depth", int64(scanDepth))
	}
}

// rootGlob reports whether an absolute path has a pattern in its first segment.
func rootGlob(p fspath.Path) bool {
	segs := p.Segments()
	return p.Kind() == fspath.Absolute && len(segs) > 0 && strings.ContainsAny(segs[0], "*?[]{}")
}

// protectedForms are the entries that deny a path and what is below it.
func protectedForms(p fspath.Path, os string) (out []string) {
	for _, spelling := range fspath.Spellings(p, os) {
		for _, s := range fspath.Expand(spelling) {
			if p.Kind() == fspath.Relative {
				s = "**/" + strings.TrimPrefix(s, "**/")
			}
			out = append(out, s)
			if strings.ContainsAny(s, "*?[") {
				out = append(out, strings.TrimSuffix(s, "/**")+"/**")
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readRules writes what no profile may read.
func (r *renderer) readRules() {
	if len(r.denyRead) == 0 {
		return
	}
	slices.Sort(r.denyRead)
	r.permission("filesystem", object{{"deny_read", slices.Compact(r.denyRead)}})
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

// egress renders the hosts that sandboxed commands may reach, in one spelling: two keep the program from starting.
func (r *renderer) egress() {
	p := r.p
	if !p.EgressRules() {
		if !p.Sandboxed() {
			return
		}
		switch {
		case !p.Egress.Default.IsSet():
			r.gap(harness.Sandbox, harness.Overridable, sandboxField(p), "", "commands in the sandbox have no network, because the policy says nothing about egress", "set egress.default")
		case r.Version.Less(hasProfiles):
			r.gap(harness.Egress, harness.None, "egress.default", "allow", "before 0.138.0 no requirement opens the network: commands have none until the user opens it", newerProfiles)
		default:
			r.profile.set("network", object{{"enabled", true}})
		}
		return
	}
	open, _ := p.Hosts.Default()
	denied := hosts(p.Hosts.Denied())
	// A name in both lists is denied; written once, it cannot be read the other way.
	allowed := slices.DeleteFunc(hosts(p.Hosts.Allowed()), func(h string) bool {
		_, found := slices.BinarySearch(denied, h)
		return found
	})
	field := gap.EgressField(p)
	r.standing(harness.Egress, field, r.newer())
	if r.Version.Less(hasNetwork) {
		r.standing(harness.Fetch, field, "pin 0.99.0 or newer")
		return
	}
	r.search = true
	r.req.set("allowed_web_search_modes", []string{"disabled"})
	if open || len(allowed) > 0 {
		r.gap(harness.Fetch, harness.Enforced, field, "", "the hosted web search cannot be limited to hosts, so it is off, for allowed hosts too", "")
	}
	reason, remedy := limitReach, ""
	if len(p.Egress.AllowedDomains.Items) > 0 {
		reason, remedy = limitEgress, "give commands a public name for hosts on private addresses"
	}
	r.gap(harness.Egress, row(harness.Egress, r.Target).Grade, field, "", reason, remedy)
	network := object{{"enabled", true}}
	switch {
	case open && r.Version.Less(hasProfiles):
		r.gap(harness.Egress, harness.None, "egress.default", "allow", "before 0.138.0 no requirement opens all hosts but the denied ones: commands reach none", newerProfiles)
		if !r.Version.Less(hasNetworkLock) {
			network.set("managed_allowed_domains_only", true)
		}
	case open:
		// The profile opens every host and the managed entries close the denied ones; an active proxy is what makes both count (observed on 0.171.0).
		r.profile.set("network", object{{"enabled", true}, {"domains", object{{"*", "allow"}}}})
	case !r.Version.Less(hasNetworkLock):
		network.set("managed_allowed_domains_only", true)
	}
	if r.Version.Less(hasDomains) {
		if len(allowed) > 0 {
			network.set("allowed_domains", allowed)
		}
		if len(denied) > 0 {
			network.set("denied_domains", denied)
		}
	} else if len(allowed)+len(denied) > 0 {
		domains := make(object, 0, len(allowed)+len(denied))
		for _, h := range allowed {
			domains = append(domains, member{h, "allow"})
		}
		for _, h := range denied {
			domains = append(domains, member{h, "deny"})
		}
		network.set("domains", domains)
	}
	r.req.set("experimental_network", network)
}

// permissions renders the bypass lock and what can be translated exactly from the rule lists, which are in the syntax of another harness.
func (r *renderer) permissions() {
	p := &r.p.Permissions
	if p.Mode.IsSet() {
		r.unsupported(harness.Permissions, "permissions.mode", "")
	}
	if len(p.Allow.Items) > 0 {
		r.unsupported(harness.Permissions, "permissions.allow", "a requirement can forbid commands and ask about them, not permit them")
	}
	r.search = r.search || !r.Version.Less(hasNetwork) && slices.ContainsFunc(p.Deny.Items, func(s source.Str) bool { return s.V == "WebSearch" || s.V == "WebFetch" })
	var rules []object
	for _, l := range []struct {
		field, decision string
		items           []source.Str
	}{{"permissions.deny", "forbidden", p.Deny.Items}, {"permissions.ask", "prompt", p.Ask.Items}} {
		translated := false
		for _, s := range l.items {
			words, why := r.rule(l.decision, s.V)
			if why != "" {
				r.gap(harness.Permissions, harness.None, l.field, s.V, "the rule "+why+", so it is not rendered", "")
				continue
			}
			if len(words) == 0 {
				continue
			}
			translated = true
			pattern := make([]inline, len(words))
			for i, w := range words {
				pattern[i] = inline{{"token", w}}
			}
			rules = append(rules, object{{"decision", l.decision}, {"justification", l.field + " " + s.V}, {"pattern", pattern}})
		}
		if translated {
			r.standing(harness.Permissions, l.field, "")
		}
	}
	if len(rules) > 0 {
		slices.SortFunc(rules, func(a, b object) int { return strings.Compare(a[1].value.(string), b[1].value.(string)) })
		r.req.set("rules", object{{"prefix_rules", rules}})
	}
	if p.DisableBypass.V {
		if !r.Version.Less(hasRequirements) {
			r.req.set("allowed_approval_policies", []string{"on-request", "untrusted"})
		}
		r.standing(harness.BypassLock, "permissions.disableBypass", "")
	}
}

// rule translates a rule that restricts. It returns the first words of a command to match, or none when the rule is held in another way.
func (r *renderer) rule(decision, s string) (words []string, why string) {
	tool, rest, paren := strings.Cut(s, "(")
	content, closed := strings.CutSuffix(rest, ")")
	if paren && (!closed || content == "") {
		return nil, "is malformed"
	}
	switch {
	case tool == "Bash" && paren:
		words = prefix(content)
		switch {
		case words == nil:
			return nil, "is no plain prefix of words (such as git push:*), the only form that has a counterpart here"
		case r.Version.Less(hasRules):
			return nil, "has no counterpart before 0.95.0"
		}
		return words, ""
	case decision == "forbidden" && tool == "WebSearch" && !paren, decision == "forbidden" && tool == "WebFetch" && (!paren || strings.HasPrefix(content, "domain:")):
		if tool == "WebFetch" && paren && !r.search {
			return nil, "names a host for a fetch tool, and the hosted web search here knows no hosts"
		}
		if r.Version.Less(hasNetwork) {
			return nil, "has no counterpart before 0.99.0"
		}
		r.search = true
		r.req.set("allowed_web_search_modes", []string{"disabled"})
		return nil, ""
	case decision == "forbidden" && tool == "Read" && paren:
		forms, why := r.readRule(content)
		r.denyRead = append(r.denyRead, forms...)
		return nil, why
	}
	return nil, "has no exact counterpart here"
}

// readRule translates the path of a Read rule: // is the root of the file system, ~/ the home.
func (r *renderer) readRule(p string) (forms []string, why string) {
	if r.Version.Less(hasDenyRead) {
		return nil, "has no counterpart before 0.122.0"
	}
	if strings.HasPrefix(p, "//") {
		p = p[1:]
	} else if !strings.HasPrefix(p, "~/") {
		return nil, "names a path relative to the session folder, which would be taken as one beside the requirements file"
	}
	path, problem := fspath.ParseProtected(p)
	switch {
	case problem != nil:
		return nil, "has a path that " + problem.Reason
	case !r.place(path):
		return nil, "names an absolute path without a drive, which is no place on Windows"
	case rootGlob(path):
		return nil, "has a pattern in the first folder below /, which keeps every session from starting on Linux"
	}
	if base, ok := strings.CutSuffix(path.String(), "/**"); ok && !strings.ContainsAny(base, "*?[]{}") && strings.Count(base, "/") > 0 {
		// A folder without a pattern covers what is in it, also what is made later.
		if inner, problem := fspath.ParseProtected(base); problem == nil {
			path = inner
		}
	}
	if forms = protectedForms(path, r.OS); len(forms) == 0 {
		return nil, "has braces that cannot be written out as alternatives"
	}
	return forms, ""
}

// prefix returns the words of a Bash rule that stands for every command beginning with them, or nil.
func prefix(content string) []string {
	text, ok := strings.CutSuffix(content, ":*")
	if !ok {
		if text, ok = strings.CutSuffix(content, " *"); !ok {
			return nil
		}
	}
	words := strings.Fields(text)
	for _, w := range words {
		for _, c := range []byte(w) {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_./@:=+,%", c) >= 0) {
				return nil
			}
		}
	}
	if len(words) == 0 {
		return nil
	}
	return words
}

// mcp renders the closed list of servers and the servers themselves: a requirement only permits, config.toml is what installs.
func (r *renderer) mcp() {
	m := &r.p.MCP
	if m.ManagedOnly.V {
		r.standing(harness.MCP, "mcp.managedOnly", "pin 0.87.0 or newer")
	}
	var identities, servers object
	for i := range m.Servers {
		s := &m.Servers[i]
		if slices.ContainsFunc(m.Denied.Items, func(d source.Str) bool { return d.V == s.Name.V }) {
			continue
		}
		if m.ManagedOnly.V && !s.URL.IsSet() && r.Version.Less(hasIdentity) && !r.Version.Less(hasMCP) {
			r.gap(harness.MCP, harness.None, "mcp.servers", s.Name.V, "before 0.146.1 a permitted command may have any arguments, so the server is not permitted", "pin 0.146.1 or newer, or reach the server by URL")
			continue
		}
		server, ok := r.server(s)
		if !ok {
			continue
		}
		servers.set(s.Name.V, server)
		identities.set(s.Name.V, object{{"identity", identity(s)}})
	}
	if m.ManagedOnly.V && !r.Version.Less(hasMCP) {
		if identities == nil {
			identities = object{}
		}
		r.req.set("mcp_servers", identities)
	}
	if len(servers) > 0 {
		r.conf.set("mcp_servers", servers)
		r.gap(harness.MCP, harness.Default, "mcp.servers", "", "the servers are defaults: a user may switch one off or define another of the same name", "", config...)
	}
	if len(m.Denied.Items) > 0 && (!m.ManagedOnly.V || r.Version.Less(hasMCP)) {
		r.unsupported(harness.MCP, "mcp.denied", "set mcp.managedOnly: a closed list keeps every other server out")
	}
}

func identity(s *policy.Server) inline {
	if s.URL.IsSet() {
		return inline{{"url", s.URL.V}}
	}
	argv := texts(s.Command)
	args := make([]inline, len(argv)-1)
	for i, a := range argv[1:] {
		args[i] = inline{{"match", "exact"}, {"value", a}}
	}
	return inline{{"command", inline{{"executable", argv[0]}, {"args", args}}}}
}

// server returns the definition of a server. References to variables are what the program has keys of its own for.
func (r *renderer) server(s *policy.Server) (object, bool) {
	if !s.URL.IsSet() {
		argv := texts(s.Command)
		if len(argv) == 0 {
			return nil, false
		}
		o := object{{"command", argv[0]}}
		if len(argv) > 1 {
			o.set("args", argv[1:])
		}
		return o, true
	}
	o := object{{"url", s.URL.V}}
	var plain, fromEnv object
	for _, h := range s.Headers {
		name, ok := reference(h.Value.V)
		bearer, isBearer := strings.CutPrefix(h.Value.V, "Bearer ")
		token, isToken := reference(bearer)
		switch {
		case !strings.Contains(h.Value.V, "${"):
			plain.set(h.Key.V, h.Value.V)
		case ok:
			fromEnv.set(h.Key.V, name)
		case isBearer && isToken && strings.EqualFold(h.Key.V, "Authorization"):
			o.set("bearer_token_env_var", token)
		default:
			r.gap(harness.MCP, harness.None, "mcp.servers", s.Name.V, "the header "+h.Key.V+" mixes text and a variable, which is not expanded here, so the header is not rendered", "write the variable alone: ${NAME}")
		}
	}
	if len(plain) > 0 {
		o.set("http_headers", plain)
	}
	if len(fromEnv) > 0 {
		o.set("env_http_headers", fromEnv)
	}
	return o, true
}

// reference returns the name in ${NAME}.
func reference(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "${")
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, "}")
	return name, ok && name != "" && !strings.ContainsAny(name, "${}:- ")
}

func texts(l source.Strs) []string {
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.V
	}
	return out
}

// hookMatcher returns the matcher here for one of a policy, which names tools as Claude Code does, and whether there is one. Commands are called Bash; edits made
// with the patch tool have another name. A session's start is matched by what started it; the other events run whatever their matcher is (observed on 0.171.0).
func hookMatcher(event, matcher string) (string, bool) {
	if matcher == "*" {
		matcher = ""
	}
	switch event {
	case "PreToolUse", "PostToolUse":
		return matcher, matcher == "" || matcher == "Bash"
	case "SessionStart":
		for word := range strings.SplitSeq(matcher, "|") {
			if matcher != "" && word != "startup" && word != "resume" {
				return "", false
			}
		}
		return matcher, true
	}
	return "", true
}

// hooks renders the policy's hooks, those of one event in the order of the policy.
func (r *renderer) hooks() {
	h := &r.p.Hooks
	if r.Version.Less(hasHooks) {
		if len(h.Items) > 0 {
			r.standing(harness.Hooks, "hooks.items", "pin 0.124.0 or newer")
		}
		if h.ManagedOnly.V {
			r.standing(harness.Hooks, "hooks.managedOnly", "pin 0.131.0 or newer")
		}
		return
	}
	var events object
	for _, event := range policy.HookEvents {
		var groups []object
		for _, k := range h.Items {
			if k.Event.V != event {
				continue
			}
			matcher, ok := hookMatcher(event, k.Matcher.V)
			if !ok {
				r.gap(harness.Hooks, harness.None, "hooks.items", event+" "+k.Matcher.V, "the matcher names tools of another harness, or starts of a session, that would not match here, so the hook is not rendered",
					"match Bash, or startup and resume, or leave the matcher out")
				continue
			}
			g := object{{"hooks", []object{{{"command", k.Command.V}, {"type", "command"}}}}}
			if matcher != "" {
				g.set("matcher", matcher)
			}
			groups = append(groups, g)
		}
		if len(groups) > 0 {
			events.set(event, groups)
		}
	}
	if len(events) > 0 {
		r.req.set("hooks", events)
		r.req.set("features", object{{"hooks", true}})
	}
	if !h.ManagedOnly.V {
		return
	}
	r.standing(harness.Hooks, "hooks.managedOnly", "pin 0.131.0 or newer")
	if !r.Version.Less(hasHookLock) {
		r.req.set("allow_managed_hooks_only", true)
		r.req.set("features", object{{"hooks", true}})
	}
}

// providerName is the id of the gateway's provider.
const providerName = "halo"

// models renders the gateway and the model that new sessions start with. There is no list of allowed models.
func (r *renderer) models() {
	m := &r.p.Models
	start, field := m.Default, "models.default"
	if pin := r.p.Pin(policy.Codex); pin != nil && pin.Model.IsSet() {
		start, field = pin.Model, "harnesses.codex.model"
	}
	if start.IsSet() {
		name := start.V
		if real := r.Models[name]; real != "" {
			name = real
		}
		if r.Version.Less(hasIdentity) {
			r.conf.set("model", name)
		} else {
			r.req.set("models", object{{"new_thread", object{{"model", name}}}})
		}
		r.standing(harness.Models, field, "")
	}
	if len(m.Allowed.Items) > 0 {
		r.unsupported(harness.Models, "models.allowed", "limit the models at the gateway")
	}
	if m.Enforce.V {
		r.unsupported(harness.Models, "models.enforce", "limit the models at the gateway")
	}
	if r.GatewayURL == "" {
		return
	}
	into := &r.req
	if r.Version.Less(hasProvider) {
		into = &r.conf
		r.gap(harness.Models, harness.Default, "gateway.baseURL", "", "before 0.156.1 the provider is a default: a user may choose another one", "pin 0.156.1 or newer", config...)
	}
	into.set("model_provider", providerName)
	into.set("model_providers", object{{providerName, object{{"base_url", apiRoot(r.GatewayURL)}, {"name", r.Org + " gateway"}, {"wire_api", "responses"}}}})
}

// apiRoot is the gateway's address as this program wants it: it appends /responses, where the public API has /v1/responses.
func apiRoot(url string) string {
	url = strings.TrimSuffix(url, "/")
	if strings.HasSuffix(url, "/v1") {
		return url
	}
	return url + "/v1"
}

// telemetry renders the otel table. Each signal has an address of its own here, which is used as it is written.
func (r *renderer) telemetry() {
	t := &r.p.Telemetry
	if !t.Enabled.IsSet() && !t.OTLPEndpoint.IsSet() && !t.LogPrompts.IsSet() && len(t.Attributes) == 0 && !t.Protocol.IsSet() {
		return
	}
	var otel object
	switch {
	case t.Enabled.IsSet() && !t.Enabled.V:
		for _, signal := range signals {
			otel.set(signal.key, "none")
		}
	case t.OTLPEndpoint.IsSet() && t.Enabled.V:
		for _, signal := range signals {
			otel.set(signal.key, exporter(t, signal.path))
		}
	case t.Enabled.V:
		r.gap(harness.Telemetry, harness.None, "telemetry.enabled", "", "there is no telemetry without an address, so nothing is rendered", "set telemetry.otlpEndpoint")
	case t.OTLPEndpoint.IsSet():
		r.gap(harness.Telemetry, harness.None, "telemetry.otlpEndpoint", "", "an address switches telemetry on here, so it is not rendered until telemetry.enabled is true", "set telemetry.enabled")
	}
	if t.Protocol.IsSet() && !t.OTLPEndpoint.IsSet() {
		r.gap(harness.Telemetry, harness.None, "telemetry.protocol", "", "a protocol stands beside an address here, so it is not rendered", "set telemetry.otlpEndpoint")
	}
	if t.LogPrompts.IsSet() {
		otel.set("log_user_prompt", t.LogPrompts.V)
	}
	if len(t.Attributes) > 0 {
		r.unsupported(harness.Telemetry, "telemetry.attributes", "add attributes at the collector")
	}
	if len(otel) == 0 {
		return
	}
	r.standing(harness.Telemetry, "telemetry", "pin 0.166.0 or newer")
	if r.Version.Less(hasOtel) {
		r.conf.set("otel", otel)
		return
	}
	r.req.set("otel", otel)
}

var signals = [...]struct{ key, path string }{{"exporter", "/v1/logs"}, {"metrics_exporter", "/v1/metrics"}, {"trace_exporter", "/v1/traces"}}

func exporter(t *policy.Telemetry, path string) object {
	if t.Protocol.V == "grpc" {
		return object{{"otlp-grpc", object{{"endpoint", t.OTLPEndpoint.V}, {"headers", inline{}}}}}
	}
	return object{{"otlp-http", object{{"endpoint", strings.TrimSuffix(t.OTLPEndpoint.V, "/") + path}, {"headers", inline{}}, {"protocol", "binary"}}}}
}

// texts renders instructions and the environment of commands.
func (r *renderer) texts() {
	if text := r.p.Instructions.V; text != "" {
		r.standing(harness.Instructions, "instructions", "pin 0.156.1 or newer")
		if r.Version.Less(hasInstructions) {
			r.conf.set("developer_instructions", text)
		} else {
			r.req.set("additional_developer_instructions", text)
		}
	}
	if len(r.p.Env) > 0 {
		var set object
		for _, p := range r.p.Env {
			set.set(p.Key.V, p.Value.V)
		}
		r.conf.set("shell_environment_policy", object{{"set", set}})
		r.standing(harness.Env, "env", "")
	}
}

// pin says that no version is held, and merges the overrides, last.
func (r *renderer) pin() {
	pin := r.p.Pin(policy.Codex)
	if pin == nil {
		return
	}
	if pin.Version.IsSet() {
		r.unsupported(harness.VersionPin, "harnesses.codex.version", "enforce the version where the program is installed")
		if !r.Version.Less(hasIdentity) {
			r.req.set("check_for_update_on_startup", false)
		}
	}
	var bad []string
	taken := false
	for key, v := range pin.Overrides {
		x, ok := tree(v)
		if !ok || !overrideFits(key, x) {
			bad = append(bad, key)
			continue
		}
		r.conf.set(key, x)
		taken = true
	}
	if taken {
		r.standing(harness.Overrides, "harnesses.codex.overrides", "")
	}
	slices.Sort(bad)
	for _, key := range bad {
		r.gap(harness.Overrides, harness.None, "harnesses.codex.overrides."+key, "", "the value is not one that this setting takes, so it is not rendered", "")
	}
}

// overrideFits reports whether a value is one that its setting takes: a wrong one keeps the program from starting.
func overrideFits(key string, v any) bool {
	var words []string
	switch key {
	case "hide_agent_reasoning", "show_raw_agent_reasoning":
		_, ok := v.(bool)
		return ok
	case "tui":
		_, ok := v.(object)
		return ok
	case "model_reasoning_effort":
		words = []string{"minimal", "low", "medium", "high", "xhigh"}
	case "model_reasoning_summary":
		words = []string{"auto", "concise", "detailed", "none"}
	case "model_verbosity":
		words = []string{"low", "medium", "high"}
	case "file_opener":
		words = []string{"vscode", "vscode-insiders", "windsurf", "cursor", "none"}
	default:
		return false
	}
	s, ok := v.(string)
	return ok && slices.Contains(words, s)
}
