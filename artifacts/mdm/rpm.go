package mdm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// The types of header values (RPM Package Manager, "Package format v4", 2023).
const (
	rpmInt16  = 3
	rpmInt32  = 4
	rpmString = 6
	rpmBin    = 7
	rpmList   = 8
	rpmI18N   = 9
)

// The flags of dependencies.
const (
	rpmEqual = 1 << 3
	// rpmLib marks a feature of rpm itself: less or equal, and RPMSENSE_RPMLIB.
	rpmLib = 1<<24 | 1<<1 | 1<<3
)

// rpmEntry is one tag of a header.
type rpmEntry struct {
	tag, kind, count int
	data             []byte
}

func rpmText(tag int, s string) rpmEntry { return rpmEntry{tag, rpmString, 1, append([]byte(s), 0)} }

func rpmTranslated(tag int, s string) rpmEntry {
	return rpmEntry{tag, rpmI18N, 1, append([]byte(s), 0)}
}

func rpmTexts(tag int, l ...string) rpmEntry {
	return rpmEntry{tag, rpmList, len(l), append([]byte(strings.Join(l, "\x00")), 0)}
}

func rpmNumbers(tag int, l ...int) rpmEntry {
	e := rpmEntry{tag, rpmInt32, len(l), nil}
	for _, n := range l {
		e.data = binary.BigEndian.AppendUint32(e.data, uint32(n))
	}
	return e
}

func rpmShorts(tag int, l ...int) rpmEntry {
	e := rpmEntry{tag, rpmInt16, len(l), nil}
	for _, n := range l {
		e.data = binary.BigEndian.AppendUint16(e.data, uint16(n))
	}
	return e
}

// rpmHeader is a header structure whose entries are one immutable region of the given tag.
func rpmHeader(region int, entries []rpmEntry) []byte {
	slices.SortFunc(entries, func(a, b rpmEntry) int { return a.tag - b.tag })
	var index, store []byte
	row := func(b []byte, tag, kind, offset, count int) []byte {
		for _, n := range []int{tag, kind, offset, count} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return b
	}
	for _, e := range entries {
		align := map[int]int{rpmInt16: 2, rpmInt32: 4}[e.kind]
		for align > 0 && len(store)%align != 0 {
			store = append(store, 0)
		}
		index = row(index, e.tag, e.kind, len(store), e.count)
		store = append(store, e.data...)
	}
	n := len(entries) + 1
	index = append(row(nil, region, rpmBin, len(store), 16), index...)
	store = row(store, region, rpmBin, -16*n, 16)
	out := []byte{0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0}
	out = binary.BigEndian.AppendUint32(out, uint32(n))
	out = binary.BigEndian.AppendUint32(out, uint32(len(store)))
	return append(append(out, index...), store...)
}

// writeRPM makes a package in format v4, unsigned; sign it with rpmsign for a repository that asks for it. No file is %config, for the reason that writeDeb has.
func writeRPM(e *export) error {
	type entry struct {
		path string
		mode int
		data []byte
		dir  bool
	}
	var files []entry
	items := e.of(Package)
	for _, d := range ownDirs(items) {
		files = append(files, entry{d, 0o40755, nil, true})
	}
	for _, it := range items {
		files = append(files, entry{it.Dest, 0o100000 | int(mode(it.Mode)), it.data, false})
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.path, b.path) })

	at := int(e.issued().Unix())
	var cpio bytes.Buffer
	member := func(name string, inode, mode, links, mtime int, data []byte) {
		fmt.Fprintf(&cpio, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", inode, mode, 0, 0, links, mtime, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		pad(&cpio, 4)
		cpio.Write(data)
		pad(&cpio, 4)
	}
	n := len(files)
	var sizes, modes, mtimes, flags, verify, devices, inodes, dirIndex, zeros []int
	var digests, users, bases, dirs, blanks []string
	total := 0
	for i, f := range files {
		links := 1
		sum, size := "", 4096
		if f.dir {
			links = 2
		} else {
			sum, size = fmt.Sprintf("%x", sha256.Sum256(f.data)), len(f.data)
			total += size
		}
		member("."+f.path, i+1, f.mode, links, at, f.data)
		dir := f.path[:strings.LastIndex(f.path, "/")+1]
		d := slices.Index(dirs, dir)
		if d < 0 {
			d, dirs = len(dirs), append(dirs, dir)
		}
		sizes, modes, mtimes, digests = append(sizes, size), append(modes, f.mode), append(mtimes, at), append(digests, sum)
		dirIndex, bases, inodes = append(dirIndex, d), append(bases, f.path[len(dir):]), append(inodes, i+1)
		flags, verify, devices, zeros = append(flags, 0), append(verify, -1), append(devices, 1), append(zeros, 0)
		users, blanks = append(users, "root"), append(blanks, "")
	}
	member("TRAILER!!!", 0, 0, 1, 0, nil)
	if n == 0 {
		return fmt.Errorf("rpm: no files")
	}
	var payload bytes.Buffer
	z, err := gzip.NewWriterLevel(&payload, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(cpio.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}

	name, version, release := e.packageName(), e.packageVersion(), "1"
	full := version + "-" + release
	header := rpmHeader(63, []rpmEntry{
		rpmTexts(100, "C"),
		rpmText(1000, name), rpmText(1001, version), rpmText(1002, release),
		rpmTranslated(1004, e.summary()), rpmTranslated(1005, "Managed settings of "+e.release()+", made by halo."),
		rpmNumbers(1006, at), rpmText(1007, "localhost"), rpmNumbers(1009, total), rpmText(1011, printable(e.manifest.Org)), rpmText(1014, "Proprietary"),
		rpmTranslated(1016, "System Environment/Base"), rpmText(1021, "linux"), rpmText(1022, "noarch"),
		rpmNumbers(1028, sizes...), rpmShorts(1030, modes...), rpmShorts(1033, zeros...), rpmNumbers(1034, mtimes...), rpmTexts(1035, digests...), rpmTexts(1036, blanks...),
		rpmNumbers(1037, flags...), rpmTexts(1039, users...), rpmTexts(1040, users...), rpmText(1044, name+"-"+full+".src.rpm"), rpmNumbers(1045, verify...),
		rpmTexts(1047, name, conflictName), rpmNumbers(1112, rpmEqual, 0), rpmTexts(1113, full, ""),
		rpmNumbers(1048, rpmLib, rpmLib, rpmLib), rpmTexts(1049, "rpmlib(CompressedFileNames)", "rpmlib(FileDigests)", "rpmlib(PayloadFilesHavePrefix)"),
		rpmTexts(1050, "3.0.4-1", "4.6.0-1", "4.0-1"),
		rpmNumbers(1053, 0), rpmTexts(1054, conflictName), rpmTexts(1055, ""),
		rpmText(1064, "4.18.0"), rpmNumbers(1095, devices...), rpmNumbers(1096, inodes...), rpmTexts(1097, blanks...),
		rpmNumbers(1116, dirIndex...), rpmTexts(1117, bases...), rpmTexts(1118, dirs...),
		rpmText(1124, "cpio"), rpmText(1125, "gzip"), rpmText(1126, "9"),
		rpmNumbers(5011, 8), rpmTexts(5092, hexSum(payload.Bytes())), rpmNumbers(5093, 8),
	})
	signature := rpmHeader(62, []rpmEntry{
		rpmText(273, hexSum(header)), rpmNumbers(1000, len(header)+payload.Len()), rpmNumbers(1007, cpio.Len()),
	})

	var b bytes.Buffer
	lead := [96]byte{0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, 1}
	copy(lead[10:75], name+"-"+full)
	lead[77], lead[79] = 1, 5 // Linux; a signature in header form
	b.Write(lead[:])
	b.Write(signature)
	pad(&b, 8)
	b.Write(header)
	b.Write(payload.Bytes())
	file := name + "-" + full + ".noarch.rpm"
	e.Files[file] = b.Bytes()
	e.source(Package, file)
	return nil
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pad adds zeros up to a multiple of n.
func pad(b *bytes.Buffer, n int) {
	for b.Len()%n != 0 {
		b.WriteByte(0)
	}
}
