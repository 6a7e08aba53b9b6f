package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/source"
)

type tree = map[string]any

type policyCase struct {
	ID, Type, Why string
	// At is a list of the profile to which each of Values is appended, one at a time. In files {{value}} stands for it.
	At                  string
	Values              []string
	Gateway, Profile    tree
	Chain               []tree
	Base, Overlay, Unit tree
	Files, Links        map[string]string
	Fifos, Remove       []string
	Hosts               []hostCase
	Expect              expectation
}

type hostCase struct {
	Host     string
	Decision words
	Rule     string
}

type expectation struct {
	Verdict, Field, Says, Never words
	File                        string
	Line                        int
	Effective                   tree
}

func TestPolicy(t *testing.T) {
	docs := documents[struct{ Cases []policyCase }](t, "policy.yaml")
	ids := map[string]bool{}
	for _, c := range docs[0].Cases {
		if ids[c.ID] {
			t.Errorf("case %s is there twice", c.ID)
		}
		ids[c.ID] = true
		values := c.Values
		if len(values) == 0 {
			values = []string{""}
		}
		for i, value := range values {
			name := c.ID
			if len(c.Values) > 0 {
				name += "/" + strconv.Itoa(i)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.run(t, value)
			})
		}
	}
}

func (c *policyCase) run(t *testing.T, value string) {
	defer func() {
		if t.Failed() {
			t.Logf("%s (%s)", c.Why, value)
		}
	}()
	if c.Type == "compare" {
		c.compare(t)
		return
	}
	dir := c.repo(t, value)
	switch c.Type {
	case "validate", "validate-many", "load":
		c.validate(t, dir, value)
	case "decide":
		for _, h := range c.Hosts {
			h.ask(t, dir)
		}
	case "extends", "overlay":
		c.validate(t, dir, value)
		c.effective(t, dir)
	default:
		t.Fatalf("unknown type %q", c.Type)
	}
}

// scaffold is the smallest repo that says nothing but about gaps. Its profile has the snippet of a case merged in.
func scaffold(profiles ...tree) map[string]any {
	leaf := func(snippet tree) tree {
		p := tree{"harnesses": tree{"claude-code": tree{"version": "2.1.300"}}, "telemetry": tree{"enabled": true}, "permissions": tree{"disableBypass": true}}
		return merge(p, snippet)
	}
	out := map[string]any{
		"halos.yaml":          tree{"apiVersion": "halos.dev/v1", "kind": "Halos", "org": "acme"},
		"gateway.yaml":        tree{"apiVersion": "halos.dev/v1", "kind": "Gateway", "name": "main", "baseURL": "https://ai.acme.example"},
		"rings/ring3-ga.yaml": tree{"apiVersion": "halos.dev/v1", "kind": "Ring", "name": "ring3-ga", "order": 3, "profile": "engineering", "membership": tree{"default": true}},
	}
	parent := ""
	for i, p := range profiles {
		name := "level" + strconv.Itoa(i)
		if i == len(profiles)-1 {
			name, p = "engineering", leaf(p)
		} else {
			p = merge(tree{}, p)
		}
		p["apiVersion"], p["kind"], p["name"] = "halos.dev/v1", "Profile", name
		if parent != "" {
			p["extends"] = parent
		}
		out["profiles/"+name+".yaml"], parent = p, name
	}
	return out
}

// merge returns a with b on top, mapping by mapping.
func merge(a, b tree) tree {
	out := maps.Clone(a)
	for k, v := range b {
		if sub, ok := v.(tree); ok {
			if under, ok := out[k].(tree); ok {
				v = merge(under, sub)
			}
		}
		out[k] = v
	}
	return out
}

func (c *policyCase) repo(t *testing.T, value string) string {
	t.Helper()
	profiles := c.Chain
	if len(profiles) == 0 {
		snippet := merge(merge(tree{}, c.Base), c.Profile)
		if c.At != "" {
			section, key, _ := strings.Cut(c.At, ".")
			old, _ := snippet[section].(tree)
			list, _ := old[key].([]any)
			snippet = merge(snippet, tree{section: merge(tree{}, tree{key: append(slices.Clip(list), value)})})
		}
		profiles = []tree{snippet}
	}
	files := scaffold(profiles...)
	if c.Gateway != nil {
		files["gateway.yaml"] = merge(files["gateway.yaml"].(tree), c.Gateway)
	}
	if c.Overlay != nil {
		files["units/payments.yaml"] = tree{"apiVersion": "halos.dev/v1", "kind": "Unit", "name": "payments", "overlay": c.Overlay}
	}
	dir := t.TempDir()
	target, linked := c.Links["."]
	root := dir
	if linked {
		// The repo itself is a link: what it points at has the files.
		dir = filepath.Join(dir, filepath.FromSlash(target))
	}
	for name, doc := range files {
		data, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, data)
	}
	for name, text := range c.Files {
		write(t, dir, name, []byte(strings.ReplaceAll(text, "{{value}}", value)))
	}
	for _, name := range c.Remove {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range c.Fifos {
		mkfifo(t, filepath.Join(dir, filepath.FromSlash(name)))
	}
	for name, to := range c.Links {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if name == "." {
			at = filepath.Join(root, "current")
		}
		if err := os.Symlink(filepath.FromSlash(to), at); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	if linked {
		return filepath.Join(root, "current")
	}
	return dir
}

func (c *policyCase) validate(t *testing.T, dir, value string) {
	t.Helper()
	r := run(t, nil, "validate", "--output", "json", dir)
	fs := findings(t, r)
	// Gaps are what the harnesses of the scaffold cannot hold; they are no finding about the snippet.
	fs = slices.DeleteFunc(fs, func(f finding) bool { return strings.HasPrefix(f.Code, "HALO17") })
	count := func(severity string) (n int) {
		for _, f := range fs {
			if f.Severity == severity {
				n++
			}
		}
		return n
	}
	errors, warnings := count("error"), count("warning")
	w := want{File: c.Expect.File, Line: c.Expect.Line}
	for _, s := range c.Expect.Field {
		w.At = append(w.At, strings.ReplaceAll(s, "{{value}}", value))
	}
	w.Says = c.Expect.Says
	verdicts := map[string]func() bool{
		"valid":   func() bool { return r.status == 0 && errors == 0 && warnings == 0 },
		"ok":      func() bool { return r.status == 0 && errors == 0 },
		"warning": func() bool { return r.status == 0 && errors == 0 && w.met(fs, "warning") },
		"error":   func() bool { return r.status == 1 && w.met(fs, "error") },
		"loosening": func() bool {
			w := w
			w.Says = words{"loosens"}
			return r.status == 1 && w.met(fs, "error")
		},
		"no-answer": func() bool { return r.status == 2 && w.met(fs, "error") },
	}
	met := slices.ContainsFunc(c.Expect.Verdict, func(v string) bool {
		holds, ok := verdicts[v]
		if !ok {
			t.Fatalf("unknown verdict %q", v)
		}
		return holds()
	})
	if !met {
		t.Errorf("want %v at %v (%v)\n%v", c.Expect.Verdict, w.At, w.Says, r)
	}
	for _, never := range c.Expect.Never {
		if never = strings.ReplaceAll(never, "{{value}}", value); contains(r.stdout+r.stderr, []string{never}) {
			t.Errorf("the output has %q\n%v", never, r)
		}
	}
}

func (h *hostCase) ask(t *testing.T, dir string) {
	t.Helper()
	r := run(t, nil, "egress", "test", h.Host, "--policy-dir", dir, "--output", "json")
	var got struct {
		Decision string
		Rule     struct{ Field, Entry string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%s: %v\n%v", h.Host, err, r)
	}
	if status := map[string]int{"allow": 0, "deny": 1}[got.Decision]; r.status != status {
		t.Errorf("%s: %s with exit status %d", h.Host, got.Decision, r.status)
	}
	if !slices.Contains(h.Decision, strings.ToUpper(got.Decision)) {
		t.Errorf("%s: %s, want %v", h.Host, got.Decision, h.Decision)
	}
	if rule := got.Rule.Field + " " + got.Rule.Entry; h.Rule != "" && rule != h.Rule {
		t.Errorf("%s: rule %s, want %s", h.Host, rule, h.Rule)
	}
}

// effective compares the policy of the ring, with the unit of an overlay, with what explain and egress test say.
func (c *policyCase) effective(t *testing.T, dir string) {
	t.Helper()
	if c.Expect.Effective == nil {
		return
	}
	at := []string{"--policy-dir", dir, "--output", "json"}
	if c.Overlay != nil {
		at = append(at, "--unit", "payments")
	}
	var explained struct {
		Values []struct{ Key, Value string }
	}
	r := run(t, nil, append([]string{"explain"}, at...)...)
	if err := json.Unmarshal([]byte(r.stdout), &explained); err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	got := map[string][]string{}
	for _, v := range explained.Values {
		key, _, _ := strings.Cut(v.Key, "[")
		got[key] = append(got[key], v.Value)
	}
	var asked struct{ Resolved struct{ Default string } }
	r = run(t, nil, append([]string{"egress", "test", "unlisted.example"}, at...)...)
	if err := json.Unmarshal([]byte(r.stdout), &asked); err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	got["egress.default"] = []string{asked.Resolved.Default}
	for section, keys := range c.Expect.Effective {
		for key, v := range keys.(tree) {
			var want []string
			if list, ok := v.([]any); ok {
				for _, x := range list {
					want = append(want, fmt.Sprint(x))
				}
			} else {
				want = []string{fmt.Sprint(v)}
			}
			have := got[section+"."+key]
			slices.Sort(want)
			slices.Sort(have)
			if !slices.Equal(have, want) {
				t.Errorf("%s.%s is %v, want %v", section, key, have, want)
			}
		}
	}
}

// compare asks whether one effective policy is looser than another. No command compares policies of one repo, so the comparator itself is asked.
func (c *policyCase) compare(t *testing.T) {
	policy := func(body tree) *effective.Policy {
		c := policyCase{Profile: body}
		fsys, err := source.Dir(c.repo(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		var diags diag.List
		compiled := compiler.Compile(t.Context(), compiler.Input{FS: fsys, NoRender: true, Now: time.Unix(0, 0)}, &diags)
		if diags.Errors() > 0 {
			t.Fatal(diags.Sorted())
		}
		return compiled.Resolver.Profile("engineering")
	}
	ls := effective.Loosenings(policy(c.Base), policy(c.Unit))
	if slices.Contains(c.Expect.Verdict, "ok") {
		if len(ls) > 0 {
			t.Errorf("loosens: %v", ls)
		}
		return
	}
	if !slices.ContainsFunc(ls, func(l effective.Loosening) bool {
		return slices.ContainsFunc(c.Expect.Field, func(f string) bool { return under(l.Field, f) })
	}) {
		t.Errorf("want a loosening of %v, got %v", c.Expect.Field, ls)
	}
}
