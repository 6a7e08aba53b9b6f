package diff

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/source"
)

var update = flag.Bool("update", false, "rewrite goldens")

// compiled makes a side of a policy, which must have no errors.
func compiled(t testing.TB, name string, fsys fs.FS) *Side {
	t.Helper()
	var diags diag.List
	c := compiler.Compile(t.Context(), compiler.Input{FS: fsys, Keep: true, Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}, &diags)
	if diags.Errors() > 0 {
		for _, d := range diags.Sorted() {
			if d.Severity == diag.Error {
				t.Errorf("%s: %s:%d: %s: %s", name, c.Repo.Files.Name(d.Pos), d.Pos.Line(), d.Path, d.Message)
			}
		}
		t.FailNow()
	}
	// One code stands for all warnings, so that a new check changes no golden.
	warnings := slices.DeleteFunc(diags.Sorted(), func(d diag.Diagnostic) bool { return d.Code.ID != "HALO1602" })
	return Policy(Name{Kind: "directory", Name: name}, c, warnings)
}

// docs makes a repo with a gateway, a default ring ga with profile p, and more documents in one-line form: KIND NAME BODY.
func docs(profile string, more ...string) fs.FS {
	var b strings.Builder
	put := func(kind, name, body string) {
		if body != "" {
			body = ", " + body
		}
		fmt.Fprintf(&b, "---\n{apiVersion: halos.dev/v1, kind: %s, name: %s%s}\n", kind, name, body)
	}
	gateway := "baseURL: 'https://ai.acme.example'"
	ring := "order: 3, profile: p, membership: {default: true}"
	for _, m := range more {
		f := strings.SplitN(m, " ", 3)
		switch {
		case f[0] == "Gateway":
			gateway = f[2]
		case f[0] == "Ring" && f[1] == "ga":
			ring = f[2]
		default:
			put(f[0], f[1], f[2])
		}
	}
	put("Gateway", "main", gateway)
	if ring != "none" {
		put("Ring", "ga", ring)
	}
	put("Profile", "p", profile)
	return fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n")}, "x.yaml": {Data: []byte(b.String())}}
}

const (
	locked  = "permissions: {disableBypass: true}"
	pinned  = "harnesses: {claude-code: 2.1.332}, "
	open    = pinned + locked
	listed3 = "egress: {allowedDomains: [ai.acme.example, a.example, b.example], deniedDomains: [d.example]}, "
)

func compare(t *testing.T, old, new fs.FS) *Report {
	t.Helper()
	r, err := Compare(compiled(t, "old", old), compiled(t, "new", new))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// brief lists what a report says: each group with its differences.
func brief(r *Report) string {
	var out []string
	for _, g := range r.Groups {
		s := string(g.Verdict) + " " + strings.Join(g.Targets, " ")
		if g.Status != "" {
			s += " (" + g.Status + " " + g.Against + ")"
		}
		for _, d := range g.Looser {
			s += "; " + d.Witness
			if d.Undecided {
				s += "?"
			}
		}
		for _, d := range g.Tighter {
			s += "; tighter " + d.Witness
		}
		for _, v := range g.Changed {
			s += "; changed " + v.text()
		}
		out = append(out, s)
	}
	for _, m := range r.People {
		out = append(out, m.text())
	}
	for _, p := range r.Pins {
		out = append(out, fmt.Sprintf("pin %s %s -> %s", p.Harness, p.Old, p.New))
	}
	for _, l := range slices.Concat(r.Presets, r.Exceptions) {
		out = append(out, l.text())
	}
	return strings.Join(out, "\n")
}

func TestCompare(t *testing.T) {
	base := listed3 + open
	for _, c := range []struct {
		name     string
		old, new fs.FS
		want     string
	}{
		{"the same", docs(base), docs(base), "SAME ga"},
		{"order and words", docs(base), docs("egress: {default: deny, deniedDomains: [d.example], allowedDomains: [b.example, ai.acme.example, a.example, a.example]}, harnesses: {claude-code: {version: 2.1.332}}, " + locked), "SAME ga"},
		{"a profile between", docs(base), docs("extends: q", "Profile q "+base), "SAME ga"},
		{"the other spelling of the mode", docs("sandbox: {mode: workspace-write}, " + open), docs(pinned + "permissions: {sandbox: workspace-write, disableBypass: true}"), "SAME ga"},
		{"a preset in other words", docs("egress: {allowedDomains: [ai.acme.example], presets: [x]}, "+open, "Preset x hosts: [a.example]"), docs("egress: {allowedDomains: [a.example, ai.acme.example]}, " + open), "SAME ga\nx (gone): -a.example"},
		{"a wider entry for a narrow one", docs("egress: {allowedDomains: [ai.acme.example, x.a.example]}, " + open), docs("egress: {allowedDomains: [ai.acme.example, '*.a.example']}, " + open),
			"LOOSER ga; host any.a.example: deny -> allow; changed egress.allowedDomains: x.a.example -> none"},
		{"an entry that is covered", docs("egress: {allowedDomains: [ai.acme.example, '*.a.example']}, " + open), docs("egress: {allowedDomains: [ai.acme.example, '*.a.example', x.a.example]}, " + open),
			"CHANGED ga; changed egress.allowedDomains: none -> x.a.example"},
		{"both ways", docs(base), docs("egress: {allowedDomains: [ai.acme.example, c.example]}, " + open),
			"LOOSER ga; host c.example: deny -> allow; host d.example: no longer on the denied list; tighter host a.example: allow -> deny; tighter host b.example: allow -> deny"},
		{"one more denied", docs(base), docs("egress: {allowedDomains: [ai.acme.example, a.example, b.example], deniedDomains: [d.example, b.example]}, " + open), "TIGHTER ga; tighter host b.example: allow -> deny"},
		{"the last allowed host", docs("egress: {allowedDomains: [ai.acme.example]}, sandbox: {mode: workspace-write}, " + open), docs("egress: {allowedDomains: []}, sandbox: {mode: workspace-write}, " + open),
			"LOOSER ga; host example.com: deny -> allow; changed egress.allowedDomains: ai.acme.example -> none"},
		{"locks and modes", docs("sandbox: {mode: read-only}, hooks: {managedOnly: true}, " + pinned + "permissions: {disableBypass: true, mode: plan}"), docs("sandbox: {mode: workspace-write}, mcp: {managedOnly: true}, " + open),
			"LOOSER ga; sandbox mode: read-only -> workspace-write; hooks.managedOnly: true -> false; permission mode: plan -> default; tighter mcp.managedOnly: false -> true"},
		{"ask rules", docs(open), docs(pinned + "permissions: {disableBypass: true, ask: [Read]}"), "LOOSER ga; permissions.ask Read: new ask rule"},
		{"ask rules, back", docs(pinned + "permissions: {disableBypass: true, ask: [Read]}"), docs(open), "TIGHTER ga; tighter permissions.ask Read: ask rule is gone"},
		{"instructions", docs(open), docs("instructions: Be kind., " + open), "CHANGED ga; changed instructions: none -> Be kind."},
		{"telemetry off", docs("telemetry: {enabled: true, otlpEndpoint: 'https://t.example'}, " + open), docs(open), "LOOSER ga; telemetry: sent -> not sent; changed telemetry.otlpEndpoint: https://t.example -> none"},
		{"telemetry elsewhere", docs("telemetry: {enabled: true, otlpEndpoint: 'https://t.example'}, " + open), docs("telemetry: {enabled: true, otlpEndpoint: 'https://u.example'}, " + open),
			"LOOSER ga; telemetry.otlpEndpoint: https://t.example -> https://u.example?"},
		{"prompts in telemetry", docs("telemetry: {enabled: true, otlpEndpoint: 'https://t.example'}, " + open), docs("telemetry: {enabled: true, logPrompts: true, otlpEndpoint: 'https://t.example'}, " + open),
			"LOOSER ga; prompts in telemetry: left out -> included"},
		{"a variable", docs("env: {A: x}, " + open), docs("env: {A: y, B: z}, " + open), "LOOSER ga; env.A: x -> y?; env.B: none -> z?"},
		{"hooks", docs("hooks: {managedOnly: true, items: [{event: Stop, command: /usr/bin/a}]}, " + open), docs("hooks: {managedOnly: true, items: [{event: Stop, command: /usr/bin/b}]}, " + open),
			"LOOSER ga; hooks.items event=Stop command=/usr/bin/b: none -> run?; hooks.items event=Stop command=/usr/bin/a: run -> none?"},
		{"order of hooks", docs("hooks: {managedOnly: true, items: [{event: Stop, command: /usr/bin/a}, {event: Stop, command: /usr/bin/b}]}, " + open), docs("hooks: {managedOnly: true, items: [{event: Stop, command: /usr/bin/b}, {event: Stop, command: /usr/bin/a}]}, " + open),
			"LOOSER ga; order of hooks: event=Stop command=/usr/bin/a, event=Stop command=/usr/bin/b -> event=Stop command=/usr/bin/b, event=Stop command=/usr/bin/a?"},
		{"an override", docs("harnesses: {claude-code: {version: 2.1.332, overrides: {cleanupPeriodDays: 10}}}, " + locked), docs("harnesses: {claude-code: {version: 2.1.332, overrides: {cleanupPeriodDays: 20}}}, " + locked),
			"LOOSER ga; harnesses.claude-code.overrides.cleanupPeriodDays: 10 -> 20?"},
		{"the gateway", docs(open), docs(open, "Gateway main baseURL: 'https://ai2.acme.example'"), "LOOSER ga; gateway: https://ai.acme.example -> https://ai2.acme.example?"},
		{"a harness less", docs("harnesses: {claude-code: 2.1.332, codex: 0.171.0}, " + locked), docs(open), "LOOSER ga; harness codex: managed -> not managed\npin codex 0.171.0 -> "},
		{"a harness more", docs(open), docs("harnesses: {claude-code: 2.1.332, codex: 0.171.0}, " + locked), "TIGHTER ga; tighter harness codex: not managed -> managed\npin codex  -> 0.171.0"},
		{"a version that holds less", docs("models: {allowed: [a]}, harnesses: {claude-code: 2.1.332}, " + locked), docs("models: {allowed: [a]}, harnesses: {claude-code: 1.0.0}, " + locked),
			"LOOSER ga; models of claude-code on darwin, linux, windows: enforced -> default; version-pin of claude-code on darwin, linux, windows: enforced -> none\npin claude-code 2.1.332 -> 1.0.0"},
		{"a version that holds more", docs("models: {allowed: [a]}, harnesses: {claude-code: 1.0.0}, " + locked), docs("models: {allowed: [a]}, harnesses: {claude-code: 2.1.332}, " + locked),
			"TIGHTER ga; tighter models of claude-code on darwin, linux, windows: default -> enforced; tighter version-pin of claude-code on darwin, linux, windows: none -> enforced\npin claude-code 1.0.0 -> 2.1.332"},
		{"a server", docs("mcp: {managedOnly: true, servers: [{name: a, command: [x]}]}, " + open), docs("mcp: {managedOnly: true, servers: [{name: a, command: [x]}, {name: b, command: [y]}]}, " + open), "LOOSER ga; MCP server b: blocked -> allowed"},
		{"a header", docs("mcp: {managedOnly: true, servers: [{name: a, url: 'https://a.example', headers: {X: a}}]}, " + open), docs("mcp: {managedOnly: true, servers: [{name: a, url: 'https://a.example', headers: {X: b}}]}, " + open),
			"CHANGED ga; changed mcp.servers: name=a url=https://a.example headers.X=a -> name=a url=https://a.example headers.X=b"},
		{"a profile of another name", docs(open), docs(open, "Ring ga order: 3, profile: q, membership: {default: true}", "Profile q "+open), "CHANGED ga; changed profile: p -> q"},
		// Sandboxes: what a resolved block and a composed policy.yaml allow.
		{"a sandbox", docs("sandbox: {policy: s}, "+base, "Sandbox s policy: {agents: [claude], network: {hosts: [a.example]}}"), docs("sandbox: {policy: s}, "+base, "Sandbox s policy: {agents: [claude], network: {hosts: [a.example, b.example]}}"), "CHANGED ga"},
		{"a sandbox gone", docs("sandbox: {policy: s}, "+base, "Sandbox s policy: {agents: [claude]}"), docs(base), "LOOSER ga; sandbox: s -> none; openshell claude: has a policy.yaml -> has none"},
		{"a sandbox new", docs(base), docs("sandbox: {policy: s}, "+base, "Sandbox s policy: {agents: [claude]}"), "TIGHTER ga; tighter sandbox: none -> s; tighter openshell claude: has none -> has a policy.yaml"},
		{"another pack", docs("sandbox: {policy: s}, "+base, "Sandbox s pack: strict"), docs("sandbox: {policy: s}, "+base, "Sandbox s pack: open"), "LOOSER ga; sandbox profile: strict -> open"},
		{"another pack, back", docs("sandbox: {policy: s}, "+base, "Sandbox s pack: open"), docs("sandbox: {policy: s}, "+base, "Sandbox s pack: strict"), "TIGHTER ga; tighter sandbox profile: open -> strict"},
		// New and gone targets are compared with what their people had or have.
		{"a new unit", docs(base), docs(base, "Unit u overlay: {egress: {deniedDomains: [b.example]}}"), "TIGHTER ga+u (new ga); tighter host b.example: allow -> deny\nSAME ga"},
		{"a unit gone", docs(base, "Unit u overlay: {egress: {deniedDomains: [b.example]}}"), docs(base), "LOOSER ga+u (gone ga); host b.example: deny -> allow\nSAME ga"},
		{"a new ring", docs(base), docs(base, "Ring early order: 1, profile: q, membership: {groups: [x]}", "Profile q "+open), "LOOSER early (new ga); host example.com: deny -> allow; host d.example: deny -> allow; sandbox mode: workspace-write -> off; changed profile: p -> q; changed egress.allowedDomains: a.example, ai.acme.example, b.example -> none\nSAME ga"},
		{"a ring gone", docs(base, "Ring early order: 1, profile: p, membership: {groups: [x]}"), docs(base), "SAME ga\nSAME early (gone ga)"},
		{"a unit in a new ring", docs(base, "Unit u overlay: {egress: {deniedDomains: [b.example]}}"), docs(base, "Unit u overlay: {egress: {deniedDomains: [b.example]}}", "Ring early order: 1, profile: p, membership: {groups: [x]}"),
			"SAME ga ga+u\nSAME early (new ga)\nSAME early+u (new ga+u)"},
		// People.
		{"who is in a unit", docs(base, "Unit u membership: {groups: [x]}, overlay: {egress: {deniedDomains: [b.example]}}"), docs(base, "Unit u membership: {groups: [y]}, overlay: {egress: {deniedDomains: [b.example]}}"),
			"SAME ga ga+u\nunit u: +group y -group x [LOOSER] who leaves: host b.example: deny -> allow"},
		{"more in a unit", docs(base, "Unit u membership: {groups: [x]}, overlay: {egress: {deniedDomains: [b.example]}}"), docs(base, "Unit u membership: {groups: [x, y]}, overlay: {egress: {deniedDomains: [b.example]}}"),
			"SAME ga ga+u\nunit u: +group y [TIGHTER]"},
		{"a larger ring", docs(base, "Ring early order: 1, profile: q, membership: {percent: 5}", "Profile q extends: p, egress: {allowedDomains: [ai.acme.example]}"), docs(base, "Ring early order: 1, profile: q, membership: {percent: 10.5}", "Profile q extends: p, egress: {allowedDomains: [ai.acme.example]}"),
			"SAME early ga\nring early: +10.5 percent [TIGHTER]"},
		{"a smaller ring", docs(base, "Ring early order: 1, profile: q, membership: {users: [a, b]}", "Profile q extends: p, egress: {allowedDomains: [ai.acme.example]}"), docs(base, "Ring early order: 1, profile: q, membership: {users: [b]}", "Profile q extends: p, egress: {allowedDomains: [ai.acme.example]}"),
			"SAME early ga\nring early: -user a [LOOSER] who leaves: host a.example: deny -> allow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brief(compare(t, c.old, c.new)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// random makes a profile from few words, so that two of them meet.
func random(rnd *rand.Rand) string {
	pick := func(max int, from ...string) string {
		var out []string
		for range rnd.IntN(max + 1) {
			out = append(out, "'"+from[rnd.IntN(len(from))]+"'")
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	either := func(a, b string) string {
		if rnd.IntN(2) == 0 {
			return a
		}
		return b
	}
	hosts := []string{"a.example", "*.a.example", "x.a.example", "b.example", "*.b.example"}
	common := []string{"egress: {allowedDomains: [ai.acme.example, a.example]}", "sandbox: {mode: workspace-write}", "permissions: {disableBypass: true}", "mcp: {managedOnly: false}", "harnesses: {claude-code: 2.1.332}"}
	out := []string{
		"egress: {allowedDomains: " + strings.Replace(pick(3, hosts...), "[", "[ai.acme.example, ", 1) + ", deniedDomains: " + pick(2, hosts...) + "}",
		"sandbox: {mode: " + either("read-only", "workspace-write, writableRoots: "+pick(1, "/opt/a", "/opt/a/b", "/opt/b")) + ", protectedPaths: " + pick(2, "~/.ssh", "~/.ssh/keys", "*.pem", "/opt/c") + "}",
		"permissions: {disableBypass: true, sandboxRequired: " + either("true", "false") + ", deny: " + pick(2, "Read", "Bash(x)") + ", mode: " + either("plan", "default") + "}",
		"mcp: {managedOnly: " + either("true", "false") + "}",
		"harnesses: {claude-code: 2.1.332" + either(", codex: 0.171.0", "") + "}",
	}
	for i := range out {
		// Most sections are common, so that some pairs differ in one direction only.
		if rnd.IntN(4) > 0 {
			out[i] = common[i]
		}
	}
	if rnd.IntN(6) == 0 {
		out = append(out, "env: {A: "+either("x", "y")+"}")
	}
	if rnd.IntN(4) == 0 {
		out = append(out, "instructions: "+either("x", "y"))
	}
	return strings.Join(out, ", ")
}

// TestLaws holds comparisons of random policies to their laws: a policy is the same as itself; a target is LOOSER exactly when there is a witness; what got
// looser one way got tighter the other way, by the same witness turned round.
func TestLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 22))
	const n = 24
	var sides []*Side
	var texts []string
	for i := range n {
		texts = append(texts, random(rnd))
		sides = append(sides, compiled(t, fmt.Sprint(i), docs(texts[i])))
	}
	seen := map[Verdict]int{}
	for i, a := range sides {
		for j, b := range sides {
			there, err := Compare(a, b)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Compare(b, a)
			if err != nil {
				t.Fatal(err)
			}
			g, h := there.Groups[0], back.Groups[0]
			seen[g.Verdict]++
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("%s\nold %s\nnew %s\n%s\n%s", fmt.Sprintf(format, args...), texts[i], texts[j], brief(there), brief(back))
			}
			if i == j && there.Verdict != Same {
				fail("a policy is not the same as itself")
			}
			if (g.Verdict == Looser) != (len(g.Looser) > 0) {
				fail("verdict %s with %d witnesses", g.Verdict, len(g.Looser))
			}
			comparator := len(effective.Loosenings(a.targets[0].policy, b.targets[0].policy))
			if comparator > 0 && g.Verdict != Looser {
				fail("the comparator finds %d loosenings", comparator)
			}
			for _, d := range g.Looser {
				if d.Undecided {
					if !slices.ContainsFunc(h.Looser, func(e Difference) bool { return e.Undecided && e.Field == d.Field }) {
						fail("%s is undecided one way only", d.Witness)
					}
				} else if !slices.ContainsFunc(h.Tighter, func(e Difference) bool { return e.Witness == reverse(d.Witness) }) {
					fail("%s is not tighter the other way", d.Witness)
				}
				if host, ok := strings.CutPrefix(d.Witness, "host "); ok && strings.HasSuffix(host, ": deny -> allow") {
					checkHost(t, strings.TrimSuffix(host, ": deny -> allow"), a, b)
				}
			}
			if g.Verdict == Looser && len(g.Tighter) == 0 && !slices.ContainsFunc(g.Looser, func(d Difference) bool { return d.Undecided }) && h.Verdict != Tighter {
				fail("LOOSER and nothing tighter, and %s the other way", h.Verdict)
			}
			if g.Verdict == Tighter && h.Verdict != Looser {
				fail("TIGHTER, and %s the other way", h.Verdict)
			}
			if (g.Verdict == Changed || g.Verdict == Same) && h.Verdict != g.Verdict {
				fail("%s, and %s the other way", g.Verdict, h.Verdict)
			}
		}
	}
	if seen[Looser] < 50 || seen[Tighter] < 10 || seen[Same] < n {
		t.Errorf("%v: the test says little", seen)
	}
}

func checkHost(t *testing.T, name string, old, new *Side) {
	t.Helper()
	ask := func(s *Side) bool {
		e, err := s.compiled.Egress(s.compiled.Targets[0], "linux", name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Decision.Allow
	}
	if ask(old) || !ask(new) {
		t.Errorf("false witness %s", name)
	}
}

// TestGoldens holds the three forms to their goldens, for the policies in testdata/old and testdata/new.
func TestGoldens(t *testing.T) {
	side := func(name string) *Side {
		fsys, err := source.Dir(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return compiled(t, name, fsys)
	}
	old, new := side("old"), side("new")
	for _, c := range []struct {
		name     string
		old, new *Side
	}{{"forward", old, new}, {"backward", new, old}, {"same", old, old}} {
		r, err := Compare(c.old, c.new)
		if err != nil {
			t.Fatal(err)
		}
		var text, markdown, js bytes.Buffer
		if err := r.Text(&text, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Markdown(&markdown); err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(&js)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
		for ext, got := range map[string]string{"txt": text.String(), "md": markdown.String(), "json": js.String()} {
			file := filepath.Join("testdata", c.name+"."+ext)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != got {
				t.Errorf("%s is not what is printed; run go test ./artifacts/diff -update and look at the difference\n%s", file, got)
			}
		}
	}
}

// TestDeterministic compares the same two policies many times.
func TestDeterministic(t *testing.T) {
	a := docs(listed3+open, "Unit u overlay: {egress: {deniedDomains: [b.example]}}", "Ring early order: 1, profile: p, membership: {groups: [x]}")
	b := docs("env: {A: a, B: b, C: c}, hooks: {managedOnly: true, items: [{event: Stop, command: /usr/bin/a}, {event: Stop, command: /usr/bin/b}]}, "+open, "Unit v overlay: {egress: {deniedDomains: [b.example]}}")
	first, _ := json.Marshal(compare(t, a, b))
	for range 8 {
		if again, _ := json.Marshal(compare(t, a, b)); !bytes.Equal(first, again) {
			t.Fatalf("two runs differ:\n%s\n%s", first, again)
		}
	}
}

func TestReverse(t *testing.T) {
	for in, want := range map[string]string{
		"host a.example: deny -> allow":                "host a.example: allow -> deny",
		"path /a: b -> c: protected -> not protected":  "path /a: b -> c: not protected -> protected",
		"host a.example: no longer on the denied list": "host a.example: now on the denied list",
		"permissions.ask a: new ask rule":              "permissions.ask a: ask rule is gone",
		"models: listed only -> any":                   "models: any -> listed only",
		"gateway: https://a -> none":                   "gateway: none -> https://a",
	} {
		if got := reverse(in); got != want {
			t.Errorf("%s turned round is %s, want %s", in, got, want)
		}
	}
}

func TestRange(t *testing.T) {
	for in, want := range map[string]string{
		"a..b": "a b false true", "a...b": "a b true true", "..b": "HEAD b false true", "a..": "a HEAD false true", "..": "HEAD HEAD false true",
		"a": "  false false", "a..b..c": "a b..c false false", "a....b": "a .b true true",
	} {
		from, to, mergeBase, ok := Range(in)
		if got := fmt.Sprint(from, " ", to, " ", mergeBase, " ", ok); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}

// TestMarkdownIsSafe holds that no text of a policy can leave its code span, make a table cell or mention anybody.
func TestMarkdownIsSafe(t *testing.T) {
	for _, s := range []string{"`", "a``b", "a|b", "<img>", "@everybody", "\x1b[31m", "a\nb", "\u202e"} {
		got := cell(s)
		if strings.ContainsAny(got, "\n\x1b\u202e") || !strings.HasPrefix(got, "`") || !strings.HasSuffix(got, "`") || strings.Contains(strings.ReplaceAll(got, `\|`, ""), "|") {
			t.Errorf("%q becomes %q", s, got)
		}
		fence := got[:strings.IndexFunc(got, func(r rune) bool { return r != '`' })]
		if strings.Count(got, fence) != 2 && strings.Contains(s, "`") {
			t.Errorf("%q becomes %q, which ends early", s, got)
		}
	}
	if got := inline("*a* <b> [c](d)"); got != `\*a\* \<b\> \[c\](d)` {
		t.Error(got)
	}
}
