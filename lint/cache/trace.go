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

	"halos.dev/halo/compiler/tape"
)

// A Recorder is a file system that remembers everything that was seen through it: which files and directories were asked for and what the answer was. What it does
// not remember cannot be seen through it: there are no times, owners or link counts, and directories have no size. It is also a memory (compiler.Memory): it gives the
// run what an earlier one made, and keeps what this one makes.
type Recorder struct {
	fsys fs.FS
	// known has the answers that Look found to be what they were, and earlier what the run of then made.
	known   map[string]*answers
	earlier parts
	mu      sync.Mutex
	seen    map[string]observed
	made    parts
	// torn is set when one question had two answers, or none to its end: no state of the files is the one that was seen.
	torn bool
	open int
}

// answers are what Look saw of one name, where it is what an earlier run saw.
type answers struct {
	stat    fs.FileInfo
	list    []fs.DirEntry
	content string
}

// observed is everything that was asked about one name; the zero value is nothing. Each answer begins with a byte that says of which kind it is.
type observed struct {
	stat, content, list string
}

func (o *observed) tape(t *tape.Tape, name *string) {
	for _, s := range []*string{name, &o.stat, &o.content, &o.list} {
		t.Str(s)
	}
}

// NewRecorder returns a recorder of fsys.
func NewRecorder(fsys fs.FS) *Recorder {
	return &Recorder{fsys: fsys, seen: map[string]observed{}, made: newParts()}
}

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
		// No name has a NUL.
		b = append(append(b[:0], e.Name()...), 0, byte(e.Type()>>24), byte(e.Type()>>16), byte(e.Type()>>8))
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
	if k := r.known[name]; k != nil && k.stat != nil {
		return r.info(name, k.stat, nil)
	}
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
	var entries []fs.DirEntry
	var err error
	if k := r.known[name]; k != nil && k.list != nil {
		entries = slices.Clone(k.list)
	} else {
		entries, err = fs.ReadDir(r.fsys, name)
	}
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
	if k := e.r.known[e.name]; k != nil && k.stat != nil {
		return e.r.info(e.name, k.stat, nil)
	}
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

// Trace returns everything that was seen, in a form that Look asks again; ok is false when it was no single state of the files.
func (r *Recorder) Trace() (trace string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.seen))
	t := tape.Writer(make([]byte, 0, 128*len(names)))
	tape.Each(t, &names, func(name *string) {
		o := r.seen[*name]
		o.tape(t, name)
	})
	text, _ := t.Text()
	return string(text), !r.torn && r.open == 0
}

// Look asks everything that a trace has the answers of, and reports whether every answer is the same. Those that are need not be asked again: the run that is recorded
// then gets them from here, and what the earlier run made of the files. It comes before anything is recorded.
func (r *Recorder) Look(ctx context.Context, trace string, workers int) (unchanged bool) {
	type question struct {
		name string
		want observed
		got  answers
		same bool
	}
	var questions []question
	t := tape.Reader(trace)
	tape.Each(t, &questions, func(q *question) { q.want.tape(t, &q.name) })
	if !t.Done() {
		return false
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(workers, len(questions)) {
		wg.Go(func() {
			var buf bytes.Buffer
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				q := &questions[i]
				q.same = q.got.ask(r.fsys, q.name, &q.want, &buf)
			}
		})
	}
	wg.Wait()
	r.known = make(map[string]*answers, len(questions))
	r.seen = make(map[string]observed, len(questions))
	unchanged = ctx.Err() == nil
	for i := range questions {
		r.known[questions[i].name] = &questions[i].got
		unchanged = unchanged && questions[i].same
	}
	return unchanged
}

// After looks at everything that an earlier run saw, and reports whether it is all the same. The run that is recorded next is spared what that one made.
func (r *Recorder) After(ctx context.Context, earlier *Recorder) (unchanged bool) {
	trace, ok := earlier.Trace()
	if !ok {
		return false
	}
	unchanged = r.Look(ctx, trace, 0)
	r.follow(earlier.parts())
	return unchanged
}

// ask asks one name what was asked before, keeps the answers that are the same, and reports whether all are. Only regular files are opened: to open a pipe could take
// forever.
func (a *answers) ask(fsys fs.FS, name string, want *observed, buf *bytes.Buffer) (same bool) {
	same = true
	if want.list != "" {
		if entries, err := fs.ReadDir(fsys, name); listAnswer(entries, err) != want.list {
			same = false
		} else if err == nil {
			a.list = entries
		}
	}
	if want.stat == "" && want.content == "" {
		return same
	}
	info, err := fs.Lstat(fsys, name)
	if want.stat != "" {
		if statAnswer(info, err) != want.stat {
			same = false
		} else if err == nil {
			a.stat = info
		}
	}
	if want.content == "" {
		return same
	}
	if err == nil && !info.Mode().IsRegular() {
		return false
	}
	f, err := fsys.Open(name)
	if err != nil {
		return same && errorAnswer(err) == want.content
	}
	defer f.Close()
	buf.Reset()
	if _, err := buf.ReadFrom(f); err != nil {
		return false
	}
	sum := sha256.Sum256(buf.Bytes())
	if contentAnswer(sum[:]) != want.content {
		return false
	}
	a.content = want.content
	return same
}
