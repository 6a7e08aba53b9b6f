package forbidden

import (
	"strings"
	"testing"
)

func TestIn(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{`{"disableBypassPermissionsMode": "disable"}`, ""},
		{`"defaultMode": "bypassPermissions"`, "bypassPermissions"},
		{`sandbox_mode = "danger-full-access"`, "danger-full-access"},
		{"ghp_0123456789", "secret"},
		{"ghp_012345678", ""},
		{"x ghp_0123456789abc y", "secret"},
		{"prefix-ghp_0123456789", ""},
		{"github_pat_0123456789", "secret"},
		{"sk-abcdefghij", "secret"},
		{"sk-short", ""},
		{"AKIA0123456789ABCDEF", "secret"},
		{"AKIA0123456789ABCDEFG", ""},
		{"ASIA0123456789ABCDEF", "secret"},
		{"-----BEGIN RSA PRIVATE KEY-----\nx", "private key"},
		{"-----BEGIN PUBLIC KEY-----\nx", ""},
		{"task-abcdefghijkl", ""},
		{"${GITHUB_TOKEN} {env:GITHUB_TOKEN}", ""},
	} {
		got := strings.Join(In(c.text), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if strings.Contains(got, "0123456789") {
			t.Errorf("%q: the answer repeats the secret: %s", c.text, got)
		}
	}
}
