package host

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

func TestParsePattern(t *testing.T) {
	good := []string{
		"github.com", "*.github.com", "a.b.c.d.e.example", "localhost", "x1.example", "1x.example", "a-b.example", "xn--bcher-kva.example", "*.xn--bcher-kva.example",
		"1.2.example", strings.Repeat("a", 63) + ".example", strings.Repeat("a.", 123) + "example",
	}
	for _, s := range good {
		for name, parse := range map[string]func(string) (Pattern, *Problem){"allow": ParsePattern, "deny": ParseDenyPattern} {
			p, problem := parse(s)
			if problem != nil || p.String() != s {
				t.Errorf("%s %q: %v, %v", name, s, p, problem)
			}
		}
	}
	for _, c := range []struct{ in, says, hint string }{
		{"", "empty", ""},
		{"*", "egress.default", "remove the entry and set egress.default"},
		{"**", "egress.default", "remove the entry and set egress.default"},
		{"*.*", "egress.default", "remove the entry and set egress.default"},
		{" github.com", "blanks", "github.com"},
		{"git hub.com", "blanks", ""},
		{"github.com\n", "blanks", "github.com"},
		{"https://github.com/acme", "scheme (https://)", "github.com"},
		{"HTTPS://User@GitHub.com:443/x?y#z", "scheme", "github.com"},
		{"https://*.github.com", "scheme", "*.github.com"},
		{"://", "scheme", ""},
		{"http://http://x.example", "scheme", ""},
		{"github.com/acme", "path", "github.com"},
		{"github.com?x", "path", "github.com"},
		{"/", "path", ""},
		{"me@github.com", "user information", "github.com"},
		{"[::1]", "address", ""},
		{"fe80::1", "address", ""},
		{"github.com:443", "port", "github.com"},
		{":443", "port", ""},
		{"bücher.example", "xn--", "xn--bcher-kva.example"},
		{"*.bücher.example", "xn--", "*.xn--bcher-kva.example"},
		{"ＧＩＴＨＵＢ.com", "xn--", "github.com"},
		{"\xff.example", "xn--", ""},
		{"GitHub.com", "lower case", "github.com"},
		{"*github.com", "wrong place", ""},
		{"api.*.github.com", "wrong place", ""},
		{"*.*.github.com", "wrong place", ""},
		{"github.*", "wrong place", ""},
		{".github.com", "empty label", "github.com"},
		{"github.com.", "empty label", "github.com"},
		{"*.github.com.", "empty label", "*.github.com"},
		{"a..b", "empty label", ""},
		{"a..b.", "empty label", ""},
		{"*.", "empty label", ""},
		{".", "empty label", ""},
		{"..", "empty label", ""},
		{strings.Repeat("a", 64) + ".example", "63", ""},
		{strings.Repeat("a.", 124) + "example", "253", ""},
		{"-a.example", "hyphen", ""},
		{"a-.example", "hyphen", ""},
		{"a_b.example", "underscore", ""},
		{"a!b.example", "'!'", ""},
		{"a\x00b.example", `'\x00'`, ""},
		{"10.1.2.3", "digit", ""},
		{"example.1x", "digit", ""},
		{"xn--zz-----.example", "hyphen", ""},
		{"xn--a.example", "does not decode", ""},
		{"com", "one label", ""},
	} {
		p, problem := ParsePattern(c.in)
		if problem == nil {
			t.Errorf("%q is accepted as %v", c.in, p)
			continue
		}
		if !strings.Contains(problem.Reason, c.says) || problem.Hint != c.hint || p != (Pattern{}) {
			t.Errorf("%q: %q, hint %q; want %q, hint %q", c.in, problem.Reason, problem.Hint, c.says, c.hint)
		}
	}
	// A whole top-level domain may be denied, and never allowed.
	if _, problem := ParsePattern("*.zip"); problem == nil || !strings.Contains(problem.Reason, "top-level domain") {
		t.Errorf("*.zip on an allow list: %v", problem)
	}
	if p, problem := ParseDenyPattern("*.zip"); problem != nil || !p.Matches("a.zip") || p.Matches("zip") {
		t.Errorf("*.zip on a deny list: %v", problem)
	}
}

func TestParseName(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"github.com", "github.com"},
		{"GITHUB.COM", "github.com"},
		{"github.com.", "github.com"},
		{"github.com:443", "github.com"},
		{"github.com:443/x", "github.com"},
		{"https://GitHub.COM./x", "github.com"},
		{"https://user:pw@github.com:8443/acme/repo.git?x=1#y", "github.com"},
		{"https://github.com@evil.example/", "evil.example"},
		{"github.com@evil.example", "evil.example"},
		{"github.com/@evil.example", "github.com"},
		{"github.com?@evil.example", "github.com"},
		{"github.com#@evil.example", "github.com"},
		{"ssh://git@github.com/x", "github.com"},
		{"localhost", "localhost"},
		{"a_b.example", "a_b.example"},
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"ｇｉｔｈｕｂ．ｃｏｍ", "github.com"},
		{"github。com", "github.com"},
		{"10.1.2.3", "10.1.2.3"},
		{"10.1.2.3:80", "10.1.2.3"},
		{"::1", "::1"},
		{"[::1]", "::1"},
		{"[::1]:443", "::1"},
		{"https://[2001:DB8::1]:443/", "2001:db8::1"},
		{"::ffff:10.1.2.3", "10.1.2.3"},
		{"https://[::1]/", "::1"},
		{"https://10.1.2.3:80/", "10.1.2.3"},
		{"１０.1.2.3", "10.1.2.3"},
		{"https://x.example:/", "x.example"},
		{"1.example", "1.example"},
		{"x.0xyz", "x.0xyz"},
		{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example"},
	} {
		got, err := ParseName(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, says string }{
		{"", "no host"},
		{".", "no host"},
		{"/", "no host"},
		{"user@", "no host"},
		{"https://", "no host"},
		{"://github.com", "no scheme"},
		{"a/b://github.com", "no scheme"},
		{"git hub.com", "blanks"},
		{"github.com\n", "control"},
		{"github.com\u00a0", "blanks"},
		{"github.com\x00", "control"},
		{`https://github.com\@evil.example`, "backslash"},
		{"git%68ub.com", "percent"},
		{"https://git%68ub.com", "escape"},
		{"*.github.com", "wildcard"},
		{"github.com..", "empty label"},
		{"a..b", "empty label"},
		{"[::1", "bracket"},
		{"a:b:c", "':'"},
		{"\xff.example", "UTF-8"},
		{strings.Repeat("a", 64) + ".example", "63"},
		{strings.Repeat("a.", 130) + "example", "253"},
		{"a!b.example", "'!'"},
		{"fe80::1%eth0", "percent"},
		{"https:/github.com", "a URL has //"},
		{"https:github.com", "not a port"},
		{"github.com:", "no port"},
		{"github.com:https", "not a port"},
		{"github.com:123456", "not a port"},
		{"git@github.com:acme/repo.git", "not a port"},
		{"https://github.com:https/", "port"},
		{"javascript:alert(1)", "not a port"},
		{"a@b@c.example", "two @"},
		{"https://a@b@c.example", "two @"},
		{"[::1]x", "bracket"},
		{"[x.example]", "bracket"},
		{"[10.1.2.3]", "bracket"},
		{"127.1", "four decimal numbers"},
		{"010.1.2.3", "four decimal numbers"},
		{"0x7f.1", "four decimal numbers"},
		{"0x7f000001", "four decimal numbers"},
		{"2130706433", "four decimal numbers"},
		{"https://2130706433/", "four decimal numbers"},
		{"１２７.1", "four decimal numbers"},
	} {
		if got, err := ParseName(c.in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.says)
		}
	}
}

// universe has every name of up to depth labels over an alphabet, below the suffix .z so that all are valid patterns.
func universe(alphabet []string, depth int) []string {
	level, out := []string{"z"}, []string(nil)
	for range depth {
		var next []string
		for _, n := range level {
			for _, l := range alphabet {
				next = append(next, l+"."+n)
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}

func patterns(t *testing.T, names []string) []Pattern {
	t.Helper()
	var out []Pattern
	for _, n := range names {
		for _, s := range []string{n, "*." + n} {
			p, problem := ParsePattern(s)
			if problem != nil {
				t.Fatal(s, problem)
			}
			out = append(out, p)
		}
	}
	return out
}

// matches is the rule in words of labels: a wildcard matches names with more labels that end in its own.
func matches(p, name string) bool {
	suffix, wild := strings.CutPrefix(p, "*.")
	if !wild {
		return p == name
	}
	ls, ns := strings.Split(suffix, "."), strings.Split(name, ".")
	return len(ns) > len(ls) && slices.Equal(ns[len(ns)-len(ls):], ls)
}

// TestMatchAndCover holds Matches to the rule, and Covers to its meaning by trying every name: p covers q exactly when p matches all that q matches.
func TestMatchAndCover(t *testing.T) {
	// ab ends in b without a label between; c occurs in no pattern, so that it stands for all other labels.
	names := universe([]string{"a", "b", "ab", "c"}, 4)
	ps := patterns(t, universe([]string{"a", "b", "ab"}, 2))
	if len(names) < 300 || len(ps) != 24 {
		t.Fatal(len(names), len(ps))
	}
	for _, p := range ps {
		if !p.Matches(p.Example()) {
			t.Errorf("%v does not match its example %s", p, p.Example())
		}
		for _, n := range names {
			if got := p.Matches(Name(n)); got != matches(p.String(), n) {
				t.Fatalf("%v matches %s: %v", p, n, got)
			}
		}
		for _, q := range ps {
			all := true
			for _, n := range names {
				all = all && (!q.Matches(Name(n)) || p.Matches(Name(n)))
			}
			if p.Covers(q) != all {
				t.Errorf("%v covers %v: %v, by all names %v", p, q, p.Covers(q), all)
			}
		}
	}
	var zero Pattern
	for _, p := range append(ps, zero) {
		if zero.Covers(p) || zero.Matches(Name(p.String())) {
			t.Errorf("the zero pattern covers or matches %v", p)
		}
	}
}

// TestSet holds a compiled set to the list it was made of, on both sides of the size from which it keeps maps.
func TestSet(t *testing.T) {
	names := universe([]string{"a", "b", "ab", "c"}, 4)
	all := patterns(t, universe([]string{"a", "b", "ab"}, 3))
	rnd := rand.New(rand.NewPCG(1, 2))
	for size := range 30 {
		for range 20 {
			ps := make([]Pattern, size)
			for i := range ps {
				ps[i] = all[rnd.IntN(len(all))]
			}
			s := NewSet(ps)
			if s.Len() != size {
				t.Fatal(s.Len())
			}
			for range 50 {
				n := Name(names[rnd.IntN(len(names))])
				want := slices.IndexFunc(ps, func(p Pattern) bool { return p.Matches(n) })
				if got, ok := s.Match(n); ok != (want >= 0) || ok && got != want {
					t.Fatalf("%v: match of %s is %d, %v; want %d", ps, n, got, ok, want)
				}
				var every []int
				for i, p := range ps {
					if p.Matches(n) {
						every = append(every, i)
					}
				}
				if got := s.MatchAll(n); !slices.Equal(got, every) {
					t.Fatalf("%v: all matches of %s are %v, want %v", ps, n, got, every)
				}
				q := all[rnd.IntN(len(all))]
				want = slices.IndexFunc(ps, func(p Pattern) bool { return p.Covers(q) })
				if got, ok := s.Covers(q); ok != (want >= 0) || ok && got != want {
					t.Fatalf("%v: cover of %v is %d, %v; want %d", ps, q, got, ok, want)
				}
			}
		}
	}
}

// TestAddresses holds that no pattern matches an address: the default decides.
func TestAddresses(t *testing.T) {
	for _, s := range []string{"10.1.2.3", "::1", "2001:db8::1"} {
		n, err := ParseName(s)
		if err != nil || !n.Literal() {
			t.Errorf("%s: %v, %v", s, n, err)
		}
	}
	for _, n := range []Name{"github.com", "1.2.3.example", "a1", "", "x.0xyz"} {
		if n.Literal() {
			t.Errorf("%q is taken for an address", n)
		}
	}
	// Such a pattern cannot be parsed; the sets must not trust that.
	for _, ps := range [][]Pattern{{{"*.1.1"}}, append([]Pattern{{"*.1.1"}}, slices.Repeat([]Pattern{{"a.example"}}, 20)...)} {
		if i, ok := NewSet(ps).Match("1.1.1.1"); ok {
			t.Errorf("pattern %v matches an address", ps[i])
		}
	}
}

func TestSharedSuffix(t *testing.T) {
	for _, list := range [][]string{registryLabels, tenantSuffixes, regionSuffixes} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("the list from %s on is not sorted or has an entry twice; it is searched by halves", list[0])
		}
	}
	for _, s := range tenantSuffixes {
		if _, problem := ParsePattern("*." + s); problem != nil {
			t.Errorf("%s: %v", s, problem)
		}
	}
	for suffix, want := range map[string]string{
		"github.io": "multi-tenant", "workers.dev": "multi-tenant", "s3.amazonaws.com": "multi-tenant", "s3.eu-west-1.amazonaws.com": "multi-tenant",
		"eu-west-1.elb.amazonaws.com": "multi-tenant", "co.uk": "public", "com.au": "public", "github.com": "", "acme.example": "", "co.example": "", "uk": "", "": "",
		"acme.github.io": "", "a.co.uk": "", "bucket.s3.eu-west-1.amazonaws.com": "", "s3..amazonaws.com": "",
	} {
		if kind, ok := SharedSuffix(suffix); kind != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", suffix, kind, ok, want)
		}
	}
}

// TestPublicSuffixList holds that every second level of the public suffix list with one of the registry labels is known.
func TestPublicSuffixList(t *testing.T) {
	known := 0
	for _, l := range registryLabels {
		for i := range 26 * 26 {
			s := fmt.Sprintf("%s.%c%c", l, 'a'+i/26, 'a'+i%26)
			if got, icann := publicsuffix.PublicSuffix("x." + s); !icann || got != s {
				continue
			}
			known++
			if kind, _ := SharedSuffix(s); kind != "public" {
				t.Errorf("%s: %q", s, kind)
			}
		}
	}
	if known < 500 {
		t.Errorf("the list has %d such levels, which is too few for this test to mean anything", known)
	}
}

func FuzzParsePattern(f *testing.F) {
	for _, s := range []string{"github.com", "*.github.com", "*.", "a..b", "HTTPS://u@GitHub.com:443/x", "bücher.example", "*.zip", "xn--a.example", "[::1]", "*", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (Pattern, *Problem){ParsePattern, ParseDenyPattern} {
			p, problem := parse(s)
			if problem != nil {
				// A hint of one word is a spelling, and must be right.
				if h := problem.Hint; h != "" && !strings.Contains(h, " ") {
					if _, again := parse(h); again != nil {
						t.Errorf("%q: the hint %q is refused: %s", s, h, again.Reason)
					}
				}
				continue
			}
			if p.String() != s {
				t.Errorf("%q prints as %q", s, p)
			}
			if n, err := ParseName(string(p.Example())); err != nil || n != p.Example() || !p.Matches(n) || !p.Covers(p) {
				t.Errorf("%q: example %q, %v", s, p.Example(), err)
			}
			if p.Wildcard() && p.Matches(Name(p.Suffix())) {
				t.Errorf("%q matches its own apex", s)
			}
		}
	})
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"github.com", "https://u:p@GitHub.com.:443/x?y#z", "[::1]:443", "::ffff:1.2.3.4", "bücher.example", "github。com", "a%2eb", `a\b`, "x:y:z", "\u200bx.example", "://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			if n != "" {
				t.Errorf("%q: %q beside %v", s, n, err)
			}
			return
		}
		again, err := ParseName(string(n))
		if err != nil || again != n {
			t.Errorf("%q: %q is read again as %q, %v", s, n, again, err)
		}
		if n == "" || strings.ToLower(string(n)) != string(n) || strings.HasSuffix(string(n), ".") || strings.ContainsAny(string(n), "*/@ \\%[]") {
			t.Errorf("%q: %q is not canonical", s, n)
		}
		if p, problem := ParsePattern(string(n)); problem == nil && !p.Matches(n) {
			t.Errorf("%q: the pattern of %q does not match it", s, n)
		}
	})
}

func TestMatchDoesNotAllocate(t *testing.T) {
	ps := patterns(t, universe([]string{"a", "b"}, 2))
	short, long := NewSet(ps[:3]), NewSet(ps)
	for _, n := range []Name{"a.b.z", "x.y.a.z", "no.such.host9", "10.1.2.3", "::1"} {
		if got := testing.AllocsPerRun(100, func() { short.Match(n); long.Match(n) }); got != 0 {
			t.Errorf("%s: %v allocations", n, got)
		}
	}
}
