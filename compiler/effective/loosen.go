package effective

import (
	"cmp"
	"fmt"
	"slices"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Loosening is one way in which a policy allows what another does not.
type Loosening struct {
	// Field is the key path of the setting, Entry the list entry at fault or "".
	Field, Entry string
	// Pos is where the looser value was written; when a value is gone, the place of the list that lost it. Base is the stricter value it is compared with.
	Pos, Base diag.Pos
	// Witness shows the difference on one concrete thing: "host uploads.example: deny -> allow".
	Witness string
	// Message says what was found.
	Message string
}

// Loosenings compares two effective policies by what they cover, never by text, and returns every way in which next is looser than base, in the
// order of the comparator's rows. The two policies need not be related.
func Loosenings(base, next *Policy) []Loosening {
	var out []Loosening
	add := func(l Loosening) { out = append(out, l) }
	looserEgress(base, next, add)
	looserSandbox(base, next, add)
	looserBoxes(base, next, add)
	looserLocks(base, next, add)
	looserPermissions(base, next, add)
	return out
}

func looserEgress(base, next *Policy, add func(Loosening)) {
	if base.Hosts == next.Hosts {
		return
	}
	baseAllow, _ := base.Hosts.Default()
	nextAllow, implied := next.Hosts.Default()
	if !baseAllow && nextAllow {
		h := unlisted(base, next)
		l := Loosening{Field: "egress.default", Entry: "allow", Pos: next.Egress.Default.Pos, Base: base.Egress.Default.Pos, Witness: hostWitness(h),
			Message: "the default turns from deny to allow"}
		if implied {
			l.Field, l.Pos = emptied(next)
			l.Message = "nothing is allowed any more, so the implied default turns from deny to allow"
		}
		add(l)
	}
	if !baseAllow && !nextAllow {
		set, deny := base.Hosts.AllowSet(), next.Hosts.DenySet()
		var reported string
		for _, e := range next.Hosts.Allowed() {
			if _, ok := set.Covers(e.Pattern); ok || e.Field == "egress.presets" && e.Name == reported {
				continue
			}
			if _, ok := deny.Covers(e.Pattern); ok {
				continue // the entry never allows anything
			}
			if e.Field == "egress.presets" {
				reported = e.Name
			}
			add(Loosening{Field: e.Field, Entry: e.Name, Pos: e.Pos, Base: base.Egress.AllowedDomains.Pos, Witness: hostWitness(uncovered(e.Pattern, set, deny)),
				Message: fmt.Sprintf("%s %s allows hosts that were denied", e.Field, e.Name)})
		}
	}
	set := next.Hosts.DenySet()
	for _, e := range base.Hosts.Denied() {
		if _, ok := set.Covers(e.Pattern); ok {
			continue
		}
		h := uncovered(e.Pattern, set, nil)
		w := fmt.Sprintf("host %s: no longer on the denied list", h)
		if next.Hosts.Decide(h).Allow {
			w = hostWitness(h)
		}
		pos := next.Egress.DeniedDomains.Pos
		add(Loosening{Field: "egress.deniedDomains", Entry: e.Name, Pos: pos, Base: e.Pos, Witness: w,
			Message: fmt.Sprintf("denied host %s is gone from the list", e.Name)})
	}
}

func hostWitness(h host.Name) string { return fmt.Sprintf("host %s: deny -> allow", h) }

// emptied returns the list whose emptying flipped the implied default.
func emptied(p *Policy) (string, diag.Pos) {
	switch {
	case p.Egress.AllowedDomains.IsSet():
		return "egress.allowedDomains", p.Egress.AllowedDomains.Pos
	case p.Egress.Presets.IsSet():
		return "egress.presets", p.Egress.Presets.Pos
	}
	return "egress.default", 0
}

// unlisted returns a host that base denies by default and next allows. There is one: no list covers all top-level domains.
func unlisted(base, next *Policy) host.Name {
	free := func(h host.Name) bool { return !base.Hosts.Decide(h).Allow && next.Hosts.Decide(h).Allow }
	for _, h := range []host.Name{"example.com", "example.org", "example.net"} {
		if free(h) {
			return h
		}
	}
	for i := 0; ; i++ {
		h := host.Name("unlisted.example")
		if i > 0 {
			h = host.Name(fmt.Sprintf("unlisted.x%d", i))
		}
		if free(h) || i > base.Hosts.AllowSet().Len()+next.Hosts.DenySet().Len() {
			return h
		}
	}
}

// uncovered returns a host that p matches and no entry of the sets does. There is one whenever no single entry covers p: finitely many other entries
// cannot exhaust the subdomains of a wildcard.
func uncovered(p host.Pattern, a, b *host.Set) host.Name {
	h := p.Example()
	if !p.Wildcard() {
		return h
	}
	tries := a.Len()
	if b != nil {
		tries += b.Len()
	}
	for i := 0; ; i++ {
		_, hit := a.Match(h)
		if !hit && b != nil {
			_, hit = b.Match(h)
		}
		if !hit || i > tries {
			return h
		}
		h = host.Name(fmt.Sprintf("x%d.%s", i, p.Suffix()))
	}
}

func looserSandbox(base, next *Policy, add func(Loosening)) {
	b, n := &base.Sandbox, &next.Sandbox
	if !slices.EqualFunc(b.ProtectedPaths.Items, n.ProtectedPaths.Items, samePath) {
		for _, p := range b.ProtectedPaths.Items {
			if !slices.ContainsFunc(n.ProtectedPaths.Items, func(q policy.FilePath) bool { return fspath.Covers(q.Path, p.Path) }) {
				add(Loosening{Field: "sandbox.protectedPaths", Entry: p.Path.String(), Pos: n.ProtectedPaths.Pos, Base: p.Pos,
					Witness: fmt.Sprintf("path %s: protected -> not protected", p.Path), Message: fmt.Sprintf("protected path %s is gone from the list", p.Path)})
			}
		}
	}
	if !slices.EqualFunc(b.WritableRoots.Items, n.WritableRoots.Items, samePath) {
		for _, p := range n.WritableRoots.Items {
			if !slices.ContainsFunc(b.WritableRoots.Items, func(q policy.FilePath) bool { return fspath.Covers(q.Path, p.Path) }) {
				add(Loosening{Field: "sandbox.writableRoots", Entry: p.Path.String(), Pos: p.Pos, Base: b.WritableRoots.Pos,
					Witness: fmt.Sprintf("path %s: read-only -> writable", p.Path), Message: fmt.Sprintf("writable root %s is new", p.Path)})
			}
		}
	}
	if from, to := base.Mode(), next.Mode(); rank(to) < rank(from) {
		field := n.ModeField
		if field == "" {
			field = "sandbox.mode"
		}
		add(Loosening{Field: field, Entry: n.Mode.V, Pos: n.Mode.Pos, Base: b.Mode.Pos, Witness: fmt.Sprintf("sandbox mode: %s -> %s", from, to),
			Message: fmt.Sprintf("the sandbox mode goes from %s to %s", from, to)})
	}
}

// looserBoxes compares what two policies' Sandbox documents let a DefenseClaw sandbox do. What their policy.yaml files allow depends on the target too and is compared where
// those are composed.
func looserBoxes(base, next *Policy, add func(Loosening)) {
	if base.Box == nil || base.Box == next.Box {
		return
	}
	l := Loosening{Field: "sandbox.policy", Entry: next.Sandbox.Policy.V, Pos: next.Sandbox.Policy.Pos, Base: base.Sandbox.Policy.Pos}
	if next.Box == nil {
		l.Message, l.Witness = "the policy names no Sandbox document any more", fmt.Sprintf("sandbox: %s -> none", base.Box.Name.V)
		add(l)
		return
	}
	key := looserBox(base.Box, next.Box)
	if key == "" {
		return
	}
	l.Message = fmt.Sprintf("sandbox %s is not as strict as %s in %s", next.Box.Name.V, base.Box.Name.V, key)
	l.Witness = fmt.Sprintf("sandbox %s: %s -> %s", key, boxValue(base.Box, key), boxValue(next.Box, key))
	add(l)
}

// LooserBox reports whether next is looser than base in any setting that DefenseClaw resolves. Either may be nil.
func LooserBox(base, next *policy.Sandbox) bool {
	return base != nil && (next == nil || looserBox(base, next) != "")
}

// looserBox names the first setting in which next is looser than base, "" when there is none. A document whose settings are not known is looser than one whose are.
func looserBox(base, next *policy.Sandbox) string {
	switch {
	case base == next || base.Resolved == nil:
		return ""
	case next.Resolved == nil:
		return "openshell"
	}
	return pack.LooserPolicy(base.Resolved, next.Resolved)
}

func boxValue(box *policy.Sandbox, key string) string {
	if box.Resolved == nil {
		return "not known"
	}
	if s, ok := box.Resolved.Setting(key); ok {
		return s.Value
	}
	return "as sandbox " + box.Name.V + " has it"
}

func samePath(a, b policy.FilePath) bool { return a.Path.String() == b.Path.String() }

// rank orders sandbox modes; no mode ranks with off.
func rank(mode string) int {
	switch mode {
	case policy.ModeWorkspaceWrite:
		return 1
	case policy.ModeReadOnly:
		return 2
	}
	return 0
}

// Lock is a boolean that only ever restricts.
type Lock struct {
	Field string
	At    func(*policy.Body) source.Bool
}

// Locks are the booleans whose change from true to false loosens a policy.
var Locks = []Lock{
	{"permissions.sandboxRequired", func(b *policy.Body) source.Bool { return b.Permissions.SandboxRequired }},
	{"permissions.disableBypass", func(b *policy.Body) source.Bool { return b.Permissions.DisableBypass }},
	{"mcp.managedOnly", func(b *policy.Body) source.Bool { return b.MCP.ManagedOnly }},
	{"hooks.managedOnly", func(b *policy.Body) source.Bool { return b.Hooks.ManagedOnly }},
	{"models.enforce", func(b *policy.Body) source.Bool { return b.Models.Enforce }},
}

func looserLocks(base, next *Policy, add func(Loosening)) {
	for _, l := range Locks {
		b, n := l.At(&base.Body), l.At(&next.Body)
		if b.V && !n.V {
			add(Loosening{Field: l.Field, Entry: "false", Pos: n.Pos, Base: b.Pos, Witness: l.Field + ": true -> false", Message: l.Field + " goes from true to false"})
		}
	}
}

func looserPermissions(base, next *Policy, add func(Loosening)) {
	b, n := &base.Permissions, &next.Permissions
	if modeRank(n.Mode.V) > modeRank(b.Mode.V) {
		from, to := cmp.Or(b.Mode.V, "default"), cmp.Or(n.Mode.V, "default")
		add(Loosening{Field: "permissions.mode", Entry: n.Mode.V, Pos: n.Mode.Pos, Base: b.Mode.Pos, Witness: fmt.Sprintf("permission mode: %s -> %s", from, to),
			Message: fmt.Sprintf("the permission mode goes from %s to %s", from, to)})
	}
	added := func(field string, b, n source.Strs, what string) {
		for _, s := range missing(n, b) {
			add(Loosening{Field: field, Entry: s.V, Pos: s.Pos, Base: b.Pos, Witness: fmt.Sprintf("%s %s: %s", field, s.V, what), Message: fmt.Sprintf("%s adds %s", field, s.V)})
		}
	}
	lost := func(field string, b, n source.Strs) {
		for _, s := range missing(b, n) {
			add(Loosening{Field: field, Entry: s.V, Pos: n.Pos, Base: s.Pos, Witness: fmt.Sprintf("%s %s: denied -> not denied", field, s.V), Message: fmt.Sprintf("%s loses %s", field, s.V)})
		}
	}
	added("permissions.allow", b.Allow, n.Allow, "asked -> allowed")
	added("permissions.ask", b.Ask, n.Ask, "new ask rule")
	lost("permissions.deny", b.Deny, n.Deny)
	if base.MCP.ManagedOnly.V {
		for _, s := range next.MCP.Servers {
			if !slices.ContainsFunc(base.MCP.Servers, func(t policy.Server) bool { return sameServer(s, t) }) {
				add(Loosening{Field: "mcp.servers", Entry: s.Name.V, Pos: s.Pos, Base: base.MCP.ServersPos, Witness: fmt.Sprintf("MCP server %s: blocked -> allowed", s.Name.V),
					Message: fmt.Sprintf("MCP server %s is new", s.Name.V)})
			}
		}
	}
	lost("mcp.denied", base.MCP.Denied, next.MCP.Denied)
	if len(base.Models.Allowed.Items) > 0 {
		if len(next.Models.Allowed.Items) == 0 {
			add(Loosening{Field: "models.allowed", Pos: next.Models.Allowed.Pos, Base: base.Models.Allowed.Pos, Witness: "models: listed only -> any", Message: "models.allowed is empty, so any model is allowed"})
		} else {
			added("models.allowed", base.Models.Allowed, next.Models.Allowed, "blocked -> allowed")
		}
	}
}

// modeRank orders permission modes from strict to loose; a mode nobody knows ranks loosest.
func modeRank(mode string) int {
	if mode == "" {
		mode = "default"
	}
	if i := slices.Index(policy.PermissionModes, mode); i >= 0 {
		return i
	}
	return len(policy.PermissionModes)
}

func missing(from, in source.Strs) []source.Str {
	var out []source.Str
	for _, s := range from.Items {
		if !slices.ContainsFunc(in.Items, func(t source.Str) bool { return s.V == t.V }) {
			out = append(out, s)
		}
	}
	return out
}

func sameServer(a, b policy.Server) bool {
	return a.Name.V == b.Name.V && a.URL.V == b.URL.V && slices.EqualFunc(a.Command.Items, b.Command.Items, func(x, y source.Str) bool { return x.V == y.V })
}
