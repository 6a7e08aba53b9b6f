package cursor

import (
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

func TestGoldens(t *testing.T) {
	rendertest.Renders(t, Harness(), "worked", "2026.9.28", rendertest.Worked)
	rendertest.Renders(t, Harness(), "everything", "2026.9.28", rendertest.Everything)
	rendertest.Renders(t, Harness(), "nothing", "2026.9.28", "{}")
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

func TestNothingIsRenderedAndEveryConceptIsNamedOnce(t *testing.T) {
	files, gaps := render(rendertest.Target(t, policy.CursorCLI, "2026.9.28", "linux", rendertest.Everything))
	if len(files) != 0 {
		t.Errorf("%d files", len(files))
	}
	seen := map[harness.Concept]int{}
	for _, g := range gaps {
		seen[g.Concept]++
	}
	// Overrides are on no list of allowed keys, so no policy can write them.
	for _, c := range policy.Concepts {
		if want := map[bool]int{true: 0, false: 1}[c == "overrides"]; seen[harness.Concept(c)] != want {
			t.Errorf("%s: %d gaps, want %d", c, seen[harness.Concept(c)], want)
		}
	}
}

func TestAnyFileIsRefused(t *testing.T) {
	tg := rendertest.Target(t, policy.CursorCLI, "2026.9.28", "linux", "{}")
	if len(check(tg, []harness.File{{Dest: "/etc/cursor/hooks.json", Content: []byte("{}\n")}})) != 1 {
		t.Error("a file is accepted")
	}
}

func BenchmarkRender(b *testing.B) {
	tg := rendertest.Target(b, policy.CursorCLI, "2026.9.28", "linux", rendertest.Everything)
	for b.Loop() {
		render(tg)
	}
}
