package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
)

// noCounterpart are the keys of the program that a profile has no field for, with the reason. Keys and meanings as of 0.171.0.
var noCounterpart = []draft.Reason{
	{Pointer: "/allow_login_shell", Text: "a profile has no field for login shells"},
	{Pointer: "/allowed_approvals_reviewers", Text: "a profile has no field for who reviews approvals"},
	{Pointer: "/allowed_chatgpt_workspaces", Text: "a profile has no field for logins and providers"},
	{Pointer: "/allowed_login_methods", Text: "a profile has no field for logins and providers"},
	{Pointer: "/allowed_models", Text: "the program ignores this key"},
	{Pointer: "/allowed_permissions", Text: "the program ignores this key; allowed_permission_profiles is what it reads"},
	{Pointer: "/approval_policy", Text: "a start value that flags and users change has no field in a profile; permissions.disableBypass locks the values"},
	{Pointer: "/chatgpt_base_url", Text: "a profile has no field for logins and providers"},
	{Pointer: "/cli_auth_credentials_store", Text: "a profile has no field for logins and providers"},
	{Pointer: "/enforce_residency", Text: "a profile has no field for where the vendor keeps data"},
	{Pointer: "/experimental_network", Text: "the setting loosens the network rules, or a profile has no field for it"},
	{Pointer: "/network_proxy", Text: "the setting loosens the network rules, or a profile has no field for it"},
	{Pointer: "/features", Text: "a profile pins no feature flags"},
	{Pointer: "/feature_requirements", Text: "a profile pins no feature flags"},
	{Pointer: "/feedback", Text: "a profile has no field for feedback"},
	{Pointer: "/hooks", Text: "a profile has hooks that run a command at one of its events only"},
	{Pointer: "/log_dir", Text: "a profile has no field for logs"},
	{Pointer: "/marketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/minimum_version", Text: "the program ignores this key"},
	{Pointer: "/model_catalog_json", Text: "a profile has no field for a catalogue of models"},
	{Pointer: "/model_providers", Text: "of providers a profile has the gateway's address only"},
	{Pointer: "/models", Text: "a profile has a default model only"},
	{Pointer: "/otel", Text: "halo sends telemetry by OTLP to one endpoint only"},
	{Pointer: "/permissions", Text: "a profile has one sandbox: its mode, writable roots and protected paths"},
	{Pointer: "/plugins", Text: "a profile has no field for plugins"},
	{Pointer: "/remote_sandbox_config", Text: "a profile is the same on every machine of a ring"},
	{Pointer: "/sandbox_workspace_write", Text: "a profile has no field for it"},
	{Pointer: "/shell_environment_policy", Text: "a profile sets variables and has no field for which are inherited"},
	{Pointer: "/windows", Text: "a profile has no field for sandbox kinds of Windows"},
	{Pointer: "/writable_roots", Text: "the program ignores this key; sandbox_workspace_write.writable_roots is what it reads"},
}

// adopter reads the files of a draft: the requirements, and the defaults of config.toml with those of managed_config.toml on top.
type adopter struct {
	*draft.Draft
	req, conf *draft.Node
}

func importFiles(d *draft.Draft) error {
	a := &adopter{Draft: d}
	d.Reasons(noCounterpart)
	var config, managed *draft.Node
	for _, f := range d.Files {
		n, err := draft.TOML(f.Name, f.Data)
		if err != nil {
			return fmt.Errorf("%s: %w, and the program refuses to start on it", f.Name, err)
		}
		d.Roots = append(d.Roots, n)
		into := &config
		switch f.Base() {
		case requirementsName:
			into = &a.req
		case "managed_config.toml":
			into = &managed
			if d.OS == "windows" {
				a.Warn("the program no longer reads this file on Windows", n)
			}
		default:
			if n.Get("allowed_sandbox_modes") != nil || n.Get("experimental_network") != nil || n.Get("allowed_permission_profiles") != nil || n.Get("allowed_approval_policies") != nil {
				into = &a.req
			}
		}
		if *into != nil {
			return fmt.Errorf("%s: there is one file of its kind, and this is the second", f.Name)
		}
		*into = n
	}
	for _, key := range [...]string{"approval_policy", "sandbox_mode"} {
		if n := managed.Get(key); n != nil && a.req != nil {
			a.Warn("in managed_config.toml this key outranks requirements.toml", n)
		}
	}
	a.conf = draft.Merge(slices.DeleteFunc([]*draft.Node{config, managed}, func(n *draft.Node) bool { return n == nil }), func(string) bool { return true })
	if a.req == nil && a.conf == nil {
		return errors.New("there is neither a requirements.toml nor a config.toml")
	}
	a.sandbox()
	a.network()
	a.approvals()
	a.rules()
	a.mcp()
	a.hooks()
	a.models()
	a.telemetry()
	for _, n := range [...]*draft.Node{a.req.Get("additional_developer_instructions"), a.conf.Get("developer_instructions")} {
		if s, ok := n.Text(); ok {
			a.Set(draft.Instructions, s, "", n)
		}
	}
	for _, n := range a.conf.At("shell_environment_policy", "set").Members() {
		a.Variable(n)
	}
	if n := a.req.Get("check_for_update_on_startup"); n.Is(false) {
		a.Keep("halo writes it with a pinned version", n)
	}
	for _, key := range overrides {
		key = strings.TrimSuffix(key, ".*")
		n := a.conf.Get(key)
		if n == nil {
			continue
		}
		if x, ok := tree(raw(n)); !ok || !overrideFits(key, x) {
			a.Drop("the value is not one that this setting takes", n)
			continue
		}
		a.Override(key, n)
	}
	return nil
}

// raw turns a node into the values that overrides have.
func raw(n *draft.Node) any {
	switch n.Kind {
	case draft.Object:
		m := map[string]any{}
		for _, k := range n.Members() {
			m[k.Key] = raw(k)
		}
		return m
	case draft.List:
		l := []any{}
		for _, k := range n.Kids {
			l = append(l, raw(k))
		}
		return l
	}
	if num, ok := n.Value.(json.Number); ok {
		if i, err := num.Int64(); err == nil {
			return i
		}
		f, _ := num.Float64()
		return f
	}
	return n.Value
}

// chain returns the profile of a name and those it extends, and the mode they come to.
func (a *adopter) chain(name string) (profiles []*draft.Node, mode string) {
	for range draft.MaxDepth {
		switch name {
		case ":workspace":
			return profiles, policy.ModeWorkspaceWrite
		case ":read-only":
			return profiles, policy.ModeReadOnly
		}
		n := a.req.At("permissions", name)
		if n == nil || slices.Contains(profiles, n) {
			return profiles, ""
		}
		profiles = append(profiles, n)
		next, ok := n.Get("extends").Text()
		if !ok {
			return profiles, ""
		}
		name = next
	}
	return profiles, ""
}

// sandbox reads the managed profile, or the modes and defaults of older files.
func (a *adopter) sandbox() {
	start, allowed := a.req.Get("default_permissions"), a.req.Get("allowed_permission_profiles")
	name, _ := start.Text()
	if allowed != nil && name == "" {
		name = ":workspace"
	}
	profiles, mode := a.chain(name)
	if allowed != nil {
		if short := strings.TrimPrefix(name, profilePrefix); policy.ValidName(short) {
			a.Name = short
		}
		if mode == "" {
			mode = policy.ModeReadOnly
		}
		nodes := []*draft.Node{}
		if start != nil {
			nodes = append(nodes, start)
		}
		for _, n := range allowed.Members() {
			switch {
			case n.Key == name && n.Is(true):
				nodes = append(nodes, n)
			case n.Is(true):
				a.Drop("a profile has one sandbox, so no other can be chosen", n)
			default:
				a.Keep("the profile is not allowed", n)
			}
		}
		for _, p := range profiles {
			if n := p.Get("extends"); n != nil {
				nodes = append(nodes, n)
			}
		}
		a.Set(draft.Sandbox, mode, "", nodes...)
	}
	for _, p := range slices.Backward(profiles) {
		a.rooms(p.Get("filesystem"))
	}
	a.modes(allowed != nil)
	for _, n := range a.req.At("permissions", "filesystem", "deny_read").Items() {
		a.denyRead(n)
	}
	if n := a.conf.At("sandbox_workspace_write", "writable_roots"); n != nil {
		for _, r := range n.Items() {
			if s, ok := r.Text(); ok && allowed == nil {
				a.Root(s, r)
			} else {
				a.Drop("with allowed_permission_profiles the program ignores it", r)
			}
		}
	}
}

// modes reads allowed_sandbox_modes and the sandbox_mode of the defaults.
func (a *adopter) modes(profiled bool) {
	list := a.req.Get("allowed_sandbox_modes")
	words, _ := list.Texts()
	if profiled {
		if list != nil {
			if a.Has(draft.Sandbox, policy.ModeWorkspaceWrite) && !slices.Contains(words, policy.ModeWorkspaceWrite) {
				a.Set(draft.Sandbox, policy.ModeReadOnly, "the modes allow no writing", list)
			}
			a.Keep("halo writes the modes that fit the sandbox", list)
		}
	} else if list != nil {
		mode := policy.ModeReadOnly
		if len(words) == 0 || slices.Contains(words, policy.ModeWorkspaceWrite) || slices.Contains(words, "danger-full-access") {
			mode = policy.ModeWorkspaceWrite
		}
		for _, n := range list.Items() {
			if n.Is("danger-full-access") || n.Is("external-sandbox") {
				a.Drop("the mode switches the sandbox off and is never part of a release", n)
			}
		}
		a.Set(draft.Sandbox, mode, "", list)
		a.Warn("the modes bound neither roots nor network: a user's own permission profile opens both", list)
	}
	n := a.conf.Get("sandbox_mode")
	if n == nil {
		return
	}
	switch {
	case list != nil || profiled:
		a.Drop("it is a default beside requirements that decide", n)
	case n.Is(policy.ModeReadOnly), n.Is(policy.ModeWorkspaceWrite):
		s, _ := n.Text()
		a.Set(draft.Sandbox, s, "", n)
		a.Warn("it is a default that users change", n)
	case n.Is("danger-full-access"):
		a.Drop("the value switches the protection off and is never part of a release", n)
	}
}

// rooms reads the filesystem table of a profile.
func (a *adopter) rooms(table *draft.Node) {
	denied := func(n *draft.Node) bool { return n.Is("deny") || n.Is("none") }
	for _, n := range table.Members() {
		switch {
		case n.Key == "glob_scan_max_depth":
			a.Keep("halo writes the depth it scans", n)
		case n.Key == ":workspace_roots":
			for _, k := range n.Members() {
				reason := ""
				if !strings.HasPrefix(k.Key, "**/") {
					reason = "at any depth"
				}
				if denied(k) {
					a.ProtectAs(strings.TrimPrefix(draft.Folder(k.Key), "**/"), reason, k)
				}
			}
			if len(n.Kids) == 0 {
				a.Keep("there is nothing in it", n)
			}
		case strings.HasPrefix(n.Key, ":"):
		case denied(n):
			a.Protect(n.Key, n)
		case n.Is("write"):
			a.Root(strings.TrimSuffix(n.Key, "/**"), n)
		case n.Is("read"):
			a.Keep("commands read what is not protected", n)
		}
	}
}

// denyRead reads what no profile may read. What may be written nevertheless is a rule.
func (a *adopter) denyRead(n *draft.Node) {
	s, ok := n.Text()
	switch {
	case !ok:
		a.Drop("the entry is not a text", n)
		return
	case strings.HasPrefix(s, "$HOME/"):
		a.Warn("variables are not expanded, so the entry protects nothing; the profile has ~/", n)
		s = "~" + s[len("$HOME"):]
	case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~"):
		a.Warn("a relative entry names a place beside the file and protects nothing; the profile protects it in workspaces", n)
		a.Protect(strings.TrimPrefix(s, "**/"), n)
		return
	}
	path := draft.Folder(s)
	if a.Protected(path) {
		a.Protect(path, n)
		return
	}
	if strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	a.Put(draft.Deny, "Read("+path+")", "", n)
}

// network reads the hosts that commands reach.
func (a *adopter) network() {
	var net *draft.Node
	for _, n := range [...]*draft.Node{a.req.Get("experimental_network"), a.req.Get("network_proxy"), a.req.At("permissions", "network")} {
		if n != nil && net == nil {
			net = n
		}
	}
	start, _ := a.req.Get("default_permissions").Text()
	profiles, _ := a.chain(start)
	var opens, everywhere *draft.Node
	var own []*draft.Node
	for _, p := range profiles {
		if n := p.At("network", "enabled"); n.Is(true) && opens == nil {
			opens = n
		}
		for _, n := range p.At("network", "domains").Members() {
			if n.Key == "*" && n.Is("allow") {
				everywhere = n
			} else {
				own = append(own, n)
			}
		}
	}
	enabled, lock := net.Get("enabled"), net.Get("managed_allowed_domains_only")
	active := enabled.Is(true)
	if net != nil && !active {
		for _, key := range [...]string{"domains", "allowed_domains", "denied_domains", "managed_allowed_domains_only"} {
			if n := net.Get(key); n != nil {
				a.Warn("without enabled = true the network table has no effect", n)
			}
		}
	}
	domains := net.Get("domains").Members()
	var allow, deny []*draft.Node
	for _, n := range domains {
		if n.Is("allow") {
			allow = append(allow, n)
		} else if n.Is("deny") {
			deny = append(deny, n)
		}
	}
	allow, deny = append(allow, net.Get("allowed_domains").Items()...), append(deny, net.Get("denied_domains").Items()...)
	for _, n := range own {
		switch {
		case n.Is("deny"):
			deny = append(deny, n)
		case lock.Is(true):
			a.Drop("managed_allowed_domains_only keeps the hosts of a profile out", n)
		case n.Is("allow"):
			allow = append(allow, n)
		}
	}
	switch {
	case opens != nil && (net == nil || everywhere != nil && !lock.Is(true)):
		nodes := []*draft.Node{opens}
		if everywhere != nil {
			nodes = append(nodes, everywhere)
		}
		a.Set(draft.Default, "allow", "", nodes...)
		if net == nil && len(deny) > 0 {
			a.Warn("without an active proxy the host rules of a profile do nothing", deny[0])
		}
	case opens == nil && net == nil && a.conf.At("sandbox_workspace_write", "network_access").Is(true) && a.req.Get("allowed_permission_profiles") == nil:
		n := a.conf.At("sandbox_workspace_write", "network_access")
		a.Set(draft.Default, "allow", "", n)
	case net != nil:
		a.Set(draft.Default, "deny", "", net.Get("enabled"))
		if !lock.Is(true) {
			for _, n := range allow {
				a.Warn("without managed_allowed_domains_only a user's own profile adds hosts", n)
				break
			}
		}
	case a.req.Get("allowed_permission_profiles") != nil:
		a.Add(draft.Default, "deny", "commands have no network in the input; halo says so as a default, and switches the hosted web search off with it")
	}
	if opens != nil {
		a.Keep("the network of the profile is bound by the network table", opens)
	}
	if lock.Is(true) {
		a.Map(draft.Default, "", lock)
	}
	if enabled != nil {
		a.Map(draft.Default, "", enabled)
	}
	for _, n := range deny {
		a.host(n, a.DenyLive)
	}
	for _, n := range allow {
		a.host(n, func(h string, n *draft.Node) { a.AllowHost(h, n) })
	}
	a.search()
}

// host reads one pattern: the key of the domains table, or a text of the older lists.
func (a *adopter) host(n *draft.Node, add func(string, *draft.Node)) {
	s := n.Key
	if s == "" {
		var ok bool
		if s, ok = n.Text(); !ok {
			a.Drop("the entry is not a text", n)
			return
		}
	}
	s = strings.TrimSpace(s)
	if name, port, ok := strings.Cut(s, ":"); ok && port != "" && strings.Trim(port, "0123456789") == "" {
		s = name
	}
	s = strings.TrimSuffix(s, ".")
	if rest, ok := strings.CutPrefix(s, "**."); ok {
		add(rest, n)
		s = "*." + rest
	}
	add(s, n)
}

// search reads the modes of the hosted web search, which no host list binds.
func (a *adopter) search() {
	n := a.req.Get("allowed_web_search_modes")
	words, ok := n.Texts()
	switch {
	case n == nil:
	case ok && len(slices.DeleteFunc(words, func(s string) bool { return s == "disabled" })) == 0:
		if a.Has(draft.Allowed, "") || a.Has(draft.Denied, "") || a.Has(draft.Default, "deny") {
			a.Keep("halo writes it with the rules for hosts", n)
		} else {
			a.Put(draft.Deny, "WebSearch", "", n)
		}
	default:
		a.Drop("a profile has no field for modes of the web search; with rules for hosts halo switches it off", n)
	}
}

func (a *adopter) approvals() {
	n := a.req.Get("allowed_approval_policies")
	if n == nil {
		return
	}
	words, ok := n.Texts()
	switch {
	case slices.Contains(words, "never"):
		for _, k := range n.Items() {
			if k.Is("never") {
				a.Drop("the value switches questions off; halo builds no ring without the bypass lock", k)
			}
		}
		a.Map(draft.Bypass, "halo writes on-request and untrusted", n)
	case !ok || len(words) != 2 || words[0] != "on-request" || words[1] != "untrusted":
		a.Set(draft.Bypass, "true", "halo writes on-request and untrusted", n)
	default:
		a.Set(draft.Bypass, "true", "", n)
	}
}

// maxRules bounds what one rule with alternatives becomes.
const maxRules = 32

// rules reads prefix rules: what a command begins with.
func (a *adopter) rules() {
	for _, n := range a.req.At("rules", "prefix_rules").Items() {
		field, decision := "", n.Get("decision")
		switch {
		case decision.Is("forbidden"):
			field = draft.Deny
		case decision.Is("prompt"), decision.Is("prompt-user"):
			field = draft.Ask
		default:
			a.Drop("a profile has rules that deny and that ask only", n)
			continue
		}
		prefixes := []string{""}
		for _, t := range n.Get("pattern").Items() {
			var words []string
			if s, ok := t.Get("token").Text(); ok {
				words = []string{s}
			} else if s, ok := t.Text(); ok {
				words = []string{s}
			} else {
				words, _ = t.Get("any_of").Texts()
			}
			var next []string
			for _, p := range prefixes {
				for _, w := range words {
					next = append(next, strings.TrimSpace(p+" "+w))
				}
			}
			prefixes = next
			if len(prefixes) > maxRules {
				prefixes = nil
			}
		}
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return prefix(p+":*") == nil }) {
			a.Drop("the words of the rule have no form in a profile", n)
			continue
		}
		said, _ := n.Get("justification").Text()
		for _, p := range prefixes {
			text := "Bash(" + p + ":*)"
			if said == field+" Bash("+p+" *)" {
				text = "Bash(" + p + " *)"
			}
			a.Put(field, text, "", n)
		}
	}
}

// mcp reads the closed list of servers and the definitions of servers.
func (a *adopter) mcp() {
	closed := a.req.Get("mcp_servers")
	if closed != nil {
		a.Put(draft.ManagedOnly, "true", "")
		if len(closed.Kids) == 0 {
			a.Map(draft.ManagedOnly, "", closed)
		}
	}
	for _, def := range a.conf.Get("mcp_servers").Members() {
		if closed != nil && closed.Get(def.Key) == nil {
			a.Drop("requirements.toml does not admit the server", def)
			continue
		}
		a.server(def, closed.Get(def.Key))
	}
	for _, n := range closed.Members() {
		if !a.Said(n) {
			a.identity(n)
		}
	}
}

// server reads a definition, and the identity by which it is admitted.
func (a *adopter) server(def, admitted *draft.Node) {
	s := draft.Server{Name: def.Key}
	var nodes []*draft.Node
	for _, key := range [...]string{"command", "args", "url"} {
		if n := def.Get(key); n != nil {
			nodes = append(nodes, n)
		}
	}
	if url, ok := def.Get("url").Text(); ok {
		s.URL = url
	} else if command, ok := def.Get("command").Text(); ok {
		args, _ := def.Get("args").Texts()
		s.Command = append([]string{command}, args...)
	}
	if def.Get("enabled").Is(false) {
		a.Drop("the server is switched off", def)
		return
	}
	if admitted != nil && !admits(admitted.Get("identity"), s) {
		a.Drop("the identity in requirements.toml is not the server that config.toml defines", def, admitted)
		return
	}
	for _, n := range def.Get("http_headers").Members() {
		if v, ok := n.Text(); ok && s.URL != "" && a.Public(n.Key, v, n) && a.Fit(v, n) {
			s.Headers = append(s.Headers, [2]string{n.Key, v})
			a.Map(draft.MCPServers, "", n)
		}
	}
	variable := func(n *draft.Node, header, before string) {
		v, ok := n.Text()
		if ok && s.URL != "" && v != "" && strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" && a.Fit(v, n) {
			s.Headers = append(s.Headers, [2]string{header, before + "${" + v + "}"})
			a.Map(draft.MCPServers, "", n)
		}
	}
	for _, n := range def.Get("env_http_headers").Members() {
		variable(n, n.Key, "")
	}
	variable(def.Get("bearer_token_env_var"), "Authorization", "Bearer ")
	if admitted != nil {
		nodes = append(nodes, admitted)
	}
	if len(nodes) == 0 {
		nodes = append(nodes, def)
	}
	if a.AddServer(s, nodes...) {
		a.Drop("a profile has no field for it in a server", def)
	} else {
		a.Drop("its server was not taken", def)
	}
}

// admits reports whether an identity is that of a server.
func admits(id *draft.Node, s draft.Server) bool {
	if s.URL != "" {
		return id.Get("url").Is(s.URL) || id.At("url", "match").Is("exact") && id.At("url", "value").Is(s.URL)
	}
	command := id.Get("command")
	if len(s.Command) == 0 {
		return false
	}
	if command.Is(s.Command[0]) {
		return true
	}
	args := command.Get("args").Items()
	if !command.Get("executable").Is(s.Command[0]) || len(args) != len(s.Command)-1 {
		return false
	}
	for i, n := range args {
		v, ok := n.Get("value").Text()
		if !ok || n.Get("match").Is("exact") && v != s.Command[i+1] || n.Get("match").Is("prefix") && !strings.HasPrefix(s.Command[i+1], v) {
			return false
		}
	}
	return true
}

// identity reads a server that requirements.toml admits and nothing defines.
func (a *adopter) identity(n *draft.Node) {
	id := n.Get("identity")
	s := draft.Server{Name: n.Key}
	if url, ok := id.Get("url").Text(); ok {
		s.URL = url
	} else if url, ok := id.At("url", "value").Text(); ok && id.At("url", "match").Is("exact") {
		s.URL = url
	} else if exe, ok := id.At("command", "executable").Text(); ok {
		s.Command = []string{exe}
		for _, arg := range id.At("command", "args").Items() {
			v, ok := arg.Get("value").Text()
			if !ok || !arg.Get("match").Is("exact") {
				a.Drop("a profile admits a server by its whole command", n)
				return
			}
			s.Command = append(s.Command, v)
		}
	} else {
		a.Drop("a profile admits a server by its whole command or its whole URL", n)
		return
	}
	a.AddServer(s, n)
}

func (a *adopter) hooks() {
	lock := a.req.Get("allow_managed_hooks_only")
	if lock.Is(true) {
		a.Set(draft.HooksOnly, "true", "", lock)
	} else if lock != nil {
		a.Keep("the lock is off", lock)
	}
	for _, ev := range a.req.Get("hooks").Members() {
		if !slices.Contains(policy.HookEvents, ev.Key) {
			continue
		}
		for _, group := range ev.Items() {
			matcher, _ := group.Get("matcher").Text()
			taken := false
			for _, h := range group.Get("hooks").Items() {
				command, ok := h.Get("command").Text()
				if !ok || !h.Get("type").Is("command") {
					continue
				}
				if a.AddHook(draft.Hook{Event: ev.Key, Matcher: matcher, Command: command}, h.Get("command"), h.Get("type")) {
					taken = true
					a.Drop("a profile has no field for it in a hook", h)
				}
			}
			if n := group.Get("matcher"); taken && n != nil {
				a.Map(draft.HookItems, "", n)
			}
		}
	}
	for _, key := range [...]string{"features", "feature_requirements"} {
		if n := a.req.At(key, "hooks"); n.Is(true) && (len(a.Hooks) > 0 || lock.Is(true)) {
			a.Keep("halo writes it with hooks", n)
		}
	}
}

func (a *adopter) models() {
	for _, n := range [...]*draft.Node{a.req.At("models", "new_thread", "model"), a.conf.Get("model")} {
		if s, ok := n.Text(); ok {
			a.Set(draft.Model, s, "", n)
		}
	}
	for _, doc := range [...]*draft.Node{a.req, a.conf} {
		chosen := doc.Get("model_provider")
		name, ok := chosen.Text()
		def := doc.At("model_providers", name)
		url, hasURL := def.Get("base_url").Text()
		switch {
		case !ok:
			continue
		case !hasURL || a.Gateway.Text != "":
			a.Drop("a profile has the address of a gateway, and the provider has none of its own", chosen)
			continue
		}
		a.SetGateway(strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1"), def.Get("base_url"))
		if a.Gateway.Text == "" {
			continue
		}
		a.Keep("halo writes a provider of its own name for the gateway", chosen)
		for _, key := range [...]string{"name", "wire_api"} {
			if n := def.Get(key); n != nil && (key == "name" || n.Is("responses")) {
				a.Keep("halo writes a provider of its own name for the gateway", n)
			}
		}
	}
}

// telemetry reads the exporters, one for each signal.
func (a *adopter) telemetry() {
	otel := a.req.Get("otel")
	if otel == nil {
		otel = a.conf.Get("otel")
	}
	for _, signal := range signals {
		n := otel.Get(signal.key)
		if n.Is("none") {
			if !a.Has(draft.Telemetry, "true") {
				a.Set(draft.Telemetry, "false", "", n)
			}
			continue
		}
		for _, kind := range [...]string{"otlp-http", "otlp-grpc"} {
			e := n.Get(kind)
			url, ok := e.Get("endpoint").Text()
			if !ok || kind == "otlp-http" && !e.Get("protocol").Is("binary") {
				continue
			}
			protocol := "grpc"
			if kind == "otlp-http" {
				url, protocol = strings.TrimSuffix(url, signal.path), "http/protobuf"
			}
			if was := a.Values(draft.Endpoint); len(was) > 0 && was[0] != url {
				a.Drop("a profile has one endpoint for all signals", e)
				continue
			}
			if !a.SetURL(draft.Endpoint, url, e.Get("endpoint"), "https", "http") {
				continue
			}
			a.Put(draft.Telemetry, "true", "")
			if p := e.Get("protocol"); p != nil {
				a.Put(draft.Protocol, protocol, "", p)
			} else {
				a.Put(draft.Protocol, protocol, "")
			}
			if h := e.Get("headers"); h != nil && len(h.Kids) == 0 {
				a.Keep("there is nothing in it", h)
			} else if h != nil {
				a.Hide("a header of telemetry", h)
			}
		}
	}
	if n := otel.Get("log_user_prompt"); n.Is(true) || n.Is(false) {
		a.Set(draft.LogPrompts, n.Compact(), "", n)
	}
}
