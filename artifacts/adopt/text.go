package adopt

import (
	"fmt"
	"io"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness/draft"
)

// Codes lists the codes of an import.
func Codes() []*diag.Code { return draft.Codes() }

// Text writes the account: one line for every key of the input, entries of one list that had the same fate together, then what was added. Values are never written.
func (r *Result) Text(w io.Writer) error {
	for i := 0; i < len(r.Lines); {
		l := r.Lines[i]
		n := 1
		list, entry := parent(l.Pointer)
		for ; entry && i+n < len(r.Lines); n++ {
			next := r.Lines[i+n]
			if above, ok := parent(next.Pointer); !ok || above != list || next.File != l.File || next.Outcome != l.Outcome || next.Field != l.Field || next.Reason != l.Reason ||
				next.Warning != "" {
				break
			}
		}
		i += n
		at := l.Pointer
		if at == "" {
			at = "the text"
		}
		if n > 1 {
			at = fmt.Sprintf("%s to %s (%d entries)", l.Pointer, r.Lines[i-1].Pointer[len(list)+1:], n)
		}
		what := string(l.Outcome)
		switch {
		case l.Outcome == draft.Mapped && l.Reason != "":
			what = "mapped to " + l.Field + ": " + l.Reason
		case l.Outcome == draft.Mapped:
			what = "mapped to " + l.Field
		case l.Outcome == draft.Dropped && l.Warning == "":
			what = "dropped[" + l.Code + "]: " + l.Reason
		default:
			what += ": " + l.Reason
		}
		if _, err := fmt.Fprintf(w, "%s: %s: %s\n", visible(l.File), visible(at), what); err != nil {
			return err
		}
		if l.Warning != "" {
			if _, err := fmt.Fprintf(w, "  warning[%s] not in force in the input: %s\n", draft.CodeNotInForce.ID, l.Warning); err != nil {
				return err
			}
		}
	}
	for _, a := range r.Additions {
		if _, err := fmt.Fprintf(w, "added[%s] %s: %s\n", a.Code, a.Field, a.Reason); err != nil {
			return err
		}
	}
	return nil
}

// parent returns the pointer of the list that an entry is in.
func parent(pointer string) (list string, ok bool) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 || i == len(pointer)-1 || strings.Trim(pointer[i+1:], "0123456789") != "" {
		return "", false
	}
	return pointer[:i], true
}

// visible writes a name so that it cannot steer a terminal.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return '\ufffd'
		}
		return r
	}, s)
}
