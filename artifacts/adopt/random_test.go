package adopt

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

// TestRandomRoundTrip imports what is rendered of many policies. Nothing that halo itself writes may be dropped, and where nothing had to be added or said differently
// the same bytes come of it.
func TestRandomRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	same := 0
	for range 120 {
		// A folder comes back by its name alone, which covers what is in it.
		body := strings.ReplaceAll(rendertest.Random(rnd), `"secrets/**"`, `"secrets"`)
		for _, h := range all.Harnesses() {
			goos := policy.OSes[rnd.IntN(3)]
			if h.ID != policy.Codex && h.ID != policy.GeminiCLI && h.ID != policy.OpenCode {
				continue
			}
			files, _ := h.Render(rendertest.Target(t, h.ID, h.Known.String(), goos, body))
			if len(files) == 0 {
				continue
			}
			r, err := Import(t.Context(), Input{Files: inputs(files), Harness: h.ID, OS: goos})
			if err != nil {
				t.Errorf("%s on %s: %v\n%s", h.ID, goos, err, body)
				continue
			}
			// A version is always added, and the lock has no form in OpenCode.
			exact := !slices.ContainsFunc(r.Additions, func(a draft.Addition) bool {
				return !strings.HasSuffix(a.Field, ".version") && (h.ID != policy.OpenCode || a.Field != "permissions.disableBypass")
			})
			for _, l := range r.Lines {
				if l.Outcome == draft.Dropped {
					t.Errorf("%s on %s: %s %s is dropped: %s\n%s", h.ID, goos, l.File, l.Pointer, l.Reason, body)
				}
				exact = exact && l.Warning == "" && (l.Outcome == draft.Kept || l.Reason == "")
			}
			again, err := Prove(t.Context(), r.Name, r.Profile, r.Extra)
			if err != nil {
				t.Errorf("%s on %s: %v\n%s\n%s", h.ID, goos, err, body, r.Profile)
			} else if exact {
				same++
				got := rendered(t, again, h.ID, goos)
				for _, f := range files {
					if i := slices.IndexFunc(got, func(x harness.File) bool { return x.Dest == f.Dest }); i < 0 || string(got[i].Content) != string(f.Content) {
						t.Errorf("%s on %s: %s differs\n%s\n%s\n%s", h.ID, goos, f.Dest, f.Content, body, r.Profile)
					}
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	if same < 20 {
		t.Errorf("only %d came back as they were: the test says little", same)
	}
}
