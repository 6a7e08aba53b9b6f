package report

import (
	"bytes"
	"maps"
	"slices"
)

// What the script says it cannot read is left to halo, which reads more.
const search markup = `<form class=search role=search hidden>
<label for=host>Who may reach a host?</label>
<input id=host type=search autocomplete=off autocapitalize=none spellcheck=false placeholder="registry.npmjs.org" aria-describedby=host-help>
<p id=host-help class=dim>A host or URL is decided for every target; any text lists the rules that contain it.</p>
</form>
<div id=found hidden><p id=answer role=status></p><div id=hits></div></div>
<noscript><p class=dim>The search needs JavaScript. Everything it looks through is listed here.</p></noscript>
`

func (r *reporter) egress() {
	m := r.Manifest
	r.put("<p>What agents may reach, with presets expanded. A denied entry wins over an allowed one, and the default decides about every other host and about IP addresses. <code>*.</code> stands for "+
		"every subdomain and not for the name behind it. How far each harness holds this is told under <a href=#coverage>coverage</a> and <a href=#gaps>gaps</a>.</p>\n{}", search)
	for i, e := range r.policies {
		r.put("<article id=e{} class=hosts data-n={} data-default=\"{}\" aria-labelledby=e{}-h><h3 id=e{}-h>Hosts {}</h3>\n<div class=who>For ", i+1, len(e.targets), e.Default, i+1, i+1, i+1)
		r.who(e.targets)
		r.put("</div>\n")
		switch e.Default {
		case "deny":
			r.put("<p>Every other host is <b>denied</b>.</p>\n")
		case "allow":
			r.put("<p>Every other host is <b>allowed</b>.</p>\n")
		default:
			r.put("<p>The default is {}, which is neither allow nor deny.</p>\n", e.Default)
		}
		r.unlike(e)
		r.hostList("denied", "Denied", e.Denied)
		r.hostList("allowed", "Allowed", e.Allowed)
		r.put("</article>\n")
	}
	if len(m.Presets) == 0 {
		return
	}
	r.put("<h3>Presets</h3>\n")
	t := r.table("stack presets", "The hosts of the presets that profiles of this release use", nil, "Preset", "Hosts")
	for _, name := range slices.Sorted(maps.Keys(m.Presets)) {
		t.row(name, func() { r.words(m.Presets[name]) })
	}
	t.end()
}

// unlike says in what the rules of units differ from those of their ring, when all that have them build on one.
func (r *reporter) unlike(e *hosts) {
	base := -1
	for _, id := range e.targets {
		at, ok := r.order[r.targets[r.order[id]].ring]
		if !ok || base >= 0 && r.targets[at].policy != base {
			return
		}
		base = r.targets[at].policy
	}
	if base < 0 || r.policies[base] == e {
		return
	}
	ring := r.policies[base]
	r.put("<p class=dim>Unlike the ring alone (<a href=#e{}>hosts {}</a>):", base+1, base+1)
	if e.Default != ring.Default {
		r.put(" another default;")
	}
	for _, x := range []struct {
		what       markup
		have, lack []string
	}{
		{"also denied", e.Denied, ring.Denied}, {"also allowed", e.Allowed, ring.Allowed}, {"not denied", ring.Denied, e.Denied}, {"not allowed", ring.Allowed, e.Allowed},
	} {
		if more := minus(x.have, x.lack); len(more) > 0 {
			r.put(" {} ", x.what)
			r.words(more)
			r.put(";")
		}
	}
	r.out = append(bytes.TrimSuffix(r.out, []byte(";")), ".</p>\n"...)
}

// minus returns the items of a that b lacks, in the order of a.
func minus(a, b []string) []string {
	have := make(map[string]bool, len(b))
	for _, s := range b {
		have[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return have[s] })
}

// hostList writes patterns as the script reads them: one item each, and nothing else in it.
func (r *reporter) hostList(id, title markup, list []string) {
	r.put("<h4>{} <span class=n>{}</span></h4>\n", title, len(list))
	if len(list) == 0 {
		r.put("<p class=dim>No entry.</p>\n")
		return
	}
	r.put("<ul class={}>", id)
	for _, h := range list {
		r.put("<li>{}", h)
	}
	r.put("</ul>\n")
}
