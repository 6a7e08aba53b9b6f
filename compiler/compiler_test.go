package compiler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const scaffold = `
apiVersion: halos.dev/v1
kind: Gateway
name: main
baseURL: https://ai.acme.example
---
apiVersion: halos.dev/v1
kind: Ring
name: ga
order: 0
profile: base
membership: {default: true}
---
apiVersion: halos.dev/v1
kind: Profile
name: base
harnesses: {claude-code: 2.1.332, codex: 0.171.0, copilot-cli: 1.0.102, gemini-cli: 0.61.0, opencode: 1.18.33, cursor-cli: 2026.11.1}
permissions: {disableBypass: true}
telemetry: {enabled: true}
`

// compile compiles the scaffold with more documents, or with more of its last one.
func compile(t testing.TB, in Input, more string) (*Compiled, []diag.Diagnostic) {
	t.Helper()
	in.FS = fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n")}, "x.yaml": {Data: []byte(scaffold + more)}}
	in.Now = now
	var diags diag.List
	c := Compile(t.Context(), in, &diags)
	return c, diags.Sorted()
}

func errorsOf(ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, fmt.Sprintf("%s %s: %s", d.Code.ID, d.Path, d.Message))
		}
	}
	return strings.Join(out, "\n")
}

// acme is the example repo with everything.
func acme(t testing.TB) fs.FS {
	t.Helper()
	fsys, err := source.Dir("../examples/acme")
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// rendered has the bytes of every file of every target, by target, system, harness and destination.
func rendered(t testing.TB, fsys fs.FS, workers int) (map[string]string, []diag.Diagnostic) {
	t.Helper()
	var diags diag.List
	c := Compile(t.Context(), Input{FS: fsys, Now: now, Keep: true, Workers: workers}, &diags)
	if s := errorsOf(diags.Sorted()); s != "" {
		t.Fatal(s)
	}
	out := map[string]string{}
	for _, target := range c.Targets {
		for _, r := range c.Plan(target).Renderings {
			for _, f := range r.Files {
				out[strings.Join([]string{target.ID, r.OS, r.Harness.ID, f.Dest}, " ")] = string(f.Content)
			}
		}
	}
	return out, diags.Sorted()
}

func same(t *testing.T, what string, a, b map[string]string) {
	t.Helper()
	if len(a) != len(b) || len(a) < 20 {
		t.Errorf("%s: %d files and %d", what, len(a), len(b))
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// TestSameBytes holds that neither the number of workers, nor the names and order of files, nor the order of lists that are sets shows in a rendered file.
func TestSameBytes(t *testing.T) {
	want, ds := rendered(t, acme(t), 1)
	for _, workers := range []int{0, 2, 7} {
		got, again := rendered(t, acme(t), workers)
		same(t, fmt.Sprint(workers, " workers"), want, got)
		if fmt.Sprint(again) != fmt.Sprint(ds) {
			t.Errorf("%d workers: the findings differ", workers)
		}
	}
	rnd := rand.New(rand.NewPCG(15, 16))
	for range 4 {
		m := fstest.MapFS{}
		n := 0
		if err := fs.WalkDir(acme(t), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(acme(t), name)
			if err != nil {
				return err
			}
			if name != policy.RootFile {
				n++
				name = fmt.Sprintf("%c/%d.yml", 'a'+rnd.IntN(26), n)
			}
			m[name] = &fstest.MapFile{Data: shuffled(t, rnd, data)}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got, _ := rendered(t, m, 0)
		same(t, "other names and orders", want, got)
	}
}

// shuffled changes the order of the documents, of the keys, and of the lists whose order says nothing.
func shuffled(t *testing.T, rnd *rand.Rand, data []byte) []byte {
	t.Helper()
	sets := []string{"allowedDomains", "deniedDomains", "presets", "protectedPaths", "writableRoots", "deny", "denied", "groups", "rings", "hosts"}
	var docs [][]byte
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if dec.Decode(&n) != nil {
			break
		}
		var walk func(n *yaml.Node)
		walk = func(n *yaml.Node) {
			if n.Kind == yaml.MappingNode {
				pairs := slices.Collect(slices.Chunk(n.Content, 2))
				rnd.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
				n.Content = slices.Concat(pairs...)
				for i := 0; i < len(n.Content); i += 2 {
					if v := n.Content[i+1]; v.Kind == yaml.SequenceNode && slices.Contains(sets, n.Content[i].Value) {
						rnd.Shuffle(len(v.Content), func(i, j int) { v.Content[i], v.Content[j] = v.Content[j], v.Content[i] })
					}
				}
			}
			for _, c := range n.Content {
				walk(c)
			}
		}
		walk(&n)
		out, err := yaml.Marshal(&n)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, out)
	}
	rnd.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	return bytes.Join(docs, []byte("---\n"))
}

// TestQuestion holds that reading only what a question needs gives the answer of the whole repo, for every ring with every unit.
func TestQuestion(t *testing.T) {
	var diags diag.List
	whole := Compile(t.Context(), Input{FS: acme(t), Now: now, NoRender: true}, &diags)
	asked, left := 0, 0
	for _, target := range whole.Targets {
		who := Who{Ring: target.Ring.Name.V}
		for _, u := range target.Units {
			who.Units = append(who.Units, u.Name.V)
		}
		for _, q := range []*policy.Question{{Units: who.Units}, {Units: who.Units, Alone: true, Ring: who.Ring}} {
			part := Compile(t.Context(), Input{FS: acme(t), Now: now, NoRender: true, Question: q}, &diags)
			other, err := part.Resolve(who)
			if err != nil {
				t.Fatal(err)
			}
			left += len(part.Repo.Left)
			for _, h := range []string{"github.com", "gist.github.com", "pypi.org", "pastebin.com", "linux.build.acme.example", "staging-registry.acme.example", "x.gitlab.com", "unlisted.example"} {
				a, errA := whole.Egress(target, "linux", h, nil)
				b, errB := part.Egress(other, "linux", h, nil)
				if errA != nil || errB != nil || a.Decision.Allow != b.Decision.Allow || a.Decision.Rule() != b.Decision.Rule() {
					t.Errorf("%s %s: %s, of the whole repo %s", target.ID, h, b.Decision.Rule(), a.Decision.Rule())
				}
				asked++
			}
		}
		if fmt.Sprint(effective.Values(target.Policy)) == "" {
			t.Error("no values")
		}
	}
	if asked < 80 || left == 0 || diags.Errors() > 0 {
		t.Errorf("%d questions, %v", asked, diags.Sorted())
	}
}

func TestResolve(t *testing.T) {
	var diags diag.List
	c := Compile(t.Context(), Input{FS: acme(t), Now: now, NoRender: true}, &diags)
	for _, row := range []struct {
		who  Who
		want string
	}{
		{Who{}, "ring3-ga"},
		{Who{Ring: "ring0"}, "ring0"},
		{Who{Units: []string{"payments"}}, "ring3-ga+payments"},
		{Who{Units: []string{"payments", "contractors", "payments"}}, "ring3-ga+contractors+payments"},
		{Who{Ring: "ring9"}, `there is no ring "ring9"; did you mean ring0?`},
		{Who{Units: []string{"payment"}}, `there is no unit "payment"; did you mean payments?`},
		{Who{Units: []string{"zzzzzzzzzz"}}, `there is no unit "zzzzzzzzzz"; there are contractors, payments`},
		{Who{Ring: "ring0", Units: []string{"contractors"}}, "unit contractors does not apply to ring ring0"},
	} {
		target, err := c.Resolve(row.who)
		got := target.ID
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%+v: %s, want %s", row.who, got, row.want)
		}
	}
	empty, _ := compile(t, Input{NoRender: true}, "---\n{apiVersion: halos.dev/v1, kind: Profile, name: other}\n")
	if _, err := empty.Resolve(Who{Ring: "ga"}); err != nil {
		t.Error(err)
	}
}

func TestPath(t *testing.T) {
	c, ds := compile(t, Input{NoRender: true}, `sandbox: {protectedPaths: ["~/.ssh", ".env*", /opt/keys, "secrets/**"]}`)
	if s := errorsOf(ds); s != "" {
		t.Fatal(s)
	}
	p := c.Resolver.Profile("base")
	for path, want := range map[string]string{
		"~/.ssh/id": "sandbox.protectedPaths ~/.ssh", "/Users/alice/.ssh/id": "sandbox.protectedPaths ~/.ssh", "/home/x/.ssh": "sandbox.protectedPaths ~/.ssh", "/root/.ssh": "sandbox.protectedPaths ~/.ssh",
		"a/b/.env.local": "sandbox.protectedPaths .env*", "./.env": "sandbox.protectedPaths .env*", "/opt/keys/x": "sandbox.protectedPaths /opt/keys", "secrets/a": "sandbox.protectedPaths secrets/**",
		"README.md": "", "~/.sshx": "", "/opt/key": "", "a/secrets/b": "", "/Users/alice/x": "",
	} {
		d, err := c.Path(p, path)
		if err != nil || d.Allow != (want == "") || want != "" && (d.Rule != want || !d.Pos.IsValid()) {
			t.Errorf("%s: %+v, %v", path, d, err)
		}
	}
	for _, path := range []string{"", "~bob/.ssh", "$HOME/.ssh", "*.pem", `C:\x`, "../x"} {
		if d, err := c.Path(p, path); err == nil {
			t.Errorf("%q: %+v", path, d)
		}
	}
}

func TestRunTests(t *testing.T) {
	const body = "egress: {allowedDomains: [ai.acme.example], presets: [vcs]}\n---\napiVersion: halos.dev/v1\nkind: PolicyTest\nname: t\ntests:\n"
	for _, row := range []struct{ test, want string }{
		{"{host: github.com, expect: allow}", "allow egress.presets vcs true"},
		{"{host: github.com, expect: allow, rule: egress.presets}", "allow egress.presets vcs true"},
		{"{host: github.com, expect: allow, rule: egress.presets vcs}", "allow egress.presets vcs true"},
		{"{host: github.com, expect: allow, rule: egress.preset}", "allow egress.presets vcs false"},
		{"{host: github.com, expect: deny}", "allow egress.presets vcs false"},
		{"{host: x.example, expect: deny, rule: egress.default}", "deny egress.default deny true"},
		{"{path: x, expect: allow}", "allow sandbox.protectedPaths none true"},
	} {
		c, ds := compile(t, Input{NoRender: true}, body+"- "+row.test+"\n")
		if s := errorsOf(ds); s != "" {
			t.Fatal(s)
		}
		got := ""
		if out, err := c.RunTests(); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(out[0].Answer, " ", out[0].Rule, " ", out[0].Passed())
			if out[0].Passed() == (out[0].Failure() != "" && !out[0].Passed()) {
				t.Errorf("%s: failure %q", row.test, out[0].Failure())
			}
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.test, got, row.want)
		}
	}
}

// TestVersionsAgree holds that every version that a document may pin is one that the tables can compare: a pin that loads and is not rendered would be silence.
func TestVersionsAgree(t *testing.T) {
	for _, v := range []string{"0.0.0", "2.1.332", "1.2.3-beta.1", "999999999.999999999.999999999", "1.2.3-0", "1.2.3-a-b.c"} {
		c, ds := compile(t, Input{}, "---\n{apiVersion: halos.dev/v1, kind: Profile, name: p, harnesses: {codex: "+v+"}}\n")
		if s := errorsOf(ds); s != "" {
			t.Errorf("%s: %s", v, s)
			continue
		}
		pin := c.Repo.Profile("p").Harnesses[0].Version
		if parsed, ok := harness.ParseVersion(pin.V); !ok || parsed.String() != v {
			t.Errorf("%s is read as %v, %v", v, parsed, ok)
		}
	}
}

// TestEveryPinIsRendered holds that every harness of a policy has a rendering for every system.
func TestEveryPinIsRendered(t *testing.T) {
	c, ds := compile(t, Input{}, "egress: {allowedDomains: [ai.acme.example]}\n")
	if s := errorsOf(ds); s != "" {
		t.Fatal(s)
	}
	target, _ := c.Target("ga")
	seen := map[string]bool{}
	for _, r := range c.Plan(target).Renderings {
		seen[r.Harness.ID+" "+r.OS] = true
		for _, f := range r.Files {
			if f.Content != nil {
				t.Errorf("%s: bytes are kept although nobody wants them", f.Dest)
			}
		}
		for _, g := range r.Gaps {
			if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool {
				return strings.HasPrefix(d.Code.ID, "HALO17") && d.Path == "harnesses."+r.Harness.ID && strings.Contains(d.Message, strings.TrimPrefix(g.Reason, r.Harness.ID+": "))
			}) {
				t.Errorf("a gap of %s on %s is not reported: %+v", r.Harness.ID, r.OS, g)
			}
		}
	}
	for _, h := range policy.Harnesses {
		for _, os := range policy.OSes {
			if !seen[h+" "+os] {
				t.Errorf("%s on %s is not rendered", h, os)
			}
		}
	}
}

// TestBad holds that a policy with an error has no plan, and that another one beside it has.
func TestBad(t *testing.T) {
	c, ds := compile(t, Input{}, `
---
{apiVersion: halos.dev/v1, kind: Profile, name: bad, extends: base, sandbox: {mode: read-only, writableRoots: [/opt/a]}}
---
{apiVersion: halos.dev/v1, kind: Ring, name: early, order: 1, profile: bad}
---
{apiVersion: halos.dev/v1, kind: Unit, name: loose, rings: [ga], overlay: {egress: {default: allow, presets: [vcs]}}}
`)
	if errorsOf(ds) == "" {
		t.Fatal("no error")
	}
	for id, want := range map[string]bool{"ga": true, "early": false, "ga+loose": false} {
		target, ok := c.Target(id)
		if !ok || (c.Plan(target) != nil) != want {
			t.Errorf("%s has a plan: %v", id, !want)
		}
	}
}

func TestRequire(t *testing.T) {
	for req, want := range map[string]bool{
		"{concept: bypass-lock, harness: claude-code, grade: enforced}":         false,
		"{concept: egress, harness: cursor-cli, grade: default}":                true,
		"{concept: sandbox, harness: opencode, os: [linux], grade: enforced}":   true,
		"{concept: sandbox, harness: claude-code, os: [linux], grade: default}": false,
	} {
		_, ds := compile(t, Input{}, "egress: {allowedDomains: [ai.acme.example]}\nsandbox: {mode: workspace-write}\nrequire: ["+req+"]\n")
		if got := strings.Contains(errorsOf(ds), codeRequired.ID); got != want {
			t.Errorf("%s is an error: %v\n%s", req, got, errorsOf(ds))
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var diags diag.List
	Compile(ctx, Input{FS: acme(t), Now: now}, &diags)
}

// simpleMark parts the root keys of simple mode from the documents over them in the inputs of FuzzCompile.
const simpleMark = "\n# over it:\n"

// FuzzCompile compiles any documents beside the scaffold, and holds what comes of them to the laws.
func FuzzCompile(f *testing.F) {
	for _, name := range []string{"profiles/base.yaml", "units/payments.yaml", "units/contractors.yaml", "rings/rings.yaml", "presets/acme-internal.yaml"} {
		data, err := os.ReadFile("../examples/acme/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("---\n" + string(data))
	}
	f.Add("egress: {allowedDomains: [ai.acme.example, '*.x.example'], deniedDomains: ['*.zip']}\nsandbox: {mode: read-only, protectedPaths: ['~/.ssh', '{a,{b,c}}', '[]x]']}\n")
	f.Add("mcp: {managedOnly: true, servers: [{name: a, command: [b, c d]}]}\nhooks: {managedOnly: true, items: [{event: Stop, command: \"a'b\\\"c\"}]}\nenv: {A: 'b'}\ninstructions: |\n  x\n")
	f.Add("---\n{apiVersion: halos.dev/v1, kind: Unit, name: u, overlay: {egress: {default: deny}}}\n---\n{apiVersion: halos.dev/v1, kind: Unit, name: v, parent: u, overlay: {egress: {allowedDomains: [ai.acme.example]}}}\n")
	for _, safety := range []string{"standard", "strict", "relaxed"} {
		f.Add("tools: {claude-code: 2.1.332, codex: {version: 0.171.0, model: code}, copilot-cli: 1.0.102}\ngateway: https://ai.acme.example\nprovider: {name: bedrock, region: eu-west-1}\n" +
			"models: {default: a, code: [openai/b, openai/c]}\nteam: [a, b@c]\nrollout: fast\nsafety: " + safety + "\negress: {allow: ['*.x.example'], deny: ['*.zip']}\n" + simpleMark +
			"apiVersion: halos.dev/v1\nkind: Profile\nname: default\nsandbox: {mode: read-only, protectedPaths: [~/x]}\n---\napiVersion: halos.dev/v1\nkind: Ring\nname: ring1-ga\nmembership: {groups: [all]}\n")
	}
	hosts := []host.Name{"ai.acme.example", "github.com", "x.githubusercontent.com", "a.x.example", "x.zip", "pypi.org", "unlisted.test", "10.1.2.3"}
	f.Fuzz(func(t *testing.T, more string) {
		lim := source.DefaultLimits
		lim.Items = 3000
		in := Input{Keep: true, Workers: 1, Limits: lim}
		c, ds := (*Compiled)(nil), []diag.Diagnostic(nil)
		if root, docs, simple := strings.Cut(more, simpleMark); simple {
			var diags diag.List
			in.FS, in.Now = fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n" + root)}, "x.yaml": {Data: []byte(docs)}}, now
			c, ds = Compile(t.Context(), in, &diags), diags.Sorted()
		} else {
			c, ds = compile(t, in, more)
		}
		for _, d := range ds {
			if d.Code == codeRecheck {
				t.Errorf("a rendered file would not hold: %s\n%s", d.Message, more)
			}
			if d.Message == "" || !d.Pos.IsValid() && d.File == "" {
				t.Errorf("a finding without a place: %+v", d)
			}
		}
		if errorsOf(ds) != "" {
			return
		}
		for _, target := range c.Targets {
			plan := c.Plan(target)
			if plan == nil {
				t.Fatalf("no error, and %s has no plan", target.ID)
			}
			for _, r := range plan.Renderings {
				for _, f := range r.Files {
					for _, never := range []string{"bypassPermissions", "danger-full-access"} {
						if bytes.Contains(f.Content, []byte(`"`+never+`"`)) {
							t.Errorf("%s of %s holds %s", f.Dest, target.ID, never)
						}
					}
					if what := check.KnownSecret(string(f.Content)); what != "" {
						t.Errorf("%s of %s holds %s", f.Dest, target.ID, what)
					}
				}
			}
			ring := c.Resolver.Profile(target.Ring.Profile.V)
			if len(c.Permits) == 0 && len(effective.Loosenings(ring, target.Policy)) > 0 {
				t.Errorf("%s loosens its ring without an error", target.ID)
			}
			for _, h := range hosts {
				if len(c.Permits) == 0 && target.Policy.Hosts.Decide(h).Allow && !ring.Hosts.Decide(h).Allow {
					t.Errorf("%s reaches %s, and its ring does not", target.ID, h)
				}
			}
			if g := c.Repo.Gateway; g.Host != "" && target.Policy.Egress.Written() && !target.Policy.Hosts.Decide(g.Host).Allow {
				t.Errorf("%s is cut off from the gateway", target.ID)
			}
		}
	})
}

// BenchmarkCompile compiles the larger example: read, resolve, check, render, read back.
func BenchmarkCompile(b *testing.B) {
	fsys := acme(b)
	for name, in := range map[string]Input{"all": {}, "no-render": {NoRender: true}, "question": {NoRender: true, Question: &policy.Question{}}} {
		b.Run(name, func(b *testing.B) {
			in.FS, in.Now = fsys, now
			b.ReportAllocs()
			for b.Loop() {
				var diags diag.List
				Compile(b.Context(), in, &diags)
				if diags.Errors() > 0 {
					b.Fatal(diags.Sorted())
				}
			}
		})
	}
}

// TestRandomPolicies renders policies made of every field at random, with values that are awkward in JSON, TOML and shells, for versions across the tables. What
// is read back must hold: a finding there is a defect of a renderer.
func TestRandomPolicies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(17, 18))
	one := func(from ...string) string { return from[rnd.IntN(len(from))] }
	some := func(from ...string) string {
		var out []string
		for _, s := range from {
			if rnd.IntN(3) == 0 {
				out = append(out, fmt.Sprintf("%q", s))
			}
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	awkward := []string{"plain", `it's "quoted"`, `back\slash`, "new\nline", "tab\there", "${VAR}", "ünï¢ode", "<&>", "'''", `"""`, "# no comment", "~/x", "a=b", "[x]", "{y}", "*", "\u2028", "𝄞"}
	bools := []string{"true", "false"}
	clean := 0
	for range 250 {
		var lines []string
		section := func(name string, keys ...string) {
			var kept []string
			for _, k := range keys {
				if rnd.IntN(2) == 0 {
					kept = append(kept, k)
				}
			}
			if len(kept) > 0 {
				lines = append(lines, name+": {"+strings.Join(kept, ", ")+"}")
			}
		}
		// A JSON text is a YAML text in quotes.
		quoted := func(s string) string {
			b, _ := json.Marshal(s)
			return string(b)
		}
		section("permissions", "mode: "+one("plan", "default", "acceptEdits", "auto"), "allow: "+some("Read", "Bash(git status:*)", "WebFetch(domain:a.example)"), "ask: "+some("Bash", "Edit(src/**)"),
			"deny: "+some("Bash(curl:*)", "WebSearch", "Read(./secrets/**)", "mcp__evil", "Write"), "sandboxRequired: "+one(bools...))
		section("sandbox", "mode: "+one("workspace-write", "read-only"), "protectedPaths: "+some("~/.ssh", ".env*", "/opt/keys", "secrets/**", "**/*.{pem,key}", "it's", "a b", "[ab]x", "{a,{b,c}}", "ü"))
		section("egress", "allowedDomains: "+one("[ai.acme.example]", "[ai.acme.example, '*.corp.example']", "['*.acme.example', x.example]"), "presets: "+some("vcs", "package-registries", "model-providers"),
			"deniedDomains: "+some("pastebin.com", "*.pastebin.com", "*.zip"))
		section("mcp", "managedOnly: "+one(bools...), "servers: [{name: a, url: 'https://x.example/mcp', headers: {Authorization: 'Bearer ${T}'}}, {name: b.c, command: [b, "+quoted(one(awkward...))+"]}]", "denied: "+some("evil", "b.c"))
		section("hooks", "managedOnly: true", "items: [{event: "+one(policy.HookEvents...)+", matcher: "+quoted(one(awkward...))+", command: "+quoted(one(awkward...))+"}]")
		section("models", "default: sonnet", "allowed: "+some("sonnet", "haiku"), "enforce: "+one(bools...))
		section("env", "A: "+quoted(one(awkward...)), "B_C: "+quoted(one(awkward...)))
		if rnd.IntN(2) == 0 {
			lines = append(lines, "instructions: "+quoted(one(awkward...)+one(awkward...)))
		}
		text := strings.Replace(scaffold, "permissions: {disableBypass: true}\n", "", 1)
		text = strings.Replace(text, "claude-code: 2.1.332, codex: 0.171.0, copilot-cli: 1.0.102, gemini-cli: 0.61.0, opencode: 1.18.33", fmt.Sprintf("claude-code: %s, codex: %s, copilot-cli: %s, gemini-cli: %s, opencode: %s",
			one("2.1.332", "2.1.100", "2.0.50", "1.0.100", "3.0.0"), one("0.171.0", "0.138.0", "0.120.0", "0.99.0", "0.77.0", "1.0.0"), one("1.0.102", "1.0.93", "1.0.92", "0.9.0"), one("0.61.0", "0.36.0", "0.20.0", "0.1.0"), one("1.18.33", "1.2.0", "1.0.0")), 1)
		// Every ring locks bypass; the section of permissions above may not say so.
		body := strings.Join(lines, "\n") + "\n"
		if strings.Contains(body, "permissions: {") {
			body = strings.Replace(body, "permissions: {", "permissions: {disableBypass: true, ", 1)
		} else {
			body += "permissions: {disableBypass: true}\n"
		}
		m := fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n")}, "x.yaml": {Data: []byte(text + body)}}
		var diags diag.List
		Compile(t.Context(), Input{FS: m, Now: now}, &diags)
		for _, d := range diags.Sorted() {
			if d.Code == codeRecheck || d.Code == codeRenderedSecret {
				t.Errorf("%s\n%s", d.Message, body)
			}
		}
		if diags.Errors() == 0 {
			clean++
		} else if strings.Contains(errorsOf(diags.Sorted()), "HALO1006") {
			t.Fatalf("%s\n%s", errorsOf(diags.Sorted()), body)
		}
		if t.Failed() {
			return
		}
	}
	if clean < 60 {
		t.Errorf("only %d of the policies are without an error: the test says little", clean)
	}
}
