package diff

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"halos.dev/halo/artifacts"
)

// Range splits A..B, which stands for the two revisions, and A...B, which stands for where B left A, and B. An empty side is HEAD.
func Range(arg string) (from, to string, mergeBase, ok bool) {
	from, to, ok = strings.Cut(arg, "...")
	if ok {
		mergeBase = true
	} else if from, to, ok = strings.Cut(arg, ".."); !ok {
		return "", "", false, false
	}
	if from == "" {
		from = "HEAD"
	}
	if to == "" {
		to = "HEAD"
	}
	return from, to, mergeBase, !strings.Contains(from+" "+to, "..")
}

// MergeBase returns the commit where two revisions parted.
func MergeBase(ctx context.Context, dir, a, b string) (string, error) {
	one, err := commit(ctx, dir, a)
	if err != nil {
		return "", err
	}
	other, err := commit(ctx, dir, b)
	if err != nil {
		return "", err
	}
	out, err := git(ctx, dir, "merge-base", one, other)
	if err != nil {
		return "", fmt.Errorf("%s and %s have no commit in common, or the clone is too shallow to have it: %w", a, b, err)
	}
	return strings.TrimSpace(out), nil
}

// Tree is the directory of a policy repo as a revision has it. It reads objects, as they were committed, and never the work tree: no filter, attribute or line
// ending conversion applies, and no hook runs.
type Tree struct {
	// Commit is the full name of the commit.
	Commit string
	dir    string
	nodes  map[string]*node

	mu  sync.Mutex
	cat *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	// stop ends the reading process with the context that opened the tree.
	ctx context.Context
}

// node is a file or directory of a tree.
type node struct {
	name     string
	object   string
	size     int64
	mode     fs.FileMode
	children []fs.DirEntry
}

// OpenTree opens the directory dir as revision rev has it. Close ends the process that reads its files.
func OpenTree(ctx context.Context, dir, rev string) (*Tree, error) {
	id, err := commit(ctx, dir, rev)
	if err != nil {
		return nil, err
	}
	prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	prefix = strings.TrimSuffix(strings.TrimSuffix(prefix, "\n"), "/")
	list, err := git(ctx, dir, "ls-tree", "-r", "-l", "-z", "--full-tree", id+":"+prefix)
	if err != nil {
		return nil, fmt.Errorf("revision %s has no directory %s", rev, prefix)
	}
	t := &Tree{Commit: id, dir: dir, ctx: ctx, nodes: map[string]*node{".": {name: ".", mode: fs.ModeDir | 0o755}}}
	for entry := range strings.SplitSeq(list, "\x00") {
		if entry == "" {
			continue
		}
		head, name, ok := strings.Cut(entry, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			return nil, fmt.Errorf("git ls-tree answered %q", entry)
		}
		n := &node{name: path.Base(name), object: f[2], mode: 0o644}
		switch f[0] {
		case "120000":
			n.mode |= fs.ModeSymlink
		case "160000":
			return nil, fmt.Errorf("revision %s has a submodule at %s, whose files it does not hold; check both revisions out and compare the directories", rev, name)
		}
		if n.size, err = strconv.ParseInt(f[3], 10, 64); err != nil {
			return nil, fmt.Errorf("git ls-tree answered %q", entry)
		}
		t.add(name, n)
	}
	for _, n := range t.nodes {
		slices.SortFunc(n.children, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return t, nil
}

func (t *Tree) add(name string, n *node) {
	for t.nodes[name] == nil {
		t.nodes[name] = n
		parent := path.Dir(name)
		if p := t.nodes[parent]; p != nil {
			p.children = append(p.children, fs.FileInfoToDirEntry(info{n}))
			return
		}
		dir := &node{name: path.Base(parent), mode: fs.ModeDir | 0o755, children: []fs.DirEntry{fs.FileInfoToDirEntry(info{n})}}
		name, n = parent, dir
	}
}

// commit returns the full name of the commit that rev names.
func commit(ctx context.Context, dir, rev string) (string, error) {
	out, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	var failed *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimSpace(out), nil
	case errors.As(err, &failed) && strings.Contains(err.Error(), "fatal"):
		return "", err
	case errors.As(err, &failed):
		return "", fmt.Errorf("%s is neither a directory nor a revision of the repository in %s; a shallow clone lacks older revisions", rev, dir)
	}
	return "", err
}

// git runs git and joins what it complains about to the error.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := artifacts.GitCommand(ctx, dir, args...).Output()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && len(failed.Stderr) > 0:
		line, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n")
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, line)
	case err != nil:
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

// Close ends the process that reads files.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cat == nil {
		return nil
	}
	err := errors.Join(t.in.Close(), t.cat.Wait())
	t.cat = nil
	return err
}

// blob reads an object.
func (t *Tree) blob(n *node) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cat == nil {
		cmd := artifacts.GitCommand(t.ctx, t.dir, "cat-file", "--batch")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		t.cat, t.in, t.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	}
	if _, err := io.WriteString(t.in, n.object+"\n"); err != nil {
		return nil, err
	}
	head, err := t.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if f := strings.Fields(head); len(f) != 3 || f[1] != "blob" || f[2] != strconv.FormatInt(n.size, 10) {
		return nil, fmt.Errorf("git cat-file answered %q", strings.TrimSpace(head))
	}
	data := make([]byte, n.size+1)
	if _, err := io.ReadFull(t.out, data); err != nil {
		return nil, err
	}
	return data[:n.size], nil
}

func (t *Tree) node(op, name string) (*node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if n := t.nodes[name]; n != nil {
		return n, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Open opens a file or directory. A link is not followed.
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.node("open", name)
	switch {
	case err != nil:
		return nil, err
	case n.mode.IsDir():
		return &openDir{node: n}, nil
	case n.mode&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("a symbolic link is not followed")}
	}
	return &openFile{tree: t, node: n}, nil
}

// Lstat describes a file without following a link.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.node("lstat", name)
	if err != nil {
		return nil, err
	}
	return info{n}, nil
}

// Stat is Lstat: in a policy repo a link stands for nothing else.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.Lstat(name) }

// ReadLink is not supported: no link is followed.
func (t *Tree) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

// ReadDir lists a directory in order of names.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.node("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return slices.Clone(n.children), nil
}

// info describes a node.
type info struct{ n *node }

func (i info) Name() string       { return i.n.name }
func (i info) Size() int64        { return i.n.size }
func (i info) Mode() fs.FileMode  { return i.n.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.n.mode.IsDir() }
func (i info) Sys() any           { return nil }

// openFile is an open file, whose bytes are fetched when they are first read.
type openFile struct {
	tree *Tree
	node *node
	data *bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return info{f.node}, nil }
func (f *openFile) Close() error               { return nil }

func (f *openFile) Read(p []byte) (int, error) {
	if f.data == nil {
		data, err := f.tree.blob(f.node)
		if err != nil {
			return 0, err
		}
		f.data = bytes.NewReader(data)
	}
	return f.data.Read(p)
}

// openDir is an open directory.
type openDir struct {
	node *node
	read int
}

func (d *openDir) Stat() (fs.FileInfo, error) { return info{d.node}, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.node.name, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	rest := d.node.children[d.read:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.read += len(rest)
	return slices.Clone(rest), nil
}
