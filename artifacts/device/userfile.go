package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// userLimit is the largest file of a user that is read, in bytes.
const userLimit = 1 << 20

// maxNesting is how deep a file of a user may nest; the parsers recurse.
const maxNesting = 256

// Home is the home directory of a user.
type Home struct {
	// Dir is where it is, Name how it is shown: "~" or its path on the device.
	Dir, Name string
}

// unchecked says why a file could not be checked. It never has content of the file.
type unchecked struct{ reason string }

func (u *unchecked) Error() string { return u.reason }

// userDir is an open directory that a user controls.
type userDir struct {
	t    *tree
	name string
}

func openUser(dir, name string) (*userDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &userDir{&tree{root: root}, name}, nil
}

func (u *userDir) close() { u.t.close() }

// shown is how a file below the directory is named.
func (u *userDir) shown(rel string) string { return u.name + "/" + printable(rel) }

// printable keeps control characters in the names of files off the terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// match lists the files whose last element fits a pattern with "*", sorted; a pattern without one is itself.
func (u *userDir) match(pattern string) ([]string, error) {
	base := path.Base(pattern)
	if !strings.Contains(base, "*") {
		return []string{pattern}, nil
	}
	dir, err := u.t.dir(path.Dir(pattern), false)
	if err != nil {
		return nil, userError(err)
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, userError(err)
	}
	var out []string
	for _, e := range entries {
		if ok, _ := path.Match(base, e.Name()); ok {
			out = append(out, path.Join(path.Dir(pattern), e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

// read reads one file. The error is fs.ErrNotExist, or an *unchecked for everything that is not a readable text file of at most 1 MiB.
func (u *userDir) read(rel string) ([]byte, error) {
	dir, err := u.t.dir(path.Dir(rel), false)
	if err != nil {
		return nil, userError(err)
	}
	defer dir.Close()
	data, _, err := read(dir, path.Base(rel), userLimit)
	if err != nil {
		return nil, userError(err)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, &unchecked{"not text"}
	}
	return data, nil
}

func userError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		return &unchecked{"permission denied"}
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		kind, _, _ := strings.Cut(r.Reason, ",")
		return &unchecked{strings.TrimPrefix(r.Path, "/") + " is " + kind}
	}
	if b, ok := errors.AsType[*badFile](err); ok {
		return &unchecked{b.reason}
	}
	return &unchecked{"it cannot be read"}
}

// parse reads a settings file as nested maps, by the end of its name. Errors have no text of the file.
func parse(name string, data []byte) (map[string]any, error) {
	depth, deepest := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	if deepest > maxNesting {
		return nil, &unchecked{"nested too deeply"}
	}
	doc := map[string]any{}
	if strings.HasSuffix(name, ".toml") {
		if err := toml.Unmarshal(data, &doc); err != nil {
			return nil, &unchecked{"not valid TOML"}
		}
		return doc, nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return doc, nil
	}
	if err := json.Unmarshal(plainJSON(data), &doc); err != nil || doc == nil {
		return nil, &unchecked{"not a JSON object"}
	}
	return doc, nil
}

// plainJSON blanks comments and trailing commas, which some harnesses take.
func plainJSON(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			for end += i + 4; i < end; i++ {
				out[i] = ' '
			}
			i--
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// values returns what a document has at a path of keys; "*" stands for every key of a table. Keys of the user are not returned: they are content.
func values(doc any, keys ...string) []any {
	if len(keys) == 0 {
		return []any{doc}
	}
	table, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	if keys[0] != "*" {
		v, ok := table[keys[0]]
		if !ok {
			return nil
		}
		return values(v, keys[1:]...)
	}
	var out []any
	for _, k := range slices.Sorted(maps.Keys(table)) {
		out = append(out, values(table[k], keys[1:]...)...)
	}
	return out
}

// value returns the one value at a path, or nil.
func value(doc any, keys ...string) any {
	if vs := values(doc, keys...); len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// count is how many entries a value has: those of a list or table, 1 for a text or a truth.
func count(v any) int {
	switch v := v.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	case string:
		return min(len(v), 1)
	case nil:
		return 0
	}
	return 1
}
