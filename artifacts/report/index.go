package report

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler/policy"
)

// reporter writes one page. Targets that get the same are told of once: a large organization has thousands of targets and few policies.
type reporter struct {
	Input
	page
	rings   []ring
	targets []*target
	// contents and policies are the different sets of files and of egress rules, in the order of the targets that first have them.
	contents []*content
	policies []*hosts
	// order is the position of a target in targets, ringOnly how many of them are a ring alone.
	order    map[string]int
	ringOnly int
	// joined and distinct are made when they are first asked for.
	joined   []*gap
	distinct []*matrix
}

// target is a ring with units on all systems.
type target struct {
	id, ring, profile string
	units             []string
	content, policy   int
	// files counts the files on each of policy.OSes.
	files [3]int
}

// content is a set of files and the targets that get it.
type content struct {
	targets []string
	systems []artifacts.Target
}

// hosts are egress rules and the targets that have them.
type hosts struct {
	targets []string
	artifacts.Egress
}

// digester makes a key of texts that no other texts have.
type digester struct{ buf []byte }

func (d *digester) add(texts ...string) {
	for _, s := range texts {
		d.buf = binary.AppendUvarint(d.buf, uint64(len(s)))
		d.buf = append(d.buf, s...)
	}
}

func (d *digester) list(texts []string) {
	d.buf = binary.AppendUvarint(d.buf, uint64(len(texts)))
	d.add(texts...)
}

func (d *digester) sum() [sha256.Size]byte {
	sum := sha256.Sum256(d.buf)
	d.buf = d.buf[:0]
	return sum
}

func (r *reporter) index() {
	m := r.Manifest
	r.order = map[string]int{}
	contents, policies := map[[sha256.Size]byte]int{}, map[[sha256.Size]byte]int{}
	var d digester
	for i := 0; i < len(m.Targets); {
		first := m.Targets[i]
		t := &target{id: first.ID, ring: first.Ring, profile: first.Profile, units: first.Units}
		n := 1
		for i+n < len(m.Targets) && m.Targets[i+n].ID == t.id {
			n++
		}
		systems := m.Targets[i : i+n]
		i += n
		for _, s := range systems {
			if at := slices.Index(policy.OSes, s.OS); at >= 0 {
				t.files[at] = len(s.Files)
			}
			d.add(s.OS)
			for _, f := range s.Files {
				listed, _ := m.File(f.Path)
				d.add(f.Harness, f.Dest, f.Owner, f.Mode, listed.SHA256)
			}
			d.add("")
		}
		key := d.sum()
		at, ok := contents[key]
		if !ok {
			at = len(r.contents)
			contents[key] = at
			r.contents = append(r.contents, &content{systems: systems})
		}
		t.content = at
		r.contents[at].targets = append(r.contents[at].targets, t.id)

		e := m.Egress[t.id]
		d.add(e.Default)
		d.list(e.Allowed)
		d.list(e.Denied)
		key = d.sum()
		if at, ok = policies[key]; !ok {
			at = len(r.policies)
			policies[key] = at
			r.policies = append(r.policies, &hosts{Egress: e})
		}
		t.policy = at
		r.policies[at].targets = append(r.policies[at].targets, t.id)

		r.order[t.id] = len(r.targets)
		if len(t.units) == 0 {
			r.ringOnly++
		}
		r.targets = append(r.targets, t)
	}
}

// shown is how many targets are named in a line before the rest is folded away.
const shown = 6

// who names targets: all, all rings, a few, or a number that unfolds. The page repeats long lists and so keeps them short.
func (r *reporter) who(names []string) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	known, rings := 0, 0
	for _, n := range names {
		if at, ok := r.order[n]; ok {
			known++
			if len(r.targets[at].units) == 0 {
				rings++
			}
		}
	}
	switch n := len(names); {
	case n > 1 && n == known && n == len(r.targets):
		r.put("all targets")
	case n > 1 && n == rings && n == r.ringOnly:
		r.put("all rings")
	default:
		r.fold(names, "targets")
	}
}

// fold writes names, a long list behind its first few.
func (r *reporter) fold(names []string, what markup) {
	if len(names) <= shown {
		for i, n := range names {
			if i > 0 {
				r.put(" ")
			}
			r.put("<span class=nb>{}", n)
			if i < len(names)-1 {
				r.put(",")
			}
			r.put("</span>")
		}
		return
	}
	r.put("<details><summary>{} {}: {}, …</summary>", len(names), what, names[0])
	r.words(names)
	r.put("</details>")
}

// systems writes the names of operating systems as people know them.
func (r *reporter) systems(oss []string) {
	if len(oss) == len(policy.OSes) {
		r.put("all")
		return
	}
	for i, os := range oss {
		if i > 0 {
			r.put(", ")
		}
		r.put("{}", system(os))
	}
}

// system is the name of an operating system as people know it.
func system(os string) string {
	switch os {
	case "darwin":
		return "macOS"
	case "linux":
		return "Linux"
	case "windows":
		return "Windows"
	}
	return os
}
