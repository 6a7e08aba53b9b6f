package gemini

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

const overridden = `
harnesses:
  gemini-cli:
    version: 0.61.0
    model: pro
    overrides: {ui: {theme: GitHub, footer: {hideCWD: true}}, general: {vimMode: true, checkpointing: {enabled: true}}}
permissions: {mode: plan}
`

func TestGoldens(t *testing.T) {
	h := Harness()
	rendertest.Renders(t, h, "worked", "0.61.0", rendertest.Worked)
	rendertest.Renders(t, h, "everything", "0.61.0", rendertest.Everything)
	rendertest.Renders(t, h, "read-only", "0.61.0", "sandbox: {mode: read-only}\negress: {default: deny}\n")
	rendertest.Renders(t, h, "overrides", "0.61.0", overridden)
	rendertest.Renders(t, h, "old", "0.35.0", rendertest.Everything)
	rendertest.Renders(t, h, "nothing", "0.61.0", "{}")
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

// engine is the program's policy engine: the rule of the highest priority whose tool and pattern match decides.
type engine []struct {
	ToolName                       any
	MCPName, ArgsPattern, Decision string
	Priority                       int
}

func load(t *testing.T, files []harness.File) engine {
	t.Helper()
	var all engine
	for _, f := range files {
		if !strings.HasSuffix(f.Dest, ".toml") {
			continue
		}
		var doc struct {
			Rule engine `toml:"rule"`
		}
		if err := toml.Unmarshal(f.Content, &doc); err != nil {
			t.Fatalf("%s: %v\n%s", f.Dest, err, f.Content)
		}
		all = append(all, doc.Rule...)
	}
	return all
}

func (e engine) decide(t *testing.T, tool string, args map[string]string) string {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	best, out := -1, "default"
	for _, r := range e {
		if r.MCPName != "" || r.Priority <= best {
			continue
		}
		names, _ := r.ToolName.([]any)
		if r.ToolName != tool && !slices.Contains(names, any(tool)) {
			continue
		}
		if r.ArgsPattern != "" && !regexp.MustCompile(r.ArgsPattern).Match(text) {
			continue
		}
		best, out = r.Priority, r.Decision
	}
	return out
}

func TestFetchIsNeverLooser(t *testing.T) {
	for _, body := range append(slices.Clone(rendertest.Policies), rendertest.Everything) {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", goos, body)
			files, gaps := render(tg)
			e := load(t, files)
			for _, n := range rendertest.Hosts(tg.Policy.Hosts) {
				want := tg.Policy.Hosts.Decide(n)
				for _, prompt := range []string{"get https://" + string(n) + "/x", "HTTP://" + strings.ToUpper(string(n)), "https://u@" + string(n) + ":8443/"} {
					got := e.decide(t, "web_fetch", map[string]string{"prompt": prompt})
					denied := !want.Allow && want.Field == "egress.deniedDomains"
					switch {
					case denied && got != "deny":
						t.Errorf("%s: %q is %s, but %s denies", body, prompt, got, want.Rule())
					case !want.Allow && got == "default":
						t.Errorf("%s: %q is fetched without a question, but %s denies", body, prompt, want.Rule())
					case want.Allow && got == "deny" && !swallowed(tg, n):
						t.Errorf("%s: %q is denied, but %s allows", body, prompt, want.Rule())
					case want.Allow && got == "ask_user" && !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == harness.Fetch }):
						t.Errorf("%s: %q becomes a question and no gap says so", body, prompt)
					}
				}
			}
			rendertest.Sound(t, Harness(), tg)
		}
	}
}

// swallowed reports whether a denied name is the beginning of an allowed one, which the pattern cannot tell apart.
func swallowed(tg harness.Target, n host.Name) bool {
	for rest := string(n); ; {
		i := strings.LastIndexByte(rest, '.')
		if i < 0 {
			return false
		}
		rest = rest[:i]
		if d := tg.Policy.Hosts.Decide(host.Name(rest)); !d.Allow && d.Field == "egress.deniedDomains" {
			return true
		}
	}
}

func TestProtectedFilesAreDenied(t *testing.T) {
	const home, workspace = "/home/u", "/home/u/app"
	files := []string{"/home/u/.ssh/id", "/home/u/key.pem", "/tmp/secrets/a", workspace + "/.env", workspace + "/.env.local", workspace + "/d/.env", workspace + "/my.env", workspace + "/config/a.key",
		workspace + "/config/d/a.key", workspace + "/secrets/x", workspace + "/a/b/c", workspace + "/a/c", workspace + "/a.txt", workspace + "/x1", workspace + "/d/x2/y", workspace + "/q.q", workspace + "/it's(1)+/z"}
	for _, body := range []string{rendertest.Worked, rendertest.Everything, `sandbox: {protectedPaths: ["secrets/**", "a/**/c", "[ab].txt", "x{1,2}", "?.q", "it's(1)+", "**/c"]}`} {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", goos, body)
			rendered, gaps := render(tg)
			e := load(t, rendered)
			for _, f := range files {
				for _, r := range tg.Policy.Sandbox.ProtectedPaths.Items {
					if !fspath.Matches(r.Path, f, workspace, home) || slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Entry == r.Path.String() && g.Grade == harness.None }) {
						continue
					}
					for _, spelling := range []string{f, strings.TrimPrefix(f, workspace+"/"), strings.ReplaceAll(f, "/", `\`), strings.Replace(f, home, "~", 1)} {
						if got := e.decide(t, "read_file", map[string]string{"file_path": spelling}); got != "deny" {
							t.Errorf("%s %s: %s protects %s, read_file is %s", body, goos, r.Path, spelling, got)
						}
					}
				}
			}
			for _, open := range []string{"main.go", "my.environment", "environ", ".sshx", "docs/config.key"} {
				if got := e.decide(t, "read_file", map[string]string{"file_path": open}); got != "default" {
					t.Errorf("%s: %s is %s", body, open, got)
				}
			}
			rendertest.Sound(t, Harness(), tg)
		}
	}
}

// TestBothSpellingsAreDenied holds that a place of macOS with two names is protected under both, whichever the policy has.
func TestBothSpellingsAreDenied(t *testing.T) {
	for _, path := range []string{"/etc/q", "/private/etc/q"} {
		rendered, _ := render(rendertest.Target(t, policy.GeminiCLI, "0.61.0", "darwin", "sandbox: {protectedPaths: ["+path+"]}\n"))
		e := load(t, rendered)
		for _, file := range []string{"/etc/q/x", "/private/etc/q/x"} {
			if got := e.decide(t, "read_file", map[string]string{"file_path": file}); got != "deny" {
				t.Errorf("%s: read_file of %s is %s", path, file, got)
			}
		}
	}
}

// TestPatternsAreOnesTheProgramTakes holds every pattern to the program's own test for unsafe expressions (read in 0.61.0).
func TestPatternsAreOnesTheProgramTakes(t *testing.T) {
	nested := regexp.MustCompile(`\([^)]*[*+?{].*\)[*+?{]`)
	for _, s := range []string{"a*b?c", "{a,b}*", "(x)*", "[a-z]?", "**/x/**/y*", "x)+", "(a*)?b", "[[]", "[{]", "{a}", "a**b", strings.Repeat("long-name/", 200)} {
		for _, goos := range policy.OSes {
			p, problem := fspath.ParseProtected(s)
			if problem != nil {
				t.Fatal(s, problem)
			}
			pattern, why := pathPattern(p, goos)
			if why != "" {
				continue
			}
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("%s: %v", s, err)
			}
			if nested.MatchString(pattern) || len(pattern) > maxPattern || unsafePattern(pattern) != "" {
				t.Errorf("%s: the program refuses %s", s, pattern)
			}
		}
	}
}

func TestQuoteIsTOML(t *testing.T) {
	for _, s := range []string{"plain", `back\slash`, `it's`, `it's\d "q"`, "tab\there", "ünï", `"`, "del\x7f"} {
		var doc struct{ V string }
		if err := toml.Unmarshal(append([]byte("V = "), quote(nil, s)...), &doc); err != nil || doc.V != s {
			t.Errorf("%q reads as %q: %v", s, doc.V, err)
		}
	}
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		version string
		files   int
	}{{"0.15.3", 0}, {"0.15.4", 1}, {"0.35.3", 1}, {"0.36.0", 5}, {"0.61.0", 5}} {
		tg := rendertest.Target(t, policy.GeminiCLI, c.version, "linux", rendertest.Everything)
		files, _ := render(tg)
		if len(files) != c.files {
			t.Errorf("%s: %d files, want %d", c.version, len(files), c.files)
		}
		rendertest.Sound(t, Harness(), tg)
	}
}

func TestThereIsAlwaysAPolicyFile(t *testing.T) {
	tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", "linux", "{}")
	files, _ := render(tg)
	if !slices.ContainsFunc(files, func(f harness.File) bool { return strings.HasPrefix(f.Dest, "/etc/gemini-cli/policies/") }) {
		t.Error("the policy folder is empty, so --admin-policy would be read")
	}
}

func TestMistakes(t *testing.T) {
	tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", "linux", rendertest.Everything)
	rendertest.Edits(t, Harness(), tg, []rendertest.Edit{
		{"old flat key", `"security": {`, `"sandbox": true, "security": {`, "does not read"},
		{"admin key", `"security": {`, `"admin": {"secureModeEnabled": true}, "security": {`, "does not read"},
		{"key misspelt", `"toolSandboxing"`, `"toolSandboxingg"`, "does not read"},
		{"wrong type", `"toolSandboxing": true`, `"toolSandboxing": "yes"`, "is not true or false"},
		{"sandbox off", `"toolSandboxing": true`, `"toolSandboxing": false`, "asks for"},
		{"yolo open", `"disableYoloMode": true`, `"disableYoloMode": false`, "asks for"},
		{"core list", `"security": {`, `"tools": {"core": ["run_shell_command"]}, "security": {`, "does not read"},
		{"allowed servers", `"security": {`, `"mcp": {"allowed": ["docs"]}, "security": {`, "does not read"},
		{"trusted server", `"httpUrl"`, `"trust": true, "httpUrl"`, "does not read"},
		{"another server", `https://mcp.acme.example/docs`, `https://evil.example/docs`, "another server"},
		{"another command", `/usr/local/bin/mcp-db`, `/usr/local/bin/mcp-evil`, "another server"},
		{"other arguments", `"--read-only"`, `"--write"`, "another server"},
		{"another header", `"X-Team": "platform"`, `"X-Team": "evil"`, "another server"},
		{"server lost", `"docs": {`, `"dogs": {`, "/mcpServers/docs is missing"},
		{"another hook", `/usr/local/bin/acme-guard`, `/usr/local/bin/evil`, "does not run the policy's hooks"},
		{"hook of all tools", `"run_shell_command"`, `"read_file"`, "does not run the policy's hooks", "settings.json"},
		{"hooks can be switched off", "\"hooksConfig\": {\n    \"enabled\": true", "\"hooksConfig\": {\n    \"enabled\": false", "could switch the hooks off"},
		{"start mode", `"defaultApprovalMode": "default"`, `"defaultApprovalMode": "auto_edit"`, "is not default"},
		{"collector of the vendor", `"target": "local"`, `"otlpProtocol": "grpc"`, "/telemetry/target is not local"},
		{"reason of a rule", `denyMessage = "mcp.denied shady"`, `denyMessage = "x"`, "has no rule for mcp.denied shady"},
		{"key twice", `"enableAutoUpdate": false`, `"enableAutoUpdate": false, "enableAutoUpdate": true`, "twice"},
		{"trailing comma", `"security": {`, `"security": {,`, "refuses to start"},
		{"byte order mark", "{\n  \"advanced\"", "\xef\xbb\xbf{\n  \"advanced\"", "byte order mark"},
		{"telemetry protocol", `"http"`, `"http/protobuf"`, "want one of"},
		{"rules misspelt", "[[rule]]", "[[rules]]", "not a file of rules"},
		{"pattern misspelt", "argsPattern", "argPattern", "not a file of rules"},
		{"broken TOML", "decision = \"deny\"", "decision = deny", "not a file of rules"},
		{"bad decision", "decision = \"deny\"", "decision = \"denied\"", "is not deny or ask_user"},
		{"allow", "decision = \"ask_user\"", "decision = \"allow\"", "is not deny or ask_user"},
		{"priority missing", "priority = 910\n", "", "drops the whole file"},
		{"priority too high", "priority = 910", "priority = 1910", "drops the whole file"},
		{"denies below asks", "priority = 910", "priority = 10", "has no rule for egress.deniedDomains"},
		{"tool missing", "toolName = \"web_fetch\"\n", "", "drops the whole file"},
		{"tool unknown", "toolName = \"web_fetch\"", "toolName = \"webfetch\"", "no tool of the program"},
		{"tool of an older version", `"read_file", `, `"read_many_files", `, "no tool of the program"},
		{"flag in a pattern", "argsPattern = '(^", "argsPattern = '(?i)(^", "drops the whole file"},
		{"nested quantifier", `|$)'`, `|$)*'`, "unsafe"},
		{"case-sensitive host", "[Bb][Ll][Oo]", "blo", "has no rule for egress.deniedDomains"},
		{"denied server dropped", `mcpName = "shady"`, `mcpName = "shiny"`, "has no rule for mcp.denied"},
		{"other servers open", "priority = 100", "priority = 900", "has no rule for mcp.managedOnly"},
		{"secret", "platform", "ghp_0123456789abcdef", "a GitHub token"},
	})
}

// TestUndefinedServerIsNotAdmitted holds that the name of a server which could not be defined is not admitted either: a user's own server of the name would be.
func TestUndefinedServerIsNotAdmitted(t *testing.T) {
	tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", "linux", "mcp: {managedOnly: true, servers: [{name: one, command: [run, $HOME]}, {name: two, command: [run]}, {name: three, command: [run]}], denied: [three]}\n")
	files, gaps := render(tg)
	for _, f := range files {
		if s := string(f.Content); strings.Contains(s, `"one"`) || strings.Contains(s, "ask_user") && (!strings.Contains(s, `mcpName = "two"`) || strings.Count(s, "ask_user") != 1) {
			t.Errorf("%s:\n%s", f.Dest, s)
		}
	}
	if !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Entry == "one" }) {
		t.Error("no gap names the server")
	}
}

// TestHookMatchers holds what a matcher becomes for each kind of event.
func TestHookMatchers(t *testing.T) {
	for _, c := range []struct {
		event, matcher, want string
		ok                   bool
	}{
		{"PreToolUse", "Bash|Edit", "run_shell_command|replace", true}, {"PostToolUse", "*", "", true}, {"PreToolUse", "startup", "", false},
		{"SessionStart", "startup", "startup", true}, {"SessionStart", "startup|resume", "", false}, {"SessionStart", "Bash", "", false},
		{"Stop", "Bash", "", true}, {"UserPromptSubmit", "anything", "", true},
	} {
		if got, ok := matcher(c.event, c.matcher); ok != c.ok || ok && got != c.want {
			t.Errorf("%s %s: %q, %t", c.event, c.matcher, got, ok)
		}
	}
}

// TestUnderscores holds that a denied name with an underscore is a gap of the versions on which it was not tried.
func TestUnderscores(t *testing.T) {
	for version, want := range map[string]bool{"0.61.0": false, "0.60.0": true} {
		_, gaps := render(rendertest.Target(t, policy.GeminiCLI, version, "linux", "mcp: {denied: [k_l]}\n"))
		if got := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Entry == "k_l" }); got != want {
			t.Errorf("%s: %t, %v", version, got, gaps)
		}
	}
}

// TestGateway holds that a gateway that no setting leads to is named.
func TestGateway(t *testing.T) {
	tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", "linux", "models: {default: gemini-2.5-pro}\n")
	tg.GatewayURL = "https://ai.acme.example"
	_, gaps := render(tg)
	if !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "gateway.baseURL" && g.Grade == harness.None }) {
		t.Errorf("gaps: %v", gaps)
	}
}

func TestSchema(t *testing.T) {
	s := rendertest.Schema(t, "gemini-cli-0.61.0.settings.schema.json")
	strict := rendertest.Schema(t, "gemini-cli-0.56-nightly.settings.schema.upstream.json")
	for _, body := range append(slices.Clone(rendertest.Policies), rendertest.Everything, overridden) {
		tg := rendertest.Target(t, policy.GeminiCLI, "0.61.0", "linux", body)
		files, _ := render(tg)
		for _, f := range files {
			if strings.HasSuffix(f.Dest, ".json") {
				rendertest.Valid(t, s, f.Content)
				rendertest.Valid(t, strict, f.Content)
			}
		}
	}
}

func BenchmarkRender(b *testing.B) {
	tg := rendertest.Target(b, policy.GeminiCLI, "0.61.0", "linux", rendertest.Everything)
	for b.Loop() {
		render(tg)
	}
}
