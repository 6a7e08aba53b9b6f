package source

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
)

// Str is a text with its place. A Str that was not written has no place.
type Str struct {
	V   string
	Pos diag.Pos
}

// IsSet reports whether the text was written.
func (s Str) IsSet() bool { return s.Pos.IsValid() }

// Bool is a boolean with its place: absent, false and true are three values.
type Bool struct {
	V   bool
	Pos diag.Pos
}

// IsSet reports whether the boolean was written.
func (b Bool) IsSet() bool { return b.Pos.IsValid() }

// Int is an integer with its place.
type Int struct {
	V   int64
	Pos diag.Pos
}

// IsSet reports whether the number was written.
func (i Int) IsSet() bool { return i.Pos.IsValid() }

// Strs is a list of texts: absent, empty and filled are three values.
type Strs struct {
	Items []Str
	// Pos is the place of the list itself, not valid when the key is absent.
	Pos diag.Pos
}

// IsSet reports whether the list was written, if only as [].
func (l Strs) IsSet() bool { return l.Pos.IsValid() }

// Pair is an entry of a map of texts, in the order written.
type Pair struct {
	Key, Value Str
}

// Interner keeps one copy of each text of a repo, so that no file's bytes stay in memory because of a word in it.
type Interner struct {
	shards [16]struct {
		mu sync.Mutex
		m  map[string]string
	}
}

// Intern returns the kept copy of s.
func (in *Interner) Intern(s string) string {
	if s == "" {
		return ""
	}
	sh := &in.shards[(uint(s[len(s)-1])^uint(len(s)))%uint(len(in.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t, ok := sh.m[s]; ok {
		return t
	}
	if sh.m == nil {
		sh.m = make(map[string]string, 64)
	}
	t := strings.Clone(s)
	sh.m[t] = t
	return t
}

// Decoder walks the nodes of one document into typed values. Wrong values are reported and left absent, and the walk goes on.
type Decoder struct {
	File  int
	Doc   string // KIND/NAME, for diagnostics
	Diags *diag.List
	In    *Interner
	path  Path
}

// Field is one key of a mapping: its name and how its value is read into T.
type Field[T any] struct {
	Name string
	Read func(d *Decoder, n *Node, into *T)
	// Hint, when set, makes the key a refused one: it is known, is not read, and the hint says where to go.
	Hint string
	// Shape says what Read takes, and At is the place in T that it fills: see Shape and Key.At.
	Shape func() Shape
	At    any
}

// Pos returns the place of a node.
func (d *Decoder) Pos(n *Node) diag.Pos { return diag.NewPos(d.File, n.Line, n.Column) }

// Report adds a finding at a node, with the key path of the value being read.
func (d *Decoder) Report(code *diag.Code, n *Node, format string, args ...any) *diag.Diagnostic {
	x := diag.New(code, d.Pos(n), d.path.String(), format, args...)
	x.Document = d.Doc
	return &x
}

func (d *Decoder) add(code *diag.Code, n *Node, hint, format string, args ...any) {
	x := d.Report(code, n, format, args...)
	x.Hint = hint
	d.Diags.Add(*x)
}

// skip reports whether n is a value that vet has reported already.
func skip(n *Node) bool {
	return n.Kind == yaml.AliasNode || n.Kind == yaml.ScalarNode && n.Tag == "!!null" || n.Style&yaml.TaggedStyle != 0
}

func (d *Decoder) wrong(n *Node, want, hint string) {
	if !skip(n) {
		d.add(codeType, n, hint, "found %s, want %s", describe(n), want)
	}
}

// Map reads a mapping by the table of its keys. Unknown keys are reported with the nearest known one.
func Map[T any](d *Decoder, n *Node, fields []Field[T], into *T) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "a mapping", "")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			continue
		}
		d.path.PushKey(k.Value)
		switch f := find(fields, k.Value); {
		case f == nil:
			unknownKey(d, k, fields)
		case f.Hint != "":
			d.add(codeUnknownKey, k, f.Hint, "key %s is not supported here", diag.Quote(k.Value))
		case !repeatedKey(n, i) && !skip(v):
			f.Read(d, v, into)
		}
		d.path.Pop()
	}
}

func find[T any](fields []Field[T], name string) *Field[T] {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

// repeatedKey reports whether an equal key stands earlier, which vet has reported.
func repeatedKey(n *Node, i int) bool {
	for j := 0; j < i; j += 2 {
		if n.Content[j].Value == n.Content[i].Value {
			return true
		}
	}
	return false
}

func unknownKey[T any](d *Decoder, k *Node, fields []Field[T]) {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		if f.Hint == "" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	hint := "known keys here: " + strings.Join(names, ", ")
	if near := diag.Nearest(k.Value, names); near != "" {
		hint = "did you mean " + strconv.Quote(near) + "?"
	}
	d.add(codeUnknownKey, k, hint, "unknown key %s", diag.Quote(k.Value))
}

// Seq calls each for the items of a list; null items, already reported, are left out. It answers the place of the list.
func Seq(d *Decoder, n *Node, each func(i int, n *Node)) diag.Pos {
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = "write a list: [" + n.Value + "]"
		}
		d.wrong(n, "a list", hint)
		return 0
	}
	for i, c := range n.Content {
		if skip(c) {
			continue
		}
		d.path.PushIndex(i)
		each(i, c)
		d.path.Pop()
	}
	return d.Pos(n)
}

// Keys calls each for the entries of a mapping with free keys, in the order written.
func Keys(d *Decoder, n *Node, each func(key Str, n *Node)) diag.Pos {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, "a mapping", "")
		return 0
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" || skip(k) || len(n.Content) <= 64 && repeatedKey(n, i) {
			continue
		}
		d.path.PushKey(k.Value)
		if !skip(v) {
			each(Str{d.In.Intern(k.Value), d.Pos(k)}, v)
		}
		d.path.Pop()
	}
	return d.Pos(n)
}

// String reads a text. Numbers and booleans are refused: their text is not what a reader of YAML sees.
func (d *Decoder) String(n *Node) Str {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && !(n.Tag == "!!timestamp") {
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = "put it in quotes: " + strconv.Quote(n.Value)
		}
		d.wrong(n, "a text", hint)
		return Str{}
	}
	return Str{d.In.Intern(n.Value), d.Pos(n)}
}

// Text reads a text that must not be empty.
func (d *Decoder) Text(n *Node) Str {
	s := d.String(n)
	if s.IsSet() && strings.TrimSpace(s.V) == "" {
		d.add(codeEmpty, n, "", "the text is empty")
		return Str{}
	}
	return s
}

// Number reads an integer or a decimal written without quotes as its text, such as a version 2 or a percentage; numbers are accepted.
func (d *Decoder) Number(n *Node) (float64, diag.Pos) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" {
		d.wrong(n, "a number", "")
		return 0, 0
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		d.add(codeRange, n, "", "%s is not a finite number", n.Value)
		return 0, 0
	}
	return f, d.Pos(n)
}

// Int reads an integer between lo and hi.
func (d *Decoder) Int(n *Node, lo, hi int64) Int {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		d.wrong(n, "a whole number", "")
		return Int{}
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || i < lo || i > hi {
		d.add(codeRange, n, "", "%s is not a decimal whole number from %d to %d", n.Value, lo, hi)
		return Int{}
	}
	return Int{i, d.Pos(n)}
}

// Bool reads true or false. YAML 1.1 words such as yes and on are refused.
func (d *Decoder) Bool(n *Node) Bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Value != "true" && n.Value != "false" {
		d.wrong(n, "true or false", "write true or false without quotes")
		return Bool{}
	}
	return Bool{n.Value == "true", d.Pos(n)}
}

// Enum reads one of the given words.
func (d *Decoder) Enum(n *Node, words ...string) Str {
	if n.Kind == yaml.ScalarNode && !skip(n) {
		if i := slices.Index(words, n.Value); i >= 0 {
			return Str{words[i], d.Pos(n)}
		}
		hint := ""
		if near := diag.Nearest(n.Value, words); near != "" {
			hint = "write " + near
		}
		d.add(codeEnum, n, hint, "%s is not one of %s", diag.Quote(n.Value), strings.Join(words, ", "))
		return Str{}
	}
	d.wrong(n, "one of "+strings.Join(words, ", "), "")
	return Str{}
}

// Strings reads a list of texts, of which each may be empty.
func (d *Decoder) Strings(n *Node) Strs { return d.list(n, d.String) }

// Texts reads a list of texts that must not be empty.
func (d *Decoder) Texts(n *Node) Strs { return d.list(n, d.Text) }

func (d *Decoder) list(n *Node, item func(*Node) Str) Strs {
	var l Strs
	if n.Kind == yaml.SequenceNode {
		l.Items = make([]Str, 0, len(n.Content))
	}
	l.Pos = Seq(d, n, func(_ int, c *Node) {
		if s := item(c); s.IsSet() {
			l.Items = append(l.Items, s)
		}
	})
	return l
}

// Pairs reads a map of texts, in the order written.
func (d *Decoder) Pairs(n *Node) ([]Pair, diag.Pos) {
	var out []Pair
	pos := Keys(d, n, func(k Str, v *Node) {
		if s := d.String(v); s.IsSet() {
			out = append(out, Pair{k, s})
		}
	})
	return out, pos
}

// Require reports a required key that is absent, at the mapping that lacks it.
func (d *Decoder) Require(n *Node, name string, present bool) {
	if present {
		return
	}
	if x, missing := d.Missing(n, name); missing {
		d.Diags.Add(x)
	}
}

// Missing returns the finding that Require reports, for a key that something else may still give.
func (d *Decoder) Missing(n *Node, name string) (diag.Diagnostic, bool) {
	if hasKey(n, name) {
		return diag.Diagnostic{}, false
	}
	d.path.PushKey(name)
	defer d.path.Pop()
	return *d.Report(codeMissing, n, "required key %q is missing", name), true
}

func hasKey(n *Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// Get returns the value of a key of a mapping, or nil.
func Get(n *Node, name string) *Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// IsScalar reports whether n is a scalar that was not refused already.
func IsScalar(n *Node) bool { return n.Kind == yaml.ScalarNode && !skip(n) }

// IsMapping reports whether n is a mapping.
func IsMapping(n *Node) bool { return n.Kind == yaml.MappingNode }

// IsList reports whether a node is a list.
func IsList(n *Node) bool { return n.Kind == yaml.SequenceNode }

// Value reads any YAML value into plain Go data (map[string]any, []any, string, bool, int64, float64) for keys whose content belongs to a harness.
func (d *Decoder) Value(n *Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		Keys(d, n, func(k Str, v *Node) { m[k.V] = d.Value(v) })
		return m
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		Seq(d, n, func(_ int, v *Node) { l = append(l, d.Value(v)) })
		return l
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!bool":
			return d.Bool(n).V
		case "!!int":
			return d.Int(n, math.MinInt64, math.MaxInt64).V
		case "!!float":
			f, _ := d.Number(n)
			return f
		}
		return d.In.Intern(n.Value)
	}
	return nil
}

// Enter and Leave put a key on the path around a read that a table does not do.
func (d *Decoder) Enter(key string) { d.path.PushKey(key) }

// Leave undoes Enter.
func (d *Decoder) Leave() { d.path.Pop() }
