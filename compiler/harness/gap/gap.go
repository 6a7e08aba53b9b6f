// Package gap collects what a target cannot hold while a renderer works, and lists what a policy asks for at all.
package gap

import (
	"cmp"
	"slices"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
)

// Field is a key of the policy that asks for something, with the concept it belongs to.
type Field struct {
	Concept harness.Concept
	Path    string
}

// Fields lists the keys by which a policy asks a harness for something, concepts in display order. A lock that is written as false asks for nothing.
func Fields(p *effective.Policy, id string) []Field {
	out := make([]Field, 0, 16)
	add := func(set bool, c harness.Concept, path string) {
		if set {
			out = append(out, Field{c, path})
		}
	}
	add(p.Sandboxed(), harness.Sandbox, ModeField(p))
	add(p.Permissions.SandboxRequired.V, harness.Sandbox, "permissions.sandboxRequired")
	add(len(p.Sandbox.WritableRoots.Items) > 0, harness.WritableRoots, "sandbox.writableRoots")
	add(len(p.Sandbox.ProtectedPaths.Items) > 0, harness.ProtectedPaths, "sandbox.protectedPaths")
	for _, c := range [...]harness.Concept{harness.Egress, harness.Fetch} {
		add(p.Egress.Default.V == "deny", c, "egress.default")
		add(len(p.Egress.AllowedDomains.Items) > 0, c, "egress.allowedDomains")
		add(len(p.Egress.Presets.Items) > 0, c, "egress.presets")
		add(len(p.Egress.DeniedDomains.Items) > 0, c, "egress.deniedDomains")
	}
	add(p.Permissions.Mode.IsSet(), harness.Permissions, "permissions.mode")
	add(len(p.Permissions.Allow.Items) > 0, harness.Permissions, "permissions.allow")
	add(len(p.Permissions.Ask.Items) > 0, harness.Permissions, "permissions.ask")
	add(len(p.Permissions.Deny.Items) > 0, harness.Permissions, "permissions.deny")
	add(p.Permissions.DisableBypass.V, harness.BypassLock, "permissions.disableBypass")
	add(p.MCP.ManagedOnly.V, harness.MCP, "mcp.managedOnly")
	add(len(p.MCP.Servers) > 0, harness.MCP, "mcp.servers")
	add(len(p.MCP.Denied.Items) > 0, harness.MCP, "mcp.denied")
	add(p.Hooks.ManagedOnly.V, harness.Hooks, "hooks.managedOnly")
	add(len(p.Hooks.Items) > 0, harness.Hooks, "hooks.items")
	add(p.Models.Default.IsSet(), harness.Models, "models.default")
	add(p.Models.Allowed.IsSet(), harness.Models, "models.allowed")
	add(p.Models.Enforce.V, harness.Models, "models.enforce")
	pin := p.Pin(id)
	add(pin != nil && pin.Model.IsSet(), harness.Models, "harnesses."+id+".model")
	add(p.Telemetry.Enabled.IsSet(), harness.Telemetry, "telemetry.enabled")
	add(p.Telemetry.OTLPEndpoint.IsSet(), harness.Telemetry, "telemetry.otlpEndpoint")
	add(p.Telemetry.Protocol.IsSet(), harness.Telemetry, "telemetry.protocol")
	add(p.Telemetry.LogPrompts.IsSet(), harness.Telemetry, "telemetry.logPrompts")
	add(len(p.Telemetry.Attributes) > 0, harness.Telemetry, "telemetry.attributes")
	add(p.Instructions.V != "", harness.Instructions, "instructions")
	add(len(p.Env) > 0, harness.Env, "env")
	add(pin != nil && len(pin.Overrides) > 0, harness.Overrides, "harnesses."+id+".overrides")
	add(pin != nil && pin.Version.IsSet(), harness.VersionPin, "harnesses."+id+".version")
	return out
}

// ModeField is the key under which a policy has its sandbox mode.
func ModeField(p *effective.Policy) string { return cmp.Or(p.Sandbox.ModeField, "sandbox.mode") }

// EgressField is the key that stands for the egress rules of a policy as a whole.
func EgressField(p *effective.Policy) string {
	switch e := &p.Egress; {
	case len(e.AllowedDomains.Items) > 0:
		return "egress.allowedDomains"
	case len(e.Presets.Items) > 0:
		return "egress.presets"
	case len(e.DeniedDomains.Items) > 0:
		return "egress.deniedDomains"
	}
	return "egress.default"
}

// List collects the gaps of one target.
type List struct {
	table   *harness.Harness
	os      string
	version harness.Version
	gaps    []harness.Gap
}

// New returns an empty list. Of table only the id and the capabilities are used.
func New(table *harness.Harness, t harness.Target) *List {
	return &List{table: table, os: t.OS, version: t.Version, gaps: make([]harness.Gap, 0, 24)}
}

// Add adds a gap of this target.
func (l *List) Add(g harness.Gap) {
	g.Harness, g.OS = l.table.ID, l.os
	l.gaps = append(l.gaps, g)
}

// Unsupported says that a field has no counterpart in the harness at all.
func (l *List) Unsupported(c harness.Concept, field string) {
	l.Add(harness.Gap{Concept: c, Field: field, Grade: harness.None, Reason: Unsupported(l.table.ID, field)})
}

// Unsupported is the sentence for a field without a counterpart.
func Unsupported(id, field string) string {
	return id + `: profile field "` + field + `" is not supported and was not rendered`
}

// Row says what the capability table says about a concept that the policy uses, when that is less than enforced. It returns the grade.
func (l *List) Row(c harness.Concept, field string) harness.Grade {
	row := l.table.Capability(c, l.os, l.version)
	if row.Grade < harness.Enforced {
		l.Add(harness.Gap{Concept: c, Field: field, Grade: row.Grade, Reason: row.Limit, Bypass: row.Bypass})
	}
	return row.Grade
}

// Gaps returns the gaps in the order of concepts, fields and entries, each once.
func (l *List) Gaps() []harness.Gap {
	slices.SortFunc(l.gaps, func(a, b harness.Gap) int {
		return cmp.Or(cmp.Compare(order(a.Concept), order(b.Concept)), strings.Compare(a.Field, b.Field), strings.Compare(a.Entry, b.Entry), strings.Compare(a.Reason, b.Reason))
	})
	return slices.CompactFunc(l.gaps, func(a, b harness.Gap) bool {
		return a.Concept == b.Concept && a.Field == b.Field && a.Entry == b.Entry && a.Reason == b.Reason
	})
}

var concepts = [...]harness.Concept{harness.Sandbox, harness.WritableRoots, harness.ProtectedPaths, harness.Egress, harness.Fetch, harness.Permissions, harness.BypassLock,
	harness.MCP, harness.Hooks, harness.Models, harness.Telemetry, harness.Instructions, harness.Env, harness.Overrides, harness.VersionPin}

func order(c harness.Concept) int { return slices.Index(concepts[:], c) }
