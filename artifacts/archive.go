package artifacts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits of an archive. They bound what reading one costs before its signature is checked.
const (
	// MaxArchiveSize is the largest archive that is read or written, in bytes.
	MaxArchiveSize = 4 << 30
	// MaxArchiveFile is the largest file in an archive, in bytes. The manifest may be this large, so no other file is larger.
	MaxArchiveFile = MaxManifestSize

	maxArchiveFiles = 1 << 17
	maxArchiveNodes = 1 << 20  // files and the directories that they imply
	maxArchiveNames = 16 << 20 // bytes in all paths together
	maxArchiveDepth = 32       // elements of a path
)

// FS is an opened release: a directory or an archive.
type FS interface {
	fs.FS
	io.Closer
}

// Open opens the release at path, which is a directory or an archive that WriteArchive made. A *VerifyError says that a file is not such an archive; nothing
// in the release was verified.
func Open(path string) (FS, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read release: %w", err)
	case info.IsDir():
		return dirFS(path), nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read release: %s: %s, neither a directory nor an archive", path, Describe(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read release: %w", err)
	}
	a, err := ReadArchive(f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	a.file = f
	return a, nil
}

// Archive is a release in a tar archive, read in place. It is an fs.FS.
//
// There is exactly one archive for a release: manifest.json first, then every other file in byte order of its path, regular files alone, each with a
// ustar header whose fields are constants but for name and size (mode 0644, owner 0, time 0), a PAX header with the path alone before a file that
// ustar cannot name, zeros up to the next block, and two blocks of zeros at the end. Every byte counts: a reader makes each header again and compares.
type Archive struct {
	r     io.ReaderAt
	files []member // sorted by path
	file  *os.File
}

// member is one file: where its bytes are, or the bytes themselves.
type member struct {
	path   string
	offset int64
	size   int64
	data   []byte
}

// Offsets in a block and in a ustar header (POSIX.1-2017, pax).
const (
	blockSize  = 512
	nameSize   = 100
	sizeAt     = 124
	sumAt      = 148
	typeAt     = 156
	magicAt    = 257
	prefixAt   = 345
	prefixSize = 155
)

// paxName is the name in the headers of a file whose real name is in the PAX header.
const paxName = "path-in-pax-header"

// tarHeader returns the blocks before the bytes of a file.
func tarHeader(path string, size int64) []byte {
	prefix, name, ok := splitName(path)
	if ok {
		return ustar(prefix, name, size, '0')
	}
	record := paxRecord(path)
	h := ustar("", paxName, int64(len(record)), 'x')
	h = append(h, record...)
	h = append(h, make([]byte, padding(int64(len(record))))...)
	return append(h, ustar("", paxName, size, '0')...)
}

// splitName cuts path into the two fields of ustar, at the last slash that leaves a prefix of 155 bytes. It is false for a path that does not fit and for
// one that is not ASCII, for which ustar names no encoding.
func splitName(path string) (prefix, name string, ok bool) {
	if strings.IndexFunc(path, func(r rune) bool { return r >= 0x80 }) >= 0 {
		return "", "", false
	}
	if len(path) <= nameSize {
		return "", path, true
	}
	i := strings.LastIndexByte(path[:min(len(path), prefixSize+1)], '/')
	if i <= 0 || len(path)-i-1 > nameSize {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// paxRecord returns the record "LENGTH path=PATH\n", whose length counts itself.
func paxRecord(path string) string {
	rest := " path=" + path + "\n"
	n := len(rest) + 1
	for len(fmt.Sprint(n)) != n-len(rest) {
		n++
	}
	return fmt.Sprint(n) + rest
}

// ustar returns one header block.
func ustar(prefix, name string, size int64, kind byte) []byte {
	h := make([]byte, blockSize)
	copy(h, name)
	copy(h[nameSize:], "0000644\x000000000\x000000000\x00")
	copy(h[sizeAt:], fmt.Sprintf("%011o\x00%011o\x00", size, 0))
	copy(h[sumAt:], "        ")
	h[typeAt] = kind
	copy(h[magicAt:], "ustar\x0000")
	copy(h[prefixAt-16:], "0000000\x000000000\x00")
	copy(h[prefixAt:], prefix)
	copy(h[sumAt:], fmt.Sprintf("%06o\x00 ", checksum(h)))
	return h
}

func checksum(block []byte) int {
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	return sum
}

// padding returns the zeros that fill up the last block of n bytes.
func padding(n int64) int64 { return -n & (blockSize - 1) }

// ReadArchive reads the headers of the archive of size bytes in r, which stays in use. Everything that is not the one form of an archive is refused
// with a *VerifyError: what is no tar, links, directories, devices, sparse files, other headers, unsafe, repeated or unsorted paths, paths that differ only
// in case, something missing or more at the end.
func ReadArchive(r io.ReaderAt, size int64) (*Archive, error) {
	if size == 0 {
		return nil, fmt.Errorf("read release: %w", errEmptyFile)
	}
	if size > MaxArchiveSize {
		return nil, refuse(CodeArchive, archiveName, "larger than %d bytes", int64(MaxArchiveSize))
	}
	s := newTarReader(r, size)
	a := &Archive{r: r}
	var paths pathSet
	names, last := 0, ""
	for {
		f, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := checkPath(f.path); err != nil {
			return nil, refuse(CodeArchive, archiveName, "%q: %v", f.path, err)
		}
		names += len(f.path)
		first := len(a.files) == 0
		switch {
		case first && f.path != ManifestName:
			return nil, refuse(CodeArchive, f.path, "the first file of a release is %s", ManifestName)
		case !first && (f.path == ManifestName || f.path <= last):
			return nil, refuse(CodeArchive, f.path, "repeated or out of order")
		case strings.Count(f.path, "/") >= maxArchiveDepth:
			return nil, refuse(CodeArchive, f.path, "more than %d elements", maxArchiveDepth)
		case !paths.add(f.path):
			return nil, refuse(CodeArchive, f.path, collides)
		case len(a.files) == maxArchiveFiles || paths.nodes > maxArchiveNodes || names > maxArchiveNames:
			return nil, refuse(CodeArchive, f.path, "more than %d files, or too many directories", maxArchiveFiles)
		}
		if !first {
			last = f.path
		}
		a.files = append(a.files, f)
	}
	if len(a.files) == 0 {
		return nil, refuse(CodeArchive, archiveName, "no file in it")
	}
	slices.SortFunc(a.files, func(x, y member) int { return strings.Compare(x.path, y.path) })
	return a, nil
}

// archiveName stands for the archive itself in a Problem.
const archiveName = "archive"

var errEmptyFile = errors.New("an empty file, not a release")

// tarReader goes from header to header.
type tarReader struct {
	section *io.SectionReader
	buf     *bufio.Reader
	at      int64 // where buf reads
	size    int64
}

func newTarReader(r io.ReaderAt, size int64) *tarReader {
	section := io.NewSectionReader(r, 0, size)
	return &tarReader{section: section, buf: bufio.NewReaderSize(section, 32<<10), size: size}
}

func (s *tarReader) refuse(format string, args ...any) error {
	return refuse(CodeArchive, archiveName, "byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

// read returns the next n bytes.
func (s *tarReader) read(n int64) ([]byte, error) {
	if s.size-s.at < n {
		return nil, s.refuse("the archive ends in the middle of something")
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(s.buf, data); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, s.refuse("the archive became shorter while it was read")
		}
		return nil, fmt.Errorf("read release: %w", err)
	}
	s.at += n
	return data, nil
}

// zeros wants n bytes of zero next.
func (s *tarReader) zeros(n int64, what string) error {
	at := s.at
	data, err := s.read(n)
	if err == nil && !isZero(data) {
		s.at = at
		err = s.refuse("%s is not zero", what)
	}
	return err
}

// skip goes over n bytes that are there.
func (s *tarReader) skip(n int64) error {
	s.at += n
	if n <= int64(s.buf.Buffered()) {
		_, err := s.buf.Discard(int(n))
		return err
	}
	if _, err := s.section.Seek(s.at, io.SeekStart); err != nil {
		return fmt.Errorf("read release: %w", err)
	}
	s.buf.Reset(s.section)
	return nil
}

// next returns the next file, or io.EOF behind the proper end of the archive.
func (s *tarReader) next() (member, error) {
	start := s.at
	head, err := s.read(blockSize)
	if err != nil {
		return member{}, err
	}
	if isZero(head) {
		if err := s.zeros(blockSize, "the second block of the end"); err != nil {
			return member{}, err
		}
		if s.at != s.size {
			return member{}, s.refuse("%d bytes after the end of the archive", s.size-s.at)
		}
		return member{}, io.EOF
	}
	if reason := notRegular(head); reason != "" {
		s.at = start
		return member{}, s.refuse("%s", reason)
	}
	path := text(head[prefixAt:prefixAt+prefixSize], "/") + text(head[:nameSize], "")
	if head[typeAt] == 'x' {
		n, ok := octal(head[sizeAt:])
		if !ok || n > maxPath+16 {
			s.at = start
			return member{}, s.refuse("a PAX header with more than a path of %d bytes", maxPath)
		}
		more, err := s.read(n + padding(n) + blockSize)
		if err != nil {
			return member{}, err
		}
		_, record, _ := bytes.Cut(more[:n], []byte(" path="))
		path = strings.TrimSuffix(string(record), "\n")
		head = append(head, more...)
	}
	size, ok := octal(head[len(head)-blockSize+sizeAt:])
	if !ok || !bytes.Equal(head, tarHeader(path, size)) {
		s.at = start
		return member{}, s.refuse("not the header that halo writes (mode 0644, owner 0, time 0, in ustar form, or with a path alone in PAX form)")
	}
	f := member{path: path, offset: s.at, size: size}
	switch {
	case size > MaxArchiveFile:
		return member{}, refuse(CodeArchive, path, "larger than %d bytes", int64(MaxArchiveFile))
	case s.size-s.at < size+padding(size):
		return member{}, refuse(CodeArchive, path, "the archive ends before the end of this file")
	}
	if err := s.skip(size); err != nil {
		return member{}, err
	}
	return f, s.zeros(padding(size), "what fills up the last block of "+path)
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// text returns what is before the first zero in a field, with end behind it unless it is empty.
func text(field []byte, end string) string {
	field, _, _ = bytes.Cut(field, []byte{0})
	if len(field) == 0 {
		return ""
	}
	return string(field) + end
}

// octal reads the eleven digits of a size.
func octal(field []byte) (n int64, ok bool) {
	for _, c := range field[:11] {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

// notRegular says what a block is that is not the header of a regular file or of a PAX path, or "".
func notRegular(block []byte) string {
	for _, m := range [...]struct{ magic, name string }{{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"PK\x03\x04", "zip"}} {
		if strings.HasPrefix(string(block), m.magic) {
			return "compressed with " + m.name + "; a release is a plain tar archive"
		}
	}
	if string(block[magicAt:magicAt+8]) != "ustar\x0000" {
		return "not a tar header in ustar form"
	}
	switch kind := block[typeAt]; kind {
	case '0', 'x':
		return ""
	case '1':
		return "a hard link, not a file"
	case '2':
		return "a symbolic link, not a file"
	case '3', '4':
		return "a device, not a file"
	case '5':
		return "a directory, which a release archive does not have as an entry"
	case '6':
		return "a named pipe, not a file"
	case 'S':
		return "a sparse file, not a plain one"
	case 'g':
		return "a global PAX header, which a release archive does not have"
	default:
		return fmt.Sprintf("an entry of type %q, not a file", kind)
	}
}

// Close closes the file that Open opened.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// WithFiles returns the same archive with more files beside the manifest: signatures that came another way. A name that is there is replaced.
func (a *Archive) WithFiles(files map[string][]byte) *Archive {
	b := &Archive{r: a.r, file: a.file}
	for _, f := range a.files {
		if _, ok := files[f.path]; !ok {
			b.files = append(b.files, f)
		}
	}
	for name, data := range files {
		b.files = append(b.files, member{path: name, size: int64(len(data)), data: data})
	}
	slices.SortFunc(b.files, func(x, y member) int { return strings.Compare(x.path, y.path) })
	return b
}

// find returns the first file whose path is not below p.
func (a *Archive) find(p string) int {
	i, _ := slices.BinarySearchFunc(a.files, p, func(f member, p string) int { return strings.Compare(f.path, p) })
	return i
}

// Open opens a file or a directory.
func (a *Archive) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if i := a.find(name); i < len(a.files) && a.files[i].path == name {
		f := a.files[i]
		var r io.ReaderAt = a.r
		if f.data != nil {
			r = bytes.NewReader(f.data)
		}
		return &archiveFile{node{path.Base(name), f.size, false}, io.NewSectionReader(r, f.offset, f.size)}, nil
	}
	entries, err := a.ReadDir(name)
	if err != nil {
		return nil, err
	}
	return &archiveDir{node{path.Base(name), 0, true}, entries}, nil
}

// ReadDir lists a directory, sorted by name.
func (a *Archive) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	dir := name + "/"
	if name == "." {
		dir = ""
	}
	var entries []fs.DirEntry
	for i := a.find(dir); i < len(a.files) && strings.HasPrefix(a.files[i].path, dir); {
		first, _, below := strings.Cut(a.files[i].path[len(dir):], "/")
		if below {
			entries = append(entries, node{first, 0, true})
			i = a.find(dir + first + "0") // "0" follows "/"
			continue
		}
		entries = append(entries, node{first, a.files[i].size, false})
		i++
	}
	if len(entries) == 0 && dir != "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return entries, nil
}

// node is a file or a directory as its parent lists it.
type node struct {
	name string
	size int64
	dir  bool
}

func (n node) Name() string               { return n.name }
func (n node) Size() int64                { return n.size }
func (n node) IsDir() bool                { return n.dir }
func (n node) ModTime() time.Time         { return time.Unix(0, 0) }
func (n node) Sys() any                   { return nil }
func (n node) Info() (fs.FileInfo, error) { return n, nil }
func (n node) Type() fs.FileMode          { return n.Mode().Type() }

func (n node) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type archiveFile struct {
	node
	*io.SectionReader
}

func (f *archiveFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *archiveFile) Size() int64                { return f.node.size }
func (f *archiveFile) Close() error               { return nil }

type archiveDir struct {
	node
	rest []fs.DirEntry
}

func (d *archiveDir) Stat() (fs.FileInfo, error) { return d.node, nil }
func (d *archiveDir) Close() error               { return nil }

func (d *archiveDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, or all that are left when n is not positive.
func (d *archiveDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n:n]
	d.rest = d.rest[n:]
	return entries, nil
}
