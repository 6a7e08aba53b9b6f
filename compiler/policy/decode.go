package policy

import (
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

type (
	decoder = source.Decoder
	node    = source.Node
)

// leaf makes a table entry for a value that read returns. Every helper below says beside the reading what is read, so that schemas say what the reader does.
func leaf[T, V any](key string, at func(*T) *V, read func(*decoder, *node) V, shape func() source.Shape) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = read(d, n) }, Shape: shape, At: at}
}

// Shapes that need no arguments. The forms of texts are named after what they spell.
func anyText() source.Shape   { return source.Shape{Type: source.TextValue} }
func fullText() source.Shape  { return source.Shape{Type: source.TextValue, Form: "text"} }
func nameText() source.Shape  { return source.Shape{Type: source.TextValue, Form: "name"} }
func oneBool() source.Shape   { return source.Shape{Type: source.BoolValue} }
func textTable() source.Shape { return source.Shape{Type: source.TableValue, Item: new(anyText())} }
func fullTexts() source.Shape { return listOf(fullText()) }

func listOf(item source.Shape) source.Shape { return source.Shape{Type: source.ListValue, Item: &item} }

func form(name string) func() source.Shape {
	return func() source.Shape { return source.Shape{Type: source.TextValue, Form: name} }
}

func words(of []string) func() source.Shape {
	return func() source.Shape { return source.Shape{Type: source.WordValue, Words: of} }
}

func str[T any](key string, at func(*T) *source.Str) source.Field[T] {
	return leaf(key, at, (*decoder).Text, fullText)
}

func boolean[T any](key string, at func(*T) *source.Bool) source.Field[T] {
	return leaf(key, at, (*decoder).Bool, oneBool)
}

func list[T any](key string, at func(*T) *source.Strs) source.Field[T] {
	return leaf(key, at, (*decoder).Texts, fullTexts)
}

func enum[T any](key string, at func(*T) *source.Str, of ...string) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) source.Str { return d.Enum(n, of...) }, words(of))
}

func whole[T any](key string, lo, hi int64, at func(*T) *source.Int) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) source.Int { return d.Int(n, lo, hi) },
		func() source.Shape { return source.Shape{Type: source.WholeValue, Min: lo, Max: hi} })
}

func pairs[T any](key string, at func(*T) *[]source.Pair) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) []source.Pair {
		out, _ := d.Pairs(n)
		return out
	}, textTable)
}

func name[T any](key string, at func(*T) *source.Str) source.Field[T] {
	return leaf(key, at, readName, nameText)
}

func date[T any](key string, at func(*T) *Date) source.Field[T] {
	return leaf(key, at, readDate, form("date"))
}

func url[T any](key string, at func(*T) *source.Str, schemes ...string) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) source.Str { return absoluteURL(d, n, schemes...) }, form(strings.Join(schemes, " or ")+" URL"))
}

func hosts[T any](key string, deny bool, at func(*T) *Hosts) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) Hosts { return readHosts(d, n, deny) }, func() source.Shape { return hostList(deny) })
}

func hostList(deny bool) source.Shape {
	if deny {
		return listOf(form("deny pattern")())
	}
	return listOf(form("host pattern")())
}

// custom makes a table entry for a value that read puts where it belongs: at at, and nowhere else that has a key.
func custom[T, V any](key string, at func(*T) *V, shape func() source.Shape, read func(*decoder, *node, *T)) source.Field[T] {
	return source.Field[T]{Name: key, Read: read, Shape: shape, At: at}
}

// refused makes a table entry for a key that is known and not taken.
func refused[T any](hint string, keys ...string) []source.Field[T] {
	out := make([]source.Field[T], len(keys))
	for i, key := range keys {
		out[i] = source.Field[T]{Name: key, Hint: hint}
	}
	return out
}

// mapping is how a mapping is read into a T: by its keys and the rules between them.
type mapping[T any] struct {
	fields []source.Field[T]
	// need lists the keys that cannot be left out.
	need []string
	// late lists those of need that simple mode may give, so that only the whole repo tells whether they are missing. head is where that is noted.
	late []string
	head func(*T) *Header
	// Of the keys in one exactly one is given, or else is reported.
	one  []string
	code *diag.Code
	text string
	// check, when set, reports what the tables cannot say.
	check func(*decoder, *node, *T)
}

func (m *mapping[T]) read(d *decoder, n *node, t *T) *T {
	source.Map(d, n, m.fields, t)
	if !source.IsMapping(n) {
		return t
	}
	for _, key := range m.need {
		if !slices.Contains(m.late, key) {
			d.Require(n, key, false)
		} else if x, missing := d.Missing(n, key); missing {
			h := m.head(t)
			h.lacks = append(h.lacks, lack{key, x})
		}
	}
	if m.one != nil {
		given := 0
		for _, key := range m.one {
			if source.Get(n, key) != nil {
				given++
			}
		}
		if given != 1 {
			d.Diags.Add(*d.Report(m.code, n, "%s", m.text))
		}
	}
	if m.check != nil {
		m.check(d, n, t)
	}
	return t
}

func (m *mapping[T]) shape() source.Shape {
	s := source.Describe(m.fields)
	// One document alone does not tell whether simple mode gives the keys that may come late.
	s.Need, s.One = slices.DeleteFunc(slices.Clone(m.need), func(key string) bool { return slices.Contains(m.late, key) }), m.one
	return s
}

// section makes a table entry for a mapping inside another.
func section[T, S any](key string, of mapping[S], at func(*T) *S) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { of.read(d, n, at(t)) }, Shape: of.shape, At: at}
}

// items makes a table entry for a list of mappings. start begins an item at its place; where, when set, takes the place of the list.
func items[T, E any](key string, of mapping[E], at func(*T) *[]E, start func(diag.Pos) E, where func(*T) *diag.Pos) source.Field[T] {
	return source.Field[T]{Name: key, Shape: func() source.Shape { return listOf(of.shape()) }, At: at, Read: func(d *decoder, n *node, t *T) {
		pos := source.Seq(d, n, func(_ int, c *node) {
			e := start(d.Pos(c))
			*at(t) = append(*at(t), *of.read(d, c, &e))
		})
		if where != nil {
			*where(t) = pos
		}
	}}
}

// atLeastOne says that a list is not empty. The mapping that holds it reports one that is.
func atLeastOne[T any](f source.Field[T]) source.Field[T] {
	shape := f.Shape
	f.Shape = func() source.Shape {
		s := shape()
		s.Least = 1
		return s
	}
	return f
}

// keyed says which keys the author of a table may choose.
type keyed struct {
	shape func() source.Shape
	// check reports a key that cannot be one.
	check func(d *decoder, k source.Str, n *node) bool
}

var (
	byName    = keyed{nameText, nameKey}
	byHarness = keyed{words(Harnesses), harnessKey}
)

func nameKey(d *decoder, k source.Str, n *node) bool {
	why := badName(k.V)
	if why != "" {
		reportName(d, k.V, k.Pos, n, why)
	}
	return why == ""
}

func harnessKey(d *decoder, k source.Str, n *node) bool {
	if slices.Contains(Harnesses, k.V) {
		return true
	}
	x := d.Report(codeHarness, n, "%s is not a harness id; known are %s", strconv.Quote(k.V), strings.Join(Harnesses, ", "))
	x.Pos = k.Pos
	if near := nearestHarness(k.V); near != "" {
		x.Hint = "write " + near
	}
	d.Diags.Add(*x)
	return false
}

// table makes a table entry for a mapping whose keys the author chooses.
func table[T, E any](key string, at func(*T) *[]E, keys keyed, item func() source.Shape, each func(d *decoder, k source.Str, n *node) (E, bool)) source.Field[T] {
	shape := func() source.Shape {
		return source.Shape{Type: source.TableValue, Names: new(keys.shape()), Item: new(item())}
	}
	return source.Field[T]{Name: key, At: at, Shape: shape, Read: func(d *decoder, n *node, t *T) {
		source.Keys(d, n, func(k source.Str, v *node) {
			if !keys.check(d, k, v) {
				return
			}
			if e, ok := each(d, k, v); ok {
				*at(t) = append(*at(t), e)
			}
		})
	}}
}

// header are the keys that every document begins with. Which version and kind are taken is decided before the tables are used.
func header[T any](kind string, head func(*T) *Header) []source.Field[T] {
	return []source.Field[T]{
		{Name: "apiVersion", Read: func(*decoder, *node, *T) {}, Shape: versions, At: (*APIVersion)(nil)},
		{Name: "kind", Read: func(*decoder, *node, *T) {}, Shape: words([]string{kind}), At: func(t *T) *string { return &head(t).Kind }},
		name("name", func(t *T) *source.Str { return &head(t).Name }),
	}
}

func versions() source.Shape {
	return source.Shape{Type: source.WordValue, Words: []string{string(V1)}, Old: []string{string(V1Alpha1)}}
}

// readName reads the name of a document or of something that others refer to. Names become path segments, tags and headers.
func readName(d *decoder, n *node) source.Str {
	s := d.String(n)
	if !s.IsSet() {
		return s
	}
	if why := badName(s.V); why != "" {
		reportName(d, s.V, s.Pos, n, why)
		return source.Str{}
	}
	return s
}

func reportName(d *decoder, name string, pos diag.Pos, n *node, why string) {
	x := d.Report(codeName, n, "%s is not a name: %s", strconv.Quote(name), why)
	x.Pos, x.Hint = pos, "names match [a-z0-9][a-z0-9._-]{0,62}, do not end in a dot and are not Windows device names"
	d.Diags.Add(*x)
}

// ValidName reports whether s can name a document.
func ValidName(s string) bool { return badName(s) == "" }

func badName(s string) string {
	switch {
	case s == "":
		return "it is empty"
	case len(s) > 63:
		return "it has more than 63 characters"
	case strings.HasSuffix(s, "."):
		return "it ends in a dot"
	}
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		case c >= 'A' && c <= 'Z':
			return "it has upper case letters"
		case i == 0:
			return "it does not begin with a letter or digit"
		default:
			return "it has characters other than a-z, 0-9, dot, underscore and hyphen"
		}
	}
	base, _, _ := strings.Cut(s, ".")
	switch base {
	case "con", "nul", "aux", "prn":
		return "it is a Windows device name"
	}
	if len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9' {
		return "it is a Windows device name"
	}
	return ""
}

func readHosts(d *decoder, n *node, deny bool) Hosts {
	parse := host.ParsePattern
	if deny {
		parse = host.ParseDenyPattern
	}
	var out Hosts
	if len(n.Content) > 0 {
		out.Items = make([]Host, 0, len(n.Content))
	}
	out.Pos = source.Seq(d, n, func(_ int, c *node) {
		s := d.String(c)
		if !s.IsSet() {
			return
		}
		p, problem := parse(s.V)
		if problem != nil {
			x := d.Report(codeHost, c, "%s %s", strconv.Quote(s.V), problem.Reason)
			if x.Hint = problem.Hint; x.Hint != "" && !strings.Contains(x.Hint, " ") {
				x.Hint = "write " + x.Hint
			}
			d.Diags.Add(*x)
			return
		}
		out.Items = append(out.Items, Host{p, s.Pos})
	})
	return out
}

func paths[T any](key, form string, parse func(string) (fspath.Path, *fspath.Problem), code *diag.Code, at func(*T) *FilePaths) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) FilePaths { return readPaths(d, n, parse, code) },
		func() source.Shape { return listOf(source.Shape{Type: source.TextValue, Form: form}) })
}

func readPaths(d *decoder, n *node, parse func(string) (fspath.Path, *fspath.Problem), code *diag.Code) FilePaths {
	var out FilePaths
	out.Pos = source.Seq(d, n, func(_ int, c *node) {
		s := d.String(c)
		if !s.IsSet() {
			return
		}
		p, problem := parse(s.V)
		if problem != nil {
			x := d.Report(code, c, "%s %s", strconv.Quote(s.V), problem.Reason)
			x.Hint = problem.Hint
			d.Diags.Add(*x)
			return
		}
		out.Items = append(out.Items, FilePath{p, s.Pos})
	})
	return out
}

// readDate reads YYYY-MM-DD; the day ends at midnight UTC.
func readDate(d *decoder, n *node) Date {
	s := d.String(n)
	if !s.IsSet() {
		return Date{}
	}
	t, err := time.Parse(time.DateOnly, s.V)
	if err != nil {
		x := d.Report(codeDate, n, "%s is not a date", strconv.Quote(s.V))
		x.Hint = "write YYYY-MM-DD"
		d.Diags.Add(*x)
		return Date{}
	}
	return Date{s, t.AddDate(0, 0, 1).Unix()}
}

// readVersion reads an exact semantic version. Ranges are refused: what is rendered depends on the one version that runs.
func readVersion(d *decoder, n *node) source.Str {
	if source.IsScalar(n) && n.Tag != "!!str" {
		x := d.Report(codeVersion, n, "%s is not an exact version", n.Value)
		x.Hint = "write all three numbers, in quotes when YAML would read a number: \"1.20.0\""
		d.Diags.Add(*x)
		return source.Str{}
	}
	s := d.String(n)
	if s.IsSet() && !exactVersion(s.V) {
		x := d.Report(codeVersion, n, "%s is not an exact version", strconv.Quote(s.V))
		x.Hint = "pin one version such as 2.1.332; ranges, prefixes and a leading v are not accepted"
		d.Diags.Add(*x)
		return source.Str{}
	}
	return s
}

func exactVersion(s string) bool {
	core, pre, hasPre := strings.Cut(s, "-")
	nums := strings.Split(core, ".")
	if len(nums) != 3 || hasPre && pre == "" {
		return false
	}
	for _, n := range nums {
		if n == "" || len(n) > 9 || len(n) > 1 && n[0] == '0' || strings.Trim(n, "0123456789") != "" {
			return false
		}
	}
	for _, c := range []byte(pre) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '-') {
			return false
		}
	}
	return true
}

// absoluteURL reads an absolute URL with one of the schemes.
func absoluteURL(d *decoder, n *node, schemes ...string) source.Str {
	s := d.Text(n)
	if s.IsSet() && !validURL(s.V, schemes) {
		if u, err := neturl.Parse(s.V); strings.Contains(s.V, "@") && (err != nil || u.User != nil) {
			d.Diags.Add(*d.Report(codeUserInfo, n, "the URL has user information, which is a credential"))
			return source.Str{}
		}
		d.Diags.Add(*d.Report(codeURL, n, "%s is not an absolute %s URL with a host", strconv.Quote(s.V), strings.Join(schemes, " or ")))
		return source.Str{}
	}
	return s
}

// validURL reports whether a text is an absolute URL that every program reads alike: a known scheme, one certain host, no user information.
func validURL(s string, schemes []string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	if !ok || !slices.Contains(schemes, scheme) || strings.ContainsAny(s, " \t\r\n\\\"<>`") {
		return false
	}
	u, err := neturl.Parse(s)
	if err != nil || u.User != nil {
		return false
	}
	_, err = host.ParseName(s)
	return err == nil
}
