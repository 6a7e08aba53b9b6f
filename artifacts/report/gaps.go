package report

import (
	"cmp"
	"slices"
	"strings"

	"halos.dev/halo/artifacts"
)

// gap is a warning of the release with everything it is said of.
type gap struct {
	code, harness, field, message string
	systems, targets              []string
}

// gapGroups joins the warnings that say the same of different targets and systems, in order of code, harness, field and message.
func (r *reporter) gapGroups() []*gap {
	if r.joined != nil {
		return r.joined
	}
	at := map[artifacts.Warning]*gap{}
	r.joined = []*gap{}
	for _, w := range r.Manifest.Warnings {
		key := artifacts.Warning{Code: w.Code, Harness: w.Harness, Field: w.Field, Message: w.Message}
		g := at[key]
		if g == nil {
			g = &gap{code: w.Code, harness: w.Harness, field: w.Field, message: w.Message}
			at[key] = g
			r.joined = append(r.joined, g)
		}
		if w.OS != "" && !slices.Contains(g.systems, w.OS) {
			g.systems = append(g.systems, w.OS)
		}
		if n := len(g.targets); w.Target != "" && (n == 0 || g.targets[n-1] != w.Target) {
			g.targets = append(g.targets, w.Target)
		}
	}
	slices.SortFunc(r.joined, func(a, b *gap) int {
		return cmp.Or(strings.Compare(a.code, b.code), strings.Compare(a.harness, b.harness), strings.Compare(a.field, b.field), strings.Compare(a.message, b.message))
	})
	return r.joined
}

func (r *reporter) gaps() {
	all := r.gapGroups()
	if len(all) == 0 {
		r.put("<p>The release has no warning.</p>\n")
		return
	}
	r.put("<p>What the policy asks for and some harness cannot hold, in full or at all. A gap of a ring is one of its units too and is listed for the ring only. Gaps that say the same are joined: ")
	r.count(len(r.Manifest.Warnings), "warning of the manifest is", "warnings of the manifest are")
	r.put(" ")
	r.count(len(all), "line", "lines")
	r.put(" here.</p>\n")
	r.gapCounts(all)
	for first := true; len(all) > 0; first = false {
		n := 1
		for n < len(all) && all[n].code == all[0].code {
			n++
		}
		code := all[0].code
		open := markup("")
		if first {
			open = " open"
		}
		r.put("<details{} id=\"{}\"><summary><b><code>{}</code> {}</b> <span class=n>{}</span></summary>\n", open, code, code, r.title(code), n)
		t := r.table("stack gaps", "{}: {}", []any{code, r.title(code)}, "Harness", "Setting", "What is not held", "Systems", "Targets")
		for _, g := range all[:n] {
			t.row(cmp.Or(g.harness, "any"), func() {
				if g.field != "" {
					r.put("<code>{}</code>", g.field)
				}
			}, strings.TrimPrefix(g.message, g.harness+": "), func() { r.systems(g.systems) }, func() { r.who(g.targets) })
		}
		t.end()
		r.put("</details>\n")
		all = all[n:]
	}
}

// title names a code in a few words.
func (r *reporter) title(code string) string {
	if r.Title == nil {
		return ""
	}
	return r.Title(code)
}

// gapCounts writes how many gaps of each code each harness has.
func (r *reporter) gapCounts(all []*gap) {
	type cell struct{ code, harness string }
	n := map[cell]int{}
	var codes, harnesses []string
	for _, g := range all {
		c := cell{g.code, g.harness}
		n[c]++
		if !slices.Contains(codes, c.code) {
			codes = append(codes, c.code)
		}
		if !slices.Contains(harnesses, c.harness) {
			harnesses = append(harnesses, c.harness)
		}
	}
	slices.Sort(harnesses)
	heads := []markup{"Gap"}
	for _, h := range harnesses {
		heads = append(heads, markup(escape(nil, cmp.Or(h, "any"))))
	}
	t := r.table("matrix counts", "Gaps by harness", nil, heads...)
	for _, code := range codes {
		cells := []any{func() { r.put("<a href=\"#{}\"><code>{}</code></a> {}", code, code, r.title(code)) }}
		for _, h := range harnesses {
			cells = append(cells, n[cell{code, h}])
		}
		t.row(cells...)
	}
	t.end()
}
