package opencode

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

func TestGoldens(t *testing.T) {
	h := Harness()
	rendertest.Renders(t, h, "worked", "1.18.33", rendertest.Worked)
	rendertest.Renders(t, h, "everything", "1.18.33", rendertest.Everything)
	rendertest.Renders(t, h, "read-only", "1.18.33", "sandbox: {mode: read-only}\negress: {default: deny}\n")
	rendertest.Renders(t, h, "vendors", "1.18.33", "models: {default: anthropic/claude-sonnet-4-5, allowed: [anthropic/claude-sonnet-4-5, openai/gpt-5], enforce: true}\n")
	rendertest.Renders(t, h, "two", "2.0.0", rendertest.Everything)
	rendertest.Renders(t, h, "nothing", "1.18.33", "{}")
}

func TestGateway(t *testing.T) {
	tg := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", rendertest.Everything)
	tg.GatewayURL, tg.Models = "https://ai.acme.example", map[string]string{"sonnet": "claude-sonnet-4-5", "haiku": "claude-haiku-4-5"}
	files, gaps := render(tg)
	rendertest.Golden(t, "gateway", rendertest.Print(files, gaps))
	rendertest.Sound(t, Harness(), tg)
	rendertest.Edits(t, Harness(), tg, []rendertest.Edit{
		{"provider added", `"enabled_providers": [`, `"enabled_providers": ["anthropic",`, "list of the policy's providers"},
		{"model added", `"whitelist": [`, `"whitelist": ["claude-opus",`, "does not limit the models"},
		{"list emptied", `"whitelist": [
        "claude-haiku-4-5",
        "claude-sonnet-4-5"
      ]`, `"whitelist": []`, "does not limit the models"},
		{"another gateway", `"baseURL": "https://ai.acme.example"`, `"baseURL": "https://evil.example"`, "to the gateway"},
		{"model not defined", `"claude-haiku-4-5": {},`, ``, "does not define the model"},
		{"start model", `"model": "acme-gateway/claude-sonnet-4-5"`, `"model": "acme-gateway/claude-haiku-4-5"`, "/model is not"},
	})
	tg = rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", "models: {allowed: [a/b]}\n")
	tg.GatewayURL = "https://ai.acme.example"
	if _, gaps := render(tg); !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "gateway.baseURL" && g.Grade == harness.None }) {
		t.Errorf("a gateway that nothing leads to is not named: %v", gaps)
	}
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

// matches is the program's pattern match: * is any text, ? any character, a pattern that ends in " *" matches the text before it too (observed on 1.18.33).
func matches(s, pattern string) bool {
	if p, ok := strings.CutSuffix(pattern, " *"); ok && s == p {
		return true
	}
	if pattern == "" {
		return s == ""
	}
	switch pattern[0] {
	case '*':
		return matches(s, pattern[1:]) || s != "" && matches(s[1:], pattern)
	case '?':
		return s != "" && matches(s[1:], pattern[1:])
	}
	return s != "" && s[0] == pattern[0] && matches(s[1:], pattern[1:])
}

// answer is the program's decision in a map or for a whole tool: the last pattern that matches wins.
func answer(v any, s, builtin string) string {
	out := builtin
	switch v := v.(type) {
	case string:
		return v
	case jsondoc.Object:
		for _, m := range v {
			if matches(s, strings.Replace(m.Key, "~/", "/home/u/", 1)) {
				out, _ = m.Value.(string)
			}
		}
	}
	return out
}

func config(t *testing.T, files []harness.File) jsondoc.Object {
	t.Helper()
	for _, f := range files {
		if strings.HasSuffix(f.Dest, "opencode.json") {
			doc, err := jsondoc.Parse(f.Content, nil)
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}
	}
	return nil
}

// TestProtectedFilesAreDenied asks the file tools about every file that the policy protects.
func TestProtectedFilesAreDenied(t *testing.T) {
	const home, workspace = "/home/u", "/home/u/src/app"
	files := []string{"/home/u/.ssh/id", "/home/u/.ssh", "/home/u/.ssh/deep/er", "/home/u/key.pem", "/tmp/secrets", "/tmp/secrets/a/b", "/etc/hosts",
		workspace + "/.env", workspace + "/.env.local", workspace + "/sub/.env", workspace + "/sub/.envs/x", workspace + "/my.env", workspace + "/config/a.key",
		workspace + "/config/deep/a.key", workspace + "/config/a.key/x", workspace + "/main.go", workspace + "/.ssh/id"}
	for _, body := range []string{rendertest.Worked, rendertest.Everything,
		`sandbox: {protectedPaths: ["secrets/**", "**/*.key", "a?c", "[ab].txt", "x{1,2}", "one*two", "*.pem", "private"]}`} {
		tg := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", body)
		rendered, gaps := render(tg)
		perms, _ := config(t, rendered).At("permission").(jsondoc.Object)
		for _, f := range append(files, workspace+"/secrets/x", workspace+"/d/x.key", workspace+"/abc", workspace+"/a.txt", workspace+"/x1", workspace+"/d/x2/y",
			workspace+"/oneAtwo", workspace+"/d/private/x", workspace+"/d/k.pem") {
			rel, inside := strings.CutPrefix(f, workspace+"/")
			dir := f[:strings.LastIndexByte(f, '/')]
			for _, r := range tg.Policy.Sandbox.ProtectedPaths.Items {
				if !fspath.Matches(r.Path, f, workspace, home) {
					continue
				}
				named := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Entry == r.Path.String() && g.Grade == harness.None })
				var got []string
				if inside {
					got = append(got, answer(perms.At("read"), rel, "allow"), answer(perms.At("edit"), rel, "allow"))
				} else if dir != home && dir != "/tmp" {
					// The program asks about the folder, so a protected file that lies directly in an open folder is covered by read and edit below the root only.
					got = append(got, answer(perms.At("external_directory"), dir+"/*", "ask"))
				}
				for _, a := range got {
					if a != "deny" && !named {
						t.Errorf("%s: %s protects %s, the answer is %s and no gap says so", body, r.Path, f, a)
					}
				}
			}
			protected := slices.ContainsFunc(tg.Policy.Sandbox.ProtectedPaths.Items, func(r policy.FilePath) bool { return fspath.Matches(r.Path, f, workspace, home) })
			if !protected && inside && answer(perms.At("read"), rel, "allow") == "deny" && !strings.Contains(f, "/.ssh/") {
				wider := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return strings.Contains(g.Reason, "denies more than the entry") })
				if !wider {
					t.Errorf("%s: %s is denied, nothing protects it and no gap says so", body, f)
				}
			}
		}
		rendertest.Sound(t, Harness(), tg)
	}
}

func TestFetchIsNeverLooser(t *testing.T) {
	for _, body := range rendertest.Policies {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, policy.OpenCode, "1.18.33", goos, body)
			files, gaps := render(tg)
			got := answer(config(t, files).At("permission", "webfetch"), "", "allow")
			for _, n := range rendertest.Hosts(tg.Policy.Hosts) {
				want := tg.Policy.Hosts.Decide(n)
				if !want.Allow && got == "allow" {
					t.Errorf("%s: %s is fetched without a question, but %s denies", body, n, want.Rule())
				}
				if want.Allow && got == "deny" {
					t.Errorf("%s: %s cannot be fetched, but %s allows", body, n, want.Rule())
				}
			}
			if got == "ask" && !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == harness.Fetch }) {
				t.Errorf("%s: a question is no rule, and no gap says so", body)
			}
			rendertest.Sound(t, Harness(), tg)
		}
	}
}

// TestOrderIsMeaning proves that a catch-all comes first, allows before denies, and that two renderings have the same bytes.
func TestOrderIsMeaning(t *testing.T) {
	for _, body := range []string{rendertest.Worked, rendertest.Everything, "permissions: {ask: [Bash, Read], deny: ['Bash(git push:*)']}\nsandbox: {protectedPaths: [.env*]}\n"} {
		tg := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", body)
		files, _ := render(tg)
		perms, _ := config(t, files).At("permission").(jsondoc.Object)
		for _, p := range perms {
			m, _ := p.Value.(jsondoc.Object)
			rank := map[any]int{"allow": 1, "ask": 2, "deny": 3}
			for i, e := range m {
				if e.Key == "*" && i > 0 {
					t.Errorf("%s: catch-all at %d", p.Key, i)
				}
				if i > 1 && rank[e.Value] < rank[m[i-1].Value] {
					t.Errorf("%s: %s %v after %v", p.Key, e.Key, e.Value, m[i-1].Value)
				}
			}
		}
	}
	a := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", `sandbox: {protectedPaths: ["~/.ssh", ".env*", "~/.aws"]}`)
	b := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", `sandbox: {protectedPaths: ["~/.aws", "~/.ssh", ".env*"]}`)
	fa, _ := render(a)
	fb, _ := render(b)
	if !bytes.Equal(fa[0].Content, fb[0].Content) {
		t.Error("the order of a set shows in the bytes")
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"git push:*", "git push *"}, {"git push *", "git push *"}, {"git push", "git push"}, {"git * main", ""}, {"*", ""}, {"", ""}, {"{env:X}", ""},
	} {
		if got := command(c.rule); got != c.want {
			t.Errorf("command(%q) = %q, want %q", c.rule, got, c.want)
		}
	}
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{"plain", "plain", true}, {"Bearer ${TOKEN}", "Bearer {env:TOKEN}", true}, {"${A}${B}", "{env:A}{env:B}", true}, {"${A:-x}", "", false}, {"${A", "", false},
		{"{env:HOME}", "", false}, {"{file:/etc/passwd}", "", false},
	} {
		if got, ok := variables(c.in); got != c.want || ok != c.ok {
			t.Errorf("variables(%q) = %q %t", c.in, got, ok)
		}
	}
}

func TestGates(t *testing.T) {
	for _, v := range []string{"1.1.52", "2.0.0"} {
		tg := rendertest.Target(t, policy.OpenCode, v, "linux", rendertest.Everything)
		files, gaps := render(tg)
		if len(files) > 0 || len(gaps) < 15 {
			t.Errorf("%s: %d files, %d gaps", v, len(files), len(gaps))
		}
		rendertest.Sound(t, Harness(), tg)
	}
	tg := rendertest.Target(t, policy.OpenCode, "1.1.53", "linux", rendertest.Everything)
	if files, _ := render(tg); len(files) != 2 {
		t.Errorf("1.1.53: %d files", len(files))
	}
}

func TestMistakes(t *testing.T) {
	tg := rendertest.Target(t, policy.OpenCode, "1.18.33", "linux", rendertest.Everything)
	rendertest.Edits(t, Harness(), tg, []rendertest.Edit{
		{"permission misspelt", `"permission"`, `"permision"`, "does not read"},
		{"keys of OpenCode 2", `"permission"`, `"permissions"`, "does not read"},
		{"unknown tool", `"webfetch"`, `"webfetchh"`, "does not read"},
		{"webfetch as a map", `"webfetch": "ask"`, `"webfetch": {"*": "ask"}`, "is not a text"},
		{"webfetch open", `"webfetch": "ask"`, `"webfetch": "allow"`, "egress rules ask for"},
		{"action misspelt", `".env*": "deny"`, `".env*": "denied"`, "want one of"},
		{"catch-all last", `"~/.ssh/*": "deny"`, `"~/.ssh/*": "deny", "*": "ask"`, "not the first key"},
		{"allow after deny", `"~/.ssh/*": "deny"`, `"~/.ssh/*": "deny", "/opt/*": "allow"`, "stands after the denied"},
		{"catch-all that allows", `"*": "ask"`, `"*": "allow"`, "takes away the program's own questions"},
		{"folder without a star", `"~/.ssh/*": "deny"`, `"~/.ssh": "deny"`, "never matches"},
		{"home in a file pattern", `".ssh": "deny"`, `"~/.ssh": "deny"`, "never matches"},
		{"absolute file pattern", `".ssh": "deny"`, `"/home/u/.ssh": "deny"`, "never matches"},
		{"pattern dropped", `"*/.env*": "deny"`, `"*/.envx": "deny"`, "does not deny"},
		{"root added", `"/opt/build-cache/*": "allow"`, `"/opt/build-cache/*": "allow", "/*": "allow"`, "no writable root"},
		{"variable in a pattern", `"/opt/build-cache/*"`, `"{env:HOME}/*"`, "replaces"},
		{"file in a value", `"type": "remote"`, `"type": "{file:/etc/passwd}"`, "replaces"},
		{"key twice", `"share": "disabled"`, `"share": "disabled", "share": "disabled"`, "twice"},
		{"sharing on", `"share": "disabled"`, `"share": "manual"`, "want one of"},
		{"server on", `"enabled": false`, `"enabled": true`, "does not switch off"},
		{"command as a text", `"command": [
        "/usr/local/bin/mcp-db",
        "--read-only"
      ]`, `"command": "/usr/local/bin/mcp-db"`, "is not a list"},
		{"another server", `https://mcp.acme.example/docs`, `https://mcp.evil.example/docs`, "another server"},
		{"another command", `/usr/local/bin/mcp-db`, `/usr/local/bin/mcp-evil`, "another server"},
		{"another header", `{env:DOCS_TOKEN}`, `{env:OTHER_TOKEN}`, "another server"},
		{"server of another kind", `"type": "local"`, `"type": "remote"`, "another server"},
		{"server lost", `"docs": {`, `"dogs": {`, "/mcp/docs is missing"},
		{"server added", `"docs": {`, `"more": {"type": "local", "command": ["x"], "enabled": true}, "docs": {`, "does not name"},
		{"root lost", `"/opt/build-cache/*": "allow",`, ``, "which is a writable root"},
		{"question lost", `"git push *": "ask"`, `"git pull *": "ask"`, "does not ask about"},
		{"updates itself", `"autoupdate": false`, `"autoupdate": true`, "/autoupdate is not false"},
		{"not JSON", `"permission": {`, `"permission": {,`, "not JSON"},
		{"instructions not named", `/etc/opencode/halo-instructions.md`, `/etc/opencode/other.md`, "does not name the file"},
		{"instructions changed", `Never commit`, `Always commit`, "the policy's instructions"},
		{"secret", `platform`, `xoxb-0123456789ab`, "a Slack token"},
		{"command rule dropped", `"curl *"`, `"wget *"`, "does not deny"},
	})
}

func TestSchema(t *testing.T) {
	s := rendertest.Schema(t, "opencode-1.18.33.config.schema.json")
	for _, body := range append(slices.Clone(rendertest.Policies), rendertest.Everything) {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, policy.OpenCode, "1.18.33", goos, body)
			tg.GatewayURL = "https://ai.acme.example"
			files, _ := render(tg)
			for _, f := range files {
				if json.Valid(f.Content) {
					rendertest.Valid(t, s, f.Content)
				}
			}
		}
	}
}

func BenchmarkRender(b *testing.B) {
	tg := rendertest.Target(b, policy.OpenCode, "1.18.33", "linux", rendertest.Everything)
	for b.Loop() {
		render(tg)
	}
}
