package cache

import (
	"crypto/sha256"
	"maps"
	"slices"

	"halos.dev/halo/compiler/source"
	"halos.dev/halo/compiler/tape"
)

// parts are what a run made of its files, in the texts of package compiler: the documents of files and the gaps of plans.
type parts struct {
	documents map[string]document
	plans     map[[sha256.Size]byte]string
	// fresh is how many of them no earlier run made. While those are less than a hundredth, it costs less to make them again.
	fresh int
}

// document is what was made of a file with some content.
type document struct {
	content, text string
}

func newParts() parts {
	return parts{documents: map[string]document{}, plans: map[[sha256.Size]byte]string{}}
}

// size is about how many bytes they have as text.
func (p *parts) size() int {
	n := 64 << 10
	for name, d := range p.documents {
		n += len(name) + len(d.content) + len(d.text) + 8
	}
	for of, text := range p.plans {
		n += len(of) + len(text) + 4
	}
	return n
}

func (p *parts) tape(t *tape.Tape) {
	names := slices.Sorted(maps.Keys(p.documents))
	tape.Each(t, &names, func(name *string) {
		if len(p.documents) == 0 {
			// Maps that grow are written several times.
			p.documents = make(map[string]document, len(names))
		}
		d := p.documents[*name]
		t.Str(name)
		t.Str(&d.content)
		t.Str(&d.text)
		p.documents[*name] = d
	})
	plans := slices.SortedFunc(maps.Keys(p.plans), func(a, b [sha256.Size]byte) int { return slices.Compare(a[:], b[:]) })
	tape.Each(t, &plans, func(of *[sha256.Size]byte) {
		t.Bytes(of[:])
		text := p.plans[*of]
		t.Str(&text)
		p.plans[*of] = text
	})
}

// follow makes the run that is recorded the one after a run that made parts.
func (r *Recorder) follow(earlier parts) {
	r.earlier = earlier
	r.made.documents = make(map[string]document, len(earlier.documents))
	r.made.plans = make(map[[sha256.Size]byte]string, len(earlier.plans))
}

// parts returns what the run made, each document with the content that it was made of.
func (r *Recorder) parts() parts {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range r.made.documents {
		d.content = r.seen[name].content
		r.made.documents[name] = d
	}
	return r.made
}

// Document returns what an earlier run made of a file that Look found unchanged.
func (r *Recorder) Document(file string) (f source.File, text string, ok bool) {
	k := r.known[file]
	d, ok := r.earlier.documents[file]
	if !ok || k == nil || k.stat == nil || k.content != d.content || copy(f.Digest[:], k.content[1:]) < sha256.Size {
		return f, "", false
	}
	f.Name, f.Size = file, k.stat.Size()
	r.note(file, contentOf, k.content)
	r.mu.Lock()
	r.made.documents[file] = d
	r.mu.Unlock()
	return f, d.text, true
}

// KeepDocument keeps what the run made of a file.
func (r *Recorder) KeepDocument(file string, text []byte) {
	r.mu.Lock()
	r.made.documents[file] = document{text: string(text)}
	r.made.fresh++
	r.mu.Unlock()
}

// Plan returns what an earlier run made of a plan.
func (r *Recorder) Plan(of [sha256.Size]byte) (text string, ok bool) {
	text, ok = r.earlier.plans[of]
	if ok {
		r.mu.Lock()
		r.made.plans[of] = text
		r.mu.Unlock()
	}
	return text, ok
}

// KeepPlan keeps what the run made of a plan.
func (r *Recorder) KeepPlan(of [sha256.Size]byte, text []byte) {
	r.mu.Lock()
	r.made.plans[of] = string(text)
	r.made.fresh++
	r.mu.Unlock()
}
