package openshell

import (
	"fmt"
	"strings"
	"testing"
)

// TestLargeInputsEnd: patterns and overlaps that would take exponential or quadratic work are bounded, and the bound is a finding.
func TestLargeInputsEnd(t *testing.T) {
	rest := func(path string) string {
		return "version: 1\nnetwork_policies: {a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: '" + path + "'}}]}], binaries: [{path: /x}]}}\n"
	}
	overlaps := func(n int, host string) string {
		var b strings.Builder
		b.WriteString("version: 1\nnetwork_policies:\n")
		for i := range n {
			mode := "enforce"
			if i%2 == 1 {
				mode = "audit"
			}
			fmt.Fprintf(&b, "  r%d: {endpoints: [{host: '%s', port: 443, protocol: rest, access: full, enforcement: %s}], binaries: [{path: /x}]}\n", i, strings.ReplaceAll(host, "#", fmt.Sprint(i)), mode)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, policy, says string
		findings           int
	}{
		{"nested braces", rest("/*" + strings.Repeat("{", 60000) + strings.Repeat("}", 60000)), "longer than 4096 bytes", 1},
		{"braces in a row", rest("/*" + strings.Repeat("{a,b}", 65)), "more than 64 braces", 1},
		{"alternatives", rest("/*" + strings.Repeat("{a,b}", 7)), "more than 64 patterns", 1},
		{"deep braces", rest("/*" + strings.Repeat("{", 64) + "a" + strings.Repeat("}", 64)), "", 0},
		{"long text", rest("/" + strings.Repeat("a", 60000)), "", 0},
		{"one host", overlaps(2000, "h.example.com"), "more endpoints overlap", maxAmbiguities + 1},
		{"names of their own", overlaps(2000, "h#.example.com"), "", 0},
		{"patterns of their own", overlaps(2000, "*-h#.example.com"), "", 0},
		{"patterns that meet", overlaps(800, "*a#*.example.com"), "more endpoints overlap", maxAmbiguities + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, fs := Parse(0, []byte(c.policy))
			fs = append(fs, Check(p)...)
			got, said := 0, false
			for _, f := range fs {
				if f.Code == codePattern || f.Code == codeAmbiguity {
					got++
					said = said || strings.Contains(f.Message, c.says)
				}
			}
			if got != c.findings || got > 0 && !said {
				t.Errorf("%d findings, want %d that say %q", got, c.findings, c.says)
			}
		})
	}
}
