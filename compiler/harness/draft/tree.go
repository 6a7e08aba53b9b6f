package draft

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/harness/jsondoc"
)

// Limits of an input file. Managed settings are small: the largest that any of the programs reads is 2 MiB.
const (
	// MaxBytes is the size of a file.
	MaxBytes = 2 << 20
	// MaxDepth is how deep values nest.
	MaxDepth = 64
	// MaxKeys bounds the keys and entries of a file.
	MaxKeys = 50_000
)

// Kind is what a node is.
type Kind uint8

// The kinds. Empty objects and lists are leaves.
const (
	Scalar Kind = iota
	Object
	List
)

// Node is a value of an input file. The methods of a nil node answer as if nothing were there.
type Node struct {
	// File is the name of the file, Key the key in its object, Pointer the place as a JSON pointer (RFC 6901).
	File, Key, Pointer string
	Kind               Kind
	// Value is the value of a scalar: string, bool, json.Number, nil, or a date of TOML.
	Value any
	Kids  []*Node
	// line is what became of a leaf.
	line *Line
}

// Get returns the member of a key. Of a key that is written twice the last one counts, as in every program that is imported from.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	for _, k := range slices.Backward(n.Kids) {
		if k.Key == key {
			return k
		}
	}
	return nil
}

// At follows keys.
func (n *Node) At(keys ...string) *Node {
	for _, k := range keys {
		n = n.Get(k)
	}
	return n
}

// Members returns the members of an object that count, in their order.
func (n *Node) Members() []*Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	last := make(map[string]*Node, len(n.Kids))
	for _, k := range n.Kids {
		last[k.Key] = k
	}
	if len(last) == len(n.Kids) {
		return n.Kids
	}
	return slices.DeleteFunc(slices.Clone(n.Kids), func(k *Node) bool { return last[k.Key] != k })
}

// Items returns the entries of a list.
func (n *Node) Items() []*Node {
	if n == nil || n.Kind != List {
		return nil
	}
	return n.Kids
}

// Text returns a text.
func (n *Node) Text() (string, bool) {
	if n == nil || n.Kind != Scalar {
		return "", false
	}
	s, ok := n.Value.(string)
	return s, ok
}

// Texts returns the entries of a list when all are texts.
func (n *Node) Texts() ([]string, bool) {
	if n == nil || n.Kind != List {
		return nil, false
	}
	out := make([]string, len(n.Kids))
	for i, k := range n.Kids {
		var ok bool
		if out[i], ok = k.Text(); !ok {
			return nil, false
		}
	}
	return out, true
}

// Int returns a whole number.
func (n *Node) Int() (int64, bool) {
	if n == nil || n.Kind != Scalar {
		return 0, false
	}
	num, ok := n.Value.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := num.Int64()
	return i, err == nil
}

// Is reports whether a value is that text or truth value.
func (n *Node) Is(v any) bool { return n != nil && n.Kind == Scalar && n.Value == v }

// Leaves yields the leaves at and below a node: scalars, and objects and lists without anything in them.
func (n *Node) Leaves(yield func(*Node) bool) { n.leaves(yield) }

func (n *Node) leaves(yield func(*Node) bool) bool {
	if n == nil {
		return true
	}
	if len(n.Kids) == 0 {
		return yield(n)
	}
	for _, k := range n.Kids {
		if !k.leaves(yield) {
			return false
		}
	}
	return true
}

// Dialect is what a program takes for JSON.
type Dialect struct {
	// BOM, Comments and Commas say that a byte order mark, comments and trailing commas are read over.
	BOM, Comments, Commas bool
}

// JSON reads a JSON object as the program of a dialect does.
func JSON(file string, data []byte, d Dialect) (*Node, error) {
	if err := size(data); err != nil {
		return nil, err
	}
	if d.BOM {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	if d.Comments || d.Commas {
		data = plain(data, d)
	}
	if err := limits(data, false); err != nil {
		return nil, err
	}
	o, err := jsondoc.Parse(data, nil)
	if err != nil {
		return nil, err
	}
	n := &Node{File: file}
	fill(n, o)
	return n, nil
}

// size refuses what is no text of a size that is read.
func size(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("it is larger than %d MiB", MaxBytes>>20)
	}
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	return nil
}

// limits refuses what would take a reader too long or too deep: it counts brackets, the parts of dotted keys, and entries, outside of texts and comments.
func limits(data []byte, isTOML bool) error {
	depth, chain, keys := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			i = textEnd(data, i, isTOML)
		case '\'':
			if isTOML {
				i = textEnd(data, i, true)
			}
		case '#':
			if isTOML {
				for i < len(data) && data[i] != '\n' {
					i++
				}
			}
			chain = 0
		case '[', '{':
			depth++
			keys++
			chain = 0
		case ']', '}':
			depth = max(depth-1, 0)
			chain = 0
		case '.':
			chain++
		case ',', '=':
			keys++
			chain = 0
		case '\n', ':':
			chain = 0
		}
		if depth > MaxDepth || chain > MaxDepth {
			return fmt.Errorf("it is nested more than %d levels deep", MaxDepth)
		}
		if keys > MaxKeys {
			return fmt.Errorf("it has more than %d keys and entries", MaxKeys)
		}
	}
	return nil
}

// textEnd returns the index of the sign that closes the text opened at i, or the end of the data.
func textEnd(data []byte, i int, isTOML bool) int {
	q := data[i]
	end := []byte{q}
	if isTOML && len(data) > i+2 && data[i+1] == q && data[i+2] == q {
		end = []byte{q, q, q}
	}
	for i += len(end); i < len(data); i++ {
		switch {
		case data[i] == '\\' && q == '"':
			i++
		case len(end) == 1 && isTOML && data[i] == '\n':
			return i
		case bytes.HasPrefix(data[i:], end):
			return i + len(end) - 1
		}
	}
	return i
}

// plain blanks comments and trailing commas, so that places stay what they are.
func plain(data []byte, d Dialect) []byte {
	out := bytes.Clone(data)
	comma := -1
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case d.Comments && c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case d.Comments && c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			for stop := i + end + 4; i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if d.Commas && comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// TOML reads a TOML document. Keys are sorted: the format gives their order no meaning.
func TOML(file string, data []byte) (*Node, error) {
	if err := cmp.Or(size(data), limits(data, true)); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		// The error of a strict reader quotes the document, which may hold a secret.
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, col := at.Position()
			return nil, fmt.Errorf("it is not TOML: line %d, column %d", line, col)
		}
		return nil, errors.New("it is not TOML")
	}
	n := &Node{File: file}
	fill(n, doc)
	return n, nil
}

func fill(n *Node, v any) {
	add := func(key, pointer string, v any) {
		k := &Node{File: n.File, Key: key, Pointer: pointer}
		n.Kids = append(n.Kids, k)
		fill(k, v)
	}
	switch v := v.(type) {
	case jsondoc.Object:
		n.Kind = Object
		for _, m := range v {
			add(m.Key, jsondoc.Pointer(n.Pointer, m.Key), m.Value)
		}
	case map[string]any:
		n.Kind = Object
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(key, jsondoc.Pointer(n.Pointer, key), v[key])
		}
	case []any:
		n.Kind = List
		for i, x := range v {
			add("", n.Pointer+"/"+strconv.Itoa(i), x)
		}
	case int64:
		n.Value = json.Number(strconv.FormatInt(v, 10))
	case float64:
		n.Value = json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case time.Time:
		n.Value = v
	default:
		n.Value = v
	}
}

// Merge lays files over each other, the last one on top, and returns one tree over the nodes of all of them: objects are merged by key, of scalars the last counts,
// and lists are united, or replaced when replace says so for their pointer.
func Merge(roots []*Node, replace func(pointer string) bool) *Node {
	var out *Node
	for _, r := range roots {
		out = lay(out, r, replace)
	}
	return out
}

func lay(under, over *Node, replace func(string) bool) *Node {
	switch {
	case under == nil || over == nil:
		if over == nil {
			return under
		}
		return over
	case under.Kind == Object && over.Kind == Object:
		n := &Node{File: over.File, Key: over.Key, Pointer: over.Pointer, Kind: Object}
		for _, k := range under.Members() {
			n.Kids = append(n.Kids, lay(k, over.Get(k.Key), replace))
		}
		for _, k := range over.Members() {
			if under.Get(k.Key) == nil {
				n.Kids = append(n.Kids, k)
			}
		}
		return n
	case under.Kind == List && over.Kind == List && !replace(over.Pointer):
		return &Node{File: over.File, Key: over.Key, Pointer: over.Pointer, Kind: List, Kids: slices.Concat(under.Kids, over.Kids)}
	}
	for leaf := range under.Leaves {
		leaf.line = &Line{Outcome: Dropped, Code: CodeNoCounterpart.ID, Reason: "the file " + over.File + " says otherwise and ranks higher"}
	}
	return over
}

// Document returns a value as package jsondoc has parsed documents.
func (n *Node) Document() any {
	switch n.Kind {
	case Object:
		o := jsondoc.Object{}
		for _, k := range n.Members() {
			o.Add(k.Key, k.Document())
		}
		return o
	case List:
		l := make([]any, len(n.Kids))
		for i, k := range n.Kids {
			l[i] = k.Document()
		}
		return l
	}
	return n.Value
}

// Compact returns a value as JSON on one line.
func (n *Node) Compact() string {
	var b strings.Builder
	n.compact(&b)
	return b.String()
}

func (n *Node) compact(b *strings.Builder) {
	switch n.Kind {
	case Object:
		b.WriteByte('{')
		for i, k := range n.Members() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(Quote(k.Key))
			b.WriteString(": ")
			k.compact(b)
		}
		b.WriteByte('}')
	case List:
		b.WriteByte('[')
		for i, k := range n.Kids {
			if i > 0 {
				b.WriteString(", ")
			}
			k.compact(b)
		}
		b.WriteByte(']')
	default:
		switch v := n.Value.(type) {
		case string:
			b.WriteString(Quote(v))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		case json.Number:
			b.WriteString(string(v))
		default:
			b.WriteString("null")
		}
	}
}
