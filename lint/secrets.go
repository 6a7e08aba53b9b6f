package lint

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
)

var hiddenSecret = Rule{
	Code: &diag.Code{ID: "HALO2311", Severity: diag.Warning, Title: "what looks like a secret", Since: "0.1.0", Secret: true,
		Text: "Somewhere in this file, in a comment, a text or a pack, stands what looks like a credential. Whoever reads the repo has it, and the history keeps it. Revoke it, and refer to a variable or a " +
			"file of the device instead.",
		Before: "instructions: The test account is ghp_0123456789abcdef.", After: "instructions: The test account is in the vault."},
	Find: func(p *Pass) {
		if len(p.Texts.secrets) == 0 {
			return
		}
		// What the compiler refuses at the same line is reported once.
		known := map[diag.Pos]bool{}
		for _, d := range p.diags.Sorted() {
			if d.Severity == diag.Error {
				known[diag.NewPos(d.Pos.File(), d.Pos.Line(), 0)] = true
			}
		}
		for _, s := range p.Texts.secrets {
			if !known[diag.NewPos(s.pos.File(), s.pos.Line(), 0)] {
				p.Report(s.pos, "", "here stands what looks like %s", s.what)
			}
		}
	},
}

// Texts collects what rules need of the bytes of the files, while those are in memory for the compiler. The zero Texts is ready.
type Texts struct {
	mu      sync.Mutex
	secrets []secret
}

type secret struct {
	pos  diag.Pos
	what string
}

// Inspect looks at the bytes of one file of the repo and reports whether it found anything. It is safe for concurrent use.
func (t *Texts) Inspect(file int, data []byte) (found bool) {
	for at, what := range check.KnownSecrets(data) {
		before := data[:at]
		line := bytes.Count(before, []byte("\n")) + 1
		col := utf8.RuneCountInString(strings.TrimPrefix(string(before[bytes.LastIndexByte(before, '\n')+1:]), "\ufeff")) + 1
		t.mu.Lock()
		t.secrets = append(t.secrets, secret{diag.NewPos(file, line, col), what})
		t.mu.Unlock()
		found = true
	}
	return found
}
