package claudecode

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

// object is a JSON object that keeps its members in order, so that two files with the same meaning have the same bytes and a repeated key can be seen.
// Values are string, bool, json.Number, nil, []string (written only), []any, []object (written only) and object.
type object []member

type member struct {
	key   string
	value any
}

// set sets a member, replacing one of the same key.
func (o *object) set(key string, value any) {
	if i := slices.IndexFunc(*o, func(m member) bool { return m.key == key }); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, member{key, value})
}

// get returns the first member of a key.
func (o object) get(key string) (any, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

// at follows a dotted path.
func (o object) at(path string) (any, bool) {
	for {
		key, rest, more := strings.Cut(path, ".")
		v, ok := o.get(key)
		if !ok || !more {
			return v, ok
		}
		if o, ok = v.(object); !ok {
			return nil, false
		}
		path = rest
	}
}

// file returns the bytes of a document: members sorted by key, indented by two blanks, with a final newline.
func (o object) file() []byte {
	return append(encode(make([]byte, 0, 4096), o, 0), '\n')
}

func encode(b []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return quote(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return append(b, v...)
	case []string:
		return list(b, v, depth, quote)
	case []any:
		return list(b, v, depth, func(b []byte, x any) []byte { return encode(b, x, depth+1) })
	case []object:
		return list(b, v, depth, func(b []byte, x object) []byte { return encode(b, x, depth+1) })
	case object:
		if len(v) == 0 {
			return append(b, "{}"...)
		}
		slices.SortFunc(v, func(x, y member) int { return strings.Compare(x.key, y.key) })
		b = append(b, '{')
		for i, m := range v {
			b = indent(b, i, depth+1)
			b = append(quote(b, m.key), ": "...)
			b = encode(b, m.value, depth+1)
		}
		return append(indent(b, 0, depth), '}')
	}
	return b
}

func list[T any](b []byte, l []T, depth int, one func([]byte, T) []byte) []byte {
	if len(l) == 0 {
		return append(b, "[]"...)
	}
	b = append(b, '[')
	for i, x := range l {
		b = one(indent(b, i, depth+1), x)
	}
	return append(indent(b, 0, depth), ']')
}

const blanks = "\n                                "

func indent(b []byte, i, depth int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return append(b, blanks[:min(1+2*depth, len(blanks))]...)
}

// quote writes a JSON string without the escapes that only HTML needs.
func quote(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// tree turns the values of a policy's overrides into the form that files are written from.
func tree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := make(object, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			o = append(o, member{k, tree(v[k])})
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = tree(x)
		}
		return l
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case int:
		return json.Number(strconv.Itoa(v))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return v
}

// parse reads one JSON object strictly: nothing after it, no key twice. Repeated keys are reported through twice, with their pointer.
func parse(data []byte, twice func(pointer string)) (object, error) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, errors.New("begins with a byte order mark")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := value(dec, "", twice)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has text after its end")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return o, nil
}

func value(dec *json.Decoder, pointer string, twice func(string)) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	switch tok {
	case json.Delim('{'):
		o := object{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, fmt.Errorf("is not JSON: %w", err)
			}
			key, _ := k.(string)
			at := pointer + "/" + escape(key)
			v, err := value(dec, at, twice)
			if err != nil {
				return nil, err
			}
			if _, ok := o.get(key); ok {
				twice(at)
			}
			o = append(o, member{key, v})
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		l := []any{}
		for dec.More() {
			v, err := value(dec, pointer+"/"+strconv.Itoa(len(l)), twice)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		_, err := dec.Token()
		return l, err
	}
	return tok, nil
}

// escape writes a key as a part of a JSON pointer (RFC 6901).
func escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
