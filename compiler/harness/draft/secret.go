package draft

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// secret says what kind of secret a text seems to hold, or "". Files that people wrote hold passwords that look like any word, so the place of a word counts too:
// an import that drops too much says so, and one that prints a password cannot take it back.
func (d *Draft) secret(text string) string { return cmp.Or(d.Secret(text), credential(text)) }

// credentialNames end the names of flags, query parameters and variables whose value is a secret.
var credentialNames = [...]string{"token", "secret", "password", "passwd", "api_key", "apikey", "api-key", "access_key", "access-key"}

// credential finds a password by where it stands: in a URL, after a flag or a variable that is named for it, or in a header.
func credential(text string) string {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "://")
		if !ok {
			break
		}
		rest = after
		authority := after
		if i := strings.IndexAny(after, "/?# \t\"'"); i >= 0 {
			authority = after[:i]
		}
		if i := strings.LastIndexByte(authority, '@'); i >= 0 {
			if _, password, ok := strings.Cut(authority[:i], ":"); ok && literal(password) {
				return "a password in a URL"
			}
		}
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'?&;,()", r) })
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		name, value, given := strings.Cut(w, "=")
		switch {
		case given && named(name) && literal(value), strings.HasPrefix(w, "-") && named(w) && !strings.HasPrefix(next, "-") && literal(next):
			return "by the name before it"
		case w == "bearer" && literal(next), strings.HasSuffix(w, "authorization:") && next != "bearer" && next != "basic" && literal(next),
			w == "basic" && i > 0 && strings.HasSuffix(words[i-1], "authorization:") && literal(next):
			return "a credential"
		case (w == "-u" || w == "--user") && slices.Contains(words[:i], "curl"):
			if _, password, ok := strings.Cut(next, ":"); ok && literal(password) {
				return "a password"
			}
		}
	}
	return ""
}

func named(name string) bool {
	for _, n := range credentialNames {
		if strings.HasSuffix(name, n) {
			return true
		}
	}
	return false
}

// literal reports whether a text stands for itself: it is not empty, and no reference, pattern or placeholder.
func literal(text string) bool { return text != "" && !strings.ContainsAny(text[:1], "$*<{%:)") }

// shown is a pointer as it may be printed: without keys that may be secrets.
func (d *Draft) shown(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, p := range parts {
		if d.secret(strings.NewReplacer("~1", "/", "~0", "~").Replace(p)) != "" {
			parts[i] = "(secret)"
		}
	}
	return strings.Join(parts, "/")
}
