package artifacts

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A release has several directories for each file, so most of the work of verifying is opening and listing them. This is the same as
// fsDir with file descriptors relative to the parent and nothing in between: a third of the CPU time.

// fdDir is an open directory.
type fdDir int

// openRoot opens the directory that fsys is.
func openRoot(fsys fs.FS) (directory, error) {
	d, ok := fsys.(dirFS)
	if !ok {
		return fsDir{fsys, "."}, nil
	}
	for {
		fd, err := unix.Open(string(d), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
		if err == nil {
			return fdDir(fd), nil
		}
		if err != unix.EINTR {
			return nil, &fs.PathError{Op: "open", Path: string(d), Err: err}
		}
	}
}

// The calls below are raw: Go's scheduler does not take part. Telling it of each of ten thousands of calls that last a microsecond takes a tenth of the time, and more on a busy
// machine, where it takes a call for one that blocks and starts another thread. While a disk is slow a processor of Go's waits with it, which only this walk needs.

// openat opens a file of a directory. The name has one element, from the directory itself or from a manifest.
func openat(dir int, name string, flags int) (fd int, err error) {
	var path [unix.NAME_MAX + 1]byte
	if copy(path[:unix.NAME_MAX], name) < len(name) {
		return -1, unix.ENAMETOOLONG
	}
	for {
		fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&path)), uintptr(unix.O_RDONLY|unix.O_CLOEXEC|flags), 0, 0, 0)
		if errno == 0 {
			return int(fd), nil
		}
		if errno != unix.EINTR {
			return -1, errno
		}
	}
}

// fill is read(2) or getdents64(2).
func fill(call uintptr, fd int, buf []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

func closeFD(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func (d fdDir) enter(name string) (directory, error) {
	fd, err := openat(int(d), name, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	return fdDir(fd), err
}

func (d fdDir) open(name string) (file, error) {
	fd, err := openat(int(d), name, openFlags)
	return fdFile(fd), err
}

func (d fdDir) close() { closeFD(int(d)) }

// list reads struct linux_dirent64 (getdents(2)): inode and offset of 8 bytes each, record length of 2, type of 1, name up to a zero.
func (d fdDir) list(entries []entry, buf []byte) ([]entry, error) {
	const nameOffset = 19
	for {
		n, err := fill(unix.SYS_GETDENTS64, int(d), buf)
		if err != nil || n == 0 {
			return entries, err
		}
		for rest := buf[:n]; len(rest) > nameOffset; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size <= nameOffset || size > len(rest) {
				return entries, io.ErrUnexpectedEOF
			}
			name := rest[nameOffset:size]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			kind := rest[18]
			rest = rest[size:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			e := entry{string(name), modeOf(kind)}
			if kind == unix.DT_UNKNOWN {
				if e.mode, _, err = stat(func(st *unix.Stat_t) error { return unix.Fstatat(int(d), e.name, st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
					return entries, err
				}
			}
			entries = append(entries, e)
		}
	}
}

// modeOf returns the type bits for the type in a directory entry.
func modeOf(kind byte) fs.FileMode {
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// stat returns type and size. The type in a directory entry is the one of a mode, shifted (inode(7), dirent.h).
func stat(call func(*unix.Stat_t) error) (fs.FileMode, int64, error) {
	var st unix.Stat_t
	for {
		err := call(&st)
		if err != unix.EINTR {
			return modeOf(byte(st.Mode & unix.S_IFMT >> 12)), st.Size, err
		}
	}
}

// fdFile is an open file.
type fdFile int

func (f fdFile) stat() (fs.FileMode, int64, error) {
	return stat(func(st *unix.Stat_t) error { return unix.Fstat(int(f), st) })
}

// Read reads as io.Reader says.
func (f fdFile) Read(p []byte) (int, error) {
	n, err := fill(unix.SYS_READ, int(f), p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Close closes the file. What was read is not lost by what goes wrong here.
func (f fdFile) Close() error {
	closeFD(int(f))
	return nil
}
