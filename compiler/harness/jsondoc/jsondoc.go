// Package jsondoc writes and reads the JSON files of harnesses. Writing keeps the order of members, because in some files the order is the meaning; reading
// refuses what the programs themselves let pass without a word: a key twice, a key nobody reads, a value of another type.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Member is one key of an object.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object in document order. Values are string, bool, int, json.Number, nil, Object, []Object, []string and []any; a parsed document has only
// string, bool, json.Number, nil, Object and []any.
type Object []Member

// Add appends a member.
func (o *Object) Add(key string, value any) { *o = append(*o, Member{key, value}) }

// Set gives a member a value, in place of the one it has.
func (o *Object) Set(key string, value any) {
	if i := slices.IndexFunc(*o, func(m Member) bool { return m.Key == key }); i >= 0 {
		(*o)[i].Value = value
		return
	}
	o.Add(key, value)
}

// Get returns the value of the first member of that key.
func (o Object) Get(key string) (any, bool) {
	for i := range o {
		if o[i].Key == key {
			return o[i].Value, true
		}
	}
	return nil, false
}

// At follows keys into nested objects; nil when one is absent.
func (o Object) At(keys ...string) any {
	var v any = o
	for _, k := range keys {
		in, ok := v.(Object)
		if !ok {
			return nil
		}
		if v, ok = in.Get(k); !ok {
			return nil
		}
	}
	return v
}

// Strings returns the list of texts at some keys, and whether there is such a list.
func (o Object) Strings(keys ...string) ([]string, bool) {
	l, ok := o.At(keys...).([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(l))
	for _, v := range l {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// Sort sorts the members by key, all the way down, and returns the object.
func (o Object) Sort() Object {
	slices.SortFunc(o, func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	for _, m := range o {
		sortIn(m.Value)
	}
	return o
}

func sortIn(v any) {
	switch v := v.(type) {
	case Object:
		v.Sort()
	case []Object:
		for _, o := range v {
			o.Sort()
		}
	case []any:
		for _, x := range v {
			sortIn(x)
		}
	}
}

// Sorted returns m as an object with sorted keys, all the way down.
func Sorted(m map[string]any) Object {
	o := make(Object, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		o = append(o, Member{k, Of(m[k])})
	}
	return o
}

// Of returns a decoded value, such as one of a policy's overrides, in the form that a document has: maps as sorted objects, numbers as json.Number.
func Of(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return Sorted(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = Of(x)
		}
		return out
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return v
}

// Equal reports whether two values are written the same.
func Equal(a, b any) bool { return bytes.Equal(write(nil, a, 0), write(nil, b, 0)) }

// Bytes returns the document: members in their order, indented by two blanks, with a final newline.
func (o Object) Bytes() []byte {
	return append(write(make([]byte, 0, 2048), o, 0), '\n')
}

func write(b []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return quote(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case json.Number:
		return append(b, v...)
	case Object:
		if len(v) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i := range v {
			b = newline(b, i, depth+1)
			b = append(quote(b, v[i].Key), ": "...)
			b = write(b, v[i].Value, depth+1)
		}
		return append(newline(b, 0, depth), '}')
	case []string:
		return list(b, v, depth)
	case []Object:
		return list(b, v, depth)
	case []any:
		return list(b, v, depth)
	}
	return b
}

func list[T any](b []byte, l []T, depth int) []byte {
	if len(l) == 0 {
		return append(b, "[]"...)
	}
	b = append(b, '[')
	for i := range l {
		b = write(newline(b, i, depth+1), l[i], depth+1)
	}
	return append(newline(b, 0, depth), ']')
}

func newline(b []byte, i, depth int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// quote writes a JSON string. Characters that only HTML needs escaped stay as they are.
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			b = append(b, s[from:i]...)
			if r == utf8.RuneError {
				b = append(b, "\ufffd"...)
			} else {
				b = append(b, `\u202`...)
				b = append(b, byte('8'+r-'\u2028'))
			}
		} else {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			b = append(b, '\\')
			switch c {
			case '"', '\\':
				b = append(b, c)
			case '\n':
				b = append(b, 'n')
			case '\r':
				b = append(b, 'r')
			case '\t':
				b = append(b, 't')
			default:
				const hex = "0123456789abcdef"
				b = append(b, 'u', '0', '0', hex[c>>4], hex[c&15])
			}
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// Parse reads one JSON object: UTF-8 without a byte order mark, nothing after it. Keys that occur twice are given to repeated, with their pointer; the first
// one is kept first.
func Parse(data []byte, repeated func(pointer string)) (Object, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, errors.New("it begins with a byte order mark")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := read(dec, "", repeated)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the document")
	}
	o, ok := v.(Object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	return o, nil
}

func read(dec *json.Decoder, pointer string, repeated func(string)) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	switch tok {
	case json.Delim('{'):
		o := Object{}
		// Short objects are searched, long ones remembered.
		const short = 16
		var seen map[string]bool
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, fmt.Errorf("it is not JSON: %w", err)
			}
			key, _ := k.(string)
			at := Pointer(pointer, key)
			v, err := read(dec, at, repeated)
			if err != nil {
				return nil, err
			}
			twice := seen[key]
			if seen == nil {
				_, twice = o.Get(key)
			}
			if twice && repeated != nil {
				repeated(at)
			}
			o.Add(key, v)
			if len(o) == short {
				seen = make(map[string]bool, 4*short)
				for _, m := range o {
					seen[m.Key] = true
				}
			} else if seen != nil {
				seen[key] = true
			}
		}
		if _, err := dec.Token(); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		return o, nil
	case json.Delim('['):
		l := []any{}
		for dec.More() {
			v, err := read(dec, pointer+"/"+strconv.Itoa(len(l)), repeated)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		if _, err := dec.Token(); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		return l, nil
	}
	return tok, nil
}

// Pointer appends a key to a JSON pointer (RFC 6901).
func Pointer(base, key string) string {
	if strings.ContainsAny(key, "~/") {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	}
	return base + "/" + key
}
