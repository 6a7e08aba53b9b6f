package effective

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Fate is what became of a value that a layer wrote.
type Fate uint8

// A value InEffect is one of the effective policy. Beaten was written again, or its list replaced, by a later layer. Repeated says what another place says
// already. Narrowed is what a unit wrote and another unit of the set does not allow.
const (
	InEffect Fate = iota
	Beaten
	Repeated
	Narrowed
)

// String returns the word used in output.
func (f Fate) String() string {
	return [...]string{"in effect", "beaten", "repeated", "narrowed"}[min(f, Narrowed)]
}

// Written is a value as one layer wrote it, with what became of it. By is the document that decided so, nil for a value in effect and for one that all units
// of a set narrowed together.
type Written struct {
	Value
	Fate Fate
	By   *policy.Header
}

// Layer is what one document of a chain wrote for a field. Unit is set for an overlay.
type Layer struct {
	Doc    *policy.Header
	Unit   bool
	Values []Written
}

// Chain is how a field came to be: the layers that wrote it, the root profile first and the overlays of units last.
type Chain struct {
	Field  Field
	Layers []Layer
	// Implied are values in effect that no layer wrote: what units that apply together leave of each other.
	Implied []Value
}

// Chain returns how a field of an effective policy came to be.
func (p *Policy) Chain(f Field) Chain {
	type where struct {
		pos   diag.Pos
		value string
	}
	inEffect, first := map[where]bool{}, map[string]diag.Pos{}
	values := valuesOf(&p.Body, f)
	for _, v := range values {
		inEffect[where{v.Pos, v.Value}] = true
		if _, ok := first[v.Value]; !ok {
			first[v.Value] = v.Pos
		}
	}
	c := Chain{Field: f}
	for q := p; q != nil; q = q.Parent {
		if q.Own == nil {
			continue
		}
		l := Layer{Doc: q.Doc, Unit: len(q.Units) > 0}
		for _, v := range valuesOf(q.Own, f) {
			if f.Merging == United && v.Entry < 0 && !inEffect[where{v.Pos, v.Value}] {
				continue // an empty list adds nothing
			}
			l.Values = append(l.Values, Written{Value: v})
		}
		if len(l.Values) > 0 {
			c.Layers = append(c.Layers, l)
		}
	}
	slices.Reverse(c.Layers)
	written := map[diag.Pos]*Layer{}
	for i := range c.Layers {
		l := &c.Layers[i]
		for j := range l.Values {
			w := &l.Values[j]
			written[w.Pos] = l
			if inEffect[where{w.Pos, w.Value.Value}] {
				continue
			}
			next := slices.IndexFunc(c.Layers[i+1:], func(m Layer) bool {
				return f.Merging == Replaced || f.Merging == Keyed && slices.ContainsFunc(m.Values, func(x Written) bool { return x.Key == w.Key })
			})
			switch {
			case next >= 0:
				l2 := &c.Layers[i+1+next]
				w.By, w.Fate = l2.Doc, Beaten
				if l.Unit && l2.Unit {
					w.Fate = Narrowed
				}
			case first[w.Value.Value].IsValid():
				w.Fate = Repeated
			default:
				w.Fate = Narrowed
			}
		}
	}
	for i := range c.Layers {
		for j := range c.Layers[i].Values {
			if w := &c.Layers[i].Values[j]; w.Fate == Repeated {
				if l := written[first[w.Value.Value]]; l != nil {
					w.By = l.Doc
				}
			}
		}
	}
	for _, v := range values {
		if written[v.Pos] == nil {
			c.Implied = append(c.Implied, v)
		}
	}
	return c
}

// valuesOf lists the values of one field, the overrides of a harness key by key.
func valuesOf(b *policy.Body, f Field) []Value {
	if id, ok := strings.CutSuffix(strings.TrimPrefix(f.Key, "harnesses."), ".overrides"); ok {
		var out []Value
		pin := pinOf(b, id)
		for i, k := range slices.Sorted(maps.Keys(pin.Overrides)) {
			// Overrides are plain data, which encoding/json always writes.
			text, _ := json.Marshal(pin.Overrides[k])
			out = append(out, Value{Key: f.Key + "." + k, Value: string(text), Pos: overridePos(pin, k), Field: f.Key, Entry: i})
		}
		return out
	}
	return slices.DeleteFunc(Values(&Policy{Body: *b}), func(v Value) bool { return v.Field != f.Key })
}

// overridePos returns the place of a key of overrides: its own, or that of the first key below it that is still there.
func overridePos(pin *policy.Pin, key string) diag.Pos {
	i := slices.IndexFunc(pin.OverrideKeys, func(x source.Pair) bool {
		return x.Key.V == key || strings.HasPrefix(x.Key.V, key+".") && holds(map[string]any{key: pin.Overrides[key]}, x.Key.V)
	})
	if i < 0 {
		return pin.OverridesPos
	}
	return pin.OverrideKeys[i].Key.Pos
}

// Unset says what holds for a field that no layer wrote: its value, or "" when nothing is rendered for it, and why.
func (p *Policy) Unset(f Field) (value, why string) {
	switch {
	case f.Key == "egress.default":
		if open, _ := p.Hosts.Default(); open {
			return "allow", "no host is allowed by name, so every host on no list is allowed"
		}
		return "deny", "hosts are allowed by name, so every other host is denied"
	case f.Key == "sandbox.mode":
		if p.Sandboxed() {
			return p.Mode(), "egress rules, paths or sandboxRequired need a sandbox"
		}
		return p.Mode(), "nothing in the policy needs a sandbox"
	case f.Switch:
		return "false", "a switch that nobody sets is off"
	case f.List:
		return "[]", "nobody wrote an entry"
	}
	return "", "nothing is rendered for it, so each harness keeps its own default"
}
