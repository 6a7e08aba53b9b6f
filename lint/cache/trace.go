package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Recorder is a file system that remembers everything that was seen through it: which files and directories were asked for and what the answer was. What it does
// not remember cannot be seen through it: there are no times, owners or link counts, and directories have no size.
type Recorder struct {
	fsys fs.FS
	mu   sync.Mutex
	seen map[string]observed
	// torn is set when one question had two answers, or none to its end: no state of the files is the one that was seen.
	torn bool
	open int
}

// observed is everything that was asked about one name; the zero value is nothing. Each answer begins with a byte that says of which kind it is.
type observed struct {
	stat, content, list string
}

// NewRecorder returns a recorder of fsys.
func NewRecorder(fsys fs.FS) *Recorder { return &Recorder{fsys: fsys, seen: map[string]observed{}} }

// Answers begin with one of these.
const (
	failed   = 'e' // the error
	metadata = 'm' // mode and size
	digest   = 'd' // the SHA-256 of what was read or listed
)

func (r *Recorder) note(name string, field func(*observed) *string, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.seen[name]
	f := field(&o)
	if *f != "" && *f != answer {
		r.torn = true
	}
	*f = answer
	r.seen[name] = o
}

func statOf(o *observed) *string    { return &o.stat }
func contentOf(o *observed) *string { return &o.content }
func listOf(o *observed) *string    { return &o.list }

// errorAnswer is the text of an error without the path, which is the question, and without where the repo lies.
func errorAnswer(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return string(failed) + err.Error()
}

// statAnswer is what a FileInfo tells.
func statAnswer(info fs.FileInfo, err error) string {
	if err != nil {
		return errorAnswer(err)
	}
	b := binary.AppendUvarint([]byte{metadata}, uint64(info.Mode()))
	return string(binary.AppendUvarint(b, uint64(size(info))))
}

func size(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}

// listAnswer is what the entries of a directory tell without a look at each.
func listAnswer(entries []fs.DirEntry, err error) string {
	h := sha256.New()
	var b []byte
	for _, e := range entries {
		b = append(appendText(b[:0], e.Name()), byte(e.Type()>>24), byte(e.Type()>>16), byte(e.Type()>>8))
		h.Write(b)
	}
	if err != nil {
		io.WriteString(h, errorAnswer(err))
	}
	return string(h.Sum([]byte{digest}))
}

func contentAnswer(sum []byte) string { return string(digest) + string(sum) }

// Open opens a file. What is read of it is remembered when it is closed.
func (r *Recorder) Open(name string) (fs.File, error) {
	f, err := r.fsys.Open(name)
	if err != nil {
		r.note(name, contentOf, errorAnswer(err))
		return nil, err
	}
	r.mu.Lock()
	r.open++
	r.mu.Unlock()
	return &file{f: f, r: r, name: name, sum: sha256.New()}, nil
}

// Lstat describes a file without following a link.
func (r *Recorder) Lstat(name string) (fs.FileInfo, error) {
	info, err := fs.Lstat(r.fsys, name)
	return r.info(name, info, err)
}

// Stat is Lstat: in a policy repo a link stands for nothing else.
func (r *Recorder) Stat(name string) (fs.FileInfo, error) { return r.Lstat(name) }

// ReadLink is not supported: no link is followed.
func (r *Recorder) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

// ReadDir lists a directory in order of names.
func (r *Recorder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.fsys, name)
	r.note(name, listOf, listAnswer(entries, err))
	for i, e := range entries {
		entries[i] = entry{e, r, path.Join(name, e.Name())}
	}
	return entries, err
}

func (r *Recorder) info(name string, info fs.FileInfo, err error) (fs.FileInfo, error) {
	r.note(name, statOf, statAnswer(info, err))
	if err != nil {
		return nil, err
	}
	return fileInfo{path.Base(name), info.Mode(), size(info)}, nil
}

// fileInfo is what a recorder remembers of a file.
type fileInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

type entry struct {
	e    fs.DirEntry
	r    *Recorder
	name string
}

func (e entry) Name() string      { return e.e.Name() }
func (e entry) IsDir() bool       { return e.e.IsDir() }
func (e entry) Type() fs.FileMode { return e.e.Type() }
func (e entry) Info() (fs.FileInfo, error) {
	info, err := e.e.Info()
	return e.r.info(e.name, info, err)
}

// file remembers what was read of a file. A file that was read only in part is remembered as if that part were all: it is then never found unchanged.
type file struct {
	f    fs.File
	r    *Recorder
	name string
	sum  hash.Hash
	bad  bool
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	f.sum.Write(p[:n])
	f.bad = f.bad || err != nil && err != io.EOF
	return n, err
}

func (f *file) Stat() (fs.FileInfo, error) {
	info, err := f.f.Stat()
	return f.r.info(f.name, info, err)
}

func (f *file) Close() error {
	f.r.note(f.name, contentOf, contentAnswer(f.sum.Sum(nil)))
	f.r.mu.Lock()
	f.r.open--
	f.r.torn = f.r.torn || f.bad
	f.r.mu.Unlock()
	return f.f.Close()
}

// Trace returns everything that was seen, in a form that Unchanged compares with; ok is false when it was no single state of the files.
func (r *Recorder) Trace() (trace []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	trace = binary.AppendUvarint(nil, uint64(len(r.seen)))
	for _, name := range slices.Sorted(maps.Keys(r.seen)) {
		o := r.seen[name]
		for _, s := range []string{name, o.stat, o.content, o.list} {
			trace = appendText(trace, s)
		}
	}
	return trace, !r.torn && r.open == 0
}

// Unchanged reports whether every question of a trace has the same answer from fsys.
func Unchanged(ctx context.Context, fsys fs.FS, trace []byte, workers int) bool {
	d := decoder{data: trace}
	type question struct {
		name string
		want observed
	}
	questions := make([]question, d.count())
	for i := range questions {
		questions[i] = question{d.text(), observed{d.text(), d.text(), d.text()}}
	}
	if !d.done() {
		return false
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	var changed atomic.Bool
	for range min(workers, len(questions)) {
		wg.Go(func() {
			var buf bytes.Buffer
			for !changed.Load() && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				if q := &questions[i]; !same(fsys, q.name, &q.want, &buf) {
					changed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return !changed.Load() && ctx.Err() == nil
}

// same asks one name what was asked before. Only regular files are opened: to open a pipe could take forever.
func same(fsys fs.FS, name string, want *observed, buf *bytes.Buffer) bool {
	if want.list != "" {
		if entries, err := fs.ReadDir(fsys, name); listAnswer(entries, err) != want.list {
			return false
		}
	}
	if want.stat == "" && want.content == "" {
		return true
	}
	info, err := fs.Lstat(fsys, name)
	if want.stat != "" && statAnswer(info, err) != want.stat {
		return false
	}
	if want.content == "" {
		return true
	}
	if err == nil && !info.Mode().IsRegular() {
		return false
	}
	f, err := fsys.Open(name)
	if err != nil {
		return errorAnswer(err) == want.content
	}
	defer f.Close()
	buf.Reset()
	if _, err := buf.ReadFrom(f); err != nil {
		return false
	}
	sum := sha256.Sum256(buf.Bytes())
	return contentAnswer(sum[:]) == want.content
}
