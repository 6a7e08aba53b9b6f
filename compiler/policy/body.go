package policy

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/source"
)

// PermissionModes are the permission modes from strictest to loosest. bypassPermissions is known only to be refused.
var PermissionModes = []string{"plan", "default", "acceptEdits", "auto"}

// HookEvents are the events a hook can name.
var HookEvents = []string{"PreToolUse", "PostToolUse", "SessionStart", "Stop", "UserPromptSubmit"}

var modes = []string{ModeOff, ModeWorkspaceWrite, ModeReadOnly}

var modelFields = []source.Field[Models]{
	str("default", func(m *Models) *source.Str { return &m.Default }),
	list("allowed", func(m *Models) *source.Strs { return &m.Allowed }),
	boolean("enforce", func(m *Models) *source.Bool { return &m.Enforce }),
}

var egressFields = []source.Field[Egress]{
	enum("default", func(e *Egress) *source.Str { return &e.Default }, "allow", "deny"),
	hosts("allowedDomains", false, func(e *Egress) *Hosts { return &e.AllowedDomains }),
	list("presets", func(e *Egress) *source.Strs { return &e.Presets }),
	hosts("deniedDomains", true, func(e *Egress) *Hosts { return &e.DeniedDomains }),
}

func sandboxMode(key, field string) source.Field[Body] {
	return custom(key, func(b *Body) *source.Str { return &b.Sandbox.Mode }, words(modes), func(d *decoder, n *node, b *Body) { readMode(d, n, field, &b.Sandbox) })
}

func readMode(d *decoder, n *node, field string, s *Sandboxing) {
	m := d.Enum(n, modes...)
	if !m.IsSet() {
		return
	}
	if s.Mode.IsSet() && s.Mode.V != m.V {
		x := d.Report(codeModes, n, "%s is %s but %s is %s: they are two spellings of one setting", field, m.V, s.ModeField, s.Mode.V)
		x.Hint = "keep one of the two"
		d.Diags.Add(x.WithRelated(s.Mode.Pos, "the other spelling"))
		return
	}
	if !s.Mode.IsSet() {
		s.Mode, s.ModeField = m, field
	}
}

var permissionFields = []source.Field[Body]{
	enum("mode", func(b *Body) *source.Str { return &b.Permissions.Mode }, "default", "acceptEdits", "plan", "auto", "bypassPermissions"),
	list("allow", func(b *Body) *source.Strs { return &b.Permissions.Allow }),
	list("ask", func(b *Body) *source.Strs { return &b.Permissions.Ask }),
	list("deny", func(b *Body) *source.Strs { return &b.Permissions.Deny }),
	boolean("disableBypass", func(b *Body) *source.Bool { return &b.Permissions.DisableBypass }),
	sandboxMode("sandbox", "permissions.sandbox"),
	boolean("sandboxRequired", func(b *Body) *source.Bool { return &b.Permissions.SandboxRequired }),
}

var overlayPermissionFields = slices.DeleteFunc(slices.Clone(permissionFields), func(f source.Field[Body]) bool {
	return f.Name != "deny" && f.Name != "sandbox" && f.Name != "sandboxRequired"
})

var sandboxFields = []source.Field[Body]{
	sandboxMode("mode", "sandbox.mode"),
	paths("writableRoots", "writable root", fspath.ParseRoot, codeRootPath, func(b *Body) *FilePaths { return &b.Sandbox.WritableRoots }),
	paths("protectedPaths", "protected path", fspath.ParseProtected, codeProtected, func(b *Body) *FilePaths { return &b.Sandbox.ProtectedPaths }),
	name("policy", func(b *Body) *source.Str { return &b.Sandbox.Policy }),
	{Name: "pack", Hint: "name a Sandbox document with sandbox.policy, and the pack in that document"},
}

const oneOfTwo = "an MCP server needs exactly one of url (https) and command"

var serverMapping = mapping[Server]{
	fields: []source.Field[Server]{
		name("name", func(s *Server) *source.Str { return &s.Name }),
		url("url", func(s *Server) *source.Str { return &s.URL }, "https"),
		leaf("command", func(s *Server) *source.Strs { return &s.Command }, (*decoder).Texts, func() source.Shape {
			s := fullTexts()
			s.Least = 1
			return s
		}),
		pairs("headers", func(s *Server) *[]source.Pair { return &s.Headers }),
	},
	need: []string{"name"},
	one:  []string{"url", "command"}, code: codeServer, text: oneOfTwo,
	check: func(d *decoder, n *node, s *Server) {
		if s.Command.IsSet() && len(s.Command.Items) == 0 && source.Get(n, "url") == nil {
			d.Diags.Add(*d.Report(codeServer, n, oneOfTwo))
		}
	},
}

var mcpFields = []source.Field[MCP]{
	boolean("managedOnly", func(m *MCP) *source.Bool { return &m.ManagedOnly }),
	items("servers", serverMapping, func(m *MCP) *[]Server { return &m.Servers }, func(p diag.Pos) Server { return Server{Pos: p} }, func(m *MCP) *diag.Pos { return &m.ServersPos }),
	list("denied", func(m *MCP) *source.Strs { return &m.Denied }),
}

var overlayMCPFields = slices.DeleteFunc(slices.Clone(mcpFields), func(f source.Field[MCP]) bool { return f.Name != "denied" })

var hookMapping = mapping[Hook]{
	fields: []source.Field[Hook]{
		enum("event", func(h *Hook) *source.Str { return &h.Event }, HookEvents...),
		str("matcher", func(h *Hook) *source.Str { return &h.Matcher }),
		str("command", func(h *Hook) *source.Str { return &h.Command }),
	},
	need: []string{"event", "command"},
}

var hooksFields = []source.Field[Hooks]{
	boolean("managedOnly", func(h *Hooks) *source.Bool { return &h.ManagedOnly }),
	items("items", hookMapping, func(h *Hooks) *[]Hook { return &h.Items }, func(p diag.Pos) Hook { return Hook{Pos: p} }, func(h *Hooks) *diag.Pos { return &h.Pos }),
}

var telemetryFields = []source.Field[Telemetry]{
	boolean("enabled", func(t *Telemetry) *source.Bool { return &t.Enabled }),
	url("otlpEndpoint", func(t *Telemetry) *source.Str { return &t.OTLPEndpoint }, "https", "http"),
	enum("protocol", func(t *Telemetry) *source.Str { return &t.Protocol }, "grpc", "http/protobuf"),
	boolean("logPrompts", func(t *Telemetry) *source.Bool { return &t.LogPrompts }),
	pairs("attributes", func(t *Telemetry) *[]source.Pair { return &t.Attributes }),
}

var pinMapping = mapping[Pin]{fields: []source.Field[Pin]{
	leaf("version", func(p *Pin) *source.Str { return &p.Version }, readVersion, form("version")),
	name("model", func(p *Pin) *source.Str { return &p.Model }),
	custom("overrides", func(p *Pin) *map[string]any { return &p.Overrides }, anyTable, func(d *decoder, n *node, p *Pin) {
		if !source.IsMapping(n) {
			var none struct{}
			source.Map(d, n, nil, &none)
			return
		}
		p.OverridesPos = d.Pos(n)
		p.Overrides, _ = d.Value(n).(map[string]any)
		overrideKeys(d, n, "", &p.OverrideKeys)
	}),
}}

func anyTable() source.Shape { return source.Shape{Type: source.TableValue, Item: new(source.Shape)} }

// overrideKeys collects every key below overrides with its place; an empty mapping is a leaf.
func overrideKeys(d *decoder, n *node, prefix string, out *[]source.Pair) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		path := k.Value
		if prefix != "" {
			path = prefix + "." + path
		}
		if source.IsMapping(v) && len(v.Content) > 0 {
			overrideKeys(d, v, path, out)
			continue
		}
		*out = append(*out, source.Pair{Key: source.Str{V: d.In.Intern(path), Pos: d.Pos(k)}, Value: source.Str{V: d.In.Intern(v.Value), Pos: d.Pos(v)}})
	}
}

// pins is the shape of what readPins reads: a version, or a mapping, by harness.
func pins(of mapping[Pin]) source.Shape {
	pin := form("version")()
	pin.Or = new(of.shape())
	return source.Shape{Type: source.TableValue, Names: new(byHarness.shape()), Item: &pin}
}

func readPins(d *decoder, n *node, of mapping[Pin]) []Pin {
	var out []Pin
	source.Keys(d, n, func(k source.Str, v *node) {
		if !harnessKey(d, k, v) {
			return
		}
		p := Pin{Harness: k}
		if source.IsScalar(v) {
			p.Version = readVersion(d, v)
		} else {
			of.read(d, v, &p)
		}
		out = append(out, p)
	})
	slices.SortFunc(out, func(x, y Pin) int { return strings.Compare(x.Harness.V, y.Harness.V) })
	return out
}

func harnesses[T any](key string, of mapping[Pin], at func(*T) *[]Pin) source.Field[T] {
	return leaf(key, at, func(d *decoder, n *node) []Pin { return readPins(d, n, of) }, func() source.Shape { return pins(of) })
}

// nearestHarness knows the names that people and other tools use for a harness.
func nearestHarness(s string) string {
	switch strings.ToLower(s) {
	case "claude", "claudecode", "claude_code":
		return ClaudeCode
	case "copilot", "github-copilot", "copilotcli":
		return CopilotCLI
	case "gemini", "geminicli":
		return GeminiCLI
	case "cursor", "cursor-agent":
		return CursorCLI
	case "openai-codex", "codex-cli":
		return Codex
	}
	return diag.Nearest(s, Harnesses)
}

// Concepts are the words that `require` and the capability tables use for what a harness can hold, in display order.
var Concepts = []string{"sandbox", "writable-roots", "protected-paths", "egress", "fetch", "permissions", "bypass-lock", "mcp", "hooks", "models", "telemetry",
	"instructions", "env", "overrides", "version-pin"}

// Grades are the grades of a capability, strongest first.
var Grades = []string{"enforced", "overridable", "default", "none"}

var requirementMapping = mapping[Requirement]{
	fields: []source.Field[Requirement]{
		enum("concept", func(r *Requirement) *source.Str { return &r.Concept }, Concepts...),
		enum("harness", func(r *Requirement) *source.Str { return &r.Harness }, Harnesses...),
		custom("os", func(r *Requirement) *source.Strs { return &r.OS }, func() source.Shape { return listOf(words(OSes)()) }, func(d *decoder, n *node, r *Requirement) {
			r.OS.Pos = source.Seq(d, n, func(_ int, c *node) {
				if s := d.Enum(c, OSes...); s.IsSet() {
					r.OS.Items = append(r.OS.Items, s)
				}
			})
		}),
		enum("grade", func(r *Requirement) *source.Str { return &r.Grade }, Grades[:3]...),
	},
	need: []string{"concept", "harness", "grade"},
}

func require[T any](at func(*T) *[]Requirement) source.Field[T] {
	return leaf("require", at, readRequire, func() source.Shape { return listOf(requirementMapping.shape()) })
}

func readRequire(d *decoder, n *node) []Requirement {
	var out []Requirement
	source.Seq(d, n, func(_ int, c *node) {
		r := Requirement{Pos: d.Pos(c)}
		requirementMapping.read(d, c, &r)
		if r.Concept.IsSet() && r.Harness.IsSet() && r.Grade.IsSet() {
			out = append(out, r)
		}
	})
	return out
}

func fields[T any](of []source.Field[T]) mapping[T] { return mapping[T]{fields: of} }

// ofBody makes a table entry for a section of a Body whose keys fill fields of the Body itself.
func ofBody[V any](key string, of []source.Field[Body], at func(*Body) *V) source.Field[Body] {
	return custom(key, at, func() source.Shape { return source.Describe(of) }, func(d *decoder, n *node, b *Body) { source.Map(d, n, of, b) })
}

var bodyFields = []source.Field[Body]{
	harnesses("harnesses", pinMapping, func(b *Body) *[]Pin { return &b.Harnesses }),
	section("models", fields(modelFields), func(b *Body) *Models { return &b.Models }),
	ofBody("permissions", permissionFields, func(b *Body) *Permissions { return &b.Permissions }),
	ofBody("sandbox", sandboxFields, func(b *Body) *Sandboxing { return &b.Sandbox }),
	section("egress", fields(egressFields), func(b *Body) *Egress { return &b.Egress }),
	section("mcp", fields(mcpFields), func(b *Body) *MCP { return &b.MCP }),
	section("hooks", fields(hooksFields), func(b *Body) *Hooks { return &b.Hooks }),
	section("telemetry", fields(telemetryFields), func(b *Body) *Telemetry { return &b.Telemetry }),
	str("instructions", func(b *Body) *source.Str { return &b.Instructions }),
	pairs("env", func(b *Body) *[]source.Pair { return &b.Env }),
	require(func(b *Body) *[]Requirement { return &b.Require }),
}

const overlayHint = "an overlay can only tighten: it takes egress, sandbox, permissions.deny, permissions.sandbox, permissions.sandboxRequired and mcp.denied"

var overlayFields = append([]source.Field[Body]{
	ofBody("permissions", overlayPermissionFields, func(b *Body) *Permissions { return &b.Permissions }),
	ofBody("sandbox", sandboxFields, func(b *Body) *Sandboxing { return &b.Sandbox }),
	section("egress", fields(egressFields), func(b *Body) *Egress { return &b.Egress }),
	section("mcp", fields(overlayMCPFields), func(b *Body) *MCP { return &b.MCP }),
}, refused[Body](overlayHint, "harnesses", "models", "hooks", "telemetry", "instructions", "env", "require")...)
