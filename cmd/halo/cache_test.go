package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/cache"
	"halos.dev/halo/testscript/bench/gen"
)

// lintOf runs a command in this process and returns everything that it says.
func lintOf(t *testing.T, store string, now time.Time, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	env := func(name string) (string, bool) {
		switch name {
		case "HALO_CACHE":
			return store, true
		case "HALO_KEY_PASSWORD":
			return "", true
		}
		return "", false
	}
	p := &program{args: append([]string{"halo"}, args...), in: strings.NewReader(""), out: &out, err: &errs, lookupEnv: env, now: func() time.Time { return now }}
	p.getenv = func(name string) string { v, _ := env(name); return v }
	status := run(t.Context(), p)
	return out.String() + "\n--\n" + errs.String() + "\n--\n" + string(rune('0'+status))
}

// Whatever changes in a repo, what is said with a cache is what is said without one.
func TestCacheChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := gen.Write(dir, gen.Options{Documents: 120}); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) error {
		name = filepath.Join(dir, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	const profile, unit, pack = "profiles/00/p00000.yaml", "units/03/u00003.yaml", "packs/pack-00002/pack.yaml"
	exception := "apiVersion: halos.dev/v1\nkind: Exception\nname: x\nunit: u00003\nfield: egress.deniedDomains\nentry: pastebin.com\nowner: a@acme.example\nreason: r\nticket: T-1\nexpires: 2026-12-05\n"
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store := filepath.Join(t.TempDir(), "cache")
	steps := []struct {
		name string
		unix bool
		do   func() error
	}{
		{"nothing", false, func() error { return nil }},
		{"a value", false, func() error {
			data, err := os.ReadFile(at(profile))
			return errors.Join(err, os.WriteFile(at(profile), bytes.Replace(data, []byte("transfer.sh"), []byte("transfer.tt"), 1), 0o644))
		}},
		{"an error", false, func() error { return write(unit, "kind: Unit\n") }},
		{"a removed file", false, func() error { return os.Remove(at(unit)) }},
		{"a renamed file", false, func() error { return os.Rename(at(profile), at("profiles/00/q.yaml")) }},
		{"a file that is not read as policy", false, func() error { return write("README.md", "x") }},
		{"a hidden file", false, func() error { return write(".hidden.yaml", "kind: Nonsense\n") }},
		{"attributes", false, func() error { return write(".gitattributes", "packs/** -text\n") }},
		{"settings of a harness", false, func() error {
			return write(".claude/settings.json", `{"permissions": {"defaultMode": "bypassPermissions"}}`)
		}},
		{"servers of a project", false, func() error { return write(".mcp.json", `{"mcpServers": {"x": {}}}`) }},
		{"an agent", false, func() error { return write(".opencode/agent/a.md", "---\npermission: allow\n---\n") }},
		{"another agent", false, func() error { return write(".opencode/agents/b.md", "---\npermission: allow\n---\n") }},
		{"windows line ends in a pack", false, func() error {
			data, err := os.ReadFile(at(pack))
			return errors.Join(err, os.WriteFile(at(pack), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), 0o644))
		}},
		{"a pack without its file", false, func() error { return os.Remove(at(pack)) }},
		{"a pack that is a link", true, func() error { return os.Symlink("pack-00001", at("packs/linked")) }},
		{"a file that is a link", true, func() error { return os.Symlink("../gateway.yaml", at("rings/link.yaml")) }},
		{"a pipe in the place of a file", true, func() error { return errors.Join(os.Remove(at("gateway.yaml")), mkfifo(at("gateway.yaml"))) }},
		{"the file again", false, func() error {
			return errors.Join(os.Remove(at("gateway.yaml")), write("gateway.yaml", "apiVersion: halos.dev/v1\nkind: Gateway\nname: main\nbaseURL: https://ai.acme.example\n"))
		}},
		{"a mode", true, func() error { return os.Chmod(at("gateway.yaml"), 0o600) }},
		{"an OpenShell file", false, func() error { return write("openshell/base.yaml", "version: 1\n") }},
		{"an exception", false, func() error { return write("exceptions/x.yaml", exception) }},
		{"the last second before it expires", false, func() error { now = time.Date(2026, 12, 5, 23, 59, 59, 0, time.UTC); return nil }},
		{"a second later", false, func() error { now = now.Add(time.Second); return nil }},
		{"a release inside", false, func() error {
			return errors.Join(write("rings/00/manifest.json", "{}"), write("rings/00/SHA256SUMS", ""), write("rings/00/coverage.json", "{}"))
		}},
		{"a directory named like a file", false, func() error { return os.Mkdir(at("dir.yaml"), 0o755) }},
		{"no root", false, func() error { return os.Rename(at("halos.yaml"), at("halos.txt")) }},
		{"the root again", false, func() error { return os.Rename(at("halos.txt"), at("halos.yaml")) }},
	}
	commands := [][]string{{"lint", dir}, {"validate", "--output", "json", dir}}
	for i, step := range steps {
		if i == 1 {
			commands = commands[:1]
		}
		if step.unix && runtime.GOOS == "windows" {
			continue
		}
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, args := range commands {
			plain := lintOf(t, "off", now, args...)
			// The first run may find what the step before left, the second what the first left.
			for range 2 {
				if got := lintOf(t, store, now, args...); got != plain {
					t.Fatalf("%s: halo %s says with a cache\n%s\nand without\n%s", step.name, args[0], got, plain)
				}
			}
		}
	}
}

// Nor does it after changes that nobody thought of: lines that are gone, that stand twice or that lie in another file.
func TestCacheAfterEdits(t *testing.T) {
	dir := t.TempDir()
	if err := gen.Write(dir, gen.Options{Documents: 120}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.yaml"))
	if err != nil || len(names) < 100 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store := filepath.Join(t.TempDir(), "cache")
	lintOf(t, store, now, "lint", dir)
	differ := 0
	for i := range 25 {
		name := names[rnd.IntN(len(names))]
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		at := rnd.IntN(len(lines))
		switch rnd.IntN(4) {
		case 0:
			lines = slices.Delete(lines, at, at+1)
		case 1:
			lines = slices.Insert(lines, at, lines[at])
		case 2:
			lines[at] = strings.Replace(lines[at], "-0", "-1", 1)
		default:
			other, err := os.ReadFile(names[rnd.IntN(len(names))])
			if err != nil {
				t.Fatal(err)
			}
			more := strings.SplitAfter(string(other), "\n")
			lines = slices.Insert(lines, at, more[rnd.IntN(len(more))])
		}
		if err := os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		plain := lintOf(t, "off", now, "lint", dir)
		if got := lintOf(t, store, now, "lint", dir); got != plain {
			t.Fatalf("edit %d, of %s: with a cache halo lint says\n%s\nand without\n%s", i, name, got, plain)
		}
		if !strings.Contains(plain, "\n0 errors") {
			differ++
		}
		// Most edits are taken back, so that errors do not pile up.
		if i%3 > 0 {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if differ < 5 {
		t.Errorf("only %d edits made an error", differ)
	}
}

// The tests above would pass with a cache that is never used.
func TestCacheIsUsed(t *testing.T) {
	dir := t.TempDir()
	if err := gen.Write(dir, gen.Options{Documents: 120}); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "cache")
	now := time.Unix(1.8e9, 0)
	lintOf(t, store, now, "lint", dir)
	fsys, err := source.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	running, err := cache.Running()
	if err != nil {
		t.Fatal(err)
	}
	s := &cache.Store{Dir: store, Program: running, Codes: codes()}
	if rep, _ := s.Find(t.Context(), cache.Question{Dir: dir, Advise: true, Day: now}, cache.NewRecorder(fsys), 1); rep == nil {
		t.Fatal("a second run finds nothing")
	}
	if err := os.WriteFile(filepath.Join(dir, "units/03/u00003.yaml"), []byte("kind: Unit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rec := cache.NewRecorder(fsys)
	if rep, _ := s.Find(t.Context(), cache.Question{Dir: dir, Advise: true, Day: now}, rec, 1); rep != nil {
		t.Fatal("a changed repo has the findings of before")
	}
	for name, want := range map[string]bool{"units/03/u00003.yaml": false, "units/04/u00004.yaml": true, "profiles/00/p00000.yaml": true, "packs/pack-00002/pack.yaml": true} {
		if _, _, ok := rec.Document(name); ok != want {
			t.Errorf("%s: known %t, want %t", name, ok, want)
		}
	}
	if err := os.Chmod(store, 0o777); err != nil || runtime.GOOS == "windows" {
		return
	}
	if got := lintOf(t, store, now, "lint", dir); !strings.Contains(got, "note: the cache "+store+" is not used: others can write it\n") {
		t.Errorf("in a directory that others can write, halo says\n%.300s", got)
	}
}

// A build of what is built already leaves it as it is; of anything else, and whenever it signs, it does all the work. What it says is always the same.
func TestBuildAgain(t *testing.T) {
	dir, store, out := t.TempDir(), filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "r")
	if err := os.CopyFS(dir, os.DirFS("../../examples/minimal")); err != nil {
		t.Fatal(err)
	}
	// So many files that the findings are remembered.
	for i := range 110 {
		test := fmt.Sprintf("apiVersion: halos.dev/v1\nkind: PolicyTest\nname: t%d\ntests: [{host: github.com, expect: allow}]\n", i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("test%d.yaml", i)), []byte(test), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	key := filepath.Join(t.TempDir(), "k")
	if got := lintOf(t, "off", now, "keygen", "--out", key); !strings.HasSuffix(got, "0") {
		t.Fatal(got)
	}
	build := func(args ...string) (said string, again bool) {
		t.Helper()
		before, _ := os.Stat(out)
		args = append([]string{"build", dir, "--out", out}, args...)
		said = lintOf(t, store, now, args...)
		after, err := os.Stat(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return said, before != nil && os.SameFile(before, after)
	}
	edit := func(name, old, new string) func() {
		return func() {
			data, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, bytes.Replace(data, []byte(old), []byte(new), 1), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name  string
		do    func()
		args  []string
		again bool
	}{
		{name: "first"},
		{name: "unchanged", again: true},
		{name: "as JSON", args: []string{"--output", "json"}, again: true},
		{name: "another version", args: []string{"--version", "2"}},
		{name: "the first version"},
		{name: "another instant", args: []string{"--as-of", "2026-11-30T13:00:00Z"}},
		{name: "the same instant", args: []string{"--as-of", "2026-11-30T13:00:00Z"}, again: true},
		{name: "no cache", args: []string{"--as-of", "2026-11-30T13:00:00Z", "--no-cache"}},
		{name: "signed", args: []string{"--key", key + ".key"}},
		{name: "signed again", args: []string{"--key", key + ".key"}},
		{name: "not signed"},
		{name: "not signed again", again: true},
		{name: "a changed policy", do: edit(filepath.Join(dir, "policy.yaml"), "~/.aws", "~/.azure")},
		{name: "the changed policy again", again: true},
		{name: "a changed release", do: edit(filepath.Join(out, "README.md"), "a", "b")},
		{name: "the release again", again: true},
		{name: "a file of somebody in the release, which is refused", again: true, do: func() {
			if err := os.WriteFile(filepath.Join(out, "x"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a signature beside it", do: func() {
			if err := os.Remove(filepath.Join(out, "x")); err != nil {
				t.Fatal(err)
			}
			if got := lintOf(t, "off", now, "release", "sign", out, "--key", key+".key"); !strings.HasSuffix(got, "0") {
				t.Fatal(got)
			}
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.do != nil {
				step.do()
			}
			said, again := build(step.args...)
			if again != step.again {
				t.Errorf("left as it was: %t, want %t", again, step.again)
			}
			if plain := lintOf(t, "off", now, append([]string{"build", dir, "--out", out}, step.args...)...); said != plain {
				t.Errorf("said\n%s\nand without a cache\n%s", said, plain)
			}
		})
	}
}
