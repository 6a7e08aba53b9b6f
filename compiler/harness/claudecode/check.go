package claudecode

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/recheck"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// maxSize is the size that device management hands over: the plist form and the registry value are cut off there (read in the packages of 2.1.332).
const maxSize = 2 << 20

// shape is what a value of a settings file must look like.
type shape uint8

const (
	boolean shape = iota
	text
	number
	textList
	objectOf // members have keys of their own in the table
	textMap
	hookMap
	matcherList
	serverMap
)

// known is every key that is rendered, with its shape. The CLI ignores other keys without a word, so one that is not here is a mistake.
var known = [...]struct {
	path  string
	shape shape
}{
	{"allowManagedHooksOnly", boolean}, {"allowManagedMcpServersOnly", boolean}, {"allowedMcpServers", matcherList}, {"attribution", objectOf},
	{"attribution.commit", text}, {"attribution.pr", text}, {"attribution.sessionUrl", boolean}, {"availableModels", textList}, {"availableModelsMatch", text},
	{"cleanupPeriodDays", number}, {"companyAnnouncements", textList}, {"deniedMcpServers", matcherList}, {"enforceAvailableModels", boolean}, {"env", textMap},
	{"hooks", hookMap}, {"includeCoAuthoredBy", boolean}, {"language", text}, {"managedMcpServers", serverMap}, {"model", text}, {"outputStyle", text},
	{"permissions", objectOf}, {"permissions.allow", textList}, {"permissions.ask", textList}, {"permissions.defaultMode", text}, {"permissions.deny", textList},
	{"permissions.disableAutoMode", text}, {"permissions.disableBypassPermissionsMode", text}, {"prefersReducedMotion", boolean}, {"requiredMaximumVersion", text},
	{"requiredMinimumVersion", text}, {"respectGitignore", boolean}, {"sandbox", objectOf}, {"sandbox.allowUnsandboxedCommands", boolean}, {"sandbox.enabled", boolean},
	{"sandbox.failIfUnavailable", boolean}, {"sandbox.filesystem", objectOf}, {"sandbox.filesystem.allowManagedReadPathsOnly", boolean},
	{"sandbox.filesystem.allowWrite", textList}, {"sandbox.filesystem.denyRead", textList}, {"sandbox.filesystem.denyWrite", textList}, {"sandbox.network", objectOf},
	{"sandbox.network.allowManagedDomainsOnly", boolean}, {"sandbox.network.allowedDomains", textList}, {"sandbox.network.deniedDomains", textList},
	{"showTurnDuration", boolean}, {"spinnerTipsEnabled", boolean}, {"spinnerTipsOverride", objectOf}, {"spinnerTipsOverride.excludeDefault", boolean},
	{"spinnerTipsOverride.tips", textList}, {"spinnerVerbs", objectOf}, {"spinnerVerbs.mode", text}, {"spinnerVerbs.verbs", textList}, {"theme", text},
}

// words are the texts that a key takes, where they are a closed set.
func words(path string) []string {
	switch path {
	case "availableModelsMatch":
		return []string{"exact"}
	case "permissions.defaultMode":
		return policy.PermissionModes
	case "permissions.disableAutoMode", "permissions.disableBypassPermissionsMode":
		return []string{"disable"}
	case "spinnerVerbs.mode":
		return []string{"append", "replace"}
	}
	return nil
}

const unknown = "is not a key that halo renders: the program would ignore it, or it loosens what is rendered"

// fits reports whether a value has the shape of its key, and calls bad for every place that has not.
func fits(path string, v any, bad func(pointer, message string)) bool {
	ok := true
	report := func(pointer, message string) {
		ok = false
		if bad != nil {
			bad(pointer, message)
		}
	}
	pointer := pointer(path)
	i := slices.IndexFunc(known[:], func(k struct {
		path  string
		shape shape
	}) bool {
		return k.path == path
	})
	if i < 0 {
		report(pointer, unknown)
		return false
	}
	switch known[i].shape {
	case boolean:
		if _, is := v.(bool); !is {
			report(pointer, "is not true or false")
		}
	case number:
		if _, is := v.(json.Number); !is {
			report(pointer, "is not a number")
		}
	case text:
		s, is := v.(string)
		switch set := words(path); {
		case !is || s == "":
			report(pointer, "is not a text")
		case set != nil && !slices.Contains(set, s):
			report(pointer, "is "+strconv.Quote(s)+", which is none of "+strings.Join(set, ", "))
		}
	case textList:
		eachText(v, pointer, report)
	case textMap:
		eachMember(v, pointer, report, func(at string, _ string, v any) {
			if _, is := v.(string); !is {
				report(at, "is not a text")
			}
		})
	case hookMap:
		eachMember(v, pointer, report, func(at, event string, v any) { hookShape(at, event, v, report) })
	case matcherList:
		l, is := v.([]any)
		if !is {
			report(pointer, "is not a list")
		}
		for i, x := range l {
			matcherShape(pointer+"/"+strconv.Itoa(i), x, report)
		}
	case serverMap:
		eachMember(v, pointer, report, func(at, _ string, v any) { serverShape(at, v, report) })
	case objectOf:
		eachMember(v, pointer, report, func(at, key string, v any) {
			if strings.Contains(key, ".") {
				report(at, unknown)
			} else if !fits(path+"."+key, v, bad) {
				ok = false
			}
		})
		if o, is := v.(jsondoc.Object); is && path == "spinnerVerbs" {
			// Without its mode this key has voided the whole file (issue 59447 of anthropics/claude-code).
			for _, key := range []string{"mode", "verbs"} {
				if _, has := o.Get(key); !has {
					report(pointer, "has no "+key)
				}
			}
		}
	}
	return ok
}

func eachText(v any, pointer string, report func(pointer, message string)) {
	l, is := v.([]any)
	if !is {
		report(pointer, "is not a list")
	}
	for i, x := range l {
		if s, is := x.(string); !is || s == "" {
			report(pointer+"/"+strconv.Itoa(i), "is not a text")
		}
	}
}

func eachMember(v any, pointer string, report func(pointer, message string), visit func(pointer, key string, v any)) {
	o, is := v.(jsondoc.Object)
	if !is {
		report(pointer, "is not an object")
	}
	for _, m := range o {
		visit(jsondoc.Pointer(pointer, m.Key), m.Key, m.Value)
	}
}

// hookShape checks one event. An unknown event is dropped by the program, an unknown type keeps it from starting.
func hookShape(pointer, event string, v any, report func(pointer, message string)) {
	if !slices.Contains(policy.HookEvents, event) {
		report(pointer, "is no event that a hook of a policy can have")
	}
	groups, is := v.([]any)
	if !is || len(groups) == 0 {
		report(pointer, "is not a list of hooks")
	}
	for i, g := range groups {
		at := pointer + "/" + strconv.Itoa(i)
		o, is := g.(jsondoc.Object)
		if !is {
			report(at, "is not an object")
			continue
		}
		for _, m := range o {
			switch m.Key {
			case "matcher":
				if _, is := m.Value.(string); !is {
					report(at+"/matcher", "is not a text")
				}
			case "hooks":
			default:
				report(jsondoc.Pointer(at, m.Key), "is not a key of a hook group")
			}
		}
		inner, _ := o.Get("hooks")
		l, _ := inner.([]any)
		if len(l) == 0 {
			report(at+"/hooks", "is not a list of hooks")
		}
		for j, h := range l {
			c, _ := h.(jsondoc.Object)
			kind, _ := c.Get("type")
			command, _ := c.Get("command")
			if s, _ := command.(string); kind != "command" || s == "" || len(c) != 2 {
				report(at+"/hooks/"+strconv.Itoa(j), "is not a hook of type command with a command")
			}
		}
	}
}

// matcherShape checks an entry of a server list: exactly one matcher, or the program ignores the entry.
func matcherShape(pointer string, v any, report func(pointer, message string)) {
	o, is := v.(jsondoc.Object)
	if !is || len(o) != 1 {
		report(pointer, "is not an object with exactly one of serverName, serverCommand and serverUrl: the program ignores it")
		return
	}
	at := jsondoc.Pointer(pointer, o[0].Key)
	switch o[0].Key {
	case "serverName":
		if s, is := o[0].Value.(string); !is || !serverName(s) {
			report(at, "is not a server name of letters, digits, - and _")
		}
	case "serverCommand":
		if l, _ := o[0].Value.([]any); len(l) == 0 {
			report(at, "is not a command")
		}
		eachText(o[0].Value, at, report)
	case "serverUrl":
		switch s, is := o[0].Value.(string); {
		case !is || s == "":
			report(at, "is not a URL")
		case strings.Contains(s, "*"):
			report(at, "has a *, which matches any text")
		}
	default:
		report(at, "is none of serverName, serverCommand and serverUrl")
	}
}

func serverShape(pointer string, v any, report func(pointer, message string)) {
	o, is := v.(jsondoc.Object)
	if !is {
		report(pointer, "is not an object")
		return
	}
	kind, _ := o.Get("type")
	want := []string{"type", "url", "headers"}
	if kind == "stdio" {
		want = []string{"type", "command", "args"}
	} else if kind != "http" {
		report(pointer+"/type", "is neither http nor stdio")
	}
	for _, m := range o {
		at := jsondoc.Pointer(pointer, m.Key)
		if !slices.Contains(want, m.Key) {
			report(at, "is not a key of such a server")
			continue
		}
		switch m.Key {
		case "args":
			if _, is := m.Value.([]any); !is {
				report(at, "is not a list")
			}
		case "headers":
			eachMember(m.Value, at, report, func(at, _ string, v any) {
				if _, is := v.(string); !is {
					report(at, "is not a text")
				}
			})
		default:
			if s, is := m.Value.(string); !is || s == "" {
				report(at, "is not a text")
			}
		}
	}
	if _, has := o.Get(want[1]); !has {
		report(pointer, "has no "+want[1])
	}
}

// checker reads the files of one target.
type checker struct {
	harness.Target
	doc, servers  jsondoc.Object
	text          string
	dest, mcpDest string
	out           []harness.Finding
	hasMCP        bool
	// deny has the rules that the policy asks for, as they are looked for.
	deny map[string]bool
	// denied are the rules of the deny list; it is made when the first is looked for.
	denied map[string]bool
}

func (c *checker) bad(pointer, message string) {
	c.out = append(c.out, harness.Finding{Dest: c.dest, Pointer: pointer, Message: message})
}

func check(t harness.Target, files []harness.File) []harness.Finding {
	c := &checker{Target: t, deny: map[string]bool{}}
	c.dest = destination(t.OS, settingsName)
	c.mcpDest = destination(t.OS, serversName)
	settings := c.dest
	textDest := destination(t.OS, instructionsName)
	for _, f := range files {
		c.dest = f.Dest
		if f.Owner != harness.Owner(t.OS) || f.Mode != 0o644 {
			c.bad("", "has another owner or mode than it needs: others could change it, or the program cannot read it and starts without a policy")
		}
		if len(f.Content) > maxSize {
			c.bad("", "is larger than 2 MiB, which device management cuts off")
		}
		if f.Dest == textDest {
			if s := recheck.Secret(string(f.Content)); s != "" {
				c.bad("", s)
			}
			c.text = string(f.Content)
			continue
		}
		for _, bad := range recheck.Forbidden(string(f.Content)) {
			c.bad("", bad)
		}
		switch f.Dest {
		case settings, c.mcpDest:
		default:
			c.bad("", "is no file of this harness")
			continue
		}
		doc, err := jsondoc.Parse(f.Content, func(pointer string) { c.bad(pointer, "stands twice: the program takes the last one without a word") })
		if err != nil {
			c.bad("", err.Error())
			continue
		}
		if f.Dest == c.mcpDest {
			c.servers, c.hasMCP = doc, true
			for _, m := range doc {
				if m.Key != "mcpServers" {
					c.bad(jsondoc.Pointer("", m.Key), "is not a key of this file")
					continue
				}
				eachMember(m.Value, "/mcpServers", c.bad, func(at, _ string, v any) { serverShape(at, v, c.bad) })
			}
			continue
		}
		c.doc = doc
		for _, m := range doc {
			if strings.Contains(m.Key, ".") {
				c.bad(jsondoc.Pointer("", m.Key), unknown)
				continue
			}
			fits(m.Key, m.Value, c.bad)
		}
	}
	c.dest = settings
	c.locks()
	c.hosts()
	c.paths()
	c.rules()
	c.mcp()
	c.hooks()
	c.models()
	c.environment()
	c.rest()
	return c.out
}

// at returns what stands at a dotted path of the settings, nil when nothing does.
func (c *checker) at(path string) any { return c.doc.At(strings.Split(path, ".")...) }

// flag returns a boolean of the settings; absent is false.
func (c *checker) flag(path string) bool { return c.at(path) == true }

func (c *checker) has(path string) bool { return c.at(path) != nil }

// list returns a list of texts of the settings, sorted.
func (c *checker) list(path string) []string {
	return textsOf(c.at(path))
}

func textsOf(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, x := range l {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// want reports a key that does not have the only value that holds what the policy says.
func (c *checker) want(path string, value any, why string) {
	if c.at(path) != value {
		c.bad(pointer(path), why)
	}
}

// locks compares the switches without which a list or a mode is only advice.
func (c *checker) locks() {
	p, v := c.Policy, c.Version
	shell := p.Sandboxed() && c.OS != "windows"
	switch {
	case shell:
		c.want("sandbox.enabled", true, "is not true: the policy asks for a sandbox")
		c.want("sandbox.allowUnsandboxedCommands", false, "is not false: a command could ask to run outside the sandbox")
		if !v.Less(hasFailClosed) {
			c.want("sandbox.failIfUnavailable", true, "is not true: without a sandbox commands would run unconfined")
		}
	case c.has("sandbox"):
		c.bad("/sandbox", "is rendered where the policy or the operating system has no sandbox")
	}
	if p.Permissions.DisableBypass.V {
		c.want("permissions.disableBypassPermissionsMode", "disable", "is not \"disable\": permission prompts could be switched off")
	}
	if c.has("allowedMcpServers") && !c.flag("allowManagedMcpServersOnly") {
		c.bad("/allowedMcpServers", "stands without allowManagedMcpServersOnly: a user's own list would widen it")
	}
	if c.flag("allowManagedMcpServersOnly") && !c.has("allowedMcpServers") {
		c.bad("/allowManagedMcpServersOnly", "stands without allowedMcpServers and restricts nothing")
	}
	if c.has("sandbox.network.allowedDomains") && !c.flag("sandbox.network.allowManagedDomainsOnly") {
		c.bad("/sandbox/network/allowedDomains", "stands without allowManagedDomainsOnly: the list would only spare questions")
	}
	if c.has("sandbox.filesystem.denyRead") && !c.flag("sandbox.filesystem.allowManagedReadPathsOnly") && !v.Less(hasReadLock) {
		c.bad("/sandbox/filesystem/denyRead", "stands without allowManagedReadPathsOnly: a user's allowRead would open it again")
	}
	m := &p.Models
	if c.has("availableModels") {
		if len(c.list("availableModels")) == 0 {
			c.bad("/availableModels", "is empty, which means the vendor's default model")
		}
		if !c.flag("enforceAvailableModels") && !v.Less(hasModelLock) && (m.Enforce.V || !m.Enforce.IsSet()) {
			c.bad("/availableModels", "stands without enforceAvailableModels, so the default model stays free")
		}
	}
	if p.Hooks.ManagedOnly.V && !v.Less(hasManagedOnly) {
		c.want("allowManagedHooksOnly", true, "is not true: hooks of users and projects would run")
	}
	if p.MCP.ManagedOnly.V {
		if !c.hasMCP {
			c.out = append(c.out, harness.Finding{Dest: c.mcpDest, Message: "is missing: servers of the user would run"})
		}
		if !v.Less(hasManagedOnly) {
			c.want("allowManagedMcpServersOnly", true, "is not true: servers of the user would run should managed-mcp.json be missing")
		}
	} else if c.hasMCP {
		c.out = append(c.out, harness.Finding{Dest: c.mcpDest, Message: "is present, which shuts out every other server; the policy does not ask for that"})
	}
}

// hosts compares the host lists with what the policy decides.
func (c *checker) hosts() {
	p, v := c.Policy, c.Version
	open, _ := p.Hosts.Default()
	const network = "sandbox.network."
	for _, l := range []string{"allowedDomains", "deniedDomains"} {
		for _, s := range c.list(network + l) {
			if _, problem := host.ParseDenyPattern(s); problem != nil {
				c.bad("/sandbox/network/"+l, strconv.Quote(s)+" "+problem.Reason+"; the entry would not mean what the policy says")
			}
		}
	}
	wantAllowed, wantDenied := openable(c.Target), hosts(p.Hosts.Denied())
	if p.Sandboxed() && c.OS != "windows" {
		if got := c.list(network + "allowedDomains"); !open && p.EgressRules() && !v.Less(hasManagedLists) {
			c.want(network+"allowManagedDomainsOnly", true, "is not true: unlisted hosts would be asked about, and users could add some")
			if !c.has(network+"allowedDomains") || !slices.Equal(got, wantAllowed) {
				c.bad("/sandbox/network/allowedDomains", "is not the list of allowed hosts: "+recheck.Difference(got, wantAllowed))
			}
		} else if c.has(network+"allowedDomains") || c.has(network+"allowManagedDomainsOnly") {
			c.bad("/sandbox/network", "has a list of allowed hosts or its lock, which the policy does not ask for or this version does not hold")
		}
		sandboxDenied := wantDenied
		if v.Less(hasDenied) {
			sandboxDenied = nil
		}
		if got := c.list(network + "deniedDomains"); !slices.Equal(got, sandboxDenied) {
			c.bad("/sandbox/network/deniedDomains", "is not the list of denied hosts: "+recheck.Difference(got, sandboxDenied))
		}
	}
	for _, h := range wantDenied {
		c.denies("WebFetch(domain:"+h+")", "keeps the fetch tool from "+h)
	}
	if open {
		return
	}
	if len(wantAllowed) == 0 {
		c.denies("WebFetch", "keeps the fetch tool from every host although none is allowed")
	}
	for _, s := range c.list("permissions.allow") {
		r, problem := parseRule(s)
		if problem != "" || r.tool != "WebFetch" {
			continue
		}
		d, all, problem := r.domain()
		if _, covered := p.Hosts.AllowSet().Covers(d); !r.hasContent || all || problem == "" && !covered {
			c.bad("/permissions/allow", "has "+s+", which opens hosts that the policy does not allow")
		}
	}
}

// denies wants a rule in the deny list.
func (c *checker) denies(rule, purpose string) {
	if !c.deny[rule] {
		c.deny[rule] = true
		if c.denied == nil {
			c.denied = recheck.Set(c.list("permissions.deny"))
		}
		if !c.denied[rule] {
			c.bad("/permissions/deny", "has no "+rule+", which "+purpose)
		}
	}
}

// paths compares writable roots and protected paths.
func (c *checker) paths() {
	p := c.Policy
	const files = "sandbox.filesystem."
	for _, l := range []string{"allowWrite", "denyRead", "denyWrite"} {
		for _, s := range c.list(files + l) {
			if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~/") && s != "." || strings.ContainsAny(s, `\$`) {
				c.bad("/sandbox/filesystem/"+l, strconv.Quote(s)+" is a path in a form that matches nothing")
			}
			if l == "allowWrite" && strings.ContainsAny(s, "*?[") {
				c.bad("/sandbox/filesystem/"+l, strconv.Quote(s)+" is a glob, which grants nothing")
			}
			if l != "allowWrite" && (s == "/" || s == "~") {
				c.bad("/sandbox/filesystem/"+l, strconv.Quote(s)+" makes every command fail")
			}
		}
	}
	shell := p.Sandboxed() && c.OS != "windows" && !c.Version.Less(hasFilesystem)
	var roots []string
	for _, r := range p.Sandbox.WritableRoots.Items {
		roots = append(roots, fspath.Spellings(r.Path, c.OS)...)
	}
	slices.Sort(roots)
	if got := c.list(files + "allowWrite"); shell && !slices.Equal(got, slices.Compact(roots)) {
		c.bad("/sandbox/filesystem/allowWrite", "is not the list of writable roots: "+recheck.Difference(got, roots))
	}
	read, write := recheck.Set(c.list(files+"denyRead")), recheck.Set(c.list(files+"denyWrite"))
	for _, item := range p.Sandbox.ProtectedPaths.Items {
		if item.Path.Kind() == fspath.Absolute && c.OS == "windows" {
			continue
		}
		rules, dirs := pathRules(item.Path, c.OS)
		for _, s := range rules {
			c.denies(s, "holds the protected path "+item.Path.String())
		}
		for _, d := range dirs {
			if shell && (!read[d] || !write[d]) {
				c.bad("/sandbox/filesystem", "does not deny reading and writing of the protected path "+d)
			}
		}
	}
	if p.Sandboxed() && p.Mode() == policy.ModeReadOnly {
		for _, tool := range readOnlyTools {
			c.denies(tool, "keeps a tool from editing although the sandbox is read-only")
		}
		if shell && !write["."] {
			c.bad("/sandbox/filesystem/denyWrite", "does not hold the session folder although the sandbox is read-only")
		}
	}
}

// rules reads every permission rule as the program does, and compares them with those of the policy.
func (c *checker) rules() {
	open, _ := c.Policy.Hosts.Default()
	for _, l := range []string{"allow", "ask", "deny"} {
		for _, s := range c.list("permissions." + l) {
			r, problem := parseRule(s)
			if problem == "" && r.paths() {
				problem = deadPath(r.content)
				if problem == "" && r.tool != "Read" && r.tool != "Edit" {
					problem = "names a tool that is not asked about paths, so it never matches"
				}
			}
			if problem == "" && r.tool == "WebFetch" && r.hasContent {
				var all bool
				if _, all, problem = r.domain(); all && (l != "allow" || !open) {
					problem = "reaches every host, for commands too"
				}
			}
			if problem != "" {
				c.bad("/permissions/"+l, "the rule "+strconv.Quote(s)+" "+problem)
			}
		}
	}
	p := &c.Policy.Permissions
	for _, s := range p.Deny.Items {
		if x := restrictRule(s.V); x.reason == "" {
			c.denies(x.text, "the policy denies")
		}
	}
	ask := map[string]bool{}
	for _, s := range p.Ask.Items {
		if x := restrictRule(s.V); x.reason == "" {
			ask[x.text] = true
		}
	}
	allow := map[string]bool{}
	r := &renderer{Target: c.Target, p: c.Policy, shell: c.Policy.Sandboxed() && c.OS != "windows"}
	for _, s := range p.Allow.Items {
		if text, why := r.permit(s.V); why == "" {
			allow[text] = true
		}
	}
	for _, h := range openable(c.Target) {
		allow["WebFetch(domain:"+h+")"] = true
	}
	if said := c.Policy.EgressRules() || c.Policy.Egress.Default.IsSet(); said && open && !(r.shell && len(c.Policy.Hosts.Denied()) > 0 && c.Version.Less(hasDenied)) {
		allow["WebFetch(domain:*)"] = true
	}
	c.set("permissions.allow", allow)
	c.set("permissions.ask", ask)
	c.set("permissions.deny", c.deny)
	// A start mode other than auto locks auto out.
	var mode, lock any
	if m := p.Mode.V; m != "" && m != "bypassPermissions" {
		mode = m
		if m != "auto" && !c.Version.Less(hasAutoLock) {
			lock = "disable"
		}
	}
	c.same("permissions.defaultMode", mode)
	c.same("permissions.disableAutoMode", lock)
}

// set compares a list whose order has no meaning.
func (c *checker) set(path string, want map[string]bool) {
	if got, want := slices.Compact(c.list(path)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		c.bad(pointer(path), "is not what the policy asks for: "+recheck.Difference(got, want))
	}
}

// same compares a value with what the policy says; nil means that it says nothing.
func (c *checker) same(path string, want any) {
	switch got := c.at(path); {
	case want == nil && got != nil:
		c.bad(pointer(path), "is set, and the policy does not ask for it")
	case !jsondoc.Equal(got, want):
		c.bad(pointer(path), "is not what the policy says")
	}
}

func pointer(path string) string { return "/" + strings.ReplaceAll(path, ".", "/") }

// mcp compares the servers: those that are set up, and the lists that admit and deny them.
func (c *checker) mcp() {
	m := &c.Policy.MCP
	denied := map[string]bool{}
	var deny []any
	for _, s := range m.Denied.Items {
		if serverName(s.V) && !denied[s.V] {
			deny = append(deny, jsondoc.Object{{Key: "serverName", Value: s.V}})
		}
		denied[s.V] = true
	}
	servers := map[string]any{}
	var admit []any
	for i := range m.Servers {
		s := &m.Servers[i]
		switch {
		case denied[s.Name.V] || m.ManagedOnly.V && strings.Contains(s.URL.V, "*"), !m.ManagedOnly.V && (c.Version.Less(hasServers) || !s.URL.IsSet()):
			continue
		case s.URL.IsSet():
			admit = append(admit, jsondoc.Object{{Key: "serverUrl", Value: s.URL.V}})
		default:
			admit = append(admit, jsondoc.Object{{Key: "serverCommand", Value: texts(s.Command)}})
		}
		servers[s.Name.V] = serverObject(s).Sort()
	}
	var beside any
	if m.ManagedOnly.V {
		if got, _ := c.servers.Get("mcpServers"); c.hasMCP && !jsondoc.Equal(got, jsondoc.Sorted(servers)) {
			c.out = append(c.out, harness.Finding{Dest: c.mcpDest, Pointer: "/mcpServers", Message: "are not the servers that the policy names"})
		}
	} else if len(servers) > 0 {
		beside = jsondoc.Sorted(servers)
	}
	c.same("managedMcpServers", beside)
	if !m.ManagedOnly.V || c.Version.Less(hasManagedOnly) {
		admit = nil
		c.same("allowManagedMcpServersOnly", nil)
	}
	c.matchers("allowedMcpServers", admit)
	c.matchers("deniedMcpServers", deny)
}

// matchers compares a list of servers, whose order has no meaning.
func (c *checker) matchers(path string, want []any) {
	got, _ := c.at(path).([]any)
	within := func(l, in []any) bool {
		return !slices.ContainsFunc(l, func(x any) bool { return !slices.ContainsFunc(in, func(y any) bool { return jsondoc.Equal(x, y) }) })
	}
	if !within(got, want) || !within(want, got) {
		c.bad(pointer(path), "is not the list of servers that the policy names")
	}
}

// hooks compares the hooks, those of one event in their order.
func (c *checker) hooks() {
	events := map[string]any{}
	for _, h := range c.Policy.Hooks.Items {
		group := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": h.Command.V}}}
		if h.Matcher.V != "" {
			group["matcher"] = h.Matcher.V
		}
		groups, _ := events[h.Event.V].([]any)
		events[h.Event.V] = append(groups, group)
	}
	var want any
	if len(events) > 0 {
		want = jsondoc.Sorted(events)
	}
	c.same("hooks", want)
}

// models compares the list of models and the one that a session starts with.
func (c *checker) models() {
	m := &c.Policy.Models
	name := func(alias string) string { return cmp.Or(c.Models[alias], alias) }
	var start any
	if pin := c.Policy.Pin(policy.ClaudeCode); pin != nil && pin.Model.IsSet() {
		start = name(pin.Model.V)
	} else if m.Default.IsSet() {
		start = name(m.Default.V)
	}
	c.same("model", start)
	want := map[string]bool{}
	for _, s := range m.Allowed.Items {
		want[name(s.V)] = true
	}
	c.set("availableModels", want)
	var match any
	if len(want) > 0 && !c.Version.Less(hasExactModels) {
		match = "exact"
	}
	c.same("availableModelsMatch", match)
}

// environment compares every variable.
func (c *checker) environment() {
	p := c.Policy
	want := map[string]string{}
	for _, e := range p.Env {
		want[e.Key.V] = e.Value.V
	}
	set := func(on bool, key, value string) {
		if on {
			want[key] = value
		}
	}
	t := &p.Telemetry
	digit := func(on bool) string { return map[bool]string{false: "0", true: "1"}[on] }
	set(c.GatewayURL != "", "ANTHROPIC_BASE_URL", apiRoot(c.GatewayURL))
	set(t.Enabled.IsSet(), "CLAUDE_CODE_ENABLE_TELEMETRY", digit(t.Enabled.V))
	set(t.Enabled.V, "OTEL_METRICS_EXPORTER", "otlp")
	set(t.Enabled.V, "OTEL_LOGS_EXPORTER", "otlp")
	set(t.OTLPEndpoint.IsSet(), "OTEL_EXPORTER_OTLP_ENDPOINT", t.OTLPEndpoint.V)
	set(protocol(t) != "", "OTEL_EXPORTER_OTLP_PROTOCOL", protocol(t))
	set(t.LogPrompts.IsSet(), "OTEL_LOG_USER_PROMPTS", digit(t.LogPrompts.V))
	set(len(t.Attributes) > 0, "OTEL_RESOURCE_ATTRIBUTES", attributes(t.Attributes))
	set(p.Instructions.V != "", "CLAUDE_CODE_DISABLE_CLAUDE_MDS", "0")
	v, _ := c.doc.Get("env")
	vars, _ := v.(jsondoc.Object)
	for _, m := range vars {
		if _, ok := want[m.Key]; !ok {
			c.bad(jsondoc.Pointer("/env", m.Key), "is set, and the policy does not ask for it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, _ := vars.Get(key); got != want[key] {
			c.bad(jsondoc.Pointer("/env", key), "is not what the policy says")
		}
	}
}

// rest compares the instructions, the version bounds, which the program ignores without a word unless they are three numbers, and the raw keys.
func (c *checker) rest() {
	if text := c.Policy.Instructions.V; text != "" && strings.TrimSuffix(c.text, "\n") != strings.TrimSuffix(text, "\n") {
		c.out = append(c.out, harness.Finding{Dest: destination(c.OS, instructionsName), Message: "is not the policy's instructions"})
	}
	pin := c.Policy.Pin(policy.ClaudeCode)
	var bound any
	if pin != nil && pin.Version.IsSet() && !c.Version.Less(hasVersionPin) && !strings.Contains(pin.Version.V, "-") {
		bound = pin.Version.V
	}
	for _, key := range []string{"requiredMinimumVersion", "requiredMaximumVersion"} {
		v := c.at(key)
		s, _ := v.(string)
		if _, fine := harness.ParseVersion(s); v != nil && (!fine || strings.Contains(s, "-")) {
			c.bad("/"+key, "is "+strconv.Quote(s)+", which is no version of three numbers and would be ignored")
		} else if !jsondoc.Equal(v, bound) {
			c.bad("/"+key, "is not the pinned version")
		}
	}
	for _, key := range overrides {
		var want any
		if pin != nil && pin.Overrides[key] != nil {
			if want = jsondoc.Of(pin.Overrides[key]); !fits(key, want, nil) {
				want = nil
			}
		}
		c.same(key, want)
	}
}
