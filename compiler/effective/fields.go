package effective

import (
	"maps"
	"slices"
	"strings"

	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Merging says what a layer makes of a field that an earlier layer wrote.
type Merging uint8

// Replaced fields take the value of the last layer that writes them, a list as a whole. United lists add up over all layers. Keyed maps take, for each key, the
// value of the last layer that writes the key.
const (
	Replaced Merging = iota
	United
	Keyed
)

// Field is a value of the policy model that is merged as one: a scalar, a list or a map.
type Field struct {
	Key     string
	Merging Merging
	// Switch is set for a boolean that halo takes for false when nobody writes it; List for a list or a map.
	Switch, List bool
	// drop takes the whole field out of a body; filter takes out the entries for which keep is false, nil for a field without entries.
	drop   func(*policy.Body)
	filter func(b *policy.Body, keep func(i int) bool)
}

// Fields lists the fields of the model in document order. Every Value belongs to one of them.
func Fields() []Field {
	out := make([]Field, 0, 64)
	for _, id := range policy.Harnesses {
		at := "harnesses." + id
		out = append(out,
			scalar(at+".version", func(b *policy.Body) *source.Str { return &pinOf(b, id).Version }),
			scalar(at+".model", func(b *policy.Body) *source.Str { return &pinOf(b, id).Model }),
			Field{Key: at + ".overrides", Merging: Keyed, List: true,
				drop: func(b *policy.Body) {
					p := pinOf(b, id)
					p.Overrides, p.OverridesPos, p.OverrideKeys = nil, 0, nil
				},
				filter: func(b *policy.Body, keep func(int) bool) { filterOverrides(pinOf(b, id), keep) }})
	}
	return append(out,
		scalar("models.default", func(b *policy.Body) *source.Str { return &b.Models.Default }),
		texts("models.allowed", Replaced, func(b *policy.Body) *source.Strs { return &b.Models.Allowed }),
		boolean("models.enforce", true, func(b *policy.Body) *source.Bool { return &b.Models.Enforce }),
		scalar("permissions.mode", func(b *policy.Body) *source.Str { return &b.Permissions.Mode }),
		texts("permissions.allow", Replaced, func(b *policy.Body) *source.Strs { return &b.Permissions.Allow }),
		texts("permissions.ask", Replaced, func(b *policy.Body) *source.Strs { return &b.Permissions.Ask }),
		texts("permissions.deny", United, func(b *policy.Body) *source.Strs { return &b.Permissions.Deny }),
		boolean("permissions.disableBypass", true, func(b *policy.Body) *source.Bool { return &b.Permissions.DisableBypass }),
		boolean("permissions.sandboxRequired", true, func(b *policy.Body) *source.Bool { return &b.Permissions.SandboxRequired }),
		scalar("sandbox.mode", func(b *policy.Body) *source.Str { return &b.Sandbox.Mode }),
		paths("sandbox.writableRoots", Replaced, func(b *policy.Body) *policy.FilePaths { return &b.Sandbox.WritableRoots }),
		paths("sandbox.protectedPaths", United, func(b *policy.Body) *policy.FilePaths { return &b.Sandbox.ProtectedPaths }),
		scalar("sandbox.policy", func(b *policy.Body) *source.Str { return &b.Sandbox.Policy }),
		scalar("egress.default", func(b *policy.Body) *source.Str { return &b.Egress.Default }),
		hosts("egress.allowedDomains", Replaced, func(b *policy.Body) *policy.Hosts { return &b.Egress.AllowedDomains }),
		texts("egress.presets", Replaced, func(b *policy.Body) *source.Strs { return &b.Egress.Presets }),
		hosts("egress.deniedDomains", United, func(b *policy.Body) *policy.Hosts { return &b.Egress.DeniedDomains }),
		boolean("mcp.managedOnly", true, func(b *policy.Body) *source.Bool { return &b.MCP.ManagedOnly }),
		Field{Key: "mcp.servers", Merging: Replaced, List: true,
			drop:   func(b *policy.Body) { b.MCP.Servers, b.MCP.ServersPos = nil, 0 },
			filter: func(b *policy.Body, keep func(int) bool) { b.MCP.Servers = filtered(b.MCP.Servers, keep) }},
		texts("mcp.denied", United, func(b *policy.Body) *source.Strs { return &b.MCP.Denied }),
		boolean("hooks.managedOnly", true, func(b *policy.Body) *source.Bool { return &b.Hooks.ManagedOnly }),
		Field{Key: "hooks.items", Merging: United, List: true,
			drop:   func(b *policy.Body) { b.Hooks.Items, b.Hooks.Pos = nil, 0 },
			filter: func(b *policy.Body, keep func(int) bool) { b.Hooks.Items = filtered(b.Hooks.Items, keep) }},
		boolean("telemetry.enabled", false, func(b *policy.Body) *source.Bool { return &b.Telemetry.Enabled }),
		scalar("telemetry.otlpEndpoint", func(b *policy.Body) *source.Str { return &b.Telemetry.OTLPEndpoint }),
		scalar("telemetry.protocol", func(b *policy.Body) *source.Str { return &b.Telemetry.Protocol }),
		boolean("telemetry.logPrompts", false, func(b *policy.Body) *source.Bool { return &b.Telemetry.LogPrompts }),
		pairs("telemetry.attributes", func(b *policy.Body) *[]source.Pair { return &b.Telemetry.Attributes }),
		scalar("instructions", func(b *policy.Body) *source.Str { return &b.Instructions }),
		pairs("env", func(b *policy.Body) *[]source.Pair { return &b.Env }),
		Field{Key: "require", Merging: United, List: true,
			drop:   func(b *policy.Body) { b.Require = nil },
			filter: func(b *policy.Body, keep func(int) bool) { b.Require = filtered(b.Require, keep) }})
}

func scalar(key string, at func(*policy.Body) *source.Str) Field {
	return Field{Key: key, drop: func(b *policy.Body) { *at(b) = source.Str{} }}
}

func boolean(key string, isSwitch bool, at func(*policy.Body) *source.Bool) Field {
	return Field{Key: key, Switch: isSwitch, drop: func(b *policy.Body) { *at(b) = source.Bool{} }}
}

func texts(key string, m Merging, at func(*policy.Body) *source.Strs) Field {
	return Field{Key: key, Merging: m, List: true, drop: func(b *policy.Body) { *at(b) = source.Strs{} },
		filter: func(b *policy.Body, keep func(int) bool) { at(b).Items = filtered(at(b).Items, keep) }}
}

func hosts(key string, m Merging, at func(*policy.Body) *policy.Hosts) Field {
	return Field{Key: key, Merging: m, List: true, drop: func(b *policy.Body) { *at(b) = policy.Hosts{} },
		filter: func(b *policy.Body, keep func(int) bool) { at(b).Items = filtered(at(b).Items, keep) }}
}

func paths(key string, m Merging, at func(*policy.Body) *policy.FilePaths) Field {
	return Field{Key: key, Merging: m, List: true, drop: func(b *policy.Body) { *at(b) = policy.FilePaths{} },
		filter: func(b *policy.Body, keep func(int) bool) { at(b).Items = filtered(at(b).Items, keep) }}
}

func pairs(key string, at func(*policy.Body) *[]source.Pair) Field {
	return Field{Key: key, Merging: Keyed, List: true, drop: func(b *policy.Body) { *at(b) = nil },
		filter: func(b *policy.Body, keep func(int) bool) { *at(b) = filtered(*at(b), keep) }}
}

// pinOf returns the pin of a harness in a body, or one that is thrown away.
func pinOf(b *policy.Body, id string) *policy.Pin {
	if i := slices.IndexFunc(b.Harnesses, func(p policy.Pin) bool { return p.Harness.V == id }); i >= 0 {
		return &b.Harnesses[i]
	}
	return &policy.Pin{}
}

func filtered[T any](items []T, keep func(i int) bool) []T {
	out := make([]T, 0, len(items))
	for i, x := range items {
		if keep(i) {
			out = append(out, x)
		}
	}
	return out
}

// filterOverrides takes out the override keys of some indexes of OverrideKeys.
func filterOverrides(p *policy.Pin, keep func(i int) bool) {
	keys := p.OverrideKeys
	p.OverrideKeys = filtered(keys, keep)
	for i, k := range keys {
		if !keep(i) {
			p.Overrides = removed(p.Overrides, k.Key.V)
		}
	}
}

// removed returns values without the one at a dotted path, and without the mappings that held nothing else. A key may have dots itself.
func removed(values map[string]any, path string) map[string]any {
	for k, v := range values {
		if k == path {
			out := maps.Clone(values)
			delete(out, k)
			return out
		}
		rest, below := strings.CutPrefix(path, k+".")
		in, isMap := v.(map[string]any)
		if !below || !isMap || !holds(in, rest) {
			continue
		}
		out := maps.Clone(values)
		if left := removed(in, rest); len(left) > 0 {
			out[k] = left
		} else {
			delete(out, k)
		}
		return out
	}
	return values
}

// holds reports whether values has something at a dotted path.
func holds(values map[string]any, path string) bool {
	for k, v := range values {
		if k == path {
			return true
		}
		if rest, below := strings.CutPrefix(path, k+"."); below {
			if in, ok := v.(map[string]any); ok && holds(in, rest) {
				return true
			}
		}
	}
	return false
}

// Without returns what a policy would be if parts of it had not been written: drop is asked for every field, with the index -1, and for every entry of a list or
// map. The result has no parent, and p is not changed.
func (p *Policy) Without(drop func(key string, entry int) bool) *Policy {
	next := *p
	next.Parent, next.Own, next.Doc = nil, nil, nil
	next.Harnesses = slices.Clone(p.Harnesses)
	rules := p.Hosts.Rules()
	for _, f := range Fields() {
		if drop(f.Key, -1) {
			f.drop(&next.Body)
		} else if f.filter != nil {
			f.filter(&next.Body, func(i int) bool { return !drop(f.Key, i) })
		}
	}
	if drop("sandbox.policy", -1) {
		next.Box = nil
	}
	if drop("egress.default", -1) {
		rules.Default, rules.DefaultPos = "", 0
	}
	// The hosts that count are not always what the lists say: units that apply together narrow each other, and a preset stands for many.
	listed := 0
	rules.Allowed = slices.DeleteFunc(slices.Clone(rules.Allowed), func(e egress.Entry) bool {
		i := listed
		if e.Field == "egress.presets" {
			i = slices.IndexFunc(p.Egress.Presets.Items, func(s source.Str) bool { return s.V == e.Name })
		} else {
			listed++
		}
		return drop(e.Field, -1) || drop(e.Field, i)
	})
	i := -1
	rules.Denied = slices.DeleteFunc(slices.Clone(rules.Denied), func(e egress.Entry) bool {
		i++
		return drop(e.Field, -1) || drop(e.Field, i)
	})
	next.Hosts = egress.Compile(rules)
	return &next
}
