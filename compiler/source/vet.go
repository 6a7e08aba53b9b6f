package source

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
)

// vet reports everything in a document that YAML allows and a policy repo does not. It answers false when the document is not a mapping or is too deep,
// so that walking it makes no sense; other findings leave the document walkable and the offending values absent.
func vet(doc *Document, lim Limits, diags *diag.List) bool {
	v := vetter{doc: doc, lim: lim, diags: diags}
	if doc.Root.Kind != yaml.MappingNode {
		diags.Add(diag.New(codeNotMapping, v.pos(doc.Root), "", "document %d is %s, not a mapping of keys to values", doc.Index+1, describe(doc.Root)))
		return false
	}
	return v.node(doc.Root, 1)
}

type vetter struct {
	doc   *Document
	lim   Limits
	diags *diag.List
	path  Path
}

func (v *vetter) pos(n *Node) diag.Pos { return diag.NewPos(v.doc.File, n.Line, n.Column) }

func (v *vetter) add(code *diag.Code, n *Node, format string, args ...any) {
	v.diags.Add(diag.New(code, v.pos(n), v.path.String(), format, args...))
}

func (v *vetter) node(n *Node, depth int) bool {
	if depth > v.lim.Depth && n.Kind != yaml.ScalarNode && n.Kind != yaml.AliasNode {
		v.add(codeLimit, n, "the document is nested more than %d levels deep, the limit", v.lim.Depth)
		return false
	}
	if n.Anchor != "" {
		v.add(codeAnchor, n, "anchor &%s: anchors and aliases are not used in policy, so that what is reviewed is what applies; write the value out", n.Anchor)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		v.add(codeTag, n, "the explicit tag %s is not allowed; write the plain value", n.Tag)
	}
	switch n.Kind {
	case yaml.AliasNode:
		v.add(codeAnchor, n, "alias *%s: anchors and aliases are not used in policy; write the value out, or put quotes around a value that begins with *", n.Value)
	case yaml.ScalarNode:
		if len(n.Value) > v.lim.Scalar {
			v.add(codeLimit, n, "the value has %d bytes, more than the limit of %d", len(n.Value), v.lim.Scalar)
		}
	case yaml.SequenceNode:
		ok := true
		for i, c := range n.Content {
			v.path.PushIndex(i)
			if isNull(c) {
				v.null(c, "the list item")
			} else if !v.node(c, depth+1) {
				ok = false
			}
			v.path.Pop()
		}
		return ok
	case yaml.MappingNode:
		return v.mapping(n, depth)
	}
	return true
}

func (v *vetter) null(n *Node, what string) {
	if n.Value == "~" {
		v.add(codeNull, n, `%s is null: a bare ~ means "no value" in YAML; put quotes around it ("~") or remove it`, what)
		return
	}
	v.add(codeNull, n, "%s is null (no value); write a value or remove the key", what)
}

func (v *vetter) mapping(n *Node, depth int) bool {
	ok := true
	var seen map[string]*Node
	if len(n.Content) > 32 {
		seen = make(map[string]*Node, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			if k.Kind == yaml.AliasNode {
				v.add(codeAnchor, k, "alias *%s as a key: anchors and aliases are not used in policy; write the key out", k.Value)
			} else {
				v.add(codeKey, k, "%s cannot be a key; keys are plain words", describe(k))
			}
			continue
		}
		v.path.PushKey(k.Value)
		if k.Anchor != "" {
			v.add(codeAnchor, k, "anchor &%s on a key: anchors and aliases are not used in policy", k.Anchor)
		}
		switch {
		case k.Tag == "!!merge":
			v.add(codeAnchor, k, "the merge key << is not allowed; write the keys out")
		case k.Style&yaml.TaggedStyle != 0:
			v.add(codeTag, k, "the explicit tag %s is not allowed on a key", k.Tag)
		case isNull(k):
			v.add(codeKey, k, "the key is null; write a key")
		}
		if first := earlier(n, i, seen); first != nil {
			d := diag.New(codeRepeated, v.pos(k), v.path.String(), "key %q is repeated: it was already given on line %d", k.Value, first.Line)
			v.diags.Add(d.WithRelated(v.pos(first), "first given here").WithHint("keep one of the two and merge their values"))
		}
		if isNull(val) {
			if v.lim.nullable == "" || !strings.HasPrefix(v.path.String(), v.lim.nullable) {
				v.null(val, "the value of "+strconv.Quote(k.Value))
			}
		} else if !v.node(val, depth+1) {
			ok = false
		}
		v.path.Pop()
	}
	return ok
}

// earlier returns an earlier key of n equal to the key at content index i.
func earlier(n *Node, i int, seen map[string]*Node) *Node {
	k := n.Content[i]
	if seen != nil {
		if first, ok := seen[k.Value]; ok {
			return first
		}
		seen[k.Value] = k
		return nil
	}
	for j := 0; j < i; j += 2 {
		if n.Content[j].Value == k.Value && n.Content[j].Kind == yaml.ScalarNode {
			return n.Content[j]
		}
	}
	return nil
}

// isNull reports whether n is a null scalar without an explicit tag (a tagged null is reported as a tag).
func isNull(n *Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Style&yaml.TaggedStyle == 0
}

// describe names what a node is, for messages.
func describe(n *Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!null":
		return "null"
	case "!!bool":
		return "the boolean " + n.Value
	case "!!int", "!!float":
		return "the number " + n.Value
	}
	return "the text " + diag.Quote(n.Value)
}

// Path is the key path of the place being read. Its text is made only for a finding.
type Path struct {
	segs []seg
}

type seg struct {
	key   string
	index int
}

// PushKey enters the value of a key.
func (p *Path) PushKey(k string) { p.segs = append(p.segs, seg{k, -1}) }

// PushIndex enters an item of a list, counted from 0.
func (p *Path) PushIndex(i int) { p.segs = append(p.segs, seg{"", i}) }

// Pop leaves the innermost value.
func (p *Path) Pop() { p.segs = p.segs[:len(p.segs)-1] }

// String returns the path as diagnostics print it: egress.deniedDomains[2].
func (p *Path) String() string {
	var b strings.Builder
	for _, s := range p.segs {
		if s.index >= 0 {
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.index))
			b.WriteByte(']')
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.key)
	}
	return b.String()
}

// syntaxDiag turns an error of the yaml package into a diagnostic. The commonest mistake is a wildcard without quotes, which YAML takes for an alias.
func syntaxDiag(index int, text []byte, err error) diag.Diagnostic {
	line, msg := SyntaxError(text, err)
	if strings.Contains(msg, "exceeded max") {
		return diag.New(codeLimit, diag.NewPos(index, line, 1), "", "the document is nested too deep: %s", msg)
	}
	var star func(l int, word string) bool
	if anchor, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		// This error has no line, but the name.
		anchor, _, _ = strings.Cut(anchor, "'")
		star = func(_ int, word string) bool { return word == "*"+anchor }
	} else if strings.Contains(msg, "did not find expected") {
		star = func(l int, _ string) bool { return l == line }
	}
	if star != nil {
		if l, c, word := bareStar(text, star); l > 0 {
			return diag.New(codeStar, diag.NewPos(index, l, c), "", "%s begins with *, which YAML reads as an alias; quote it", word).
				WithHint("%q", word)
		}
	}
	d := diag.New(codeSyntax, diag.NewPos(index, line, 1), "", "not valid YAML: %s", msg)
	switch first := strings.TrimSpace(string(lineOf(text, line))); {
	case msg == "found incompatible YAML document":
		d.Hint = "remove the line %YAML, which says nothing here"
	case msg != "found character that cannot start any token":
	case strings.HasPrefix(strings.TrimLeft(string(lineOf(text, line)), " "), "\t"):
		d.Hint = "indent with blanks: YAML takes no tab there"
	case first != "":
		d.Hint = "put quotes around a value that begins with one of @ ` %"
	}
	return d
}

func lineOf(text []byte, line int) []byte {
	for ; line > 1; line-- {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return text
}

// SyntaxError returns the line that an error of the yaml package is about, from 1, and what it says. The package writes the line into the text of the error
// only: for what its scanner finds, that line; for what its parser finds, one less than the line where the list or mapping begins in which it got lost.
func SyntaxError(text []byte, err error) (line int, msg string) {
	line, msg = yamlError(err)
	switch msg {
	case "did not find expected key", "did not find expected '-' indicator":
		// Such a list or mapping may begin far above. As it ends where the text ends, the first line at which a text that is cut off has the error is the one.
		from, lines := line, bytes.Count(text, []byte("\n"))+1
		if len(text) > bigFile/4 {
			return line + 1, msg // where it begins, rather than reading so much a dozen times
		}
		more := sort.Search(lines-from, func(n int) bool {
			_, err := nodes(text[:endOf(text, from+n)])
			if err == nil {
				return false
			}
			l, m := yamlError(err)
			return l == line && m == msg
		})
		return max(1, from+more), msg
	case "did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected node content", "did not find expected <document start>",
		"found undefined tag handle", "found duplicate %YAML directive", "found duplicate %TAG directive", "found incompatible YAML document":
		return min(line+1, max(1, bytes.Count(text, []byte("\n")))), msg
	}
	return max(1, line), msg
}

// endOf returns where the line ends.
func endOf(text []byte, line int) int {
	end := 0
	for ; line > 0; line-- {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			return len(text)
		}
		end += i + 1
	}
	return end
}

// yamlError takes an error of the yaml package apart; line is 0 when it has none.
func yamlError(err error) (line int, msg string) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if num, tail, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(num); err == nil {
				line, msg = n, tail
			}
		}
	}
	return line, msg
}

// bareStar finds the first unquoted * at the start of a value that is the one meant.
func bareStar(text []byte, meant func(line int, word string) bool) (line, col int, word string) {
	for i, l := range strings.Split(string(text), "\n") {
		var quoted rune
		prev := rune(' ')
		for c, r := range l {
			if quoted != 0 {
				if r == quoted {
					quoted = 0
				}
				continue
			}
			if r == '#' && prev == ' ' {
				break
			}
			start := prev == ' ' || prev == '[' || prev == '{' || prev == ',' || prev == '\t'
			switch {
			case (r == '"' || r == '\'') && start:
				quoted = r
			case r == '*' && start:
				before := strings.TrimRight(l[:c], " \t")
				if before == "" || strings.HasSuffix(before, "-") || strings.HasSuffix(before, ":") || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",") {
					word := l[c:]
					if end := strings.IndexAny(word, " ,]}\t\r#"); end > 0 {
						word = word[:end]
					}
					if meant(i+1, word) {
						return i + 1, len([]rune(l[:c])) + 1, word
					}
				}
			}
			prev = r
		}
	}
	return 0, 0, ""
}
