package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// comments are the documentation of the readers, from their Go source.
type comments struct {
	// types and fields document Go types and their fields, by Type and Type.Field.
	types, fields map[string]string
	// keys documents the keys of tables that are written out as nested literals, by variable.key.key.
	keys map[string]string
}

// comment is a documentation comment: the first paragraph, and what its Default: and Example: lines say.
type comment struct {
	text     string
	def      any
	examples []any
}

// readComments reads the comments of Go packages in the given directories.
func readComments(dirs ...string) (*comments, error) {
	c := &comments{types: map[string]string{}, fields: map[string]string{}, keys: map[string]string{}}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, src, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			c.file(f, ast.NewCommentMap(set, f, f.Comments))
		}
	}
	return c, nil
}

func (c *comments) file(f *ast.File, attached ast.CommentMap) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				doc := s.Doc
				if doc == nil && len(gen.Specs) == 1 {
					doc = gen.Doc
				}
				c.types[s.Name.Name] = doc.Text()
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						for _, name := range field.Names {
							c.fields[s.Name.Name+"."+name.Name] = field.Doc.Text()
						}
					}
				}
			case *ast.ValueSpec:
				for i, v := range s.Values {
					if lit, ok := v.(*ast.CompositeLit); ok {
						c.literal(s.Names[i].Name, lit, attached)
					}
				}
			}
		}
	}
}

// literal finds the elements of a literal that have a name and a comment above them.
func (c *comments) literal(path string, lit *ast.CompositeLit, attached ast.CommentMap) {
	if name := nameOf(lit); name != "" {
		path += "." + name
		if groups := attached[lit]; len(groups) > 0 {
			c.keys[path] = groups[len(groups)-1].Text()
		}
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		if sub, ok := e.(*ast.CompositeLit); ok {
			c.literal(path, sub, attached)
		}
	}
}

func nameOf(lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, isIdent := kv.Key.(*ast.Ident)
		value, isLit := kv.Value.(*ast.BasicLit)
		if isIdent && isLit && key.Name == "name" {
			if name, err := strconv.Unquote(value.Value); err == nil {
				return name
			}
		}
	}
	return ""
}

// at returns the comment of the place that a key fills: of its field, or else of its type.
func (c *comments) at(key string, at any) (comment, error) {
	typ, field := place(at)
	text, first := c.fields[field], field[strings.LastIndexByte(field, '.')+1:]
	if text == "" {
		text, first = c.types[typ], typ
	}
	return parse(key, first, text)
}

// place returns the Go type of a value and the field that it is in, as Type.Field: at is a func(*T) *V, or a nil *V.
func place(at any) (typ, field string) {
	v := reflect.ValueOf(at)
	if v.Kind() != reflect.Func {
		return v.Type().Elem().Name(), ""
	}
	into := reflect.New(v.Type().In(0).Elem())
	out := v.Call([]reflect.Value{into})[0]
	typ = pointed(out.Type()).Name()
	in, offset := into.Type().Elem(), out.Pointer()-into.Pointer()
	for in.Kind() == reflect.Struct {
		next := in
		for f := range in.Fields() {
			if offset < f.Offset || offset >= f.Offset+f.Type.Size() {
				continue
			}
			if offset == f.Offset && f.Type == out.Type().Elem() {
				return typ, in.Name() + "." + f.Name
			}
			next, offset = f.Type, offset-f.Offset
			break
		}
		if next == in {
			break
		}
		in = next
	}
	return typ, ""
}

// pointed takes pointers and slices off a type.
func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func parse(key, first, text string) (comment, error) {
	var c comment
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i == 0 {
			c.text = strings.Join(strings.Fields(paragraph), " ")
			continue
		}
		for line := range strings.Lines(paragraph) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if name != "Example" && name != "Default" {
				continue
			}
			var v any
			if err := yaml.Unmarshal([]byte(value), &v); err != nil {
				return c, fmt.Errorf("%s of %s: %w", name, key, err)
			}
			if day, ok := dated(value); ok {
				v = day
			}
			if name == "Default" {
				c.def = v
			} else {
				c.examples = append(c.examples, v)
			}
		}
	}
	if c.text == "" {
		return c, fmt.Errorf("nothing documents %s", key)
	}
	c.text = description(c.text, first)
	return c, nil
}

// description takes the name that a Go comment begins with off a text: "Org is the name of the organization." is "The name of the organization."
func description(text, name string) string {
	rest, ok := strings.CutPrefix(text, name+" ")
	if !ok || name == "" {
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// dated keeps a date a text, as the readers and YAML 1.2 do.
func dated(s string) (string, bool) {
	return s, len(s) == len("2026-11-30") && strings.Trim(s, "0123456789-") == "" && s[4] == '-'
}
