package lint

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/policy"
)

// TestSimpleModeIsClean holds that every preset of simple mode, in the few lines that people write, gets no error and no warning but about what the harness
// itself cannot hold (17xx, and for information HALO2310).
func TestSimpleModeIsClean(t *testing.T) {
	for _, safety := range []string{"", "standard", "strict", "relaxed"} {
		for _, rollout := range []string{"", "fast", "standard", "careful"} {
			for _, h := range all.Harnesses() {
				text := "org: acme\ntools: {" + h.ID + ": " + h.Known.String() + "}\ngateway: https://ai.acme.example\ntelemetry: https://otel.acme.example:4318\nteam: [platform]\n"
				if safety != "" {
					text += "safety: " + safety + "\n"
				}
				if rollout != "" {
					text += "rollout: " + rollout + "\n"
				}
				got := slices.DeleteFunc(findings(t, fstest.MapFS{policy.RootFile: {Data: []byte(text)}}, true), func(f string) bool {
					return strings.HasPrefix(f, "HALO17") || strings.HasPrefix(f, "HALO2310 ")
				})
				if len(got) > 0 {
					t.Errorf("%s\n%s", text, strings.Join(got, "\n"))
				}
			}
		}
	}
}
