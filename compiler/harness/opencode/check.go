package opencode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/recheck"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// The key tables are limited to what halo may write. The program drops an unknown key at the top without a word, keeps an unknown permission that matches nothing,
// and refuses to start for a value of a wrong type.
var (
	action   = &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"allow", "ask", "deny"}}
	patterns = &jsondoc.Shape{Kind: jsondoc.Map, Elem: action, Or: action}
	server   = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "type", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"local", "remote"}}}, {Key: "url", Shape: jsondoc.StringShape},
		{Key: "headers", Shape: jsondoc.TextMap}, {Key: "command", Shape: jsondoc.TextList}, {Key: "enabled", Shape: jsondoc.BoolShape},
	}}
	providerShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "models", Shape: &jsondoc.Shape{Kind: jsondoc.Map, Elem: &jsondoc.Shape{Kind: jsondoc.Fixed}}}, {Key: "name", Shape: jsondoc.StringShape},
		{Key: "npm", Shape: jsondoc.StringShape}, {Key: "options", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{{Key: "baseURL", Shape: jsondoc.StringShape}}}},
		{Key: "whitelist", Shape: jsondoc.TextList},
	}}
	configShape = &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
		{Key: "$schema", Shape: jsondoc.StringShape}, {Key: "autoupdate", Shape: jsondoc.BoolShape}, {Key: "enabled_providers", Shape: jsondoc.TextList},
		{Key: "instructions", Shape: jsondoc.TextList}, {Key: "mcp", Shape: &jsondoc.Shape{Kind: jsondoc.Map, Elem: server}}, {Key: "model", Shape: jsondoc.StringShape},
		{Key: "permission", Shape: &jsondoc.Shape{Kind: jsondoc.Fixed, Fields: []jsondoc.Field{
			{Key: "bash", Shape: patterns}, {Key: "edit", Shape: patterns}, {Key: "external_directory", Shape: patterns}, {Key: "glob", Shape: patterns}, {Key: "grep", Shape: patterns},
			{Key: "read", Shape: patterns}, {Key: "task", Shape: patterns}, {Key: "webfetch", Shape: action}, {Key: "websearch", Shape: action},
		}}},
		{Key: "provider", Shape: &jsondoc.Shape{Kind: jsondoc.Map, Elem: providerShape}},
		{Key: "share", Shape: &jsondoc.Shape{Kind: jsondoc.String, Words: []string{"disabled"}}},
	}}
)

func check(t harness.Target, files []harness.File) []harness.Finding {
	var out []harness.Finding
	var doc jsondoc.Object
	config, text := folder(t.OS)+"opencode.json", folder(t.OS)+instructionsFile
	for _, f := range files {
		report := func(pointer, message string) {
			out = append(out, harness.Finding{Dest: f.Dest, Pointer: pointer, Message: message})
		}
		if f.Owner != harness.Owner(t.OS) || f.Mode != 0o644 {
			report("", "has another owner or mode, so that others can write it")
		}
		for _, bad := range recheck.Forbidden(string(f.Content)) {
			report("", bad)
		}
		switch f.Dest {
		case text:
			continue
		case config:
		default:
			report("", "is not a file that opencode reads")
			continue
		}
		var err error
		if doc, err = jsondoc.Parse(f.Content, func(pointer string) { report(pointer, "is a key twice: the last one wins without a word") }); err != nil {
			report("", err.Error())
			continue
		}
		configShape.Check(doc, "", report)
		order(doc, report)
		braces(doc, "", report)
	}
	if renderable(t.Version) {
		held(t, doc, func(pointer, message string) {
			out = append(out, harness.Finding{Dest: config, Pointer: pointer, Message: message})
		})
		if t.Policy.Instructions.V != "" && !slices.ContainsFunc(files, func(f harness.File) bool {
			return f.Dest == text && strings.TrimSpace(string(f.Content)) == strings.TrimSpace(t.Policy.Instructions.V)
		}) {
			out = append(out, harness.Finding{Dest: text, Message: "does not hold the policy's instructions"})
		}
	} else if len(files) > 0 {
		out = append(out, harness.Finding{Dest: files[0].Dest, Message: "is rendered for a version that does not read it"})
	}
	return out
}

// order finds what the order of keys undoes, and patterns that never match.
func order(doc jsondoc.Object, report func(pointer, message string)) {
	perms, _ := doc.At("permission").(jsondoc.Object)
	for _, p := range perms {
		m, ok := p.Value.(jsondoc.Object)
		if !ok {
			continue
		}
		at := "/permission/" + p.Key
		if len(m) == 0 {
			report(at, "is empty and says nothing")
		}
		denied := ""
		for i, e := range m {
			here := jsondoc.Pointer(at, e.Key)
			switch {
			case e.Value == "deny" && e.Key != "*":
				denied = e.Key
			case denied != "":
				report(here, fmt.Sprintf("stands after the denied %q: the last pattern that matches wins", denied))
			}
			if e.Key == "*" && i > 0 {
				report(here, "is a catch-all that is not the first key: the last pattern that matches wins")
			}
			if e.Key == "*" && e.Value == "allow" {
				report(here, "is a catch-all that allows: it takes away the program's own questions")
			}
			switch p.Key {
			case "external_directory":
				if e.Key != "*" && !strings.HasSuffix(e.Key, "/*") {
					report(here, "never matches: the program asks about FOLDER/*")
				}
			case "read", "edit":
				if e.Key[:min(1, len(e.Key))] == "/" || strings.HasPrefix(e.Key, "~") {
					report(here, "never matches: the program asks about the path below the git root")
				}
			}
		}
	}
}

// braces finds texts that the program would replace: {file:…} anywhere, {env:…} anywhere but in a server's definition.
func braces(v any, pointer string, report func(pointer, message string)) {
	bad := func(at, s string) {
		if strings.Contains(s, "{file:") || strings.Contains(s, "{env:") && !strings.HasPrefix(at, "/mcp/") {
			report(at, "holds {env:} or {file:}, which the program replaces")
		}
	}
	switch v := v.(type) {
	case string:
		bad(pointer, v)
	case []any:
		for _, x := range v {
			braces(x, pointer, report)
		}
	case jsondoc.Object:
		for _, m := range v {
			at := jsondoc.Pointer(pointer, m.Key)
			bad(at, m.Key)
			braces(m.Value, at, report)
		}
	}
}

// held compares the configuration with what the policy asks for.
func held(t harness.Target, doc jsondoc.Object, report func(pointer, message string)) {
	p := t.Policy
	perms, _ := doc.At("permission").(jsondoc.Object)
	// A tool has as many patterns as the policy has protected paths, so that each is looked up in an index.
	denied := map[string]map[string]bool{}
	denies := func(tool, pattern string) bool {
		switch v := perms.At(tool).(type) {
		case string:
			return v == "deny"
		case jsondoc.Object:
			if denied[tool] == nil {
				denied[tool] = make(map[string]bool, len(v))
				for _, e := range v {
					if _, there := denied[tool][e.Key]; !there {
						denied[tool][e.Key] = e.Value == "deny"
					}
				}
			}
			return denied[tool][pattern]
		}
		return false
	}
	d := protect(t, gap.New(&table, t))
	for _, tool := range [...]string{"read", "edit"} {
		for _, f := range d.files {
			if !denies(tool, f) {
				report("/permission/"+tool, fmt.Sprintf("does not deny %q", f))
			}
		}
	}
	for _, f := range d.folders {
		if !denies("external_directory", f) {
			report("/permission/external_directory", fmt.Sprintf("does not deny %q", f))
		}
	}
	if open := roots(t, gap.New(&table, t)); len(open) > 0 || len(d.folders) > 0 {
		m, _ := perms.At("external_directory").(jsondoc.Object)
		if len(m) == 0 || m[0].Key != "*" || m[0].Value != "ask" {
			report("/permission/external_directory", "does not begin with the catch-all that asks")
		}
		for _, f := range open {
			if !slices.Contains(d.folders, f) && m.At(f) != "allow" {
				report("/permission/external_directory", fmt.Sprintf("does not allow %q, which is a writable root", f))
			}
		}
		for _, e := range m {
			if e.Value == "allow" && !slices.Contains(open, e.Key) {
				report("/permission/external_directory", fmt.Sprintf("allows %q, which is no writable root", e.Key))
			}
		}
	}
	if readOnly(t) && perms.At("edit") != "deny" {
		report("/permission/edit", "is not denied in read-only mode")
	}
	a := translate(t, gap.New(&table, t))
	for _, tool := range slices.Sorted(maps.Keys(a.tool)) {
		want := a.tool[tool]
		got := perms.At(tool)
		if m, ok := got.(jsondoc.Object); ok {
			got = m.At("*")
		}
		if got != want && got != "deny" {
			report("/permission/"+tool, fmt.Sprintf("is not %s, which a rule asks for", want))
		}
	}
	for _, c := range a.ban {
		if !denies("bash", c) {
			report("/permission/bash", fmt.Sprintf("does not deny %q", c))
		}
	}
	for _, c := range a.ask {
		if perms.At("bash", c) != "ask" && perms.At("bash") != "ask" && !denies("bash", c) {
			report("/permission/bash", fmt.Sprintf("does not ask about %q", c))
		}
	}
	fetch, search := web(t, gap.New(&table, t))
	for _, w := range [...][2]string{{"webfetch", fetch}, {"websearch", search}} {
		if got := perms.At(w[0]); w[1] != "" && got != w[1] && got != "deny" {
			report("/permission/"+w[0], fmt.Sprintf("is not %s, which the egress rules ask for", w[1]))
		}
	}
	if open, _ := p.Hosts.Default(); !open && doc.At("share") != "disabled" {
		report("/share", "is not disabled under default deny: sharing uploads the session")
	}
	for _, m := range p.MCP.Denied.Items {
		if !expands(m.V) && doc.At("mcp", m.V, "enabled") != false {
			report("/mcp", fmt.Sprintf("does not switch off %q", m.V))
		}
	}
	heldServers(t, doc, report)
	pin := p.Pin(policy.OpenCode)
	if pin != nil && pin.Version.IsSet() && doc.At("autoupdate") != false {
		report("/autoupdate", "is not false beside a pinned version")
	}
	c := models(t, gap.New(&table, t))
	if got, _ := doc.Strings("enabled_providers"); !slices.Equal(got, c.providers) {
		report("/enabled_providers", "is not the list of the policy's providers")
	}
	for _, def := range c.definitions {
		want := def.Value.(jsondoc.Object).At("whitelist").([]string)
		if got, ok := doc.Strings("provider", def.Key, "whitelist"); !ok || len(got) == 0 || !slices.Equal(got, want) {
			report("/provider", fmt.Sprintf("does not limit the models of %s to the policy's list", def.Key))
		}
		if def.Key != gatewayID(t) {
			continue
		}
		if doc.At("provider", def.Key, "options", "baseURL") != t.GatewayURL || doc.At("provider", def.Key, "npm") != "@ai-sdk/openai-compatible" {
			report("/provider", fmt.Sprintf("does not send the requests for %s to the gateway", def.Key))
		}
		for _, name := range want {
			if doc.At("provider", def.Key, "models", name) == nil {
				report("/provider", fmt.Sprintf("does not define the model %s of %s", name, def.Key))
			}
		}
	}
	if c.model != "" && doc.At("model") != c.model {
		report("/model", "is not "+c.model)
	}
	if p.Instructions.V != "" {
		if l, _ := doc.Strings("instructions"); !slices.Equal(l, []string{reference(t.OS)}) {
			report("/instructions", "does not name the file of instructions")
		}
	}
}

// heldServers compares the definitions of servers.
func heldServers(t harness.Target, doc jsondoc.Object, report func(pointer, message string)) {
	m := &t.Policy.MCP
	refused := func(name string) bool {
		return slices.ContainsFunc(m.Denied.Items, func(d source.Str) bool { return d.V == name })
	}
	wanted := map[string]*policy.Server{}
	for i := range m.Servers {
		if s := &m.Servers[i]; !refused(s.Name.V) {
			if _, ok := define(s); ok {
				wanted[s.Name.V] = s
			}
		}
	}
	servers, _ := doc.At("mcp").(jsondoc.Object)
	for _, s := range servers {
		def, _ := s.Value.(jsondoc.Object)
		if x := wanted[s.Key]; x != nil {
			if !same(def, x) {
				report(jsondoc.Pointer("/mcp", s.Key), "is another server than the policy's, or is switched off")
			}
		} else if !refused(s.Key) || len(def) != 1 {
			report(jsondoc.Pointer("/mcp", s.Key), "is a server that the policy does not name")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if servers.At(name) == nil {
			report(jsondoc.Pointer("/mcp", name), "is missing: the policy's server is not defined")
		}
	}
}

// same reports whether a definition is that of a server, which has no texts that the program would replace but variables.
func same(def jsondoc.Object, s *policy.Server) bool {
	is := func(got any, want string) bool {
		text, ok := got.(string)
		back, plain := fromVariables(text)
		return ok && plain && back == want
	}
	if def.At("enabled") != true {
		return false
	}
	if !s.URL.IsSet() {
		argv, _ := def.Strings("command")
		return def.At("type") == "local" && slices.EqualFunc(argv, s.Command.Items, func(a string, b source.Str) bool { return is(a, b.V) })
	}
	headers, _ := def.At("headers").(jsondoc.Object)
	for _, h := range s.Headers {
		if !is(headers.At(h.Key.V), h.Value.V) {
			return false
		}
	}
	return def.At("type") == "remote" && is(def.At("url"), s.URL.V) && len(headers) == len(s.Headers)
}
