package cases

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// change is what is done to a copy of the fixture, in the order of the fields.
type change struct {
	Remove []string
	Write  map[string]string
	Set    map[string]tree
	Unset  map[string][]string
	Pin    map[string]string
	Bytes  map[string]struct {
		PrefixHex string `yaml:"prefixHex"`
		EOL       string
	}
}

type family struct {
	ID, Title, Why string
	Op             string
	change         `yaml:",inline"`
	Variants       []variant
}

type variant struct {
	Name, Op, Pending string
	change            `yaml:",inline"`
	Args              struct {
		Host, Ring, Unit string
		Previous         bool
		NoKey            bool `yaml:"noKey"`
		Zone, Umask      string
		Flip, Add        string
		Delete           []string
		Managed          string
		Home             map[string]string
	}
	Expect outcome
}

type outcome struct {
	Result         words
	Rule           string
	Error, Warning []want
	Says, Never    words
	SamePayload    bool `yaml:"samePayload"`
	Identical      bool
	Artifact       []artifact
}

type artifact struct {
	Harness, OS, JSON  string
	Equals             any
	Includes, Excludes []string
	Absent             bool
	FirstKey           string `yaml:"firstKey"`
	File               string
	Has, Lacks         []string
}

func TestUser(t *testing.T) {
	ids := map[string]bool{}
	for _, f := range documents[family](t, "user.yaml") {
		for _, v := range f.Variants {
			name := f.ID + "/" + v.Name
			if ids[name] {
				t.Errorf("case %s is there twice", name)
			}
			ids[name] = true
			if v.Op == "" {
				v.Op = f.Op
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := fixture(t, f.change, v.change)
				problems := v.run(t, dir)
				switch {
				case v.Pending != "" && len(problems) == 0:
					t.Errorf("this passes now; take away: pending: %s", v.Pending)
				case v.Pending != "":
					t.Skip(v.Pending)
				}
				for _, p := range problems {
					t.Error(p)
				}
				if t.Failed() {
					t.Logf("%s. %s", f.Title, f.Why)
				}
			})
		}
	}
}

// fixture copies the fixture and changes the copy.
func fixture(t *testing.T, changes ...change) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "fixture"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		c.apply(t, dir)
	}
	return dir
}

func (c *change) apply(t *testing.T, dir string) {
	t.Helper()
	for _, name := range c.Remove {
		entries := []string{name}
		if name == "." {
			es, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			entries = nil
			for _, e := range es {
				entries = append(entries, e.Name())
			}
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(dir, e)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range c.Write {
		write(t, dir, name, []byte(text))
	}
	for name, values := range c.Set {
		edit(t, dir, name, func(doc tree) {
			for key, v := range values {
				at, last := walk(doc, key)
				at[last] = v
			}
		})
	}
	for name, keys := range c.Unset {
		edit(t, dir, name, func(doc tree) {
			for _, key := range keys {
				at, last := walk(doc, key)
				delete(at, last)
			}
		})
	}
	if len(c.Pin) > 0 {
		edit(t, dir, "profiles/engineering.yaml", func(doc tree) {
			for h, v := range c.Pin {
				doc["harnesses"].(tree)[h] = tree{"version": v}
			}
		})
	}
	for name, b := range c.Bytes {
		file := filepath.Join(dir, filepath.FromSlash(name))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.EOL == "crlf" {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		prefix, err := hex.DecodeString(b.PrefixHex)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, append(prefix, data...))
	}
}

func edit(t *testing.T, dir, name string, change func(tree)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	doc := tree{}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	if data, err = yaml.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	write(t, dir, name, data)
}

// walk finds the mapping that holds a dotted key, and makes what is missing on the way.
func walk(doc tree, key string) (tree, string) {
	parts := strings.Split(key, ".")
	for _, p := range parts[:len(parts)-1] {
		next, ok := doc[p].(tree)
		if !ok {
			next = tree{}
			doc[p] = next
		}
		doc = next
	}
	return doc, parts[len(parts)-1]
}

// run runs the variant and returns what is not as expected.
func (v *variant) run(t *testing.T, dir string) []string {
	t.Helper()
	var r result
	var fs []finding
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	decision, rule := "", ""
	out := filepath.Join(t.TempDir(), "release")
	switch v.Op {
	case "validate", "lint":
		r = run(t, nil, v.Op, "--output", "json", dir)
		fs = findings(t, r)
	case "egress":
		args := []string{"egress", "test", v.Args.Host, "--policy-dir", dir, "--output", "json"}
		args = append(args, "--ring", ringOr(v.Args.Ring))
		if v.Args.Unit != "" {
			args = append(args, "--unit", v.Args.Unit)
		}
		r = run(t, nil, args...)
		if r.status < 2 {
			var got struct {
				Decision string
				Rule     struct{ Entry string }
			}
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
				problem("%v", err)
			}
			decision, rule = got.Decision, got.Rule.Entry
		}
	case "build":
		before := map[string]string{}
		if v.Args.Previous {
			build(t, fixture(t), out)
			before = files(t, out)
		}
		var env []string
		if v.Args.Zone != "" {
			env = append(env, "TZ="+v.Args.Zone)
		}
		cmd := exec.CommandContext(t.Context(), halo, "build", "--as-of", "2026-11-30T12:00:00Z", "--output", "json", "--out", out, dir)
		if v.Args.Umask != "" {
			cmd = exec.CommandContext(t.Context(), "sh", append([]string{"-c", "umask " + v.Args.Umask + "; exec \"$@\"", "sh"}, cmd.Args...)...)
		}
		r = runCmd(t, env, cmd)
		fs = findings(t, r)
		if after := files(t, out); r.status != 0 && !maps.Equal(before, after) {
			problem("a failed build left %v", slices.Sorted(maps.Keys(after)))
		}
	case "verify":
		r = v.verify(t, dir, out)
	case "diff":
		r = run(t, nil, "diff", fixture(t), dir)
	case "doctor":
		r = v.doctor(t, dir, out)
	default:
		t.Fatalf("unknown op %q", v.Op)
	}
	errors := slices.ContainsFunc(fs, func(f finding) bool { return f.Severity == "error" })
	results := map[string]bool{
		"ok":       r.status == 0 && !errors,
		"problems": r.status == 1 && errors,
		"allow":    r.status == 0 && decision == "allow",
		"deny":     r.status == 1 && decision == "deny",
		"usage":    r.status == 2,
		"fail":     r.status == 1 && !errors,
	}
	met := false
	for _, want := range v.Expect.Result {
		if _, ok := results[want]; !ok {
			t.Fatalf("unknown result %q", want)
		}
		met = met || results[want]
	}
	if !met {
		problem("want %v\n%v", v.Expect.Result, r)
	}
	if v.Expect.Rule != "" && rule != v.Expect.Rule {
		problem("rule %q, want %q", rule, v.Expect.Rule)
	}
	for _, w := range v.Expect.Error {
		if !w.met(fs, "error") {
			problem("no such error: %+v\n%v", w, r)
		}
	}
	for _, w := range v.Expect.Warning {
		// A finding may be an error where a warning would do.
		if len(fs) > 0 && !w.met(fs, "warning") && !w.met(fs, "error") || len(fs) == 0 && !contains(r.stdout+r.stderr, w.Says) {
			problem("no such warning: %+v\n%v", w, r)
		}
	}
	text := r.stdout + r.stderr
	for _, s := range v.Expect.Says {
		if s = strings.ReplaceAll(s, "{{dir}}", dir); !strings.Contains(text, s) {
			problem("the output does not say %q\n%v", s, r)
		}
	}
	for _, s := range v.Expect.Never {
		if contains(text, []string{s}) {
			problem("the output says %q\n%v", s, r)
		}
	}
	if r.status == 0 {
		problems = append(problems, v.Expect.release(t, out)...)
	}
	return problems
}

func ringOr(ring string) string {
	if ring == "" {
		return "ring3-ga"
	}
	return ring
}

// build makes a release that must succeed.
func build(t *testing.T, dir, out string, args ...string) {
	t.Helper()
	if r := run(t, nil, append([]string{"build", "--quiet", "--out", out, dir}, args...)...); r.status != 0 {
		t.Fatal(r)
	}
}

// signed makes a release with a key of its own, and returns the public key.
func signed(t *testing.T, dir, out string) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if r := run(t, nil, "keygen", "--out", key); r.status != 0 {
		t.Fatal(r)
	}
	build(t, dir, out, "--key", key+".key")
	return key + ".pub"
}

func (v *variant) verify(t *testing.T, dir, out string) result {
	t.Helper()
	pub := signed(t, dir, out)
	if v.Args.Flip != "" {
		name := filepath.Join(out, filepath.FromSlash(v.Args.Flip))
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if v.Args.Add != "" {
		write(t, out, v.Args.Add, []byte("{}\n"))
	}
	for _, name := range v.Args.Delete {
		if err := os.Remove(filepath.Join(out, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"release", "verify", out}
	if !v.Args.NoKey {
		args = append(args, "--key", pub)
	}
	return run(t, nil, args...)
}

func (v *variant) doctor(t *testing.T, dir, out string) result {
	t.Helper()
	root, home := t.TempDir(), t.TempDir()
	pub := signed(t, dir, out)
	if v.Args.Managed == "installed" {
		if r := run(t, nil, "install", "--release", out, "--key", pub, "--ring", "ring3-ga", "--root", root); r.status != 0 {
			t.Fatal(r)
		}
	}
	for name, text := range v.Args.Home {
		write(t, home, name, []byte(text))
	}
	return run(t, []string{"HALO_TRUST=" + pub}, "doctor", "--release", out, "--key", pub, "--root", root, "--home", home)
}

// files returns the content of every file below a directory that may not exist.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// release returns what is not as expected in a release.
func (o *outcome) release(t *testing.T, out string) (problems []string) {
	t.Helper()
	if o.SamePayload || o.Identical {
		plain := filepath.Join(t.TempDir(), "plain")
		build(t, fixture(t), plain)
		got, want := files(t, out), files(t, plain)
		if len(want) < 10 {
			t.Fatalf("the release of the fixture has %d files", len(want))
		}
		if !o.Identical {
			// The manifest records the digest of the source as it was read.
			for _, m := range []map[string]string{got, want} {
				delete(m, "manifest.json")
			}
		}
		for name := range want {
			if got[name] != want[name] {
				problems = append(problems, name+" differs from that of the fixture")
			}
		}
		if len(got) != len(want) {
			problems = append(problems, fmt.Sprintf("%d files, the fixture has %d", len(got), len(want)))
		}
	}
	for _, a := range o.Artifact {
		problems = append(problems, a.check(t, out)...)
	}
	return problems
}

func (a *artifact) check(t *testing.T, out string) (problems []string) {
	t.Helper()
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s %s %s: %s", a.Harness, a.OS, a.JSON, fmt.Sprintf(format, args...)))
	}
	if a.File != "" {
		data, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(a.File)))
		if err != nil {
			problem("%v", err)
		}
		for _, s := range a.Has {
			if !strings.Contains(string(data), s) {
				problem("%s has no %q", a.File, s)
			}
		}
		for _, s := range a.Lacks {
			if strings.Contains(string(data), s) {
				problem("%s has %q", a.File, s)
			}
		}
		return problems
	}
	var value json.RawMessage
	found := false
	for name, text := range files(t, filepath.Join(out, "targets", "ring3-ga", a.OS, a.Harness)) {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		if v, ok := pointer(json.RawMessage(text), a.JSON); ok {
			value, found = v, true
		}
	}
	switch {
	case a.Absent && found:
		problem("is there: %s", value)
	case a.Absent:
		return nil
	case !found:
		problem("is not there")
		return problems
	}
	if a.Equals != nil {
		if want, _ := json.Marshal(a.Equals); string(want) != strings.TrimSpace(string(value)) {
			problem("is %s, want %s", value, want)
		}
	}
	if a.FirstKey != "" {
		if keys := keys(value); slices.Contains(keys, a.FirstKey) && keys[0] != a.FirstKey || len(keys) == 0 {
			problem("%q is not the first key of %v", a.FirstKey, keys)
		}
		return problems
	}
	var items []string
	if len(a.Includes)+len(a.Excludes) > 0 {
		if err := json.Unmarshal(value, &items); err != nil {
			problem("%v", err)
		}
	}
	for _, want := range a.Includes {
		if !slices.Contains(items, want) {
			problem("has no %q: %v", want, items)
		}
	}
	for _, never := range a.Excludes {
		if slices.ContainsFunc(items, func(s string) bool { return strings.Contains(s, never) }) {
			problem("has %q: %v", never, items)
		}
	}
	return problems
}

// pointer returns the value at a JSON pointer without escapes.
func pointer(doc json.RawMessage, at string) (json.RawMessage, bool) {
	for _, key := range strings.Split(strings.TrimPrefix(at, "/"), "/") {
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			return nil, false
		}
		next, ok := m[key]
		if !ok {
			return nil, false
		}
		doc = next
	}
	return doc, true
}

// keys lists the keys of a JSON object in the order of the text.
func keys(object json.RawMessage) (out []string) {
	dec := json.NewDecoder(bytes.NewReader(object))
	depth, key := 0, true
	for {
		tok, err := dec.Token()
		if err != nil {
			return out
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
				continue
			}
			depth--
			key = depth == 1
		case string:
			if depth == 1 && key {
				out = append(out, tok)
			}
			if depth == 1 {
				key = !key
			}
		default:
			if depth == 1 {
				key = true
			}
		}
	}
}
