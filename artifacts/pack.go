package artifacts

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// ArchiveOptions say what goes into an archive.
type ArchiveOptions struct {
	// Unsigned leaves the signature files out, so that the archive depends on nothing but the manifest.
	Unsigned bool
}

// ArchiveInfo says what was written.
type ArchiveInfo struct {
	// Digest is the release digest.
	Digest string
	// Files is how many files are in the archive.
	Files int
	// Size is the size of the archive in bytes, SHA256 its SHA-256 in hex.
	Size   int64
	SHA256 string
}

// WriteArchive writes the release in fsys to w as an archive: see Archive for its form. The same files give the same bytes anywhere. The release must be
// whole: a *VerifyError says what is missing, changed or more than the manifest lists. Signatures are carried along, not checked.
func WriteArchive(ctx context.Context, fsys fs.FS, w io.Writer, opts ArchiveOptions) (*ArchiveInfo, error) {
	m, manifest, err := ManifestOf(fsys)
	if err != nil {
		return nil, err
	}
	if err := m.checkSums(); err != nil {
		return nil, err
	}
	// The names now, the digests while the files go by.
	problems, unread := walk(ctx, fsys, m, false)
	if len(problems) > 0 {
		return nil, newFilesError(problems)
	}
	if unread != nil {
		return nil, fmt.Errorf("read release: %w", unread)
	}
	entries := make([]packEntry, 0, len(m.Files)+4)
	for i, f := range m.Files {
		entries = append(entries, packEntry{f.Path, f.Size, nil, &m.Files[i]})
	}
	if !opts.Unsigned {
		files, names, err := signatureFiles(fsys)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			entries = append(entries, packEntry{name, int64(len(files[name])), files[name], nil})
		}
		slices.SortFunc(entries, func(a, b packEntry) int { return strings.Compare(a.path, b.path) })
	}
	entries = slices.Insert(entries, 0, packEntry{ManifestName, int64(len(manifest)), manifest, nil})
	p := newPacker(w)
	if len(entries) > maxArchiveFiles {
		return nil, fmt.Errorf("pack release: %d files; an archive has at most %d", len(entries), maxArchiveFiles)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.add(fsys, e); err != nil {
			return nil, err
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("pack release: %w", err)
	}
	return &ArchiveInfo{Digest(manifest), len(entries), p.size, hex.EncodeToString(p.sum.Sum(nil))}, nil
}

// packEntry is one file of an archive: its bytes, or the entry in the manifest by which they are read.
type packEntry struct {
	path   string
	size   int64
	data   []byte
	listed *File
}

// packer writes an archive and counts.
type packer struct {
	out  *bufio.Writer
	sum  hash.Hash
	size int64
	buf  []byte
	file hash.Hash
}

func newPacker(w io.Writer) *packer {
	p := &packer{sum: sha256.New(), file: sha256.New(), buf: make([]byte, 64<<10)}
	p.out = bufio.NewWriterSize(io.MultiWriter(w, p.sum), 64<<10)
	return p
}

var zeroBlocks [2 * blockSize]byte

func (p *packer) add(fsys fs.FS, e packEntry) error {
	head := tarHeader(e.path, e.size)
	pad := padding(e.size)
	p.size += int64(len(head)) + e.size + pad
	switch {
	case strings.Count(e.path, "/") >= maxArchiveDepth:
		return fmt.Errorf("pack release: %s: more than %d elements", e.path, maxArchiveDepth)
	case e.size > MaxArchiveFile:
		return fmt.Errorf("pack release: %s: larger than %d bytes", e.path, int64(MaxArchiveFile))
	case p.size > MaxArchiveSize-2*blockSize:
		return fmt.Errorf("pack release: larger than %d bytes", int64(MaxArchiveSize))
	}
	// A bufio.Writer keeps its first error and end returns it.
	p.out.Write(head)
	if e.listed == nil {
		p.out.Write(e.data)
	} else if err := p.copyFile(fsys, *e.listed); err != nil {
		return err
	}
	p.out.Write(zeroBlocks[:pad])
	return nil
}

// copyFile copies a listed file and compares it with its entry on the way.
func (p *packer) copyFile(fsys fs.FS, want File) error {
	f, err := fsys.Open(want.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(CodeFiles, want.Path, missing)
	}
	if err != nil {
		return fmt.Errorf("read release: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read release: %w", err)
	}
	if !info.Mode().IsRegular() {
		return refuse(CodeFiles, want.Path, "%s where the release has a file", Describe(info.Mode()))
	}
	p.file.Reset()
	in := reader{Reader: io.LimitReader(f, want.Size+1)}
	n, err := io.CopyBuffer(io.MultiWriter(p.out, p.file), &in, p.buf)
	switch {
	case in.err != nil:
		return fmt.Errorf("read release: %s: %w", want.Path, in.err)
	case err != nil:
		return fmt.Errorf("pack release: %w", err)
	case n != want.Size:
		return refuse(CodeFiles, want.Path, "%d bytes, not %d", info.Size(), want.Size)
	}
	if sum := hex.EncodeToString(p.file.Sum(nil)); sum != want.SHA256 {
		return refuse(CodeFiles, want.Path, "content changed (sha256 %s, not %s)", sum, want.SHA256)
	}
	return nil
}

// reader keeps the error of a Reader apart from that of the Writer it is copied to.
type reader struct {
	io.Reader
	err error
}

// Read reads.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

func (p *packer) end() error {
	p.out.Write(zeroBlocks[:])
	p.size += int64(len(zeroBlocks))
	return p.out.Flush()
}

// WriteArchiveFile writes the archive of a release into the file out, whole or not at all. A file that is there must be the archive of a release, else the error is an
// *OutError.
func WriteArchiveFile(ctx context.Context, fsys fs.FS, out string, opts ArchiveOptions) (*ArchiveInfo, error) {
	var info *ArchiveInfo
	err := writeOneFile(out, "pack release", replaceableArchive, func(f *os.File) (err error) {
		info, err = WriteArchive(ctx, fsys, f, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// WriteFile writes data, which begins with mark, into the file out, whole or not at all and with mode 0644. What is there must be a file that begins with mark,
// else the error is an *OutError with the given code. what names such a file in messages.
func WriteFile(out, what string, code *diag.Code, mark string, data []byte) error {
	doing := "write " + what
	replaceable := func(path string) error {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", doing, err)
		case !info.Mode().IsRegular():
			return &OutError{code, path, Describe(info.Mode()) + ", not " + article(what)}
		}
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		defer f.Close()
		head := make([]byte, len(mark))
		if _, err := io.ReadFull(f, head); err != nil || string(head) != mark {
			return &OutError{code, path, "a file that is not " + article(what) + ", and nothing that halo did not write is removed"}
		}
		return nil
	}
	return writeOneFile(out, doing, replaceable, func(f *os.File) error {
		if _, err := f.Write(data); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		return nil
	})
}

// writeOneFile writes a file beside out and puts it in its place, when replaceable says of what stands there that it may go. doing begins its errors.
func writeOneFile(out, doing string, replaceable func(path string) error, write func(*os.File) error) error {
	if err := replaceable(out); err != nil {
		return err
	}
	tmp, done, err := Workspace(out)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer done()
	name := filepath.Join(tmp, "new")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	err = write(f)
	if err == nil && modeDiffers(name, 0o644) {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("%s: %w", doing, closeErr)
	}
	// Another file may stand there by now.
	if err == nil {
		err = replaceable(out)
	}
	if err == nil {
		if err = os.Rename(name, out); err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
	}
	return err
}

// Workspace makes a directory beside out, which need not exist, for what is written before it takes the place of out. Until done is called, which removes
// it, other runs see it as in use; those of runs that were killed are removed.
func Workspace(out string) (dir string, done func(), err error) {
	abs, err := filepath.Abs(out)
	if err != nil {
		return "", nil, err
	}
	parent, name := filepath.Split(abs)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", nil, err
	}
	if err := recoverLeftovers(parent, name, abs); err != nil {
		return "", nil, err
	}
	dir, unlock, err := makeTemp(parent, "."+name+newMark)
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir); unlock() }, nil
}

// replaceableArchive says why what stands at path, if anything, must not be replaced by an archive.
func replaceableArchive(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("pack release: %w", err)
	case !info.Mode().IsRegular():
		return &OutError{CodeNotRelease, path, Describe(info.Mode()) + ", not the archive of a release"}
	}
	a, err := Open(path)
	if err == nil {
		defer a.Close()
		_, _, err = ManifestOf(a)
	}
	if err != nil {
		return &OutError{CodeNotRelease, path, fmt.Sprintf("a file that is not the archive of a release (%v), and nothing that halo did not write is removed", err)}
	}
	return nil
}
