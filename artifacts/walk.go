package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"strings"
)

// missing is the message about a file that is not there.
const missing = "missing"

// directory is an open directory of a release. Names are single path elements.
type directory interface {
	// list appends what is in the directory, in any order. It may use buf.
	list(entries []entry, buf []byte) ([]entry, error)
	enter(name string) (directory, error)
	// open opens a file without following a link.
	open(name string) (file, error)
	close()
}

type entry struct {
	name string
	mode fs.FileMode // type bits only
}

type file interface {
	io.ReadCloser
	stat() (mode fs.FileMode, size int64, err error)
}

// walker compares a directory tree with the files of a manifest in one pass. All files below a directory are neighbours in the sorted
// list, so a directory is a range of it and nothing has to be built to look names up.
type walker struct {
	ctx   context.Context
	files []File
	hash  bool // compare sizes and digests too
	seen  []bool

	entries  []entry // a stack: those of the directories on the way down
	problems []Problem
	unread   []error
	buf      []byte // for what is read next
	// later takes a directory that another walker is to enter; nil when this one enters it.
	later func(subtree)
}

// subtree is a directory that is still to be entered: its path with a final "/" (or "") and the range of files below it.
type subtree struct {
	parent     directory
	name, path string
	lo, hi     int
}

// walk compares fsys with the manifest: the names, and with hash sizes and digests too. It returns what is wrong, sorted by path, and
// what could not be read.
func walk(ctx context.Context, fsys fs.FS, m *Manifest, hash bool) (problems []Problem, unread error) {
	root, err := openRoot(fsys)
	if err != nil {
		return nil, err
	}
	defer root.close()
	seen := make([]bool, len(m.Files))
	newWalker := func() *walker {
		return &walker{ctx: ctx, files: m.Files, hash: hash, seen: seen, buf: make([]byte, 64<<10)}
	}
	// The top two levels first: what is below them (targets/RING) is shared among the workers.
	top := newWalker()
	var queue []subtree
	var kept []directory
	top.later = func(t subtree) {
		if strings.Count(t.path, "/") < 2 {
			d, err := t.parent.enter(t.name)
			if err != nil {
				top.unreadable(strings.TrimSuffix(t.path, "/"), err)
				top.mark(t.lo, t.hi)
				return
			}
			kept = append(kept, d)
			top.directory(d, t.path, t.lo, t.hi)
			return
		}
		queue = append(queue, t)
	}
	top.directory(root, "", 0, len(m.Files))
	all := []*walker{top}
	for range workers {
		all = append(all, newWalker())
	}
	each(len(queue), 4, func(w, i int) { all[1+w].subtree(queue[i]) })
	for _, d := range kept {
		d.close()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, w := range all {
		problems = append(problems, w.problems...)
		unread = errors.Join(unread, errors.Join(w.unread...))
	}
	for i, ok := range seen {
		if !ok {
			problems = append(problems, Problem{m.Files[i].Path, missing})
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems, unread
}

func (w *walker) problem(path, format string, args ...any) {
	w.problems = append(w.problems, Problem{path, fmt.Sprintf(format, args...)})
}

// unreadable keeps the first error only: a disk that fails would fill the screen.
func (w *walker) unreadable(path string, err error) {
	if len(w.unread) > 0 {
		return
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	w.unread = append(w.unread, fmt.Errorf("%s: %w", cmp.Or(path, "."), err))
}

func (w *walker) subtree(t subtree) {
	d, err := t.parent.enter(t.name)
	if err != nil {
		w.unreadable(strings.TrimSuffix(t.path, "/"), err)
		w.mark(t.lo, t.hi)
		return
	}
	w.directory(d, t.path, t.lo, t.hi)
	d.close()
}

// mark takes files for seen that cannot be looked at, so that they are not called missing.
func (w *walker) mark(lo, hi int) {
	for i := range w.seen[lo:hi] {
		w.seen[lo+i] = true
	}
}

// directory compares the directory d at path ("" or with a final "/") with files[lo:hi], which are those below it.
func (w *walker) directory(d directory, path string, lo, hi int) {
	if err := w.ctx.Err(); err != nil {
		w.unread = append(w.unread, err)
		w.mark(lo, hi)
		return
	}
	base := len(w.entries)
	var err error
	if w.entries, err = d.list(w.entries, w.buf); err != nil {
		w.unreadable(strings.TrimSuffix(path, "/"), err)
		w.mark(lo, hi)
		return
	}
	for k := base; k < len(w.entries); k++ {
		e := w.entries[k]
		i := w.search(lo, hi, len(path), e.name, 0)
		listed := i < hi && w.files[i].Path[len(path):] == e.name
		from := w.search(i, hi, len(path), e.name, '/')
		to := w.search(from, hi, len(path), e.name, '/'+1)
		signature := path == "" && (e.name == ManifestName || isSignatureName(e.name))
		switch {
		case e.mode.IsDir() && from < to:
			below := w.files[from].Path[:len(path)+len(e.name)+1]
			t := subtree{d, e.name, below, from, to}
			if w.later != nil {
				w.later(t)
			} else {
				w.subtree(t)
			}
		case e.mode.IsRegular() && listed:
			w.seen[i] = true
			if w.hash {
				w.file(d, e.name, w.files[i])
			}
		case e.mode.IsRegular() && signature:
		case listed:
			w.seen[i] = true
			w.problem(path+e.name, "%s where the release has a file", Describe(e.mode))
		case from < to:
			w.problem(path+e.name, "%s where the release has a directory", Describe(e.mode))
		case signature:
			w.problem(path+e.name, "%s where the release has a file", Describe(e.mode))
		default:
			w.problem(path+e.name, "%s that is not in the manifest", Describe(e.mode))
		}
	}
	w.entries = w.entries[:base]
}

// search returns the first i in lo..hi whose path behind the first skip bytes is not below name and, unless it is 0, the byte next.
func (w *walker) search(lo, hi, skip int, name string, next byte) int {
	return lo + sort.Search(hi-lo, func(i int) bool {
		rest := w.files[lo+i].Path[skip:]
		if len(rest) <= len(name) {
			c := strings.Compare(rest, name)
			return c > 0 || c == 0 && next == 0
		}
		c := strings.Compare(rest[:len(name)], name)
		return c > 0 || c == 0 && rest[len(name)] >= next
	})
}

func (w *walker) file(d directory, name string, want File) {
	problem, err := check(d, name, want, w.buf)
	switch {
	case err != nil:
		w.unreadable(want.Path, err)
	case problem != "":
		w.problem(want.Path, "%s", problem)
	}
}

// check compares one file with its entry. It returns what is wrong with it, or an error when it cannot be read.
func check(d directory, name string, want File, buf []byte) (problem string, err error) {
	f, err := d.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return missing, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	mode, size, err := f.stat()
	if err != nil {
		return "", err
	}
	if !mode.IsRegular() {
		return Describe(mode.Type()) + " where the release has a file", nil
	}
	if size != want.Size {
		return fmt.Sprintf("%d bytes, not %d", size, want.Size), nil
	}
	var sum [sha256.Size]byte
	var n int64
	if size < int64(len(buf)) {
		// One byte more than expected shows a file that grows.
		var got int
		got, err = io.ReadAtLeast(f, buf[:size+1], int(max(size, 1)))
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		n, sum = int64(got), sha256.Sum256(buf[:got])
	} else {
		h := sha256.New()
		n, err = io.CopyBuffer(h, struct{ io.Reader }{io.LimitReader(f, size+1)}, buf)
		copy(sum[:], h.Sum(nil))
	}
	if err != nil {
		return "", err
	}
	if n != size {
		return "size changes while it is read", nil
	}
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	if string(text[:]) != want.SHA256 {
		return fmt.Sprintf("content changed (sha256 %x, not %s)", sum, want.SHA256), nil
	}
	return "", nil
}
