package check

import (
	"cmp"
	"fmt"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// own checks what one document writes, whatever it is combined with.
func (c *checker) own(b *policy.Body, prefix string) {
	for i, name := range b.Egress.Presets.Items {
		if _, ok := c.Resolver.Preset(name.V); ok {
			continue
		}
		if c.presetNames == nil {
			c.presetNames = c.Resolver.PresetNames()
		}
		d := diag.New(codePreset, name.Pos, prefix+"egress.presets["+strconv.Itoa(i)+"]", "there is no preset %q; there are %s", name.V, strings.Join(c.presetNames, ", "))
		d.Hint = c.nearest(name.V, c.presetNames)
		c.add(d)
	}
	if name := b.Sandbox.Policy; name.IsSet() && c.Repo.Sandbox(name.V) == nil {
		d := diag.New(codeReference, name.Pos, prefix+"sandbox.policy", "there is no Sandbox document %q", name.V)
		d.Hint = c.nearest(name.V, sandboxNames(c.Repo))
		c.add(d)
	}
	c.repeated(b.Egress.AllowedDomains, prefix+"egress.allowedDomains")
	c.repeated(b.Egress.DeniedDomains, prefix+"egress.deniedDomains")
	c.shared(b.Egress.AllowedDomains, prefix+"egress.allowedDomains")
	for i, r := range b.Sandbox.WritableRoots.Items {
		if what, ok := fspath.ConfigDir(r.Path); ok {
			c.add(diag.New(codeConfigRoot, r.Pos, prefix+"sandbox.writableRoots["+strconv.Itoa(i)+"]", "%s reaches %s, which an agent could then change", r.Path, what).
				WithHint("choose another directory, and add the place to sandbox.protectedPaths"))
		}
	}
	if b.Permissions.Mode.V == "bypassPermissions" {
		c.add(diag.New(codeBypass, b.Permissions.Mode.Pos, prefix+"permissions.mode", "permission mode bypassPermissions switches every permission off and is never allowed").
			WithHint("use default, acceptEdits, plan or auto"))
	}
	c.guards(b, prefix)
}

// shared reports wildcards that cover names of strangers.
func (c *checker) shared(l policy.Hosts, path string) {
	for i, h := range l.Items {
		if !h.Pattern.Wildcard() {
			continue
		}
		if kind, shared := host.SharedSuffix(h.Pattern.Suffix()); shared {
			c.add(diag.New(codeSharedSuffix, h.Pos, path+"["+strconv.Itoa(i)+"]", "%s is broad: it covers names of strangers under the %s suffix %s", h.Pattern, kind, h.Pattern.Suffix()))
		}
	}
}

// repeated reports entries that are repeated or that another entry of the list covers.
func (c *checker) repeated(l policy.Hosts, path string) {
	if len(l.Items) < 2 {
		return
	}
	first := make(map[host.Pattern]int32, len(l.Items))
	var wide []host.Pattern
	for i, h := range l.Items {
		if h.Pattern.Wildcard() {
			wide = append(wide, h.Pattern)
		}
		if j, ok := first[h.Pattern]; ok {
			c.add(diag.New(codeCovered, h.Pos, path+"["+strconv.Itoa(i)+"]", "%s is on the list already", h.Pattern).WithRelated(l.Items[j].Pos, "here"))
			continue
		}
		first[h.Pattern] = int32(i)
	}
	if len(wide) == 0 {
		return
	}
	set := host.NewSet(wide)
	for i, h := range l.Items {
		if int(first[h.Pattern]) != i {
			continue
		}
		if j, ok := set.Covers(h.Pattern); ok && wide[j] != h.Pattern {
			c.add(diag.New(codeCovered, h.Pos, path+"["+strconv.Itoa(i)+"]", "%s is covered by %s", h.Pattern, wide[j]).WithRelated(l.Items[first[wide[j]]].Pos, "the wider entry"))
		}
	}
}

// effective checks a policy with everything it inherits. Findings sit at the document that contributed the value, so a child repeats nothing of its parent.
func (c *checker) effective(p *effective.Policy, prefix string) {
	own := p.Own
	sandbox := own.Sandbox.Mode.IsSet() || own.Sandbox.WritableRoots.IsSet() || own.Sandbox.ProtectedPaths.IsSet() || own.Permissions.SandboxRequired.IsSet()
	if sandbox || own.Egress.Written() {
		c.sandbox(p, prefix)
	}
	if own.Egress.Written() {
		c.egress(p, prefix)
	}
	if c.Repo.Gateway != nil && (own.Models.Default.IsSet() || len(own.Harnesses) > 0 || own.Models.Allowed.IsSet()) {
		c.models(p)
	}
	c.endpoints(p, prefix)
}

// path returns field with the overlay's prefix when pos lies in a unit.
func (c *checker) path(pos diag.Pos, field string) string {
	if h := c.Repo.DocumentAt(pos); h != nil && h.Kind == "Unit" {
		return "overlay." + field
	}
	return field
}

func (c *checker) sandbox(p *effective.Policy, prefix string) {
	s := &p.Sandbox
	switch s.Mode.V {
	case policy.ModeReadOnly:
		if len(s.WritableRoots.Items) > 0 {
			c.fail(p, diag.New(codeReadOnlyRoots, s.WritableRoots.Pos, c.path(s.WritableRoots.Pos, "sandbox.writableRoots"), "the sandbox is read-only and takes no writable root").
				WithRelated(s.Mode.Pos, "%s is read-only here", s.ModeField))
		}
	case policy.ModeOff:
		what, pos := "", diag.Pos(0)
		switch {
		case len(s.ProtectedPaths.Items) > 0:
			what, pos = "sandbox.protectedPaths", s.ProtectedPaths.Pos
		case len(s.WritableRoots.Items) > 0:
			what, pos = "sandbox.writableRoots", s.WritableRoots.Pos
		case len(p.Egress.DeniedDomains.Items) > 0:
			what, pos = "egress.deniedDomains", p.Egress.DeniedDomains.Pos
		case len(p.Egress.AllowedDomains.Items) > 0:
			what, pos = "egress.allowedDomains", p.Egress.AllowedDomains.Pos
		case len(p.Egress.Presets.Items) > 0:
			what, pos = "egress.presets", p.Egress.Presets.Pos
		case p.Egress.Default.V == "deny":
			what, pos = "egress.default", p.Egress.Default.Pos
		}
		if what != "" {
			c.fail(p, diag.New(codeOff, s.Mode.Pos, c.path(s.Mode.Pos, s.ModeField), "the sandbox is off, so nothing would hold %s", what).
				WithHint("use workspace-write, or remove %s", what).WithRelated(pos, "%s", what))
		}
		if p.Permissions.SandboxRequired.V {
			c.fail(p, diag.New(codeRequiredOff, p.Permissions.SandboxRequired.Pos, c.path(p.Permissions.SandboxRequired.Pos, "permissions.sandboxRequired"),
				"the sandbox is required, and its mode is off").WithRelated(s.Mode.Pos, "off here"))
		}
	}
	if len(s.WritableRoots.Items) == 0 {
		return
	}
	guarded := fspath.Guard(func(yield func(fspath.Path) bool) {
		for _, q := range s.ProtectedPaths.Items {
			if !yield(q.Path) {
				return
			}
		}
	})
	for _, r := range s.WritableRoots.Items {
		i, bad := guarded.Conflict(r.Path)
		if !bad {
			continue
		}
		q := s.ProtectedPaths.Items[i]
		how, _ := fspath.Conflicts(r.Path, q.Path)
		// The finding is at the root, in whichever document it stands.
		path := c.indexed(r.Pos, effective.Loosening{Field: "sandbox.writableRoots"})
		c.fail(p, diag.New(codeConflict, r.Pos, path, "writable root %s %s the protected path %s", r.Path, how, q.Path).WithRelated(q.Pos, "protected here"))
	}
}

func (c *checker) egress(p *effective.Policy, prefix string) {
	e := &p.Egress
	if e.Default.V == "allow" && len(p.Hosts.Allowed()) > 0 {
		what, pos := "egress.allowedDomains", e.AllowedDomains.Pos
		if len(e.AllowedDomains.Items) == 0 {
			what, pos = "egress.presets", e.Presets.Pos
		}
		c.fail(p, diag.New(codeDefaultAllow, e.Default.Pos, c.path(e.Default.Pos, "egress.default"), "with egress.default: allow the list %s limits nothing", what).
			WithHint("set egress.default: deny, or remove %s", what).WithRelated(pos, "the list"))
	}
	open, implied := p.Hosts.Default()
	// An unknown preset is reported, and the list that names it is not empty.
	if open && implied && len(e.Presets.Items) == 0 {
		field, pos := "egress.presets", p.Own.Egress.Presets.Pos
		if p.Own.Egress.AllowedDomains.IsSet() {
			field, pos = "egress.allowedDomains", p.Own.Egress.AllowedDomains.Pos
		}
		if p.Parent != nil {
			if was, _ := p.Parent.Hosts.Default(); !was {
				c.fail(p, diag.New(codeFlip, pos, prefix+field, "nothing is allowed any more, so the implied default would turn from deny to allow").
					WithHint("write egress.default: deny or egress.default: allow"))
			}
		} else if pos.IsValid() && !p.Bad { // entries that could not be read are reported
			c.add(diag.New(codeOpenByEmptiness, pos, prefix+field, "the allow list is empty and egress.default is unset, so the default is allow: every host is allowed").
				WithHint("write egress.default: allow if that is meant, or egress.default: deny"))
		}
	}
	c.gatewayRule(p, prefix)
	deny := p.Hosts.DenySet()
	for _, a := range p.Hosts.Allowed() {
		if a.Field != "egress.allowedDomains" {
			continue
		}
		if i, ok := deny.Covers(a.Pattern); ok {
			d := p.Hosts.Denied()[i]
			c.add(diag.New(codeSwallowed, a.Pos, c.indexed(a.Pos, effective.Loosening{Field: a.Field}), "%s never allows anything: %s on the denied list covers it, and deny wins", a.Pattern, d.Pattern).
				WithRelated(d.Pos, "denied here"))
		}
	}
	if !open {
		return
	}
	for _, d := range p.Hosts.Denied() {
		if d.Pattern.Wildcard() || d.Pattern.String() == "localhost" {
			continue
		}
		wild, problem := host.ParseDenyPattern("*." + d.Pattern.String())
		if problem != nil {
			continue
		}
		if _, ok := deny.Covers(wild); !ok {
			c.add(diag.New(codeApexOnly, d.Pos, c.indexed(d.Pos, effective.Loosening{Field: d.Field}), "%s is denied but its subdomains are not, and the default is allow", d.Pattern).
				WithHint("add %q", wild.String()))
		}
	}
}

// gatewayRule refuses a policy that denies the gateway's host.
func (c *checker) gatewayRule(p *effective.Policy, prefix string) {
	g := c.Repo.Gateway
	if g == nil || g.Host == "" {
		return
	}
	d := p.Hosts.Decide(g.Host)
	if d.Allow {
		return
	}
	e := &p.Egress
	pos, path, how := d.Pos, "", ""
	if d.Field == "egress.deniedDomains" {
		path, how = c.indexed(d.Pos, effective.Loosening{Field: d.Field}), d.Entry+" on the denied list covers it"
	} else {
		pos = cmp.Or(p.Own.Egress.AllowedDomains.Pos, p.Own.Egress.Presets.Pos, p.Own.Egress.Default.Pos, e.AllowedDomains.Pos, e.Presets.Pos, e.Default.Pos)
		path, how = c.path(pos, "egress"), "it is on no list and the default is deny"
	}
	c.fail(p, diag.New(codeGateway, pos, path, "the policy denies the gateway host %s: %s", g.Host, how).
		WithHint("add %s to egress.allowedDomains and keep it off egress.deniedDomains", g.Host).WithRelated(g.BaseURL.Pos, "the gateway"))
}

// endpoints warns about hosts that the policy itself names and denies.
func (c *checker) endpoints(p *effective.Policy, prefix string) {
	if !p.Own.Egress.Written() && !p.Own.Telemetry.OTLPEndpoint.IsSet() && !p.Own.MCP.ServersPos.IsValid() {
		return
	}
	warn := func(pos diag.Pos, path, rawURL string) {
		u, err := neturl.Parse(rawURL)
		if err != nil {
			return
		}
		n, err := host.ParseName(u.Hostname())
		if err != nil {
			return
		}
		if d := p.Hosts.Decide(n); !d.Allow {
			c.add(diag.New(codeEndpointDenied, pos, path, "the host %s is denied by %s", n, d.Rule()).WithRelated(d.Pos, "denied here"))
		}
	}
	if p.Telemetry.OTLPEndpoint.IsSet() {
		warn(p.Telemetry.OTLPEndpoint.Pos, "telemetry.otlpEndpoint", p.Telemetry.OTLPEndpoint.V)
	}
	for i, s := range p.MCP.Servers {
		if s.URL.IsSet() {
			warn(s.URL.Pos, fmt.Sprintf("mcp.servers[%d].url", i), s.URL.V)
		}
	}
}

// wires lists the wire protocols that each kind of upstream answers.
var wires = map[string][]string{
	"anthropic":    {"anthropic-messages"},
	"bedrock":      {"bedrock-invoke"},
	"vertex":       {"gemini", "anthropic-messages"},
	"openai":       {"openai-responses"},
	"azure-openai": {"openai-responses"},
	"gemini":       {"gemini"},
	"orchestrator": {"anthropic-messages", "bedrock-invoke", "openai-responses", "gemini"},
}

// models checks that the aliases a profile uses are served, over the wire that the harness speaks.
func (c *checker) models(p *effective.Policy) {
	g := c.Repo.Gateway
	if len(g.Models) == 0 {
		return
	}
	names := make([]string, len(g.Models))
	for i, m := range g.Models {
		names[i] = m.Alias.V
	}
	check := func(pos diag.Pos, path, alias, harness string) {
		i := slices.Index(names, alias)
		if i < 0 {
			d := diag.New(codeModel, pos, path, "the gateway has no model %q; it has %s", alias, strings.Join(names, ", "))
			d.Hint = c.nearest(alias, names)
			c.fail(p, d)
			return
		}
		wire := ""
		for _, pr := range g.Protocols {
			if pr.Key.V == harness {
				wire = pr.Value.V
			}
		}
		if wire == "" {
			return
		}
		for _, t := range g.Models[i].Targets {
			for _, u := range g.Upstreams {
				if u.Name.V == t.Upstream.V && u.Kind.IsSet() && !slices.Contains(wires[u.Kind.V], wire) {
					c.fail(p, diag.New(codeModel, pos, path, "model %s goes to upstream %s of kind %s, which does not speak %s, the wire of %s", alias, u.Name.V, u.Kind.V, wire, harness).
						WithRelated(u.Kind.Pos, "the upstream"))
				}
			}
		}
	}
	for _, pin := range p.Harnesses {
		if pin.Model.IsSet() {
			check(pin.Model.Pos, "harnesses."+pin.Harness.V+".model", pin.Model.V, pin.Harness.V)
		}
	}
	if p.Models.Default.IsSet() {
		check(p.Models.Default.Pos, "models.default", p.Models.Default.V, "")
	}
}
