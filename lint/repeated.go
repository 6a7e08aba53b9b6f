package lint

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

var repeatedEntry = Rule{
	Code: &diag.Code{ID: "HALO2312", Severity: diag.Warning, Title: "entry that changes nothing", Since: "0.1.0",
		Text:   "The entry is on the list already, another path of the list covers it, or a rule of the denied list takes back what this one allows. Remove it, so that the list reads as it works.",
		Before: "protectedPaths: [\"~/.ssh\", \"~/.ssh/id_ed25519\"]", After: "protectedPaths: [\"~/.ssh\"]"},
	Find: func(p *Pass) {
		for _, doc := range p.Repo.Layers() {
			p.repeatedBody(&doc.Body, "")
		}
		for _, doc := range p.Repo.Units {
			p.repeatedBody(&doc.Overlay, "overlay.")
			p.repeatedStrs(doc.Rings, "rings")
			p.repeatedMembers(&doc.Membership)
		}
		for _, doc := range p.Repo.Rings {
			p.repeatedMembers(&doc.Membership)
		}
	},
}

func (p *Pass) repeatedMembers(m *policy.Membership) {
	p.repeatedStrs(m.Users, "membership.users")
	p.repeatedStrs(m.Groups, "membership.groups")
}

func (p *Pass) repeatedBody(b *policy.Body, prefix string) {
	p.repeatedStrs(b.Egress.Presets, prefix+"egress.presets")
	p.repeatedStrs(b.Models.Allowed, prefix+"models.allowed")
	p.repeatedStrs(b.MCP.Denied, prefix+"mcp.denied")
	p.repeatedStrs(b.Permissions.Allow, prefix+"permissions.allow")
	p.repeatedStrs(b.Permissions.Ask, prefix+"permissions.ask")
	p.repeatedStrs(b.Permissions.Deny, prefix+"permissions.deny")
	p.coveredPaths(b.Sandbox.ProtectedPaths, prefix+"sandbox.protectedPaths")
	p.coveredPaths(b.Sandbox.WritableRoots, prefix+"sandbox.writableRoots")
	if len(b.Permissions.Allow.Items) == 0 {
		return
	}
	denied := places(b.Permissions.Deny)
	for i, s := range b.Permissions.Allow.Items {
		if at, ok := denied[s.V]; ok {
			p.diags.Add(p.about(s.Pos, indexed(prefix+"permissions.allow", i), "%q allows nothing: the same rule is denied, and deny wins", s.V).WithRelated(at, "denied here"))
		}
	}
}

// places returns where each text of a list stands first.
func places(l source.Strs) map[string]diag.Pos {
	out := make(map[string]diag.Pos, len(l.Items))
	for _, s := range l.Items {
		if _, ok := out[s.V]; !ok {
			out[s.V] = s.Pos
		}
	}
	return out
}

func (p *Pass) repeatedStrs(l source.Strs, path string) {
	if len(l.Items) < 2 {
		return
	}
	first := places(l)
	for i, s := range l.Items {
		if at := first[s.V]; at != s.Pos {
			p.diags.Add(p.about(s.Pos, indexed(path, i), "%q is on the list already", s.V).WithRelated(at, "here"))
		}
	}
}

// coveredPaths reports paths that are on the list already, or below another of it.
func (p *Pass) coveredPaths(l policy.FilePaths, path string) {
	if len(l.Items) < 2 {
		return
	}
	first := make(map[string]int32, len(l.Items))
	for i, f := range l.Items {
		if _, ok := first[f.Path.String()]; !ok {
			first[f.Path.String()] = int32(i)
		}
	}
	for i, f := range l.Items {
		if j := first[f.Path.String()]; int(j) != i {
			p.diags.Add(p.about(f.Pos, indexed(path, i), "%s is on the list already", f.Path).WithRelated(l.Items[j].Pos, "here"))
			continue
		}
		for parent := range fspath.Parents(f.Path) {
			if j, ok := first[parent]; ok && !l.Items[j].Path.Glob() {
				other := l.Items[j]
				p.diags.Add(p.about(f.Pos, indexed(path, i), "%s lies below %s, which is on the list", f.Path, other.Path).WithRelated(other.Pos, "here"))
				break
			}
		}
	}
}
