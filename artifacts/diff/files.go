package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/openshell"
)

// files compares what is rendered. Between two policies files only show what the settings say already; where a side is a release, they are all there is to say
// about everything but egress.
func (c *comparison) files(g *Group, old, new *target, looser, tighter *[]finding) error {
	g.Files = []FileChange{}
	if old.content == new.content {
		return nil
	}
	known := []int{len(*looser), len(*tighter)}
	type key struct{ harness, os, dest string }
	before := map[key]*file{}
	for i := range old.content.files {
		f := &old.content.files[i]
		before[key{f.harness, f.os, f.dest}] = f
	}
	managed, still := old.content.harnesses, new.content.harnesses
	unknown := func(f *file, what, from, to string) {
		if !c.partial {
			return
		}
		at := f.dest + " of " + f.harness
		if f.os != "" {
			at += " on " + f.os
		}
		*looser = append(*looser, finding{field: "files", entry: f.dest, undecided: true, witness: fmt.Sprintf("%s%s: %s -> %s", at, what, from, to)})
	}
	for i := range new.content.files {
		f := &new.content.files[i]
		k := key{f.harness, f.os, f.dest}
		o := before[k]
		delete(before, k)
		x := FileChange{Harness: f.harness, OS: f.os, Dest: f.dest}
		switch {
		case o == nil:
			x.Change = "new"
			data, err := f.read()
			if err != nil {
				return err
			}
			x.Added = len(lines(data))
			if managed[f.harness] {
				unknown(f, "", "none", "new file")
			}
		case !o.equal(f):
			x.Change = "changed"
			a, err := o.read()
			if err != nil {
				return err
			}
			b, err := f.read()
			if err != nil {
				return err
			}
			x.Added, x.Removed = lineCounts(a, b)
			if strings.HasPrefix(f.harness, openshellOf("")) {
				if err := openshells(o, f, a, b, looser, tighter); err != nil {
					return err
				}
			} else if c.partial && !explained(a, b, old, new) {
				unknown(f, ", beside hosts", "known", "not known")
			}
		case o.attributes != f.attributes:
			x.Change = "mode"
			unknown(f, "", o.attributes, f.attributes)
		default:
			continue
		}
		g.Files = append(g.Files, x)
	}
	for k, f := range before {
		data, err := f.read()
		if err != nil {
			return err
		}
		g.Files = append(g.Files, FileChange{k.harness, k.os, k.dest, "gone", 0, len(lines(data))})
		if still[k.harness] {
			unknown(f, "", "there", "gone")
		}
	}
	unmanaged := func(from, to map[string]bool, into *[]finding) {
		for h := range from {
			agent := strings.HasPrefix(h, openshellOf(""))
			switch {
			case to[h] || !agent && !c.partial: // between two policies the comparison of settings sees harnesses
			case agent:
				*into = append(*into, finding{field: "sandbox.policy", witness: h + ": has a policy.yaml -> has none"})
			default:
				*into = append(*into, finding{field: "harnesses." + h, witness: "harness " + h + ": managed -> not managed"})
			}
		}
	}
	unmanaged(managed, still, looser)
	unmanaged(still, managed, tighter)
	byWitness := func(a, b finding) int { return strings.Compare(a.witness, b.witness) }
	slices.SortFunc((*looser)[known[0]:], byWitness)
	slices.SortFunc((*tighter)[known[1]:], byWitness)
	slices.SortFunc(g.Files, func(a, b FileChange) int {
		return cmp.Or(strings.Compare(a.Harness, b.Harness), strings.Compare(a.OS, b.OS), strings.Compare(a.Dest, b.Dest))
	})
	return nil
}

// openshells compares two versions of an agent's policy.yaml, of which a release has the bytes only.
func openshells(old, new *file, a, b []byte, looser, tighter *[]finding) error {
	parse := func(f *file, data []byte) (*openshell.Policy, error) {
		if f.policy != nil {
			return f.policy, nil
		}
		p, found := openshell.Parse(0, data)
		if openshell.HasErrors(found) {
			return nil, fmt.Errorf("%s is not a policy.yaml that halo writes", f.path)
		}
		return p, nil
	}
	x, err := parse(old, a)
	if err != nil {
		return err
	}
	y, err := parse(new, b)
	if err != nil {
		return err
	}
	compare := func(base, next *openshell.Policy, into *[]finding) {
		if w, ok := openshell.Looser(base, next); ok {
			*into = append(*into, finding{field: "sandbox.policy", witness: old.harness + allows + w.String(), undecided: strings.HasPrefix(w.What, "cannot be compared")})
		}
	}
	compare(x, y, looser)
	compare(y, x, tighter)
	return nil
}

// The middle of a witness about policy.yaml, as the looser one has it and turned round.
const allows, allowed = ", newly allowed: ", ", no longer allowed: "

func lines(data []byte) []string {
	text := strings.TrimSuffix(string(data), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// lineCounts counts the lines that only one of two files has.
func lineCounts(a, b []byte) (added, removed int) {
	left := map[string]int{}
	for _, l := range lines(a) {
		left[l]++
		removed++
	}
	for _, l := range lines(b) {
		if left[l] > 0 {
			left[l]--
			removed--
			continue
		}
		added++
	}
	return added, removed
}

// explained reports whether two files differ only in words that name a host whose rules differ: with those words left out, the rest is the same in the same
// order. What the hosts mean is then known from the egress rules.
func explained(a, b []byte, old, new *target) bool {
	was := slices.Concat(old.hosts.AllowedHosts(), old.hosts.DeniedHosts())
	is := slices.Concat(new.hosts.AllowedHosts(), new.hosts.DeniedHosts())
	differ := slices.Concat(minus(old.hosts.AllowedHosts(), new.hosts.AllowedHosts()), minus(new.hosts.AllowedHosts(), old.hosts.AllowedHosts()),
		minus(old.hosts.DeniedHosts(), new.hosts.DeniedHosts()), minus(new.hosts.DeniedHosts(), old.hosts.DeniedHosts()))
	if len(differ) == 0 || len(was)+len(is) == 0 {
		return false
	}
	return slices.Equal(otherWords(a, differ), otherWords(b, differ))
}

// otherWords lists the words of a file that name none of the hosts.
func otherWords(data []byte, hosts []string) []string {
	words := strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune(" \t\r\n,\"'", r) })
	return slices.DeleteFunc(words, func(w string) bool {
		return slices.ContainsFunc(hosts, func(h string) bool { return namesHost(w, h) })
	})
}

// namesHost reports whether a word holds a host pattern that is not part of a longer one.
func namesHost(word, pattern string) bool {
	for at := 0; ; {
		i := strings.Index(word[at:], pattern)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(pattern)
		if (i == 0 || !hostByte(word[i-1])) && (end == len(word) || !hostByte(word[end])) {
			return true
		}
		at = i + 1
	}
}

func hostByte(c byte) bool {
	return c == '.' || c == '-' || c == '*' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
