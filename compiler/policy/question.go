package policy

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// Question limits Load to the documents that decide about one ring with some units. A file is left out only when every document in it is plainly of a kind
// that cannot matter, or a unit that is not asked about; a file written in any unusual way is read.
type Question struct {
	Units []string
	// Alone says that no ring matters but Ring, or the default ring when that is "": profiles that it does not lead to are left out too.
	Alone bool
	Ring  string
}

// skippable are the kinds that no question about a ring needs.
var skippable = []string{"PolicyTest"}

// held keeps the files of one profile each until it is known which of them a question needs.
type held struct {
	*Question
	mu    sync.Mutex
	files map[string][]heldFile
}

// heldFile is a file that was read and not decoded.
type heldFile struct {
	name string
	data []byte
}

// needless reports whether a file cannot matter to the question, or is held until it does.
func (h *held) needless(name string, data []byte) bool {
	if name == RootFile {
		return false
	}
	if bytes.IndexByte(data, '\\') >= 0 {
		// An escape can spell a key in another way.
		return false
	}
	kinds, profiles := 0, 0
	for rest := data; ; {
		i := bytes.Index(rest, []byte("kind"))
		if i < 0 {
			break
		}
		at := len(data) - len(rest) + i
		rest = rest[i+4:]
		value, ok := bytes.CutPrefix(rest, []byte(": "))
		if !ok || at > 0 && data[at-1] != '\n' {
			// The word elsewhere, such as in a comment or a quoted key: read the file rather than guess.
			return false
		}
		switch kind := string(restOfLine(value)); {
		case slices.Contains(skippable, kind):
		case kind == "Unit" && len(h.Units) == 0:
		case kind == "Profile" && h.Alone:
			profiles++
		default:
			return false
		}
		kinds++
	}
	if profiles == 0 {
		return kinds > 0
	}
	return kinds == 1 && h.hold(name, data)
}

func restOfLine(text []byte) []byte {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	return bytes.TrimRight(text, " \r")
}

// hold keeps a file with one profile when the profile's name is plain to see.
func (h *held) hold(file string, data []byte) bool {
	key := []byte("\nname: ")
	if bytes.Count(data, key) != 1 {
		return false
	}
	name := restOfLine(data[bytes.Index(data, key)+len(key):])
	if len(name) == 0 || bytes.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[string][]heldFile{}
	}
	h.files[string(name)] = append(h.files[string(name)], heldFile{file, bytes.Clone(data)})
	return true
}

// release decodes the held files of the profiles that the ring leads to. Whatever is not as expected, such as a name that no profile has or the root keys of simple
// mode, makes it decode all of them: then the question is answered as one about the whole repo.
func (h *held) release(docs *slots, decode func(heldFile)) {
	take := func(name string) {
		for _, f := range h.files[name] {
			decode(f)
		}
		delete(h.files, name)
	}
	name, ok := h.start(docs)
	for seen := map[string]bool{}; ok && name != "" && !seen[name]; {
		seen[name] = true
		take(name)
		i := slices.IndexFunc(docs.docs, func(s slot) bool { p, is := s.doc.(*Profile); return is && p.Name.V == name })
		if ok = i >= 0; ok {
			name = docs.docs[i].doc.(*Profile).Extends.V
		}
	}
	if !ok {
		for _, name := range slices.Sorted(maps.Keys(h.files)) {
			take(name)
		}
	}
}

// start returns the profile of the ring that is asked about. It is false when there is not exactly one such ring.
func (h *held) start(docs *slots) (profile string, ok bool) {
	rings, plain := 0, false
	for _, s := range docs.docs {
		switch d := s.doc.(type) {
		case *Halos:
			plain = d.Simple == nil
		case *Ring:
			if h.Ring == d.Name.V || h.Ring == "" && d.Membership.Default.V {
				profile = d.Profile.V
				rings++
			}
		}
	}
	return profile, plain && rings == 1 && profile != ""
}
