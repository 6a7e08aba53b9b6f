package recheck

import (
	"strings"
	"testing"
)

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{`{"disableBypassPermissionsMode": "disable"}`, ""},
		{`"defaultMode": "bypassPermissions"`, "bypassPermissions"},
		{`sandbox_mode = "danger-full-access"`, "danger-full-access"},
		{"ghp_0123456789", "a GitHub token"},
		{"ghp_012345678", ""},
		{"x ghp_0123456789abc y", "a GitHub token"},
		{"prefix-ghp_0123456789", ""},
		{"github_pat_0123456789", "a GitHub token"},
		{"sk-abcdefghij", "an API key"},
		{"sk-short", ""},
		{"AKIA0123456789ABCDEF", "an AWS access key"},
		{"AKIA0123456789ABCDEFG", ""},
		{"ASIA0123456789ABCDEF", "an AWS access key"},
		{"-----BEGIN RSA PRIVATE KEY-----\nx", "private key"},
		{"-----BEGIN PUBLIC KEY-----\nx", ""},
		{"task-abcdefghijkl", ""},
		{"${GITHUB_TOKEN} {env:GITHUB_TOKEN}", ""},
	} {
		got := strings.Join(Forbidden(c.text), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if strings.Contains(got, "0123456789") {
			t.Errorf("%q: the answer repeats the secret: %s", c.text, got)
		}
	}
}

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		got, want []string
		text      string
	}{
		{nil, []string{"a"}, "lacks a"},
		{[]string{"b", "c"}, []string{"a", "b"}, "lacks a, adds c"},
		{[]string{"a", "a"}, []string{"a"}, "has the same entries, in another order or more than once"},
	} {
		if got := Difference(c.got, c.want); got != c.text {
			t.Errorf("%v and %v: %s, want %s", c.got, c.want, got, c.text)
		}
	}
}
