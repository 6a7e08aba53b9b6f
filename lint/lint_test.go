package lint

import (
	"fmt"
	"io/fs"
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
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// lint returns the findings of the rules over a repo, each as CODE FILE:LINE PATH.
func lint(t *testing.T, fsys fs.FS, skip ...string) []string {
	t.Helper()
	return findings(t, fsys, false, skip...)
}

// findings are those of the rules and, for a whole run, those of the compiler.
func findings(t *testing.T, fsys fs.FS, whole bool, skip ...string) []string {
	t.Helper()
	var compiling, diags diag.List
	var texts Texts
	c := compiler.Compile(t.Context(), compiler.Input{FS: fsys, Now: now, NoRender: !whole, Inspect: texts.Inspect}, &compiling)
	if compiling.Errors() > 0 {
		t.Fatalf("the repo does not compile: %v", compiling.Sorted())
	}
	if whole {
		diags.Add(compiling.Sorted()...)
	}
	Run(c, fsys, &texts, &diags, skip...)
	var out []string
	for _, d := range Acknowledge(c.Repo, diags.Sorted(), now, true) {
		file := c.Repo.Files.Name(d.Pos)
		if file == "" {
			file = d.File
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s:%d %s", d.Code.ID, file, d.Pos.Line(), d.Path)))
	}
	return out
}

// TestRules runs each archive in testdata: a repo, laid over the common one, and the findings it must have in `want`. Every rule has an archive that it alone
// makes fail when it is switched off.
func TestRules(t *testing.T) {
	common, err := txtar.ParseFile("testdata/common.txt")
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	proven := map[string]bool{}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			repo := fstest.MapFS{}
			var want []string
			for _, f := range slices.Concat(common.Files, a.Files) {
				if f.Name == "want" {
					want = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
					continue
				}
				data := f.Data
				if strings.HasSuffix(f.Name, ".crlf") {
					f.Name, data = strings.TrimSuffix(f.Name, ".crlf"), []byte(strings.ReplaceAll(string(data), "\n", "\r\n"))
				}
				repo[f.Name] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
			want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
			if got := lint(t, repo); !slices.Equal(got, want) {
				t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, w := range want {
				code, _, _ := strings.Cut(w, " ")
				if !slices.Equal(lint(t, repo, code), want) {
					proven[code] = true
				}
			}
		})
	}
	for _, r := range Rules() {
		if !proven[r.Code.ID] {
			t.Errorf("no archive fails when %s (%s) is switched off", r.Code.ID, r.Code.Title)
		}
	}
}

// TestExamples holds that the examples get no finding that they do not acknowledge.
func TestExamples(t *testing.T) {
	for _, dir := range []string{"minimal", "acme", "simple"} {
		if got := findings(t, os.DirFS(filepath.Join("..", "examples", dir)), true); len(got) > 0 {
			t.Errorf("examples/%s: %s", dir, strings.Join(got, "\n"))
		}
	}
}

// TestLists holds that the host lists are sorted, without repetitions, and patterns.
func TestLists(t *testing.T) {
	for _, l := range [][]string{uploadHosts, resolverHosts} {
		if !slices.IsSorted(l) || len(slices.Compact(slices.Clone(l))) != len(l) {
			t.Error("a list of hosts is not sorted or repeats one")
		}
	}
}
