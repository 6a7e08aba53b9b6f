package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/pack/packtest"
)

// values are put in the place of every value of a document.
var values = []any{"", " ", "x", "A b", "a.example", "*.com", "https://a.example/x", "~/.x", "openshell/x.yaml", "2027-02-30", "1.2.3", "90d", "con", "deny", "codex",
	0, -1, 65536, 99999999999, 1.5, true, nil, []any{}, []any{""}, []any{"x"}, []any{"a.example"}, []any{1}, []any{map[string]any{}}, map[string]any{}, map[string]any{"a": "b"},
	map[string]any{"codex": map[string]any{}}}

// keys are added to every mapping, and the first three take the place of every key.
var keys = []string{"", "x", "name", "mode", "default", "allow", "url", "host", "path", "port", "unit", "ring", "overlay", "pack"}

// TestMutations changes one thing at a time in documents that use every key, and compares the reader and the schemas.
func TestMutations(t *testing.T) {
	s := compiled(t)
	seen := map[class]int{}
	changed, right := 0, 0
	for _, d := range full(t) {
		if !s.compare(t, d, seen) {
			t.Fatalf("%s is wrong to begin with", d.where)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(d.text), &doc); err != nil {
			t.Fatal(err)
		}
		try := func(what string) {
			if t.Failed() {
				return
			}
			text, err := yaml.Marshal(&doc)
			if err != nil {
				t.Fatal(err)
			}
			changed++
			if s.compare(t, document{d.where + ": " + what, d.place, string(text)}, seen) {
				right++
			}
		}
		mutate(t, doc.Content[0], d.where, try)
	}
	t.Logf("%d changes, %d of them right", changed, right)
	if changed < 5_000 || right < changed/100 {
		t.Errorf("%d changes, %d of them right, are too few to mean something", changed, right)
	}
}

const simple = `org: acme
tools: {claude-code: 2.1.332, codex: {version: 0.138.0, model: code}}
provider: {name: bedrock, region: eu-west-1, project: p, url: https://models.acme.example}
models: {default: claude, code: [openai/gpt, openai/gpt-old]}
gateway: https://ai.acme.example
gatewayEngine: kong
telemetry: https://otel.acme.example:4318
team: [platform, ann@acme.example]
safety: strict
rollout: fast
egress: {allow: ["*.acme.example", ai.acme.example], deny: [pastebin.com]}
`

// full are documents of every kind with every key.
func full(t testing.TB) []document {
	t.Helper()
	var docs []document
	dir := filepath.Join("..", "..", "compiler", "policy", "testdata", "everything")
	for _, name := range []string{root, "policy.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range placed(name, name, string(data)) {
			d.where = fmt.Sprintf("%s document %d", d.where, i+1)
			docs = append(docs, d)
		}
	}
	docs = append(docs, document{"simple mode", root, simple})
	file := packtest.Load(t, filepath.Join("..", "..", "compiler", "pack", "testdata", "packs-cases.yaml"))
	return append(docs, document{"pack", packs, file.Fixtures["web"]})
}

// mutate changes one thing below n at a time, calls try, and changes it back.
func mutate(t *testing.T, n *yaml.Node, path string, try func(what string)) {
	switch n.Kind {
	case yaml.MappingNode:
		before := n.Content
		for i := 0; i < len(before); i += 2 {
			k, v := before[i], before[i+1]
			at := path + "." + k.Value
			n.Content = append(append([]*yaml.Node{}, before[:i]...), before[i+2:]...)
			try("without " + at)
			n.Content = before
			name := k.Value
			for _, other := range append([]string{strings.ToUpper(name), name + "s", name[1:]}, keys[:3]...) {
				if taken(before, other) {
					continue
				}
				k.Value = other
				try(at + " called " + other)
			}
			k.Value = name
			replace(t, v, at, try)
			mutate(t, v, at, try)
		}
		for _, name := range keys {
			if taken(before, name) {
				continue
			}
			for _, value := range []any{"x", 1} {
				n.Content = append(append([]*yaml.Node{}, before...), encoded(t, name), encoded(t, value))
				try(fmt.Sprintf("%s with %s: %v", path, name, value))
			}
		}
		n.Content = before
	case yaml.SequenceNode:
		before := n.Content
		for i, v := range before {
			n.Content = append(append([]*yaml.Node{}, before...), v)
			try(fmt.Sprintf("%s[%d] twice", path, i))
			n.Content = before
			replace(t, v, fmt.Sprintf("%s[%d]", path, i), try)
			mutate(t, v, fmt.Sprintf("%s[%d]", path, i), try)
		}
	}
}

// replace puts each of the values in the place of one.
func replace(t *testing.T, n *yaml.Node, at string, try func(what string)) {
	before := *n
	for _, v := range values {
		*n = *encoded(t, v)
		try(fmt.Sprintf("%s is %#v", at, v))
	}
	*n = before
}

func encoded(t *testing.T, v any) *yaml.Node {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		t.Fatal(err)
	}
	return &n
}

func taken(content []*yaml.Node, name string) bool {
	for i := 0; i < len(content); i += 2 {
		if content[i].Value == name {
			return true
		}
	}
	return false
}

// FuzzAgreement looks for a text about which the reader and the schema of its place disagree.
func FuzzAgreement(f *testing.F) {
	for _, d := range full(f) {
		f.Add(d.text, d.place)
	}
	f.Add("org: acme\nlifetime: 1d\n", root)
	s := compiled(f)
	f.Fuzz(func(t *testing.T, text, place string) {
		if place != root && place != packs {
			place = ""
		}
		if parts := placed("fuzz", "fuzz.yaml", text); place == "" && len(parts) != 1 {
			return
		}
		s.compare(t, document{"fuzz", place, text}, map[class]int{})
	})
}
