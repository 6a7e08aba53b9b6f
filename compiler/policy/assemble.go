package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"halos.dev/halo/compiler/diag"
)

// slots collects documents from concurrent visits and gives them back in file order.
type slots struct {
	mu   sync.Mutex
	docs []slot
}

type slot struct {
	file, index int
	doc         any
}

func (s *slots) put(file, index int, doc any) {
	s.mu.Lock()
	s.docs = append(s.docs, slot{file, index, doc})
	s.mu.Unlock()
}

func (s *slots) sorted() []slot {
	slices.SortFunc(s.docs, func(a, b slot) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.index, b.index)) })
	return s.docs
}

// assemble puts the documents into the repo and refuses two of one name.
func assemble(r *Repo, docs []slot, diags *diag.List) {
	for _, s := range docs {
		if h, ok := s.doc.(headed); ok {
			r.Documents = append(r.Documents, h.head())
		}
		switch d := s.doc.(type) {
		case *Halos:
			r.Root = d
		case *Gateway:
			if r.Gateway != nil {
				x := diag.New(codeDuplicate, d.Pos, "", "a repo has at most one Gateway")
				x.Document = d.ID()
				diags.Add(x.WithRelated(r.Gateway.Pos, "the first one"))
				continue
			}
			r.Gateway = d
		case *Preset:
			if _, builtin := BuiltinPatterns(d.Name.V); builtin {
				x := diag.New(codeDuplicate, d.Name.Pos, "name", "preset %q is built in; give your own preset another name", d.Name.V)
				x.Document = d.ID()
				diags.Add(x)
			}
			r.Presets = append(r.Presets, d)
		case *Profile:
			r.Profiles = append(r.Profiles, d)
		case *Ring:
			r.Rings = append(r.Rings, d)
		case *Unit:
			r.Units = append(r.Units, d)
		case *PolicyTest:
			r.Tests = append(r.Tests, d)
		case *Exception:
			r.Exceptions = append(r.Exceptions, d)
		case *Sandbox:
			r.Sandboxes = append(r.Sandboxes, d)
		case *PackFile:
			r.Packs = append(r.Packs, d)
		case *RepoFile:
			r.Others = append(r.Others, d)
		}
	}
	r.Presets = unique(r.Presets, diags)
	r.Profiles = unique(r.Profiles, diags)
	r.Rings = unique(r.Rings, diags)
	r.Units = unique(r.Units, diags)
	r.Tests = unique(r.Tests, diags)
	r.Exceptions = unique(r.Exceptions, diags)
	r.Sandboxes = unique(r.Sandboxes, diags)
	if r.Root != nil {
		r.expand(diags)
	}
	for _, s := range docs {
		switch d := s.doc.(type) {
		case *Gateway:
			d.miss(diags, map[string]bool{"baseURL": d.BaseURL.IsSet()})
		case *Ring:
			d.miss(diags, map[string]bool{"order": d.Order.IsSet(), "profile": d.Profile.IsSet()})
		}
	}
}

// miss reports the keys that a document lacks and that nothing gave it.
func (h *Header) miss(diags *diag.List, given map[string]bool) {
	for _, l := range h.lacks {
		if !given[l.key] {
			h.Bad = true
			diags.Add(l.finding)
		}
	}
}

// unique sorts documents by name, keeps the first of each name and reports the others. Documents whose name could not be read are dropped: the
// name was reported.
func unique[T headed](docs []T, diags *diag.List) []T {
	slices.SortStableFunc(docs, func(a, b T) int { return strings.Compare(a.head().Name.V, b.head().Name.V) })
	var out []T
	for _, d := range docs {
		h := d.head()
		if h.Name.V == "" {
			continue
		}
		if n := len(out); n > 0 && out[n-1].head().Name.V == h.Name.V {
			x := diag.New(codeDuplicate, h.Name.Pos, "name", "there are two documents %s", h.ID())
			x.Document = h.ID()
			diags.Add(x.WithRelated(out[n-1].head().Name.Pos, "the first one"))
			continue
		}
		out = append(out, d)
	}
	return out
}

// find looks a document up by name in a list that unique sorted.
func find[T headed](docs []T, name string) (found T) {
	if i, ok := slices.BinarySearchFunc(docs, name, func(d T, name string) int { return strings.Compare(d.head().Name.V, name) }); ok {
		found = docs[i]
	}
	return found
}

// Locate fills in the document that a finding lies in, unless it says one, and for a value of simple mode the key that the author wrote.
func (r *Repo) Locate(d *diag.Diagnostic) {
	h := r.DocumentAt(d.Pos)
	if h == nil {
		return
	}
	if d.Document == "" {
		d.Document = h.ID()
	}
	if h.Kind == "Halos" {
		if key := r.Root.Simple.Key(d.Pos); key != "" {
			d.Path = key
		}
	}
}

// DocumentAt returns the document that a place lies in, or nil.
func (r *Repo) DocumentAt(p diag.Pos) *Header {
	if !p.IsValid() {
		return nil
	}
	i, ok := slices.BinarySearchFunc(r.Documents, p, func(h *Header, p diag.Pos) int { return cmp.Compare(h.Pos, p) })
	if !ok {
		i--
	}
	if i < 0 || r.Documents[i].Pos.File() != p.File() {
		return nil
	}
	return r.Documents[i]
}
