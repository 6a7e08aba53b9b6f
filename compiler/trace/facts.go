package trace

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
)

// fact is one thing that a rendered file says. Its id is the same in another rendering that says the same thing at another line or list index.
type fact struct {
	id   string
	line int
	// text is the value, key or line as people read it; pointer is where it is in a JSON or TOML document.
	text, pointer string
	// closes is the line that began what this line ends, else 0.
	closes int
}

// facts lists what a file says. A JSON document is read member by member, a TOML document line by line, any other file is its lines.
func facts(f harness.File) []fact {
	if bytes.HasPrefix(f.Content, []byte("{")) {
		if root, ok := parseJSON(f.Content); ok {
			var out []fact
			root.emit(f.Dest, "", &out)
			return out
		}
	}
	lines := strings.Split(strings.TrimSuffix(string(f.Content), "\n"), "\n")
	if strings.HasSuffix(f.Dest, ".toml") {
		return tomlFacts(f.Dest, lines)
	}
	seen := map[string]int{}
	var out []fact
	for i, text := range lines {
		seen[text]++
		out = append(out, fact{id: f.Dest + "\x00" + strconv.Itoa(seen[text]) + "\x00" + text, line: i + 1, text: text})
	}
	return out
}

// node is a value of a JSON document with the lines it spans.
type node struct {
	key         string
	first, last int
	// open is { or [ for a container, else 0; raw is the canonical text, text a scalar as people read it.
	open      byte
	raw, text string
	children  []*node
}

func parseJSON(data []byte) (*node, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	line, at := 1, 0
	// Tokens are read in order, so that lines are counted once.
	next := func() (json.Token, int, bool) {
		tok, err := dec.Token()
		if err != nil {
			return nil, 0, false
		}
		end := int(dec.InputOffset())
		line += bytes.Count(data[at:end], []byte("\n"))
		at = end
		return tok, line, true
	}
	var read func(tok json.Token, n *node) bool
	read = func(tok json.Token, n *node) bool {
		n.first, n.last = line, line
		d, ok := tok.(json.Delim)
		if !ok {
			// A token of a decoder is plain data, which encoding/json always writes.
			b, _ := json.Marshal(tok)
			n.raw = string(b)
			if n.text, ok = tok.(string); !ok {
				n.text = n.raw
			}
			return true
		}
		n.open = byte(d)
		var b strings.Builder
		b.WriteByte(n.open)
		for dec.More() {
			c := &node{}
			tok, _, ok := next()
			if ok && n.open == '{' {
				c.key, _ = tok.(string)
				b.WriteString(strconv.Quote(c.key) + ":")
				tok, _, ok = next()
			}
			if !ok || !read(tok, c) {
				return false
			}
			n.children = append(n.children, c)
			b.WriteString(c.raw + ",")
		}
		_, end, ok := next()
		n.last = end
		n.raw = b.String() + string(n.open+2)
		return ok
	}
	tok, _, ok := next()
	root := &node{}
	return root, ok && read(tok, root)
}

// emit lists a value and what is in it. The entries of a list are told apart by what they say, not by their index.
func (n *node) emit(id, pointer string, out *[]fact) {
	if len(n.children) == 0 {
		text := n.text
		if n.open != 0 {
			text = string([]byte{n.open, n.open + 2})
		}
		*out = append(*out, fact{id: id + "\x00=" + n.raw, line: n.first, text: text, pointer: pointer})
		return
	}
	*out = append(*out, fact{id: id + "\x00" + string(n.open), line: n.first, text: n.key, pointer: pointer})
	for i, c := range n.children {
		switch {
		case n.open == '{':
			c.emit(id+"\x00/"+c.key, jsondoc.Pointer(pointer, c.key), out)
		case len(c.children) == 0:
			c.emit(id+"\x00[]", pointer+"/"+strconv.Itoa(i), out)
		default:
			c.emit(id+"\x00["+c.raw, pointer+"/"+strconv.Itoa(i), out)
		}
	}
	if n.last != n.first {
		*out = append(*out, fact{id: id + "\x00" + string(n.open), line: n.last, text: n.key, pointer: pointer, closes: n.first})
	}
}

// tomlFacts reads the TOML that halo writes: a value is never longer than its line.
func tomlFacts(dest string, lines []string) []fact {
	var out []fact
	block, header, element := "", "", ""
	for i, text := range lines {
		trimmed := strings.TrimSpace(text)
		switch {
		case trimmed == "":
			continue
		case strings.HasPrefix(trimmed, "["):
			name := strings.Trim(trimmed, "[]")
			if strings.HasPrefix(trimmed, "[[") {
				if element == "" || !strings.HasPrefix(name, element+".") {
					element = name
					block = elementText(lines[i:], name)
				}
			} else if element != "" && !strings.HasPrefix(name, element+".") {
				block, element = "", ""
			}
			header = trimmed
			out = append(out, fact{id: dest + "\x00" + block + "\x00" + header, line: i + 1, text: trimmed, pointer: name})
			continue
		}
		at := dest + "\x00" + block + "\x00" + header
		var doc map[string]any
		if strings.HasPrefix(trimmed, "#") || toml.Unmarshal([]byte(trimmed), &doc) != nil || len(doc) != 1 {
			out = append(out, fact{id: at + "\x00" + trimmed, line: i + 1, text: trimmed})
			continue
		}
		for k, v := range doc {
			pointer := strings.TrimPrefix(strings.Trim(header, "[]")+"."+k, ".")
			list, isList := v.([]any)
			if !isList || len(list) == 0 {
				out = append(out, fact{id: at + "\x00" + k + "=" + canonical(v), line: i + 1, text: plain(v), pointer: pointer})
			}
			for _, x := range list {
				out = append(out, fact{id: at + "\x00" + k + "[]" + canonical(x), line: i + 1, text: plain(x), pointer: pointer})
			}
		}
	}
	return out
}

// elementText returns the text of an element of an array of tables, with the tables below it.
func elementText(lines []string, name string) string {
	end := 1
	for ; end < len(lines); end++ {
		t := strings.TrimSpace(lines[end])
		if strings.HasPrefix(t, "[") && !strings.HasPrefix(strings.Trim(t, "[]"), name+".") {
			break
		}
	}
	return strings.TrimRight(strings.Join(lines[:end], "\n"), "\n")
}

func canonical(v any) string {
	// A decoded value is plain data, which encoding/json always writes.
	b, _ := json.Marshal(v)
	return string(b)
}

func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return canonical(v)
}
