package report

import (
	"cmp"
	"slices"
	"strings"

	"halos.dev/halo/compiler/policy"
)

func (r *reporter) targetList() {
	r.put("<p>A target is what a device gets: its ring, and the units of whoever uses it. ")
	r.count(len(r.targets), "target has", "targets have")
	r.put(" ")
	r.count(len(r.contents), "set of files", "different sets of files")
	r.put(" and ")
	r.count(len(r.policies), "set of host rules", "different sets of host rules")
	r.put("; what is the same is listed once.</p>\n")
	if len(r.targets) == 0 {
		return
	}
	t := r.table("stack targets", "Rings and units", nil, "Ring", "Units", "Profile", "Files on macOS, Linux, Windows", "Content", "Hosts")
	for _, x := range r.targets {
		t.row(x.ring, func() {
			if len(x.units) == 0 {
				r.put("<span class=dim>ring alone</span>")
			}
			r.words(x.units)
		}, x.profile, func() { r.put("{}, {}, {}", x.files[0], x.files[1], x.files[2]) },
			func() { r.put("<a href=#f{}>files {}</a>", x.content+1, x.content+1) },
			func() { r.put("<a href=#e{}>hosts {}</a>", x.policy+1, x.policy+1) })
	}
	t.end()
}

// where is a file on a device; the same file may be there on several systems.
type where struct {
	harness, dest, owner, mode, sum string
	size                            int64
	systems                         []string
}

func (r *reporter) files() {
	r.put("<p>Every file that a device gets, with its SHA-256. In the release a file lies at <code>targets/TARGET/SYSTEM/HARNESS/root/DESTINATION</code>; <code>SHA256SUMS</code> lists them all.</p>\n")
	for i, c := range r.contents {
		r.put("<details id=f{}><summary><b>Files {}</b> of ", i+1, i+1)
		if len(c.targets) > shown {
			r.put("{} targets", len(c.targets))
		} else {
			r.words(c.targets)
		}
		r.put("</summary>\n")
		if len(c.targets) > shown {
			r.put("<p>Of ")
			r.words(c.targets)
			r.put(".</p>\n")
		}
		var files []*where
		for _, s := range c.systems {
			for _, f := range s.Files {
				listed, _ := r.Manifest.File(f.Path)
				w := &where{f.Harness, f.Dest, f.Owner, f.Mode, listed.SHA256, listed.Size, nil}
				at := slices.IndexFunc(files, func(x *where) bool {
					return x.harness == w.harness && x.dest == w.dest && x.owner == w.owner && x.mode == w.mode && x.sum == w.sum
				})
				if at < 0 {
					at = len(files)
					files = append(files, w)
				}
				files[at].systems = append(files[at].systems, s.OS)
			}
		}
		slices.SortStableFunc(files, func(a, b *where) int {
			return cmp.Or(strings.Compare(a.harness, b.harness), strings.Compare(a.dest, b.dest))
		})
		if len(files) == 0 {
			r.put("<p>No files.</p>\n")
		} else {
			t := r.table("files", "Files {}", []any{i + 1}, "Destination", "Harness", "System", "Owner", "Mode", "Bytes", "SHA-256")
			for _, f := range files {
				t.row(f.dest, f.harness, func() {
					if len(f.systems) == len(policy.OSes) {
						r.put("all")
						return
					}
					r.systems(f.systems)
				}, f.owner, f.mode, f.size, func() { r.put("<code>{}</code>", f.sum) })
			}
			t.end()
		}
		r.put("</details>\n")
	}
}

func (r *reporter) exceptions() {
	all := r.Manifest.Exceptions
	if len(all) == 0 {
		r.put("<p>The release uses no exception: no unit and no ring is allowed more than what it builds on.</p>\n")
		return
	}
	t := r.table("stack exceptions", "Exceptions that the release uses", nil, "Name", "For", "Setting", "What it allows", "Owner", "Reason", "Ticket", "Expires")
	for _, e := range all {
		t.row(e.Name, e.Scope, func() { r.put("<code>{}</code>", e.Field) }, e.Witness, e.Owner, e.Reason, e.Ticket,
			func() { r.put("<time datetime=\"{}\">{}</time>", e.Expires, e.Expires) })
	}
	t.end()
}

func (r *reporter) sandboxes() {
	m := r.Manifest
	if len(m.Sandboxes) == 0 {
		r.put("<p>No target has a sandbox.</p>\n")
	} else {
		type rendered struct{ name, agent, pack, digest, sum string }
		var order []rendered
		targets := map[rendered][]string{}
		for _, s := range m.Sandboxes {
			x := rendered{name: s.Name, agent: s.Agent, pack: s.Pack, digest: s.PackDigest}
			if f, ok := m.File(s.Path); ok {
				x.sum = f.SHA256
			}
			if targets[x] == nil {
				order = append(order, x)
			}
			targets[x] = append(targets[x], s.Target)
		}
		slices.SortStableFunc(order, func(a, b rendered) int {
			return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.agent, b.agent))
		})
		t := r.table("stack sandboxes", "Sandboxes", nil, "Sandbox", "File", "Targets", "SHA-256", "Pack")
		for _, x := range order {
			t.row(x.name, func() {
				if x.agent == "" {
					r.put("<code>config.yaml</code> of DefenseClaw")
				} else {
					r.put("<code>policy.yaml</code> of OpenShell for {}", x.agent)
				}
			}, func() { r.who(targets[x]) }, func() { r.put("<code>{}</code>", x.sum) }, func() {
				switch {
				case x.digest != "":
					r.put("{} <code>{}</code>", x.pack, x.digest)
				case x.pack != "":
					r.put("{}, built into DefenseClaw or kept on the device", x.pack)
				}
			})
		}
		t.end()
	}
	if len(m.Packs) == 0 {
		r.put("<p>The release carries no pack.</p>\n")
		return
	}
	t := r.table("stack packs", "Packs that the release carries", nil, "Pack", "File in the release", "Digest")
	for _, x := range m.Packs {
		t.row(x.Name, func() { r.put("<code>{}</code>", x.Path) }, func() { r.put("<code>{}</code>", x.Digest) })
	}
	t.end()
}
