package adopt

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// memory is a file system of a few files, by path.
type memory map[string][]byte

// entry is a file or a folder of it.
type entry struct {
	name string
	data []byte
	dir  bool
}

func (e entry) Name() string               { return e.name[strings.LastIndexByte(e.name, '/')+1:] }
func (e entry) Size() int64                { return int64(len(e.data)) }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// opened is an open file.
type opened struct {
	entry
	*bytes.Reader
	all []fs.DirEntry
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.entry, nil }
func (o *opened) Close() error               { return nil }
func (o *opened) Size() int64                { return o.entry.Size() }

// ReadDir answers with what is left of a folder.
func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	out := o.all
	if n > 0 {
		if len(out) == 0 {
			return nil, io.EOF
		}
		out = out[:min(n, len(out))]
	}
	o.all = o.all[len(out):]
	return out, nil
}

func (m memory) find(op, name string) (entry, error) {
	if data, ok := m[name]; ok {
		return entry{name: name, data: data}, nil
	}
	for p := range m {
		if name == "." || strings.HasPrefix(p, name+"/") {
			return entry{name: name, dir: true}, nil
		}
	}
	return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Open opens a file or a folder.
func (m memory) Open(name string) (fs.File, error) {
	e, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	all, _ := m.ReadDir(name)
	return &opened{e, bytes.NewReader(e.data), all}, nil
}

// Lstat and Stat describe a file or a folder.
func (m memory) Lstat(name string) (fs.FileInfo, error) { return m.find("stat", name) }

// Stat is Lstat: there are no links.
func (m memory) Stat(name string) (fs.FileInfo, error) { return m.find("stat", name) }

// ReadDir lists a folder.
func (m memory) ReadDir(name string) ([]fs.DirEntry, error) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	made := map[string]fs.DirEntry{}
	for p, data := range m {
		rest, ok := strings.CutPrefix(p, prefix)
		if !ok || rest == "" {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		made[first] = entry{name: prefix + first, data: data, dir: deeper}
	}
	out := make([]fs.DirEntry, 0, len(made))
	for _, key := range slices.Sorted(maps.Keys(made)) {
		out = append(out, made[key])
	}
	return out, nil
}
