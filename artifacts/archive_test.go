package artifacts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func archiveOf(t testing.TB, fsys fs.FS, opts ArchiveOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	info, err := WriteArchive(t.Context(), fsys, &b, opts)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size != int64(b.Len()) || "sha256:"+info.SHA256 != Digest(b.Bytes()) {
		t.Fatalf("%d bytes with digest %s written, but %+v said", b.Len(), Digest(b.Bytes()), info)
	}
	return b.Bytes()
}

func openArchive(data []byte) (*Archive, error) {
	return ReadArchive(bytes.NewReader(data), int64(len(data)))
}

// randomPlan has paths of every kind that an archive must tell apart: short, beyond each limit of ustar, and not ASCII.
func randomPlan(r *rand.Rand) *Plan {
	p := smallPlan()
	words := []string{"a", "b-c", "b", "Program Files", "managed-settings.json", "größe", "設定", strings.Repeat("n", 99), strings.Repeat("o", 101), strings.Repeat("p", 160)}
	used := map[string]bool{}
	for range r.IntN(40) {
		parts := []string{"targets"}
		for range 1 + r.IntN(5) {
			parts = append(parts, words[r.IntN(len(words))])
		}
		dir := strings.Join(parts, "/")
		name := fmt.Sprintf("%s/f%02d", dir, r.IntN(30))
		if len(name) > maxPath || used[name] {
			continue
		}
		used[name] = true
		data := make([]byte, []int{0, 1, 511, 512, 513, 40_000}[r.IntN(6)])
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		p.Add(name, data)
	}
	return p
}

// What goes into an archive comes out again, the same for halo, for the standard library and for the release in its directory.
func TestArchiveRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		dir, opts := signed(t, randomPlan(rand.New(rand.NewPCG(seed, 7))))
		data := archiveOf(t, DirFS(dir), ArchiveOptions{})
		want := map[string]string{}
		for path, f := range readTree(t, dir) {
			if _, content, isFile := strings.Cut(f, "-rw-r--r-- "); isFile {
				want[path] = content
			}
		}
		a, err := openArchive(data)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range a.files {
			content, err := fs.ReadFile(a, f.path)
			if err != nil {
				t.Fatal(err)
			}
			got[f.path] = string(content)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: files differ:\n%q\n%q", seed, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		if seed < 2 { // it is slow
			if err := fstest.TestFS(a, slices.Collect(maps.Keys(want))...); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		if _, err := Verify(t.Context(), a, opts); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if again := archiveOf(t, DirFS(dir), ArchiveOptions{}); !bytes.Equal(again, data) {
			t.Errorf("seed %d: packed twice, two results", seed)
		}
		if again := archiveOf(t, a, ArchiveOptions{}); !bytes.Equal(again, data) {
			t.Errorf("seed %d: the archive of the archive differs", seed)
		}
		other := map[string]string{}
		for r := tar.NewReader(bytes.NewReader(data)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("seed %d: archive/tar: %v", seed, err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag != tar.TypeReg || h.Mode != 0o644 || h.Uid|h.Gid != 0 || h.Uname+h.Gname != "" || h.ModTime.Unix() != 0 {
				t.Errorf("seed %d: header %+v", seed, h)
			}
			other[h.Name] = string(content)
		}
		if !maps.Equal(other, want) {
			t.Errorf("seed %d: archive/tar reads other files", seed)
		}
	}
}

// GNU tar unpacks it to the same directory.
func TestArchiveUnpacksWithTar(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("no tar program")
	}
	dir, _ := signed(t, randomPlan(rand.New(rand.NewPCG(3, 3))))
	out := t.TempDir()
	cmd := exec.Command("tar", "xf", "-", "-C", out)
	cmd.Stdin = bytes.NewReader(archiveOf(t, DirFS(dir), ArchiveOptions{}))
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Fatalf("tar: %v\n%s", err, text)
	}
	files := func(dir string) map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			out[strings.TrimPrefix(path, dir)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if !maps.Equal(files(out), files(dir)) {
		t.Error("tar unpacks other files")
	}
}

// Signatures are no part of an unsigned archive: the same bytes with any signature or none.
func TestUnsignedArchive(t *testing.T) {
	dir, opts := signed(t, fullPlan())
	unsigned := archiveOf(t, DirFS(dir), ArchiveOptions{Unsigned: true})
	a, err := openArchive(unsigned)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(t.Context(), a, opts)
	wantNo(t, err, CodeUnsigned, ManifestName)
	bundle, err := os.ReadFile(filepath.Join(dir, BundleName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), a.WithFiles(map[string][]byte{BundleName: bundle}), opts); err != nil {
		t.Error(err)
	}
	_, err = Verify(t.Context(), a.WithFiles(map[string][]byte{BundleName: nil}), opts)
	wantNo(t, err, CodeSignature, BundleName)
	for _, name := range []string{BundleName, DetachedName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if again := archiveOf(t, DirFS(dir), ArchiveOptions{}); !bytes.Equal(again, unsigned) {
		t.Error("the archive of an unsigned release is another")
	}
}

// Every byte counts, headers and padding too, and so does the length.
func TestArchiveEveryByteCounts(t *testing.T) {
	p := smallPlan()
	p.Add("targets/"+strings.Repeat("x", 200), []byte("long"))
	dir, opts := signed(t, p)
	data := archiveOf(t, DirFS(dir), ArchiveOptions{})
	check := func(what string, data []byte) {
		a, err := openArchive(data)
		if err == nil {
			_, err = Verify(t.Context(), a, opts)
		}
		if err == nil {
			t.Errorf("%s: accepted", what)
			return
		}
		if no, ok := errors.AsType[*VerifyError](err); !ok && len(data) > 0 || ok && no.Code == CodeArchive && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not a no in one line: %.300v", what, err)
		}
	}
	check("a byte more", slices.Concat(data, []byte{0}))
	for i := range data {
		bit := byte(1) << (i % 8)
		data[i] ^= bit
		check(fmt.Sprintf("bit %#x of byte %d", bit, i), data)
		data[i] ^= bit
	}
	for n := range len(data) {
		check(fmt.Sprintf("first %d bytes", n), data[:n])
	}
	check("a block more", slices.Concat(data, make([]byte, blockSize)))
	check("twice", slices.Concat(data, data))
}

// entryOf is one file as halo writes it, with any name.
func entryOf(name, content string) []byte {
	b := append(tarHeader(name, int64(len(content))), content...)
	return append(b, make([]byte, padding(int64(len(content))))...)
}

// written makes an archive with the standard library.
func written(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// resum makes the checksum of the first header right again.
func resum(block []byte) []byte {
	copy(block[sumAt:], "        ")
	copy(block[sumAt:], fmt.Sprintf("%06o\x00 ", checksum(block[:blockSize])))
	return block
}

type hostileArchive struct {
	name, want string
	data       []byte
}

func hostileArchives(t testing.TB) []hostileArchive {
	end := make([]byte, 2*blockSize)
	join := func(parts ...[]byte) []byte { return append(slices.Concat(parts...), end...) }
	manifest := entryOf(ManifestName, "{}")
	header := func(h tar.Header) *tar.Header {
		h.Mode = 0o644
		return &h
	}
	changed := func(at int, text string) []byte {
		h := ustar("", ManifestName, 0, '0')
		copy(h[at:], text)
		return join(resum(h))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(bytes.Repeat(join(manifest), 9))
	z.Close()
	deep := [][]byte{manifest}
	for i := range 40_000 {
		deep = append(deep, entryOf(fmt.Sprintf("%05d", i)+strings.Repeat("/d", 30), ""))
	}
	all := []hostileArchive{
		{"nothing", "no file in it", end},
		{"no end", "ends in the middle", manifest},
		{"half an end", "ends in the middle", append(slices.Clone(manifest), end[:blockSize]...)},
		{"an end that is not zero", "second block of the end", append(append(slices.Clone(manifest), end[:blockSize]...), manifest[:blockSize]...)},
		{"more behind the end", "1 bytes after the end", append(join(manifest), 0)},
		{"a second archive", "bytes after the end", append(join(manifest), join(manifest)...)},
		{"text", "ends in the middle", []byte("hello")},
		{"no tar", "not a tar header", bytes.Repeat([]byte("hello!! "), 512)},
		{"gzip", "compressed with gzip", append(zipped.Bytes(), make([]byte, blockSize)...)},
		{"traversal", `"../manifest.json": path element ".."`, join(entryOf("../manifest.json", ""))},
		{"traversal inside", `path element ".."`, join(manifest, entryOf("a/../../x", ""))},
		{"traversal in PAX", `path element ".."`, join(manifest, entryOf("../"+strings.Repeat("ü", 90), ""))},
		{"absolute", "absolute path", join(manifest, entryOf("/etc/passwd", ""))},
		{"drive", `character ':'`, join(manifest, entryOf("C:/x", ""))},
		{"backslash", `character '\\'`, join(manifest, entryOf(`a\..\x`, ""))},
		{"control characters", `\x1b`, join(manifest, entryOf("a\x1b[2J", ""))},
		{"device name", "device on Windows", join(manifest, entryOf("aux.txt", ""))},
		{"not normal", "NFC", join(manifest, entryOf("u\u0308", ""))},
		{"repeated", "repeated or out of order", join(manifest, entryOf("a", "1"), entryOf("a", "2"))},
		{"second manifest", "repeated or out of order", join(manifest, entryOf("a", ""), manifest)},
		{"unsorted", "repeated or out of order", join(manifest, entryOf("b", ""), entryOf("a", ""))},
		{"case", "differs only in case", join(manifest, entryOf("README", ""), entryOf("readme", ""))},
		{"case of the manifest", "differs only in case", join(manifest, entryOf("MANIFEST.JSON", ""))},
		{"case of a directory", "differs only in case", join(manifest, entryOf("A/x", ""), entryOf("a/y", ""))},
		{"file and directory", "differs only in case", join(manifest, entryOf("a", ""), entryOf("a/b", ""))},
		{"no manifest first", "the first file of a release", join(entryOf("a", ""), manifest)},
		{"too deep", "more than 32 elements", join(manifest, entryOf(strings.Repeat("d/", 32)+"d", ""))},
		{"too many directories", "too many directories", join(deep...)},
		{"link", "symbolic link", written(t, header(tar.Header{Name: ManifestName, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))},
		{"hard link", "hard link", written(t, header(tar.Header{Name: ManifestName, Typeflag: tar.TypeLink, Linkname: "x"}))},
		{"directory", "a directory", written(t, header(tar.Header{Name: "a/", Typeflag: tar.TypeDir}))},
		{"device", "a device", written(t, header(tar.Header{Name: ManifestName, Typeflag: tar.TypeChar}))},
		{"block device", "a device", written(t, header(tar.Header{Name: ManifestName, Typeflag: tar.TypeBlock}))},
		{"pipe", "a named pipe", written(t, header(tar.Header{Name: ManifestName, Typeflag: tar.TypeFifo}))},
		{"sparse", "a sparse file", changed(typeAt, "S")},
		{"contiguous", "entry of type '7'", changed(typeAt, "7")},
		{"old regular file", `entry of type '\x00'`, changed(typeAt, "\x00")},
		{"long name of GNU", "not a tar header in ustar form", written(t, &tar.Header{Name: strings.Repeat("n", 300), Mode: 0o644, Format: tar.FormatGNU})},
		{"another record in PAX", "not the header that halo writes", written(t, &tar.Header{Name: ManifestName, Mode: 0o644, Format: tar.FormatPAX, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "1"}})},
		{"global PAX", "a global PAX header", written(t, &tar.Header{Name: "x", Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{"path": "a"}})},
		{"PAX without need", "not the header that halo writes", join(slices.Concat(ustar("", paxName, 25, 'x'), fmt.Appendf(nil, "25 path=manifest.json.sig\n")[:25], make([]byte, padding(25)), ustar("", paxName, 0, '0')))},
		{"PAX of a megabyte", "PAX header with more than a path", join(ustar("", "x", 1<<20, 'x'), make([]byte, 1<<20))},
		{"PAX cut off", "ends in the middle", ustar("", paxName, 900, 'x')},
		{"size in base 256", "not the header that halo writes", changed(sizeAt, "\x80")},
		{"size that is no number", "not the header that halo writes", changed(sizeAt, "0000000 12a")},
		{"size beyond the end", "ends before the end of this file", join(ustar("", ManifestName, 4096, '0'))},
		{"size beyond every limit", "larger than", join(ustar("", ManifestName, 0o77777777777, '0'))},
		{"mode", "not the header that halo writes", changed(nameSize, "0000755")},
		{"owner", "not the header that halo writes", changed(108, "0000001")},
		{"time", "not the header that halo writes", changed(136, "00000000001")},
		{"owner's name", "not the header that halo writes", changed(265, "root")},
		{"link name of a file", "not the header that halo writes", changed(157, "x")},
		{"bytes behind the name", "not the header that halo writes", changed(50, "x")},
		{"bytes behind the header", "not the header that halo writes", changed(505, "x")},
		{"padding", "fills up the last block", join(append(tarHeader(ManifestName, 1), bytes.Repeat([]byte("x"), blockSize)...))},
	}
	return all
}

func TestHostileArchives(t *testing.T) {
	for _, tt := range hostileArchives(t) {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openArchive(tt.data)
			no, ok := errors.AsType[*VerifyError](err)
			if !ok || no.Code != CodeArchive {
				t.Fatalf("error %v, not a VerifyError about the archive", err)
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("error %q, not one line with %q", text, tt.want)
			}
		})
	}
	if _, err := ReadArchive(strings.NewReader(""), 0); !errors.Is(err, errEmptyFile) {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := ReadArchive(strings.NewReader(""), MaxArchiveSize+1); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a huge file: %v", err)
	}
	if _, err := ReadArchive(strings.NewReader("short"), 1<<20); err == nil || !strings.Contains(err.Error(), "became shorter") {
		t.Errorf("a file that shrinks: %v", err)
	}
}

// failing fails to read behind some byte.
type failing struct {
	io.ReaderAt
	after int64
}

var errDisk = errors.New("input/output error")

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.after {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(p, at)
}

// A disk that fails is no answer, not a no.
func TestArchiveOnABrokenDisk(t *testing.T) {
	dir, opts := signed(t, bigPlan("1", 300))
	data := archiveOf(t, DirFS(dir), ArchiveOptions{})
	_, err := ReadArchive(failing{bytes.NewReader(data), 4096}, int64(len(data)))
	if _, no := errors.AsType[*VerifyError](err); no || !errors.Is(err, errDisk) {
		t.Errorf("headers: %v", err)
	}
	a, err := openArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	a.r = failing{bytes.NewReader(data), int64(len(data)) / 2}
	_, err = Verify(t.Context(), a, opts)
	if _, no := errors.AsType[*VerifyError](err); no || !errors.Is(err, errDisk) {
		t.Errorf("verify: %v", err)
	}
	_, err = WriteArchive(t.Context(), a, io.Discard, ArchiveOptions{})
	if _, no := errors.AsType[*VerifyError](err); no || !errors.Is(err, errDisk) {
		t.Errorf("write: %v", err)
	}
}

// What is packed is whole.
func TestArchiveOfWhatIsNotARelease(t *testing.T) {
	for _, tt := range []struct {
		name, path, want string
		change           func(dir string) error
	}{
		{"changed", "COVERAGE.md", "content changed", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "COVERAGE.md"), []byte("# COVERAGE\n"), 0o644)
		}},
		{"longer", "COVERAGE.md", "bytes, not", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "COVERAGE.md"), make([]byte, 999), 0o644)
		}},
		{"missing", "COVERAGE.md", missing, func(dir string) error { return os.Remove(filepath.Join(dir, "COVERAGE.md")) }},
		{"more", "x", "not in the manifest", func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o644) }},
		{"link", "COVERAGE.md", "symbolic link", func(dir string) error { return swapForLink(filepath.Join(dir, "COVERAGE.md")) }},
		{"no manifest", ManifestName, "missing", func(dir string) error { return os.Remove(filepath.Join(dir, ManifestName)) }},
		{"damaged manifest", ManifestName, "", func(dir string) error { return os.WriteFile(filepath.Join(dir, ManifestName), []byte("{}"), 0o644) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := signed(t, fullPlan())
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "r.tar")
			_, err := WriteArchiveFile(t.Context(), DirFS(dir), out, ArchiveOptions{})
			no, ok := errors.AsType[*VerifyError](err)
			if !ok || no.Problems[0].Path != tt.path || !strings.Contains(no.Problems[0].Message, tt.want) {
				t.Errorf("error %v, not about %s: %s", err, tt.path, tt.want)
			}
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v %v", entries, err)
			}
		})
	}
}

func TestWriteArchiveFile(t *testing.T) {
	dir, opts := signed(t, fullPlan())
	out := filepath.Join(t.TempDir(), "new", "r.tar")
	for range 2 { // the second replaces the first
		if _, err := WriteArchiveFile(t.Context(), DirFS(dir), out, ArchiveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Verify(t.Context(), f, opts); err != nil {
		t.Error(err)
	}
	noLeftovers(t, out)
	if in, err := Inspect(f); err != nil || in.Files != 8 || len(in.Signatures) != 2 {
		t.Errorf("inspect: %+v %v", in, err)
	}

	other := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := other + ".link"
	if err := os.Symlink(out, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, link, dir} {
		if _, ok := errors.AsType[*OutError](func() error {
			_, err := WriteArchiveFile(t.Context(), DirFS(dir), path, ArchiveOptions{})
			return err
		}()); !ok {
			t.Errorf("%s is replaced", path)
		}
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "mine" {
		t.Errorf("%q %v", data, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := makePipe(pipe); err != nil {
		t.Skip(err)
	}
	if _, err := Open(pipe); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("a pipe: %v", err)
	}
}

// Every input is refused with one line, or is the one archive of what it holds.
func FuzzReadArchive(f *testing.F) {
	for _, h := range hostileArchives(f) {
		if len(h.data) < 64<<10 {
			f.Add(h.data)
		}
	}
	dir, _ := signed(f, smallPlan())
	f.Add(archiveOf(f, DirFS(dir), ArchiveOptions{}))
	dir, _ = signed(f, randomPlan(rand.New(rand.NewPCG(1, 1))))
	f.Add(archiveOf(f, DirFS(dir), ArchiveOptions{Unsigned: true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := openArchive(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		again := bytes.NewBuffer(nil)
		files := slices.Clone(a.files)
		slices.SortFunc(files, func(x, y member) int { return int(x.offset - y.offset) })
		for _, m := range files {
			content, err := fs.ReadFile(a, m.path)
			if err != nil {
				t.Fatal(err)
			}
			again.Write(entryOf(m.path, string(content)))
		}
		again.Write(make([]byte, 2*blockSize))
		if !bytes.Equal(again.Bytes(), data) {
			t.Errorf("accepted, and not the archive of its files")
		}
	})
}

func BenchmarkVerifyArchive(b *testing.B) {
	dir, opts := signed(b, benchPlan())
	out := filepath.Join(b.TempDir(), "r.tar")
	if _, err := WriteArchiveFile(b.Context(), DirFS(dir), out, ArchiveOptions{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Open(out)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Verify(b.Context(), f, opts); err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
