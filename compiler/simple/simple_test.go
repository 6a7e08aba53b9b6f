package simple

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func load(t testing.TB, fsys fs.FS) *policy.Repo {
	t.Helper()
	var diags diag.List
	r := policy.Load(t.Context(), fsys, policy.Options{}, &diags)
	for _, d := range diags.Sorted() {
		if d.Severity == diag.Error {
			t.Fatalf("%s:%d: %s", r.Files.Name(d.Pos), d.Pos.Line(), d.Message)
		}
	}
	return r
}

// apply returns a repo with changes.
func apply(repo fstest.MapFS, changes []Change) fstest.MapFS {
	out := maps.Clone(repo)
	for _, c := range changes {
		out[c.Name] = &fstest.MapFile{Data: c.Data, Mode: 0o644}
	}
	return out
}

// meaning is everything that a repo comes to: every target with its policy and every byte of its files, the rings' people, the gateway.
func meaning(t testing.TB, fsys fs.FS) string {
	t.Helper()
	var diags diag.List
	c := compiler.Compile(t.Context(), compiler.Input{FS: fsys, Now: now, Keep: true}, &diags)
	for _, d := range diags.Sorted() {
		if d.Severity == diag.Error {
			t.Fatalf("%s:%d: %s %s: %s", c.Repo.Files.Name(d.Pos), d.Pos.Line(), d.Code.ID, d.Path, d.Message)
		}
	}
	var out strings.Builder
	for _, target := range c.Targets {
		fmt.Fprintf(&out, "%s %x\n", target.ID, target.Policy.Digest())
		for _, r := range c.Plan(target).Renderings {
			for _, f := range r.Files {
				fmt.Fprintf(&out, "%s %s %s\n%s\n", r.OS, r.Harness.ID, f.Dest, f.Content)
			}
		}
	}
	for _, g := range c.Repo.Rings {
		text, err := print(ring(g, silent))
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	if g := c.Repo.Gateway; g != nil {
		text, err := print(gateway(g, silent))
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	return out.String()
}

// overlays are documents that lie over what simple mode makes.
var overlays = map[string]string{
	"nothing": "",
	"profile": `# Ours.
apiVersion: halos.dev/v1
kind: Profile
name: default
harnesses:
  claude-code: 2.1.330 # one behind
  gemini-cli: {version: 0.61.0, overrides: {ui: {theme: dark}}}
permissions: {sandbox: read-only, deny: ["Bash(rm:*)"]}
sandbox:
  # More than the preset.
  protectedPaths:
    - ~/.ssh # again
    - "~/.kube/"
    - '~/.npmrc'
egress:
  deniedDomains: ["*.zip", pastebin.com]
instructions: |
  Be kind.

  And brief.
env: {EDITOR: vi}
hooks:
  managedOnly: true
  items: [{event: Stop, command: /opt/acme/stop}]
`,
	"gateway": `apiVersion: halos.dev/v1
kind: Gateway
name: main
engine: kong
protocols: {codex: openai-responses}
models:
  fast: {upstream: own, model: small}
  default: {targets: [{upstream: own, model: a}, {upstream: own, model: b, priority: 1}]}
upstreams:
  own: {url: https://models.acme.example, kind: orchestrator}
`,
	"rings": `---
# The team, and nobody else.
apiVersion: halos.dev/v1
kind: Ring
name: ring0-team
membership: {users: [ann@acme.example]}
--- # and the last
{apiVersion: halos.dev/v1, kind: Unit, name: payments, overlay: {egress: {default: deny, allowedDomains: [ai.acme.example]}}}
---
apiVersion: halos.dev/v1
kind: Ring
name: extra
order: 40
profile: extra
membership: {percent: 12.5}
---
apiVersion: halos.dev/v1
kind: Profile
name: extra
extends: default
`,
}

// TestEject holds that a repo means the same before and after it was ejected, and after every change on the way, for every preset and every overlay.
func TestEject(t *testing.T) {
	more := []string{"", "egress: {deny: [paste.example]}\n", "telemetry: https://otel.acme.example:4318\nteam: [platform, bob@acme.example]\nidentity: {adminGroups: [admins]}\n" +
		"provider: openai\nmodels: {default: anthropic/claude, fast: [anthropic/haiku, anthropic/old]}\negress:\n  allow: ['*.acme.example', ai.acme.example]\n"}
	for _, safety := range []string{"", "standard", "strict", "relaxed"} {
		for _, rollout := range []string{"", "fast", "standard", "careful"} {
			for name, over := range overlays {
				text := "# The organization.\norg: acme # and no other\n\ntools:\n  claude-code: 2.1.332\n  # The other one.\n  opencode: 1.18.33\ngateway: https://ai.acme.example\n"
				if safety != "" {
					text += "# How much.\nsafety: " + safety + "\n"
				}
				if rollout != "" {
					text += "rollout: " + rollout + " # steps\n"
				}
				text += "lifetime: 90d\n" + more[(len(safety)+len(rollout)+len(name))%len(more)]
				repo := fstest.MapFS{policy.RootFile: {Data: []byte(text)}}
				if over != "" {
					repo["over/all.yaml"] = &fstest.MapFile{Data: []byte(over)}
				}
				t.Run(safety+"/"+rollout+"/"+name, func(t *testing.T) {
					r := load(t, repo)
					e, err := Eject(t.Context(), repo, r)
					if err != nil {
						t.Fatal(err)
					}
					want := meaning(t, repo)
					for i := range e.Changes {
						got := apply(repo, e.Changes[:i+1])
						if m := meaning(t, got); m != want {
							t.Fatalf("%s: after %s:\n%s\nwas\n%s", text, e.Changes[i].Name, m, want)
						}
						// A run that was killed here can be run again.
						if i != 0 || len(e.Changes) == 1 {
							continue
						}
						again, err := Eject(t.Context(), got, load(t, got))
						if err != nil {
							t.Fatalf("again after %s: %v", e.Changes[i].Name, err)
						}
						if m := meaning(t, apply(got, again.Changes)); m != want {
							t.Errorf("again after %s:\n%s", e.Changes[i].Name, m)
						}
					}
					done := apply(repo, e.Changes)
					if _, err := Eject(t.Context(), done, load(t, done)); err != ErrNotSimple {
						t.Errorf("ejected twice: %v", err)
					}
					root := string(done[policy.RootFile].Data)
					for _, line := range strings.SplitAfter(text, "\n") {
						if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "org") || strings.HasPrefix(line, "lifetime") || strings.HasPrefix(line, "identity") {
							if !strings.Contains(root, line) {
								t.Errorf("halos.yaml lost %q:\n%s", line, root)
							}
						}
					}
					if over != "" {
						for comment := range strings.SplitSeq(over, "\n") {
							if _, c, ok := strings.Cut(comment, "# "); ok && !bytes.Contains(done["over/all.yaml"].Data, []byte(c)) {
								t.Errorf("the comment %q is lost:\n%s", c, done["over/all.yaml"].Data)
							}
						}
					}
				})
			}
		}
	}
}

// TestExpanded holds that what is shown is a policy that means the same, and nothing but it.
func TestExpanded(t *testing.T) {
	for name, over := range overlays {
		repo := fstest.MapFS{policy.RootFile: {Data: []byte("org: acme\ntools: {claude-code: 2.1.332}\ngateway: https://ai.acme.example\nsafety: strict\n")}, "over.yaml": {Data: []byte(over)}}
		docs, err := Documents(load(t, repo))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range docs {
			text.WriteString("---\n" + d.YAML)
		}
		if name == "rings" {
			_, rest, _ := strings.Cut(over, "--- # and the last\n")
			text.WriteString("---\n" + rest)
		}
		shown := fstest.MapFS{policy.RootFile: {Data: []byte("org: acme\n")}, "all.yaml": {Data: []byte(text.String())}}
		if got, want := meaning(t, shown), meaning(t, repo); got != want {
			t.Errorf("%s: shown\n%s\nmeans\n%s\nnot\n%s", name, &text, got, want)
		}
	}
}

// TestGolden compares what is shown and what is written with the files in testdata, each an archive of a repo with what comes of it.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			repo := fstest.MapFS{}
			want := map[string]string{}
			var kept []txtar.File
			for _, f := range a.Files {
				if of, ok := strings.CutPrefix(f.Name, "want/"); ok {
					want[of] = string(f.Data)
					continue
				}
				kept = append(kept, f)
				repo[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			r := load(t, repo)
			docs, err := Documents(r)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, d := range docs {
				got["expanded"] += "--- # " + d.File + "\n" + d.YAML
			}
			e, err := Eject(t.Context(), repo, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range e.Changes {
				got[c.Name] = string(c.Data)
			}
			for _, n := range e.Notes {
				got["notes"] += n + "\n"
			}
			if *update {
				a.Files = kept
				for _, f := range slices.Sorted(maps.Keys(got)) {
					a.Files = append(a.Files, txtar.File{Name: "want/" + f, Data: []byte(got[f])})
				}
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !maps.Equal(got, want) {
				for f := range got {
					if got[f] != want[f] {
						t.Errorf("%s: got\n%s\nwant\n%s", f, got[f], want[f])
					}
				}
				for f := range want {
					if _, ok := got[f]; !ok {
						t.Errorf("%s is not written", f)
					}
				}
			}
		})
	}
}

// TestWithout cuts keys out of texts of every shape.
func TestWithout(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"org: a\nsafety: strict\n", "org: a\n"},
		{"safety: strict\norg: a\n", "org: a\n"},
		{"# top\nsafety: strict # why\n# about org\norg: a\n", "# top\n# about org\norg: a\n"},
		{"org: a\ntools:\n  # inside\n  codex: 0.138.0\n  # still inside\n\n# after\nlifetime: 90d\n", "org: a\n\n# after\nlifetime: 90d\n"},
		{"org: a\n\nteam:\n- x\n- y\n\n\nlifetime: 90d\n", "org: a\n\nlifetime: 90d\n"},
		{"org: a\nteam: [x,\n  y]\n# end", "org: a\n# end"},
		{"org: a\nsafety: strict", "org: a\n"},
		{"--- # doc\norg: a\nsafety: strict\n...\n", "--- # doc\norg: a\n...\n"},
		{"org: a\r\nsafety: strict\r\nlifetime: 90d\r\n", "org: a\r\nlifetime: 90d\r\n"},
		{"\xef\xbb\xbforg: a\nsafety: strict\n", "\xef\xbb\xbforg: a\n"},
		{"  org: a\n  # mine\n  safety: strict\n  # next\n  lifetime: 90d\n", "  org: a\n  # mine\n  # next\n  lifetime: 90d\n"},
		{"{org: a, safety: strict, lifetime: 90d}\n", "{org: a, lifetime: 90d}\n"},
		{"\"safety\": strict\n'org': a\n", "'org': a\n"},
		{"org: a\ngateway: >-\n  https://ai.acme.example\n\nlifetime: 90d\n", "org: a\n\nlifetime: 90d\n"},
	} {
		got, err := without([]byte(c.text), policy.SimpleKeys())
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

// TestRefused holds that nothing is overwritten.
func TestRefused(t *testing.T) {
	root := &fstest.MapFile{Data: []byte("org: acme\ntools: {claude-code: 2.1.332}\n")}
	for name, repo := range map[string]fstest.MapFS{
		"profiles/default.yaml exists already; move it away, or put its documents into another file": {policy.RootFile: root,
			"profiles/default.yaml": {Data: []byte("apiVersion: halos.dev/v1\nkind: Preset\nname: x\nhosts: [a.example]\n")}},
		"rings/rings.yaml exists already; move it away, or put its documents into another file": {policy.RootFile: root, "rings/rings.yaml/x": {}},
		"profiles is not a directory, and profiles/default.yaml would be written there":         {policy.RootFile: root, "profiles": {}},
		"halos.yaml has no key of simple mode":                                                  {policy.RootFile: {Data: []byte("org: acme\n")}},
	} {
		var diags diag.List
		e, err := Eject(t.Context(), repo, policy.Load(t.Context(), repo, policy.Options{}, &diags))
		if err == nil || err.Error() != name || e != nil {
			t.Errorf("%v, want %s", err, name)
		}
	}
	// A file that changed since it was read.
	repo := fstest.MapFS{policy.RootFile: root}
	r := load(t, repo)
	repo[policy.RootFile] = &fstest.MapFile{Data: append(slices.Clone(root.Data), "safety: relaxed\n"...)}
	if _, err := Eject(t.Context(), repo, r); err == nil || !strings.Contains(err.Error(), "halos.yaml changed while halo read it") {
		t.Error(err)
	}
}

// FuzzEject ejects any root keys with any documents over them: what was read without an error is written out, and means the same after every change on the way.
func FuzzEject(f *testing.F) {
	for _, over := range overlays {
		f.Add("tools: {claude-code: 2.1.332, codex: 0.138.0}\nsafety: strict\n", over)
	}
	f.Add("{org: acme, tools: {codex: 0.138.0}, egress: {allow: ['*.a.example']}} # end", "")
	f.Add("--- # x\norg: a\nrollout: careful\n# c\ntools:\r\n  codex: 0.138.0\r\n\r\n# d\nteam: [a, b@c]\n...\n", "{apiVersion: halos.dev/v1, kind: Profile, name: default, sandbox: {protectedPaths: [~/x, # c\n .env]}}")
	f.Add("org: a\ntools: {gemini-cli: 0.61.0}\nsafety: relaxed", "apiVersion: halos.dev/v1\nkind: Profile\nname: default\nharnesses: {gemini-cli: {overrides: {ui: {a: 1.0, b: [true, {c: '1'}]}}}}\nenv:\n  A: \" x\\ty \"\n  B: |2\n    z\n\n  C: 'yes'\n")
	f.Fuzz(func(t *testing.T, root, over string) {
		if !strings.Contains(root, "org:") {
			root += "\norg: acme\n"
		}
		repo := fstest.MapFS{policy.RootFile: {Data: []byte(root)}}
		if over != "" {
			repo["over/all.yaml"] = &fstest.MapFile{Data: []byte(over)}
		}
		var diags diag.List
		lim := source.DefaultLimits
		lim.Items = 3000
		r := policy.Load(t.Context(), repo, policy.Options{Limits: lim}, &diags)
		if diags.Errors() > 0 || r.Root.Simple == nil {
			return
		}
		docs, err := Documents(r)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Eject(t.Context(), repo, r)
		if err != nil {
			t.Fatalf("%v\n%q\n%q", err, root, over)
		}
		for i := range e.Changes {
			got := apply(repo, e.Changes[:i+1])
			is := load(t, got)
			if !slices.Equal(digests(is), digests(r)) {
				t.Errorf("after %s the policies differ\n%q\n%q", e.Changes[i].Name, root, over)
			}
			if i == len(e.Changes)-1 {
				continue
			}
			again, err := Documents(is)
			if err != nil || len(again) != len(docs) {
				t.Errorf("after %s: %d documents, %v", e.Changes[i].Name, len(again), err)
			}
		}
	})
}
