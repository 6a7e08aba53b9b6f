package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
		if c.partial {
			*looser = append(*looser, finding{field: "files", entry: f.dest, undecided: true, witness: fmt.Sprintf("%s of %s on %s%s: %s -> %s", f.dest, f.harness, f.os, what, from, to)})
		}
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
			if c.partial && !explained(a, b, old, new) {
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
	if c.partial {
		for _, m := range []struct {
			from, to map[string]bool
			into     *[]finding
		}{{managed, still, looser}, {still, managed, tighter}} {
			for h := range m.from {
				if !m.to[h] {
					*m.into = append(*m.into, finding{field: "harnesses." + h, witness: "harness " + h + ": managed -> not managed"})
				}
			}
		}
		byWitness := func(a, b finding) int { return strings.Compare(a.witness, b.witness) }
		slices.SortFunc((*looser)[known[0]:], byWitness)
		slices.SortFunc((*tighter)[known[1]:], byWitness)
	}
	slices.SortFunc(g.Files, func(a, b FileChange) int {
		return cmp.Or(strings.Compare(a.Harness, b.Harness), strings.Compare(a.OS, b.OS), strings.Compare(a.Dest, b.Dest))
	})
	return nil
}

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
