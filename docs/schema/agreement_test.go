package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
)

// document is one YAML document as it stands in a repo.
type document struct {
	// where it comes from, for messages.
	where string
	// place says how it is read: root for halos.yaml, a path that ends in packs for a pack, "" for any other.
	place string
	text  string
}

const (
	root  = "halos.yaml"
	packs = "pack.yaml"
)

// class is a refusal of the reader that no schema of one document can say.
type class struct {
	code string
	// says, when set, is part of the message: only such findings of the code are meant.
	says   string
	reason string
}

// beyond lists what the reader refuses and the schemas take. Everything else that it refuses, they refuse.
var beyond = []class{
	{"HALO1002", "", "size and depth are limits of the reader"},
	{"HALO1005", "", "bytes and control characters are below what a schema sees"},
	{"HALO1006", "", "text that is no YAML has no value"},
	{"HALO1007", "", "a bare * is no YAML"},
	{"HALO1009", "", "anchors and aliases are gone when a schema sees the value"},
	{"HALO1010", "", "so are tags"},
	{"HALO1012", "", "so are repeated keys"},
	{"HALO1013", "", "so is the type of a key"},
	{"HALO1014", "the boolean", "True is true for YAML; the reader wants one spelling"},
	{"HALO1014", "the number", "1.0 is a whole number for JSON Schema"},
	{"HALO1017", `"baseURL"`, "simple mode may give the URL of the gateway"},
	{"HALO1017", `"order"`, "simple mode may give the order of a ring"},
	{"HALO1017", `"profile"`, "simple mode may give the profile of a ring"},
	{"HALO1018", "decimal whole number", "0x10 is a whole number for YAML; the reader wants decimals"},
	{"HALO1101", "declares no kind", "a document without a kind may be halos.yaml: a schema does not know the name of the file"},
	{"HALO1106", "is empty", "a schema sees no document in an empty file"},
	{"HALO1107", "documents", "a schema sees one document, not how many a file has"},
	{"HALO1107", "belongs in", "a schema does not know the name of the file"},
	{"HALO1111", "", "ports, addresses and escapes in a URL are parsed, not matched"},
	{"HALO1114", "sandbox", "which keys of a test go together depends on another key"},
	{"HALO1114", "is not a host or URL", "hosts and URLs are parsed, not matched"},
	{"HALO1114", "path ", "a path that is asked about is parsed, not matched"},
	{"HALO1117", "", "two decimals are a multiple of 0.01, which validators that compute with binary fractions get wrong"},
	{"HALO1118", "", "the keys of simple mode need each other, and which depends on their values"},
	{"HALO1119", "", "whether a model names its provider depends on provider"},
	{"HALO1203", "does not decode", "punycode is decoded"},
	{"HALO1203", "253", "the limit leaves the wildcard out"},
	{"HALO1301", "", "the two spellings of the mode are in two sections"},
	{"HALO1302", "", "which places may not be writable is a list with exceptions, compared as paths"},
	{"HALO1303", "", "paths are cleaned before they are judged, and brackets counted"},
	{"HALO2102", "", "the two keys are in two sections"},
	{"HALO2002", "", "size is a limit of the reader"},
	{"HALO2001", "", "text that is no YAML has no value"},
	{"HALO2003", "", "a schema sees one document, not how many a file has"},
	{"HALO2004", "", "anchors and aliases are gone when a schema sees the value"},
	{"HALO2005", "", "so are tags"},
	{"HALO2007", "the number", "1.0 is a whole number for JSON Schema"},
	{"HALO2007", "the date", "a date is text for YAML 1.2; DefenseClaw's reader takes it for a date"},
	{"HALO2009", "", "so are repeated keys"},
	{"HALO2012", "needs admin.required_pack", "a digest needs a pack in another key"},
	{"HALO2012", "at least one port", "the ports depend on the mode in another section"},
	{"HALO2012", "longer than", "the limit counts bytes"},
	{"HALO2013", "", "addresses and prefixes are parsed, not matched"},
	{"HALO2014", "", "public suffixes are a list of thousands"},
	{"HALO2015", "", "patterns are parsed"},
	{"HALO2017", "directory", "a schema does not know the name of the folder"},
	{"HALO2019", "", "the ids of another vocabulary are names all the same"},
}

// looser is what the reader takes and the schemas refuse: DefenseClaw takes blanks around a word off, and a schema offers the word.
var looser = class{reason: "blanks around a word of a pack or an openshell block"}

type verdict struct {
	refused []diag.Diagnostic
	value   any
	invalid error
}

// judge asks the reader and the schema. comparable is false when the text is no YAML.
func (s *schemas) judge(t testing.TB, d document) (v verdict, comparable bool) {
	t.Helper()
	var found []diag.Diagnostic
	if strings.HasSuffix(d.place, packs) {
		found = pack.Check(d.place, []byte(d.text), 0)
	} else {
		files := fstest.MapFS{root: {Data: []byte("org: acme\n")}}
		name := "document.yaml"
		if d.place == root {
			name = root
		}
		files[name] = &fstest.MapFile{Data: []byte(d.text)}
		var diags diag.List
		repo := policy.Load(t.Context(), files, policy.Options{Workers: 1}, &diags)
		for _, x := range diags.Sorted() {
			if name == root || repo.Files.Name(x.Pos) == name || x.File == name {
				found = append(found, x)
			}
		}
	}
	for _, x := range found {
		if x.Severity == diag.Error {
			v.refused = append(v.refused, x)
		}
	}
	value, ok := decode(d.text)
	if !ok {
		return v, false
	}
	v.value, v.invalid = value, s.validate(d.place, value)
	if doc, ok := value.(map[string]any); ok && d.place == "" {
		if kind, ok := doc["kind"].(string); ok && (*s)[strings.ToLower(kind)] != nil && strings.ToLower(kind) != kind {
			if err := (*s)[strings.ToLower(kind)].Validate(value); (err == nil) != (v.invalid == nil) {
				t.Errorf("%s: the schema of the kind says %v, that of the repo %v\n%s", d.where, err, v.invalid, d.text)
			}
		}
	}
	return v, true
}

// schemas are the compiled schemas by name.
type schemas map[string]*jsonschema.Schema

func compiled(t testing.TB) *schemas {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	out := schemas{}
	for _, name := range Names() {
		data, _ := Get(name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.AddResource(name, doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, name := range Names() {
		s, err := c.Compile(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = s
	}
	return &out
}

// validate uses the schema that an editor uses for a place.
func (s *schemas) validate(place string, value any) error {
	name := Repo
	switch {
	case strings.HasSuffix(place, packs):
		name = "pack"
	case place == root:
		name = "halos"
	}
	return (*s)[name].Validate(value)
}

// decode reads the first document of a text as an editor's YAML 1.2 parser would: null, booleans and numbers by their tags, everything else as text.
func decode(text string) (v any, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var n yaml.Node
	if err := yaml.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).Decode(&n); err != nil {
		return nil, false
	}
	return plain(n.Content[0], 0)
}

func plain(n *yaml.Node, depth int) (any, bool) {
	if depth > 100 {
		return nil, false
	}
	switch n.Kind {
	case yaml.AliasNode:
		return plain(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, ok := plain(c, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := plain(n.Content[i+1], depth+1)
			if !ok {
				return nil, false
			}
			if _, again := out[n.Content[i].Value]; !again {
				out[n.Content[i].Value] = v
			}
		}
		return out, true
	}
	switch n.Tag {
	case "!!null":
		return nil, true
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), true
	case "!!int", "!!float":
		text := strings.ReplaceAll(n.Value, "_", "")
		if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10)), true
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), true
		}
		// Infinity is no number of JSON.
		return n.Value, true
	}
	return n.Value, true
}

// compare reports a document about which the reader and the schema disagree. It counts the classes that explain a disagreement.
func (s *schemas) compare(t testing.TB, d document, seen map[class]int) (accepted bool) {
	t.Helper()
	v, ok := s.judge(t, d)
	for _, x := range v.refused {
		if !ok || v.invalid == nil {
			if !explain(x, seen) {
				t.Errorf("%s: the schema takes it, the reader does not: %s %s: %s\n%s", d.where, x.Code.ID, x.Path, x.Message, d.text)
			}
		}
	}
	if ok && len(v.refused) == 0 && v.invalid != nil {
		if s.validate(d.place, trimmed(v.value)) != nil {
			t.Errorf("%s: the reader takes it, the schema does not: %v\n%s", d.where, v.invalid, d.text)
		}
		seen[looser]++
	}
	return len(v.refused) == 0
}

// trimmed takes the blanks around all texts off.
func trimmed(v any) any {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = trimmed(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = trimmed(v[k])
		}
		return out
	}
	return v
}

func explain(x diag.Diagnostic, seen map[class]int) bool {
	ok := false
	for _, c := range beyond {
		if c.code == x.Code.ID && strings.Contains(x.Message, c.says) {
			seen[c]++
			ok = true
		}
	}
	return ok
}

// TestAgreement holds the schemas to the reader on every document of the project, right and wrong, and wants each class of refusals that the schemas do not
// know to occur.
func TestAgreement(t *testing.T) {
	s := compiled(t)
	docs := collect(t)
	seen := map[class]int{}
	right := 0
	for _, d := range docs {
		if s.compare(t, d, seen) {
			right++
		}
	}
	t.Logf("%d documents, %d of them right", len(docs), right)
	if right < 100 || len(docs)-right < 100 {
		t.Errorf("%d right and %d wrong documents are too few to mean something", right, len(docs)-right)
	}
	for _, c := range beyond {
		if seen[c] == 0 {
			t.Errorf("no document shows %s (%s): %s", c.code, c.says, c.reason)
		}
	}
	if seen[looser] == 0 {
		t.Errorf("no document shows %s", looser.reason)
	}
}
