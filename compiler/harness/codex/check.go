package codex

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/recheck"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// maxSize bounds a rendered file. The program has no limit of its own; a file beyond this is a mistake.
const maxSize = 2 << 20

// shape is what a value must look like.
type shape uint8

const (
	boolean shape = iota
	text
	variable // a text that may be empty
	number
	textList
	command // an MCP command identity
	rules   // prefix rules
	hooks   // the hook groups of one event
	none    // an exporter: a table, or the word none
	subtree // anything below
	empty   // a table that may be empty
)

// knownKey is a key that is rendered: its path, where * stands for any one key, its shape, and the first version that knows it.
type knownKey struct {
	path  string
	shape shape
	since harness.Version
}

// requirementKeys are the keys of requirements.toml. The program warns about some unknown keys and drops others without a word.
var requirementKeys = [...]knownKey{
	{"additional_developer_instructions", text, hasInstructions},
	{"allow_managed_hooks_only", boolean, hasHookLock},
	{"allowed_approval_policies", textList, hasRequirements},
	{"allowed_permission_profiles/*", boolean, hasProfiles},
	{"allowed_sandbox_modes", textList, hasRequirements},
	{"allowed_web_search_modes", textList, hasNetwork},
	{"check_for_update_on_startup", boolean, hasIdentity},
	{"default_permissions", text, hasProfiles},
	{"experimental_network/allowed_domains", textList, hasNetwork},
	{"experimental_network/denied_domains", textList, hasNetwork},
	{"experimental_network/domains/*", text, hasDomains},
	{"experimental_network/enabled", boolean, hasNetwork},
	{"experimental_network/managed_allowed_domains_only", boolean, hasNetworkLock},
	{"features/hooks", boolean, hasHooks},
	{"hooks/*", hooks, hasHooks},
	{"mcp_servers", empty, hasMCP},
	{"mcp_servers/*/identity/command", command, hasIdentity},
	{"mcp_servers/*/identity/url", text, hasMCP},
	{"model_provider", text, hasProvider},
	{"model_providers/*/base_url", text, hasProvider},
	{"model_providers/*/name", text, hasProvider},
	{"model_providers/*/wire_api", text, hasProvider},
	{"models/new_thread/model", text, hasIdentity},
	{"otel/exporter", none, hasOtel},
	{"otel/log_user_prompt", boolean, hasOtel},
	{"otel/metrics_exporter", none, hasOtel},
	{"otel/trace_exporter", none, hasOtel},
	{"permissions/*/extends", text, hasProfiles},
	{"permissions/*/filesystem/:workspace_roots", empty, hasProfiles},
	{"permissions/*/filesystem/:workspace_roots/*", text, hasProfiles},
	{"permissions/*/filesystem/glob_scan_max_depth", number, hasProfiles},
	{"permissions/*/filesystem/*", text, hasProfiles},
	{"permissions/*/network/domains/*", text, hasProfiles},
	{"permissions/*/network/enabled", boolean, hasProfiles},
	{"permissions/filesystem/deny_read", textList, hasDenyRead},
	{"rules/prefix_rules", rules, hasRules},
}

// configKeys are the keys of config.toml.
var configKeys = [...]knownKey{
	{"developer_instructions", text, harness.Version{}},
	{"file_opener", text, harness.Version{}},
	{"hide_agent_reasoning", boolean, harness.Version{}},
	{"mcp_servers/*/args", textList, harness.Version{}},
	{"mcp_servers/*/bearer_token_env_var", text, harness.Version{}},
	{"mcp_servers/*/command", text, harness.Version{}},
	{"mcp_servers/*/env_http_headers/*", text, harness.Version{}},
	{"mcp_servers/*/http_headers/*", text, harness.Version{}},
	{"mcp_servers/*/url", text, harness.Version{}},
	{"model", text, harness.Version{}},
	{"model_provider", text, harness.Version{}},
	{"model_providers/*/base_url", text, harness.Version{}},
	{"model_providers/*/name", text, harness.Version{}},
	{"model_providers/*/wire_api", text, harness.Version{}},
	{"model_reasoning_effort", text, harness.Version{}},
	{"model_reasoning_summary", text, harness.Version{}},
	{"model_verbosity", text, harness.Version{}},
	{"otel/exporter", none, harness.Version{}},
	{"otel/log_user_prompt", boolean, harness.Version{}},
	{"otel/metrics_exporter", none, harness.Version{}},
	{"otel/trace_exporter", none, harness.Version{}},
	{"sandbox_mode", text, harness.Version{}},
	{"sandbox_workspace_write/writable_roots", textList, harness.Version{}},
	{"shell_environment_policy/set/*", variable, harness.Version{}},
	{"show_raw_agent_reasoning", boolean, harness.Version{}},
	{"tui", subtree, harness.Version{}},
}

// words are the texts that a key takes, where they are a closed set.
func words(path []string) []string {
	switch {
	case path[0] == "allowed_approval_policies":
		return []string{"on-request", "untrusted"}
	case path[0] == "allowed_sandbox_modes":
		return []string{policy.ModeReadOnly, policy.ModeWorkspaceWrite}
	case path[0] == "allowed_web_search_modes":
		return []string{"disabled"}
	case path[0] == "sandbox_mode":
		return []string{policy.ModeWorkspaceWrite}
	case len(path) == 3 && path[0] == "experimental_network":
		return []string{"allow", "deny"}
	case path[0] == "permissions" && path[len(path)-1] == "extends":
		return []string{":read-only", ":workspace"}
	case len(path) == 5 && path[3] == "domains":
		return []string{"allow"}
	case path[0] == "permissions" && len(path) == 5:
		return []string{"deny"}
	case path[0] == "permissions" && len(path) == 4 && path[2] == "filesystem":
		return []string{"deny", "write"}
	case path[0] == "model_providers" && path[len(path)-1] == "wire_api":
		return []string{"responses"}
	}
	return nil
}

// match reports whether a path is that of a key.
func (k *knownKey) match(path []string) bool {
	rest := k.path
	for i, p := range path {
		want, more, ok := strings.Cut(rest, "/")
		if want != "*" && want != p {
			return false
		}
		if !ok {
			return i == len(path)-1
		}
		rest = more
	}
	return false
}

// checker reads the files of one target.
type checker struct {
	harness.Target
	dest, reqDest, confDest string
	req, conf               map[string]any
	out                     []harness.Finding
}

func (c *checker) bad(pointer, message string) {
	c.out = append(c.out, harness.Finding{Dest: c.dest, Pointer: pointer, Message: message})
}

func check(t harness.Target, files []harness.File) []harness.Finding {
	c := &checker{Target: t}
	c.reqDest = destination(t.OS, requirementsName)
	c.confDest = destination(t.OS, configName)
	for _, f := range files {
		c.dest = f.Dest
		if f.Mode&^0o644 != 0 {
			c.bad("", "has a mode beyond 0644")
		}
		if len(f.Content) > maxSize {
			c.bad("", "is larger than 2 MiB")
		}
		for _, bad := range recheck.Forbidden(string(f.Content)) {
			c.bad("", bad)
		}
		if f.Dest != c.reqDest && f.Dest != c.confDest {
			c.bad("", "is no file of this harness that halo writes")
			continue
		}
		doc, err := parse(f.Content)
		if err != nil {
			message := err.Error()
			if d, ok := errors.AsType[*toml.DecodeError](err); ok {
				line, column := d.Position()
				message += " (line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + ")"
			}
			c.bad("", "is not TOML: "+message)
			continue
		}
		if f.Dest == c.reqDest {
			c.req = doc
			c.walk(doc, nil, requirementKeys[:])
		} else {
			c.conf = doc
			c.walk(doc, nil, configKeys[:])
		}
	}
	c.dest = c.reqDest
	c.sandbox()
	c.paths()
	c.hosts()
	c.servers()
	c.hookLists()
	c.rest()
	slices.SortStableFunc(c.out, func(a, b harness.Finding) int {
		return strings.Compare(a.Dest+"\x00"+a.Pointer, b.Dest+"\x00"+b.Pointer)
	})
	return c.out
}

// walk holds every key against the table of its file.
func (c *checker) walk(t map[string]any, at []string, keys []knownKey) {
	for name, v := range t {
		path := append(slices.Clip(at), name)
		i := slices.IndexFunc(keys, func(k knownKey) bool { return k.match(path) })
		table, isTable := v.(map[string]any)
		if i >= 0 && keys[i].since != (harness.Version{}) && c.Version.Less(keys[i].since) {
			c.bad(pointer(path), "is not known to "+c.Version.String()+": it came with "+keys[i].since.String())
		}
		switch {
		case i >= 0 && keys[i].shape == empty && isTable, i < 0 && isTable && len(table) > 0:
			c.walk(table, path, keys)
		case i >= 0:
			c.value(path, v, keys[i].shape)
		default:
			c.bad(pointer(path), "is not a key that halo renders: the program would ignore it, or it loosens what is rendered")
		}
	}
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func (c *checker) value(path []string, v any, want shape) {
	at := pointer(path)
	set := words(path)
	word := func(at string, v any) {
		s, ok := v.(string)
		switch {
		case !ok || s == "":
			c.bad(at, "is not a text")
		case set != nil && !slices.Contains(set, s):
			c.bad(at, "is "+strconv.Quote(s)+", which is none of "+strings.Join(set, ", "))
		}
	}
	switch want {
	case boolean:
		if _, ok := v.(bool); !ok {
			c.bad(at, "is not true or false")
		}
	case number:
		if n, ok := v.(int64); !ok || n < 1 {
			c.bad(at, "is not a number of folders")
		}
	case text:
		word(at, v)
	case variable:
		if _, ok := v.(string); !ok {
			c.bad(at, "is not a text")
		}
	case textList:
		l, ok := v.([]any)
		if !ok {
			c.bad(at, "is not a list")
		}
		if ok && len(l) == 0 && path[0] != "mcp_servers" {
			c.bad(at, "is an empty list, which counts as unset or keeps the program from starting")
		}
		for i, x := range l {
			word(at+"/"+strconv.Itoa(i), x)
		}
	case command:
		t, _ := v.(map[string]any)
		args, ok := t["args"].([]any)
		if s, _ := t["executable"].(string); s == "" || !ok || len(t) != 2 {
			c.bad(at, "is not an executable with its arguments: in any other form the arguments are not compared")
		}
		for i, x := range args {
			a, _ := x.(map[string]any)
			if _, ok := a["value"].(string); !ok || a["match"] != "exact" || len(a) != 2 {
				c.bad(at+"/args/"+strconv.Itoa(i), "is not an exact argument")
			}
		}
	case rules:
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			c.bad(at, "is not a list of rules")
		}
		for i, x := range l {
			r, _ := x.(map[string]any)
			c.rule(at+"/"+strconv.Itoa(i), r)
		}
	case hooks:
		c.hook(at, path[len(path)-1], v)
	case none:
		c.exporter(at, v)
	case subtree:
		if _, ok := v.(map[string]any); !ok {
			c.bad(at, "is not a table")
		}
	case empty:
		c.bad(at, "is not a table")
	}
}

func (c *checker) rule(at string, r map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains([]string{"decision", "justification", "pattern"}, k) {
			c.bad(at+"/"+k, "is not a key of a rule")
		}
	}
	if d := r["decision"]; d != "forbidden" && d != "prompt" {
		c.bad(at+"/decision", "is neither forbidden nor prompt")
	}
	l, _ := r["pattern"].([]any)
	if len(l) == 0 {
		c.bad(at+"/pattern", "is empty, which is every command or none")
	}
	for i, x := range l {
		w, _ := x.(map[string]any)
		if s, _ := w["token"].(string); s == "" || len(w) != 1 {
			c.bad(at+"/pattern/"+strconv.Itoa(i), "is not a token")
		}
	}
}

// hook checks one event. A misspelt event or field is dropped without a word.
func (c *checker) hook(at, event string, v any) {
	if !slices.Contains(policy.HookEvents, event) {
		c.bad(at, "is no event that a hook of a policy can have")
	}
	groups, ok := v.([]any)
	if !ok || len(groups) == 0 {
		c.bad(at, "is not a list of hooks")
	}
	for i, g := range groups {
		here := at + "/" + strconv.Itoa(i)
		t, _ := g.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(t)) {
			text, _ := t[k].(string)
			if m, ok := hookMatcher(event, text); k != "hooks" && (k != "matcher" || !ok || m == "") {
				c.bad(here+"/"+k, "is not a key of a hook group, or names a tool that does not exist here")
			}
		}
		l, _ := t["hooks"].([]any)
		if len(l) == 0 {
			c.bad(here+"/hooks", "is not a list of hooks")
		}
		for j, x := range l {
			h, _ := x.(map[string]any)
			if s, _ := h["command"].(string); s == "" || h["type"] != "command" || len(h) != 2 {
				c.bad(here+"/hooks/"+strconv.Itoa(j), "is not a hook of type command with a command")
			}
		}
	}
}

// exporter checks where a signal goes. A misspelt field is dropped without a word.
func (c *checker) exporter(at string, v any) {
	if v == "none" {
		return
	}
	t, _ := v.(map[string]any)
	fields := []string{"endpoint", "headers"}
	kind := "otlp-grpc"
	if _, ok := t["otlp-http"]; ok {
		kind, fields = "otlp-http", []string{"endpoint", "headers", "protocol"}
	}
	inner, _ := t[kind].(map[string]any)
	s, _ := inner["endpoint"].(string)
	if _, isTable := inner["headers"].(map[string]any); len(t) != 1 || s == "" || !isTable || !slices.Equal(slices.Sorted(maps.Keys(inner)), fields) {
		c.bad(at, "is not none, otlp-grpc with endpoint and headers, or otlp-http with endpoint, headers and protocol")
	} else if p, ok := inner["protocol"]; ok && p != "binary" {
		c.bad(at+"/otlp-http/protocol", "is not binary")
	}
}

// lookup follows a path of tables.
func lookup(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		if v, ok = m[p]; !ok {
			return nil
		}
	}
	return v
}

func textsOf(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, x := range l {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// sandbox compares the profile, the modes and the approval policies.
func (c *checker) sandbox() {
	p := c.Policy
	if c.Version.Less(hasRequirements) {
		return
	}
	if p.Permissions.DisableBypass.V && len(textsOf(c.req["allowed_approval_policies"])) == 0 {
		c.bad("/allowed_approval_policies", "is missing: approvals could be switched off")
	}
	if !p.Sandboxed() {
		if c.req["default_permissions"] != nil || c.req["allowed_sandbox_modes"] != nil {
			c.bad("/allowed_sandbox_modes", "is rendered although the policy has no sandbox")
		}
		return
	}
	readOnly := p.Mode() == policy.ModeReadOnly
	modes := textsOf(c.req["allowed_sandbox_modes"])
	if !slices.Contains(modes, policy.ModeReadOnly) {
		c.bad("/allowed_sandbox_modes", "does not hold read-only: the program does not start")
	}
	if slices.Contains(modes, policy.ModeWorkspaceWrite) == readOnly {
		c.bad("/allowed_sandbox_modes", "does not fit the mode "+p.Mode())
	}
	if c.Version.Less(hasProfiles) {
		return
	}
	name := profilePrefix + p.Profile
	allowed, _ := c.req["allowed_permission_profiles"].(map[string]any)
	if len(allowed) != 1 || allowed[name] != true {
		c.bad("/allowed_permission_profiles", "is not just the profile "+name+": any other could be chosen by a user")
	}
	if c.req["default_permissions"] != name {
		c.bad("/default_permissions", "is not "+name)
	}
	want := ":workspace"
	if readOnly {
		want = ":read-only"
	}
	if lookup(c.req, "permissions", name, "extends") != want {
		c.bad("/permissions/"+name+"/extends", "is not "+want)
	}
	for other := range lookupTable(c.req, "permissions") {
		if other != name && other != "filesystem" {
			c.bad("/permissions/"+other, "is a profile of another name, or a second spelling of the network table")
		}
	}
}

func lookupTable(t map[string]any, path ...string) map[string]any {
	m, _ := lookup(t, path...).(map[string]any)
	return m
}

// paths compares writable roots and protected paths, and refuses forms that protect nothing or stop the program.
func (c *checker) paths() {
	p := c.Policy
	for i, s := range textsOf(lookup(c.req, "permissions", "filesystem", "deny_read")) {
		c.path("/permissions/filesystem/deny_read/"+strconv.Itoa(i), s)
	}
	name := profilePrefix + p.Profile
	rooms := lookupTable(c.req, "permissions", name, "filesystem")
	at := "/permissions/" + name + "/filesystem"
	globs := false
	for _, s := range slices.Sorted(maps.Keys(rooms)) {
		if s == "glob_scan_max_depth" || s == ":workspace_roots" {
			continue
		}
		c.path(pointer([]string{"permissions", name, "filesystem", s}), s)
		if strings.ContainsAny(s, "*?[") {
			globs = true
			if rooms[s] != "deny" {
				c.bad(at, strconv.Quote(s)+" is a pattern, which only a deny entry may be")
			}
		}
	}
	relative, _ := rooms[":workspace_roots"].(map[string]any)
	for _, s := range slices.Sorted(maps.Keys(relative)) {
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.ContainsAny(s, `\$%{}`) {
			c.bad(at+"/:workspace_roots", strconv.Quote(s)+" is no pattern relative to a workspace root")
		} else if !strings.HasPrefix(s, "**/") {
			c.bad(at+"/:workspace_roots", strconv.Quote(s)+" covers the root folder only")
		}
	}
	if (globs || len(relative) > 0) && rooms["glob_scan_max_depth"] == nil {
		c.bad(at+"/glob_scan_max_depth", "is missing: the scan for patterns has no end, and every session warns")
	}
	if !p.Sandboxed() {
		return
	}
	read := recheck.Set(textsOf(lookup(c.req, "permissions", "filesystem", "deny_read")))
	for _, item := range p.Sandbox.ProtectedPaths.Items {
		path := item.Path
		if rootGlob(path) || path.Kind() == fspath.Absolute && c.OS == "windows" {
			continue
		}
		for _, s := range protectedForms(path, c.OS) {
			switch {
			case path.Kind() == fspath.Relative:
				if !c.Version.Less(hasProfiles) && relative[s] != "deny" {
					c.bad(at+"/:workspace_roots", "does not deny "+s+" for the protected path "+path.String())
				}
				continue
			case !c.Version.Less(hasProfiles) && rooms[s] != "deny":
				c.bad(at, "does not deny "+s+" for the protected path "+path.String())
			}
			if !c.Version.Less(hasDenyRead) && !read[s] {
				c.bad("/permissions/filesystem/deny_read", "has no "+s+" for the protected path "+path.String())
			}
		}
	}
	if c.Version.Less(hasProfiles) {
		c.legacyRoots()
		return
	}
	roots := map[string]bool{}
	for _, item := range p.Sandbox.WritableRoots.Items {
		if item.Path.Kind() == fspath.Absolute && c.OS == "windows" {
			continue
		}
		for _, s := range fspath.Spellings(item.Path, c.OS) {
			roots[s] = true
			if rooms[s] != "write" {
				c.bad(at, "does not grant the writable root "+s)
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(rooms)) {
		if rooms[s] == "write" && !roots[s] {
			c.bad(at, "makes "+s+" writable, which the policy does not")
		}
	}
}

// legacyRoots compares the writable roots of config.toml.
func (c *checker) legacyRoots() {
	got := recheck.Set(textsOf(lookup(c.conf, "sandbox_workspace_write", "writable_roots")))
	for _, item := range c.Policy.Sandbox.WritableRoots.Items {
		if item.Path.Kind() == fspath.Absolute && c.OS == "windows" {
			continue
		}
		for _, s := range fspath.Spellings(item.Path, c.OS) {
			if !got[s] || c.conf["sandbox_mode"] != policy.ModeWorkspaceWrite {
				c.inConfig("/sandbox_workspace_write/writable_roots", "does not grant the writable root "+s+" in the mode "+policy.ModeWorkspaceWrite)
			}
			delete(got, s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(got)) {
		c.inConfig("/sandbox_workspace_write/writable_roots", "makes "+s+" writable, which the policy does not")
	}
}

// path refuses the forms of an absolute or home path that protect nothing or keep the program from starting.
func (c *checker) path(at, s string) {
	first, _, _ := strings.Cut(strings.TrimPrefix(s, "/"), "/")
	switch {
	case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~/"):
		c.bad(at, strconv.Quote(s)+" is neither absolute nor below ~/: it protects nothing or keeps the program from starting")
	case strings.HasPrefix(s, "/") && c.OS == "windows":
		c.bad(at, strconv.Quote(s)+" is no absolute path on Windows")
	case strings.HasPrefix(s, "/") && (first == "" || strings.ContainsAny(first, "*?[")):
		c.bad(at, strconv.Quote(s)+" has a pattern in the first folder below /, or is / itself: no session would start")
	case strings.ContainsAny(s, `\$%{}`):
		c.bad(at, strconv.Quote(s)+" has a variable, a backslash or braces, which match nothing")
	}
}

// hosts compares the network table with what the policy decides.
func (c *checker) hosts() {
	p, v := c.Policy, c.Version
	network := lookupTable(c.req, "experimental_network")
	domains, _ := network["domains"].(map[string]any)
	if domains != nil && (network["allowed_domains"] != nil || network["denied_domains"] != nil) {
		c.bad("/experimental_network", "has the domains table and the flat lists: only one spelling may stand")
	}
	if network != nil && network["enabled"] != true {
		c.bad("/experimental_network/enabled", "is not true: the table has no effect")
	}
	allowed, denied := textsOf(network["allowed_domains"]), textsOf(network["denied_domains"])
	for _, h := range slices.Sorted(maps.Keys(domains)) {
		switch domains[h] {
		case "allow":
			allowed = append(allowed, h)
		case "deny":
			denied = append(denied, h)
		}
	}
	slices.Sort(allowed)
	slices.Sort(denied)
	for _, l := range [][]string{allowed, denied} {
		for _, h := range l {
			if _, problem := host.ParseDenyPattern(h); problem != nil {
				c.bad("/experimental_network", strconv.Quote(h)+" "+problem.Reason+"; the entry stops every session or matches nothing")
			}
		}
	}
	if !p.EgressRules() || v.Less(hasNetwork) {
		return
	}
	open, _ := p.Hosts.Default()
	if network == nil {
		c.bad("/experimental_network", "is missing: a user could open the network")
	}
	if !open && !v.Less(hasNetworkLock) && network["managed_allowed_domains_only"] != true {
		c.bad("/experimental_network/managed_allowed_domains_only", "is not true: a user could add hosts")
	}
	wantDenied := hosts(p.Hosts.Denied())
	if !slices.Equal(denied, wantDenied) {
		c.bad("/experimental_network", "is not the list of denied hosts: "+recheck.Difference(denied, wantDenied))
	}
	isDenied := recheck.Set(wantDenied)
	wantAllowed := slices.DeleteFunc(hosts(p.Hosts.Allowed()), func(h string) bool { return isDenied[h] })
	if !slices.Equal(allowed, wantAllowed) {
		c.bad("/experimental_network", "is not the list of allowed hosts: "+recheck.Difference(allowed, wantAllowed))
	}
	if !slices.Equal(textsOf(c.req["allowed_web_search_modes"]), []string{"disabled"}) {
		c.bad("/allowed_web_search_modes", "does not switch the hosted web search off, which no host list binds")
	}
	name := profilePrefix + p.Profile
	opened := lookup(c.req, "permissions", name, "network") != nil
	if !open && opened {
		c.bad("/permissions/"+name+"/network", "opens the network although unlisted hosts are denied")
	}
	if open && !v.Less(hasProfiles) && (lookup(c.req, "permissions", name, "network", "enabled") != true || lookup(c.req, "permissions", name, "network", "domains", "*") != "allow") {
		c.bad("/permissions/"+name+"/network", "does not open the hosts on no list, which the policy allows")
	}
	if open && opened && network["enabled"] != true {
		c.bad("/permissions/"+name+"/network", "opens the network without the proxy that holds denied hosts")
	}
}

// inConfig reports a finding in config.toml.
func (c *checker) inConfig(pointer, message string) {
	c.out = append(c.out, harness.Finding{Dest: c.confDest, Pointer: pointer, Message: message})
}

// differs reports a value at a path of a document that is not the one wanted.
func (c *checker) differs(since harness.Version, want any, path ...string) {
	doc, dest := c.req, c.reqDest
	if c.Version.Less(since) {
		doc, dest = c.conf, c.confDest
	}
	if lookup(doc, path...) != want {
		c.out = append(c.out, harness.Finding{Dest: dest, Pointer: pointer(path), Message: fmt.Sprintf("is not %v, which the policy asks for", want)})
	}
}

// servers compares the closed list of servers and their definitions.
func (c *checker) servers() {
	m, v := &c.Policy.MCP, c.Version
	closed, listed := c.req["mcp_servers"].(map[string]any)
	installed := lookupTable(c.conf, "mcp_servers")
	if m.ManagedOnly.V && !v.Less(hasMCP) && !listed {
		c.bad("/mcp_servers", "is missing: servers of the user would run")
	}
	wanted := map[string]*policy.Server{}
	for i := range m.Servers {
		s := &m.Servers[i]
		if !slices.ContainsFunc(m.Denied.Items, func(d source.Str) bool { return d.V == s.Name.V }) && (s.URL.IsSet() || len(s.Command.Items) > 0) {
			wanted[s.Name.V] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(closed)) {
		s, _ := closed[name].(map[string]any)
		identity, _ := s["identity"].(map[string]any)
		if len(s) != 1 || len(identity) != 1 {
			c.bad("/mcp_servers/"+name, "has no identity of just a command or a URL: the program does not start, or compares less")
		}
		if want := wanted[name]; want == nil {
			c.bad("/mcp_servers/"+name, "is a server that the policy does not name")
		} else if !identifies(identity, want) {
			c.bad("/mcp_servers/"+name+"/identity", "is not that of the policy's server")
		}
		if installed[name] == nil {
			c.inConfig("/mcp_servers/"+name, "is missing: the server is permitted and not installed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(installed)) {
		def, _ := installed[name].(map[string]any)
		if want := wanted[name]; want == nil {
			c.inConfig("/mcp_servers/"+name, "is a server that the policy does not name")
		} else if !defines(def, want) {
			c.inConfig("/mcp_servers/"+name, "is another server than the policy's")
		}
	}
	for name, s := range wanted {
		// A command is left out where its arguments could not be compared.
		if installed[name] == nil && !(m.ManagedOnly.V && !s.URL.IsSet() && v.Less(hasIdentity)) {
			c.inConfig("/mcp_servers/"+name, "is missing: the policy's server is not installed")
		}
	}
}

// identifies reports whether an identity is that of a server.
func identifies(id map[string]any, s *policy.Server) bool {
	if s.URL.IsSet() {
		return id["url"] == s.URL.V
	}
	args, _ := lookup(id, "command", "args").([]any)
	argv := texts(s.Command)
	return lookup(id, "command", "executable") == argv[0] && slices.EqualFunc(args, argv[1:], func(x any, want string) bool {
		a, _ := x.(map[string]any)
		return a["value"] == want
	})
}

// defines reports whether a definition is that of a server.
func defines(def map[string]any, s *policy.Server) bool {
	if !s.URL.IsSet() {
		argv := texts(s.Command)
		return def["command"] == argv[0] && slices.Equal(textsOf(def["args"]), argv[1:])
	}
	for _, h := range s.Headers {
		name, variable := reference(h.Value.V)
		token, bearer := strings.CutPrefix(h.Value.V, "Bearer ")
		token, isToken := reference(token)
		switch {
		case variable && lookup(def, "env_http_headers", h.Key.V) != name, !strings.Contains(h.Value.V, "${") && lookup(def, "http_headers", h.Key.V) != h.Value.V,
			bearer && isToken && strings.EqualFold(h.Key.V, "Authorization") && def["bearer_token_env_var"] != token:
			return false
		}
	}
	return def["url"] == s.URL.V
}

// hookLists compares the commands of every event, which run in their order.
func (c *checker) hookLists() {
	h, v := &c.Policy.Hooks, c.Version
	if h.ManagedOnly.V && !v.Less(hasHookLock) && (c.req["allow_managed_hooks_only"] != true || lookup(c.req, "features", "hooks") != true) {
		c.bad("/allow_managed_hooks_only", "is not true beside features.hooks: hooks of users would run, or none")
	}
	if c.req["hooks"] != nil && lookup(c.req, "features", "hooks") != true {
		c.bad("/features/hooks", "is not true: a user could switch the hooks off")
	}
	for _, event := range policy.HookEvents {
		var want, got []string
		for _, k := range h.Items {
			if m, ok := hookMatcher(event, k.Matcher.V); ok && k.Event.V == event && !v.Less(hasHooks) {
				want = append(want, m+"\x00"+k.Command.V)
			}
		}
		groups, _ := lookup(c.req, "hooks", event).([]any)
		for _, g := range groups {
			matcher, _ := lookup(g, "matcher").(string)
			list, _ := lookup(g, "hooks").([]any)
			for _, x := range list {
				command, _ := lookup(x, "command").(string)
				got = append(got, matcher+"\x00"+command)
			}
		}
		if !slices.Equal(got, want) {
			c.bad("/hooks/"+event, "does not run the policy's hooks, and no others, in their order")
		}
	}
}

// rest compares the gateway, the model, telemetry, instructions, variables, overrides and rules.
func (c *checker) rest() {
	p, v := c.Policy, c.Version
	pin := p.Pin(policy.Codex)
	set := lookupTable(c.conf, "shell_environment_policy", "set")
	for _, e := range p.Env {
		if set[e.Key.V] != e.Value.V {
			c.inConfig("/shell_environment_policy/set/"+e.Key.V, "is not what the policy says: "+e.Value.V)
		}
	}
	if len(set) > len(p.Env) {
		c.inConfig("/shell_environment_policy/set", "sets variables that the policy does not")
	}
	if c.GatewayURL != "" {
		doc := c.req
		if v.Less(hasProvider) {
			doc = c.conf
		}
		if doc["model_provider"] != providerName || lookup(doc, "model_providers", providerName, "base_url") != apiRoot(c.GatewayURL) || lookup(doc, "model_providers", providerName, "wire_api") != "responses" {
			c.bad("/model_provider", "does not point at the gateway")
		}
	}
	model := p.Models.Default.V
	if pin != nil && pin.Model.IsSet() {
		model = pin.Model.V
	}
	if model = cmp.Or(c.Models[model], model); model != "" && v.Less(hasIdentity) {
		c.differs(hasIdentity, model, "model")
	} else if model != "" {
		c.differs(hasIdentity, model, "models", "new_thread", "model")
	}
	if pin != nil && pin.Version.IsSet() && !v.Less(hasIdentity) {
		c.differs(hasIdentity, false, "check_for_update_on_startup")
	}
	t := &p.Telemetry
	if t.LogPrompts.IsSet() {
		c.differs(hasOtel, t.LogPrompts.V, "otel", "log_user_prompt")
	}
	for _, signal := range signals {
		switch {
		case t.Enabled.IsSet() && !t.Enabled.V:
			c.differs(hasOtel, "none", "otel", signal.key)
		case t.Enabled.V && t.OTLPEndpoint.IsSet() && t.Protocol.V == "grpc":
			c.differs(hasOtel, t.OTLPEndpoint.V, "otel", signal.key, "otlp-grpc", "endpoint")
		case t.Enabled.V && t.OTLPEndpoint.IsSet():
			c.differs(hasOtel, strings.TrimSuffix(t.OTLPEndpoint.V, "/")+signal.path, "otel", signal.key, "otlp-http", "endpoint")
		}
	}
	if want := p.Instructions.V; want != "" && c.req["additional_developer_instructions"] != want && c.conf["developer_instructions"] != want {
		c.bad("/additional_developer_instructions", "is not the policy's text")
	}
	if pin != nil {
		for key, value := range pin.Overrides {
			if x, ok := tree(value); ok && overrideFits(key, x) && !same(x, c.conf[key]) {
				c.inConfig("/"+key, "is not what the policy's overrides say")
			}
		}
	}
	list, _ := lookup(c.req, "rules", "prefix_rules").([]any)
	for _, l := range []struct{ decision, field string }{{"forbidden", "permissions.deny"}, {"prompt", "permissions.ask"}} {
		items := p.Permissions.Deny.Items
		if l.decision == "prompt" {
			items = p.Permissions.Ask.Items
		}
		for _, s := range items {
			content, ok := strings.CutPrefix(s.V, "Bash(")
			if want := prefix(strings.TrimSuffix(content, ")")); ok && want != nil && !v.Less(hasRules) && !slices.ContainsFunc(list, func(x any) bool {
				r, _ := x.(map[string]any)
				return r["decision"] == l.decision && slices.Equal(tokens(r["pattern"]), want)
			}) {
				c.bad("/rules/prefix_rules", "has no rule for "+l.field+" "+s.V)
			}
		}
	}
}

// same reports whether a parsed value is one that was to be written.
func same(want, got any) bool {
	switch w := want.(type) {
	case object:
		g, ok := got.(map[string]any)
		return ok && len(g) == len(w) && !slices.ContainsFunc(w, func(m member) bool { return !same(m.value, g[m.key]) })
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, same)
	}
	return want == got
}

func tokens(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, x := range l {
		t, _ := x.(map[string]any)
		s, _ := t["token"].(string)
		out = append(out, s)
	}
	return out
}
