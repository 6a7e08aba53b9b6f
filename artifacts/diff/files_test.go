package diff

import (
	"strings"
	"testing"

	"halos.dev/halo/artifacts"
)

func hosted(t testing.TB, allowed, denied string) *target {
	t.Helper()
	p, err := hostsOf(artifacts.Egress{Default: "deny", Allowed: strings.Fields(allowed), Denied: strings.Fields(denied)})
	if err != nil {
		t.Fatal(err)
	}
	return &target{hosts: p}
}

// TestExplained holds that a file of a release counts as explained by its hosts only when nothing else in it changed.
func TestExplained(t *testing.T) {
	both, one := hosted(t, "a.example b.example", ""), hosted(t, "a.example", "")
	for _, c := range []struct {
		a, b     string
		old, new *target
		want     bool
	}{
		{`{"allow": ["a.example", "b.example"], "lock": true}`, `{"allow": ["a.example"], "lock": true}`, both, one, true},
		{`{"allow": ["a.example", "b.example"], "lock": true}`, `{"allow": ["a.example"], "lock": false}`, both, one, false},
		{`{"allow": ["a.example", "b.example"]}`, `{"allow": ["a.example"]}`, one, one, false},
		{`deny Read(b.example) allow Bash(x)`, `deny Bash(x) allow`, both, one, false},
		{`deny x allow y`, `deny y allow x`, both, one, false},
		{`["WebFetch(domain:b.example)", "c"]`, `["c"]`, both, one, true},
		// Part of another host is not the host.
		{`["xb.example"]`, `[]`, both, one, false},
		{`["b.example.com"]`, `[]`, both, one, false},
		{`["*.b.example"]`, `[]`, both, one, false},
	} {
		if got := explained([]byte(c.a), []byte(c.b), c.old, c.new); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// FuzzExplained holds that a file is never explained when a word that names no changed host is added to one side.
func FuzzExplained(f *testing.F) {
	f.Add(`{"allow": ["a.example", "b.example"], "lock": true}`, "false")
	f.Add("b.example\nb.example", "x")
	f.Add("", "*.b.example")
	old, new := hosted(f, "a.example b.example", "d.example"), hosted(f, "a.example", "d.example *.e.example")
	f.Fuzz(func(t *testing.T, text, word string) {
		word = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n,\"'", r) {
				return -1
			}
			return r
		}, word)
		if word == "" || namesHost(word, "b.example") || namesHost(word, "*.e.example") {
			return
		}
		if explained([]byte(text), []byte(text+" "+word), old, new) {
			t.Errorf("%q explains %q", text, word)
		}
		if !explained([]byte(text), []byte(text+" b.example, *.e.example"), old, new) {
			t.Errorf("%q with changed hosts is not explained", text)
		}
	})
}

func TestHostsOf(t *testing.T) {
	for _, e := range []artifacts.Egress{{Default: "maybe"}, {Default: "deny", Allowed: []string{"not a host"}}, {Default: "deny", Denied: []string{"HTTP://x"}}} {
		if _, err := hostsOf(e); err == nil {
			t.Errorf("%+v compiles", e)
		}
	}
}
