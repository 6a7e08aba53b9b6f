package simple

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// overlay is a file system with some files laid over it, in memory.
type overlay struct {
	fs.FS
	files map[string][]byte
	// dirs has the names that are added to each directory.
	dirs map[string][]memory
}

func newOverlay(base fs.FS) *overlay {
	return &overlay{base, map[string][]byte{}, map[string][]memory{}}
}

func (o *overlay) add(name string, data []byte) {
	o.files[name] = data
	m := memory{name: path.Base(name), size: int64(len(data))}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if !slices.ContainsFunc(o.dirs[dir], func(x memory) bool { return x.name == m.name }) {
			o.dirs[dir] = append(o.dirs[dir], m)
		}
		if dir == "." {
			return
		}
		m = memory{name: path.Base(dir), dir: true}
	}
}

// Open opens a file; directories are listed by ReadDir alone.
func (o *overlay) Open(name string) (fs.File, error) {
	if data, ok := o.files[name]; ok {
		return &memoryFile{memory{name: path.Base(name), size: int64(len(data))}, bytes.NewReader(data)}, nil
	}
	return o.FS.Open(name)
}

// ReadDir lists a directory, sorted by name.
func (o *overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	added := o.dirs[name]
	entries, err := fs.ReadDir(o.FS, name)
	if err != nil && len(added) == 0 {
		return entries, err
	}
	for _, m := range added {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == m.name && !m.dir })
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == m.name }) {
			entries = append(entries, fs.FileInfoToDirEntry(m))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Lstat describes a file without following a link.
func (o *overlay) Lstat(name string) (fs.FileInfo, error) {
	if data, ok := o.files[name]; ok {
		return memory{name: path.Base(name), size: int64(len(data))}, nil
	}
	info, err := fs.Lstat(o.FS, name)
	if err != nil && len(o.dirs[name]) > 0 {
		return memory{name: path.Base(name), dir: true}, nil
	}
	return info, err
}

// Stat is Lstat.
func (o *overlay) Stat(name string) (fs.FileInfo, error) { return o.Lstat(name) }

// ReadLink is that of the file system below.
func (o *overlay) ReadLink(name string) (string, error) { return fs.ReadLink(o.FS, name) }

// memory describes a file or a directory in memory.
type memory struct {
	name string
	size int64
	dir  bool
}

func (m memory) Name() string       { return m.name }
func (m memory) Size() int64        { return m.size }
func (m memory) ModTime() time.Time { return time.Time{} }
func (m memory) IsDir() bool        { return m.dir }
func (m memory) Sys() any           { return nil }
func (m memory) Mode() fs.FileMode {
	if m.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type memoryFile struct {
	memory
	*bytes.Reader
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.memory, nil }
func (f *memoryFile) Size() int64                { return f.memory.Size() }
func (f *memoryFile) Close() error               { return nil }
