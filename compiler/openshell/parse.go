package openshell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	yamltext "halos.dev/halo/compiler/source"
)

const (
	// maxNodes bounds the work that aliases of aliases can ask for.
	maxNodes = 1 << 18
	maxDepth = 64
	// maxKey is halo's own limit: YAML readers refuse plain keys over 1024 bytes, so a longer one could not be printed.
	maxKey = 512
)

// Parse reads a policy.yaml as OpenShell does, with two differences: a repeated slug, which OpenShell takes in silence, is a finding of halo's
// layer, and keys over 512 bytes are refused. The policy is never nil; with errors it holds what could be read. file is the index of the file
// for positions.
func Parse(file int, data []byte) (*Policy, []Finding) {
	p := &parser{file: file}
	pol := &Policy{}
	if !utf8.Valid(data) {
		p.out.refuse([]Kind{KindParse}, codeParse, diag.NewPos(file, 1, 1), "", "save the file as UTF-8", "the file is not UTF-8 text") // the YAML reader would take UTF-16
		return pol, p.out
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.out.refuse([]Kind{KindParse}, codeParse, diag.NewPos(file, 1, 1), "", "start with version: 1", "the document is empty, a mapping with version is wanted")
		return pol, p.out
	case err != nil:
		p.syntax(data, err)
		return pol, p.out
	}
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		p.refuse(&next, "", "write one document", "the file holds more than one YAML document, one is wanted")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(data, err)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if root = p.deref(root); root.Kind != yaml.MappingNode {
		p.refuse(root, "", "start with version: 1", "the document is %s, a mapping is wanted", nodeWord(root))
		return pol, p.out
	}
	p.part(root, "", pol)
	sortFindings(p.out)
	return pol, p.out
}

type parser struct {
	file  int
	out   findings
	nodes int
	depth int
}

// syntax reports an error of the YAML parser.
func (p *parser) syntax(data []byte, err error) {
	line, msg := yamltext.SyntaxError(data, err)
	p.out.refuse([]Kind{KindParse}, codeParse, diag.NewPos(p.file, line, 1), "", "", "the file is not valid YAML: %s", msg)
}

func (p *parser) pos(n *yaml.Node) diag.Pos { return diag.NewPos(p.file, n.Line, n.Column) }

func (p *parser) refuse(n *yaml.Node, path, hint, format string, args ...any) {
	p.out.refuse([]Kind{KindParse}, codeParse, p.pos(n), path, hint, format, args...)
}

// deref follows aliases; a chain cannot be longer than the nesting of anchors.
func (p *parser) deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// enter counts a node against the limits.
func (p *parser) enter(n *yaml.Node, path string) bool {
	p.nodes++
	if p.nodes == maxNodes || p.depth == maxDepth && p.nodes < maxNodes {
		p.refuse(n, path, "write the values out", "the document is larger or deeper than halo reads")
		p.nodes = maxNodes
	}
	return p.nodes < maxNodes
}

func nodeWord(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNothing(n) {
			return "nothing"
		}
		return strconv.Quote(clip(n.Value))
	}
	return "not a value"
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:77], "") + "..."
	}
	return s
}

const quotedStyles = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func isPlain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Style&quotedStyles == 0 }

// isNothing reports a key with nothing after the colon, which is an empty list, mapping or object. A written null is not.
func isNothing(n *yaml.Node) bool { return isPlain(n) && n.Value == "" }

func isNull(n *yaml.Node) bool {
	return isPlain(n) && slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// part reads a mapping whose keys are fixed. OpenShell refuses unknown and repeated ones everywhere.
func (p *parser) part(n *yaml.Node, path string, into part) {
	at := into.place()
	at.Pos, at.Path = p.pos(n), path
	if !p.enter(n, path) {
		return
	}
	p.depth++
	defer func() { p.depth-- }()
	if isNothing(n) {
		n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
	}
	if n.Kind != yaml.MappingNode {
		p.refuse(n, path, "", "%s is %s, a mapping is wanted", pathWord(path), nodeWord(n))
		return
	}
	fields := into.fields()
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := p.deref(n.Content[i]), p.deref(n.Content[i+1])
		name, ok := p.key(k, path)
		if !ok {
			continue
		}
		kp := join(path, name)
		if first := seen[name]; first != nil {
			p.refuse(n.Content[i], kp, "keep one", "key %q is repeated", name)
			p.out[len(p.out)-1].Diagnostic = p.out[len(p.out)-1].WithRelated(p.pos(first), "first written here")
			continue
		}
		seen[name] = n.Content[i]
		known := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if known < 0 {
			p.refuse(n.Content[i], kp, unknownHint(into, name, fields), "unknown key %q in %s", clip(name), pathWord(path))
			continue
		}
		at.keys = append(at.keys, keyAt{name, -1, p.pos(n.Content[i+1])})
		p.value(v, kp, fields[known], at)
	}
	for _, f := range fields {
		if f.required && seen[f.name] == nil {
			hint := "add " + f.name
			if path == "" && f.name == "version" {
				hint = "add version: 1"
			}
			p.refuse(n, path, hint, "required key %q is missing in %s", f.name, pathWord(path))
		}
	}
}

// unknownHint says what an unknown key of a part was meant to be, or which OpenShell knows it.
func unknownHint(in part, name string, fields []field) string {
	switch in.(type) {
	case *Policy:
		if name == "inference" {
			return "older versions of OpenShell knew it, today's refuse the whole policy: remove it, and attach an inference provider to the sandbox"
		}
	case *MCP:
		if name == "versions" {
			return "newer versions of OpenShell know it, those up to v0.0.111 refuse the whole policy: remove it"
		}
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	if near := diag.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known keys: " + strings.Join(known, ", ")
}

func pathWord(path string) string {
	if path == "" {
		return "the policy"
	}
	return path
}

// key reads a mapping key: any scalar, as text.
func (p *parser) key(k *yaml.Node, path string) (string, bool) {
	if k.Kind != yaml.ScalarNode {
		p.refuse(k, path, "", "a key in %s is %s, a word is wanted", pathWord(path), nodeWord(k))
		return "", false
	}
	if len(k.Value) > maxKey {
		p.refuse(k, path, "use a short name", "a key in %s is longer than %d bytes", pathWord(path), maxKey)
		return "", false
	}
	return k.Value, true
}

// value reads n into where a part keeps it.
func (p *parser) value(n *yaml.Node, path string, f field, at *Place) {
	switch v := f.at.(type) {
	case *string:
		p.text(n, path, v)
	case *bool:
		p.boolean(n, path, v)
	case **bool:
		b := false
		if p.boolean(n, path, &b) {
			*v = &b
		}
	case *uint16:
		*v = uint16(p.number(n, path, 0, 1<<16-1))
	case *uint32:
		*v = uint32(p.number(n, path, 0, 1<<32-1))
	case *int32:
		*v = int32(p.number(n, path, -1<<31, 1<<31-1))
	case *[]string:
		p.list(n, path, func(i int, n *yaml.Node, path string) {
			at.keys = append(at.keys, keyAt{f.name, i, p.pos(n)})
			s := ""
			if p.text(n, path, &s) {
				*v = append(*v, s)
			}
		})
	case *[]uint16:
		p.list(n, path, func(i int, n *yaml.Node, path string) {
			at.keys = append(at.keys, keyAt{f.name, i, p.pos(n)})
			*v = append(*v, uint16(p.number(n, path, 0, 1<<16-1)))
		})
	case *[]Endpoint:
		parts(p, n, path, v)
	case *[]Binary:
		parts(p, n, path, v)
	case *[]L7Rule:
		parts(p, n, path, v)
	case *allowRules:
		p.list(n, path, func(_ int, n *yaml.Node, path string) {
			*v = append(*v, L7Rule{})
			rule := &(*v)[len(*v)-1]
			p.part(n, path, &allowRule{rule: rule})
		})
	case *L7Rule:
		p.part(n, path, v)
	case **Filesystem:
		optional(p, n, path, v)
	case **Landlock:
		optional(p, n, path, v)
	case **Process:
		optional(p, n, path, v)
	case **CredentialBinding:
		optional(p, n, path, v)
	case **JSONRPC:
		optional(p, n, path, v)
	case **MCP:
		optional(p, n, path, v)
	case **Selector:
		optional(p, n, path, v)
	case *[]Rule:
		keyed(p, n, path, v, func(r *Rule) *string { return &r.Slug })
	case *[]Middleware:
		keyed(p, n, path, v, func(m *Middleware) *string { return &m.Key })
	case *[]PersistedQuery:
		keyed(p, n, path, v, func(q *PersistedQuery) *string { return &q.ID })
	case **Match:
		*v = p.match(n, path)
	case *matchers:
		p.params(n, path, (*[]Param)(v), false)
	case *[]Param:
		p.params(n, path, v, true)
	case *[]Value:
		if val, ok := p.config(n, path); ok && val.Kind == Map {
			*v = val.Items
		} else if ok && !isNothing(n) {
			p.refuse(n, path, "", "%s is %s, a mapping is wanted", path, nodeWord(n))
		}
	}
}

// text reads a text; OpenShell takes any scalar as its spelling.
func (p *parser) text(n *yaml.Node, path string, into *string) bool {
	if !p.enter(n, path) {
		return false
	}
	if n.Kind != yaml.ScalarNode {
		p.refuse(n, path, "", "%s is %s, a text is wanted", path, nodeWord(n))
		return false
	}
	*into = n.Value
	return true
}

func (p *parser) boolean(n *yaml.Node, path string, into *bool) bool {
	if isPlain(n) {
		switch n.Value {
		case "true", "True", "TRUE":
			*into = true
			return true
		case "false", "False", "FALSE":
			*into = false
			return true
		}
	}
	p.refuse(n, path, "write true or false, without quotes", "%s is %s, true or false is wanted", path, nodeWord(n))
	return false
}

// number reads an unquoted integer in the forms OpenShell's reader knows.
func (p *parser) number(n *yaml.Node, path string, lo, hi int64) int64 {
	if isPlain(n) {
		if v, ok := parseInt(n.Value); ok {
			if v >= lo && v <= hi {
				return v
			}
			p.refuse(n, path, "", "%s is %s, a number from %d to %d is wanted", path, clip(n.Value), lo, hi)
			return 0
		}
	}
	p.refuse(n, path, "write a plain number, without quotes", "%s is %s, a whole number is wanted", path, nodeWord(n))
	return 0
}

func parseInt(s string) (int64, bool) {
	neg := strings.HasPrefix(s, "-")
	digits := strings.TrimPrefix(s, "-")
	if !neg {
		digits = strings.TrimPrefix(s, "+")
	}
	base := 10
	for _, form := range []struct {
		prefix string
		base   int
	}{{"0x", 16}, {"0o", 8}, {"0b", 2}} {
		if rest, ok := strings.CutPrefix(digits, form.prefix); ok {
			digits, base = rest, form.base
			break
		}
	}
	if base == 10 && len(digits) > 1 && digits[0] == '0' || digits == "" || digits[0] == '+' || digits[0] == '-' || strings.Contains(digits, "_") {
		return 0, false
	}
	v, err := strconv.ParseInt(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	if neg {
		v = -v
	}
	return v, true
}

func (p *parser) list(n *yaml.Node, path string, item func(i int, n *yaml.Node, path string)) {
	if !p.enter(n, path) || isNothing(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		p.refuse(n, path, "put it in [ ]", "%s is %s, a list is wanted", path, nodeWord(n))
		return
	}
	for i, c := range n.Content {
		item(i, p.deref(c), path+"["+strconv.Itoa(i)+"]")
	}
}

// parts reads a list of mappings.
func parts[T any, P interface {
	*T
	part
}](p *parser, n *yaml.Node, path string, into *[]T) {
	p.list(n, path, func(_ int, n *yaml.Node, path string) {
		*into = append(*into, *new(T))
		p.part(n, path, P(&(*into)[len(*into)-1]))
	})
}

// optional reads a mapping that null makes absent.
func optional[T any, P interface {
	*T
	part
}](p *parser, n *yaml.Node, path string, into **T) {
	if isNull(n) {
		return
	}
	*into = new(T)
	p.part(n, path, P(*into))
}

// keyed reads a mapping with free keys.
func keyed[T any, P interface {
	*T
	part
}](p *parser, n *yaml.Node, path string, into *[]T, keyOf func(*T) *string) {
	p.entries(n, path, func(name string, k, v *yaml.Node, path string) {
		t := new(T)
		*keyOf(t) = name
		p.part(v, path, P(t))
		at := P(t).place()
		at.Pos = p.pos(k)
		at.keys = append(at.keys, keyAt{"", -1, p.pos(k)})
		*into = append(*into, *t)
	})
	*into = lastOfEach(*into, func(t *T) string { return *keyOf(t) })
}

// lastOfEach sorts by key and keeps the last of equal ones, as OpenShell does in silence.
func lastOfEach[T any](items []T, keyOf func(*T) string) []T {
	slices.SortStableFunc(items, func(a, b T) int { return strings.Compare(keyOf(&a), keyOf(&b)) })
	kept := items[:0]
	for i := range items {
		if i+1 == len(items) || keyOf(&items[i]) != keyOf(&items[i+1]) {
			kept = append(kept, items[i])
		}
	}
	return kept
}

// entries walks a mapping with free keys and reports repeated ones in halo's layer.
func (p *parser) entries(n *yaml.Node, path string, entry func(name string, k, v *yaml.Node, path string)) {
	if !p.enter(n, path) || isNothing(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.refuse(n, path, "", "%s is %s, a mapping is wanted", path, nodeWord(n))
		return
	}
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := p.deref(n.Content[i])
		name, ok := p.key(k, path)
		if !ok {
			continue
		}
		kp := join(path, name)
		if first := seen[name]; first != nil {
			f := p.out.strict(codeRepeated, p.pos(n.Content[i]), kp, "merge the two or rename one", "%q is written twice in %s and OpenShell drops the first", clip(name), path)
			f.Diagnostic = f.WithRelated(p.pos(first), "first written here")
		}
		seen[name] = n.Content[i]
		entry(name, n.Content[i], p.deref(n.Content[i+1]), kp)
	}
}

// glob reads a value that must resolve to text by the YAML core schema.
func (p *parser) glob(n *yaml.Node, path string) (string, bool) {
	if !p.enter(n, path) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || isPlain(n) && !resolvesToText(n.Value) {
		p.refuse(n, path, "put the value in quotes", "%s is %s, a text or {any: [texts]} is wanted", path, nodeWord(n))
		return "", false
	}
	return n.Value, true
}

// resolvesToText reports whether a plain scalar is a string, not null, a boolean or a number.
func resolvesToText(s string) bool {
	switch s {
	case "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE",
		".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return false
	}
	if _, ok := parseInt(s); ok {
		return false
	}
	if strings.Trim(s, "0123456789.eE+-_") == "" {
		if _, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return false
		}
	}
	return true
}

// match reads a glob or {any: [globs]}; nil after an error.
func (p *parser) match(n *yaml.Node, path string) *Match {
	if n.Kind != yaml.MappingNode {
		if s, ok := p.glob(n, path); ok {
			return &Match{Globs: []string{s}}
		}
		return nil
	}
	m := &Match{Any: true}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := p.deref(n.Content[i]); k.Value != "any" || k.Kind != yaml.ScalarNode || i > 0 {
			p.refuse(n.Content[i], path, "write any: [globs]", "unknown key %q in the matcher %s", clip(k.Value), path)
			return nil
		}
		p.list(p.deref(n.Content[i+1]), path+".any", func(_ int, n *yaml.Node, path string) {
			if s, ok := p.glob(n, path); ok {
				m.Globs = append(m.Globs, s)
			}
		})
	}
	return m
}

// params reads named matchers, nested ones where they may be.
func (p *parser) params(n *yaml.Node, path string, into *[]Param, nest bool) {
	p.depth++
	defer func() { p.depth-- }()
	p.entries(n, path, func(name string, k, v *yaml.Node, path string) {
		q := Param{Name: name, Pos: p.pos(k)}
		if nest && v.Kind == yaml.MappingNode && !isAny(p, v) {
			p.params(v, path, &q.Nested, true)
		} else if q.Match = p.match(v, path); q.Match == nil {
			return
		}
		*into = append(*into, q)
	})
	*into = lastOfEach(*into, func(q *Param) string { return q.Name })
}

func isAny(p *parser, n *yaml.Node) bool {
	return len(n.Content) == 2 && p.deref(n.Content[0]).Value == "any" && p.deref(n.Content[1]).Kind == yaml.SequenceNode
}

// config reads middleware configuration, whose shape only the middleware knows.
func (p *parser) config(n *yaml.Node, path string) (Value, bool) {
	if !p.enter(n, path) {
		return Value{}, false
	}
	p.depth++
	defer func() { p.depth-- }()
	switch n.Kind {
	case yaml.ScalarNode:
		if isPlain(n) && !resolvesToText(n.Value) {
			text := n.Value
			if text == "" {
				text = "null"
			}
			return Value{Kind: Plain, Text: text}, true
		}
		return Value{Text: n.Value}, true
	case yaml.SequenceNode:
		v := Value{Kind: Sequence}
		p.list(n, path, func(_ int, n *yaml.Node, path string) {
			if item, ok := p.config(n, path); ok {
				v.Items = append(v.Items, item)
			}
		})
		return v, true
	case yaml.MappingNode:
		v := Value{Kind: Map}
		p.entries(n, path, func(name string, _, n *yaml.Node, path string) {
			if item, ok := p.config(n, path); ok {
				item.Key = name
				v.Items = append(v.Items, item)
			}
		})
		v.Items = lastOfEach(v.Items, func(v *Value) string { return v.Key })
		return v, true
	}
	p.refuse(n, path, "", "%s is %s, a value is wanted", path, nodeWord(n))
	return Value{}, false
}

func itemPath(path, key string, i int) string { return fmt.Sprintf("%s.%s[%d]", path, key, i) }
