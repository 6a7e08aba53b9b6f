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

// str, text, boolean and list make table entries for plain values.
func str[T any](name string, at func(*T) *source.Str) source.Field[T] {
	return source.Field[T]{Name: name, Read: func(d *decoder, n *node, t *T) { *at(t) = d.Text(n) }}
}

func boolean[T any](name string, at func(*T) *source.Bool) source.Field[T] {
	return source.Field[T]{Name: name, Read: func(d *decoder, n *node, t *T) { *at(t) = d.Bool(n) }}
}

func list[T any](name string, at func(*T) *source.Strs) source.Field[T] {
	return source.Field[T]{Name: name, Read: func(d *decoder, n *node, t *T) { *at(t) = d.Texts(n) }}
}

func enum[T any](name string, at func(*T) *source.Str, words ...string) source.Field[T] {
	return source.Field[T]{Name: name, Read: func(d *decoder, n *node, t *T) { *at(t) = d.Enum(n, words...) }}
}

func name[T any](key string, at func(*T) *source.Str) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = readName(d, n) }}
}

func header[T any](head func(*T) *Header) []source.Field[T] {
	return []source.Field[T]{
		{Name: "apiVersion", Read: func(*decoder, *node, *T) {}},
		{Name: "kind", Read: func(*decoder, *node, *T) {}},
		{Name: "name", Read: func(d *decoder, n *node, t *T) { head(t).Name = readName(d, n) }},
	}
}

// readName reads the name of a document or of something that others refer to. Names become path segments, tags and headers.
func readName(d *decoder, n *node) source.Str {
	s := d.String(n)
	if !s.IsSet() {
		return s
	}
	if why := badName(s.V); why != "" {
		x := d.Report(codeName, n, "%s is not a name: %s", strconv.Quote(s.V), why)
		x.Hint = "names match [a-z0-9][a-z0-9._-]{0,62}, do not end in a dot and are not Windows device names"
		d.Diags.Add(*x)
		return source.Str{}
	}
	return s
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

func hosts[T any](key string, deny bool, at func(*T) *Hosts) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = readHosts(d, n, deny) }}
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

func paths[T any](key string, parse func(string) (fspath.Path, *fspath.Problem), code *diag.Code, at func(*T) *FilePaths) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) {
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
		*at(t) = out
	}}
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

func date[T any](key string, at func(*T) *Date) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = readDate(d, n) }}
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
		x := d.Report(codeURL, n, "%s is not an absolute %s URL with a host and without user information", strconv.Quote(s.V), strings.Join(schemes, " or "))
		d.Diags.Add(*x)
		return source.Str{}
	}
	return s
}

func url[T any](key string, at func(*T) *source.Str, schemes ...string) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = absoluteURL(d, n, schemes...) }}
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

func pairs[T any](key string, at func(*T) *[]source.Pair) source.Field[T] {
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t), _ = d.Pairs(n) }}
}
