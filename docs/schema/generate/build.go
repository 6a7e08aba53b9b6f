package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

const (
	dialect = "https://json-schema.org/draft/2020-12/schema"
	// base is the beginning of the schemas' identities. Nothing is loaded from there.
	base = "https://halos.dev/schema/v1/"
)

// builder makes one schema: its definitions are the forms and mappings that it uses.
type builder struct {
	comments *comments
	defs     map[string]*node
	// block is the variable and path of the table whose comments document the keys, for the tables of package pack.
	block string
	errs  []error
}

// schemas returns the files of all schemas by name. root is the directory of the module.
func schemas(root string) (map[string][]byte, error) {
	docs, err := readComments(filepath.Join(root, "compiler", "policy"), filepath.Join(root, "compiler", "pack"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	write := func(name string, b *builder, n *node) error {
		n.Schema, n.ID, n.Defs = dialect, base+fileName(name), b.definitions()
		if len(b.errs) > 0 {
			return fmt.Errorf("%s: %w", name, b.errs[0])
		}
		data, err := print(n)
		out[fileName(name)] = data
		return err
	}
	for _, kind := range append([]string{"Halos"}, policy.Kinds...) {
		b := &builder{comments: docs, defs: map[string]*node{}}
		if err := write(kind, b, b.document(kind)); err != nil {
			return nil, err
		}
	}
	b := &builder{comments: docs, defs: map[string]*node{}, block: "packSchema"}
	n := b.node(pack.Shape())
	n.Title, n.Description = "Pack", "One sandbox pack of DefenseClaw: the file packs/NAME/pack.yaml."
	if err := write("Pack", b, n); err != nil {
		return nil, err
	}
	b = &builder{comments: docs, defs: map[string]*node{}}
	if err := write("Repo", b, b.repo()); err != nil {
		return nil, err
	}
	return out, nil
}

func (b *builder) definitions() *object {
	if len(b.defs) == 0 {
		return nil
	}
	o := &object{}
	for name, n := range b.defs {
		o.add(name, n)
	}
	slices.SortFunc(o.members, func(x, y member) int { return strings.Compare(x.name, y.name) })
	return o
}

// document is the schema of the documents of a kind.
func (b *builder) document(kind string) *node {
	shape := policy.Shape(kind)
	if kind != "Halos" {
		shape.Need = append([]string{"apiVersion", "kind"}, shape.Need...)
	}
	n := b.node(shape)
	typ, _ := place(shape.Go)
	c, err := parse(kind, typ, b.comments.types[typ])
	b.fail(err)
	n.Title, n.Description = kind, c.text
	return n
}

// repo is the schema of every document of a repo: kind decides which one holds. A document without a kind can only be halos.yaml.
func (b *builder) repo() *node {
	n := &node{Title: "halo policy repo", Description: "Any document of a policy repo; kind says which.", Type: "object", Properties: &object{}}
	kinds := append([]string{"Halos"}, policy.Kinds...)
	n.Properties.add("apiVersion", &node{Description: "The version of the language that the document is written in.", Type: "string"})
	n.Properties.add("kind", &node{Description: "What the document is.", Type: "string", Enum: words(kinds)})
	for _, kind := range kinds {
		name := "kind " + kind
		b.defs[name] = b.document(kind)
		n.AllOf = append(n.AllOf, &node{
			If:   &node{Required: words([]string{"kind"}), Properties: &object{[]member{{"kind", &node{Const: kind}}}}},
			Then: ref(name),
		})
	}
	n.AllOf = append(n.AllOf, &node{
		If: &node{Not: &node{Required: words([]string{"kind"})}},
		Then: &node{
			If:   &node{Required: words([]string{"org"})},
			Then: ref("kind Halos"),
			Else: &node{Required: words([]string{"kind"})},
		},
	})
	return n
}

func ref(name string) *node { return &node{Ref: "#/$defs/" + strings.ReplaceAll(name, " ", "%20")} }

func words(of []string) []any {
	out := make([]any, len(of))
	for i, w := range of {
		out[i] = w
	}
	return out
}

func (b *builder) fail(err error) {
	if err != nil {
		b.errs = append(b.errs, err)
	}
}

// node is the schema of a shape.
func (b *builder) node(s source.Shape) *node {
	n := b.plain(s)
	var also []*node
	if s.Or != nil {
		also = append(also, b.node(*s.Or))
	}
	if s.Null {
		also = append(also, &node{Type: "null", DoNotSuggest: true})
	}
	if also != nil {
		n = &node{AnyOf: append([]*node{n}, also...)}
	}
	return n
}

func (b *builder) plain(s source.Shape) *node {
	switch s.Type {
	case source.TextValue:
		return b.text(s.Form)
	case source.WordValue:
		n := &node{Type: "string", Enum: words(s.Words)}
		if s.Old != nil {
			old := &node{Enum: words(s.Old), Deprecated: true, DoNotSuggest: true}
			if s.Old[0] != "" {
				old.DeprecationMessage = "write " + strings.Join(s.Words, " or ")
			}
			n = &node{AnyOf: []*node{n, old}}
		}
		return n
	case source.BoolValue:
		return &node{Type: "boolean"}
	case source.WholeValue:
		return &node{Type: "integer", Minimum: &s.Min, Maximum: &s.Max}
	case source.NumberValue:
		return &node{Type: "number", Minimum: &s.Min, Maximum: &s.Max}
	case source.ListValue:
		return &node{Type: "array", Items: b.node(*s.Item), MinItems: s.Least, MaxItems: s.Most}
	case source.TableValue:
		n := &node{Type: "object", Additional: b.node(*s.Item)}
		if s.Names != nil {
			n.PropertyNames = b.node(*s.Names)
		}
		return n
	case source.MappingValue:
		return b.mapping(s)
	}
	return b.anyValue()
}

// anyValue is any value but null, which no document takes, at any depth.
func (b *builder) anyValue() *node {
	const name = "value"
	if b.defs[name] == nil {
		b.defs[name] = &node{Type: words([]string{"string", "number", "boolean", "array", "object"}), Items: ref(name), Additional: ref(name)}
	}
	return ref(name)
}

func (b *builder) text(name string) *node {
	if name == "" {
		return &node{Type: "string"}
	}
	if b.defs[name] == nil {
		f, ok := forms[name]
		if !ok {
			b.fail(fmt.Errorf("there is no form %q", name))
		}
		n := &node{Type: "string", Pattern: f.pattern, Format: f.format, MaxLength: f.maximum, PatternErrorMessage: "want " + f.message}
		if f.not != "" {
			n.Not, n.ErrorMessage = &node{Pattern: f.not}, n.PatternErrorMessage
		}
		b.defs[name] = n
	}
	return ref(name)
}

func (b *builder) mapping(s source.Shape) *node {
	n := &node{Type: "object", Properties: &object{}, Additional: false, Required: words(s.Need)}
	for _, k := range s.Keys {
		if k.Hint == "" {
			n.Properties.add(k.Name, b.key(k))
			continue
		}
		n.Properties.add(k.Name, &node{Description: "Not supported here: " + k.Hint, Deprecated: true, DoNotSuggest: true})
		if last := len(n.AllOf) - 1; last >= 0 && n.AllOf[last].ErrorMessage == k.Hint {
			n.AllOf[last].Properties.add(k.Name, false)
		} else {
			n.AllOf = append(n.AllOf, without(k.Hint, k.Name))
		}
	}
	if s.One != nil {
		for _, key := range s.One {
			n.AnyOf = append(n.AnyOf, &node{Required: words([]string{key})})
		}
		both := fmt.Sprintf("give one of %s", strings.Join(s.One, " and "))
		n.AllOf = append(n.AllOf, &node{If: &node{Required: words(s.One)}, Then: without(both, s.One[1:]...)})
	}
	return n
}

// without is a schema that keys make fail, with what an editor says about them.
func without(message string, keys ...string) *node {
	n := &node{Properties: &object{}, ErrorMessage: message}
	for _, key := range keys {
		n.Properties.add(key, false)
	}
	return n
}

// key is the schema of the value of a key, with what documents the key.
func (b *builder) key(k source.Key) *node {
	outer := b.block
	var c comment
	var err error
	switch {
	case k.Name == "openshell" && outer == "":
		b.block = "configSchema"
		c, err = b.comments.at(k.Name, k.At)
	case outer != "":
		b.block += "." + k.Name
		c, err = parse(k.Name, "", b.comments.keys[b.block])
	default:
		c, err = b.comments.at(k.Name, k.At)
	}
	if err != nil {
		b.fail(err)
	}
	n := b.node(k.Shape)
	b.block = outer
	n.Description, n.Default, n.Examples = c.text, c.def, c.examples
	return n
}
