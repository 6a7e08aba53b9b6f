package pack

import (
	"strings"
	"testing"
)

// TestHostilePacks reads files of the allowed size that make a reader slow or deep that is quadratic or recursive in something.
func TestHostilePacks(t *testing.T) {
	fill := func(head, unit string) []byte {
		return []byte(head + strings.Repeat(unit, (MaxBytes-len(head))/len(unit)))
	}
	numbered := func(head, unit string) []byte {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; ; i++ {
			s := strings.ReplaceAll(unit, "#", strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.ToLower(string("abcdefghijklmnopqrstuvwxyz"[i/26%26]))+string("abcdefghijklmnopqrstuvwxyz"[i/676%26]))
			if b.Len()+len(s) > MaxBytes {
				return []byte(b.String())
			}
			b.WriteString(s)
		}
	}
	for name, data := range map[string][]byte{
		"unknown keys":        numbered("", "#: 1\n"),
		"repeated keys":       fill("", "a: 1\n"),
		"nested lists":        fill("a: ", "["),
		"nested maps":         fill("", "{a: "),
		"null entries":        fill("egress: {block: [", "~,"),
		"empty entries":       fill("egress: {block: [", "{},"),
		"patterns":            numbered("egress: {block: [", "#.example,"),
		"bad patterns":        numbered("egress: {block: [", "#:1,"),
		"long text":           fill("name: ", "x"),
		"anchors":             fill("egress: {block: [", "&a a,"),
		"documents":           fill("", "---\n"),
		"comments":            fill("", "#\n"),
		"question marks":      fill("", "? "),
		"dashes":              fill("", "- "),
		"quotes":              fill("name: \"", "\\x41"),
		"labels":              fill("egress: {block: [\"", "a."),
		"glob":                fill("workspace: {masks: [\"", "**/"),
		"keys without values": fill("", "a\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load("packs/x/pack.yaml", data); err == nil {
				t.Error("loads")
			}
			if len(Check("packs/x/pack.yaml", data, 0)) == 0 {
				t.Error("nothing is reported")
			}
		})
	}
}
