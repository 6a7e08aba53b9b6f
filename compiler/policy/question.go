package policy

import (
	"bytes"
	"slices"
)

// Question limits Load to the documents that decide about one ring with some units. A file is left out only when every document in it is plainly of a kind
// that cannot matter, or a unit that is not asked about; a file written in any unusual way is read.
type Question struct {
	Units []string
}

// skippable are the kinds that no question about a ring needs.
var skippable = []string{"PolicyTest"}

// needless reports whether a file cannot matter to the question.
func (q *Question) needless(name string, data []byte) bool {
	if name == RootFile {
		return false
	}
	if bytes.IndexByte(data, '\\') >= 0 {
		// An escape can spell a key in another way.
		return false
	}
	kinds := 0
	for rest := data; ; {
		i := bytes.Index(rest, []byte("kind"))
		if i < 0 {
			return kinds > 0
		}
		at := len(data) - len(rest) + i
		rest = rest[i+4:]
		value, ok := bytes.CutPrefix(rest, []byte(": "))
		if !ok || at > 0 && data[at-1] != '\n' {
			// The word elsewhere, such as in a comment or a quoted key: read the file rather than guess.
			return false
		}
		if end := bytes.IndexByte(value, '\n'); end >= 0 {
			value = value[:end]
		}
		kind := string(bytes.TrimRight(value, " \r"))
		switch {
		case slices.Contains(skippable, kind):
		case kind == "Unit" && len(q.Units) == 0:
		default:
			return false
		}
		kinds++
	}
}
