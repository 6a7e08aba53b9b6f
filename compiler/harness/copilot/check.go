package copilot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/recheck"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// The key tables are those of the managed-settings schema that 1.0.102 prints, limited to what halo may write. The program itself drops an unknown key with no
// more than a warning, and refuses the whole file for a value of a wrong type.
var settingsShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
	{Key: "allowManagedHooksOnly", Shape: jsondoc.BoolShape},
	{Key: "allowManagedMcpServersOnly", Shape: jsondoc.BoolShape},
	{Key: "allowedMcpServers", Shape: matchers},
	{Key: "deniedMcpServers", Shape: matchers},
	{Key: "permissions", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "defaultMode", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"manual"}}},
		{Key: "disableBypassPermissionsMode", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"disable"}}},
		{Key: "limitTo", Shape: jsondoc.TextList},
	}}},
	{Key: "sandbox", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "allowBypass", Shape: jsondoc.BoolShape},
		{Key: "enabled", Shape: jsondoc.BoolShape},
		{Key: "failIfUnavailable", Shape: jsondoc.BoolShape},
		{Key: "userPolicy", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "filesystem", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
				{Key: "deniedPaths", Shape: jsondoc.TextList}, {Key: "readwritePaths", Shape: jsondoc.TextList},
			}}},
			{Key: "network", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
				{Key: "allowLocalNetwork", Shape: jsondoc.BoolShape}, {Key: "allowOutbound", Shape: jsondoc.BoolShape},
				{Key: "allowedHosts", Shape: jsondoc.TextList}, {Key: "blockedHosts", Shape: jsondoc.TextList},
			}}},
		}}},
	}}},
	{Key: "telemetry", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "capture", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "prompts", Shape: jsondoc.BoolShape}}}},
		{Key: "captureContent", Shape: jsondoc.BoolShape}, {Key: "enabled", Shape: jsondoc.BoolShape}, {Key: "endpoint", Shape: jsondoc.StringShape},
		{Key: "lockCaptureContent", Shape: jsondoc.BoolShape},
		{Key: "protocol", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"http/json", "http/protobuf"}}},
		{Key: "resourceAttributes", Shape: jsondoc.TextMap},
	}}},
}}

var matchers = &jsondoc.Shape{Kind: jsondoc.List, Elem: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
	{Key: "serverName", Shape: jsondoc.StringShape}, {Key: "serverUrl", Shape: jsondoc.StringShape}, {Key: "serverCommand", Shape: jsondoc.TextList},
}}}

var hookList = &jsondoc.Shape{Kind: jsondoc.List, Elem: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
	{Key: "type", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"command"}}},
	{Key: "bash", Shape: jsondoc.StringShape}, {Key: "powershell", Shape: jsondoc.StringShape},
}}}

var hooksShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
	{Key: "version", Shape: jsondoc.NumberShape},
	{Key: "hooks", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "agentStop", Shape: hookList}, {Key: "postToolUse", Shape: hookList}, {Key: "preToolUse", Shape: hookList},
		{Key: "sessionStart", Shape: hookList}, {Key: "userPromptSubmitted", Shape: hookList},
	}}},
}}

func check(t harness.Target, files []harness.File) []harness.Finding {
	var out []harness.Finding
	var settings, hooks jsondoc.Object
	for _, f := range files {
		report := func(pointer, message string) {
			out = append(out, harness.Finding{Dest: f.Dest, Pointer: pointer, Message: message})
		}
		var shape *jsondoc.Shape
		switch f.Dest {
		case settingsPath(t.OS):
			shape = settingsShape
		case hooksPath(t.OS):
			shape = hooksShape
		default:
			report("", "is not a file that copilot-cli reads")
			continue
		}
		if f.Owner != harness.Owner(t.OS) || f.Mode != 0o644 {
			report("", "has another owner or mode than copilot-cli wants: it locks users out, or skips a hook file without a word")
		}
		if len(f.Content) > maxBytes {
			report("", "has "+strconv.Itoa(len(f.Content))+" bytes, more than the 65536 that copilot-cli reads")
		}
		for _, bad := range recheck.Forbidden(string(f.Content)) {
			report("", bad)
		}
		doc, err := jsondoc.Parse(f.Content, func(pointer string) { report(pointer, "is a key twice: the last one wins without a word") })
		if err != nil {
			report("", err.Error())
			continue
		}
		shape.Check(doc, "", report)
		if shape == settingsShape {
			settings = doc
			entries(doc, report)
		} else {
			hooks = doc
		}
	}
	if locksKnown(t.Version) {
		for _, h := range t.Policy.Hooks.Items {
			if everyTool(h.Matcher.V) && !runs(hooks, h.Command.V) {
				out = append(out, harness.Finding{Dest: hooksPath(t.OS), Pointer: "/hooks", Message: fmt.Sprintf("does not run the hook of %s", h.Event.V)})
			}
		}
	}
	held(t, settings, func(pointer, message string) {
		out = append(out, harness.Finding{Dest: settingsPath(t.OS), Pointer: pointer, Message: message})
	})
	return out
}

// entries finds entries that load and never match, or mean more than they say.
func entries(doc jsondoc.Object, report func(pointer, message string)) {
	const net = "/sandbox/userPolicy/network"
	network, _ := doc.At("sandbox", "userPolicy", "network").(jsondoc.Object)
	for _, key := range [...]string{"allowedHosts", "blockedHosts"} {
		v, ok := network.Get(key)
		if !ok {
			continue
		}
		l, _ := v.([]any)
		if len(l) == 0 {
			report(net+"/"+key, "is empty or no list, which restricts nothing")
		}
		for i, x := range l {
			s, _ := x.(string)
			if _, problem := host.ParseDenyPattern(s); problem != nil {
				report(net+"/"+key+"/"+strconv.Itoa(i), fmt.Sprintf("%q %s; copilot-cli drops it without a word", s, problem.Reason))
			}
		}
	}
	if _, both := network.Get("allowedHosts"); both && network.At("allowOutbound") == false {
		report(net+"/allowOutbound", "beside an allow list blocks the allowed hosts too")
	}
	if l, ok := doc.At("permissions", "limitTo").([]any); ok {
		if len(l) == 0 {
			report("/permissions/limitTo", "is empty, which denies every address")
		}
		for i, x := range l {
			s, _ := x.(string)
			h, ok := strings.CutPrefix(s, "Domain(")
			h, closed := strings.CutSuffix(h, ")")
			if _, problem := host.ParsePattern(h); !ok || !closed || problem != nil {
				report("/permissions/limitTo/"+strconv.Itoa(i), fmt.Sprintf("%q is not Domain(host); one such entry empties the list", s))
			}
		}
	}
	if l, ok := doc.Strings("sandbox", "userPolicy", "filesystem", "deniedPaths"); ok {
		for i, s := range l {
			p, problem := fspath.ParseProtected(s)
			if problem != nil || p.Kind() == fspath.Relative || p.Glob() {
				report("/sandbox/userPolicy/filesystem/deniedPaths/"+strconv.Itoa(i), fmt.Sprintf("%q never matches: only absolute paths and ~/ without globs do", s))
			}
		}
	}
	for _, key := range [...]string{"allowedMcpServers", "deniedMcpServers"} {
		l, _ := doc.At(key).([]any)
		for i, x := range l {
			o, _ := x.(jsondoc.Object)
			at := "/" + key + "/" + strconv.Itoa(i)
			if len(o) != 1 {
				report(at, "has not exactly one of serverName, serverUrl and serverCommand; copilot-cli refuses the whole file")
				continue
			}
			if key == "allowedMcpServers" && o[0].Key == "serverName" {
				report(at, "admits a server by its name, which a user can give to any server")
			}
			if s, ok := o[0].Value.(string); ok && key == "allowedMcpServers" && (strings.Contains(s, "*") || strings.Contains(s, "${")) {
				report(at, "admits more than one server")
			}
		}
	}
	if _, ok := doc.Get("allowedMcpServers"); ok && doc.At("allowManagedMcpServersOnly") != true {
		report("/allowedMcpServers", "is a list without its lock allowManagedMcpServersOnly, so a user's own list widens it")
	}
	tel, _ := doc.At("telemetry").(jsondoc.Object)
	if s, ok := tel.At("endpoint").(string); ok && !strings.Contains(s, "://") {
		report("/telemetry/endpoint", "has no scheme, so nothing is exported")
	}
}

// held compares the settings with what the policy asks for.
func held(t harness.Target, doc jsondoc.Object, report func(pointer, message string)) {
	p := t.Policy
	if doc == nil {
		// No settings are right when there is nothing to say, or more than the program reads.
		if files, _ := render(t); !slices.ContainsFunc(files, func(f harness.File) bool { return f.Dest == settingsPath(t.OS) }) {
			return
		}
	}
	want := func(on bool, value any, keys ...string) {
		if on && doc.At(keys...) != value {
			report("/"+strings.Join(keys, "/"), fmt.Sprintf("is not %v, which the policy asks for", value))
		}
	}
	want(p.Permissions.DisableBypass.V && t.Version.AtLeast(1, 0, 79), "disable", "permissions", "disableBypassPermissionsMode")
	want(p.Hooks.ManagedOnly.V && locksKnown(t.Version), true, "allowManagedHooksOnly")
	want(p.MCP.ManagedOnly.V && locksKnown(t.Version), true, "allowManagedMcpServersOnly")
	if p.MCP.ManagedOnly.V && locksKnown(t.Version) {
		l, ok := doc.At("allowedMcpServers").([]any)
		if !ok || len(l) > len(p.MCP.Servers) {
			report("/allowedMcpServers", "is not the policy's list of servers")
		}
	}
	if t.Version.AtLeast(1, 0, 79) {
		l, _ := doc.At("deniedMcpServers").([]any)
		for _, d := range p.MCP.Denied.Items {
			if strings.TrimSpace(d.V) != "" && !slices.ContainsFunc(l, func(x any) bool { o, _ := x.(jsondoc.Object); return len(o) == 1 && o[0].Value == d.V }) {
				report("/deniedMcpServers", fmt.Sprintf("does not deny %q", d.V))
			}
		}
	}
	if !sandboxKnown(t.Version) || !p.Sandboxed() {
		if _, ok := doc.Get("sandbox"); ok {
			report("/sandbox", "is set although it must not be: the policy asks for none, or the pinned version is below 1.0.93")
		}
		return
	}
	want(true, true, "sandbox", "enabled")
	want(true, true, "sandbox", "failIfUnavailable")
	want(true, false, "sandbox", "allowBypass")
	if _, ok := doc.Strings("sandbox", "userPolicy", "filesystem", "readwritePaths"); !ok {
		report("/sandbox/userPolicy/filesystem/readwritePaths", "is missing, so a user's own roots count")
	}
	if l, _ := doc.Strings("sandbox", "userPolicy", "filesystem", "readwritePaths"); p.Mode() == policy.ModeReadOnly && len(l) > 0 {
		report("/sandbox/userPolicy/filesystem/readwritePaths", "is not empty in read-only mode")
	}
	if t.OS != "windows" {
		l, _ := doc.Strings("sandbox", "userPolicy", "filesystem", "deniedPaths")
		for _, r := range p.Sandbox.ProtectedPaths.Items {
			if r.Path.Kind() != fspath.Relative && !r.Path.Glob() && !slices.Contains(l, r.Path.String()) {
				report("/sandbox/userPolicy/filesystem/deniedPaths", fmt.Sprintf("does not deny %q", r.Path.String()))
			}
		}
	}
	if !p.EgressRules() {
		return
	}
	const net = "/sandbox/userPolicy/network"
	open, _ := p.Hosts.Default()
	allowed, isList := doc.Strings("sandbox", "userPolicy", "network", "allowedHosts")
	if !open && len(p.Hosts.Allowed()) == 0 {
		want(true, false, "sandbox", "userPolicy", "network", "allowOutbound")
		return
	}
	if !open {
		want(true, false, "sandbox", "userPolicy", "network", "allowLocalNetwork")
		if !isList || !slices.Equal(slices.Sorted(slices.Values(allowed)), patterns(p.Hosts.Allowed())) {
			report(net+"/allowedHosts", "is not the policy's list of allowed hosts")
		}
		limit, _ := doc.Strings("permissions", "limitTo")
		for _, d := range limit {
			if !slices.Contains(allowed, strings.TrimSuffix(strings.TrimPrefix(d, "Domain("), ")")) {
				report("/permissions/limitTo", fmt.Sprintf("has %q, which the policy does not allow", d))
			}
		}
	} else if isList {
		report(net+"/allowedHosts", "is set under a default of allow")
	}
	blocked, _ := doc.Strings("sandbox", "userPolicy", "network", "blockedHosts")
	for _, d := range patterns(p.Hosts.Denied()) {
		if !slices.Contains(blocked, d) {
			report(net+"/blockedHosts", fmt.Sprintf("does not block %q", d))
		}
	}
}

// runs reports whether a hook file runs a command at any event.
func runs(hooks jsondoc.Object, command string) bool {
	events, _ := hooks.At("hooks").(jsondoc.Object)
	for _, ev := range events {
		l, _ := ev.Value.([]any)
		if slices.ContainsFunc(l, func(x any) bool {
			o, _ := x.(jsondoc.Object)
			return slices.ContainsFunc(o, func(m jsondoc.Member) bool { return m.Key != "type" && m.Value == command })
		}) {
			return true
		}
	}
	return false
}
