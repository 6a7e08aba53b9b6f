package pack

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

type kind uint8

const (
	kindMap kind = iota
	kindText
	kindBool
	kindInt
	kindTexts
	kindInts
)

// wanted is what a message says a kind takes, in DefenseClaw's words.
var wanted = [...]string{"a mapping", "a string", "true or false", "an integer", "a list", "a list"}

// field is one key of a schema, with what its value may be. id numbers the keys of one schema. The comment above a key describes it in the published schemas.
type field struct {
	name string
	kind kind
	id   int
	// null marks the keys for which null means unset, need those that cannot be left out, and blank those for which the empty text means unset.
	null, need, blank bool
	// words are what a text can be, form is the spelling of a text or of the entries of a list.
	words []string
	form  string
	// min and max bound a number, or each number of a list; most is the most entries of a list, 0 for no limit.
	min, max, most int
	keys           []field
}

func (f *field) find(name string) *field {
	for i := range f.keys {
		if f.keys[i].name == name {
			return &f.keys[i]
		}
	}
	return nil
}

// problem is one finding of a reader, not yet tied to an error or a diagnostic.
type problem struct {
	code *diag.Code
	// key is the path from the root of the schema, reason and class as in Error.
	key, reason, class string
	line, column       int
	structural         bool
	// detail is what a diagnostic adds to the reason; hint what to write.
	detail, hint string
	related      []place
}

type place struct {
	line, column int
	message      string
}

// reader walks a YAML document by a schema and keeps the nodes that are well formed. Structural problems are collected in document order.
type reader struct {
	root     *field
	prefix   string
	newer    []string
	vetted   bool
	problems []problem
	// fields, nodes and keys are indexed by field id. bad marks fields that were reported, so that they are not missing as well.
	fields      []*field
	nodes, keys []*yaml.Node
	bad         []bool
	// unusable holds the list entries that were reported.
	unusable map[*yaml.Node]bool
}

func newReader(root *field, count int) *reader {
	nodes := make([]*yaml.Node, 2*count)
	r := &reader{root: root, fields: make([]*field, count), nodes: nodes[:count:count], keys: nodes[count:], bad: make([]bool, count)}
	r.index(root)
	return r
}

func (r *reader) index(f *field) {
	r.fields[f.id] = f
	for i := range f.keys {
		r.index(&f.keys[i])
	}
}

func (r *reader) add(n *yaml.Node, p problem) *problem {
	p.line, p.column = n.Line, n.Column
	r.problems = append(r.problems, p)
	return &r.problems[len(r.problems)-1]
}

func (r *reader) structural(n *yaml.Node, code *diag.Code, key, class, reason, detail string) *problem {
	return r.add(n, problem{code: code, key: key, class: class, reason: reason, detail: detail, structural: true})
}

func join(parent, key string) string {
	if parent == "" || key == "" {
		return parent + key
	}
	return parent + "." + key
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// fail marks a field and everything below it as reported.
func (r *reader) fail(f *field) {
	r.bad[f.id] = true
	for i := range f.keys {
		r.fail(&f.keys[i])
	}
}

// plain reports alias, anchor, tag and null. It answers false when the value cannot be used.
func (r *reader) plain(n *yaml.Node, key string) bool {
	if n.Kind == yaml.AliasNode {
		if !r.vetted {
			r.structural(n, codeAnchor, key, "yaml_alias", "anchors and aliases are not allowed", ", found the alias *"+n.Value).hint = "write the value out"
		}
		return false
	}
	if n.Anchor != "" && !r.vetted {
		r.structural(n, codeAnchor, key, "yaml_alias", "anchors and aliases are not allowed", ", found the anchor &"+n.Anchor).hint = "write the value out where it is needed"
	}
	if n.Style&yaml.TaggedStyle != 0 {
		if !r.vetted {
			r.structural(n, codeTag, key, "yaml_type", "explicit tags are not allowed", ", the plain value is wanted").hint = `remove the tag; put quotes around text that reads like a number or a boolean`
		}
		return false
	}
	return true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// value reads n as f and answers whether it is usable.
func (r *reader) value(n *yaml.Node, key string, f *field) bool {
	if !r.plain(n, key) {
		r.fail(f)
		return false
	}
	if isNull(n) {
		r.fail(f)
		if !f.null && !r.vetted {
			r.structural(n, codeNull, key, "yaml_type", "must not be null", ", want "+wanted[f.kind]).hint = nullHint(f.kind)
		}
		return false
	}
	if !r.fits(n, key, f.kind) {
		r.fail(f)
		return false
	}
	r.nodes[f.id] = n
	switch f.kind {
	case kindMap:
		r.mapping(n, key, f)
	case kindTexts, kindInts:
		item := kindText
		if f.kind == kindInts {
			item = kindInt
		}
		for i, c := range n.Content {
			switch k := at(key, i); {
			case !r.plain(c, k):
				r.spoil(c)
			case isNull(c):
				if !r.vetted {
					r.structural(c, codeNull, k, "yaml_type", "must not be null", ", want "+wanted[item]).hint = "remove the entry or write a value"
				}
				r.spoil(c)
			case !r.fits(c, k, item):
				r.spoil(c)
			}
		}
	}
	return true
}

func (r *reader) spoil(item *yaml.Node) {
	if r.unusable == nil {
		r.unusable = map[*yaml.Node]bool{}
	}
	r.unusable[item] = true
}

func nullHint(k kind) string {
	switch k {
	case kindMap:
		return "write {} or remove the key"
	case kindBool:
		return "write true or false"
	case kindTexts, kindInts:
		return "write [] for an empty list or remove the key"
	}
	return "write a value or remove the key"
}

// fits reports a node of the wrong type.
func (r *reader) fits(n *yaml.Node, key string, want kind) bool {
	ok := false
	switch want {
	case kindMap:
		ok = n.Kind == yaml.MappingNode
	case kindTexts, kindInts:
		ok = n.Kind == yaml.SequenceNode
	case kindText:
		ok = n.Kind == yaml.ScalarNode && n.Tag == "!!str"
	case kindBool:
		ok = n.Kind == yaml.ScalarNode && n.Tag == "!!bool"
	case kindInt:
		if n.Kind == yaml.ScalarNode && n.Tag == "!!int" {
			_, ok = number(n)
		}
	}
	if ok {
		return true
	}
	p := r.structural(n, codeType, key, "yaml_type", "must be "+wanted[want], ", found "+describe(n))
	switch {
	case want == kindBool && n.Kind == yaml.ScalarNode:
		p.hint = "write true or false without quotes; yes, no, on and off are plain text in YAML 1.2"
	case want == kindText && n.Kind == yaml.ScalarNode:
		p.hint = "put quotes around it: " + strconv.Quote(n.Value)
	case want == kindInt && n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		p.hint = "write a whole number without quotes"
	case (want == kindTexts || want == kindInts) && n.Kind == yaml.ScalarNode:
		p.hint = "write it as a list: [" + n.Value + "]"
	}
	return false
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "null"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!timestamp":
		return "the date " + n.Value
	}
	return "the text " + diag.Quote(n.Value)
}

func (r *reader) mapping(n *yaml.Node, path string, f *field) {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := join(path, k.Value)
		switch {
		case k.Kind == yaml.AliasNode || k.Anchor != "" && k.Kind == yaml.ScalarNode && k.Tag == "!!str":
			if !r.vetted {
				r.structural(k, codeAnchor, key, "yaml_alias", "anchors and aliases are not allowed", ", found one on a key").hint = "write the key out, without & or *"
			}
			if k.Kind == yaml.AliasNode {
				continue
			}
		case k.Value == "<<" && k.Kind == yaml.ScalarNode:
			if !r.vetted {
				r.structural(k, codeAnchor, key, "yaml_alias", "merge keys are not allowed", ", found <<").hint = "write the keys out"
			}
			continue
		case k.Style&yaml.TaggedStyle != 0:
			if !r.vetted {
				r.structural(k, codeTag, key, "yaml_type", "explicit tags are not allowed", ", found one on a key").hint = "remove the tag"
			}
			continue
		case k.Kind != yaml.ScalarNode || k.Tag != "!!str":
			if !r.vetted || k.Tag != "!!null" {
				r.structural(k, codeKey, key, "yaml_type", "keys must be strings", ", found "+describe(k))
			}
			continue
		}
		if earlier, ok := first[k.Value]; ok {
			if !r.vetted {
				p := r.structural(k, codeRepeated, key, "yaml_duplicate", "key is repeated", fmt.Sprintf(", it is already given on line %d", earlier.Line))
				p.hint = "keep one of the two"
				p.related = []place{{earlier.Line, earlier.Column, "first given here"}}
			}
			continue
		}
		first[k.Value] = k
		sub := f.find(k.Value)
		if sub == nil {
			r.structural(k, codeUnknown, key, "unknown_field", "unknown key", " "+diag.Quote(k.Value)).hint = r.unknownHint(key, k.Value, f)
			continue
		}
		r.keys[sub.id] = k
		r.value(v, key, sub)
	}
}

// unknownHint proposes what an unknown key was meant to be.
func (r *reader) unknownHint(key, name string, f *field) string {
	inside := strings.TrimPrefix(strings.TrimPrefix(key, r.prefix), ".")
	if slices.Contains(r.newer, inside) {
		return fmt.Sprintf("newer DefenseClaw versions know %s, this pack format does not: a device with a DefenseClaw that does not know the key refuses the whole pack; remove it", inside)
	}
	names := make([]string, len(f.keys))
	for i := range f.keys {
		names[i] = f.keys[i].name
	}
	if near := diag.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	if elsewhere := r.root.locate(name, ""); elsewhere != "" {
		return "that key is written as " + join(r.prefix, elsewhere)
	}
	return "known keys here: " + strings.Join(names, ", ")
}

// locate finds a key of this name anywhere in the schema.
func (f *field) locate(name, path string) string {
	for i := range f.keys {
		k := &f.keys[i]
		if k.name == name {
			return join(path, name)
		}
		if found := k.locate(name, join(path, k.name)); found != "" {
			return found
		}
	}
	return ""
}

// number decodes an integer as yaml.v3 does: decimal, 0x, 0o, 0b or a leading zero, with sign and underscores.
func number(n *yaml.Node) (int, bool) {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
	return int(v), err == nil
}

// text returns the trimmed text of a key; ok is false when the key is absent or unusable.
func (r *reader) text(id int) (string, bool) {
	if r.nodes[id] == nil {
		return "", false
	}
	return strings.TrimSpace(r.nodes[id].Value), true
}

func (r *reader) boolean(id int) (value, ok bool) {
	if n := r.nodes[id]; n != nil {
		return strings.EqualFold(n.Value, "true"), true
	}
	return false, false
}

func (r *reader) integer(id int) (int, bool) {
	if n := r.nodes[id]; n != nil {
		return number(n)
	}
	return 0, false
}

// invalid reports a value that breaks its rule. The reason is the message.
func (r *reader) invalid(n *yaml.Node, code *diag.Code, key, format string, args ...any) *problem {
	return r.add(n, problem{code: code, key: key, class: "invalid_value", reason: fmt.Sprintf(format, args...)})
}

// words is "must be one of a, b" as DefenseClaw writes it, with the nearest word as hint.
func (r *reader) words(n *yaml.Node, key, got string, words []string) {
	p := r.invalid(n, codeValue, key, "%q must be one of %s", got, strings.Join(words, ", "))
	if near := diag.Nearest(got, words); near != "" {
		p.hint = "write " + near
	}
}

// each calls fn for every usable entry of a list, in order, and answers whether the list is present. A list over its limit is reported by its own name and
// not looked into.
func (r *reader) each(id int, key string, fn func(i int, item *yaml.Node)) bool {
	n, limit := r.nodes[id], r.fields[id].most
	if n == nil {
		return false
	}
	if limit > 0 && len(n.Content) > limit {
		p := r.invalid(n, codeLong, key, "lists %d entries (at most %d)", len(n.Content), limit)
		p.class = "too_many"
		return true
	}
	for i, item := range n.Content {
		if !r.unusable[item] {
			fn(i, item)
		}
	}
	return true
}

// diagnostics turns the problems into diagnostics of the file with the given index.
func (r *reader) diagnostics(file int) []diag.Diagnostic { return diagnostics(r.problems, file) }

func diagnostics(problems []problem, file int) []diag.Diagnostic {
	out := make([]diag.Diagnostic, 0, len(problems))
	for _, p := range problems {
		d := diag.New(p.code, diag.NewPos(file, max(1, p.line), max(1, p.column)), p.key, "%s", p.reason+p.detail)
		d.Hint = p.hint
		for _, rel := range p.related {
			d = d.WithRelated(diag.NewPos(file, rel.line, rel.column), "%s", rel.message)
		}
		out = append(out, d)
	}
	return out
}

// Shape describes a pack.
func Shape() source.Shape { return packSchema.shape() }

// ConfigShape describes an openshell block.
func ConfigShape() source.Shape { return configSchema.shape() }

func (f *field) shape() source.Shape {
	s := source.Shape{Null: f.null}
	switch f.kind {
	case kindMap:
		s.Type = source.MappingValue
		for i := range f.keys {
			k := &f.keys[i]
			s.Keys = append(s.Keys, source.Key{Name: k.name, Shape: k.shape()})
			if k.need {
				s.Need = append(s.Need, k.name)
			}
		}
	case kindBool:
		s.Type = source.BoolValue
	case kindInt:
		s.Type, s.Min, s.Max = source.WholeValue, int64(f.min), int64(f.max)
	case kindText:
		s = f.textShape()
	case kindTexts:
		s.Type, s.Most, s.Item = source.ListValue, f.most, new(f.textShape())
	case kindInts:
		s.Type, s.Most, s.Item = source.ListValue, f.most, &source.Shape{Type: source.WholeValue, Min: int64(f.min), Max: int64(f.max)}
	}
	return s
}

func (f *field) textShape() source.Shape {
	if f.words == nil {
		return source.Shape{Type: source.TextValue, Form: f.form}
	}
	s := source.Shape{Type: source.WordValue, Words: f.words}
	if f.blank {
		s.Old = []string{""}
	}
	return s
}
