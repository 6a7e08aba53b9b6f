package source

import (
	"fmt"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
)

// vetted decodes a text and returns its findings as "line:col CODE path" and the number of documents visited.
func vetted(t testing.TB, text string, lim Limits) (found []string, all []diag.Diagnostic, docs int) {
	t.Helper()
	var diags diag.List
	Decode(0, "x.yaml", []byte(text), lim, &diags, func(d *Document, _ *diag.List) {
		docs++
		if d.Root == nil || d.Name != "x.yaml" {
			t.Errorf("a document without its root or name: %+v", d)
		}
	})
	all = diags.Sorted()
	for _, d := range all {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%d:%d %s %s", d.Pos.Line(), d.Pos.Col(), d.Code.ID, d.Path)))
		if d.Pos.File() != 0 || d.Message == "" || strings.HasSuffix(d.Message, ".") {
			t.Errorf("%q: %+v", text, d)
		}
	}
	return found, all, docs
}

// TestRefused has every refusal of the reader with its exact place.
func TestRefused(t *testing.T) {
	deep := func(open, end string, n int) string {
		return "a: " + strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
	}
	for _, c := range []struct {
		name, text string
		want       string // findings, joined by "; "
		says       string
		docs       int
	}{
		{"plain", "a: b\nc: [d, e]\n", "", "", 1},
		{"empty", "", "", "", 0},
		{"comments", "# a\n\n# b\n", "", "", 0},
		{"one marker", "---\n", "", "", 0},
		{"leading marker", "---\na: b\n", "", "", 1},
		{"closing markers", "a: b\n...\n", "", "", 1},
		{"empty documents", "---\n---\na: b\n---\n# c\n", "", "", 1},
		{"two documents", "a: b\n---\nc: d\n", "", "", 2},
		{"mark", "\xef\xbb\xbfa: b\n", "", "", 1},
		{"windows lines", "a: b\r\nc:\r\n- d\r\n", "", "", 1},
		{"off is text", "a: off\nb: yes\n", "", "", 1},

		{"repeated", "a: b\nc: d\na: e\n", "3:1 HALO1012 a", "line 1", 1},
		{"repeated deep", "a:\n  - b: 1\n    b: 2\n", "3:5 HALO1012 a[0].b", "line 2", 1},
		{"repeated in braces", "a: {b: 1, b: 2}", "1:11 HALO1012 a.b", "line 1", 1},
		{"repeated by quotes", "a: b\n\"a\": c\n", "2:1 HALO1012 a", "line 1", 1},
		{"repeated three times", "a: 1\na: 2\na: 3\n", "2:1 HALO1012 a; 3:1 HALO1012 a", "line 1", 1},
		{"repeated after a mark", "\xef\xbb\xbfa: b\na: c", "2:1 HALO1012 a", "", 1},

		{"anchor", "a: &x b\n", "1:4 HALO1009 a", "&x", 1},
		{"anchor on a list", "a:\n  - &x {b: c}\n", "2:5 HALO1009 a[0]", "&x", 1},
		{"anchor on a key", "&x a: b\n", "1:1 HALO1009 a", "&x", 1},
		{"anchor on the document", "&x\na: b\n", "1:1 HALO1009", "&x", 1},
		{"anchor and alias", "a: &x b\nc: *x\n", "1:4 HALO1009 a; 2:4 HALO1009 c", "", 1},
		{"alias in a list", "a: &x b\nc: [*x]\n", "1:4 HALO1009 a; 2:5 HALO1009 c[0]", "", 1},
		{"alias as a key", "a: &x b\n*x : c\n", "1:4 HALO1009 a; 2:1 HALO1009", "", 1},
		{"merge key", "a: {b: c}\n<<: {d: e}\n", "2:1 HALO1009 <<", "merge key", 1},

		{"tag", "a: !!str b\n", "1:4 HALO1010 a", "!!str", 1},
		{"binary", "a: !!binary ZGVueQ==\n", "1:4 HALO1010 a", "!!binary", 1},
		{"own tag", "a: !x [b]\n", "1:4 HALO1010 a", "!x", 1},
		{"tag on a key", "!!str a: b\n", "1:1 HALO1010 a", "", 1},
		{"tag on the document", "!!map\na: b\n", "1:1 HALO1010", "", 1},
		{"tagged null", "a: !!null ''\n", "1:4 HALO1010 a", "", 1},

		{"null value", "a: null\n", "1:4 HALO1011 a", "no value", 1},
		{"null spelt otherwise", "a: Null\nb: NULL\n", "1:4 HALO1011 a; 2:4 HALO1011 b", "", 1},
		{"nothing behind the colon", "a: b\nc:\nd: e\n", "2:3 HALO1011 c", "", 1},
		{"tilde", "a: ~\n", "1:4 HALO1011 a", `quotes around it ("~")`, 1},
		{"null item", "a: [~, b, null]\n", "1:5 HALO1011 a[0]; 1:11 HALO1011 a[2]", "", 1},
		{"empty item", "a:\n  - b\n  -\n", "3:4 HALO1011 a[1]", "", 1},
		{"key alone in braces", "a: {b}\n", "1:6 HALO1011 a.b", "", 1},
		{"quoted tilde", "a: ['~', \"null\", '']\n", "", "", 1},
		{"null key", "~: a\n", "1:1 HALO1013 ~", "", 1},
		{"list as a key", "? [a]\n: b\n", "1:3 HALO1013", "a list", 1},
		{"mapping as a key", "{a: b}: c\n", "1:1 HALO1013", "a mapping", 1},

		{"a list", "- a\n", "1:1 HALO1008", "document 1 is a list", 0},
		{"a text", "a\n", "1:1 HALO1008", `the text "a"`, 0},
		{"second document a text", "a: b\n---\nc\n", "3:1 HALO1008", "document 2", 1},

		{"not UTF-8", "a: b\nc: d\xffe\n", "2:5 HALO1005", "not UTF-8", 0},
		{"not UTF-8 behind wide characters", "a: ééé\xff\n", "1:7 HALO1005", "not UTF-8", 0},
		{"NUL", "a: b\n\nc: \x00\n", "3:4 HALO1005", "NUL", 0},
		{"control character", "a: b\nc: \"x\x07\"\n", "2:6 HALO1005", "U+0007", 0},
		{"hidden line break in a comment", "a: b # c\u2028d: e\n", "1:9 HALO1005", "U+2028", 0},
		{"hidden paragraph break", "a: \"b\u2029\"\n", "1:6 HALO1005", "U+2029", 0},
		{"next line", "# a\u0085b: c\n", "1:4 HALO1005", "U+0085", 0},
		{"carriage return alone", "a: b\r\nc: d # e\rf: g\r\n", "2:9 HALO1005", "U+000D", 0},
		{"carriage return at the end", "a: b\r", "1:5 HALO1005", "U+000D", 0},
		{"delete", "a: \x7f\n", "1:4 HALO1005", "U+007F", 0},
		{"second mark", "\xef\xbb\xbf\xef\xbb\xbfa: b\n", "1:1 HALO1005", "U+FEFF", 0},
		{"mark inside", "a: b\n\xef\xbb\xbfc: d\n", "2:1 HALO1005", "U+FEFF", 0},
		{"UTF-16 little endian", "\xff\xfea\x00:\x00", "1:1 HALO1005", "UTF-16", 0},
		{"UTF-16 big endian", "\xfe\xff\x00a\x00:", "1:1 HALO1005", "UTF-16", 0},
		{"UTF-16 without mark", "a\x00:\x00 \x00", "1:2 HALO1005", "NUL", 0},

		{"star in brackets", "a: b\nc: [x, *.y.example]\n", "2:8 HALO1007", `"*.y.example"`, 0},
		{"star first in brackets", "a: [*.y.example, z]\n", "1:5 HALO1007", `"*.y.example"`, 0},
		{"star after a comma", "a: [x,*.y.example]\n", "1:7 HALO1007", `"*.y.example"`, 0},
		{"star in a list", "a:\n  - x\n  - *.y.example # z\n", "3:5 HALO1007", `"*.y.example"`, 0},
		{"star on a line of brackets", "a: [\n  x,\n  *.y.example,\n]\n", "3:3 HALO1007", `"*.y.example"`, 0},
		{"star as a value", "a: *.y.example\n", "1:4 HALO1007", `"*.y.example"`, 0},
		{"star alone", "a: b\nc: [*]\n", "2:5 HALO1007", `"*"`, 0},
		{"star as a key", "a:\n  *.y.example: b\n", "2:3 HALO1007", `"*.y.example:"`, 0},
		{"star in braces", "a: {*.y: b}\n", "1:5 HALO1007", "", 0},
		{"star that names an anchor", "a: b\nc: [x, *bad]\n", "2:8 HALO1007", `"*bad"`, 0},
		{"star behind other stars", "a: \"*.ok\" # *.no\nb: |\n  * item\n  * item\nc: x *.no\nd: [*.bad]\n", "6:5 HALO1007", `"*.bad"`, 0},
		{"anchor name behind other stars", "b: |\n  * item\n  - *.x\nc: [*bad]\n", "4:5 HALO1007", `"*bad"`, 0},
		{"star behind wide characters", "é: [ü, *.y]\n", "1:8 HALO1007", `"*.y"`, 0},
		{"star inside", "a: b*\nc: \"*.d\"\ne: '*'\n", "", "", 1},

		{"open quote", "a: b\nc: 'd\n", "2:1 HALO1006", "not valid YAML", 0},
		{"open bracket", "a: [b\n", "1:1 HALO1006", "not valid YAML", 0},
		{"tab", "a: b\n\tc: d\n", "2:1 HALO1006", "tab", 0},
		{"indentation", "a: b\n c: d\n", "2:1 HALO1006", "not valid YAML", 0},
		{"error in the second document", "a: b\na: c\n---\nd: [\n", "2:1 HALO1012 a; 4:1 HALO1006", "", 1},
		{"text behind a document", "a: b\n...\nc: d\n", "3:1 HALO1006", "", 1},
		{"key too far left", "# a\na:\n  b: c\n  d: e\n f: g\nh: i\n", "5:1 HALO1006", "expected key", 0},
		{"key too far left in the first line's mapping", "a:\n  b: c\n d: e\n", "3:1 HALO1006", "expected key", 0},
		{"item without its dash", "# a\n- a\n- b\nc: d\n- d\n", "4:1 HALO1006", "indicator", 0},
		{"key too far left in the second document", "a: b\n---\n# a\na:\n  b: c\n d: e\n", "6:1 HALO1006", "expected key", 1},
		{"open brace", "a: b\nc: {d: e\nf: g\n", "2:1 HALO1006", "expected ','", 0},
		{"open bracket at the end", "a: b\nc: [\n", "2:1 HALO1006", "node content", 0},
		{"other version", "%YAML 1.2\n---\na: b\n", "1:1 HALO1006", "incompatible", 0},
		{"reserved character", "a: b\nc: @d\n", "2:1 HALO1006", "cannot start", 0},

		{"64 levels", deep("[", "]", 63), "", "", 1},
		{"65 levels", deep("[", "]", 64), "1:67 HALO1002 a" + strings.Repeat("[0]", 63), "64 levels", 0},
		{"65 levels of mappings", deep("{a: ", "}", 64), "1:256 HALO1002 " + strings.Repeat(".a", 64)[1:], "64 levels", 0},
		{"deeper than the parser goes", deep("[", "]", 20_000), "1:1 HALO1002", "nested too deep", 0},
		{"long scalar", "a: " + strings.Repeat("x", 1<<20), "", "", 1},
		{"longer scalar", "a: " + strings.Repeat("x", 1<<20+1), "1:4 HALO1002 a", "1048576", 1},
		{"many items", "a: [" + strings.Repeat("b,", 250_000) + "]", "1:1 HALO1002", "400000", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, all, docs := vetted(t, c.text, DefaultLimits)
			if got := strings.Join(found, "; "); got != c.want || docs != c.docs {
				t.Errorf("%d documents, %s; want %d, %s", docs, got, c.docs, c.want)
			}
			said := ""
			for _, d := range all {
				said += d.Message + " " + d.Hint + "\n"
				if (d.Code == codeLimit) != d.Code.NoAnswer {
					t.Errorf("%s: a limit is no answer, all else is one", d.Code.ID)
				}
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%q does not say %q", said, c.says)
			}
		})
	}
}

// TestFlawed holds that a document with a refusal is marked, and a good one beside it is not.
func TestFlawed(t *testing.T) {
	var flawed []bool
	var diags diag.List
	Decode(0, "x.yaml", []byte("a: 1\n---\na: ~\n---\nb: 2\n"), DefaultLimits, &diags, func(d *Document, _ *diag.List) {
		flawed = append(flawed, d.Flawed)
		if d.Count != 3 || d.Index != len(flawed)-1 {
			t.Errorf("document %d of %d", d.Index, d.Count)
		}
	})
	if fmt.Sprint(flawed) != "[false true false]" {
		t.Error(flawed)
	}
}

type sample struct {
	S, T, E Str
	B       Bool
	I       Int
	L       Strs
	M       []Pair
}

var sampleFields = []Field[sample]{
	{Name: "s", Read: func(d *Decoder, n *Node, x *sample) { x.S = d.String(n) }},
	{Name: "t", Read: func(d *Decoder, n *Node, x *sample) { x.T = d.Text(n) }},
	{Name: "e", Read: func(d *Decoder, n *Node, x *sample) { x.E = d.Enum(n, "allow", "deny") }},
	{Name: "b", Read: func(d *Decoder, n *Node, x *sample) { x.B = d.Bool(n) }},
	{Name: "i", Read: func(d *Decoder, n *Node, x *sample) { x.I = d.Int(n, 1, 10) }},
	{Name: "l", Read: func(d *Decoder, n *Node, x *sample) { x.L = d.Strings(n) }},
	{Name: "lt", Read: func(d *Decoder, n *Node, x *sample) { x.L = d.Texts(n) }},
	{Name: "m", Read: func(d *Decoder, n *Node, x *sample) { x.M, _ = d.Pairs(n) }},
	{Name: "old", Hint: "write s instead"},
	{Name: "allowedDomains", Read: func(*Decoder, *Node, *sample) {}},
}

func decoded(t *testing.T, text string) (sample, string) {
	t.Helper()
	var diags diag.List
	var x sample
	var in Interner
	Decode(0, "x.yaml", []byte(text), DefaultLimits, &diags, func(d *Document, out *diag.List) {
		Map(&Decoder{File: 0, Doc: "Sample/x", Diags: out, In: &in}, d.Root, sampleFields, &x)
	})
	var found []string
	for _, d := range diags.Sorted() {
		found = append(found, fmt.Sprintf("%d:%d %s %s: %s (%s)", d.Pos.Line(), d.Pos.Col(), d.Code.ID, d.Path, d.Message, d.Hint))
	}
	return x, strings.Join(found, "\n")
}

func TestDecoder(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"s: x\nt: y\ne: deny\nb: true\ni: 3\nl: [a, b]\nm: {k: v}\n", ""},
		{"s: ''\nl: []\nb: false\nm: {}\n", ""},
		{"s: 2026-11-30", ""},
		{"s: 12", `1:4 HALO1014 s: found the number 12, want a text (put it in quotes: "12")`},
		{"s: true", `1:4 HALO1014 s: found the boolean true, want a text (put it in quotes: "true")`},
		{"s: [x]", `1:4 HALO1014 s: found a list, want a text ()`},
		{"s: {x: y}", `1:4 HALO1014 s: found a mapping, want a text ()`},
		{"t: ''", `1:4 HALO1019 t: the text is empty ()`},
		{"t: '  '", `1:4 HALO1019 t: the text is empty ()`},
		{"e: Deny", `1:4 HALO1016 e: "Deny" is not one of allow, deny (write deny)`},
		{"e: [deny]", `1:4 HALO1014 e: found a list, want one of allow, deny ()`},
		{"e: maybe", `1:4 HALO1016 e: "maybe" is not one of allow, deny ()`},
		{"b: yes", `1:4 HALO1014 b: found the text "yes", want true or false (write true or false without quotes)`},
		{"b: on", `1:4 HALO1014 b: found the text "on", want true or false (write true or false without quotes)`},
		{`b: "true"`, `1:4 HALO1014 b: found the text "true", want true or false (write true or false without quotes)`},
		{"b: True", `1:4 HALO1014 b: found the boolean True, want true or false (write true or false without quotes)`},
		{"b: 1", `1:4 HALO1014 b: found the number 1, want true or false (write true or false without quotes)`},
		{"i: 0", `1:4 HALO1018 i: 0 is not a decimal whole number from 1 to 10 ()`},
		{"i: 11", `1:4 HALO1018 i: 11 is not a decimal whole number from 1 to 10 ()`},
		{"i: 0x3", `1:4 HALO1018 i: 0x3 is not a decimal whole number from 1 to 10 ()`},
		{"i: 1_0", `1:4 HALO1018 i: 1_0 is not a decimal whole number from 1 to 10 ()`},
		{"i: 3.0", `1:4 HALO1014 i: found the number 3.0, want a whole number ()`},
		{`i: "3"`, `1:4 HALO1014 i: found the text "3", want a whole number ()`},
		{"l: a", `1:4 HALO1014 l: found the text "a", want a list (write a list: [a])`},
		{"l: ['', a]", ""},
		{"lt: ['', a]", `1:6 HALO1019 lt[0]: the text is empty ()`},
		{"l: {a: b}", `1:4 HALO1014 l: found a mapping, want a list ()`},
		{"l: [a, 1.20, [b]]", "1:8 HALO1014 l[1]: found the number 1.20, want a text (put it in quotes: \"1.20\")\n1:14 HALO1014 l[2]: found a list, want a text ()"},
		{"m: [a]", `1:4 HALO1014 m: found a list, want a mapping ()`},
		{"m: {k: 1}", `1:8 HALO1014 m.k: found the number 1, want a text (put it in quotes: "1")`},
		{"allowDomains: x", `1:1 HALO1015 allowDomains: unknown key "allowDomains" (did you mean "allowedDomains"?)`},
		{"Allowed-Domains: x", `1:1 HALO1015 Allowed-Domains: unknown key "Allowed-Domains" (did you mean "allowedDomains"?)`},
		{"zzzzzz: x", `1:1 HALO1015 zzzzzz: unknown key "zzzzzz" (known keys here: allowedDomains, b, e, i, l, lt, m, s, t)`},
		{"old: x", `1:1 HALO1015 old: key "old" is not supported here (write s instead)`},
		// One mistake is one finding: what strict reading refused is not refused again for its type.
		{"s: ~", `1:4 HALO1011 s: the value of "s" is null: a bare ~ means "no value" in YAML; put quotes around it ("~") or remove it ()`},
		{"s: !!int x", `1:4 HALO1010 s: the explicit tag !!int is not allowed; write the plain value ()`},
		{"s: a\ns: [b]", `2:1 HALO1012 s: key "s" is repeated: it was already given on line 1 (keep one of the two and merge their values)`},
	} {
		if _, got := decoded(t, c.text); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// TestTriState holds that absent, empty and filled are three values, and that what was refused is absent.
func TestTriState(t *testing.T) {
	x, _ := decoded(t, "s: ''\nb: false\nl: []\ni: 1\n")
	if !x.S.IsSet() || !x.B.IsSet() || x.B.V || !x.L.IsSet() || len(x.L.Items) != 0 || !x.I.IsSet() || x.S.Pos != diag.NewPos(0, 1, 4) || x.L.Pos != diag.NewPos(0, 3, 4) {
		t.Errorf("%+v", x)
	}
	x, _ = decoded(t, "t: x\n")
	if x.S.IsSet() || x.B.IsSet() || x.L.IsSet() || x.I.IsSet() || x.E.IsSet() {
		t.Errorf("%+v", x)
	}
	x, _ = decoded(t, "s: 1\nb: yes\nl: x\ni: 99\ne: nope\nt: ''\n")
	if x.S.IsSet() || x.B.IsSet() || x.L.IsSet() || x.I.IsSet() || x.E.IsSet() || x.T.IsSet() {
		t.Errorf("refused values are kept: %+v", x)
	}
	x, _ = decoded(t, "s: first\ns: second\nl: [a, ~, b]\n")
	if x.S.V != "first" || len(x.L.Items) != 2 || x.L.Items[1].V != "b" {
		t.Errorf("%+v", x)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: b\n", "a: &x [*x]\n", "- a\n", "a: [*.b.example]\n", "? [a]\n: {b: ~}\n", "a: b\n---\nc: !t d\n...\n", "<<: {a: b}\n", "\xef\xbb\xbfa: \x00", "a: b\ra: c\r...\rd: e", "a: {b, \"c\":d, ? e : f}",
		"a: |\n  * b\nc: [*d]\n", "%YAML 1.1\n---\na: 0x1\n", "{a: b}: c\n", "a: \u2028b"} {
		f.Add([]byte(s))
	}
	lim := DefaultLimits
	lim.Depth, lim.Scalar, lim.Items = 8, 100, 500
	f.Fuzz(func(t *testing.T, text []byte) {
		_, all, _ := vetted(t, string(text), lim)
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + strings.Count(string(text), "\u0085") + 2
		for _, d := range all {
			if !d.Pos.IsValid() || d.Pos.Line() > lines || d.Pos.Col() < 1 {
				t.Errorf("%q: %d:%d is no place in it", text, d.Pos.Line(), d.Pos.Col())
			}
		}
		if n := estimate(text, 0); n < count(text) {
			t.Errorf("%q: %d nodes, bound %d", text, count(text), n)
		}
		var diags diag.List
		var in Interner
		Decode(0, "x.yaml", text, lim, &diags, func(d *Document, out *diag.List) {
			var x sample
			dec := &Decoder{Diags: out, In: &in}
			Map(dec, d.Root, sampleFields, &x)
			dec.Value(d.Root)
		})
	})
}
