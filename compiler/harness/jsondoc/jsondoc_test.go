package jsondoc

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestWritesInOrder(t *testing.T) {
	o := Object{{"z", 1}, {"a", []string{"x", "<&>"}}, {"m", Object{}}, {"l", []Object{{{"k", true}}}}, {"n", nil}, {"e", []string{}}}
	const want = "{\n  \"z\": 1,\n  \"a\": [\n    \"x\",\n    \"<&>\"\n  ],\n  \"m\": {},\n  \"l\": [\n    {\n      \"k\": true\n    }\n  ],\n  \"n\": null,\n  \"e\": []\n}\n"
	if got := string(o.Bytes()); got != want {
		t.Errorf("got %s", got)
	}
}

func TestSortedGoesAllTheWayDown(t *testing.T) {
	o := Sorted(map[string]any{"b": map[string]any{"d": 1.5, "c": int64(2)}, "a": []any{map[string]any{"z": true, "y": false}}})
	const want = `{"a":[{"y":false,"z":true}],"b":{"c":2,"d":1.5}}`
	if got := strings.NewReplacer(" ", "", "\n", "").Replace(string(o.Bytes())); got != want {
		t.Errorf("got %s", got)
	}
}

// FuzzText proves that any text that is UTF-8 is read back as it was, by this package and by encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", `"\` + "\n\r\t\b\x00\x7f", "ünï 漢 \u2028\u2029 \U0001f600", "<&>'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		data := Object{{s, s}}.Bytes()
		back, err := Parse(data, func(p string) { t.Errorf("%s is said to be repeated", p) })
		if err != nil || len(back) != 1 || back[0].Key != s || back[0].Value != s {
			t.Errorf("%q reads as %v: %v", s, back, err)
		}
		var m map[string]string
		if err := json.Unmarshal(data, &m); err != nil || m[s] != s {
			t.Errorf("encoding/json reads %q as %v: %v", s, m, err)
		}
	})
}

// FuzzParse proves that no input panics and that what is read can be written and read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{}", `{"a":[1,{"b":null}],"a":2}`, "[]", "\xef\xbb\xbf{}", "{} {}", "{", `{"a":}`, strings.Repeat("[", 99)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data, nil)
		if err != nil {
			return
		}
		again, err := Parse(o.Bytes(), nil)
		if err != nil || !reflect.DeepEqual(o, again) {
			t.Errorf("%v reads again as %v: %v", o, again, err)
		}
	})
}

func TestParseIsStrict(t *testing.T) {
	var twice []string
	if _, err := Parse([]byte(`{"a":{"b":1,"b":2},"c/d":0,"c/d":0}`), func(p string) { twice = append(twice, p) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(twice, []string{"/a/b", "/c~1d"}) {
		t.Errorf("repeated %v", twice)
	}
	for _, s := range []string{"", "[]", "null", "{} x", "{,}", `{"a":1,}`, "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", "// no\n{}"} {
		if _, err := Parse([]byte(s), nil); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestShape(t *testing.T) {
	s := &Shape{Kind: Fixed, Fields: []Field{
		{"mode", &Shape{Kind: String, Words: []string{"on", "off"}}}, {"n", NumberShape}, {"list", TextList}, {"map", TextMap},
		{"either", &Shape{Kind: String, Or: TextList}}, {"any", AnyShape},
	}}
	for _, c := range []struct{ doc, want string }{
		{`{"mode":"on","n":1,"list":["a"],"map":{"k":"v"},"either":"x","any":{"z":[1]}}`, ""},
		{`{"either":["x"]}`, ""},
		{`{"either":1}`, "/either is not a list"},
		{`{"mode":"maybe"}`, `/mode is "maybe", want one of on, off`},
		{`{"mode":true}`, "/mode is not a text"},
		{`{"n":"1"}`, "/n is not a number"},
		{`{"list":["a",1]}`, "/list/1 is not a text"},
		{`{"list":{}}`, "/list is not a list"},
		{`{"map":{"k":1}}`, "/map/k is not a text"},
		{`{"other":1}`, "/other is a key that the program does not read"},
		{`{"map":null}`, "/map is not an object"},
	} {
		o, err := Parse([]byte(c.doc), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		s.Check(o, "", func(p, m string) { got = append(got, p+" "+m) })
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: got %v, want %q", c.doc, got, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	o, _ := Parse([]byte(`{"a":{"b":["x","y"],"c":[1]}}`), nil)
	if l, ok := o.Strings("a", "b"); !ok || !slices.Equal(l, []string{"x", "y"}) {
		t.Errorf("got %v", l)
	}
	if _, ok := o.Strings("a", "c"); ok {
		t.Error("numbers are texts")
	}
	if o.At("a", "z") != nil || o.At("a", "b", "c") != nil {
		t.Error("found what is not there")
	}
}
