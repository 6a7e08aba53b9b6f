package compiler

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/trace"
)

// TestTraceExamples holds the walk back from every line of every file that the examples render: each line has an answer, and each answer is true when the renderer
// is asked again.
func TestTraceExamples(t *testing.T) {
	for _, dir := range []string{"../examples/acme", "../examples/minimal", "testdata/trace"} {
		t.Run(path.Base(dir), func(t *testing.T) {
			t.Parallel()
			var diags diag.List
			c := Compile(t.Context(), Input{FS: os.DirFS(dir), Now: now, NoRender: true}, &diags)
			if diags.Errors() > 0 {
				t.Fatal(diags.Sorted())
			}
			seen := map[[32]byte]bool{}
			lines, entries := 0, 0
			for _, target := range c.Targets {
				p := target.Policy
				if seen[p.Digest()] {
					continue
				}
				seen[p.Digest()] = true
				for _, system := range policy.OSes {
					for _, r := range c.Renderings(p, system) {
						n, e := traced(t, c, p, r)
						lines, entries = lines+n, entries+e
					}
				}
			}
			if lines < 100 || entries < 50 {
				t.Errorf("only %d lines and %d entries were looked at", lines, entries)
			}
			t.Logf("%d policies, %d lines, %d entries", len(seen), lines, entries)
		})
	}
}

// traced checks the answers for one rendering and counts the lines and the list entries named.
func traced(t *testing.T, c *Compiled, p *effective.Policy, r *Rendering) (lines, entries int) {
	org, gatewayURL, models := c.gateway()
	target := harness.Target{Policy: p, OS: r.OS, Version: r.Version, Org: org, GatewayURL: gatewayURL, Models: models}
	values := effective.Values(p)
	without := map[string][]string{}
	for _, f := range c.Trace(p, r, func(string, int, string) bool { return true }) {
		i := slices.IndexFunc(r.Files, func(x harness.File) bool { return x.Dest == f.Dest })
		text := string(r.Files[i].Content)
		if want := strings.Count(text, "\n"); len(f.Lines) != want {
			t.Errorf("%s on %s: %d lines of %s, want %d", r.Harness.ID, r.OS, len(f.Lines), f.Dest, want)
		}
		for _, l := range f.Lines {
			lines++
			if strings.TrimSpace(l.Text) != "" && len(l.Parts) == 0 {
				t.Errorf("%s on %s: %s:%d %s is not explained", r.Harness.ID, r.OS, f.Dest, l.Number, l.Text)
			}
			for _, part := range l.Parts {
				if part.Constant != (len(part.Needs) == 0 && len(part.AnyOf) == 0) {
					t.Errorf("%s on %s: %s:%d %s: %+v", r.Harness.ID, r.OS, f.Dest, l.Number, l.Text, part)
				}
				for _, cause := range slices.Concat(append([][]trace.Cause{part.Needs}, part.AnyOf...)...) {
					if len(cause.Pos) == 0 || !cause.Pos[0].IsValid() || c.Repo.DocumentAt(cause.Pos[0]) == nil {
						t.Errorf("%s:%d %s: %s has no place", f.Dest, l.Number, l.Text, cause.Key)
					}
					if cause.Entry >= 0 {
						entries++
						// An override is one value in the list of values, and an entry for each key here.
						if !strings.HasSuffix(cause.Field, ".overrides") && !slices.ContainsFunc(values, func(v effective.Value) bool {
							return v.Pos == cause.Pos[0] && v.Value == cause.Value && v.Field == cause.Field
						}) {
							t.Errorf("%s:%d %s: the policy has no %s %s", f.Dest, l.Number, l.Text, cause.Key, cause.Value)
						}
					}
				}
				// An entry that is needed is left out by itself: the line must not be there as often as it was.
				for _, cause := range part.Needs {
					if cause.Entry < 0 || l.Closes > 0 {
						continue
					}
					key := cause.Field + "\x00" + string(rune(cause.Entry))
					if without[key] == nil {
						other := target
						other.Policy = p.Without(func(field string, entry int) bool { return field == cause.Field && entry == cause.Entry })
						files, _ := r.Harness.Render(other)
						for _, x := range files {
							for rendered := range strings.SplitSeq(string(x.Content), "\n") {
								without[key] = append(without[key], x.Dest+strings.TrimSuffix(rendered, ","))
							}
						}
						without[key] = append(without[key], "")
					}
					if was, is := count(text, l.Text), countOf(without[key], f.Dest+strings.TrimSuffix(l.Text, ",")); is >= was {
						t.Errorf("%s on %s: %s:%d %s is there %d times with and %d times without %s", r.Harness.ID, r.OS, f.Dest, l.Number, l.Text, was, is, cause.Key)
					}
				}
			}
		}
	}
	return lines, entries
}

func count(text, line string) int {
	return countOf(strings.Split(strings.ReplaceAll(text, ",\n", "\n"), "\n"), strings.TrimSuffix(line, ","))
}

func countOf(lines []string, line string) int {
	n := 0
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}
