package report

import (
	"strings"
	"time"
)

// shapes are the marks of the grades, one form each, so that no reader needs colour to tell them apart.
const shapes markup = `<svg width=0 height=0 aria-hidden=true focusable=false class=shapes>
<symbol id=s-enforced viewBox="0 0 16 16"><circle cx=8 cy=8 r=7 fill=currentColor /><path d="M4.6 8.3l2.4 2.4 4.4-5" fill=none stroke="var(--card)" stroke-width=1.9 /></symbol>
<symbol id=s-unverified viewBox="0 0 16 16"><circle cx=8 cy=8 r=6.2 fill=none stroke=currentColor stroke-width=1.6 stroke-dasharray="2.6 1.6"/><path d="M4.9 8.3l2.2 2.2 4-4.6" fill=none stroke=currentColor stroke-width=1.7 /></symbol>
<symbol id=s-overridable viewBox="0 0 16 16"><circle cx=8 cy=8 r=6.2 fill=none stroke=currentColor stroke-width=1.6 /><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill=currentColor /></symbol>
<symbol id=s-default viewBox="0 0 16 16"><circle cx=8 cy=8 r=6.2 fill=none stroke=currentColor stroke-width=1.6 /></symbol>
<symbol id=s-none viewBox="0 0 16 16"><path d="M3.5 3.5l9 9m0-9l-9 9" fill=none stroke=currentColor stroke-width=2 /></symbol>
</svg>
`

// short is a digest that people compare at a glance; the whole one stands elsewhere on the page.
func short(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(12, len(hex))]
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (r *reporter) header() {
	m := r.Manifest
	r.put("<header>\n<p class=kind>halo release report</p>\n<h1>Agent policy of {}</h1>\n<p class=which>version <b>{}</b>, sequence <b>{}</b>, release <code>{}</code></p>\n", m.Org, m.Version, m.Sequence, short(r.Digest))
	if v := r.Verified; v != nil {
		r.put("<div class=\"trust ok\" role=note><p><strong>Signature verified</strong> at {}, by {}. Every file is the one that the signed manifest names.</p></div>\n", instant(v.At), r.signers(v))
	} else {
		r.put("<div class=\"trust open\" role=note><p><strong>Signature not checked.</strong> Every file is the one that the manifest names, but whether the manifest comes from {} is not known. "+
			"<code>halo release verify RELEASE --key ORG.pub</code> answers that.</p></div>\n", m.Org)
	}
	r.put("</header>\n")
}

// signers names who signed.
func (r *reporter) signers(v *Verified) markup {
	var p page
	for i, k := range v.Keys {
		if i > 0 {
			p.put(" and ")
		}
		p.put("key <code>{}</code>", short(k))
	}
	for i, id := range v.Identities {
		if i+len(v.Keys) > 0 {
			p.put(" and ")
		}
		p.put("<code>{}</code>, known to <code>{}</code>", id.Name, id.Issuer)
	}
	return markup(p.out)
}

func (r *reporter) nav() {
	r.put("<nav aria-label=\"Sections of the report\"><ul>\n")
	for _, s := range r.sections() {
		r.put("<li><a href=#{}>{}</a>\n", s.id, s.title)
	}
	r.put("</ul></nav>\n")
}

// fact is a line of the list of facts.
func (r *reporter) fact(name markup, value markup, args ...any) {
	r.put("<div><dt>{}</dt><dd>", name)
	r.put(value, args...)
	r.put("</dd></div>\n")
}

func (r *reporter) release() {
	m := r.Manifest
	var size int64
	for _, f := range m.Files {
		size += f.Size
	}
	r.put("<dl class=facts>\n")
	r.fact("Organization", "{}", m.Org)
	r.fact("Version", "{}, sequence {}", m.Version, m.Sequence)
	r.fact("Release digest", "<code>{}</code>", r.Digest)
	r.fact("Issued", "{}", instant(m.Issued))
	if m.Expires.IsZero() {
		r.fact("Expires", "never: a device that is cut off keeps this policy for ever")
	} else {
		r.fact("Expires", "<time datetime=\"{}\">{}</time>", instant(m.Expires), instant(m.Expires))
	}
	if !m.AsOf.Equal(m.Issued) {
		r.fact("Exceptions judged at", "{}", instant(m.AsOf))
	}
	switch {
	case m.Source.Commit == "":
		r.fact("Source commit", "none: the policy was not built from git")
	case m.Source.Dirty:
		r.fact("Source commit", "<code>{}</code> <strong class=bad>with changes that are in no commit</strong>", m.Source.Commit)
	default:
		r.fact("Source commit", "<code>{}</code>", m.Source.Commit)
	}
	r.fact("Source digest", "<code>{}</code>", m.Source.Digest)
	if m.Previous != "" {
		r.fact("Release before", "<code>{}</code>", m.Previous)
	}
	r.fact("Made by", "{} {}", m.Tool.Name, m.Tool.Version)
	r.fact("Content", "{} files, {} bytes", len(m.Files), size)
	r.put("<div><dt>Signatures</dt><dd>")
	r.signatures()
	r.put("</dd></div>\n</dl>\n")

	r.put("<ul class=numbers>\n")
	for _, n := range []struct {
		id        markup
		n         int
		one, many markup
	}{
		{"targets", r.ringOnly, "ring", "rings"}, {"targets", len(r.targets), "target", "targets"}, {"gaps", len(r.gapGroups()), "gap", "gaps"},
		{"egress", len(r.policies), "set of host rules", "sets of host rules"}, {"exceptions", len(m.Exceptions), "exception", "exceptions"},
	} {
		noun := n.many
		if n.n == 1 {
			noun = n.one
		}
		r.put("<li><a href=#{}><b>{}</b> {}</a>\n", n.id, n.n, noun)
	}
	r.put("</ul>\n")
}

func (r *reporter) signatures() {
	if r.Verified != nil {
		r.put("verified at {}, by ", instant(r.Verified.At))
		for i, k := range r.Verified.Keys {
			if i > 0 {
				r.put(" and ")
			}
			r.put("key <code>{}</code>", k)
		}
		if len(r.Verified.Identities) > 0 {
			r.put("{}", r.signers(&Verified{Identities: r.Verified.Identities}))
		}
		return
	}
	if len(r.Signatures) == 0 {
		r.put("none: this release is not signed")
		return
	}
	r.put("not checked: ")
	for i, s := range r.Signatures {
		if i > 0 {
			r.put("; ")
		}
		r.put("<code>{}</code>", s.File)
		switch {
		case s.Certificate:
			r.put(", which claims a certificate")
		case s.Key != "":
			r.put(", which claims key <code>{}</code>", s.Key)
		}
	}
}

func (r *reporter) footer() {
	r.put("<footer>\n<p>Made by halo {} from <code>manifest.json</code> and <code>coverage.json</code> of release <code>{}</code>. The page itself is not signed: compare the digest with "+
		"<code>halo release verify</code>, or make the page again. <code>halo explain-code CODE</code> tells more of a code, <code>halo explain --ring RING</code> of where a setting comes from.</p>\n</footer>\n", r.Halo, r.Digest)
}
