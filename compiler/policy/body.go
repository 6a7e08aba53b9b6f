package policy

import (
	"slices"
	"strconv"
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

func sandboxMode(key, field string, at func(*Body) *Sandboxing) source.Field[Body] {
	return source.Field[Body]{Name: key, Read: func(d *decoder, n *node, b *Body) { readMode(d, n, field, at(b)) }}
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
	sandboxMode("sandbox", "permissions.sandbox", func(b *Body) *Sandboxing { return &b.Sandbox }),
	boolean("sandboxRequired", func(b *Body) *source.Bool { return &b.Permissions.SandboxRequired }),
}

var overlayPermissionFields = slices.DeleteFunc(slices.Clone(permissionFields), func(f source.Field[Body]) bool {
	return f.Name != "deny" && f.Name != "sandbox" && f.Name != "sandboxRequired"
})

var sandboxFields = []source.Field[Body]{
	sandboxMode("mode", "sandbox.mode", func(b *Body) *Sandboxing { return &b.Sandbox }),
	paths("writableRoots", fspath.ParseRoot, codeRootPath, func(b *Body) *FilePaths { return &b.Sandbox.WritableRoots }),
	paths("protectedPaths", fspath.ParseProtected, codeProtected, func(b *Body) *FilePaths { return &b.Sandbox.ProtectedPaths }),
	name("policy", func(b *Body) *source.Str { return &b.Sandbox.Policy }),
	{Name: "pack", Hint: "name a Sandbox document with sandbox.policy, and the pack in that document"},
}

var serverFields = []source.Field[Server]{
	name("name", func(s *Server) *source.Str { return &s.Name }),
	url("url", func(s *Server) *source.Str { return &s.URL }, "https"),
	list("command", func(s *Server) *source.Strs { return &s.Command }),
	pairs("headers", func(s *Server) *[]source.Pair { return &s.Headers }),
}

var mcpFields = []source.Field[MCP]{
	boolean("managedOnly", func(m *MCP) *source.Bool { return &m.ManagedOnly }),
	{Name: "servers", Read: func(d *decoder, n *node, m *MCP) {
		m.ServersPos = source.Seq(d, n, func(_ int, c *node) {
			s := Server{Pos: d.Pos(c)}
			source.Map(d, c, serverFields, &s)
			if source.IsMapping(c) {
				d.Require(c, "name", s.Name.IsSet())
				if (source.Get(c, "url") != nil) == (source.Get(c, "command") != nil) || s.Command.IsSet() && len(s.Command.Items) == 0 {
					x := d.Report(codeServer, c, "an MCP server needs exactly one of url (https) and command")
					d.Diags.Add(*x)
				}
			}
			m.Servers = append(m.Servers, s)
		})
	}},
	list("denied", func(m *MCP) *source.Strs { return &m.Denied }),
}

var overlayMCPFields = slices.DeleteFunc(slices.Clone(mcpFields), func(f source.Field[MCP]) bool { return f.Name != "denied" })

var hookFields = []source.Field[Hook]{
	enum("event", func(h *Hook) *source.Str { return &h.Event }, HookEvents...),
	str("matcher", func(h *Hook) *source.Str { return &h.Matcher }),
	str("command", func(h *Hook) *source.Str { return &h.Command }),
}

var hooksFields = []source.Field[Hooks]{
	boolean("managedOnly", func(h *Hooks) *source.Bool { return &h.ManagedOnly }),
	{Name: "items", Read: func(d *decoder, n *node, h *Hooks) {
		h.Pos = source.Seq(d, n, func(_ int, c *node) {
			k := Hook{Pos: d.Pos(c)}
			source.Map(d, c, hookFields, &k)
			if source.IsMapping(c) {
				d.Require(c, "event", k.Event.IsSet())
				d.Require(c, "command", k.Command.IsSet())
			}
			h.Items = append(h.Items, k)
		})
	}},
}

var telemetryFields = []source.Field[Telemetry]{
	boolean("enabled", func(t *Telemetry) *source.Bool { return &t.Enabled }),
	url("otlpEndpoint", func(t *Telemetry) *source.Str { return &t.OTLPEndpoint }, "https", "http"),
	enum("protocol", func(t *Telemetry) *source.Str { return &t.Protocol }, "grpc", "http/protobuf"),
	boolean("logPrompts", func(t *Telemetry) *source.Bool { return &t.LogPrompts }),
	pairs("attributes", func(t *Telemetry) *[]source.Pair { return &t.Attributes }),
}

var pinFields = []source.Field[Pin]{
	{Name: "version", Read: func(d *decoder, n *node, p *Pin) { p.Version = readVersion(d, n) }},
	name("model", func(p *Pin) *source.Str { return &p.Model }),
	{Name: "overrides", Read: func(d *decoder, n *node, p *Pin) {
		if !source.IsMapping(n) {
			var none struct{}
			source.Map(d, n, nil, &none)
			return
		}
		p.OverridesPos = d.Pos(n)
		p.Overrides, _ = d.Value(n).(map[string]any)
		overrideKeys(d, n, "", &p.OverrideKeys)
	}},
}

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

func readPins(d *decoder, n *node, b *Body) {
	source.Keys(d, n, func(k source.Str, v *node) {
		if !slices.Contains(Harnesses, k.V) {
			x := d.Report(codeHarness, v, "%s is not a harness id; known are %s", strconv.Quote(k.V), strings.Join(Harnesses, ", "))
			x.Pos = k.Pos
			if near := nearestHarness(k.V); near != "" {
				x.Hint = "write " + near
			}
			d.Diags.Add(*x)
			return
		}
		p := Pin{Harness: k}
		if source.IsScalar(v) {
			p.Version = readVersion(d, v)
		} else {
			source.Map(d, v, pinFields, &p)
		}
		b.Harnesses = append(b.Harnesses, p)
	})
	slices.SortFunc(b.Harnesses, func(x, y Pin) int { return strings.Compare(x.Harness.V, y.Harness.V) })
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

var requirementFields = []source.Field[Requirement]{
	enum("concept", func(r *Requirement) *source.Str { return &r.Concept }, Concepts...),
	enum("harness", func(r *Requirement) *source.Str { return &r.Harness }, Harnesses...),
	{Name: "os", Read: func(d *decoder, n *node, r *Requirement) {
		r.OS.Pos = source.Seq(d, n, func(_ int, c *node) {
			if s := d.Enum(c, OSes...); s.IsSet() {
				r.OS.Items = append(r.OS.Items, s)
			}
		})
	}},
	enum("grade", func(r *Requirement) *source.Str { return &r.Grade }, Grades[:3]...),
}

func readRequire(d *decoder, n *node) []Requirement {
	var out []Requirement
	source.Seq(d, n, func(_ int, c *node) {
		r := Requirement{Pos: d.Pos(c)}
		source.Map(d, c, requirementFields, &r)
		if source.IsMapping(c) {
			d.Require(c, "concept", r.Concept.IsSet())
			d.Require(c, "harness", r.Harness.IsSet())
			d.Require(c, "grade", r.Grade.IsSet())
		}
		if r.Concept.IsSet() && r.Harness.IsSet() && r.Grade.IsSet() {
			out = append(out, r)
		}
	})
	return out
}

var bodyFields = []source.Field[Body]{
	{Name: "harnesses", Read: readPins},
	{Name: "models", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, modelFields, &b.Models) }},
	{Name: "permissions", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, permissionFields, b) }},
	{Name: "sandbox", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, sandboxFields, b) }},
	{Name: "egress", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, egressFields, &b.Egress) }},
	{Name: "mcp", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, mcpFields, &b.MCP) }},
	{Name: "hooks", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, hooksFields, &b.Hooks) }},
	{Name: "telemetry", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, telemetryFields, &b.Telemetry) }},
	str("instructions", func(b *Body) *source.Str { return &b.Instructions }),
	{Name: "env", Read: func(d *decoder, n *node, b *Body) { b.Env, _ = d.Pairs(n) }},
	{Name: "require", Read: func(d *decoder, n *node, b *Body) { b.Require = readRequire(d, n) }},
}

const overlayHint = "an overlay can only tighten: it takes egress, sandbox, permissions.deny, permissions.sandbox, permissions.sandboxRequired and mcp.denied"

var overlayFields = []source.Field[Body]{
	{Name: "permissions", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, overlayPermissionFields, b) }},
	{Name: "sandbox", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, sandboxFields, b) }},
	{Name: "egress", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, egressFields, &b.Egress) }},
	{Name: "mcp", Read: func(d *decoder, n *node, b *Body) { source.Map(d, n, overlayMCPFields, &b.MCP) }},
	{Name: "harnesses", Hint: overlayHint},
	{Name: "models", Hint: overlayHint},
	{Name: "hooks", Hint: overlayHint},
	{Name: "telemetry", Hint: overlayHint},
	{Name: "instructions", Hint: overlayHint},
	{Name: "env", Hint: overlayHint},
	{Name: "require", Hint: overlayHint},
}
