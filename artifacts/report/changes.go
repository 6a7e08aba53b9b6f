package report

import (
	"slices"

	"halos.dev/halo/artifacts/diff"
)

// listed is how many things of a kind are listed among the changes.
const listed = 500

func (r *reporter) changes() {
	prev := r.Previous
	if prev == nil {
		if r.Manifest.Previous != "" {
			r.put("<p>The page was made without an earlier release, though the manifest names one: <code>{}</code>. <code>halo report RELEASE --previous OLD</code> compares.</p>\n", r.Manifest.Previous)
			return
		}
		r.put("<p>The page was made without an earlier release. <code>halo report RELEASE --previous OLD</code> compares with one.</p>\n")
		return
	}
	d := prev.Diff
	r.put("<p class=\"verdict v-{}\"><strong>{}</strong> {}</p>\n", string(d.Verdict), string(d.Verdict), d.Summary)
	r.put("<p>Compared with version {}, sequence {}, issued {}, release <code>{}</code>. ", prev.Manifest.Version, prev.Manifest.Sequence, instant(prev.Manifest.Issued), prev.Digest)
	switch {
	case prev.Named && r.Verified != nil:
		r.put("The verified manifest names it as the release before.")
	case prev.Verified != nil:
		r.put("Its signature was verified at {}, by {}.", instant(prev.Verified.At), r.signers(prev.Verified))
	default:
		r.put("Its signature was not checked; its files are those that its manifest names.")
	}
	if named := r.Manifest.Previous; named != "" && named != prev.Digest {
		r.put(" <strong class=bad>The manifest names another one as the release before: <code>{}</code>.</strong>", named)
	}
	r.put("</p>\n")
	t := r.table("stack verdicts", "Targets by verdict", nil, "Verdict", "Targets")
	for _, h := range d.Heads() {
		t.row(h.Text, func() {
			r.who(h.Targets)
			r.put("{}", h.Where[0])
		})
	}
	t.end()
	for _, s := range d.Sections(listed) {
		r.put("<h3>{} <span class=n>{}</span></h3>\n", capital(s.Title), len(s.Items)+s.More)
		r.items(s)
		if s.More > 0 {
			r.put("<p>And {} more; <code>halo diff OLD NEW --output json</code> has all.</p>\n", s.More)
		}
	}
	if d.Verdict == diff.Same {
		r.put("<p>Every device gets what it got before.</p>\n")
	}
}

func (r *reporter) items(s diff.Section) {
	if !slices.ContainsFunc(s.Items, func(x diff.Item) bool { return len(x.Targets)+len(x.Where) > 0 }) {
		// Notes are about the comparison and about no target or place.
		r.put("<ul class=plain>\n")
		for _, x := range s.Items {
			r.put("<li>{}\n", x.Text)
		}
		r.put("</ul>\n")
		return
	}
	t := r.table("stack changes", "{}", []any{capital(s.Title)}, "What", "Targets", "Where")
	for _, x := range s.Items {
		t.row(x.Text, func() { r.who(x.Targets) }, func() { r.words(x.Where) })
	}
	t.end()
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return string(s[0]&^0x20) + s[1:]
}
