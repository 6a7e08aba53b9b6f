package claudecode

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

func target(t testing.TB, body, os, version string) harness.Target {
	t.Helper()
	return rendertest.Target(t, policy.ClaudeCode, version, os, body)
}

const newest = "2.1.332"

// worked is the policy of the vendor-neutral example that all harnesses are measured with.
const worked = `
permissions: {sandbox: workspace-write, disableBypass: true}
sandbox:
  writableRoots: [/opt/build-cache]
  protectedPaths: ["~/.ssh", "~/.aws", ".env*"]
egress:
  allowedDomains: [ai.acme.example, otel.internal.acme.example]
  presets: [vcs]
  deniedDomains: [pastebin.com, transfer.sh]
`

// everything sets every field that a profile has.
const everything = `
harnesses:
  claude-code:
    version: 2.1.332
    model: sonnet
    overrides: {theme: dark, cleanupPeriodDays: 30, spinnerVerbs: {mode: replace, verbs: [Working]}}
models: {default: opus, allowed: [sonnet, opus], enforce: true}
permissions:
  mode: acceptEdits
  allow: ["Bash(git status:*)", "WebFetch(domain:ai.acme.example)", "WebFetch(domain:evil.example)", "Edit(//opt/build-cache/**)", "Edit(//srv/**)"]
  ask: ["Bash(git push:*)", "Write(~/notes/**)"]
  deny: ["Bash(curl:*)", "Read(/etc/shadow)", "Nope(x)", "WebFetch(domain:*)", "mcp__github__delete_repo"]
  disableBypass: true
  sandboxRequired: true
sandbox:
  mode: workspace-write
  writableRoots: [/opt/build-cache, /tmp/acme-build, "~/.cache/acme"]
  protectedPaths: ["~/.ssh", "~/.config/*/credentials", /srv/secrets, ".env*", "secrets/{a,b}"]
egress:
  default: deny
  allowedDomains: [ai.acme.example, "*.corp.example"]
  presets: [vcs, package-registries]
  deniedDomains: [pastebin.com, "*.pastebin.com", old.corp.example]
mcp:
  managedOnly: true
  servers:
    - {name: docs, url: "https://mcp.acme.example/docs", headers: {X-Team: "${TEAM}"}}
    - {name: build, command: [/opt/acme/mcp, --stdio]}
  denied: [shady, "old.server"]
hooks:
  managedOnly: true
  items:
    - {event: PreToolUse, matcher: Bash, command: /opt/acme/guard}
    - {event: PreToolUse, command: /opt/acme/log}
    - {event: Stop, command: "/opt/acme/stop --quiet"}
telemetry:
  enabled: true
  otlpEndpoint: https://otel.acme.example:4318
  protocol: http/protobuf
  logPrompts: false
  attributes: {team: "dev tools", org: acme}
instructions: |
  Ask before you delete.
env: {ACME_PROXY_ZONE: "eu"}
`

const minimal = "harnesses: {}\npermissions: {sandbox: \"off\"}\n"

const readOnly = "sandbox: {mode: read-only}\negress: {default: deny}\n"

const openDefault = "sandbox: {mode: workspace-write}\negress: {deniedDomains: [pastebin.com]}\n"

// shared adds servers and hooks beside the user's own.
const shared = `
permissions: {mode: auto, allow: [WebSearch], deny: ["WebFetch(domain:*)"]}
models: {default: opus, allowed: [sonnet, opus], enforce: false}
mcp:
  servers:
    - {name: docs, url: "https://mcp.acme.example/docs", headers: {X-Team: "${TEAM}"}}
    - {name: build, command: [/opt/acme/mcp, --stdio]}
  denied: [shady]
hooks: {items: [{event: SessionStart, command: /opt/acme/start}]}
telemetry: {enabled: false, logPrompts: true}
`

func TestGolden(t *testing.T) {
	for name, body := range map[string]string{"worked": worked, "everything": everything, "minimal": minimal, "read-only": readOnly, "open-default": openDefault} {
		for _, os := range policy.OSes {
			t.Run(name+"/"+os, func(t *testing.T) { golden(t, name+"."+os, target(t, body, os, newest)) })
		}
	}
	for _, version := range []string{"2.0.30", "2.1.80", "2.1.100", "2.1.120", "2.1.200", "2.1.270"} {
		t.Run("everything/"+version, func(t *testing.T) { golden(t, "everything.linux-"+version, target(t, everything, "linux", version)) })
	}
}

func golden(t *testing.T, name string, at harness.Target) {
	t.Helper()
	at.Models = map[string]string{"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5"}
	if name[0] == 'e' {
		at.GatewayURL = "https://ai.acme.example/v1/"
	}
	rendertest.Golden(t, name, rendertest.Print(render(at)))
	rendertest.Sound(t, Harness(), at)
}

// TestMistakes edits a good rendering: the strict reader must see every edit, in particular those that the program takes without a word.
func TestMistakes(t *testing.T) {
	at := target(t, everything, "linux", newest)
	at.GatewayURL = "https://ai.acme.example"
	files, _ := render(at)
	rendertest.Edits(t, Harness(), at, []rendertest.Edit{
		{"unknown top key", `"sandbox": {`, `"sandboxx": {`, "/sandboxx is not a key", settingsName},
		{"unknown network key", `"allowedDomains"`, `"allowedDomain"`, "/sandbox/network/allowedDomain is not a key", settingsName},
		{"unknown permissions key", `"deny": [`, `"denyy": [`, "/permissions/denyy is not a key", settingsName},
		{"bypass lock at top level", `"env": {`, `"disableBypassPermissionsMode": "disable", "env": {`, "/disableBypassPermissionsMode is not a key", settingsName},
		{"dotted key", `"enabled": true`, `"network.allowedDomains": ["x.example"], "enabled": true`, "/sandbox/network.allowedDomains is not a key", settingsName},
		{"host with scheme", "        \"pastebin.com\"", "        \"https://pastebin.com\"", "scheme", settingsName},
		{"host with path", "        \"pastebin.com\"", "        \"pastebin.com/x\"", "path", settingsName},
		{"host with inner star", "        \"pastebin.com\"", "        \"paste*.com\"", "wildcard", settingsName},
		{"allow star", "        \"*.corp.example\"", "        \"*\"", "every host", settingsName},
		{"allowed host added", "        \"*.corp.example\"", "        \"*.corp.example\", \"evil.example\"", "adds evil.example", settingsName},
		{"denied hosts are no list", `"deniedDomains": [`, `"deniedDomains": "pastebin.com", "x": [`, "/sandbox/network/deniedDomains is not a list", settingsName},
		{"denied host is no text", "        \"pastebin.com\"", "        7", "/sandbox/network/deniedDomains/2 is not a text", settingsName},
		{"allowed hosts are no list", `"allowedDomains": [`, `"allowedDomains": true, "x": [`, "/sandbox/network/allowedDomains is not a list", settingsName},
		{"malformed rule", `"Bash(curl:*)"`, `"Bash("`, "no content", settingsName},
		{"malformed fetch rule", `"WebFetch(domain:pastebin.com)"`, `"WebFetch(https://pastebin.com)"`, "malformed", settingsName},
		{"unknown tool", `"Bash(curl:*)"`, `"Nope(x)"`, "no tool", settingsName},
		{"one slash", `"Read(//srv/secrets)"`, `"Read(/srv/secrets)"`, "one leading slash", settingsName},
		{"drive", `"Read(//srv/secrets)"`, `"Read(C:\\srv\\**)"`, "Windows form", settingsName},
		{"rule of a tool without paths", `"Edit(~/.ssh)"`, `"Write(~/.ssh)"`, "never matches", settingsName},
		{"deny every domain", `"WebFetch",`, `"WebFetch(domain:*)",`, "every host", settingsName},
		{"sandbox enabled yes", `"enabled": true`, `"enabled": "yes"`, "/sandbox/enabled is not true or false", settingsName},
		{"text for a boolean", `"failIfUnavailable": true`, `"failIfUnavailable": "true"`, "/sandbox/failIfUnavailable is not true", settingsName},
		{"sandbox off", `"enabled": true`, `"enabled": false`, "/sandbox/enabled is not true", settingsName},
		{"unsandboxed retry", `"allowUnsandboxedCommands": false`, `"allowUnsandboxedCommands": true`, "could ask to run outside", settingsName},
		{"unknown mode", `"defaultMode": "acceptEdits"`, `"defaultMode": "yolo"`, "none of", settingsName},
		{"bypass mode", `"defaultMode": "acceptEdits"`, `"defaultMode": "bypassPermissions"`, "bypassPermissions", settingsName},
		{"bypass lock true", `"disableBypassPermissionsMode": "disable"`, `"disableBypassPermissionsMode": true`, "is not a text", settingsName},
		{"version of one number", `"requiredMinimumVersion": "2.1.332"`, `"requiredMinimumVersion": "3"`, "would be ignored", settingsName},
		{"version range", `"requiredMaximumVersion": "2.1.332"`, `"requiredMaximumVersion": ">=2.1.0"`, "would be ignored", settingsName},
		{"version number", `"requiredMinimumVersion": "2.1.332"`, `"requiredMinimumVersion": 2`, "is not a text", settingsName},
		{"other version", `"requiredMinimumVersion": "2.1.332"`, `"requiredMinimumVersion": "2.1.300"`, "pinned version", settingsName},
		{"unknown event", `"PreToolUse"`, `"PreTool"`, "no event", settingsName},
		{"unknown hook type", `"type": "command"`, `"type": "script"`, "is not a hook of type command", settingsName},
		{"hooks off", `"env": {`, `"disableAllHooks": true, "env": {`, "/disableAllHooks is not a key", settingsName},
		{"two matchers", `"serverUrl": "https://mcp.acme.example/docs"`, `"serverUrl": "https://mcp.acme.example/docs", "serverName": "docs"`, "exactly one", settingsName},
		{"matcher is a text", "{\n      \"serverUrl\": \"https://mcp.acme.example/docs\"\n    }", `"docs"`, "exactly one", settingsName},
		{"matcher wildcard", `"serverUrl": "https://mcp.acme.example/docs"`, `"serverUrl": "https://*"`, "any text", settingsName},
		{"no domain lock", `"allowManagedDomainsOnly": true`, `"allowManagedDomainsOnly": false`, "allowManagedDomainsOnly", settingsName},
		{"no read lock", `"allowManagedReadPathsOnly": true,`, ``, "allowManagedReadPathsOnly", settingsName},
		{"no server lock", `"allowManagedMcpServersOnly": true,`, ``, "allowManagedMcpServersOnly", settingsName},
		{"no hook lock", `"allowManagedHooksOnly": true,`, ``, "/allowManagedHooksOnly", settingsName},
		{"no model lock", `"enforceAvailableModels": true,`, ``, "enforceAvailableModels", settingsName},
		{"no models", "\"availableModels\": [\n    \"sonnet\",\n    \"opus\"\n  ]", `"availableModels": []`, "is empty", settingsName},
		{"protected path lost", `"Edit(//**/.env*)",`, ``, "protected path .env*", settingsName},
		{"protected path lost in the sandbox", `"denyRead": [
        "/srv/secrets",`, `"denyRead": [`, "protected path /srv/secrets", settingsName},
		{"root added", `"/opt/build-cache",`, `"/opt/build-cache", "/home",`, "adds /home", settingsName},
		{"root is a glob", `"/opt/build-cache",`, `"/opt/*",`, "is a glob", settingsName},
		{"variable in a path", "        \"~/.ssh\"", "        \"$HOME/.ssh\"", "matches nothing", settingsName},
		{"root of the file system denied", `"denyRead": [`, `"denyRead": ["/",`, "every command fail", settingsName},
		{"excluded commands", `"enabled": true`, `"enabled": true, "excludedCommands": ["git"]`, "/sandbox/excludedCommands is not a key", settingsName},
		{"denied rule lost", `"mcp__github__delete_repo"`, `"mcp__github__x"`, "which the policy denies", settingsName},
		{"asked rule lost", `"Bash(git push:*)"`, `"Bash(git pull:*)"`, "lacks Bash(git push:*)", settingsName},
		{"fetch rule lost", `"WebFetch(domain:pastebin.com)",`, ``, "from pastebin.com", settingsName},
		{"fetch of any host", `"Bash(git status:*)"`, `"WebFetch"`, "does not allow", settingsName},
		{"gateway", `"ANTHROPIC_BASE_URL": "https://ai.acme.example"`, `"ANTHROPIC_BASE_URL": "https://other.example"`, "/env/ANTHROPIC_BASE_URL", settingsName},
		{"collector", `"https://otel.acme.example:4318"`, `"https://other.example"`, "/env/OTEL_EXPORTER_OTLP_ENDPOINT", settingsName},
		{"prompts logged", `"OTEL_LOG_USER_PROMPTS": "0"`, `"OTEL_LOG_USER_PROMPTS": "1"`, "/env/OTEL_LOG_USER_PROMPTS", settingsName},
		{"verbs without mode", `"mode": "replace",`, ``, "has no mode", settingsName},
		{"denied server lost", `"serverName": "shady"`, `"serverName": "other"`, "/deniedMcpServers is not the list", settingsName},
		{"secret", `"ACME_PROXY_ZONE": "eu"`, `"ACME_PROXY_ZONE": "ghp_0123456789abcdef"`, "GitHub token", settingsName},
		{"key twice", `"theme": "dark"`, `"theme": "dark", "theme": "light"`, "stands twice", settingsName},
		{"trailing comma", `"theme": "dark"`, `"theme": "dark",`, "is not JSON", settingsName},
		{"comment", `{`, `{ // note`, "is not JSON", settingsName},
		{"no object", `{`, `[] {`, "there is text after", settingsName},
		{"byte order mark", `{`, "\xef\xbb\xbf{", "byte order mark", settingsName},
		{"server added", `"build": {`, `"other": {"type": "http", "url": "https://x.example"}, "build": {`, "/mcpServers are not the servers", serversName},
		{"server without URL", `"url": "https://mcp.acme.example/docs"`, `"uri": "x"`, "has no url", serversName},
		{"other key", `"mcpServers"`, `"servers"`, "/servers is not a key", serversName},
		{"instructions", `Ask`, `Never ask`, "is not the policy's instructions", instructionsName},
	})
	if got := check(target(t, minimal, "linux", newest), files); len(got) == 0 {
		t.Error("files of another policy are not noticed")
	}
}

// TestOpenDefault: an open default is a rule that opens the sandbox as well, and no list of allowed hosts, which would look like a limit.
func TestOpenDefault(t *testing.T) {
	for _, x := range []struct {
		version, body string
		want          bool
	}{
		{newest, "sandbox: {mode: workspace-write}\negress: {default: allow}\n", true},
		{newest, openDefault, true},
		{"2.1.113", openDefault, true},
		{"2.1.112", openDefault, false},
		{newest, "sandbox: {mode: workspace-write}\n", false},
	} {
		at := target(t, x.body, "linux", x.version)
		files, gaps := render(at)
		text := string(rendertest.Print(files, gaps))
		if got := strings.Contains(text, `"WebFetch(domain:*)"`); got != x.want || strings.Contains(text, "allowedDomains") {
			t.Errorf("%s at %s: open %t, want %t, and no list:\n%s", x.body, x.version, got, x.want, text)
		}
		if !x.want && !strings.Contains(text, "every host") {
			t.Errorf("%s at %s: no gap says that hosts are asked about:\n%s", x.body, x.version, text)
		}
		rendertest.Sound(t, Harness(), at)
	}
}

// TestBareSession: a SessionStart hook is named, others are not.
func TestBareSession(t *testing.T) {
	for event, want := range map[string]bool{"SessionStart": true, "PreToolUse": false, "Stop": false} {
		_, gaps := render(target(t, "hooks: {items: [{event: "+event+", command: /opt/acme/x}]}\n", "linux", newest))
		if got := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "hooks.items" && slices.Contains(g.Bypass, "--bare") }); got != want {
			t.Errorf("%s: gap %t, want %t: %v", event, got, want, gaps)
		}
	}
}

// TestTelemetryIsHeldWhole: what a user's own variables could still choose is written, or named.
func TestTelemetryIsHeldWhole(t *testing.T) {
	for body, want := range map[string][2]bool{
		"telemetry: {enabled: true, otlpEndpoint: 'https://otel.acme.example'}\n":                 {true, false},
		"telemetry: {enabled: true, otlpEndpoint: 'https://otel.acme.example', protocol: grpc}\n": {false, false},
		"telemetry: {enabled: true}\n":  {false, true},
		"telemetry: {enabled: false}\n": {false, false},
	} {
		files, gaps := render(target(t, body, "linux", newest))
		protocol := strings.Contains(string(rendertest.Print(files, nil)), `"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"`)
		named := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "telemetry.enabled" && g.Grade == harness.Overridable })
		if got := [2]bool{protocol, named}; got != want {
			t.Errorf("%s: protocol written and gap %v, want %v", body, got, want)
		}
	}
}

// TestModes: a file that others can change or the user cannot read is noticed.
func TestModes(t *testing.T) {
	at := target(t, worked, "linux", newest)
	for _, change := range []func(*harness.File){func(f *harness.File) { f.Mode = 0o600 }, func(f *harness.File) { f.Mode = 0o666 }, func(f *harness.File) { f.Owner = "dev:dev" }} {
		files, _ := render(at)
		change(&files[0])
		if len(check(at, files)) == 0 {
			t.Errorf("%s %o is not noticed", files[0].Owner, files[0].Mode)
		}
	}
}

// TestTampered changes every single value of several renderings.
func TestTampered(t *testing.T) {
	for _, version := range []string{"2.0.30", "2.1.80", "2.1.120", "2.1.270", newest} {
		for _, os := range policy.OSes {
			if os != "linux" && version != newest {
				continue
			}
			for _, body := range []string{everything, worked, readOnly, openDefault, shared} {
				at := target(t, body, os, version)
				at.GatewayURL = "https://ai.acme.example"
				rendertest.Tampered(t, Harness(), at, func(string, string) bool { return false })
			}
		}
	}
}

// program is the settings file as Claude Code 2.1.332 decides hosts and paths, written from what it was seen to do.
type program struct {
	Permissions struct{ Allow, Deny []string }
	Sandbox     *struct {
		Network *struct {
			AllowedDomains, DeniedDomains []string
			AllowManagedDomainsOnly       bool
		}
		Filesystem struct{ DenyRead, DenyWrite []string }
	}
}

func read(t *testing.T, files []harness.File) (p program) {
	t.Helper()
	for _, f := range files {
		if strings.HasSuffix(f.Dest, settingsName) {
			if err := json.Unmarshal(f.Content, &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func domainMatch(pattern, h string) bool {
	if pattern == "*" {
		return true
	}
	if rest, ok := strings.CutPrefix(pattern, "*."); ok {
		return strings.HasSuffix(h, "."+rest)
	}
	return pattern == h
}

func fetchRules(rules []string) (domains []string, bare bool) {
	for _, s := range rules {
		if s == "WebFetch" {
			bare = true
		}
		if d, ok := strings.CutPrefix(s, "WebFetch(domain:"); ok {
			domains = append(domains, strings.TrimSuffix(d, ")"))
		}
	}
	return domains, bare
}

func anyMatch(patterns []string, h string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return domainMatch(p, h) })
}

// fetch answers allow, deny or ask for the fetch tool.
func (p program) fetch(h string) string {
	deny, bare := fetchRules(p.Permissions.Deny)
	allow, all := fetchRules(p.Permissions.Allow)
	switch {
	case bare || anyMatch(deny, h):
		return "deny"
	case all || anyMatch(allow, h):
		return "allow"
	}
	return "ask"
}

// shell answers for commands in the sandbox. Domains of fetch rules count there as well.
func (p program) shell(h string) string {
	if p.Sandbox == nil {
		return "allow"
	}
	deny, _ := fetchRules(p.Permissions.Deny)
	allow, _ := fetchRules(p.Permissions.Allow)
	locked := false
	if n := p.Sandbox.Network; n != nil {
		deny, allow, locked = append(deny, n.DeniedDomains...), append(allow, n.AllowedDomains...), n.AllowManagedDomainsOnly
	}
	switch {
	case anyMatch(deny, h):
		return "deny"
	case anyMatch(allow, h):
		return "allow"
	case locked:
		return "deny"
	}
	return "ask"
}

// TestHostsLaw compares the program's decision with the policy's for many policies and every host of a small universe.
func TestHostsLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	names := []string{"a.example", "b.a.example", "c.b.a.example", "x.test", "y.x.test", "nota.example", "z.test"}
	patterns := append([]string{"*.a.example", "*.b.a.example", "*.x.test"}, names...)
	pick := func() []string {
		var out []string
		for range rng.IntN(4) {
			out = append(out, patterns[rng.IntN(len(patterns))])
		}
		return out
	}
	for i := range 400 {
		allowed, denied := pick(), pick()
		body := "sandbox: {mode: workspace-write}\negress:\n"
		switch def := rng.IntN(3); {
		case def == 1:
			body += "  default: deny\n"
		case def == 2 && len(allowed) == 0:
			body += "  default: allow\n"
		}
		list := func(key string, l []string) {
			q, _ := json.Marshal(append([]string{}, l...))
			body += "  " + key + ": " + string(q) + "\n"
		}
		list("allowedDomains", allowed)
		list("deniedDomains", denied)
		os := []string{"darwin", "linux"}[i%2]
		at := target(t, body, os, []string{newest, "2.1.120", "2.1.100"}[i%3])
		files, gaps := render(at)
		prog := read(t, files)
		if !at.Policy.EgressRules() && !at.Policy.Egress.Default.IsSet() {
			continue
		}
		for _, n := range append(names, "deep.z.test") {
			name, err := host.ParseName(n)
			if err != nil {
				t.Fatal(err)
			}
			want := at.Policy.Hosts.Decide(name).Allow
			shell, fetch := prog.shell(n), prog.fetch(n)
			if !want && (shell == "allow" || fetch == "allow") {
				t.Fatalf("%s is denied by the policy, but the shell says %s and the fetch tool %s\n%s", n, shell, fetch, body)
			}
			named := slices.ContainsFunc(gaps, func(g harness.Gap) bool {
				return g.Concept == harness.Egress && strings.Contains(g.Reason, "2.1.113") && at.Version.Less(hasDenied)
			})
			if want && (shell != "allow" || fetch != "allow") && !named {
				t.Fatalf("%s is allowed by the policy, but the shell says %s and the fetch tool %s\n%s", n, shell, fetch, body)
			}
			asked := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == harness.Fetch })
			if !want && fetch == "ask" && !asked {
				t.Fatalf("%s is asked about and no gap says so\n%s", n, body)
			}
			if !want && shell == "ask" {
				t.Fatalf("%s is asked about in the shell\n%s", n, body)
			}
		}
		for _, f := range check(at, files) {
			t.Fatalf("the strict reader refuses what was rendered: %s %s\n%s", f.Pointer, f.Message, body)
		}
	}
}

// ruleDenies reports whether a path rule covers a file for the file tools: // is the file system, ~/ the home, anything else the session folder; a directory
// covers its content.
func ruleDenies(rule, file, home, session string) bool {
	pattern, _ := strings.CutPrefix(rule, "Read(")
	pattern = strings.TrimSuffix(pattern, ")")
	base := session
	switch {
	case strings.HasPrefix(pattern, "//"):
		base, pattern = "", pattern[2:]
	case strings.HasPrefix(pattern, "~/"):
		base, pattern = home, pattern[2:]
	}
	rest, ok := strings.CutPrefix(file, base+"/")
	if !ok {
		return false
	}
	return globPrefix(strings.Split(pattern, "/"), strings.Split(rest, "/"))
}

func globPrefix(pattern, segs []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		return globPrefix(pattern[1:], segs) || len(segs) > 0 && globPrefix(pattern, segs[1:])
	}
	if len(segs) == 0 {
		return false
	}
	ok, err := filepath.Match(pattern[0], segs[0])
	return err == nil && ok && globPrefix(pattern[1:], segs[1:])
}

// TestPathsLaw: whatever the policy protects, the rules deny to the file tools, and what has a place of its own also to commands.
func TestPathsLaw(t *testing.T) {
	const home, session = "/home/dev", "/home/dev/work"
	protected := []string{"~/.ssh", "~/.config/*/credentials", "/srv/secrets", "/srv/{a,b}/key", ".env*", "secrets/*.pem", "**/private", "conf/[ab].yaml", "/opt/x[0-9]"}
	files := []string{"/home/dev/.ssh/id", "/home/dev/.ssh", "/home/dev/.config/gcloud/credentials", "/srv/secrets/x/y", "/srv/a/key", "/srv/b/key/z", "/home/dev/work/.env",
		"/home/dev/work/sub/.env.local", "/home/dev/work/secrets/k.pem", "/home/dev/work/x/private/y", "/home/dev/work/conf/a.yaml", "/opt/x7/f", "/home/dev/work/main.go", "/srv/c/key"}
	quoted, _ := json.Marshal(protected)
	at := target(t, "sandbox: {protectedPaths: "+string(quoted)+"}\n", "linux", newest)
	out, _ := render(at)
	prog := read(t, out)
	hit := 0
	for _, file := range files {
		for _, item := range at.Policy.Sandbox.ProtectedPaths.Items {
			if !fspath.Matches(item.Path, file, session, home) {
				continue
			}
			hit++
			if !slices.ContainsFunc(prog.Permissions.Deny, func(r string) bool {
				return strings.HasPrefix(r, "Read(") && ruleDenies(r, file, home, session)
			}) {
				t.Errorf("%s is protected by %s, but no Read rule covers it", file, item.Path)
			}
			if item.Path.Kind() != fspath.Relative && !slices.ContainsFunc(prog.Sandbox.Filesystem.DenyRead, func(p string) bool {
				return ruleDenies("Read("+strings.Replace("/"+p, "/~", "~", 1)+")", file, home, session)
			}) {
				t.Errorf("%s is protected by %s, but the sandbox does not deny it", file, item.Path)
			}
		}
		if strings.HasSuffix(file, "main.go") && slices.ContainsFunc(prog.Permissions.Deny, func(r string) bool { return ruleDenies(r, file, home, session) }) {
			t.Errorf("%s is denied although nothing protects it", file)
		}
	}
	if hit < 12 {
		t.Errorf("only %d files of the universe are protected", hit)
	}
}

// TestRules says what becomes of rules in the policy's lists.
func TestRules(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"Bash(git push:*)", "Bash(git push:*)"}, {"Read(~/.ssh/**)", "Read(~/.ssh/**)"}, {"Write(~/x)", "Edit(~/x)"}, {"MultiEdit(src/**)", "Edit(src/**)"},
		{"WebFetch(domain:x.example)", "WebFetch(domain:x.example)"}, {"WebFetch(domain:*)", "WebFetch"}, {"mcp__docs", "mcp__docs"}, {"Read(//opt/My (x)/**)", "Read(//opt/My (x)/**)"},
		{"Bash(", ""}, {"Bash()", ""}, {"Nope", ""}, {"mcp__", ""}, {"mcp__x(y)", ""}, {"Glob(src/**)", ""}, {"Read(/etc/x)", ""}, {"Read($HOME/x)", ""}, {"Read(~bob/x)", ""},
		{"Read(a/{b,c})", ""}, {`Read(C:\x)`, ""}, {"WebFetch(https://x.example)", ""}, {"WebFetch(domain:X.example)", ""}, {"", ""},
	} {
		if got := restrictRule(x.in); got.text != x.want || (got.reason == "") != (x.want != "") {
			t.Errorf("%s becomes %q (%s), want %q", x.in, got.text, got.reason, x.want)
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"Bash(x)", "WebFetch(domain:*)", "Read(//x)", "Edit(", "mcp__a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x := restrictRule(s)
		if (x.text == "") == (x.reason == "") {
			t.Fatalf("%q: a rule is rendered or has a reason, have %+v", s, x)
		}
		if x.text != "" && restrictRule(x.text).text != x.text {
			t.Fatalf("%q: rendered as %q, which is rendered as another rule", s, x.text)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"sandbox": {"enabled": true}}`))
	f.Add([]byte(`{"permissions": {"deny": ["Bash("]}, "hooks": {"Stop": [{}]}, "allowedMcpServers": [{}]}`))
	at := target(f, everything, "linux", newest)
	f.Fuzz(func(t *testing.T, data []byte) {
		check(at, []harness.File{{Dest: dirLinux + "/" + settingsName, Content: data}, {Dest: dirLinux + "/" + serversName, Content: data}})
	})
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

// TestSchema holds what is rendered against the schema that SchemaStore publishes, which the CLI's own is ahead of.
func TestSchema(t *testing.T) {
	schema := rendertest.Schema(t, "claude-code-settings.schemastore.json")
	for _, body := range []string{worked, everything, readOnly, openDefault} {
		files, _ := render(target(t, body, "linux", newest))
		for _, f := range files {
			if strings.HasSuffix(f.Dest, settingsName) {
				rendertest.Valid(t, schema, f.Content)
			}
		}
	}
}

func BenchmarkRender(b *testing.B) {
	for name, body := range map[string]string{"worked": worked, "everything": everything} {
		b.Run(name, func(b *testing.B) {
			at := target(b, body, "linux", newest)
			b.ReportAllocs()
			for b.Loop() {
				render(at)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	at := target(b, worked, "linux", newest)
	files, _ := render(at)
	b.ReportAllocs()
	for b.Loop() {
		check(at, files)
	}
}
