package codex

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

func target(t testing.TB, body, os, version string) harness.Target {
	t.Helper()
	return rendertest.Target(t, policy.Codex, version, os, body)
}

const newest = "0.171.0"

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
  codex:
    version: 0.171.0
    model: sonnet
    overrides: {model_reasoning_effort: high, tui: {animations: false, theme: dark}}
models: {default: opus, allowed: [sonnet, opus], enforce: true}
permissions:
  mode: acceptEdits
  allow: ["Bash(git status:*)", "WebFetch(domain:ai.acme.example)", "WebFetch(domain:evil.example)", "Edit(//opt/build-cache/**)", "Edit(//srv/**)"]
  ask: ["Bash(git push:*)", "Edit(~/notes/**)"]
  deny: ["Bash(git push --force:*)", "Bash(npm run build)", "Read(//etc/shadow)", "Read(~/vault/**)", "Read(src/x)", "WebSearch", "mcp__github__delete_repo"]
  disableBypass: true
  sandboxRequired: true
sandbox:
  mode: workspace-write
  writableRoots: [/opt/build-cache, /tmp/acme-build, "~/.cache/acme"]
  protectedPaths: ["~/.ssh", "~/.config/*/credentials", /srv/secrets, "/*/x", ".env*", "secrets/{a,b}"]
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
    - {event: PostToolUse, matcher: "Edit|Write", command: /opt/acme/format}
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

func TestGolden(t *testing.T) {
	for name, body := range map[string]string{"worked": worked, "everything": everything, "minimal": minimal, "read-only": readOnly, "open-default": openDefault} {
		for _, os := range policy.OSes {
			t.Run(name+"/"+os, func(t *testing.T) { golden(t, name+"."+os, target(t, body, os, newest)) })
		}
	}
	for _, version := range []string{"0.76.0", "0.77.0", "0.99.0", "0.117.0", "0.120.0", "0.137.0", "0.138.0", "0.150.1", "0.160.1"} {
		t.Run("everything/"+version, func(t *testing.T) { golden(t, "everything.linux-"+version, target(t, everything, "linux", version)) })
	}
}

func golden(t *testing.T, name string, at harness.Target) {
	t.Helper()
	at.Models = map[string]string{"sonnet": "acme-sonnet", "opus": "acme-opus"}
	if name[0] == 'e' {
		at.GatewayURL = "https://ai.acme.example"
	}
	rendertest.Golden(t, name, rendertest.Print(render(at)))
	rendertest.Sound(t, Harness(), at)
}

// TestMistakes edits a good rendering: the strict reader must see every edit, in particular those that the program takes without a word and those that keep
// sessions from starting.
func TestMistakes(t *testing.T) {
	at := target(t, everything, "linux", newest)
	at.GatewayURL = "https://ai.acme.example"
	at.Models = map[string]string{"sonnet": "acme-sonnet"}
	files, _ := render(at)
	const req, conf = requirementsName, configName
	rendertest.Edits(t, Harness(), at, []rendertest.Edit{
		{"syntax", `[features]`, `[features`, "is not TOML", req},
		{"key twice", `model_provider = "halo"`, "model_provider = \"halo\"\nmodel_provider = \"x\"", "is not TOML", req},
		{"table twice", `[features]`, "[otel]\nlog_user_prompt = true\n\n[features]", "is not TOML", req},
		{"wrong type", `enabled = true`, `enabled = "true"`, "/experimental_network/enabled is not true or false", req},
		{"bad word", `["read-only", "workspace-write"]`, `["read-only", "workspace"]`, "none of read-only", req},
		{"full access", `["read-only", "workspace-write"]`, `["read-only", "danger-full-access"]`, "danger-full-access", req},
		{"no read-only", `["read-only", "workspace-write"]`, `["workspace-write"]`, "does not hold read-only", req},
		{"no approval policy", `["on-request", "untrusted"]`, `[]`, "empty list", req},
		{"never asks", `["on-request", "untrusted"]`, `["on-request", "never"]`, "none of on-request", req},
		{"no approval lock", `allowed_approval_policies = ["on-request", "untrusted"]`, ``, "approvals could be switched off", req},
		{"unknown top key", `model_provider = "halo"`, "model_provider = \"halo\"\nsandbox_mode = \"workspace-write\"", "/sandbox_mode is not a key", req},
		{"unknown network key", `managed_allowed_domains_only = true`, `managed_domains_only = true`, "/experimental_network/managed_domains_only is not a key", req},
		{"misspelt profile table", `[permissions.halo-base.filesystem]`, `[permissions.halo-base.filesytem]`, "filesytem", req},
		{"misspelt event", `[[hooks.Stop]]`, `[[hooks.Stopp]]`, "Stopp is no event", req},
		{"misspelt hook field", `command = "/opt/acme/log"`, `comand = "/opt/acme/log"`, "is not a hook of type command", req},
		{"matcher of another harness", `matcher = "Bash"`, `matcher = "Edit|Write"`, "does not exist here", req},
		{"misspelt otel field", "[otel.exporter.otlp-http]\nendpoint", "[otel.exporter.otlp-http]\nendpont", "/otel/exporter is not none", req},
		{"misspelt provider field", `base_url`, `base_ur`, "/model_providers/halo/base_ur is not a key", req},
		{"relative deny_read", `deny_read = [`, `deny_read = [".env*", `, "neither absolute", req},
		{"variable in deny_read", `deny_read = [`, `deny_read = ["~/$X", `, "has a variable", req},
		{"root glob", `deny_read = [`, `deny_read = ["/**/.env*", `, "no session would start", req},
		{"root pattern", `"/srv/secrets" = "deny"`, `"/*/secrets" = "deny"`, "no session would start", req},
		{"profile path relative", `"/srv/secrets" = "deny"`, `".env*" = "deny"`, "keeps the program from starting", req},
		{"pattern to write", `"/opt/build-cache" = "write"`, `"/opt/*" = "write"`, "only a deny entry", req},
		{"no scan depth", `glob_scan_max_depth = 8`, ``, "has no end", req},
		{"root folder only", `"**/.env*" = "deny"`, `".env*" = "deny"`, "covers the root folder only", req},
		{"star", `"*.corp.example" = "allow"`, `"*" = "allow"`, "every host", req},
		{"scheme", `"pastebin.com" = "deny"`, `"https://pastebin.com" = "deny"`, "has a scheme", req},
		{"path", `"pastebin.com" = "deny"`, `"pastebin.com/x" = "deny"`, "has a path", req},
		{"double star", `"*.corp.example" = "allow"`, `"**.corp.example" = "allow"`, "wildcard", req},
		{"not enabled", "[experimental_network]\nenabled = true", "[experimental_network]", "has no effect", req},
		{"no domain lock", `managed_allowed_domains_only = true`, ``, "a user could add hosts", req},
		{"two spellings of hosts", `managed_allowed_domains_only = true`, "managed_allowed_domains_only = true\nallowed_domains = [\"github.com\"]", "only one spelling", req},
		{"network alias", `[features]`, "[network_proxy]\nenabled = true\n\n[features]", "/network_proxy/enabled is not a key", req},
		{"network alias in permissions", `[features]`, "[permissions.network]\nenabled = true\n\n[features]", "second spelling of the network table", req},
		{"host added", `"github.com" = "allow"`, "\"github.com\" = \"allow\"\n\"evil.example\" = \"allow\"", "adds evil.example", req},
		{"denied host lost", `"pastebin.com" = "deny"`, ``, "lacks pastebin.com", req},
		{"denied host allowed", `"pastebin.com" = "deny"`, `"pastebin.com" = "allow"`, "lacks pastebin.com", req},
		{"web search", `allowed_web_search_modes = ["disabled"]`, ``, "hosted web search", req},
		{"web search live", `["disabled"]`, `["live"]`, "none of disabled", req},
		{"profile opens the network", `[features]`, "[permissions.halo-base.network]\nenabled = true\n\n[features]", "opens the network", req},
		{"second profile", "[allowed_permission_profiles]\n", "[allowed_permission_profiles]\n\":workspace\" = true\n", "is not just the profile", req},
		{"default of another name", `default_permissions = "halo-base"`, `default_permissions = ":workspace"`, "is not halo-base", req},
		{"profile extends more", `extends = ":workspace"`, `extends = ":danger"`, "none of :read-only", req},
		{"root added", `"/opt/build-cache" = "write"`, "\"/opt/build-cache\" = \"write\"\n\"/opt/other\" = \"write\"", "makes /opt/other writable", req},
		{"root lost", `"/opt/build-cache" = "write"`, ``, "writable root /opt/build-cache", req},
		{"protected path lost", `"~/.ssh" = "deny"`, ``, "protected path ~/.ssh", req},
		{"protected path to write", `"~/.ssh" = "deny"`, `"~/.ssh" = "write"`, "protected path ~/.ssh", req},
		{"relative path lost", `"**/.env*/**" = "deny"`, ``, "protected path .env*", req},
		{"read rule lost", `"/srv/secrets", `, ``, "deny_read has no /srv/secrets", req},
		{"server without identity", `identity = { url = "https://mcp.acme.example/docs" }`, `identity = { }`, "has no identity", req},
		{"arguments not compared", `{ command = { executable = "/opt/acme/mcp", args = [{ match = "exact", value = "--stdio" }] } }`,
			`{ command = "/opt/acme/mcp", args = ["--stdio"] }`, "are not compared", req},
		{"arguments by prefix", `match = "exact"`, `match = "prefix"`, "is not an exact argument", req},
		{"server added", "[mcp_servers.docs]", "[mcp_servers.other]\nidentity = { url = \"https://x.example\" }\n\n[mcp_servers.docs]", "does not name", req},
		{"hook lock", `allow_managed_hooks_only = true`, ``, "/allow_managed_hooks_only", req},
		{"hooks feature", "[features]\nhooks = true", "[features]\nhooks = false", "/features/hooks", req},
		{"gateway", `https://ai.acme.example/v1`, `https://other.example/v1`, "does not point at the gateway", req},
		{"collector", `https://otel.acme.example:4318/v1/logs`, `https://other.example/v1/logs`, "is not https://otel.acme.example:4318/v1/logs", req},
		{"collector of no signal", "[otel.trace_exporter.otlp-http]", "[otel.trace_exporter.otlp-grpc]", "/otel/trace_exporter", req},
		{"prompts logged", `log_user_prompt = false`, `log_user_prompt = true`, "/otel/log_user_prompt", req},
		{"instructions", `Ask before`, `Never ask before`, "is not the policy's text", req},
		{"rule lost", `{ token = "--force" }`, `{ token = "--forced" }`, "has no rule for permissions.deny", req},
		{"rule allows", `decision = "forbidden"`, `decision = "allow"`, "neither forbidden nor prompt", req},
		{"empty rule", `pattern = [{ token = "git" }, { token = "push" }]`, `pattern = []`, "is empty", req},
		{"hook command", `/opt/acme/log`, `/opt/acme/logs`, "does not run the policy's hooks", req},
		{"hook of more tools", `matcher = "Bash"`, ``, "does not run the policy's hooks", req},
		{"hook lost", "[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ncommand = \"/opt/acme/stop --quiet\"\ntype = \"command\"\n", ``, "/hooks/Stop does not run", req},
		{"model", `model = "acme-sonnet"`, `model = "acme-opus"`, "is not acme-sonnet", req},
		{"update question", `check_for_update_on_startup = false`, ``, "/check_for_update_on_startup is not false", req},
		{"identity of another URL", `identity = { url = "https://mcp.acme.example/docs" }`, `identity = { url = "https://mcp.evil.example/docs" }`, "not that of the policy's server", req},
		{"identity of another command", `executable = "/opt/acme/mcp"`, `executable = "/opt/evil/mcp"`, "not that of the policy's server", req},
		{"identity of more arguments", `value = "--stdio" }`, `value = "--stdio" }, { match = "exact", value = "-x" }`, "not that of the policy's server", req},
		{"definition of another URL", `url = "https://mcp.acme.example/docs"`, `url = "https://mcp.evil.example/docs"`, "is another server", conf},
		{"definition of another command", `command = "/opt/acme/mcp"`, `command = "/opt/evil/mcp"`, "is another server", conf},
		{"definition of other arguments", `args = ["--stdio"]`, ``, "is another server", conf},
		{"definition without its header", `X-Team = "TEAM"`, `X-Tean = "TEAM"`, "is another server", conf},
		{"variable added", `ACME_PROXY_ZONE = "eu"`, "ACME_PROXY_ZONE = \"eu\"\nOTHER = \"x\"", "sets variables that the policy does not", conf},
		{"override", `model_reasoning_effort = "high"`, `model_reasoning_effort = "low"`, "overrides", conf},
		{"override below", `theme = "dark"`, `theme = "light"`, "overrides", conf},
		{"secret", `ACME_PROXY_ZONE = "eu"`, `ACME_PROXY_ZONE = "ghp_0123456789abcdef"`, "GitHub token", conf},
		{"server not installed", `[mcp_servers.build]`, `[mcp_servers.built]`, "permitted and not installed", conf},
		{"server installed", `[mcp_servers.build]`, "[mcp_servers.other]\nurl = \"https://x.example\"\n\n[mcp_servers.build]", "does not name", conf},
		{"variable", `ACME_PROXY_ZONE = "eu"`, `ACME_PROXY_ZONE = "us"`, "is not what the policy says: eu", conf},
		{"full access in config", `model_reasoning_effort = "high"`, `sandbox_mode = "danger-full-access"`, "danger-full-access", conf},
		{"approvals in config", `model_reasoning_effort = "high"`, `approval_policy = "never"`, "/approval_policy is not a key", conf},
		{"notify in config", `model_reasoning_effort = "high"`, `notify = ["x"]`, "/notify is not a key", conf},
	})
	if got := check(target(t, minimal, "linux", newest), files); len(got) == 0 {
		t.Error("files of another policy are not noticed")
	}
	if got := check(target(t, everything, "linux", "0.137.0"), files); !slices.ContainsFunc(got, func(f harness.Finding) bool { return strings.Contains(f.Message, "is not known to 0.137.0") }) {
		t.Error("a key that the pinned version does not know is not noticed")
	}
}

// TestHookMatchers holds what a matcher becomes for each kind of event.
func TestHookMatchers(t *testing.T) {
	for _, c := range []struct {
		event, matcher, want string
		ok                   bool
	}{
		{"PreToolUse", "Bash", "Bash", true}, {"PreToolUse", "*", "", true}, {"PostToolUse", "Edit|Write", "", false}, {"PreToolUse", "startup", "", false},
		{"SessionStart", "startup", "startup", true}, {"SessionStart", "startup|resume", "startup|resume", true}, {"SessionStart", "", "", true}, {"SessionStart", "Bash", "", false},
		{"SessionStart", "compact", "", false}, {"Stop", "Bash", "", true}, {"UserPromptSubmit", "Edit|Write", "", true},
	} {
		if got, ok := hookMatcher(c.event, c.matcher); ok != c.ok || ok && got != c.want {
			t.Errorf("%s %s: %q, %t", c.event, c.matcher, got, ok)
		}
	}
}

// program is requirements.toml as Codex decides hosts and paths, written from what it was seen to do.
type program struct {
	Permissions map[string]map[string]any `toml:"permissions"`
	Network     struct {
		Enabled bool              `toml:"enabled"`
		Lock    bool              `toml:"managed_allowed_domains_only"`
		Domains map[string]string `toml:"domains"`
		Allowed []string          `toml:"allowed_domains"`
		Denied  []string          `toml:"denied_domains"`
	} `toml:"experimental_network"`
	Search []string `toml:"allowed_web_search_modes"`
}

func read(t *testing.T, files []harness.File) (p program) {
	t.Helper()
	for _, f := range files {
		if strings.HasSuffix(f.Dest, requirementsName) {
			if err := toml.Unmarshal(f.Content, &p); err != nil {
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

// shell answers for sandboxed commands: the proxy decides when it is on, and the profile alone when it is not.
func (p program) shell(h string) bool {
	network, _ := p.Permissions["halo-base"]["network"].(map[string]any)
	if !p.Network.Enabled {
		return network["enabled"] == true
	}
	allowed, denied := slices.Clone(p.Network.Allowed), slices.Clone(p.Network.Denied)
	for d, action := range p.Network.Domains {
		if action == "allow" {
			allowed = append(allowed, d)
		} else {
			denied = append(denied, d)
		}
	}
	if domains, _ := network["domains"].(map[string]any); network["enabled"] == true && !p.Network.Lock {
		for d := range domains {
			allowed = append(allowed, d)
		}
	}
	hit := func(l []string) bool {
		return slices.ContainsFunc(l, func(d string) bool { return domainMatch(d, h) })
	}
	return !hit(denied) && hit(allowed)
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
		version := []string{newest, "0.138.0", "0.120.0", "0.117.0", "0.90.0"}[i%5]
		at := target(t, body, policy.OSes[i%3], version)
		files, gaps := render(at)
		prog := read(t, files)
		if !at.Policy.EgressRules() && !at.Policy.Egress.Default.IsSet() {
			continue
		}
		narrower := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == harness.Egress && g.Grade == harness.None })
		for _, n := range append(names, "deep.z.test") {
			name, err := host.ParseName(n)
			if err != nil {
				t.Fatal(err)
			}
			want, got := at.Policy.Hosts.Decide(name).Allow, prog.shell(n)
			if got && !want {
				t.Fatalf("%s at %s is denied by the policy, but commands reach it\n%s", n, version, body)
			}
			if want && !got && !narrower {
				t.Fatalf("%s at %s is allowed by the policy, but commands do not reach it and no gap says so\n%s", n, version, body)
			}
			if !want && !at.Version.Less(hasNetwork) && !slices.Equal(prog.Search, []string{"disabled"}) {
				t.Fatalf("%s is denied by the policy, but the web search is on\n%s", n, body)
			}
		}
		for _, f := range check(at, files) {
			t.Fatalf("the strict reader refuses what was rendered at %s: %s %s\n%s", version, f.Pointer, f.Message, body)
		}
	}
}

// denies reports whether an entry covers a file: one without a pattern covers what is below it, a pattern only what it matches in full.
func denies(entry, file, home string) bool {
	if rest, ok := strings.CutPrefix(entry, "~/"); ok {
		entry = home + "/" + rest
	}
	if !strings.ContainsAny(entry, "*?[") {
		return file == entry || strings.HasPrefix(file, entry+"/")
	}
	return globMatch(strings.Split(entry, "/"), strings.Split(file, "/"))
}

func globMatch(pattern, segs []string) bool {
	if len(pattern) == 0 {
		return len(segs) == 0
	}
	if pattern[0] == "**" {
		return globMatch(pattern[1:], segs) || len(segs) > 0 && globMatch(pattern, segs[1:])
	}
	if len(segs) == 0 {
		return false
	}
	ok, err := filepath.Match(pattern[0], segs[0])
	return err == nil && ok && globMatch(pattern[1:], segs[1:])
}

// TestPathsLaw: whatever the policy protects, the profile denies, and what has a place of its own is denied to every profile.
func TestPathsLaw(t *testing.T) {
	const home, session = "/home/dev", "/home/dev/work"
	protected := []string{"~/.ssh", "~/.config/*/credentials", "/srv/secrets", "/srv/{a,b}/key", ".env*", "secrets/*.pem", "**/private", "conf/[ab].yaml", "/opt/x[0-9]"}
	files := []string{"/home/dev/.ssh/id", "/home/dev/.ssh", "/home/dev/.config/gcloud/credentials", "/srv/secrets/x/y", "/srv/a/key", "/srv/b/key/z", "/home/dev/work/.env",
		"/home/dev/work/sub/.env.local", "/home/dev/work/secrets/k.pem", "/home/dev/work/x/private/y", "/home/dev/work/conf/a.yaml", "/opt/x7/f", "/home/dev/work/main.go", "/srv/c/key"}
	quoted, _ := json.Marshal(protected)
	at := target(t, "sandbox: {protectedPaths: "+string(quoted)+"}\n", "linux", newest)
	out, _ := render(at)
	prog := read(t, out)
	rooms, _ := prog.Permissions["halo-base"]["filesystem"].(map[string]any)
	relative, _ := rooms[":workspace_roots"].(map[string]any)
	everywhere := textsOf(prog.Permissions["filesystem"]["deny_read"])
	covered := func(file string) bool {
		for e := range rooms {
			if rooms[e] == "deny" && denies(e, file, home) {
				return true
			}
		}
		rest, below := strings.CutPrefix(file, session+"/")
		for e := range relative {
			if below && denies(e, rest, home) {
				return true
			}
		}
		return false
	}
	hit := 0
	for _, file := range files {
		for _, item := range at.Policy.Sandbox.ProtectedPaths.Items {
			if !fspath.Matches(item.Path, file, session, home) {
				continue
			}
			hit++
			if !covered(file) {
				t.Errorf("%s is protected by %s, but the profile does not deny it", file, item.Path)
			}
			if item.Path.Kind() != fspath.Relative && !slices.ContainsFunc(everywhere, func(e string) bool { return denies(e, file, home) }) {
				t.Errorf("%s is protected by %s, but deny_read does not name it", file, item.Path)
			}
		}
		if strings.HasSuffix(file, "main.go") && covered(file) {
			t.Errorf("%s is denied although nothing protects it", file)
		}
	}
	if hit < 12 {
		t.Errorf("only %d files of the universe are protected", hit)
	}
}

// TestRules says what becomes of rules in the policy's lists, which are in the syntax of Claude Code.
func TestRules(t *testing.T) {
	for _, x := range []struct {
		in    string
		words []string
		read  []string
		ok    bool
	}{
		{in: "Bash(git push:*)", words: []string{"git", "push"}, ok: true},
		{in: "Bash(rm -rf *)", words: []string{"rm", "-rf"}, ok: true},
		{in: "Bash(npm run build)"}, {in: "Bash(git * main)"}, {in: "Bash(:*)"}, {in: `Bash(echo "x":*)`}, {in: "Bash("}, {in: "Bash"},
		{in: "Read(~/.ssh/**)", read: []string{"~/.ssh"}, ok: true},
		{in: "Read(//etc/shadow)", read: []string{"/etc/shadow"}, ok: true},
		{in: "Read(~/a/*.pem)", read: []string{"~/a/*.pem", "~/a/*.pem/**"}, ok: true},
		{in: "Read(src/x)"}, {in: "Read(/src/x)"}, {in: "Read(//*/x)"}, {in: "Read(~/{a,b/c})"}, {in: "Read(//)"},
		{in: "WebSearch", ok: true}, {in: "WebFetch", ok: true}, {in: "WebFetch(domain:x.example)"}, {in: "Edit(~/x)"}, {in: "mcp__x"}, {in: ""},
	} {
		r := &renderer{Target: target(t, minimal, "linux", newest)}
		words, why := r.rule("forbidden", x.in)
		if !slices.Equal(words, x.words) || !slices.Equal(r.denyRead, x.read) || (why == "") != x.ok {
			t.Errorf("%s: words %q, read %q, %q; want %q, %q, %v", x.in, words, r.denyRead, why, x.words, x.read, x.ok)
		}
	}
}

// TestOneSpelling: every version gets the host lists in the one form it reads, and a managed profile only where the program takes one.
func TestOneSpelling(t *testing.T) {
	const flat, table = "allowed_domains =", ".domains]"
	for version, want := range map[string]string{"0.90.0": "", "0.99.0": flat, "0.117.0": flat, "0.118.0": table, "0.137.0": table, "0.138.0": table, newest: table} {
		files, _ := render(target(t, worked, "linux", version))
		text := string(rendertest.Print(files, nil))
		for _, form := range []string{flat, table} {
			if strings.Contains(text, form) != (form == want) {
				t.Errorf("at %s the form %q is wrong, want only %q:\n%s", version, form, want, text)
			}
		}
		v, _ := harness.ParseVersion(version)
		if profile := strings.Contains(text, "halo-base"); profile == v.Less(hasProfiles) {
			t.Errorf("at %s there is a managed profile: %v", version, profile)
		}
	}
}

func TestTOML(t *testing.T) {
	o := object{{"b.c", "x\"\\\n\t\x01é"}, {"a", []any{int64(1), 1.0, true, "s"}}, {"t", object{{"inner", object{}}, {"k", inline{{"x y", []string{}}}}}},
		{"l", []object{{{"n", int64(2)}}, {}}}}
	var got map[string]any
	if err := toml.Unmarshal(o.file(), &got); err != nil {
		t.Fatalf("%v\n%s", err, o.file())
	}
	want := map[string]any{"b.c": "x\"\\\n\t\x01é", "a": []any{int64(1), 1.0, true, "s"},
		"t": map[string]any{"inner": map[string]any{}, "k": map[string]any{"x y": []any{}}}, "l": []any{map[string]any{"n": int64(2)}, map[string]any{}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back %#v\nwant %#v\n%s", got, want, o.file())
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("a", "b")
	f.Add("", "\x7f\u2028\"")
	f.Fuzz(func(t *testing.T, k, v string) {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			t.Skip()
		}
		var got map[string]any
		if err := toml.Unmarshal(object{{k, v}, {k + "t", object{{v, "x"}}}}.file(), &got); err != nil {
			t.Fatal(err)
		}
		if got[k] != v {
			t.Fatalf("read back %q, want %q", got[k], v)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("[experimental_network]\nenabled = true\n"))
	f.Add([]byte("hooks = 1\nmcp_servers = []\n[permissions]\nfilesystem = 2\n"))
	at := target(f, everything, "linux", newest)
	f.Fuzz(func(t *testing.T, data []byte) {
		check(at, []harness.File{{Dest: dirUnix + "/" + requirementsName, Content: data}, {Dest: dirUnix + "/" + configName, Content: data}})
	})
}

// TestSchema holds the network, approval and sandbox keys against the schema of the program's own report, which is as near to a published schema of
// requirements.toml as there is: it knows the same values under names in another case.
func TestSchema(t *testing.T) {
	schema := rendertest.Schema(t, "codex-0.171.0.config-requirements-read-response.schema.json")
	names := map[string]string{"allowed_approval_policies": "allowedApprovalPolicies", "allowed_sandbox_modes": "allowedSandboxModes", "allowed_web_search_modes": "allowedWebSearchModes",
		"allowed_permission_profiles": "allowedPermissionProfiles", "default_permissions": "defaultPermissions", "allow_managed_hooks_only": "allowManagedHooksOnly", "otel": "otel",
		"additional_developer_instructions": "additionalDeveloperInstructions", "check_for_update_on_startup": "checkForUpdateOnStartup", "model_provider": "modelProvider"}
	files, _ := render(target(t, everything, "linux", newest))
	for _, f := range files {
		if !strings.HasSuffix(f.Dest, requirementsName) {
			continue
		}
		var doc map[string]any
		if err := toml.Unmarshal(f.Content, &doc); err != nil {
			t.Fatal(err)
		}
		report := map[string]any{}
		for from, to := range names {
			if v, ok := doc[from]; ok {
				report[to] = v
			}
		}
		network := lookupTable(doc, "experimental_network")
		report["network"] = map[string]any{"enabled": network["enabled"], "managedAllowedDomainsOnly": network["managed_allowed_domains_only"], "domains": network["domains"]}
		if len(report) < 9 {
			t.Fatalf("only %d keys to hold against the schema", len(report))
		}
		b, err := json.Marshal(map[string]any{"requirements": report, "supportsIndependentSpeedModes": true})
		if err != nil {
			t.Fatal(err)
		}
		rendertest.Valid(t, schema, b)
	}
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

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

// TestParse holds that reading a long table in pieces answers as reading it whole does.
func TestParse(t *testing.T) {
	var long strings.Builder
	long.WriteString("a = 1\n[t.\"x y\"]\n")
	for i := range 5 * tableChunk {
		fmt.Fprintf(&long, "\"h%d.acme.example\" = \"allow\"\n", i)
	}
	for _, tail := range []string{"", "[u]\nb = [1,\n[2]]\n", "[[v]]\nc = 1\n[[v]]\nc = 2\n", "\"h3.acme.example\" = \"deny\"\n", "[t]\nz = 1\n", "s = \"\"\"\n[x]\n\"\"\"\n", "[t.\"x y\"]\n", "= 1\n"} {
		data := []byte(long.String() + tail)
		var want map[string]any
		wantErr := toml.Unmarshal(data, &want)
		got, err := parse(data)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", tail, err, wantErr)
		}
	}
	if _, ok := parsePieces([]byte(long.String())); !ok {
		t.Error("a long table is not read in pieces")
	}
}
