package codex

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
