package policy

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

// RootFile is the name of the root document.
const RootFile = "halos.yaml"

// PackReader checks the bytes of a packs/NAME/pack.yaml and returns its findings; file is the file index for their places.
type PackReader func(name string, data []byte, file int) []diag.Diagnostic

// Options of Load.
type Options struct {
	Limits source.Limits
	// Workers is the number of files read at a time; 0 means one per processor.
	Workers int
	// ReadPack checks pack files. Nil skips their content.
	ReadPack PackReader
	// Inspect, when set, sees the bytes of every file that is read once, and reports whether it found anything. It is called concurrently and must not keep them.
	Inspect func(file int, data []byte) bool
	// Memory, when set, saves reading files that an earlier run read and found nothing in.
	Memory Memory
	// Question, when set, reads only what can matter to it.
	Question *Question
}

// Load reads a policy repo. It always returns a Repo; what could not be read is in diags.
func Load(ctx context.Context, fsys fs.FS, opts Options, diags *diag.List) *Repo {
	repo := &Repo{}
	root := func(file, format string, args ...any) {
		d := diag.New(codeRoot, 0, "", format, args...)
		d.File = file
		diags.Add(d)
	}
	switch info, err := fs.Lstat(fsys, RootFile); {
	case err != nil || info.IsDir():
		root(".", "there is no %s here; run halo in a policy repo or name one with --policy-dir", RootFile)
		return repo
	case !info.Mode().IsRegular():
		root(RootFile, "%s is not a regular file", RootFile)
		return repo
	}
	var in source.Interner
	var slots slots
	// DefenseClaw's switches are unset by null, which its own example writes out.
	opt := source.Options{Nullable: "openshell.admin.allow_", Limits: opts.Limits, Workers: opts.Workers, Inspect: opts.Inspect, SkipDir: skipDir, Extra: referenced,
		Raw: func(name string) bool { return PackName(name) != "" || otherFile(name) }}
	held := held{Question: opts.Question}
	if opts.Question != nil {
		// Packs and the files that documents name are for lint to judge: what a ring may reach is in the documents.
		opt.Needless, opt.Extra = held.needless, nil
	}
	if opts.Memory != nil {
		opt.Recall = func(index int, name string) (source.File, bool) {
			f, text, ok := opts.Memory.Document(name)
			if !ok {
				return f, false
			}
			doc, ok := restore(text, name, index)
			if ok {
				slots.put(index, 0, doc)
			}
			return f, ok
		}
	}
	see := func(doc *source.Document, out *diag.List) {
		typed := visit(doc, &in, out, opts.ReadPack)
		if typed == nil {
			return
		}
		slots.put(doc.File, doc.Index, typed)
		if opts.Memory == nil || doc.Count > 1 || doc.Noted || out.Len() > 0 {
			return
		}
		if text, ok := store(typed); ok {
			opts.Memory.KeepDocument(doc.Name, text)
		}
	}
	repo.Files = source.Read(ctx, fsys, opt, diags, see)
	if opts.Question != nil {
		held.release(&slots, func(f heldFile) {
			if i, ok := repo.Files.Index(f.name); ok {
				source.Visit(i, f.name, f.data, opt, diags, see)
			}
		})
		repo.Left = slices.Sorted(maps.Keys(held.files))
	} else {
		repo.Strays = strays(fsys)
	}
	assemble(repo, slots.sorted(), diags)
	if repo.Root == nil && diags.Errors() == 0 {
		root(RootFile, "%s is empty; write org: and the name of the organization", RootFile)
	}
	return repo
}

// skipDir leaves out what is never policy: packs and OpenShell files at the root, and releases.
func skipDir(fsys fs.FS, dir string) bool {
	if dir == "packs" || dir == "openshell" {
		return true
	}
	return isRelease(fsys, dir)
}

// isRelease reports whether a directory holds a halo release: the three files that every release has.
func isRelease(fsys fs.FS, dir string) bool {
	for _, f := range []string{"manifest.json", "SHA256SUMS", "coverage.json"} {
		info, err := fs.Lstat(fsys, path.Join(dir, f))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// referenced lists the files that documents may name.
func referenced(fsys fs.FS) []string {
	return append(append(packFiles(fsys), openshellFiles(fsys)...), WorkspaceFile)
}

// otherFile reports whether a file is one that documents name and that is no document itself.
func otherFile(name string) bool {
	return name == WorkspaceFile || strings.HasPrefix(name, "openshell/")
}

// openshellFiles lists everything below openshell/.
func openshellFiles(fsys fs.FS) []string { return filesBelow(fsys, "openshell") }

// strays lists what lies below packs/ and is no pack. A link in packs/ itself is refused, as a pack.
func strays(fsys fs.FS) []string {
	packs := packFiles(fsys)
	return slices.DeleteFunc(filesBelow(fsys, "packs"), func(name string) bool { return PackName(name) != "" || slices.Contains(packs, name) })
}

// filesBelow lists the files below a directory, but for names that begin with a dot.
func filesBelow(fsys fs.FS, dir string) []string {
	var out []string
	// An error ends the walk of a directory; a file below it that a document names is then missed by name.
	_ = fs.WalkDir(fsys, dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir():
			out = append(out, p)
		}
		return nil
	})
	return out
}

// packFiles lists packs/NAME/pack.yaml.
func packFiles(fsys fs.FS) []string {
	entries, err := fs.ReadDir(fsys, "packs")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			out = append(out, "packs/"+e.Name()+"/pack.yaml")
		case e.Type()&fs.ModeSymlink != 0:
			out = append(out, "packs/"+e.Name()) // refused by name, rather than missing in silence
		}
	}
	return out
}

// PackName returns the name of the pack whose file this is, or "".
func PackName(file string) string {
	dir, base := path.Split(file)
	if base != "pack.yaml" || path.Dir(path.Clean(dir)) != "packs" {
		return ""
	}
	return path.Base(dir)
}

// visit turns one document into its typed form, or nil.
func visit(doc *source.Document, in *source.Interner, diags *diag.List, readPack PackReader) any {
	if doc.Root == nil && otherFile(doc.Name) {
		return &RepoFile{Name: in.Intern(doc.Name), File: doc.File}
	}
	if doc.Root == nil {
		p := &PackFile{Name: in.Intern(PackName(doc.Name)), File: doc.File, CRLF: bytes.Contains(doc.Data, []byte("\r\n"))}
		if readPack != nil {
			diags.Add(readPack(doc.Name, doc.Data, doc.File)...)
		}
		p.Bad = diags.Errors() > 0
		return p
	}
	pos := diag.NewPos(doc.File, doc.Root.Line, doc.Root.Column)
	d := &source.Decoder{File: doc.File, Diags: diags, In: in}
	kind, kindNode := "", source.Get(doc.Root, "kind")
	if kindNode != nil && source.IsScalar(kindNode) {
		kind = kindNode.Value
	}
	before := diags.Errors()
	if doc.Name == RootFile {
		if doc.Count > 1 {
			if doc.Index == 1 {
				diags.Add(diag.New(codeOneRoot, pos, "", "%s holds %d documents, want exactly one", RootFile, doc.Count))
			}
			if doc.Index > 0 {
				return nil
			}
		}
		if kindNode != nil && kind != "Halos" {
			d.Diags.Add(*d.Report(codeOneRoot, kindNode, "%s is of kind %s, want Halos", RootFile, cmp.Or(kind, "nothing")))
			return nil
		}
		d.Doc = "Halos"
		version(d, doc.Root, false)
		h := halosMapping.read(d, doc.Root, &Halos{Header: Header{Kind: "Halos", Pos: pos}})
		h.Bad = doc.Flawed || diags.Errors() > before
		return h
	}
	if kind == "" {
		if kindNode == nil || source.IsScalar(kindNode) {
			x := d.Report(codeHeader, doc.Root, "document %d declares no kind; kinds are %s", doc.Index+1, strings.Join(Kinds, ", "))
			diags.Add(*x)
		} else {
			diags.Add(*d.Report(codeHeader, kindNode, "kind is not a word; kinds are %s", strings.Join(Kinds, ", ")))
		}
		return nil
	}
	d.Doc = kind
	if n := source.Get(doc.Root, "name"); n != nil && source.IsScalar(n) {
		d.Doc = in.Intern(kind + "/" + n.Value)
	}
	d.Enter("kind")
	ok := knownKind(d, kindNode, kind)
	d.Leave()
	if !ok {
		return nil
	}
	version(d, doc.Root, true)
	typed := document(d, kind, doc.Root, pos)
	typed.head().Bad = doc.Flawed || diags.Errors() > before
	return typed
}

func knownKind(d *source.Decoder, n *source.Node, kind string) bool {
	switch {
	case slices.Contains(Kinds, kind):
		return true
	case kind == "Halos":
		d.Diags.Add(*d.Report(codeOneRoot, n, "kind Halos belongs in %s at the root of the repo, and nowhere else", RootFile))
	case kind == "Experiment" || kind == "Toggle" || kind == "Rollout":
		x := d.Report(codeKind, n, "kind %s is not supported by halo", kind)
		x.Hint = notHere
		d.Diags.Add(*x)
	default:
		x := d.Report(codeKind, n, "unknown kind %s; kinds are %s", strconv.Quote(kind), strings.Join(Kinds, ", "))
		if near := diag.Nearest(kind, Kinds); near != "" {
			x.Hint = "did you mean " + near + "?"
		}
		d.Diags.Add(*x)
	}
	return false
}

func version(d *source.Decoder, root *source.Node, must bool) {
	n := source.Get(root, "apiVersion")
	if n == nil {
		if must {
			x := d.Report(codeHeader, root, "apiVersion is missing")
			x.Path, x.Hint = "apiVersion", "write apiVersion: halos.dev/v1"
			d.Diags.Add(*x)
		}
		return
	}
	d.Enter("apiVersion")
	defer d.Leave()
	v := d.String(n)
	if !v.IsSet() {
		return
	}
	switch APIVersion(v.V) {
	case V1:
	case V1Alpha1:
		// Once for each file, whose findings d.Diags holds.
		if slices.ContainsFunc(d.Diags.Sorted(), func(x diag.Diagnostic) bool { return x.Code == codeOldVersion }) {
			return
		}
		d.Diags.Add(*d.Report(codeOldVersion, n, "apiVersion halos.dev/v1alpha1 is old; write halos.dev/v1"))
	default:
		x := d.Report(codeAPIVersion, n, "unknown apiVersion %s", strconv.Quote(v.V))
		x.Hint = "write apiVersion: halos.dev/v1"
		d.Diags.Add(*x)
	}
}
