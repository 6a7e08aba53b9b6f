package check

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
)

// forbidden are the values that no release may hold.
var forbidden = []string{"bypassPermissions", "danger-full-access"}

// guards checks overrides, the environment and MCP headers.
func (c *checker) guards(b *policy.Body, prefix string) {
	for _, pin := range b.Harnesses {
		at := prefix + "harnesses." + pin.Harness.V + ".overrides."
		allowed := c.Overrides[pin.Harness.V]
		for _, k := range pin.OverrideKeys {
			if !overridable(allowed, k.Key.V) {
				d := diag.New(codeOverride, k.Key.Pos, at+k.Key.V, "the key %s of %s cannot be overridden", k.Key.V, pin.Harness.V)
				d.Hint = "this harness takes no overrides"
				if len(allowed) > 0 {
					d.Hint = "allowed: " + strings.Join(allowed, ", ")
				}
				c.add(d)
			}
			if bad := bypassIn(k.Value.V); bad != "" {
				c.add(diag.New(codeBypass, k.Value.Pos, at+k.Key.V, "the value %s is a permission bypass and is never allowed", bad))
			}
		}
		if bad := bypassValue(pin.Overrides); bad != "" {
			c.add(diag.New(codeBypass, pin.OverridesPos, strings.TrimSuffix(at, "."), "the value %s is a permission bypass and is never allowed", bad))
		}
	}
	for _, e := range b.Env {
		at := prefix + "env." + e.Key.V
		if bad := bypassIn(e.Value.V); bad != "" {
			c.add(diag.New(codeBypass, e.Value.Pos, at, "the value %s is a permission bypass and is never allowed", bad))
		}
		if e.Key.V == "" || strings.ContainsFunc(e.Key.V, func(r rune) bool { return r == '=' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
			c.add(diag.New(codeEnvName, e.Key.Pos, at, "%q is not the name of a variable", e.Key.V))
		}
		c.envKey(e.Key.V, e.Value.V, e.Key.Pos, at)
		if what := Secret(e.Value.V); what != "" {
			c.add(diag.New(codeSecret, e.Value.Pos, at, "the value looks like %s", what).WithHint("refer to a variable: ${NAME}"))
		}
	}
	named := make(map[string]diag.Pos, len(b.MCP.Servers))
	for i, s := range b.MCP.Servers {
		at := fmt.Sprintf("%smcp.servers[%d].", prefix, i)
		if first, ok := named[s.Name.V]; ok && s.Name.IsSet() {
			c.add(diag.New(codeSameServer, s.Name.Pos, at+"name", "there are two MCP servers %s", s.Name.V).WithRelated(first, "the first one"))
		} else {
			named[s.Name.V] = s.Name.Pos
		}
		for _, h := range s.Headers {
			if what := Secret(h.Value.V); what != "" {
				c.add(diag.New(codeSecret, h.Value.Pos, at+"headers."+h.Key.V, "the value looks like %s", what).WithHint("refer to a variable: ${NAME}"))
			}
		}
		// Long words in addresses and arguments are no secrets by themselves: only what has a known form is.
		if what := KnownSecret(s.URL.V); what != "" {
			c.add(diag.New(codeSecret, s.URL.Pos, at+"url", "the value holds what looks like %s", what).WithHint("put it into a header that refers to a variable: ${NAME}"))
		}
		for j, word := range s.Command.Items {
			if what := KnownSecret(word.V); what != "" {
				c.add(diag.New(codeSecret, word.Pos, fmt.Sprintf("%scommand[%d]", at, j), "the value holds what looks like %s", what).WithHint("let the command read it from a variable or a file"))
			}
		}
	}
	for _, a := range b.Telemetry.Attributes {
		if what := Secret(a.Value.V); what != "" {
			c.add(diag.New(codeSecret, a.Value.Pos, prefix+"telemetry.attributes."+a.Key.V, "the value looks like %s", what).WithHint("refer to a variable: ${NAME}"))
		}
	}
}

func overridable(allowed []string, key string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		a = strings.TrimSuffix(a, ".*")
		return key == a || strings.HasPrefix(key, a+".")
	})
}

func bypassIn(s string) string {
	for _, f := range forbidden {
		if strings.Contains(s, f) {
			return f
		}
	}
	return ""
}

// bypassValue looks for a forbidden value in lists, which have no key of their own.
func bypassValue(v any) string {
	switch v := v.(type) {
	case string:
		return bypassIn(v)
	case []any:
		for _, x := range v {
			if bad := bypassValue(x); bad != "" {
				return bad
			}
		}
	case map[string]any:
		for _, x := range v {
			if _, text := x.(string); text {
				continue // reported at its key
			}
			if bad := bypassValue(x); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// reservedEnv are prefixes of variables, in upper case, that steer harnesses, sandboxes or the loader.
var reservedEnv = []string{"OTEL_", "ANTHROPIC_", "CLAUDE_CODE_", "DISABLE_", "CODEX_", "GEMINI_", "GOOGLE_GEMINI_", "COPILOT_", "OPENCODE_", "CURSOR_", "SANDBOX", "SEATBELT_", "LD_", "DYLD_"}

var proxyEnv = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}

func (c *checker) envKey(key, value string, pos diag.Pos, at string) {
	upper := strings.ToUpper(key)
	if key == "ANTHROPIC_CUSTOM_HEADERS" && !strings.Contains(value, "\r") && !haloHeader(value) {
		return
	}
	for _, p := range reservedEnv {
		if strings.HasPrefix(upper, p) {
			c.add(diag.New(codeEnv, pos, at, "the variable %s is reserved: names that begin with %s change how a harness or its sandbox works", key, p))
			return
		}
	}
	if slices.Contains(proxyEnv, upper) {
		c.add(diag.New(codeProxyEnv, pos, at, "the variable %s can lead traffic around the sandbox's own proxy", key))
	}
}

func haloHeader(value string) bool {
	for line := range strings.SplitSeq(value, "\n") {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "x-halo-") {
			return true
		}
	}
	return false
}

// secretMarks are how credentials of well-known form begin. A token of a vendor has at least ten more characters, an AWS key id sixteen.
var secretMarks = []string{"sk-", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-", "AKIA", "ASIA", privateKeyMark}

const privateKeyMark = "-----BEGIN "

// Secret says what kind of literal credential a value seems to hold, or "". References such as ${NAME} are not secrets; the default part of ${NAME:-x} is
// looked at like any text. The value itself must never be printed.
func Secret(value string) string {
	rest := unref(value)
	if what := KnownSecret(rest); what != "" {
		return what
	}
	lower := strings.ToLower(strings.TrimSpace(rest))
	for _, p := range []string{"bearer ", "basic ", "token "} {
		if tail, ok := strings.CutPrefix(lower, p); ok && strings.TrimSpace(tail) != "" {
			return "a credential"
		}
	}
	for word := range words(rest) {
		if len(word) >= 32 && random(word) {
			return "a random token"
		}
	}
	return ""
}

// KnownSecret finds a credential of well-known form anywhere in a text: vendors' tokens, AWS key ids and private keys. It is exact enough to run over whole files.
func KnownSecret(text string) string {
	for _, what := range KnownSecrets([]byte(text)) {
		return what
	}
	return ""
}

// KnownSecrets yields where credentials of well-known form begin in a text, and what kind each is.
func KnownSecrets(text []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, mark := range secretMarks {
			for at := 0; ; {
				next := bytes.Index(text[at:], []byte(mark))
				if next < 0 {
					break
				}
				at += next
				if what := known(text, at, i); what != "" && !yield(at, what) {
					return
				}
				at += len(mark)
			}
		}
	}
}

// known says what the text at a mark of secretMarks is, or "".
func known(text []byte, at, mark int) string {
	if secretMarks[mark] == privateKeyMark {
		if head, _, ok := bytes.Cut(text[at+len(privateKeyMark):], []byte("-----")); ok && bytes.HasSuffix(head, []byte("PRIVATE KEY")) {
			return "a private key"
		}
		return ""
	}
	if at > 0 && wordByte(text[at-1]) {
		return ""
	}
	end := at
	for end < len(text) && wordByte(text[end]) {
		end++
	}
	word := string(text[at:end])
	switch prefix := secretMarks[mark]; prefix {
	case "AKIA", "ASIA":
		if len(word) >= 20 && strings.Trim(word[:20], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
			return "an AWS access key id"
		}
	default:
		if len(word) >= len(prefix)+10 {
			return "a token that begins with " + prefix
		}
	}
	return ""
}

// unref removes references to variables and keeps the default part of ${NAME:-default}.
func unref(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok {
			b.WriteString("${")
			b.WriteString(after)
			return b.String()
		}
		if _, def, ok := strings.Cut(name, ":-"); ok {
			b.WriteString(def)
		}
		s = rest
	}
}

// words yields the runs of letters, digits, underscores and hyphens.
func words(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		for i := range len(s) {
			if wordByte(s[i]) {
				if start < 0 {
					start = i
				}
				continue
			}
			if start >= 0 && !yield(s[start:i]) {
				return
			}
			start = -1
		}
		if start >= 0 {
			yield(s[start:])
		}
	}
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// random reports whether a token is mixed hexadecimal, or has both cases, a digit and at least four bits of entropy a character.
func random(s string) bool {
	var lower, upper, digit, hex bool
	hex = true
	var count [128]int
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z':
			lower = true
			hex = hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			upper = true
			hex = hex && c <= 'F'
		default:
			hex = false
		}
		count[c&127]++
	}
	if hex && digit && (lower || upper) {
		return true
	}
	if !lower || !upper || !digit {
		return false
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits >= 4
}
