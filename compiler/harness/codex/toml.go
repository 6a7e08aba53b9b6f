package codex

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// object is a TOML table. Values are string, bool, int64, float64, []string, []any, inline, []inline, object (a table of its own) and []object (an array
// of tables).
type object []member

type member struct {
	key   string
	value any
}

// inline is a table written between braces.
type inline []member

// set sets a member, replacing one of the same key.
func (o *object) set(key string, value any) {
	if i := slices.IndexFunc(*o, func(m member) bool { return m.key == key }); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, member{key, value})
}

// indexed is a table that takes many members.
type indexed struct {
	object
	at map[string]int
}

// set sets a member, replacing one of the same key.
func (t *indexed) set(key string, value any) {
	if i, ok := t.at[key]; ok {
		t.object[i].value = value
		return
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.at[key] = len(t.object)
	t.object = append(t.object, member{key, value})
}

// file returns the bytes of a document: in every table the plain values first, then the tables, each sorted by key.
func (o object) file() []byte {
	return o.encode(make([]byte, 0, 2048), nil)
}

func (o object) encode(b []byte, path []string) []byte {
	slices.SortFunc(o, func(x, y member) int { return strings.Compare(x.key, y.key) })
	for _, m := range o {
		switch m.value.(type) {
		case object, []object:
			continue
		}
		b = append(key(b, m.key), " = "...)
		b = append(value(b, m.value), '\n')
	}
	for _, m := range o {
		at := append(slices.Clip(path), m.key)
		switch v := m.value.(type) {
		case object:
			if v.plain() {
				b = header(b, "[", at, "]")
			}
			b = v.encode(b, at)
		case []object:
			for _, x := range v {
				b = x.encode(header(b, "[[", at, "]]"), at)
			}
		}
	}
	return b
}

// plain reports whether a table needs a header of its own: it has plain values, or nothing at all.
func (o object) plain() bool {
	return len(o) == 0 || slices.ContainsFunc(o, func(m member) bool {
		switch m.value.(type) {
		case object, []object:
			return false
		}
		return true
	})
}

func header(b []byte, open string, path []string, end string) []byte {
	if len(b) > 0 {
		b = append(b, '\n')
	}
	b = append(b, open...)
	for i, p := range path {
		if i > 0 {
			b = append(b, '.')
		}
		b = key(b, p)
	}
	b = append(b, end...)
	return append(b, '\n')
}

func key(b []byte, s string) []byte {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return quote(b, s)
		}
	}
	if s == "" {
		return quote(b, s)
	}
	return append(b, s...)
}

func value(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return quote(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return append(b, s...)
	case []string:
		return list(b, v, quote)
	case []any:
		return list(b, v, value)
	case []inline:
		return list(b, v, func(b []byte, x inline) []byte { return value(b, x) })
	case inline:
		if len(v) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, "{ "...)
		for i, m := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(key(b, m.key), " = "...)
			b = value(b, m.value)
		}
		return append(b, " }"...)
	}
	return b
}

func list[T any](b []byte, l []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, x := range l {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = one(b, x)
	}
	return append(b, ']')
}

func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\u%04X`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// tree turns a value of a policy's overrides into the form that files are written from. A null has none.
func tree(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		var o object
		for k, x := range v {
			y, ok := tree(x)
			if !ok {
				return nil, false
			}
			o = append(o, member{k, y})
		}
		return o, true
	case []any:
		for _, x := range v {
			switch x.(type) {
			case string, bool, int64, float64:
			default:
				return nil, false
			}
		}
		return v, true
	case string, bool, int64, float64:
		return v, true
	}
	return nil, false
}

// tableChunk is how many lines of one table are parsed at a time.
const tableChunk = 500

// parse reads a TOML document. go-toml looks through the keys of a table for each of them, so a long table of single lines is read in pieces. Whatever is not plain
// about it, a repeated key or a text over several lines, is left to one reading of the whole.
func parse(data []byte) (doc map[string]any, err error) {
	if len(data) > 64*tableChunk && !bytes.Contains(data, []byte(`"""`)) && !bytes.Contains(data, []byte("'''")) {
		if doc, ok := parsePieces(data); ok {
			return doc, nil
		}
	}
	err = toml.Unmarshal(data, &doc)
	return doc, err
}

func parsePieces(data []byte) (map[string]any, bool) {
	main, header, lines := make([]byte, 0, len(data)), []byte(nil), 0
	var pieces [][]byte
	for line := range bytes.Lines(data) {
		switch {
		case line[0] == '[':
			header, lines = line, 0
		case len(header) > 0 && header[1] != '[':
			if lines++; lines > tableChunk {
				if lines%tableChunk == 1 {
					pieces = append(pieces, bytes.Clone(header))
				}
				last := len(pieces) - 1
				pieces[last] = append(pieces[last], line...)
				continue
			}
		}
		main = append(main, line...)
	}
	var doc map[string]any
	if toml.Unmarshal(main, &doc) != nil {
		return nil, false
	}
	for _, piece := range pieces {
		var part map[string]any
		if toml.Unmarshal(piece, &part) != nil || !unite(doc, part) {
			return nil, false
		}
	}
	return doc, true
}

// unite adds the members of part to doc and reports whether none was there before.
func unite(doc, part map[string]any) bool {
	for k, v := range part {
		old, there := doc[k]
		if !there {
			doc[k] = v
			continue
		}
		into, ok := old.(map[string]any)
		from, table := v.(map[string]any)
		if !ok || !table || !unite(into, from) {
			return false
		}
	}
	return true
}
