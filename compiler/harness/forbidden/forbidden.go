// Package forbidden knows the texts that no rendered file may hold: values that switch a harness's protection off, and secrets.
package forbidden

import "strings"

// bypass are the values that switch every question or the sandbox off, in the words of any harness.
var bypass = []string{"bypassPermissions", "danger-full-access"}

// prefixes begin the tokens of well-known vendors; ten characters or more follow.
var prefixes = []string{"sk-", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-"}

// In returns a sentence part for everything in a text that must not be there. Secrets are never repeated in the answer.
func In(text string) []string {
	var out []string
	for _, b := range bypass {
		if strings.Contains(text, b) {
			out = append(out, "holds the value "+b+", which switches the protection off")
		}
	}
	if i := strings.Index(text, "-----BEGIN "); i >= 0 {
		if line, _, _ := strings.Cut(text[i:], "\n"); strings.Contains(line, "PRIVATE KEY-----") {
			out = append(out, "holds a private key")
		}
	}
	for i := 0; i < len(text); {
		if !word(text[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(text) && word(text[end]) {
			end++
		}
		if token(text[i:end]) {
			return append(out, "holds a literal secret")
		}
		i = end
	}
	return out
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// token reports whether a word has the form of a vendor's token or of an AWS access key.
func token(s string) bool {
	if len(s) < 13 {
		return false
	}
	if (s[0] == 'A') && len(s) == 20 && (strings.HasPrefix(s, "AKIA") || strings.HasPrefix(s, "ASIA")) {
		return true
	}
	switch s[0] {
	case 's', 'g', 'x':
	default:
		return false
	}
	for _, p := range prefixes {
		if len(s) >= len(p)+10 && strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
