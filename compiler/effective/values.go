package effective

import (
	"encoding/json"
	"strconv"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Value is one leaf of an effective policy with the place that decided it.
type Value struct {
	Key   string
	Value string
	Pos   diag.Pos
	// Field is the key of the Field it belongs to, Entry its index there, -1 for a scalar and for what stands for a whole list.
	Field string
	Entry int
}

// Values lists every value of a policy in document order; a list has one value for each item, and one for itself when it is empty.
func Values(p *Policy) []Value {
	var out []Value
	// The entry that add is at; a scalar has no other field than its key.
	field, entry := "", -1
	add := func(key, value string, pos diag.Pos) {
		if !pos.IsValid() {
			return
		}
		v := Value{key, value, pos, field, entry}
		if field == "" {
			v.Field = key
		}
		out = append(out, v)
	}
	// within makes add write entries of a list.
	within := func(key string, n int, each func(i int)) {
		if field != "" {
			for i := range n {
				each(i)
			}
			return
		}
		for i := range n {
			field, entry = key, i
			each(i)
		}
		field, entry = "", -1
	}
	str := func(key string, s source.Str) { add(key, s.V, s.Pos) }
	boolean := func(key string, b source.Bool) { add(key, strconv.FormatBool(b.V), b.Pos) }
	item := func(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }
	strs := func(key string, l source.Strs) {
		if len(l.Items) == 0 {
			add(key, "[]", l.Pos)
		}
		within(key, len(l.Items), func(i int) { str(item(key, i), l.Items[i]) })
	}
	pairs := func(key string, ps []source.Pair) {
		within(key, len(ps), func(i int) { str(key+"."+ps[i].Key.V, ps[i].Value) })
	}
	hosts := func(key string, l policy.Hosts) {
		if len(l.Items) == 0 {
			add(key, "[]", l.Pos)
		}
		within(key, len(l.Items), func(i int) { add(item(key, i), l.Items[i].Pattern.String(), l.Items[i].Pos) })
	}
	paths := func(key string, l policy.FilePaths) {
		if len(l.Items) == 0 {
			add(key, "[]", l.Pos)
		}
		within(key, len(l.Items), func(i int) { add(item(key, i), l.Items[i].Path.String(), l.Items[i].Pos) })
	}
	for _, h := range p.Harnesses {
		at := "harnesses." + h.Harness.V
		str(at+".version", h.Version)
		str(at+".model", h.Model)
		if h.OverridesPos.IsValid() {
			// Overrides are plain data, which encoding/json always writes.
			b, _ := json.Marshal(h.Overrides)
			add(at+".overrides", string(b), h.OverridesPos)
		}
	}
	str("models.default", p.Models.Default)
	strs("models.allowed", p.Models.Allowed)
	boolean("models.enforce", p.Models.Enforce)
	str("permissions.mode", p.Permissions.Mode)
	strs("permissions.allow", p.Permissions.Allow)
	strs("permissions.ask", p.Permissions.Ask)
	strs("permissions.deny", p.Permissions.Deny)
	boolean("permissions.disableBypass", p.Permissions.DisableBypass)
	boolean("permissions.sandboxRequired", p.Permissions.SandboxRequired)
	str("sandbox.mode", p.Sandbox.Mode)
	paths("sandbox.writableRoots", p.Sandbox.WritableRoots)
	paths("sandbox.protectedPaths", p.Sandbox.ProtectedPaths)
	str("sandbox.policy", p.Sandbox.Policy)
	str("egress.default", p.Egress.Default)
	hosts("egress.allowedDomains", p.Egress.AllowedDomains)
	strs("egress.presets", p.Egress.Presets)
	hosts("egress.deniedDomains", p.Egress.DeniedDomains)
	boolean("mcp.managedOnly", p.MCP.ManagedOnly)
	if len(p.MCP.Servers) == 0 {
		add("mcp.servers", "[]", p.MCP.ServersPos)
	}
	within("mcp.servers", len(p.MCP.Servers), func(i int) {
		s, at := &p.MCP.Servers[i], item("mcp.servers", i)
		str(at+".name", s.Name)
		str(at+".url", s.URL)
		strs(at+".command", s.Command)
		pairs(at+".headers", s.Headers)
	})
	strs("mcp.denied", p.MCP.Denied)
	boolean("hooks.managedOnly", p.Hooks.ManagedOnly)
	within("hooks.items", len(p.Hooks.Items), func(i int) {
		h, at := &p.Hooks.Items[i], item("hooks.items", i)
		str(at+".event", h.Event)
		str(at+".matcher", h.Matcher)
		str(at+".command", h.Command)
	})
	boolean("telemetry.enabled", p.Telemetry.Enabled)
	str("telemetry.otlpEndpoint", p.Telemetry.OTLPEndpoint)
	str("telemetry.protocol", p.Telemetry.Protocol)
	boolean("telemetry.logPrompts", p.Telemetry.LogPrompts)
	pairs("telemetry.attributes", p.Telemetry.Attributes)
	str("instructions", p.Instructions)
	pairs("env", p.Env)
	within("require", len(p.Require), func(i int) {
		r := &p.Require[i]
		add(item("require", i), r.Concept.V+" on "+r.Harness.V+": "+r.Grade.V, r.Pos)
	})
	return out
}
