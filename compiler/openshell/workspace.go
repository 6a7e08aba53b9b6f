package openshell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/compiler/diag"
)

// Host is a host, host pattern or host entry with the place it was written at.
type Host struct {
	Text string
	Pos  diag.Pos
	Path string // key path, for findings
}

// Workspace is what composing takes from a .kaiden/workspace.json.
type Workspace struct {
	Hosts []Host
	// Mode is network.mode (allow or deny); the image builder reads it and ignores it.
	Mode string
}

// ReadWorkspace reads a .kaiden/workspace.json strictly: its schema is that of openkaiden/kdn-api v0.14.0 (workspace-configuration/openapi.yaml),
// every object refuses unknown keys, and so are repeated keys and null.
func ReadWorkspace(file int, data []byte) (*Workspace, []Finding) {
	w := &workspaceReader{file: file, data: data, ws: &Workspace{}}
	if !utf8.Valid(data) {
		w.fail(0, "", "save the file as UTF-8", "the file is not UTF-8 text")
		return w.ws, w.out
	}
	w.dec = json.NewDecoder(bytes.NewReader(data))
	w.dec.UseNumber()
	if w.value(workspaceShape(), "") {
		start := w.start()
		if _, err := w.dec.Token(); !errors.Is(err, io.EOF) {
			w.fail(start, "", "remove it", "there is something behind the document")
		}
	}
	return w.ws, w.out
}

type jsonKind uint8

const (
	jsonText jsonKind = iota
	jsonBool
	jsonPort
	jsonList   // of item
	jsonObject // with keys
	jsonMap    // free keys to item
	jsonAny
)

type jsonShape struct {
	kind     jsonKind
	item     *jsonShape
	keys     []jsonKey
	required []string
	one      string // exactly one of these two keys, "a b"
	enum     []string
	unique   bool
}

type jsonKey struct {
	name  string
	shape *jsonShape
}

func workspaceShape() *jsonShape {
	text, flag := &jsonShape{kind: jsonText}, &jsonShape{kind: jsonBool}
	list := func(item *jsonShape) *jsonShape { return &jsonShape{kind: jsonList, item: item} }
	texts, textMap := list(text), &jsonShape{kind: jsonMap, item: text}
	object := func(required []string, keys ...jsonKey) *jsonShape {
		return &jsonShape{kind: jsonObject, keys: keys, required: required}
	}
	environment := object([]string{"name"}, jsonKey{"name", text}, jsonKey{"value", text}, jsonKey{"secret", text})
	environment.one = "value secret"
	ports := list(&jsonShape{kind: jsonPort})
	ports.unique = true
	return object(nil,
		jsonKey{"features", &jsonShape{kind: jsonMap, item: &jsonShape{kind: jsonMap, item: &jsonShape{kind: jsonAny}}}},
		jsonKey{"skills", texts},
		jsonKey{"network", object(nil, jsonKey{"hosts", texts}, jsonKey{"mode", &jsonShape{kind: jsonText, enum: []string{"allow", "deny"}}})},
		jsonKey{"mounts", list(object([]string{"host", "target"}, jsonKey{"host", text}, jsonKey{"target", text}, jsonKey{"ro", flag}))},
		jsonKey{"environment", list(environment)},
		jsonKey{"mcp", object(nil,
			jsonKey{"servers", list(object([]string{"name", "url"}, jsonKey{"name", text}, jsonKey{"url", text}, jsonKey{"headers", textMap}))},
			jsonKey{"commands", list(object([]string{"name", "command"}, jsonKey{"name", text}, jsonKey{"command", text}, jsonKey{"args", texts}, jsonKey{"env", textMap}))})},
		jsonKey{"ports", ports},
		jsonKey{"secrets", texts})
}

type workspaceReader struct {
	file int
	data []byte
	dec  *json.Decoder
	ws   *Workspace
	out  findings
}

// start returns the offset of the next token.
func (w *workspaceReader) start() int {
	off := int(w.dec.InputOffset())
	for off < len(w.data) && strings.IndexByte(" \t\r\n,:", w.data[off]) >= 0 {
		off++
	}
	return off
}

func (w *workspaceReader) pos(off int) diag.Pos {
	before := w.data[:min(off, len(w.data))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return diag.NewPos(w.file, line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1)
}

func (w *workspaceReader) fail(off int, path, hint, format string, args ...any) bool {
	w.out.compose(codeWorkspace, w.pos(off), path, hint, format, args...)
	return false
}

// value reads one value; false means that the rest cannot be read.
func (w *workspaceReader) value(sh *jsonShape, path string) bool {
	off := w.start()
	tok, err := w.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it ends too early")
		}
		return w.fail(off, path, "", "the file is not valid JSON: %v", err)
	}
	word := func() string {
		switch t := tok.(type) {
		case json.Delim:
			if t == '{' {
				return "an object"
			}
			return "a list"
		case nil:
			return "null"
		case string:
			return strconv.Quote(clip(t))
		}
		return fmt.Sprint(tok)
	}
	wrong := func(want string) bool {
		w.fail(off, path, "", "%s is %s, %s is wanted", docWord(path), word(), want)
		return w.skip(tok)
	}
	switch sh.kind {
	case jsonAny:
		return w.skip(tok)
	case jsonText:
		s, ok := tok.(string)
		if !ok {
			return wrong("a text")
		}
		if sh.enum != nil && !slices.Contains(sh.enum, s) {
			return wrong(strings.Join(sh.enum, " or "))
		}
		switch {
		case strings.HasPrefix(path, "network.hosts["):
			w.ws.Hosts = append(w.ws.Hosts, Host{s, w.pos(off), path})
		case path == "network.mode":
			w.ws.Mode = s
		}
		return true
	case jsonBool:
		if _, ok := tok.(bool); !ok {
			return wrong("true or false")
		}
		return true
	case jsonPort:
		n, _ := tok.(json.Number)
		if v, err := strconv.Atoi(n.String()); err != nil || v < 1 || v > 65535 {
			return wrong("a port from 1 to 65535")
		}
		return true
	case jsonList:
		if tok != json.Delim('[') {
			return wrong("a list")
		}
		seen := map[string]bool{}
		for i := 0; w.dec.More(); i++ {
			at := w.start()
			if !w.value(sh.item, path+"["+strconv.Itoa(i)+"]") {
				return false
			}
			if text := string(w.data[at:w.dec.InputOffset()]); sh.unique && seen[text] {
				w.fail(at, path, "remove one", "%s is listed twice", text)
			} else {
				seen[text] = true
			}
		}
	default:
		if tok != json.Delim('{') {
			return wrong("an object")
		}
		if !w.object(sh, path, off) {
			return false
		}
	}
	off = w.start()
	if _, err := w.dec.Token(); err != nil {
		return w.fail(off, path, "", "the file is not valid JSON: %v", err)
	}
	return true
}

func (w *workspaceReader) object(sh *jsonShape, path string, off int) bool {
	seen := map[string]bool{}
	for w.dec.More() {
		at := w.start()
		tok, err := w.dec.Token()
		if err != nil {
			return w.fail(at, path, "", "the file is not valid JSON: %v", err)
		}
		name, _ := tok.(string)
		kp := join(path, name)
		if seen[name] {
			w.fail(at, kp, "keep one", "key %q is repeated", clip(name))
		}
		seen[name] = true
		shape := sh.item
		if sh.kind == jsonObject {
			i := slices.IndexFunc(sh.keys, func(k jsonKey) bool { return k.name == name })
			if i < 0 {
				var names []string
				for _, k := range sh.keys {
					names = append(names, k.name)
				}
				hint := "known keys: " + strings.Join(names, ", ")
				if near := diag.Nearest(name, names); near != "" {
					hint = "did you mean " + near + "?"
				}
				w.fail(at, kp, hint, "unknown key %q in %s", clip(name), docWord(path))
				shape = &jsonShape{kind: jsonAny}
			} else {
				shape = sh.keys[i].shape
			}
		}
		if !w.value(shape, kp) {
			return false
		}
	}
	for _, r := range sh.required {
		if !seen[r] {
			w.fail(off, path, "", "required key %q is missing in %s", r, docWord(path))
		}
	}
	if a, b, ok := strings.Cut(sh.one, " "); ok && seen[a] && seen[b] {
		w.fail(off, path, "keep one", "%s has both %s and %s", docWord(path), a, b)
	}
	return true
}

// skip reads over the rest of a value that began with tok.
func (w *workspaceReader) skip(tok json.Token) bool {
	depth := 0
	for {
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return true
		}
		off := w.start()
		var err error
		if tok, err = w.dec.Token(); err != nil {
			return w.fail(off, "", "", "the file is not valid JSON: %v", err)
		}
	}
}

func docWord(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}
