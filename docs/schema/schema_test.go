package schema

import (
	"bytes"
	"encoding/json"
	"slices"
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
		examples := 0
		var walk func(pointer string, v any)
		walk = func(pointer string, v any) {
			switch v := v.(type) {
			case []any:
				for _, c := range v {
					walk("", c)
				}
			case map[string]any:
				if properties, ok := v["properties"].(map[string]any); ok && v["type"] == "object" {
					for key, p := range properties {
						p := p.(map[string]any)
						text, _ := p["description"].(string)
						if text == "" || strings.HasPrefix(text, " ") {
							t.Errorf("%s: nothing describes %s", name, key)
						}
						values, _ := p["examples"].([]any)
						if d, ok := p["default"]; ok {
							values = append(values, d)
						}
						for _, x := range values {
							examples++
							if err := fragment(t, name, doc, p, x); err != nil {
								t.Errorf("%s: %s does not take its example: %v", name, key, err)
							}
						}
					}
				}
				for _, c := range v {
					walk("", c)
				}
			}
		}
		walk("", doc)
		if examples == 0 {
			t.Errorf("%s has no example", name)
		}
	}
}

// fragment validates a value by a part of a schema.
func fragment(t *testing.T, name string, doc any, part map[string]any, value any) error {
	t.Helper()
	copied := map[string]any{"allOf": []any{part}, "$defs": doc.(map[string]any)["$defs"]}
	if copied["$defs"] == nil {
		delete(copied, "$defs")
	}
	data, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	again, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, again); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}
