package draft

import (
	neturl "net/url"
	"slices"
	"strings"

	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// Settle makes one policy of what was collected: what halo refuses together is taken out on the side that leaves the policy tighter, and what every ring needs is
// added. It is called once, after the room has read everything.
func (d *Draft) Settle() {
	d.hosts()
	d.sandbox()
	d.gateway()
	if !d.Has(Bypass, "true") {
		d.Add(Bypass, "true", "halo builds no ring that leaves the bypass of permissions open")
	}
	if len(d.Hooks) > 0 && !d.Has(HooksOnly, "true") {
		d.Add(HooksOnly, "true", "a profile that ships hooks shuts out those of users and projects")
	}
	for _, field := range [...]string{Version} {
		if !d.Has(field, "") {
			d.Add(field, d.Known, "halo renders for one version, and the files name none; this is the newest that halo knows")
		}
	}
}

func (d *Draft) hosts() {
	for _, e := range d.values[undeniable] {
		g := strings.ToLower(e.Text)
		for _, a := range slices.Clone(d.values[Allowed]) {
			p, _ := host.ParsePattern(a.Text)
			if p.Wildcard() || glob(g, a.Text) {
				d.Remove(Allowed, a.Text, "a denied entry without a form in a profile may match it, so it is not allowed")
			}
		}
		d.tighten("a denied entry has no form in a profile, so hosts on no list are denied")
	}
	delete(d.values, undeniable)
	switch {
	case d.Has(Default, "allow"):
		for _, a := range slices.Clone(d.values[Allowed]) {
			d.take(Allowed, a.Text, Line{Outcome: Kept, Reason: "every host is allowed that is not denied"})
		}
	case d.Has(Default, "deny") && d.Has(Allowed, ""):
		// Something is allowed, so everything else is denied without a word.
		for _, e := range d.values[Default] {
			remark(e.From, Line{Outcome: Mapped, Field: Allowed})
		}
		d.Additions = slices.DeleteFunc(d.Additions, func(a Addition) bool { return a.Field == Default })
		delete(d.values, Default)
	}
}

// tighten makes the default deny.
func (d *Draft) tighten(reason string) {
	if d.Has(Default, "deny") || !d.Has(Default, "allow") && d.Has(Allowed, "") {
		return
	}
	d.Remove(Default, "allow", reason)
	if !d.Has(Default, "") {
		d.Add(Default, "deny", reason)
	}
}

// glob matches a host with a pattern in which * stands for any text.
func glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}

func (d *Draft) sandbox() {
	restricted := d.Has(Allowed, "") || d.Has(Denied, "") || d.Has(Default, "deny") || d.Has(Protected, "") || d.Has(WritableRoots, "") || d.Has(Required, "true")
	if d.Has(Sandbox, policy.ModeOff) && restricted {
		d.Remove(Sandbox, policy.ModeOff, "other keys ask for what only a sandbox holds")
	}
	if d.Has(Sandbox, policy.ModeReadOnly) {
		for _, r := range slices.Clone(d.values[WritableRoots]) {
			d.Remove(WritableRoots, r.Text, "the sandbox is read-only")
		}
	}
	for _, r := range slices.Clone(d.values[WritableRoots]) {
		root, _ := fspath.ParseRoot(r.Text)
		for _, p := range d.values[Protected] {
			protected, _ := fspath.ParseProtected(p.Text)
			if how, bad := fspath.Conflicts(root, protected); bad {
				d.Remove(WritableRoots, r.Text, "the root "+how+" a protected path, so it is not writable")
				break
			}
		}
	}
	if d.Has(Required, "true") && !d.Has(Allowed, "") && !d.Has(Default, "allow") {
		d.take(Required, "true", Line{Outcome: Kept, Reason: "halo writes it with every sandbox; a profile that allows no host cannot ask for it"})
	}
}

// Decide answers for a host as the profile does.
func (d *Draft) Decide(n host.Name) bool {
	rules := egress.Rules{}
	for _, e := range d.values[Default] {
		rules.Default = e.Text
	}
	for _, e := range d.values[Allowed] {
		p, _ := host.ParsePattern(e.Text)
		rules.Allowed = append(rules.Allowed, egress.Entry{Pattern: p})
	}
	for _, e := range d.values[Denied] {
		p, _ := host.ParseDenyPattern(e.Text)
		rules.Denied = append(rules.Denied, egress.Entry{Pattern: p})
	}
	return egress.Compile(rules).Decide(n).Allow
}

// gateway drops a gateway that the policy itself denies: halo refuses such a policy, and allowing the host would be looser than the input.
func (d *Draft) gateway() {
	if d.Gateway.Text == "" {
		return
	}
	u, err := neturl.Parse(d.Gateway.Text)
	if err != nil {
		return
	}
	if n, err := host.ParseName(u.Hostname()); err == nil && !d.Decide(n) && !local(n) {
		remark(d.Gateway.From, Line{Outcome: Dropped, Code: CodeNoCounterpart.ID, Reason: "the imported policy denies the gateway's host, which halo refuses; allow the host and add a Gateway document"})
		d.Gateway = Entry{}
	}
}

func local(n host.Name) bool {
	return n == "localhost" || strings.HasPrefix(string(n), "127.") || n == "::1"
}

// FieldName writes a field as documents have it.
func (d *Draft) FieldName(field string) string {
	if field == Version {
		return "harnesses." + d.Harness + ".version"
	}
	return field
}

// Unrendered takes out a value that halo would not write for the harness again, and reports whether there was one. entry is empty when it is about the whole field.
func (d *Draft) Unrendered(field, entry, reason string) bool {
	switch field {
	case Allow, Ask, Deny, MCPDenied, Protected, WritableRoots:
		if entry == "" && (field == Protected || field == WritableRoots) {
			return false
		}
		found := false
		for _, e := range slices.Clone(d.values[field]) {
			if (entry == "" || e.Text == entry) && !unheld(e.From) {
				d.Remove(field, e.Text, reason)
				found = true
			}
		}
		return found
	case MCPServers:
		n := len(d.Servers)
		d.Servers = slices.DeleteFunc(d.Servers, func(s Server) bool {
			if s.Name != entry {
				return false
			}
			remark(s.From, Line{Outcome: Dropped, Reason: reason, Code: CodeNoCounterpart.ID})
			return true
		})
		return len(d.Servers) < n
	case HookItems:
		n := len(d.Hooks)
		d.Hooks = slices.DeleteFunc(d.Hooks, func(h Hook) bool {
			if h.Event+" "+h.Matcher != entry {
				return false
			}
			remark(h.From, Line{Outcome: Dropped, Reason: reason, Code: CodeNoCounterpart.ID})
			return true
		})
		return len(d.Hooks) < n
	}
	return false
}

// unheld reports whether all nodes are said not to be in force: what they say is then more than the input held.
func unheld(nodes []*Node) bool {
	for _, n := range nodes {
		for leaf := range n.Leaves {
			if leaf.line == nil || leaf.line.Warning == "" {
				return false
			}
		}
	}
	return len(nodes) > 0
}
