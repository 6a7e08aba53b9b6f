// Package recheck has what every room needs to read its rendered files again: the texts that no file may hold, and how two lists differ.
package recheck

import "strings"

// bypass are the values that switch every question or the sandbox off, in the words of any harness.
var bypass = []string{"bypassPermissions", "danger-full-access"}

// tokens are how the secrets of well-known vendors begin; ten characters or more follow.
var tokens = []struct{ prefix, what string }{
	{"sk-", "an API key"}, {"ghp_", "a GitHub token"}, {"gho_", "a GitHub token"}, {"ghs_", "a GitHub token"}, {"ghu_", "a GitHub token"},
	{"github_pat_", "a GitHub token"}, {"xoxb-", "a Slack token"}, {"xoxp-", "a Slack token"}, {"xoxa-", "a Slack token"}, {"xoxs-", "a Slack token"},
	{"xapp-", "a Slack token"},
}

// Forbidden returns a sentence part for everything in a text that must not be there. Secrets are never repeated in the answer.
func Forbidden(text string) []string {
	var out []string
	for _, b := range bypass {
		if strings.Contains(text, b) {
			out = append(out, "holds the value "+b+", which switches the protection off")
		}
	}
	if s := Secret(text); s != "" {
		out = append(out, s)
	}
	return out
}

// Secret returns a sentence part for the first literal secret in a text, or "".
func Secret(text string) string {
	const end = ": a file on every device is no place for a credential"
	if i := strings.Index(text, "-----BEGIN "); i >= 0 {
		if line, _, _ := strings.Cut(text[i:], "\n"); strings.Contains(line, "PRIVATE KEY-----") {
			return "holds a private key" + end
		}
	}
	for i := 0; i < len(text); {
		if !word(text[i]) {
			i++
			continue
		}
		j := i + 1
		for j < len(text) && word(text[j]) {
			j++
		}
		if what := token(text[i:j]); what != "" {
			return "holds what looks like " + what + end
		}
		i = j
	}
	return ""
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// token says whose token or access key a word has the form of, or "".
func token(s string) string {
	if len(s) < 13 {
		return ""
	}
	switch s[0] {
	case 'A':
		if len(s) == 20 && (strings.HasPrefix(s, "AKIA") || strings.HasPrefix(s, "ASIA")) {
			return "an AWS access key"
		}
	case 's', 'g', 'x':
		for _, t := range tokens {
			if len(s) >= len(t.prefix)+10 && strings.HasPrefix(s, t.prefix) {
				return t.what
			}
		}
	}
	return ""
}

// Set is a list as a set, for lists that are looked into once for each of many entries.
func Set(l []string) map[string]bool {
	out := make(map[string]bool, len(l))
	for _, s := range l {
		out[s] = true
	}
	return out
}

// Difference says how two lists differ.
func Difference(got, want []string) string {
	var parts []string
	has, wanted := Set(got), Set(want)
	for _, s := range want {
		if !has[s] {
			parts = append(parts, "lacks "+s)
		}
	}
	for _, s := range got {
		if !wanted[s] {
			parts = append(parts, "adds "+s)
		}
	}
	if len(parts) == 0 {
		return "has the same entries, in another order or more than once"
	}
	return strings.Join(parts, ", ")
}
