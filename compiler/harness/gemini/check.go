package gemini

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/recheck"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// The key tables are limited to what halo may write. The program ignores an unknown key without a word, and runs on with a value of a wrong type.
var (
	hookEvent = &jsondoc.Shape{Kind: jsondoc.List, Elem: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "matcher", Shape: jsondoc.StringShape},
		{Key: "hooks", Shape: &jsondoc.Shape{Kind: jsondoc.List, Elem: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "command", Shape: jsondoc.StringShape}, {Key: "type", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"command"}}},
		}}}},
	}}}
	serverShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "args", Shape: jsondoc.TextList}, {Key: "command", Shape: jsondoc.StringShape}, {Key: "headers", Shape: jsondoc.TextMap}, {Key: "httpUrl", Shape: jsondoc.StringShape},
	}}
	textOrList    = &jsondoc.Shape{Kind: jsondoc.String, Or: jsondoc.TextList}
	settingsShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "advanced", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "ignoreLocalEnv", Shape: jsondoc.BoolShape}}}},
		{Key: "context", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "fileName", Shape: textOrList}, {Key: "importFormat", Shape: jsondoc.StringShape}}}},
		{Key: "general", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "checkpointing", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "enabled", Shape: jsondoc.BoolShape}}}},
			{Key: "defaultApprovalMode", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"default", "auto_edit", "plan"}}},
			{Key: "enableAutoUpdate", Shape: jsondoc.BoolShape}, {Key: "enableNotifications", Shape: jsondoc.BoolShape},
			{Key: "notificationMethod", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"auto", "osc9", "osc777", "bell"}}},
			{Key: "openEditorInNewWindow", Shape: jsondoc.BoolShape}, {Key: "preferredEditor", Shape: jsondoc.StringShape},
			{Key: "sessionRetention", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
				{Key: "enabled", Shape: jsondoc.BoolShape}, {Key: "maxAge", Shape: jsondoc.StringShape}, {Key: "maxCount", Shape: jsondoc.NumberShape}, {Key: "minRetention", Shape: jsondoc.StringShape},
			}}},
			{Key: "vimMode", Shape: jsondoc.BoolShape},
		}}},
		{Key: "hooks", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "AfterAgent", Shape: hookEvent}, {Key: "AfterTool", Shape: hookEvent}, {Key: "BeforeAgent", Shape: hookEvent}, {Key: "BeforeTool", Shape: hookEvent}, {Key: "SessionStart", Shape: hookEvent},
		}}},
		{Key: "hooksConfig", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "enabled", Shape: jsondoc.BoolShape}}}},
		{Key: "mcpServers", Shape: &jsondoc.Shape{Kind: jsondoc.Map, Elem: serverShape}},
		{Key: "model", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "name", Shape: jsondoc.StringShape}}}},
		{Key: "security", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "disableAlwaysAllow", Shape: jsondoc.BoolShape}, {Key: "disableYoloMode", Shape: jsondoc.BoolShape}, {Key: "toolSandboxing", Shape: jsondoc.BoolShape},
		}}},
		{Key: "telemetry", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "enabled", Shape: jsondoc.BoolShape}, {Key: "logPrompts", Shape: jsondoc.BoolShape}, {Key: "otlpEndpoint", Shape: jsondoc.StringShape},
			{Key: "otlpProtocol", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"grpc", "http"}}},
			{Key: "target", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"local"}}},
		}}},
		{Key: "ui", Shape: interfaceShape},
	}}
)

// interfaceShape has the keys of ui, all of them looks; those that hold objects of a theme are not looked into.
var interfaceShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
	{Key: "accessibility", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "enableLoadingPhrases", Shape: jsondoc.BoolShape}, {Key: "screenReader", Shape: jsondoc.BoolShape}}}},
	{Key: "autoThemeSwitching", Shape: jsondoc.BoolShape}, {Key: "collapseDrawerDuringApproval", Shape: jsondoc.BoolShape}, {Key: "compactToolOutput", Shape: jsondoc.BoolShape},
	{Key: "customThemes", Shape: &jsondoc.Shape{Kind: jsondoc.Map}}, {Key: "customWittyPhrases", Shape: jsondoc.TextList}, {Key: "debugRainbow", Shape: jsondoc.BoolShape},
	{Key: "dynamicWindowTitle", Shape: jsondoc.BoolShape}, {Key: "errorVerbosity", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"low", "full"}}},
	{Key: "escapePastedAtSymbols", Shape: jsondoc.BoolShape},
	{Key: "footer", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "hideCWD", Shape: jsondoc.BoolShape}, {Key: "hideContextPercentage", Shape: jsondoc.BoolShape},
		{Key: "hideModelInfo", Shape: jsondoc.BoolShape}, {Key: "hideSandboxStatus", Shape: jsondoc.BoolShape}, {Key: "items", Shape: jsondoc.TextList}, {Key: "showLabels", Shape: jsondoc.BoolShape}}}},
	{Key: "hideBanner", Shape: jsondoc.BoolShape}, {Key: "hideContextSummary", Shape: jsondoc.BoolShape}, {Key: "hideFooter", Shape: jsondoc.BoolShape}, {Key: "hideTips", Shape: jsondoc.BoolShape},
	{Key: "hideWindowTitle", Shape: jsondoc.BoolShape}, {Key: "incrementalRendering", Shape: jsondoc.BoolShape}, {Key: "inlineThinkingMode", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"off", "full"}}},
	{Key: "loadingPhrases", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"tips", "witty", "all", "off"}}}, {Key: "renderProcess", Shape: jsondoc.BoolShape},
	{Key: "showCitations", Shape: jsondoc.BoolShape}, {Key: "showCompatibilityWarnings", Shape: jsondoc.BoolShape}, {Key: "showHomeDirectoryWarning", Shape: jsondoc.BoolShape},
	{Key: "showLineNumbers", Shape: jsondoc.BoolShape}, {Key: "showMemoryUsage", Shape: jsondoc.BoolShape}, {Key: "showModelInfoInChat", Shape: jsondoc.BoolShape}, {Key: "showShortcutsHint", Shape: jsondoc.BoolShape},
	{Key: "showSpinner", Shape: jsondoc.BoolShape}, {Key: "showStatusInTitle", Shape: jsondoc.BoolShape}, {Key: "showUserIdentity", Shape: jsondoc.BoolShape},
	{Key: "terminalBackgroundPollingInterval", Shape: jsondoc.NumberShape}, {Key: "terminalBuffer", Shape: jsondoc.BoolShape}, {Key: "theme", Shape: jsondoc.StringShape},
	{Key: "useAlternateBuffer", Shape: jsondoc.BoolShape}, {Key: "useBackgroundColor", Shape: jsondoc.BoolShape},
}}

// document is a file of rules as the program reads it. A field that is not here is ignored there without a word, and a misspelt pattern then widens its rule to
// every call.
type document struct {
	Rule []struct {
		ToolName      any    `toml:"toolName"`
		MCPName       string `toml:"mcpName"`
		ArgsPattern   string `toml:"argsPattern"`
		CommandPrefix string `toml:"commandPrefix"`
		Decision      string `toml:"decision"`
		Priority      *int   `toml:"priority"`
		DenyMessage   string `toml:"denyMessage"`
	} `toml:"rule"`
}

func check(t harness.Target, files []harness.File) []harness.Finding {
	var out []harness.Finding
	var doc jsondoc.Object
	var rules []rule
	policyFiles := 0
	for _, f := range files {
		report := func(pointer, message string) {
			out = append(out, harness.Finding{Dest: f.Dest, Pointer: pointer, Message: message})
		}
		if f.Owner != harness.Owner(t.OS) || f.Mode != 0o644 {
			report("", "has another owner or mode: a policy folder that others can write is skipped as a whole")
		}
		for _, bad := range recheck.Forbidden(string(f.Content)) {
			report("", bad)
		}
		name, isPolicy := strings.CutPrefix(f.Dest, policyPath(t.OS, ""))
		switch {
		case f.Dest == settingsPath(t.OS):
			var err error
			if doc, err = jsondoc.Parse(f.Content, func(pointer string) { report(pointer, "is a key twice: the last one wins without a word") }); err != nil {
				report("", err.Error()+"; the program refuses to start")
				continue
			}
			settingsShape.Check(doc, "", report)
		case isPolicy && strings.HasSuffix(name, ".toml") && !strings.ContainsAny(name, `/\`):
			policyFiles++
			rules = append(rules, read(f.Content, report)...)
		default:
			report("", "is not a file that gemini-cli reads")
		}
	}
	report := func(dest string) func(pointer, message string) {
		return func(pointer, message string) {
			out = append(out, harness.Finding{Dest: dest, Pointer: pointer, Message: message})
		}
	}
	held(t, doc, report(settingsPath(t.OS)))
	if current(t.Version) {
		if policyFiles == 0 {
			report(policyPath(t.OS, ""))("", "holds no file, so a user's --admin-policy is read at the rank of an administrator")
		}
		ruled(t, rules, report(policyPath(t.OS, "")))
	}
	return out
}

// read parses a file of rules and reports what makes the program drop the whole file, or a rule that never matches or matches everything.
func read(content []byte, report func(pointer, message string)) []rule {
	var doc document
	dec := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		report("", "is not a file of rules that gemini-cli reads as it is written: "+strings.SplitN(err.Error(), "\n", 2)[0])
		return nil
	}
	out := make([]rule, 0, len(doc.Rule))
	for i := range doc.Rule {
		d := &doc.Rule[i]
		at := "/rule/" + strconv.Itoa(i)
		r := rule{mcp: d.MCPName, pattern: d.ArgsPattern, command: d.CommandPrefix, decision: d.Decision, message: d.DenyMessage}
		switch v := d.ToolName.(type) {
		case string:
			r.tools = []string{v}
		case []any:
			for _, x := range v {
				s, _ := x.(string)
				r.tools = append(r.tools, s)
			}
		}
		if len(r.tools) == 0 {
			report(at+"/toolName", "is missing: the program drops the whole file")
		}
		for _, tool := range r.tools {
			if tool == "*" && r.mcp != "" {
				continue
			}
			if !slices.ContainsFunc(toolNames[:], func(n [2]string) bool { return n[1] == tool }) {
				report(at+"/toolName", fmt.Sprintf("%q is no tool of the program, so the rule never matches", tool))
			}
		}
		if !slices.Contains([]string{"deny", "ask_user"}, r.decision) {
			report(at+"/decision", fmt.Sprintf("%q is not deny or ask_user", r.decision))
		}
		if d.Priority == nil || *d.Priority < 0 || *d.Priority > 999 {
			report(at+"/priority", "is not a number of 0 to 999: the program drops the whole file")
		} else {
			r.priority = *d.Priority
		}
		if why := unsafePattern(r.pattern); why != "" {
			report(at+"/argsPattern", why)
		}
		if r.command != "" && !slices.Equal(r.tools, []string{"run_shell_command"}) {
			report(at+"/commandPrefix", "is about commands, which only run_shell_command has")
		}
		out = append(out, r)
	}
	return out
}

// unsafePattern says why the program would drop the file of a pattern (read in 0.61.0), or "".
func unsafePattern(p string) string {
	switch {
	case len(p) > maxPattern:
		return "is longer than 2048 characters: the program drops the whole file"
	case strings.Contains(p, "(?"):
		return "has a flag or a group that is not plain: the program drops the whole file"
	}
	for i := 1; i < len(p); i++ {
		if p[i-1] == ')' && strings.IndexByte("*+?{", p[i]) >= 0 {
			return "has a quantifier behind a group: the program takes it for unsafe and drops the whole file"
		}
	}
	return ""
}

// ruled compares the rules with what the policy asks for: every wanted rule is there, and no other.
func ruled(t harness.Target, got []rule, report func(pointer, message string)) {
	var want []rule
	for _, f := range policies(t, gap.New(&table, t)) {
		want = append(want, f.rules...)
	}
	key := func(r rule) string {
		return strings.Join(r.tools, ",") + "\x00" + r.mcp + "\x00" + r.pattern + "\x00" + r.command + "\x00" + r.decision + "\x00" + strconv.Itoa(r.priority) + "\x00" + r.message
	}
	have := make(map[string]bool, len(got))
	for _, r := range got {
		have[key(r)] = true
	}
	wanted := make(map[string]bool, len(want))
	for _, r := range want {
		wanted[key(r)] = true
		if !have[key(r)] {
			report("/rule", fmt.Sprintf("has no rule for %s", cmp.Or(r.message, r.mcp, r.tools[0])))
		}
	}
	for _, r := range got {
		if !wanted[key(r)] {
			report("/rule", fmt.Sprintf("has a rule about %s that the policy does not ask for", strings.Join(r.tools, ", ")))
		}
	}
}

// held compares the settings with what the policy asks for.
func held(t harness.Target, doc jsondoc.Object, report func(pointer, message string)) {
	p := t.Policy
	want := func(on bool, value any, keys ...string) {
		if on && doc.At(keys...) != value {
			report("/"+strings.Join(keys, "/"), fmt.Sprintf("is not %v, which the policy asks for", value))
		}
	}
	if !current(t.Version) {
		want(p.Permissions.DisableBypass.V && t.Version.AtLeast(0, 15, 4), true, "security", "disableYoloMode")
		return
	}
	want(p.Sandboxed(), true, "security", "toolSandboxing")
	want(p.Sandboxed(), true, "advanced", "ignoreLocalEnv")
	want(locked(t), true, "security", "disableYoloMode")
	want(locked(t), true, "security", "disableAlwaysAllow")
	if m := &p.Telemetry; m.Enabled.IsSet() {
		want(true, m.Enabled.V, "telemetry", "enabled")
	}
	want(p.Telemetry.LogPrompts.IsSet(), p.Telemetry.LogPrompts.V, "telemetry", "logPrompts")
	want(p.Telemetry.OTLPEndpoint.IsSet(), p.Telemetry.OTLPEndpoint.V, "telemetry", "otlpEndpoint")
	want(p.Telemetry.OTLPEndpoint.IsSet(), "local", "telemetry", "target")
	protocol, _, _ := strings.Cut(p.Telemetry.Protocol.V, "/")
	want(protocol != "", protocol, "telemetry", "otlpProtocol")
	if i := slices.IndexFunc(modes[:], func(m [2]string) bool { return m[0] == p.Permissions.Mode.V }); i >= 0 {
		want(true, modes[i][1], "general", "defaultApprovalMode")
	}
	pin := p.Pin(policy.GeminiCLI)
	if pin != nil && pin.Version.IsSet() {
		want(true, false, "general", "enableAutoUpdate")
	}
	model := cmp.Or(t.Models[p.Models.Default.V], p.Models.Default.V)
	if pin != nil && pin.Model.IsSet() {
		model = cmp.Or(t.Models[pin.Model.V], pin.Model.V)
	}
	want(strings.HasPrefix(model, "gemini") || pin != nil && pin.Model.IsSet(), model, "model", "name")
	heldServers(p, doc, report)
	heldHooks(p, doc, report)
	if pin != nil && !holds(doc, merge(nil, pin.Overrides)) {
		report("", "does not hold the policy's overrides")
	}
}

// holds reports whether a document has every member of another.
func holds(got, want any) bool {
	w, ok := want.(jsondoc.Object)
	if !ok {
		return fmt.Sprint(got) == fmt.Sprint(want)
	}
	g, _ := got.(jsondoc.Object)
	return !slices.ContainsFunc(w, func(m jsondoc.Member) bool { return !holds(g.At(m.Key), m.Value) })
}

// heldServers compares the definitions of servers.
func heldServers(p *effective.Policy, doc jsondoc.Object, report func(pointer, message string)) {
	servers, _ := doc.At("mcpServers").(jsondoc.Object)
	wanted := admitted(&p.MCP)
	for _, s := range servers {
		at := jsondoc.Pointer("/mcpServers", s.Key)
		i := slices.IndexFunc(wanted, func(x *policy.Server) bool { return x.Name.V == s.Key })
		if i < 0 {
			report(at, "is a server that the policy does not name")
			continue
		}
		def, _ := s.Value.(jsondoc.Object)
		args, _ := def.Strings("args")
		headers, _ := def.At("headers").(jsondoc.Object)
		x, same := wanted[i], false
		if x.URL.IsSet() {
			same = def.At("httpUrl") == x.URL.V && len(def) <= 2 && len(headers) == len(x.Headers)
			for _, h := range x.Headers {
				same = same && headers.At(h.Key.V) == h.Value.V
			}
		} else {
			same = def.At("command") == x.Command.Items[0].V && slices.EqualFunc(args, x.Command.Items[1:], func(a string, b source.Str) bool { return a == b.V })
		}
		if !same {
			report(at, "is another server than the policy's")
		}
	}
	for _, s := range wanted {
		if servers.At(s.Name.V) == nil {
			report(jsondoc.Pointer("/mcpServers", s.Name.V), "is missing: a user's server of the name would be taken for it")
		}
	}
}

// heldHooks compares the hooks of every event.
func heldHooks(p *effective.Policy, doc jsondoc.Object, report func(pointer, message string)) {
	if _, ok := doc.Get("hooks"); ok && doc.At("hooksConfig", "enabled") != true {
		report("/hooksConfig/enabled", "is not true: a user could switch the hooks off")
	}
	for _, event := range events {
		var want, got []string
		for i := range p.Hooks.Items {
			h := &p.Hooks.Items[i]
			if m, ok := matcher(event[0], h.Matcher.V); ok && h.Event.V == event[0] {
				want = append(want, m+"\x00"+h.Command.V)
			}
		}
		groups, _ := doc.At("hooks", event[1]).([]any)
		for _, x := range groups {
			group, _ := x.(jsondoc.Object)
			m, _ := group.At("matcher").(string)
			hooks, _ := group.At("hooks").([]any)
			for _, x := range hooks {
				h, _ := x.(jsondoc.Object)
				command, _ := h.At("command").(string)
				if h.At("type") == "command" {
					got = append(got, m+"\x00"+command)
				}
			}
		}
		if !slices.Equal(got, want) {
			report("/hooks/"+event[1], "does not run the policy's hooks, and no others, in their order")
		}
	}
}
