package gemini

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/policy"
)

func folder(os string) string {
	switch os {
	case "darwin":
		return "/Library/Application Support/GeminiCli/"
	case "windows":
		return `C:\ProgramData\gemini-cli\`
	}
	return "/etc/gemini-cli/"
}

func settingsPath(os string) string { return folder(os) + "settings.json" }

func policyPath(os, name string) string {
	if os == "windows" {
		return folder(os) + `policies\` + name
	}
	return folder(os) + "policies/" + name
}

// current reports whether the pinned version has tool sandboxing and admin policies in their present form.
func current(v harness.Version) bool { return v.AtLeast(0, 36, 0) }

func render(t harness.Target) ([]harness.File, []harness.Gap) {
	g := gap.New(&table, t)
	if t.GatewayURL != "" {
		g.Add(harness.Gap{Concept: harness.Models, Field: "gateway.baseURL", Grade: harness.None, Reason: "no setting of gemini-cli holds the address of a gateway, so its traffic is not sent to it", Remedy: "set GOOGLE_GEMINI_BASE_URL on the devices"})
	}
	fields := gap.Fields(t.Policy, policy.GeminiCLI)
	if !current(t.Version) {
		return renderEarly(t, fields, g)
	}
	var files []harness.File
	for _, f := range policies(t, g) {
		files = append(files, harness.File{Dest: policyPath(t.OS, f.name), Owner: harness.Owner(t.OS), Mode: 0o644, Content: f.bytes()})
	}
	if doc := settings(t, fields, g); len(doc) > 0 {
		files = append(files, harness.File{Dest: settingsPath(t.OS), Owner: harness.Owner(t.OS), Mode: 0o644, Content: doc.Bytes()})
	}
	return files, g.Gaps()
}

// renderEarly renders the one lock that older versions know.
func renderEarly(t harness.Target, fields []gap.Field, g *gap.List) ([]harness.File, []harness.Gap) {
	var files []harness.File
	for _, f := range fields {
		if f.Concept == harness.Instructions || f.Concept == harness.Env {
			g.Unsupported(f.Concept, f.Path)
			continue
		}
		if g.Row(f.Concept, f.Path) > harness.None && f.Concept == harness.BypassLock {
			doc := jsondoc.Object{{Key: "security", Value: jsondoc.Object{{Key: "disableYoloMode", Value: true}}}}
			files = append(files, harness.File{Dest: settingsPath(t.OS), Owner: harness.Owner(t.OS), Mode: 0o644, Content: doc.Bytes()})
		}
	}
	return files, g.Gaps()
}

// locked reports whether the modes without questions are closed: they would open the network of the tool sandbox and answer every question of an egress rule.
func locked(t harness.Target) bool {
	p := t.Policy
	return p.Permissions.DisableBypass.V || p.Sandboxed() || p.EgressRules()
}

var modes = [...][2]string{{"default", "default"}, {"acceptEdits", "auto_edit"}, {"plan", "plan"}}

func settings(t harness.Target, fields []gap.Field, g *gap.List) jsondoc.Object {
	p := t.Policy
	pin := p.Pin(policy.GeminiCLI)
	var advanced, general, hooksConfig, security, model jsondoc.Object
	for _, f := range fields {
		switch f.Concept {
		case harness.Instructions, harness.Env:
			g.Unsupported(f.Concept, f.Path)
		case harness.Sandbox, harness.WritableRoots, harness.BypassLock, harness.Overrides, harness.VersionPin:
			g.Row(f.Concept, f.Path)
		}
	}
	if p.Sandboxed() {
		// A repository's .env could set variables of the program.
		advanced.Add("ignoreLocalEnv", true)
		if p.Mode() == policy.ModeReadOnly {
			g.Add(harness.Gap{Concept: harness.Sandbox, Field: gap.ModeField(p), Grade: harness.None, Reason: "gemini-cli has no read-only sandbox: its write tools are denied, and commands can write in the workspace"})
		}
	}
	if p.EgressRules() {
		if p.Sandboxed() {
			g.Row(harness.Egress, gap.EgressField(p))
		} else {
			g.Add(harness.Gap{Concept: harness.Egress, Field: gap.EgressField(p), Grade: harness.None, Reason: "nothing holds this for commands of gemini-cli while the sandbox is off"})
		}
	}
	if m := p.Permissions.Mode; m.IsSet() {
		i := slices.IndexFunc(modes[:], func(x [2]string) bool { return x[0] == m.V })
		if i < 0 {
			g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.mode", Grade: harness.None, Reason: "gemini-cli has no permission mode " + m.V + ", so the mode is left to the user"})
		} else {
			general.Add("defaultApprovalMode", modes[i][1])
			g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.mode", Grade: harness.Default, Reason: "the permission mode is where a session begins, and a user may change it", Bypass: []string{"--approval-mode"}})
		}
	}
	if pin != nil && pin.Version.IsSet() {
		general.Add("enableAutoUpdate", false)
	}
	hooks := hooks(t, g)
	if len(hooks) > 0 {
		hooksConfig.Add("enabled", true)
	}
	if locked(t) {
		security.Add("disableAlwaysAllow", true)
		security.Add("disableYoloMode", true)
	}
	if p.Sandboxed() {
		security.Add("toolSandboxing", true)
	}
	if name := firstModel(t, g); name != "" {
		model.Add("name", name)
	}
	var doc jsondoc.Object
	for _, s := range [...]jsondoc.Member{{Key: "advanced", Value: advanced}, {Key: "general", Value: general}, {Key: "hooks", Value: hooks}, {Key: "hooksConfig", Value: hooksConfig},
		{Key: "mcpServers", Value: servers(t, g)}, {Key: "model", Value: model}, {Key: "security", Value: security}, {Key: "telemetry", Value: telemetry(t, g)}} {
		if len(s.Value.(jsondoc.Object)) > 0 {
			doc = append(doc, s)
		}
	}
	if pin != nil && len(pin.Overrides) > 0 {
		doc = merge(doc, pin.Overrides)
	}
	return doc
}

// merge puts raw keys into a document; a dotted key is a path. Keys stay sorted.
func merge(doc jsondoc.Object, raw map[string]any) jsondoc.Object {
	for _, m := range jsondoc.Sorted(raw) {
		key, rest, dotted := strings.Cut(m.Key, ".")
		value := m.Value
		if dotted {
			value = jsondoc.Object{{Key: rest, Value: value}}
		}
		doc = put(doc, key, value)
	}
	return doc
}

func put(doc jsondoc.Object, key string, value any) jsondoc.Object {
	i, found := slices.BinarySearchFunc(doc, key, func(m jsondoc.Member, k string) int { return strings.Compare(m.Key, k) })
	if !found {
		doc = slices.Insert(doc, i, jsondoc.Member{Key: key})
	}
	add, ok := value.(jsondoc.Object)
	if !ok {
		doc[i].Value = value
		return doc
	}
	into, _ := doc[i].Value.(jsondoc.Object)
	for _, m := range add {
		first, rest, dotted := strings.Cut(m.Key, ".")
		if dotted {
			into = put(into, first, jsondoc.Object{{Key: rest, Value: m.Value}})
		} else {
			into = put(into, first, m.Value)
		}
	}
	doc[i].Value = into
	return doc
}

func firstModel(t harness.Target, g *gap.List) string {
	p := t.Policy
	first, field := p.Models.Default, "models.default"
	if pin := p.Pin(policy.GeminiCLI); pin != nil && pin.Model.IsSet() {
		first, field = pin.Model, "harnesses.gemini-cli.model"
	}
	if p.Models.Allowed.IsSet() {
		g.Unsupported(harness.Models, "models.allowed")
	}
	if p.Models.Enforce.V {
		g.Unsupported(harness.Models, "models.enforce")
	}
	if !first.IsSet() {
		return ""
	}
	name := first.V
	if real, ok := t.Models[name]; ok {
		name = real
	}
	if field == "models.default" && !strings.HasPrefix(name, "gemini") {
		g.Add(harness.Gap{Concept: harness.Models, Field: field, Entry: first.V, Grade: harness.None, Reason: "the model is none that gemini-cli can ask for, so the default was not rendered", Remedy: "set harnesses.gemini-cli.model"})
		return ""
	}
	g.Row(harness.Models, field)
	return name
}

// servers defines the policy's servers: a definition of the system beats a user's of the same name.
func servers(t harness.Target, g *gap.List) jsondoc.Object {
	m := &t.Policy.MCP
	if len(m.Servers) == 0 {
		return nil
	}
	g.Row(harness.MCP, "mcp.servers")
	for i := range m.Servers {
		if _, ok := define(&m.Servers[i]); !ok && !refused(m, m.Servers[i].Name.V) {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Entry: m.Servers[i].Name.V, Grade: harness.None, Reason: "gemini-cli would expand a $NAME in this server's definition, so the server was not rendered", Remedy: "write variables as ${NAME}"})
		}
	}
	out := make(jsondoc.Object, 0, len(m.Servers))
	for _, s := range admitted(m) {
		def, _ := define(s)
		out.Add(s.Name.V, def)
	}
	return out
}

func define(s *policy.Server) (jsondoc.Object, bool) {
	if s.URL.IsSet() {
		ok := sameVariables(s.URL.V)
		var o jsondoc.Object
		if len(s.Headers) > 0 {
			headers := make(jsondoc.Object, 0, len(s.Headers))
			for _, h := range s.Headers {
				ok = ok && sameVariables(h.Value.V)
				headers.Add(h.Key.V, h.Value.V)
			}
			slices.SortFunc(headers, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
			o.Add("headers", headers)
		}
		o.Add("httpUrl", s.URL.V)
		return o, ok
	}
	argv, ok := make([]string, len(s.Command.Items)), len(s.Command.Items) > 0
	for i, a := range s.Command.Items {
		argv[i], ok = a.V, ok && sameVariables(a.V)
	}
	if !ok {
		return nil, false
	}
	o := jsondoc.Object{}
	if len(argv) > 1 {
		o.Add("args", argv[1:])
	}
	o.Add("command", argv[0])
	return o, true
}

// sameVariables reports whether a text has no variable that only this program would see: it knows $NAME beside ${NAME} and ${NAME:-default}.
func sameVariables(s string) bool {
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			return true
		}
		if s = s[i+1:]; s != "" && (s[0] == '_' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z' || s[0] >= '0' && s[0] <= '9') {
			return false
		}
	}
}

func telemetry(t harness.Target, g *gap.List) jsondoc.Object {
	m := &t.Policy.Telemetry
	var o jsondoc.Object
	if m.Enabled.IsSet() {
		g.Row(harness.Telemetry, "telemetry.enabled")
		o.Add("enabled", m.Enabled.V)
	}
	if m.LogPrompts.IsSet() {
		g.Row(harness.Telemetry, "telemetry.logPrompts")
		o.Add("logPrompts", m.LogPrompts.V)
	}
	if m.OTLPEndpoint.IsSet() {
		g.Row(harness.Telemetry, "telemetry.otlpEndpoint")
		o.Add("otlpEndpoint", m.OTLPEndpoint.V)
	}
	if m.Protocol.IsSet() {
		protocol, _, _ := strings.Cut(m.Protocol.V, "/")
		o.Add("otlpProtocol", protocol)
	}
	if m.OTLPEndpoint.IsSet() {
		o.Add("target", "local")
	}
	if len(m.Attributes) > 0 {
		g.Unsupported(harness.Telemetry, "telemetry.attributes")
	}
	return o
}

// events are the names of hook events, by the policy's names.
var events = [...][2]string{{"Stop", "AfterAgent"}, {"PostToolUse", "AfterTool"}, {"UserPromptSubmit", "BeforeAgent"}, {"PreToolUse", "BeforeTool"}, {"SessionStart", "SessionStart"}}

func hooks(t harness.Target, g *gap.List) jsondoc.Object {
	h := &t.Policy.Hooks
	if h.ManagedOnly.V {
		g.Add(harness.Gap{Concept: harness.Hooks, Field: "hooks.managedOnly", Grade: harness.None, Reason: "gemini-cli always runs the hooks of users and trusted repositories too"})
	}
	if len(h.Items) == 0 {
		return nil
	}
	g.Row(harness.Hooks, "hooks.items")
	var out jsondoc.Object
	for _, ev := range events {
		var items []jsondoc.Object
		for i := range h.Items {
			if h.Items[i].Event.V != ev[0] {
				continue
			}
			m, ok := matcher(ev[0], h.Items[i].Matcher.V)
			if !ok {
				g.Add(harness.Gap{Concept: harness.Hooks, Field: "hooks.items", Entry: ev[0] + " " + h.Items[i].Matcher.V, Grade: harness.None, Reason: "gemini-cli has other tools, or other starts of a session, than the matcher names, so the hook was not rendered"})
				continue
			}
			o := jsondoc.Object{{Key: "hooks", Value: []jsondoc.Object{{{Key: "command", Value: h.Items[i].Command.V}, {Key: "type", Value: "command"}}}}}
			if m != "" {
				o.Add("matcher", m)
			}
			items = append(items, o)
		}
		if len(items) > 0 {
			out.Add(ev[1], items)
		}
	}
	return out
}

// matcher writes names of tools as this program's; anything that is no list of known names has no translation. A session's start is matched by the one word for what
// started it, and the other events run whatever their matcher is (read in 0.61.0).
func matcher(event, s string) (string, bool) {
	switch {
	case s == "" || s == "*" || event == "Stop" || event == "UserPromptSubmit":
		return "", true
	case event == "SessionStart":
		return s, s == "startup" || s == "resume" || s == "clear"
	}
	var out []string
	for name := range strings.SplitSeq(s, "|") {
		tool := toolName(name)
		if tool == "" {
			return "", false
		}
		out = append(out, tool)
	}
	return strings.Join(out, "|"), true
}
