// Package source turns the bytes of a policy repo into positioned YAML documents. It knows YAML, strictness and limits; it knows nothing
// about policy.
//
// One file is read, decoded into nodes, walked once by the caller and dropped: nothing here keeps a node or the bytes of a file.
package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
)

// Node is a YAML node with its place. Every other package sees YAML through this name.
type Node = yaml.Node

// Limits bound what is read. Sizes are in bytes.
type Limits struct {
	FileSize int64
	Files    int
	Total    int64
	Depth    int
	Scalar   int
	// Items bounds the nodes of one file, so that a file of commas cannot take many times its size in memory.
	Items int
	// nullable is Options.Nullable.
	nullable string
}

// DefaultLimits are the limits of the contract.
var DefaultLimits = Limits{FileSize: 4 << 20, Files: 65536, Total: 256 << 20, Depth: 64, Scalar: 1 << 20, Items: 400_000}

// File is one file of a repo as it was read.
type File struct {
	// Name is relative to the repo root, with slashes.
	Name   string
	Size   int64
	Digest [sha256.Size]byte
}

// Files names the files behind positions. It is filled before any document is visited and not changed after.
type Files []File

// Name returns the name of the file that p lies in, or "".
func (f Files) Name(p diag.Pos) string {
	if i := p.File(); p.IsValid() && i < len(f) {
		return f[i].Name
	}
	return ""
}

// Index returns the index of the file of that name.
func (f Files) Index(name string) (int, bool) {
	return slices.BinarySearchFunc(f, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
}

// Document is one YAML document, valid only during the visit.
type Document struct {
	File  int
	Name  string
	Index int // 0-based number of the document in its file
	Count int // number of documents in the file
	Root  *Node
	// Flawed is set when the document breaks a rule of strict YAML, so that values of it are absent.
	Flawed bool
	// Data is the whole file, for readers that need exact bytes.
	Data []byte
	// Noted is what Options.Inspect answered for the file.
	Noted bool
}

// Options choose what Read visits.
type Options struct {
	Limits Limits
	// SkipDir reports whether a directory (slash-separated, relative) is not part of the repo's documents.
	SkipDir func(fsys fs.FS, dir string) bool
	// Extra files are read although they lie in a skipped directory; those that do not exist are left out.
	Extra func(fsys fs.FS) []string
	// Needless, when set, reports files that are read and not decoded: their documents cannot matter to the question asked.
	Needless func(name string, data []byte) bool
	// Raw files are given to visit as bytes, with a nil Root: another reader owns their format.
	Raw func(name string) bool
	// Inspect, when set, sees the bytes of every file that is read, and reports whether it found anything. It is called concurrently and must not keep them.
	Inspect func(file int, data []byte) bool
	// Recall, when set, is asked for each file first. It answers with what is known of one whose documents it has: that one is not read. It is called concurrently.
	Recall func(index int, name string) (File, bool)
	// Nullable begins the key paths whose values may be null, because null is how their format writes "unset". "" is none.
	Nullable string
	// Workers is the number of files decoded at a time; 0 means one per processor.
	Workers int
}

// Read walks fsys in sorted path order, decodes every *.yaml and *.yml file and calls visit for each document. Visits of different files may run
// at the same time; documents of one file are visited in order. The diagnostics are complete: a bad file does not hide the next one.
func Read(ctx context.Context, fsys fs.FS, opts Options, diags *diag.List, visit func(*Document, *diag.List)) Files {
	opts.Limits = opts.limits()
	entries := walk(fsys, opts, diags)
	files := make(Files, len(entries))
	var total int64
	for i, e := range entries {
		files[i] = File{Name: e.name, Size: e.size}
		total += e.size
	}
	if total > opts.Limits.Total {
		diags.Add(fileDiag(codeLimit, ".", "the policy files have %d bytes in all, more than the limit of %d", total, opts.Limits.Total))
		return files
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(1, min(workers, len(entries)))
	var next int
	var mu sync.Mutex
	var big sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var r reader
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(entries) {
					return
				}
				if files[i].Size > bigFile {
					// Nodes take many times the bytes they come from: large files are decoded one at a time.
					big.Lock()
				}
				r.file(fsys, i, &files[i], opts, diags, visit)
				if files[i].Size > bigFile {
					r.buf = nil
					big.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return files
}

const bigFile = 256 << 10

type entry struct {
	name string
	size int64
}

func walk(fsys fs.FS, opts Options, diags *diag.List) []entry {
	var out []entry
	tooMany := false
	add := func(p string, d fs.DirEntry) {
		if tooMany {
			return
		}
		if !utf8.ValidString(p) {
			diags.Add(fileDiag(codeFileName, strconv.QuoteToASCII(p), "the file name is not UTF-8; rename the file"))
			return
		}
		if d.Type()&fs.ModeSymlink != 0 {
			diags.Add(fileDiag(codeFileType, p, "a symbolic link is not read as policy: it could pull a file from elsewhere into a release; put a regular file here"))
			return
		}
		if !d.Type().IsRegular() {
			diags.Add(fileDiag(codeFileType, p, "%s is not read as policy; put a regular file here", typeName(d.Type())))
			return
		}
		info, err := d.Info()
		if err != nil {
			diags.Add(fileDiag(codeUnreadable, p, "cannot be read: %s", reason(err)))
			return
		}
		if len(out) >= opts.Limits.Files {
			tooMany = true
			diags.Add(fileDiag(codeLimit, ".", "there are more than %d policy files, the limit", opts.Limits.Files))
			return
		}
		out = append(out, entry{p, info.Size()})
	}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			diags.Add(fileDiag(codeUnreadable, p, "cannot be read: %s", reason(err)))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name := d.Name()
		if p != "." && strings.HasPrefix(name, ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if p != "." && opts.SkipDir != nil && opts.SkipDir(fsys, p) {
				return fs.SkipDir
			}
			if isYAML(name) && p != "." {
				diags.Add(fileDiag(codeFileType, p, "a directory named like a policy file; rename it"))
			}
			return nil
		}
		switch {
		case isYAML(name):
			add(p, d)
		case d.Type()&fs.ModeSymlink != 0:
			diags.Add(fileDiag(codeLink, p, "a symbolic link is not followed; if it leads to policy, put the files here"))
		}
		return nil
	})
	if err != nil {
		diags.Add(fileDiag(codeUnreadable, ".", "cannot be read: %s", reason(err)))
	}
	if opts.Extra != nil {
		for _, p := range opts.Extra(fsys) {
			info, err := fs.Lstat(fsys, p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				diags.Add(fileDiag(codeUnreadable, p, "cannot be read: %s", reason(err)))
				continue
			}
			add(p, fs.FileInfoToDirEntry(info))
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(out, func(a, b entry) bool { return a.name == b.name })
}

func isYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func typeName(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "an irregular file"
}

// reason is the cause of a file system error without the path, which the diagnostic names already.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func fileDiag(code *diag.Code, file, format string, args ...any) diag.Diagnostic {
	d := diag.New(code, 0, "", format, args...)
	d.File = file
	return d
}

// Visit decodes a file that Options.Needless kept back, as Read does the others.
func Visit(index int, name string, data []byte, opts Options, diags *diag.List, visit func(*Document, *diag.List)) {
	var own diag.List
	Decode(index, name, data, opts.limits(), &own, visit)
	diags.Add(own.Sorted()...)
}

// limits are the limits with what Decode needs beside them.
func (o Options) limits() Limits {
	l := o.Limits
	if l == (Limits{}) {
		l = DefaultLimits
	}
	l.nullable = o.Nullable
	return l
}

// reader reads files one after the other into one buffer.
type reader struct {
	buf []byte
}

func (r *reader) file(fsys fs.FS, index int, f *File, opts Options, diags *diag.List, visit func(*Document, *diag.List)) {
	lim := opts.Limits
	if opts.Recall != nil {
		if known, ok := opts.Recall(index, f.Name); ok {
			*f = known
			return
		}
	}
	if f.Size > lim.FileSize {
		diags.Add(fileDiag(codeLimit, f.Name, "the file has %d bytes, more than the limit of %d", f.Size, lim.FileSize))
		return
	}
	data, err := r.read(fsys, f.Name, f.Size, lim.FileSize)
	if err != nil {
		diags.Add(fileDiag(codeUnreadable, f.Name, "cannot be read: %s", reason(err)))
		return
	}
	if int64(len(data)) > lim.FileSize {
		diags.Add(fileDiag(codeLimit, f.Name, "the file has more bytes than the limit of %d", lim.FileSize))
		return
	}
	f.Size = int64(len(data))
	if opts.Needless != nil && opts.Needless(f.Name, data) {
		return
	}
	f.Digest = sha256.Sum256(data)
	noted := opts.Inspect != nil && opts.Inspect(index, data)
	// A list of its own for each file makes "this document has errors" a local question and keeps the lock of the common list cold.
	var own diag.List
	if opts.Raw != nil && opts.Raw(f.Name) {
		visit(&Document{File: index, Name: f.Name, Count: 1, Data: data, Noted: noted}, &own)
	} else {
		Decode(index, f.Name, data, lim, &own, func(doc *Document, diags *diag.List) {
			doc.Noted = noted
			visit(doc, diags)
		})
	}
	if own.Len() > 0 {
		diags.Add(own.Sorted()...)
	}
}

// read reads a file whose size is known; a file that changes size meanwhile is read to its end. The bytes are valid until the next read.
func (r *reader) read(fsys fs.FS, name string, size, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if int64(cap(r.buf)) <= size {
		r.buf = make([]byte, 0, max(4096, size+1))
	}
	buf := r.buf[:0]
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		// A short read that ends where the file ended is its end: one system call less for every file.
		if err == io.EOF || n > 0 && int64(len(buf)) == size || int64(len(buf)) > limit {
			r.buf = buf
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, cap(buf))
		}
	}
}

var utf8BOM = []byte("\xef\xbb\xbf")

// Decode decodes one file given as bytes, as Read does for each file. No other goroutine may add to diags meanwhile.
func Decode(index int, name string, data []byte, lim Limits, diags *diag.List, visit func(*Document, *diag.List)) {
	at := func(line, col int) diag.Pos { return diag.NewPos(index, line, col) }
	text := bytes.TrimPrefix(data, utf8BOM)
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		diags.Add(diag.New(codeEncoding, at(1, 1), "", "the file is UTF-16; save it as UTF-8"))
		return
	}
	if line, col, what := badByte(text); line > 0 {
		diags.Add(diag.New(codeEncoding, at(line, col), "", "the file holds %s; save it as UTF-8 text", what))
		return
	}
	if n := estimate(text, lim.Items); n > lim.Items {
		diags.Add(diag.New(codeLimit, at(1, 1), "", "the file may hold about %d YAML items, more than the limit of %d; split it", n, lim.Items))
		return
	}
	docs, err := nodes(text)
	if err != nil {
		diags.Add(syntaxDiag(index, text, err))
	}
	// A syntax error in a later document does not hide what the earlier ones say.
	count := len(docs)
	for i, root := range docs {
		d := &Document{File: index, Name: name, Index: i, Count: count, Root: root, Data: data}
		before := diags.Errors()
		if vet(d, lim, diags) {
			d.Flawed = diags.Errors() > before
			visit(d, diags)
		}
	}
}

// nodes decodes all documents to the end of the text: what stands after a document and begins no other is an error, where decoding once would drop it in
// silence. The yaml package reads untrusted input here, so a panic in it becomes an error.
func nodes(text []byte) (docs []*Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("yaml: the decoder failed on this file")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n Node
		if err := dec.Decode(&n); err == io.EOF {
			return docs, nil
		} else if err != nil {
			return docs, err
		}
		docs = appendRoot(docs, &n)
	}
}

// appendRoot drops empty documents: comments alone, or nothing between two markers.
func appendRoot(docs []*Node, n *Node) []*Node {
	if n.Kind == 0 || len(n.Content) == 0 {
		return docs
	}
	root := n.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Value == "" {
		return docs
	}
	return append(docs, root)
}

// badByte finds the first character that no policy text may hold: invalid UTF-8, NUL, other control characters, a byte order mark inside the text, and line breaks
// that YAML 1.1 knows and people do not see, so that what reads as a comment would be policy.
func badByte(text []byte) (line, col int, what string) {
	if utf8.Valid(text) && !bytes.ContainsFunc(text, control) && !loneCR(text) {
		return 0, 0, ""
	}
	line, col = 1, 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			return line, col, "bytes that are not UTF-8"
		case r == 0:
			return line, col, "a NUL character"
		case hiddenBreak(r), r == '\r' && loneCR(text[:min(2, len(text))]):
			return line, col, fmt.Sprintf("the character %U, which ends a line for YAML and not for a reader", r)
		case control(r):
			return line, col, fmt.Sprintf("the control character %U", r)
		case r == '\n':
			line, col = line+1, 1
		default:
			col++
		}
		text = text[n:]
	}
	return 0, 0, ""
}

// control reports whether a character is refused even in quotes: those that YAML forbids (YAML 1.2.2, section 5.1) and hidden line breaks.
func control(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 || hiddenBreak(r) || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// hiddenBreak reports whether a character is a line break of YAML 1.1 (section 5.4) that editors show as part of a line.
func hiddenBreak(r rune) bool { return r == 0x85 || r == 0x2028 || r == 0x2029 }

// loneCR reports whether a text has a carriage return that no line feed follows.
func loneCR(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\r')
		if i < 0 {
			return false
		}
		if i+1 >= len(text) || text[i+1] != '\n' {
			return true
		}
		text = text[i+2:]
	}
}

// estimate is an upper bound on the nodes a text can decode to: each node but the first few is announced by an indicator or a line of its own. When the length
// alone keeps the text below a limit, that is the answer.
func estimate(text []byte, limit int) int {
	if n := 4 + 3*len(text); n <= limit {
		return n
	}
	n := 4
	// Beyond blanks, an indicator may touch flow indicators, quotes, and line breaks that only YAML knows.
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte(",[]{}\"'", c) < 0 }
	prev := byte('\n')
	for i, c := range text {
		next := byte('\n')
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch c {
		case '\n', '\r', 0x85, 0xa8, 0xa9: // the last three end U+0085, U+2028 and U+2029
			n++
		case ',':
			n += 2 // a key, and the null of a key without a value
		case '[', '{':
			n += 3 // itself, and what a comma announces
		case '-':
			if !plain(next) {
				n++
			}
		case '?':
			if !plain(next) {
				n += 2 // a mapping, and the null of its value
			}
		case ':':
			if !plain(prev) {
				n++ // the null of a missing key
			}
			if !plain(prev) || !plain(next) {
				n++
			}
		}
		prev = c
	}
	return n
}
