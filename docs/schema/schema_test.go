package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"halos.dev/halo/compiler/policy"
)

// TestNames wants a schema for every kind of document.
func TestNames(t *testing.T) {
	want := []string{"halos", "pack", Repo}
	for _, kind := range policy.Kinds {
		want = append(want, strings.ToLower(kind))
	}
	slices.Sort(want)
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("there are schemas %q, want %q", got, want)
	}
	if _, ok := Get("PROFILE"); !ok {
		t.Error("the case of a kind matters")
	}
	if _, ok := Get("../schema"); ok {
		t.Error("there is a schema outside the directory")
	}
}

// TestDialect holds the schemas to the schema of JSON Schema 2020-12, which the validator brings along, and their references to themselves.
func TestDialect(t *testing.T) {
	meta, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		data, _ := Get(name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := meta.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		top := doc.(map[string]any)
		if top["$schema"] != "https://json-schema.org/draft/2020-12/schema" || top["$id"] != "https://halos.dev/schema/v1/"+name+".json" {
			t.Errorf("%s calls itself %v in %v", name, top["$id"], top["$schema"])
		}
	}
	broken, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"type": "text"}`))
	if err != nil || meta.Validate(broken) == nil {
		t.Errorf("a type that does not exist passes (%v)", err)
	}
}

// TestDocumentation wants every key of every schema described, and every example and default to be a value that the key takes.
func TestDocumentation(t *testing.T) {
	for _, name := range Names() {
		data, _ := Get(name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource(name, doc); err != nil {
			t.Fatal(err)
		}
		examples := 0
		var walk func(pointer string, v any)
		key := func(pointer string, k map[string]any) {
			if text, _ := k["description"].(string); strings.TrimSpace(text) == "" {
				t.Errorf("%s: nothing describes %s", name, pointer)
			}
			values, _ := k["examples"].([]any)
			if d, ok := k["default"]; ok {
				values = append(values, d)
			}
			for _, x := range values {
				examples++
				if s, err := c.Compile(name + "#" + pointer); err != nil {
					t.Fatal(err)
				} else if err := s.Validate(x); err != nil {
					t.Errorf("%s does not take its example: %v", pointer, err)
				}
			}
		}
		walk = func(pointer string, v any) {
			switch v := v.(type) {
			case []any:
				for i, c := range v {
					walk(pointer+"/"+strconv.Itoa(i), c)
				}
			case map[string]any:
				// Conditions and what they forbid have properties too.
				if properties, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
					for k, p := range properties {
						key(pointer+"/properties/"+k, p.(map[string]any))
					}
				}
				for k, c := range v {
					walk(pointer+"/"+strings.ReplaceAll(k, " ", "%20"), c)
				}
			}
		}
		walk("", doc)
		if examples == 0 {
			t.Errorf("%s has no example", name)
		}
	}
}
