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
	"halos.dev/halo/compiler/source"
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
	if want := wantedHooks(t); !jsondoc.Equal(hooks, want) {
		out = append(out, harness.Finding{Dest: hooksPath(t.OS), Pointer: "/hooks", Message: "are not the hooks of the policy that run for every tool"})
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
	same := func(want any, keys ...string) {
		switch got := doc.At(keys...); {
		case want == nil && got != nil:
			report("/"+strings.Join(keys, "/"), "is set, and the policy does not ask for it")
		case !jsondoc.Equal(got, want):
			report("/"+strings.Join(keys, "/"), "is not what the policy asks for")
		}
	}
	seen, locks := t.Version.AtLeast(1, 0, 79), locksKnown(t.Version)
	want(p.Permissions.DisableBypass.V && seen, "disable", "permissions", "disableBypassPermissionsMode")
	want(p.Hooks.ManagedOnly.V && locks, true, "allowManagedHooksOnly")
	want(p.MCP.ManagedOnly.V && locks, true, "allowManagedMcpServersOnly")
	var mode any
	if p.Permissions.Mode.V == "default" && t.Version.AtLeast(1, 0, 102) {
		mode = "manual"
	}
	same(mode, "permissions", "defaultMode")
	if got, ok := doc.At("allowedMcpServers").([]any); p.MCP.ManagedOnly.V && locks && (!ok || !jsondoc.Equal(got, wantedServers(&p.MCP))) {
		report("/allowedMcpServers", "is not the policy's list of servers")
	}
	if denied, _ := doc.At("deniedMcpServers").([]any); seen {
		asked := map[string]bool{}
		for _, d := range p.MCP.Denied.Items {
			asked[d.V] = true
			if strings.TrimSpace(d.V) != "" && !slices.ContainsFunc(denied, func(x any) bool { o, _ := x.(jsondoc.Object); return len(o) == 1 && o[0].Value == d.V }) {
				report("/deniedMcpServers", fmt.Sprintf("does not deny %q", d.V))
			}
		}
		for i, x := range denied {
			if o, _ := x.(jsondoc.Object); len(o) == 1 {
				if s, _ := o[0].Value.(string); !asked[s] {
					report("/deniedMcpServers/"+strconv.Itoa(i), "denies a server that the policy does not")
				}
			}
		}
	}
	same(wantedTelemetry(t), "telemetry")
	open, _ := p.Hosts.Default()
	var limit []string
	if bounded(t) {
		for _, h := range patterns(p.Hosts.Allowed()) {
			// Without the sandbox's lists beside it the boundary is alone, and there *.x includes x.
			if p.Sandboxed() || !strings.HasPrefix(h, "*") && p.Hosts.Decide(host.Name(h)).Allow {
				limit = append(limit, "Domain("+h+")")
			}
		}
	}
	if got, ok := doc.Strings("permissions", "limitTo"); ok != bounded(t) || !slices.Equal(got, limit) {
		report("/permissions/limitTo", "is not the policy's list of allowed hosts: "+recheck.Difference(got, limit))
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
	var writable, hidden []string
	for _, r := range p.Sandbox.WritableRoots.Items {
		if t.OS != "windows" || r.Path.Kind() != fspath.Absolute {
			writable = append(writable, fspath.Spellings(r.Path, t.OS)...)
		}
	}
	for _, r := range p.Sandbox.ProtectedPaths.Items {
		if t.OS != "windows" && r.Path.Kind() != fspath.Relative && !r.Path.Glob() {
			hidden = append(hidden, fspath.Spellings(r.Path, t.OS)...)
		}
	}
	const user = "/sandbox/userPolicy/"
	list := func(want []string, missing string, keys ...string) {
		slices.Sort(want)
		want = slices.Compact(want)
		got, ok := doc.Strings(append([]string{"sandbox", "userPolicy"}, keys...)...)
		if missing != "" && !ok {
			report(user+strings.Join(keys, "/"), missing)
		} else if !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			report(user+strings.Join(keys, "/"), "is not the policy's list: "+recheck.Difference(got, want))
		}
	}
	list(writable, "is missing, so a user's own roots count", "filesystem", "readwritePaths")
	list(hidden, "", "filesystem", "deniedPaths")
	net := []string{"sandbox", "userPolicy", "network"}
	switch {
	case !p.EgressRules():
		same(nil, net...)
		return
	case !open && len(p.Hosts.Allowed()) == 0:
		same(jsondoc.Object{{Key: "allowOutbound", Value: false}}, net...)
		return
	case !open:
		same(false, append(net, "allowLocalNetwork")...)
		list(patterns(p.Hosts.Allowed()), "is missing, so every host is reachable", "network", "allowedHosts")
	default:
		same(nil, append(net, "allowLocalNetwork")...)
		same(nil, append(net, "allowedHosts")...)
	}
	same(nil, append(net, "allowOutbound")...)
	list(patterns(p.Hosts.Denied()), "", "network", "blockedHosts")
}

// wantedServers is the list that admits the servers of a policy by what they are.
func wantedServers(m *policy.MCP) []any {
	var urls, commands []string
	for _, s := range m.Servers {
		url := s.URL.V
		switch {
		case s.URL.IsSet() && !strings.Contains(url, "*") && !strings.Contains(url, "${"):
			if _, rest, _ := strings.Cut(url, "://"); !strings.ContainsAny(rest, "/?#") {
				url += "/"
			}
			urls = append(urls, url)
		case !s.URL.IsSet() && len(s.Command.Items) > 0 && !slices.ContainsFunc(s.Command.Items, func(a source.Str) bool { return a.V == "" || strings.Contains(a.V, "${") }):
			var argv []string
			for _, a := range s.Command.Items {
				argv = append(argv, a.V)
			}
			commands = append(commands, strings.Join(argv, "\x00"))
		}
	}
	out := []any{}
	slices.Sort(commands)
	for _, c := range slices.Compact(commands) {
		out = append(out, jsondoc.Object{{Key: "serverCommand", Value: strings.Split(c, "\x00")}})
	}
	slices.Sort(urls)
	for _, u := range slices.Compact(urls) {
		out = append(out, jsondoc.Object{{Key: "serverUrl", Value: u}})
	}
	return out
}

// wantedTelemetry is the telemetry of a policy, without what the pinned version does not speak.
func wantedTelemetry(t harness.Target) any {
	m, want := &t.Policy.Telemetry, map[string]any{}
	if !t.Version.AtLeast(1, 0, 79) {
		return nil
	}
	grpc := m.Protocol.V == "grpc"
	if m.Enabled.IsSet() && !(m.Enabled.V && grpc) {
		want["enabled"] = m.Enabled.V
	}
	if m.OTLPEndpoint.IsSet() && !grpc {
		want["endpoint"] = m.OTLPEndpoint.V
	}
	if m.Protocol.IsSet() && !grpc {
		want["protocol"] = m.Protocol.V
	}
	switch {
	case !m.LogPrompts.IsSet():
	case !m.LogPrompts.V:
		want["captureContent"], want["lockCaptureContent"] = false, true
	case t.Version.AtLeast(1, 0, 102):
		want["capture"] = map[string]any{"prompts": true}
	}
	if len(m.Attributes) > 0 {
		attributes := map[string]any{}
		for _, a := range m.Attributes {
			attributes[a.Key.V] = a.Value.V
		}
		want["resourceAttributes"] = attributes
	}
	if len(want) == 0 {
		return nil
	}
	return jsondoc.Sorted(want)
}

// wantedHooks is the hook file of a policy: the hooks that run for every tool, those of one event in their order.
func wantedHooks(t harness.Target) jsondoc.Object {
	shell := "bash"
	if t.OS == "windows" {
		shell = "powershell"
	}
	all := map[string]any{}
	for _, ev := range events {
		for _, h := range t.Policy.Hooks.Items {
			if h.Event.V == ev[0] && everyTool(h.Matcher.V) && locksKnown(t.Version) {
				l, _ := all[ev[1]].([]any)
				all[ev[1]] = append(l, jsondoc.Object{{Key: "type", Value: "command"}, {Key: shell, Value: h.Command.V}})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return jsondoc.Object{{Key: "version", Value: 1}, {Key: "hooks", Value: jsondoc.Sorted(all)}}
}
