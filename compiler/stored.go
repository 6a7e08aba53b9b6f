package compiler

import (
	"crypto/sha256"
	"maps"
	"slices"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/tape"
)

// identity identifies everything that the gaps of a plan depend on, beside the program.
func (p *Plan) identity(org, gatewayURL string, models map[string]string) [sha256.Size]byte {
	t := tape.Writer(make([]byte, 0, 512))
	digest := p.Policy.Digest()
	t.Bytes(digest[:])
	names := slices.Sorted(maps.Keys(models))
	for _, s := range append([]string{org, gatewayURL}, names...) {
		t.Str(&s)
	}
	for _, alias := range names {
		model := models[alias]
		t.Str(&model)
	}
	text, _ := t.Text()
	return sha256.Sum256(text)
}

// gaps walks the gaps of all renderings of a plan. Most stand there for each system, so each different text is there once.
func (p *Plan) gaps(t *tape.Tape) {
	var texts []string
	index := map[string]uint64{}
	if !t.Reading() {
		add := func(s string) {
			if _, ok := index[s]; !ok {
				index[s] = uint64(len(texts))
				texts = append(texts, s)
			}
		}
		for _, r := range p.Renderings {
			for _, g := range r.Gaps {
				for _, s := range append([]string{string(g.Concept), g.Field, g.Entry, g.Reason, g.Remedy}, g.Bypass...) {
					add(s)
				}
			}
		}
	}
	tape.Each(t, &texts, t.Str)
	str := func(s *string) {
		n := index[*s]
		t.Num(&n)
		if !t.Reading() {
			return
		}
		if n >= uint64(len(texts)) {
			t.Fail()
			return
		}
		*s = texts[n]
	}
	for _, r := range p.Renderings {
		tape.Each(t, &r.Gaps, func(g *harness.Gap) {
			g.Harness, g.OS = r.Harness.ID, r.OS
			for _, s := range []*string{(*string)(&g.Concept), &g.Field, &g.Entry, &g.Reason, &g.Remedy} {
				str(s)
			}
			grade := uint64(g.Grade)
			t.Num(&grade)
			g.Grade = harness.Grade(grade)
			tape.Each(t, &g.Bypass, str)
		})
	}
}

// stored returns the gaps of a plan as a text.
func (p *Plan) stored() []byte {
	t := tape.Writer(make([]byte, 0, 4096))
	p.gaps(t)
	text, _ := t.Text()
	return text
}

// recall gives a plan the gaps that an earlier run found, or reports that it has none.
func (p *Plan) recall(text string) bool {
	t := tape.Reader(text)
	p.gaps(t)
	if t.Done() {
		return true
	}
	for _, r := range p.Renderings {
		r.Gaps = nil
	}
	return false
}
