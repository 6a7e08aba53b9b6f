package policy

import (
	"fmt"
	"reflect"
	"testing"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

// filler gives every part of a value something of its own, so that one that is not kept is missed.
type filler struct {
	n    int
	file int
}

func (f *filler) pos() diag.Pos {
	f.n++
	return diag.NewPos(f.file, f.n, f.n%80+1)
}

func (f *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()
	f.n++
	switch x := v.Addr().Interface().(type) {
	case *diag.Pos:
		*x = f.pos()
		return
	case *source.Str:
		*x = source.Str{V: fmt.Sprintf("text %d", f.n), Pos: f.pos()}
		return
	case *host.Pattern:
		p, problem := host.ParseDenyPattern(fmt.Sprintf("*.h%d.example", f.n))
		if problem != nil {
			t.Fatal(problem)
		}
		*x = p
		return
	case *fspath.Path:
		// A path that both lists take.
		p, problem := fspath.ParseRoot(fmt.Sprintf("~/.cache/p%d", f.n))
		if problem != nil {
			t.Fatal(problem)
		}
		*x = p
		return
	case *Header:
		*x = Header{Kind: x.Kind, Name: source.Str{V: "name", Pos: f.pos()}, Pos: f.pos()}
		return
	case *Pin:
		*x = Pin{Harness: source.Str{V: "codex", Pos: f.pos()}, Version: source.Str{V: "1.2.3", Pos: f.pos()}, Model: source.Str{V: "m", Pos: f.pos()}}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("string %d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Pointer:
		// Profile.Base, which assemble sets after reading.
	default:
		t.Fatalf("a %s is not filled", v.Type())
	}
}

// A document that was kept comes back as it was, at its place among the files of now.
func TestStored(t *testing.T) {
	tests := []struct {
		name string
		file string
		full func() any
	}{
		{"profile", "p.yaml", func() any { return &Profile{Header: Header{Kind: "Profile"}} }},
		{"ring", "r.yaml", func() any { return &Ring{Header: Header{Kind: "Ring"}} }},
		{"unit", "u.yaml", func() any { return &Unit{Header: Header{Kind: "Unit"}} }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, filled := range []bool{true, false} {
				was, still, is := test.full(), test.full(), test.full()
				for _, x := range []struct {
					doc  any
					file int
				}{{was, 3}, {still, 3}, {is, 7}} {
					if filled {
						(&filler{file: x.file}).fill(t, reflect.ValueOf(x.doc).Elem())
					}
				}
				text, ok := store(was)
				if !ok || !reflect.DeepEqual(was, still) {
					t.Fatalf("kept: %t; afterwards it is\n%+v", ok, was)
				}
				got, ok := restore(string(text), test.file, 7)
				if !ok || !reflect.DeepEqual(got, is) {
					t.Errorf("came back as\n%+v\nwant\n%+v", got, is)
				}
				for n := range len(text) {
					if doc, ok := restore(string(text[:n]), test.file, 7); ok {
						t.Fatalf("%d of %d bytes are read as %+v", n, len(text), doc)
					}
				}
			}
		})
	}
	t.Run("pack", func(t *testing.T) {
		text, ok := store(&PackFile{Name: "a", File: 3, CRLF: true})
		if !ok {
			t.Fatal("not kept")
		}
		want := &PackFile{Name: "a", File: 7, CRLF: true}
		if got, ok := restore(string(text), "packs/a/pack.yaml", 7); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("came back as %+v, want %+v", got, want)
		}
	})
}

// What cannot be kept whole is not kept.
func TestNotStored(t *testing.T) {
	pos := diag.NewPos(0, 1, 1)
	for name, doc := range map[string]any{
		"a kind that a repo has few of":      &Gateway{Header: Header{Kind: "Gateway"}},
		"a file that is no document":         &RepoFile{Name: "openshell/a.yaml"},
		"a document with errors":             &Unit{Header: Header{Kind: "Unit", Bad: true}},
		"a document that lacks a key":        &Ring{Header: Header{Kind: "Ring", lacks: []lack{{key: "order"}}}},
		"a pack with errors":                 &PackFile{Name: "a", Bad: true},
		"overrides, which are of every type": &Profile{Header: Header{Kind: "Profile"}, Body: Body{Harnesses: []Pin{{OverridesPos: pos}}}},
	} {
		if text, ok := store(doc); ok {
			t.Errorf("%s is kept as %q", name, text)
		}
	}
}

func FuzzRestore(f *testing.F) {
	for _, doc := range []any{&Profile{Header: Header{Kind: "Profile"}}, &Ring{Header: Header{Kind: "Ring"}}, &Unit{Header: Header{Kind: "Unit"}}, &PackFile{}} {
		text, _ := store(doc)
		f.Add(string(text))
	}
	f.Add("\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, text string) {
		doc, ok := restore(text, "packs/a/pack.yaml", 1)
		if !ok {
			return
		}
		again, ok := store(doc)
		if !ok {
			t.Fatalf("%+v was read and cannot be kept", doc)
		}
		if got, ok := restore(string(again), "packs/a/pack.yaml", 1); !ok || !reflect.DeepEqual(got, doc) {
			t.Errorf("%+v came back as %+v", doc, got)
		}
	})
}
