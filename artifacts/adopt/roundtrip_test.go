package adopt

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
)

// compiled compiles an example of the repo.
func compiled(t testing.TB, example string) *compiler.Compiled {
	t.Helper()
	var diags diag.List
	c := compiler.Compile(t.Context(), compiler.Input{FS: os.DirFS(filepath.Join("..", "..", "examples", example)), Now: time.Unix(0, 0), Keep: true}, &diags)
	for _, d := range diags.Sorted() {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s", d.Path, d.Message)
		}
	}
	return c
}

// rendered returns the files of a harness and system, by destination.
func rendered(t testing.TB, c *compiler.Compiled, id, goos string) []harness.File {
	t.Helper()
	for _, target := range c.Targets {
		for _, r := range c.Plan(target).Renderings {
			if r.Harness.ID == id && r.OS == goos {
				return r.Files
			}
		}
	}
	t.Fatalf("nothing is rendered for %s on %s", id, goos)
	return nil
}

func inputs(files []harness.File) []draft.File {
	var out []draft.File
	for _, f := range files {
		out = append(out, draft.File{Name: f.Dest, Data: f.Content})
	}
	return out
}

// TestRoundTrip imports what halo renders for the examples and wants the same bytes from what comes of it.
func TestRoundTrip(t *testing.T) {
	for _, example := range []string{"acme", "minimal"} {
		c := compiled(t, example)
		for _, target := range c.Targets {
			for _, r := range c.Plan(target).Renderings {
				if r.Harness.Import == nil || len(r.Files) == 0 {
					continue
				}
				t.Run(strings.Join([]string{example, target.ID, r.Harness.ID, r.OS}, "-"), func(t *testing.T) {
					got, err := Import(t.Context(), Input{Files: inputs(r.Files), Harness: r.Harness.ID, OS: r.OS})
					if err != nil {
						t.Fatal(err)
					}
					for _, l := range got.Lines {
						// Whether ~ is the home directory is not known there.
						doubt := r.Harness.ID == policy.CopilotCLI && r.OS == "darwin" && strings.Contains(l.Pointer, "/deniedPaths/")
						if l.Outcome == draft.Dropped || l.Warning != "" && !doubt {
							t.Errorf("%s %s is %s: %s %s", l.File, l.Pointer, l.Outcome, l.Reason, l.Warning)
						}
					}
					again, err := Prove(t.Context(), got.Name, got.Profile, got.Extra)
					if err != nil {
						t.Fatal(err)
					}
					files := rendered(t, again, r.Harness.ID, r.OS)
					if len(files) != len(r.Files) {
						t.Errorf("%d files became %d", len(r.Files), len(files))
					}
					for _, f := range r.Files {
						i := slices.IndexFunc(files, func(x harness.File) bool { return x.Dest == f.Dest })
						if i < 0 {
							t.Errorf("%s is not rendered again", f.Dest)
						} else if want := known(r.Harness.ID, f); !bytes.Equal(files[i].Content, want) {
							t.Errorf("%s differs:\n%s", f.Dest, difference(want, files[i].Content))
						}
					}
					if t.Failed() {
						t.Logf("%s", got.Profile)
					}
				})
			}
		}
	}
}

// difference returns the lines that two texts do not share.
func difference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	var out strings.Builder
	for _, l := range a {
		if !slices.Contains(b, l) {
			out.WriteString("- " + l + "\n")
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			out.WriteString("+ " + l + "\n")
		}
	}
	return out.String()
}

// known is a file as it is rendered again where that cannot be the same: which hosts may be reached is in no file of Gemini CLI and OpenCode, which only ask about
// all of them, so what was asked about is denied.
func known(id string, f harness.File) []byte {
	switch {
	case id == policy.GeminiCLI && strings.HasSuffix(f.Dest, "10-halo-egress.toml") && bytes.Contains(f.Content, []byte("ask_user")):
		first, _, _ := bytes.Cut(f.Content, []byte("\n[[rule]]"))
		return append(bytes.Clone(first), "\n[[rule]]\ntoolName = \"web_fetch\"\ndecision = \"deny\"\npriority = 910\ndenyMessage = \"egress.default deny\"\n"...)
	case id == policy.OpenCode:
		return bytes.Replace(f.Content, []byte(`"webfetch": "ask"`), []byte(`"webfetch": "deny"`), 1)
	}
	return f.Content
}
