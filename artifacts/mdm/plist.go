package mdm

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/compiler/harness/jsondoc"
)

const plistHead = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
`

// plist writes a document of the given dictionary, indented by blanks: Iru expands tabs, which would make its copy differ.
func plist(o jsondoc.Object) []byte {
	b := writePlist([]byte(plistHead), o, 0)
	return append(b, "</plist>\n"...)
}

func writePlist(b []byte, v any, depth int) []byte {
	indent := func(n int) {
		for range n {
			b = append(b, "  "...)
		}
	}
	line := func(tag, text string) {
		indent(depth)
		b = fmt.Appendf(b, "<%s>%s</%s>\n", tag, text, tag)
	}
	open := func(tag string, n int, inner func()) {
		indent(depth)
		if n == 0 {
			b = fmt.Appendf(b, "<%s/>\n", tag)
			return
		}
		b = fmt.Appendf(b, "<%s>\n", tag)
		inner()
		indent(depth)
		b = fmt.Appendf(b, "</%s>\n", tag)
	}
	switch v := v.(type) {
	case string:
		line("string", xmlEscape(v))
	case bool:
		indent(depth)
		b = fmt.Appendf(b, "<%t/>\n", v)
	case int:
		line("integer", strconv.Itoa(v))
	case json.Number:
		// The digits stay as they are; a plist tells whole numbers from others, as the CLIs do.
		if strings.ContainsAny(v.String(), ".eE") {
			line("real", v.String())
		} else {
			line("integer", v.String())
		}
	case jsondoc.Object:
		open("dict", len(v), func() {
			for _, m := range v {
				indent(depth + 1)
				b = fmt.Appendf(b, "<key>%s</key>\n", xmlEscape(m.Key))
				b = writePlist(b, m.Value, depth+1)
			}
		})
	case []any:
		open("array", len(v), func() {
			for _, x := range v {
				b = writePlist(b, x, depth+1)
			}
		})
	}
	return b
}

// plistable says why a document cannot become a plist with the same meaning.
func plistable(path string, v any) error {
	switch v := v.(type) {
	case nil:
		return fmt.Errorf("%s is null, which a plist does not have", path)
	case string:
		if !xmlText(v) {
			return fmt.Errorf("%s has a control character, which XML cannot hold", path)
		}
	case json.Number:
		// A plist integer has 64 bits.
		if s := v.String(); !strings.ContainsAny(s, ".eE") {
			if _, err := strconv.ParseInt(s, 10, 64); err != nil {
				return fmt.Errorf("%s has more than 64 bits", path)
			}
		}
	case jsondoc.Object:
		for _, m := range v {
			if !xmlText(m.Key) {
				return fmt.Errorf("%s has a control character, which XML cannot hold", jsondoc.Pointer(path, m.Key))
			}
			if err := plistable(jsondoc.Pointer(path, m.Key), m.Value); err != nil {
				return err
			}
		}
	case []any:
		for i, x := range v {
			if err := plistable(fmt.Sprintf("%s/%d", path, i), x); err != nil {
				return err
			}
		}
	}
	return nil
}

// xmlText reports whether XML 1.0 can hold s (its production Char).
func xmlText(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return utf8.ValidString(s)
}

// xmlEscape writes text for an element or an attribute in double quotes. Line ends and tabs are references, since a reader would change them otherwise.
func xmlEscape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\t', r == '\n', r == '\r':
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
