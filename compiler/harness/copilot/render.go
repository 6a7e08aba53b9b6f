package copilot

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// maxBytes is the size above which the program refuses the settings and fails closed (observed on 1.0.102).
const maxBytes = 65536

// destinations of the settings and of the hook file.
func settingsPath(os string) string {
	switch os {
	case "darwin":
		return "/Library/Application Support/GitHubCopilot/managed-settings.json"
	case "windows":
		return `C:\Program Files\GitHubCopilot\managed-settings.json`
	}
	return "/etc/github-copilot/managed-settings.json"
}

func hooksPath(os string) string {
	if os == "windows" {
		return `C:\ProgramData\GitHub\Copilot\policy.d\10-halo.json`
	}
	return "/etc/github-copilot/policy.d/10-halo.json"
}

func sandboxKnown(v harness.Version) bool { return v.AtLeast(1, 0, 93) }
func locksKnown(v harness.Version) bool   { return v.AtLeast(1, 0, 83) }

func render(t harness.Target) ([]harness.File, []harness.Gap) {
	p, g := t.Policy, gap.New(&table, t)
	fields := gap.Fields(p, policy.CopilotCLI)
	var doc jsondoc.Object
	var hooks jsondoc.Object
	if p.Hooks.ManagedOnly.V && g.Row(harness.Hooks, "hooks.managedOnly") == harness.Enforced {
		doc.Add("allowManagedHooksOnly", true)
	}
	if len(p.Hooks.Items) > 0 && g.Row(harness.Hooks, "hooks.items") == harness.Enforced {
		hooks = hookFile(p, t.OS, g)
	}
	servers(&doc, t, g)
	if perms := permissions(t, g); len(perms) > 0 {
		doc.Add("permissions", perms)
	}
	if box := sandbox(t, fields, g); len(box) > 0 {
		doc.Add("sandbox", box)
	}
	if tel := telemetry(t, fields, g); len(tel) > 0 {
		doc.Add("telemetry", tel)
	}
	for _, f := range fields {
		switch f.Concept {
		case harness.Models, harness.Instructions, harness.Env, harness.Overrides:
			g.Unsupported(f.Concept, f.Path)
		case harness.VersionPin:
			g.Row(f.Concept, f.Path)
		}
	}
	if t.GatewayURL != "" {
		g.Add(harness.Gap{Concept: harness.Models, Field: "gateway.baseURL", Grade: harness.None, Reason: "no managed setting of copilot-cli holds the address of a gateway, so its traffic is not sent to it"})
	}
	var files []harness.File
	if len(doc) > 0 {
		content := doc.Bytes()
		if len(content) > maxBytes {
			return nil, oversized(t)
		}
		files = append(files, harness.File{Dest: settingsPath(t.OS), Owner: harness.Owner(t.OS), Mode: 0o644, Content: content})
	}
	if len(hooks) > 0 {
		files = append(files, harness.File{Dest: hooksPath(t.OS), Owner: harness.Owner(t.OS), Mode: 0o644, Content: hooks.Bytes()})
	}
	slices.SortFunc(files, func(a, b harness.File) int { return strings.Compare(a.Dest, b.Dest) })
	return files, g.Gaps()
}

// oversized renders nothing: the program answers a larger file by denying everything, which locks users out.
func oversized(t harness.Target) []harness.Gap {
	g := gap.New(&table, t)
	for _, f := range gap.Fields(t.Policy, policy.CopilotCLI) {
		g.Add(harness.Gap{Concept: f.Concept, Field: f.Path, Grade: harness.None,
			Reason: "the settings would be larger than 65536 bytes, at which copilot-cli refuses them and locks users out, so nothing was rendered",
			Remedy: "write fewer entries: one *.domain instead of its hosts"})
	}
	return g.Gaps()
}

func servers(doc *jsondoc.Object, t harness.Target, g *gap.List) {
	m := &t.Policy.MCP
	seen := t.Version.AtLeast(1, 0, 79)
	if m.ManagedOnly.V {
		if !locksKnown(t.Version) {
			// A list without its lock would be widened by any user's own list.
			g.Row(harness.MCP, "mcp.managedOnly")
		} else {
			doc.Add("allowManagedMcpServersOnly", true)
			doc.Add("allowedMcpServers", admitted(m, g))
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.managedOnly", Grade: harness.Enforced, Reason: "the GitHub server that is built into copilot-cli is exempt from the list of servers and stays available"})
		}
	}
	locked := m.ManagedOnly.V && locksKnown(t.Version)
	switch {
	case len(m.Servers) == 0:
	case locked:
		// What the policy limits holds; what it sets up is not there.
		g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Grade: harness.Enforced,
			Reason: "copilot-cli can be told which servers to admit, not which to set up, and under its lock it loads none that users add, those of the list neither"})
	default:
		g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Grade: harness.None, Reason: "copilot-cli can be told which servers to admit, not which to set up: users add the servers themselves"})
	}
	if len(m.Denied.Items) == 0 {
		return
	}
	if !seen {
		g.Row(harness.MCP, "mcp.denied")
		return
	}
	denied := make([]jsondoc.Object, 0, len(m.Denied.Items))
	for _, d := range sorted(m.Denied) {
		switch {
		case strings.TrimSpace(d) == "":
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.denied", Entry: d, Grade: harness.None, Reason: "an empty name would make copilot-cli refuse the whole file and was not rendered"})
			continue
		case strings.Contains(d, "://"):
			denied = append(denied, jsondoc.Object{{Key: "serverUrl", Value: d}})
			continue
		case strings.HasPrefix(d, "github"):
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.denied", Entry: d, Grade: harness.None, Reason: "the GitHub server that is built into copilot-cli is exempt from the list of denied servers"})
		}
		denied = append(denied, jsondoc.Object{{Key: "serverName", Value: d}})
		if !locked {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.denied", Entry: d, Grade: harness.Overridable, Reason: "the server is denied by its name, which the user chooses: renamed it runs",
				Remedy: "set mcp.managedOnly", Bypass: []string{"~/.copilot/mcp-config.json", "--additional-mcp-config"}})
		}
	}
	if len(denied) > 0 {
		doc.Add("deniedMcpServers", denied)
	}
}

// sorted returns texts sorted and each once, so that the order of a set-like list in the policy does not show.
func sorted(l source.Strs) []string {
	out := make([]string, len(l.Items))
	for i, s := range l.Items {
		out[i] = s.V
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// admitted lists the servers by what they are, never by name: a name is chosen by the user and would admit anything. An entry that the program would read as more
// than the one server is left out.
func admitted(m *policy.MCP, g *gap.List) []jsondoc.Object {
	type matcher struct {
		key  string
		item jsondoc.Object
	}
	out := make([]matcher, 0, len(m.Servers))
	for i := range m.Servers {
		s := &m.Servers[i]
		refuse := func(why string) {
			g.Add(harness.Gap{Concept: harness.MCP, Field: "mcp.servers", Entry: s.Name.V, Grade: harness.Enforced, Reason: why})
		}
		if s.URL.IsSet() {
			url := s.URL.V
			if strings.Contains(url, "*") || strings.Contains(url, "${") {
				refuse("copilot-cli reads * and ${} in a server's URL as wildcard and variable, so the server is not admitted")
				continue
			}
			if _, rest, _ := strings.Cut(url, "://"); !strings.ContainsAny(rest, "/?#") {
				url += "/"
				refuse("a URL without a path would admit every path of its host, so the server is admitted with the path / only")
			}
			out = append(out, matcher{"u" + url, jsondoc.Object{{Key: "serverUrl", Value: url}}})
			continue
		}
		argv := make([]string, len(s.Command.Items))
		bad := false
		for j, a := range s.Command.Items {
			argv[j] = a.V
			bad = bad || a.V == "" || strings.Contains(a.V, "${")
		}
		if bad || len(argv) == 0 {
			refuse("a command with an empty part makes copilot-cli refuse the whole file and ${} would be read as a variable, so the server is not admitted")
			continue
		}
		out = append(out, matcher{"c" + strings.Join(argv, "\x00"), jsondoc.Object{{Key: "serverCommand", Value: argv}}})
	}
	slices.SortFunc(out, func(a, b matcher) int { return strings.Compare(a.key, b.key) })
	items := make([]jsondoc.Object, 0, len(out))
	for i, m := range out {
		if i == 0 || m.key != out[i-1].key {
			items = append(items, m.item)
		}
	}
	return items
}

func permissions(t harness.Target, g *gap.List) jsondoc.Object {
	p := t.Policy
	var o jsondoc.Object
	if m := p.Permissions.Mode; m.IsSet() {
		switch {
		case m.V != "default":
			g.Add(harness.Gap{Concept: harness.Permissions, Field: "permissions.mode", Grade: harness.None, Reason: "copilot-cli has no permission mode " + m.V + ", so the mode is left to the user"})
		case g.Row(harness.Permissions, "permissions.mode") == harness.Default:
			o.Add("defaultMode", "manual")
		}
	}
	if p.Permissions.DisableBypass.V && g.Row(harness.BypassLock, "permissions.disableBypass") == harness.Enforced {
		o.Add("disableBypassPermissionsMode", "disable")
	}
	for _, l := range [...]struct {
		field string
		n     int
	}{{"permissions.allow", len(p.Permissions.Allow.Items)}, {"permissions.ask", len(p.Permissions.Ask.Items)}, {"permissions.deny", len(p.Permissions.Deny.Items)}} {
		if l.n > 0 {
			g.Add(harness.Gap{Concept: harness.Permissions, Field: l.field, Grade: harness.None,
				Reason: "rules are not translated for copilot-cli: their meaning differs there, and a single rule makes every operation without a rule ask, so none was rendered"})
		}
	}
	if limit := limitTo(t, g); limit != nil {
		o.Add("limitTo", limit)
	}
	return o
}

// bounded reports whether the tools that fetch get a boundary of their own. Where nothing is allowed, the sandbox closes the network for them too.
func bounded(t harness.Target) bool {
	open, _ := t.Policy.Hosts.Default()
	return !open && sandboxKnown(t.Version) && t.Policy.EgressRules() && !(t.Policy.Sandboxed() && len(t.Policy.Hosts.Allowed()) == 0)
}

// limitTo is the boundary of the tools that fetch, or nil. It only ever narrows what the sandbox's lists allow; an empty one denies every address (observed on 1.0.102).
func limitTo(t harness.Target, g *gap.List) []string {
	if !bounded(t) {
		return nil
	}
	p, out := t.Policy, []string{}
	for _, h := range patterns(p.Hosts.Allowed()) {
		if !p.Sandboxed() {
			// Without the sandbox's lists the boundary is alone, and there *.x includes x and nothing denies.
			if strings.HasPrefix(h, "*") {
				g.Add(harness.Gap{Concept: harness.Fetch, Field: gap.EgressField(p), Entry: h, Grade: harness.Enforced,
					Reason: "without a sandbox the boundary of copilot-cli would let the wildcard include its own domain, so the entry was not rendered and its hosts stay unreachable"})
				continue
			}
			if !p.Hosts.Decide(host.Name(h)).Allow {
				continue
			}
		}
		out = append(out, "Domain("+h+")")
	}
	return out
}

// patterns returns the patterns of a host list, sorted and each once.
func patterns(es []egress.Entry) []string {
	out := make([]string, len(es))
	for i := range es {
		out[i] = es[i].Pattern.String()
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func sandbox(t harness.Target, fields []gap.Field, g *gap.List) jsondoc.Object {
	p := t.Policy
	if !sandboxKnown(t.Version) || !p.Sandboxed() {
		for _, f := range fields {
			switch f.Concept {
			case harness.Sandbox, harness.WritableRoots, harness.ProtectedPaths, harness.Egress, harness.Fetch:
				switch {
				case f.Concept == harness.Fetch && bounded(t):
					// The boundary holds without a sandbox.
				case sandboxKnown(t.Version):
					g.Add(harness.Gap{Concept: f.Concept, Field: f.Path, Grade: harness.None, Reason: "nothing holds this for commands of copilot-cli while the sandbox is off"})
				default:
					g.Row(f.Concept, f.Path)
				}
			}
		}
		return nil
	}
	g.Row(harness.Sandbox, gap.ModeField(p))
	if p.Mode() == policy.ModeReadOnly {
		g.Add(harness.Gap{Concept: harness.Sandbox, Field: gap.ModeField(p), Grade: harness.None,
			Reason: "copilot-cli cannot make the session folder read-only: it stays writable, and only places outside it are held"})
	}
	files := jsondoc.Object{}
	if denied := deniedPaths(t, g); len(denied) > 0 {
		files.Add("deniedPaths", denied)
	}
	// The list is written even when it is empty: without it a user's own roots count.
	files.Add("readwritePaths", roots(t, g))
	user := jsondoc.Object{{Key: "filesystem", Value: files}}
	if net := network(t, g); len(net) > 0 {
		user.Add("network", net)
	}
	return jsondoc.Object{{Key: "allowBypass", Value: false}, {Key: "enabled", Value: true}, {Key: "failIfUnavailable", Value: true}, {Key: "userPolicy", Value: user}}
}

func roots(t harness.Target, g *gap.List) []string {
	items := t.Policy.Sandbox.WritableRoots.Items
	if len(items) > 0 {
		g.Row(harness.WritableRoots, "sandbox.writableRoots")
	}
	out := make([]string, 0, len(items))
	for _, r := range items {
		if t.OS == "windows" && r.Path.Kind() == fspath.Absolute {
			continue
		}
		out = append(out, fspath.Spellings(r.Path, t.OS)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func deniedPaths(t harness.Target, g *gap.List) []string {
	items := t.Policy.Sandbox.ProtectedPaths.Items
	if len(items) == 0 || g.Row(harness.ProtectedPaths, "sandbox.protectedPaths") == harness.None {
		return nil
	}
	out := make([]string, 0, len(items))
	for _, r := range items {
		text := r.Path.String()
		say := func(why string) {
			g.Add(harness.Gap{Concept: harness.ProtectedPaths, Field: "sandbox.protectedPaths", Entry: text, Grade: harness.None, Reason: why})
		}
		switch {
		case r.Path.Kind() == fspath.Relative:
			say("copilot-cli has no form for a path below the workspace at any depth, so the entry was not rendered")
			continue
		case r.Path.Glob():
			say("a glob in deniedPaths never matches in copilot-cli, so the entry was not rendered")
			continue
		case r.Path.Kind() == fspath.Home && t.OS != "linux":
			say("~ in deniedPaths was seen to mean the home directory on Linux only; on this system the entry is rendered and may not match")
		}
		out = append(out, fspath.Spellings(r.Path, t.OS)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func network(t harness.Target, g *gap.List) jsondoc.Object {
	p := t.Policy
	if !p.EgressRules() {
		return nil
	}
	field := gap.EgressField(p)
	g.Row(harness.Egress, field)
	g.Row(harness.Fetch, field)
	open, _ := p.Hosts.Default()
	allowed, denied := p.Hosts.Allowed(), patterns(p.Hosts.Denied())
	var o jsondoc.Object
	switch {
	case !open && len(allowed) == 0:
		// An allow list beside this key would be ignored, and an empty one would mean every host.
		return jsondoc.Object{{Key: "allowOutbound", Value: false}}
	case !open:
		o.Add("allowLocalNetwork", false)
		o.Add("allowedHosts", patterns(allowed))
		g.Add(harness.Gap{Concept: harness.Egress, Field: field, Grade: harness.Enforced,
			Reason: "commands do not reach an allowed host whose name resolves to a private address"})
		for _, e := range allowed {
			if e.Pattern.String() == "localhost" {
				g.Add(harness.Gap{Concept: harness.Egress, Field: e.Field, Entry: e.Name, Grade: harness.Enforced, Reason: "localhost stays unreachable for commands: the local network is closed under default deny"})
			}
		}
	}
	if len(denied) > 0 {
		o.Add("blockedHosts", denied)
		wider(p, open, g)
	}
	return o
}

// wider names the denied names below which something is allowed: a blocked name also blocks its subdomains.
func wider(p *effective.Policy, open bool, g *gap.List) {
	for _, d := range p.Hosts.Denied() {
		if d.Pattern.Wildcard() {
			continue
		}
		below, problem := host.ParseDenyPattern("*." + d.Pattern.String())
		if problem != nil {
			continue
		}
		if _, all := p.Hosts.DenySet().Covers(below); all {
			continue
		}
		if open || slices.ContainsFunc(p.Hosts.Allowed(), func(e egress.Entry) bool { return e.Pattern.Covers(below) || below.Covers(e.Pattern) }) {
			for _, c := range [...]harness.Concept{harness.Egress, harness.Fetch} {
				g.Add(harness.Gap{Concept: c, Field: d.Field, Entry: d.Name, Grade: harness.Enforced, Reason: "copilot-cli blocks the subdomains of a blocked name too, so hosts below it that the policy allows stay unreachable"})
			}
		}
	}
}

func telemetry(t harness.Target, fields []gap.Field, g *gap.List) jsondoc.Object {
	m := &t.Policy.Telemetry
	for _, f := range fields {
		if f.Concept == harness.Telemetry && g.Row(f.Concept, f.Path) == harness.None {
			m = &policy.Telemetry{}
		}
	}
	var o jsondoc.Object
	if m.LogPrompts.IsSet() {
		switch {
		case !m.LogPrompts.V:
			o.Add("captureContent", false)
		case t.Version.AtLeast(1, 0, 102):
			// captureContent would open responses and tool output as well.
			o.Add("capture", jsondoc.Object{{Key: "prompts", Value: true}})
		default:
			g.Add(harness.Gap{Concept: harness.Telemetry, Field: "telemetry.logPrompts", Grade: harness.None, Reason: "prompts alone can be captured from 1.0.102 on; an older copilot-cli would capture responses and tool output as well, so nothing is captured"})
		}
	}
	if m.Enabled.V && !m.OTLPEndpoint.IsSet() {
		g.Add(harness.Gap{Concept: harness.Telemetry, Field: "telemetry.enabled", Grade: harness.Overridable, Reason: "without an endpoint in the policy telemetry goes where a user's own variables send it",
			Remedy: "set telemetry.otlpEndpoint", Bypass: []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}})
	}
	grpc := m.Protocol.V == "grpc"
	if m.Enabled.IsSet() {
		if m.Enabled.V && grpc {
			g.Add(harness.Gap{Concept: harness.Telemetry, Field: "telemetry.enabled", Grade: harness.None, Reason: "telemetry is not switched on: copilot-cli does not speak grpc and would send another protocol to the endpoint"})
		} else {
			o.Add("enabled", m.Enabled.V)
		}
	}
	if grpc {
		g.Add(harness.Gap{Concept: harness.Telemetry, Field: "telemetry.protocol", Entry: "grpc", Grade: harness.None, Reason: "copilot-cli does not speak grpc, so endpoint and protocol were not rendered", Remedy: "offer http/protobuf at the endpoint and write that protocol"})
		if m.OTLPEndpoint.IsSet() {
			g.Add(harness.Gap{Concept: harness.Telemetry, Field: "telemetry.otlpEndpoint", Grade: harness.None, Reason: "copilot-cli does not speak the protocol of the endpoint, so it was not rendered"})
		}
	} else if m.OTLPEndpoint.IsSet() {
		o.Add("endpoint", m.OTLPEndpoint.V)
	}
	if m.LogPrompts.IsSet() && !m.LogPrompts.V {
		o.Add("lockCaptureContent", true)
	}
	if m.Protocol.IsSet() && !grpc {
		o.Add("protocol", m.Protocol.V)
	}
	if len(m.Attributes) > 0 {
		attrs := make(jsondoc.Object, 0, len(m.Attributes))
		for _, a := range m.Attributes {
			attrs.Add(a.Key.V, a.Value.V)
		}
		slices.SortFunc(attrs, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
		o.Add("resourceAttributes", attrs)
	}
	return o
}

// events are the names of hook events in hook files, by the policy's names.
var events = [...][2]string{{"PostToolUse", "postToolUse"}, {"PreToolUse", "preToolUse"}, {"SessionStart", "sessionStart"}, {"Stop", "agentStop"}, {"UserPromptSubmit", "userPromptSubmitted"}}

func hookFile(p *effective.Policy, os string, g *gap.List) jsondoc.Object {
	shell := "bash"
	if os == "windows" {
		shell = "powershell"
	}
	var all jsondoc.Object
	for _, ev := range events {
		var items []jsondoc.Object
		for i := range p.Hooks.Items {
			h := &p.Hooks.Items[i]
			if h.Event.V != ev[0] {
				continue
			}
			if !everyTool(h.Matcher.V) {
				g.Add(harness.Gap{Concept: harness.Hooks, Field: "hooks.items", Entry: h.Event.V + " " + h.Matcher.V, Grade: harness.None,
					Reason: "a hook file of copilot-cli has no documented matcher, so the hook would run for every tool and was not rendered"})
				continue
			}
			items = append(items, jsondoc.Object{{Key: "type", Value: "command"}, {Key: shell, Value: h.Command.V}})
		}
		if len(items) > 0 {
			all.Add(ev[1], items)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return jsondoc.Object{{Key: "version", Value: 1}, {Key: "hooks", Value: all}}
}

// everyTool reports whether a matcher matches every tool.
func everyTool(matcher string) bool { return matcher == "" || matcher == "*" }
