package openshell

import (
	"slices"
	"strconv"
	"strings"
)

// Print writes a policy as policy.yaml: sorted slugs, the same order of keys everywhere, absent and empty values left out. What it writes
// parses to the same policy. The same policy gives the same bytes.
func Print(p *Policy) []byte {
	w := &printer{b: make([]byte, 0, 4096)}
	w.keys(p, 0)
	return w.b
}

type printer struct{ b []byte }

func (w *printer) put(s string) { w.b = append(w.b, s...) }

func (w *printer) indent(n int) {
	for range n {
		w.put("  ")
	}
}

// key starts a line, or goes on after "- ".
func (w *printer) key(name string, depth int) {
	if n := len(w.b); n == 0 || w.b[n-1] == '\n' {
		w.indent(depth)
	}
	w.scalar(name)
	w.put(":")
}

// keys writes a mapping in block form and reports whether it wrote anything.
func (w *printer) keys(v part, depth int) bool {
	any := false
	for _, f := range v.fields() {
		any = w.field(f, depth) || any
	}
	return any
}

// nested writes a mapping behind a key, {} when it is empty.
func (w *printer) nested(v part, depth int) {
	mark := len(w.b)
	w.put("\n")
	if !w.keys(v, depth+1) {
		w.b = append(w.b[:mark], " {}\n"...)
	}
}

// item writes a mapping as a list item.
func (w *printer) item(v part, depth int) {
	w.indent(depth)
	w.put("- ")
	if !w.keys(v, depth+1) {
		w.put("{}\n")
	}
}

func (w *printer) field(f field, depth int) bool {
	start := func() { w.key(f.name, depth) }
	line := func(text string) bool {
		start()
		w.put(" ")
		w.put(text)
		w.put("\n")
		return true
	}
	switch v := f.at.(type) {
	case *string:
		if *v == "" && !f.required {
			return false
		}
		start()
		w.put(" ")
		w.scalar(*v)
		w.put("\n")
		return true
	case *bool:
		if !*v && f.name != "include_workdir" {
			return false
		}
		return line(strconv.FormatBool(*v))
	case **bool:
		return *v != nil && line(strconv.FormatBool(**v))
	case *uint16:
		return *v != 0 && line(strconv.Itoa(int(*v)))
	case *uint32:
		return (*v != 0 || f.required) && line(strconv.FormatUint(uint64(*v), 10))
	case *int32:
		return *v != 0 && line(strconv.Itoa(int(*v)))
	case *[]string:
		return list(w, *v, start, func(s *string) {
			w.indent(depth + 1)
			w.put("- ")
			w.scalar(*s)
			w.put("\n")
		})
	case *[]uint16:
		return list(w, *v, start, func(n *uint16) {
			w.indent(depth + 1)
			w.put("- " + strconv.Itoa(int(*n)) + "\n")
		})
	case *[]Endpoint:
		return list(w, *v, start, func(e *Endpoint) { w.item(e, depth+1) })
	case *[]Binary:
		return list(w, *v, start, func(b *Binary) { w.item(b, depth+1) })
	case *[]L7Rule:
		return list(w, *v, start, func(r *L7Rule) { w.item(r, depth+1) })
	case *allowRules:
		return list(w, *v, start, func(r *L7Rule) { w.item(&allowRule{rule: r}, depth+1) })
	case *L7Rule:
		start()
		w.nested(v, depth)
		return true
	case *[]Rule:
		return list(w, *v, start, func(r *Rule) { w.key(r.Slug, depth+1); w.nested(r, depth+1) })
	case *[]Middleware:
		return list(w, *v, start, func(m *Middleware) { w.key(m.Key, depth+1); w.nested(m, depth+1) })
	case *[]PersistedQuery:
		return list(w, *v, start, func(q *PersistedQuery) { w.key(q.ID, depth+1); w.nested(q, depth+1) })
	case **Filesystem:
		return optionalPart(w, *v, start, depth)
	case **Landlock:
		return optionalPart(w, *v, start, depth)
	case **Process:
		return optionalPart(w, *v, start, depth)
	case **CredentialBinding:
		return optionalPart(w, *v, start, depth)
	case **JSONRPC:
		return optionalPart(w, *v, start, depth)
	case **MCP:
		return optionalPart(w, *v, start, depth)
	case **Selector:
		return optionalPart(w, *v, start, depth)
	case **Match:
		if *v == nil {
			return false
		}
		start()
		w.match(*v)
		return true
	case *matchers:
		return w.params(*v, start, depth)
	case *[]Param:
		return w.params(*v, start, depth)
	case *[]Value:
		if len(*v) == 0 {
			return false
		}
		start()
		w.put(" ")
		w.config(&Value{Kind: Map, Items: *v})
		w.put("\n")
		return true
	}
	return false
}

func list[T any](w *printer, items []T, start func(), item func(*T)) bool {
	if len(items) == 0 {
		return false
	}
	start()
	w.put("\n")
	for i := range items {
		item(&items[i])
	}
	return true
}

func optionalPart[T any, P interface {
	*T
	part
}](w *printer, v *T, start func(), depth int) bool {
	if v == nil {
		return false
	}
	start()
	w.nested(P(v), depth)
	return true
}

func (w *printer) match(m *Match) {
	w.put(" ")
	if !m.Any && len(m.Globs) == 1 {
		w.quoted(m.Globs[0])
	} else {
		w.put("{any: [")
		for i, g := range m.Globs {
			if i > 0 {
				w.put(", ")
			}
			w.quoted(g)
		}
		w.put("]}")
	}
	w.put("\n")
}

func (w *printer) params(ps []Param, start func(), depth int) bool {
	return list(w, ps, start, func(p *Param) {
		w.key(p.Name, depth+1)
		switch {
		case p.Match != nil:
			w.match(p.Match)
		case len(p.Nested) == 0:
			w.put(" {}\n")
		default:
			w.params(p.Nested, func() {}, depth+1)
		}
	})
}

// config writes in flow form, so that empty lists and maps keep their kind.
func (w *printer) config(v *Value) {
	switch v.Kind {
	case Text:
		w.quoted(v.Text)
	case Plain:
		w.put(v.Text)
	case Sequence:
		w.put("[")
		for i := range v.Items {
			if i > 0 {
				w.put(", ")
			}
			w.config(&v.Items[i])
		}
		w.put("]")
	case Map:
		w.put("{")
		for i := range v.Items {
			if i > 0 {
				w.put(", ")
			}
			w.quoted(v.Items[i].Key)
			w.put(": ")
			w.config(&v.Items[i])
		}
		w.put("}")
	}
}

// scalar writes a text plain when no YAML reader can take it for anything else.
func (w *printer) scalar(s string) {
	if isWord(s) {
		w.put(s)
		return
	}
	w.quoted(s)
}

// quoted writes a double-quoted text. Go's escapes are all YAML's, too.
func (w *printer) quoted(s string) { w.b = strconv.AppendQuote(w.b, s) }

func isWord(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_')) {
			return false
		}
	}
	return !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s))
}
