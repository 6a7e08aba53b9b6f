package simple

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/policy"
)

// Change is a file that ejecting makes or changes.
type Change struct {
	// Name is relative to the repo, with slashes.
	Name string
	// Was is what the file holds now, nil when there is none.
	Was  []byte
	Data []byte
}

// Ejection is how a repo leaves simple mode. After every prefix of Changes, the repo means the same: the documents come first and lie over what the root keys make,
// which is equal to them; halos.yaml without the keys comes last.
type Ejection struct {
	Changes []Change
	// Notes are what the author should look at, each one sentence.
	Notes []string
}

// ErrNotSimple is the error for a repo whose halos.yaml has no key of simple mode.
var ErrNotSimple = errors.New("halos.yaml has no key of simple mode")

// home is the file of a document that simple mode makes.
func home(kind string) string {
	switch kind {
	case "Gateway":
		return "gateway.yaml"
	case "Profile":
		return "profiles/" + policy.SimpleName + ".yaml"
	}
	return "rings/rings.yaml"
}

// Eject writes the documents of simple mode out and takes its keys out of halos.yaml, without touching the disk. The repo must have been read from fsys without an
// error. What comes of it was read again and compared before Eject answers.
func Eject(ctx context.Context, fsys fs.FS, repo *policy.Repo) (*Ejection, error) {
	if repo.Root == nil || repo.Root.Simple == nil {
		return nil, ErrNotSimple
	}
	files, err := read(fsys, repo)
	if err != nil {
		return nil, err
	}
	// Documents lie over what is made, or are written to a file of their own.
	edits := map[string][]edit{}
	fresh := map[string][]*yaml.Node{}
	for _, h := range repo.Made {
		doc := node(repo, h, silent)
		if name := repo.Files.Name(h.Pos); name != policy.RootFile {
			edits[name] = append(edits[name], edit{h, doc})
		} else {
			fresh[home(h.Kind)] = append(fresh[home(h.Kind)], doc)
		}
	}
	out := &Ejection{}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		if err := free(fsys, name); err != nil {
			return nil, err
		}
		text, err := print(fresh[name]...)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		out.Changes = append(out.Changes, Change{Name: name, Data: append([]byte(made), text...)})
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		text, err := laid(files[name], edits[name])
		if err != nil {
			return nil, fmt.Errorf("change %s: %w", name, err)
		}
		if !bytes.Equal(text, files[name]) {
			out.Changes = append(out.Changes, Change{name, files[name], text})
		}
	}
	slices.SortFunc(out.Changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	root := files[policy.RootFile]
	text, err := without(root, policy.SimpleKeys())
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", policy.RootFile, err)
	}
	out.Changes = append(out.Changes, Change{policy.RootFile, root, text})
	if err := proven(ctx, fsys, repo, out.Changes); err != nil {
		return nil, err
	}
	out.Notes = notes(repo, fresh)
	return out, nil
}

// made begins a file of documents.
const made = "# What halos.yaml said in simple mode, written out by halo eject.\n"

func silent(string, diag.Pos) string { return "" }

// read reads the files that hold the root keys and what lies over them, as they were when the repo was loaded.
func read(fsys fs.FS, repo *policy.Repo) (map[string][]byte, error) {
	out := map[string][]byte{}
	names := []string{policy.RootFile}
	for _, h := range repo.Made {
		names = append(names, repo.Files.Name(h.Pos))
	}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, f := range repo.Files {
			if f.Name == name && f.Digest != sha256.Sum256(data) {
				return nil, fmt.Errorf("%s changed while halo read it; run halo again", name)
			}
		}
		out[name] = data
	}
	return out, nil
}

// free reports whether a file can be made: nothing is there, and the folders above it are folders that are read as policy.
func free(fsys fs.FS, name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch info, err := fs.Lstat(fsys, dir); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory, and %s would be written there", dir, name)
		}
	}
	switch _, err := fs.Lstat(fsys, name); {
	case err == nil:
		return fmt.Errorf("%s exists already; move it away, or put its documents into another file", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// edit is a document of the repo and what it comes to with what it lies over.
type edit struct {
	header *policy.Header
	whole  *yaml.Node
}

// laid returns the text of a file in which documents were made whole.
func laid(data []byte, edits []edit) ([]byte, error) {
	parts := documents(data)
	for _, e := range edits {
		line := e.header.Pos.Line()
		i := slices.IndexFunc(parts, func(p part) bool { return p.line <= line && line < p.line+p.lines() })
		if i < 0 {
			return nil, fmt.Errorf("there is no document at line %d", line)
		}
		text, err := parts[i].laid(e)
		if err != nil {
			return nil, err
		}
		parts[i].text = text
	}
	var out []byte
	for _, p := range parts {
		out = append(out, p.text...)
	}
	return out, nil
}

// part is a document of a file with the marker before it. The parts of a file are the file.
type part struct {
	text []byte
	// line is the first line, counted from 1.
	line int
}

func (p part) lines() int { return max(1, bytes.Count(p.text, []byte("\n"))) }

// documents cuts a file before every marker of a document.
func documents(data []byte) []part {
	out := []part{{line: 1}}
	n := 0
	for l := range bytes.Lines(data) {
		n++
		if marker(l, "---") && len(out[len(out)-1].text) > 0 {
			out = append(out, part{line: n})
		}
		last := &out[len(out)-1]
		last.text = append(last.text, l...)
	}
	return out
}

// marker reports whether a line is --- or ..., with or without more behind it.
func marker(line []byte, mark string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// laid returns the text of a part whose document was made whole. One that is whole stays as it is.
func (p part) laid(e edit) ([]byte, error) {
	var doc yaml.Node
	text := bytes.TrimPrefix(p.text, bom)
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("the document is not where it was")
	}
	if !graft(doc.Content[0], e.whole, e.header.Kind == "Gateway") {
		return p.text, nil
	}
	out, err := print(&doc)
	if err != nil {
		return nil, err
	}
	if marker(text, "---") {
		out = append([]byte("---\n"), out...)
	}
	return like(p.text, out), nil
}

var bom = []byte("\xef\xbb\xbf")

// like gives a text the byte order mark and the line ends of another one.
func like(old, text []byte) []byte {
	if bytes.Contains(old, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if bytes.HasPrefix(old, bom) {
		text = append(slices.Clone(bom), text...)
	}
	return text
}

// graft adds to a mapping what the whole one has besides, and reports whether there was anything. What the mapping has it keeps, for it lies over the rest: only its
// lists may grow. The aliases of a gateway are replaced as they are and never grow.
func graft(own, whole *yaml.Node, gateway bool) bool {
	changed := false
	for i := 0; i+1 < len(whole.Content); i += 2 {
		key, value := whole.Content[i], whole.Content[i+1]
		j := 0
		for j < len(own.Content) && own.Content[j].Value != key.Value {
			j += 2
		}
		if j >= len(own.Content) {
			own.Content = append(own.Content, key, value)
			own.Style &^= yaml.FlowStyle
			changed = true
			continue
		}
		mine := own.Content[j+1]
		switch {
		case mine.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			if gateway && key.Value == "models" {
				changed = aliases(mine, value) || changed
				break
			}
			if graft(mine, value, false) {
				own.Style &^= yaml.FlowStyle
				changed = true
			}
		case mine.Kind == yaml.SequenceNode && value.Kind == yaml.SequenceNode && len(value.Content) > len(mine.Content):
			mine.Content = united(mine.Content, value.Content)
			if slices.ContainsFunc(mine.Content, func(n *yaml.Node) bool { return n.HeadComment+n.LineComment+n.FootComment != "" }) {
				mine.Style &^= yaml.FlowStyle
			}
			changed = true
		case mine.Kind == yaml.ScalarNode && value.Kind == yaml.MappingNode:
			// A harness that was written as its version.
			value.HeadComment, value.LineComment, value.FootComment = mine.HeadComment, mine.LineComment, mine.FootComment
			own.Content[j+1] = value
			own.Style &^= yaml.FlowStyle
			changed = true
		}
	}
	return changed
}

// aliases adds the entries that a mapping does not have.
func aliases(own, whole *yaml.Node) bool {
	added := *whole
	added.Content = nil
	for i := 0; i+1 < len(whole.Content); i += 2 {
		has := false
		for j := 0; j+1 < len(own.Content); j += 2 {
			has = has || own.Content[j].Value == whole.Content[i].Value
		}
		if !has {
			added.Content = append(added.Content, whole.Content[i], whole.Content[i+1])
		}
	}
	return graft(own, &added, false)
}

// united is the whole list, with the entries of the author's own where they are equal, for their comments and quotes.
func united(own, whole []*yaml.Node) []*yaml.Node {
	out := slices.Clone(whole)
	for i, n := range out {
		if j := slices.IndexFunc(own, func(o *yaml.Node) bool { return o.Kind == yaml.ScalarNode && o.Value == n.Value }); j >= 0 {
			out[i] = own[j]
		}
	}
	return out
}

// without takes keys out of the root mapping of a file and leaves every other line as it is. Comments before a key stay; those in its value go with it.
func without(data []byte, keys []string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(bytes.TrimPrefix(data, bom), &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it does not hold one mapping")
	}
	root := doc.Content[0]
	if root.Style&yaml.FlowStyle != 0 {
		var kept []*yaml.Node
		for i := 0; i+1 < len(root.Content); i += 2 {
			if !slices.Contains(keys, root.Content[i].Value) {
				kept = append(kept, root.Content[i], root.Content[i+1])
			}
		}
		root.Content = kept
		out, err := print(&doc)
		return like(data, out), err
	}
	lines := slices.Collect(bytes.Lines(data))
	drop := make([]bool, len(lines))
	for i := 0; i+1 < len(root.Content); i += 2 {
		k := root.Content[i]
		if !slices.Contains(keys, k.Value) {
			continue
		}
		end := len(lines)
		if i+2 < len(root.Content) {
			end = root.Content[i+2].Line - 1
		}
		for l := k.Line; l < end; l++ {
			if marker(lines[l], "...") || marker(lines[l], "---") {
				end = l
			}
		}
		// What stands before the next key, and no deeper than a key, is about what follows.
		for end > k.Line && above(lines[end-1], k.Column-1) {
			end--
		}
		for l := k.Line - 1; l < end; l++ {
			drop[l] = true
		}
	}
	var out []byte
	blank, cut := true, false
	for i, l := range lines {
		if drop[i] {
			cut = true
			continue
		}
		is := len(bytes.TrimSpace(l)) == 0
		// Where something was cut out, the blank lines on both sides become one.
		if is && blank && cut {
			continue
		}
		blank, cut = is, cut && is
		out = append(out, l...)
	}
	return out, nil
}

// above reports whether a line is blank or a comment that is indented by no more than a number of blanks.
func above(line []byte, indent int) bool {
	text := bytes.TrimSpace(line)
	return len(text) == 0 || text[0] == '#' && bytes.IndexByte(line, '#') <= indent
}

// proven reads the repo with the changes and compares it with what it was.
func proven(ctx context.Context, fsys fs.FS, was *policy.Repo, changes []Change) error {
	over := newOverlay(fsys)
	for _, c := range changes {
		over.add(c.Name, c.Data)
	}
	var diags diag.List
	is := policy.Load(ctx, over, policy.Options{}, &diags)
	differs := func(what string) error {
		return fmt.Errorf("nothing was written: the repo would not mean the same without its root keys (%s)", what)
	}
	if diags.Errors() > 0 {
		d := diags.Sorted()[0]
		return differs(fmt.Sprintf("%s: %s", is.Files.Name(d.Pos), d.Message))
	}
	if is.Root.Simple != nil || len(is.Profiles) != len(was.Profiles) || len(is.Rings) != len(was.Rings) || is.Root.Org.V != was.Root.Org.V {
		return differs(policy.RootFile)
	}
	for _, h := range was.Made {
		a, err := print(node(was, h, silent))
		if err != nil {
			return err
		}
		if h.Kind == "Gateway" && is.Gateway == nil || h.Kind == "Profile" && is.Profile(h.Name.V) == nil || h.Kind == "Ring" && is.Ring(h.Name.V) == nil {
			return differs(h.ID())
		}
		b, err := print(node(is, h, silent))
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return differs(h.ID())
		}
	}
	a, b := digests(was), digests(is)
	if !slices.Equal(a, b) {
		return differs("the effective policies")
	}
	return nil
}

// digests identifies the targets of a repo with their policies.
func digests(repo *policy.Repo) []string {
	var out []string
	for _, t := range effective.NewResolver(repo).Targets() {
		d := t.Policy.Digest()
		out = append(out, t.ID+" "+string(d[:]))
	}
	return out
}

// notes says which acknowledgements lose sight of what they acknowledge.
func notes(repo *policy.Repo, fresh map[string][]*yaml.Node) []string {
	profile := home("Profile")
	if len(fresh[profile]) == 0 {
		return nil
	}
	var out []string
	for _, a := range repo.Root.Acknowledge {
		pattern, problem := fspath.ParseProtected(a.Path.V)
		if problem != nil {
			continue
		}
		if fspath.Matches(pattern, "/"+policy.RootFile, "/", "") && !fspath.Matches(pattern, "/"+profile, "/", "") {
			out = append(out, fmt.Sprintf("%s acknowledges %s at %s, and the profile is now in %s: change the path", policy.RootFile, a.Code.V, a.Path.V, profile))
		}
	}
	return out
}
