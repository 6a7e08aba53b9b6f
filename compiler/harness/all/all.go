// Package all is the explicit list of harnesses.
package all

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/claudecode"
	"halos.dev/halo/compiler/harness/codex"
	"halos.dev/halo/compiler/harness/copilot"
	"halos.dev/halo/compiler/harness/cursor"
	"halos.dev/halo/compiler/harness/gemini"
	"halos.dev/halo/compiler/harness/opencode"
)

// Harnesses returns every harness, sorted by id.
func Harnesses() []*harness.Harness {
	return []*harness.Harness{claudecode.Harness(), codex.Harness(), copilot.Harness(), cursor.Harness(), gemini.Harness(), opencode.Harness()}
}
