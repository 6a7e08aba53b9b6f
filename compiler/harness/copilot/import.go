package copilot

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

const noRules = "halo writes no rules for copilot-cli: their meaning differs there, and a single rule makes every operation without one ask"

// noCounterpart are the keys of the program that a profile has no field for, with the reason. Keys as in the schema of 1.0.102.
var noCounterpart = []draft.Reason{
	{Pointer: "/enabledPlugins", Text: "a profile has no field for plugins"},
	{Pointer: "/extraKnownMarketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/features", Text: "a profile pins no feature flags"},
	{Pointer: "/forceLoginOrgs", Text: "a profile has no field for logins and providers"},
	{Pointer: "/forceRemoteSettingsRefresh", Text: "a release is one source; how sources combine is no part of a profile"},
	{Pointer: "/model", Text: "the model is a default that users change, and halo writes none for copilot-cli"},
	{Pointer: "/permissions", Text: "a profile has no field for it"},
	{Pointer: "/permissions/allow", Text: noRules},
	{Pointer: "/permissions/ask", Text: noRules},
	{Pointer: "/permissions/deny", Text: noRules},
	{Pointer: "/policyHelper", Text: "a profile runs no program for settings"},
	{Pointer: "/remoteControl", Text: "a profile has no field for remote control"},
	{Pointer: "/sandbox", Text: "a profile has no field for it"},
	{Pointer: "/sandbox/addCurrentWorkingDirectory", Text: "without the session folder no command starts, and halo never writes it"},
	{Pointer: "/sandbox/userPolicy/network/allowLocalNetwork", Text: "halo closes the local network under a default of deny and leaves it alone otherwise"},
	{Pointer: "/strictKnownMarketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/strictPluginOnlyCustomization", Text: "a profile has no field for plugins"},
	{Pointer: "/telemetry", Text: "a profile has no field for it in telemetry"},
}

// adopter reads the files of a draft.
type adopter struct {
	*draft.Draft
	doc *draft.Node
}

// importFiles reads managed-settings.json and hook files of policy.d.
func importFiles(d *draft.Draft) error {
	a := &adopter{Draft: d}
	d.Reasons(noCounterpart)
	for _, f := range d.Files {
		n, err := draft.JSON(f.Name, f.Data, draft.Dialect{})
		if err == nil && len(f.Data) > maxBytes {
			err = fmt.Errorf("it is larger than %d bytes", maxBytes)
		}
		if err != nil {
			return fmt.Errorf("%s: %w, and the program refuses it", f.Name, err)
		}
		draft.RepeatedKeys(n)
		d.Roots = append(d.Roots, n)
		if n.Get("version") != nil && n.Get("hooks") != nil {
			a.hooks(n)
			continue
		}
		if a.doc != nil {
			return fmt.Errorf("%s: there is one managed-settings.json, and this is the second", f.Name)
		}
		a.doc = n
	}
	if n := a.doc.Get("allowManagedHooksOnly"); n.Is(true) {
		a.Set(draft.HooksOnly, "true", "", n)
	} else if n.Is(false) {
		a.Keep("the lock is off", n)
	}
	a.sandbox()
	a.permissions()
	a.mcp()
	a.telemetry()
	return nil
}

func (a *adopter) hooks(n *draft.Node) {
	a.Keep("halo writes the version of hook files", n.Get("version"))
	for _, ev := range n.Get("hooks").Members() {
		i := slices.IndexFunc(events[:], func(e [2]string) bool { return e[1] == ev.Key })
		for _, h := range ev.Items() {
			command := h.Get("bash")
			if a.OS == "windows" {
				command = h.Get("powershell")
			}
			text, ok := command.Text()
			switch {
			case i < 0:
				a.Drop("a profile has no hook of this event", h)
			case !ok || h.Get("type") != nil && !h.Get("type").Is("command"):
				a.Drop("the hook runs no command on "+a.OS, h)
			default:
				nodes := []*draft.Node{command}
				if t := h.Get("type"); t != nil {
					nodes = append(nodes, t)
				}
				a.AddHook(draft.Hook{Event: events[i][0], Command: text}, nodes...)
				a.Drop("a profile has no field for it in a hook", h)
			}
		}
	}
}

func (a *adopter) sandbox() {
	box := a.doc.Get("sandbox")
	enabled, user := box.Get("enabled"), box.Get("userPolicy")
	switch {
	case enabled.Is(true):
		a.Set(draft.Sandbox, policy.ModeWorkspaceWrite, "", enabled)
		if !box.Get("allowBypass").Is(false) {
			a.Warn("without allowBypass: false users leave the sandbox for a command or a session", enabled)
		} else if user.At("filesystem", "readwritePaths") == nil {
			a.Warn("without readwritePaths users' own writable roots count", enabled)
		}
	case enabled.Is(false):
		a.Set(draft.Sandbox, policy.ModeOff, "", enabled)
		a.Drop("the sandbox is switched off, so this holds nothing", box)
	case user != nil:
		a.Warn("the sandbox is not switched on (sandbox.enabled), so the lists hold only for users who do", user)
	}
	if n := box.Get("failIfUnavailable"); n.Is(true) && !a.Said(n) {
		a.Set(draft.Required, "true", "", n)
	} else if n != nil {
		a.Keep("halo always writes true", n)
	}
	if n := box.Get("allowBypass"); n != nil {
		a.Keep("halo always writes false", n)
	}
	if !a.Has(draft.Sandbox, policy.ModeOff) {
		a.paths(user.Get("filesystem"))
		a.network(user.Get("network"))
	}
}

func (a *adopter) paths(files *draft.Node) {
	roots := files.Get("readwritePaths")
	if roots != nil && len(roots.Kids) == 0 {
		a.Keep("halo always writes the list", roots)
	}
	for _, n := range roots.Items() {
		if s, ok := n.Text(); ok {
			a.Root(s, n)
		}
	}
	for _, n := range files.Get("deniedPaths").Items() {
		s, ok := n.Text()
		if !ok {
			continue
		}
		if strings.ContainsAny(s, "*?[]{}") {
			a.Warn("a glob in deniedPaths never matches", n)
		}
		if rest, ok := strings.CutPrefix(s, "$HOME/"); ok {
			a.Warn("variables are not expanded, so the entry never matches; the profile has ~/", n)
			s = "~/" + rest
		} else if strings.HasPrefix(s, "~") && a.OS != "linux" {
			a.Warn("~ was seen to mean the home directory on Linux only, so the entry may not match", n)
		}
		a.Protect(s, n)
	}
}

// live reports whether the program takes an entry of a host list; others it drops without a word (observed on 1.0.102).
func live(s string) bool {
	name := strings.TrimPrefix(s, "*.")
	return s == "*" || name != "" && !strings.ContainsAny(name, "*/: \t") && !strings.Contains(name, "..")
}

func (a *adopter) network(net *draft.Node) {
	outbound, allowed, blocked := net.Get("allowOutbound"), net.Get("allowedHosts"), net.Get("blockedHosts")
	entries := func(list *draft.Node) (out []*draft.Node) {
		for _, n := range list.Items() {
			if s, ok := n.Text(); !ok || !live(s) {
				a.Drop("the entry is not a host name", n)
				a.Warn("the program drops this entry without a word", n)
				continue
			}
			out = append(out, n)
		}
		return out
	}
	hosts, denied := entries(allowed), entries(blocked)
	switch {
	case outbound.Is(false):
		a.Set(draft.Default, "deny", "", outbound)
		a.Drop("beside allowOutbound: false no host is reachable, those of the list neither", hosts...)
		for _, n := range hosts {
			a.Warn("beside allowOutbound: false no host is reachable, those of the list neither", n)
		}
		hosts = nil
	case allowed != nil && len(hosts) == 0:
		a.Set(draft.Default, "deny", "", allowed)
		a.Warn("a list without a usable entry restricts nothing: every host is reachable", allowed)
	case slices.ContainsFunc(hosts, func(n *draft.Node) bool { return n.Is("*") }):
		a.Set(draft.Default, "allow", "")
	case len(hosts) > 0:
		a.Set(draft.Default, "deny", "")
	}
	if outbound.Is(true) {
		a.Keep("commands have a network unless lists say otherwise", outbound)
	}
	for _, n := range hosts {
		if s, _ := n.Text(); s == "*" {
			a.Map(draft.Default, "", n)
		} else {
			a.AllowHost(s, n)
		}
	}
	if n := net.Get("allowLocalNetwork"); n.Is(false) && a.Has(draft.Allowed, "") {
		a.Keep("halo writes it with a list of allowed hosts", n)
	}
	for _, n := range denied {
		s, _ := n.Text()
		if s == "*" {
			for _, h := range a.Values(draft.Allowed) {
				a.Remove(draft.Allowed, h, "every host is blocked")
			}
			a.Set(draft.Default, "deny", "", n)
			continue
		}
		a.DenyHost(s, true, n)
		if a.below(s) {
			a.DenyHost("*."+s, true, n)
		}
	}
}

// below reports whether names below a blocked one would otherwise be allowed: the program blocks them with it.
func (a *adopter) below(s string) bool {
	wild, problem := host.ParseDenyPattern("*." + strings.ToLower(s))
	if problem != nil || strings.HasPrefix(s, "*") {
		return false
	}
	if !a.Has(draft.Default, "deny") {
		return true
	}
	return slices.ContainsFunc(a.Values(draft.Allowed), func(h string) bool {
		p, _ := host.ParsePattern(h)
		return p.Covers(wild) || wild.Covers(p)
	})
}

func (a *adopter) permissions() {
	p := a.doc.Get("permissions")
	if n := p.Get("disableBypassPermissionsMode"); n != nil {
		if _, ok := n.Text(); ok {
			reason := ""
			if !n.Is("disable") {
				reason = "the program takes any text for disable"
			}
			a.Set(draft.Bypass, "true", reason, n)
		} else {
			a.Drop("the value is not a text, and the program refuses the whole file", n)
		}
	}
	switch n := p.Get("defaultMode"); {
	case n.Is("manual"):
		a.Set(draft.Mode, "default", "", n)
	case n != nil:
		a.Drop("a profile has no such start mode for copilot-cli", n)
	}
	a.limitTo(p.Get("limitTo"))
}

// limitTo reads the boundary of the tools that fetch. A profile has one list of hosts, for commands and tools.
func (a *adopter) limitTo(list *draft.Node) {
	if list == nil {
		return
	}
	type entry struct {
		n *draft.Node
		h string
	}
	var entries []entry
	for _, n := range list.Items() {
		s, _ := n.Text()
		h, ok := strings.CutPrefix(s, "Domain(")
		h, closed := strings.CutSuffix(h, ")")
		if _, problem := host.ParsePattern(strings.ToLower(h)); !ok || !closed || problem != nil {
			a.Drop("the entry is not Domain(HOST)", n)
			a.Warn("one entry that is not understood makes the boundary deny every URL", n)
			continue
		}
		entries = append(entries, entry{n, strings.ToLower(h)})
	}
	if a.Has(draft.Allowed, "") {
		for _, e := range entries {
			if a.Has(draft.Allowed, e.h) {
				a.Put(draft.Allowed, e.h, "", e.n)
			} else {
				a.Keep("the sandbox keeps the fetch tool from the host", e.n)
			}
		}
		for _, h := range a.Values(draft.Allowed) {
			p, _ := host.ParsePattern(h)
			if !slices.ContainsFunc(entries, func(e entry) bool {
				q, _ := host.ParsePattern(e.h)
				return q.Covers(p) || q.Wildcard() && q.Suffix() == h
			}) {
				a.Remove(draft.Allowed, h, "permissions.limitTo keeps the fetch tool from the host, and a profile has one list")
			}
		}
		if !a.Has(draft.Allowed, "") {
			a.Set(draft.Default, "deny", "")
		}
		return
	}
	if a.Has(draft.Default, "deny") {
		a.Keep("no host is allowed", list)
		return
	}
	for _, v := range a.Values(draft.Default) {
		a.Remove(draft.Default, v, "permissions.limitTo bounds the fetch tool, and a profile has one list")
	}
	for _, e := range entries {
		a.AllowHost(e.h, e.n)
		if rest, ok := strings.CutPrefix(e.h, "*."); ok {
			a.AllowHost(rest, e.n)
		}
		a.Reword(e.n, "for commands too, which are sandboxed for it")
	}
	if !a.Has(draft.Allowed, "") {
		a.Set(draft.Default, "deny", "", list)
	}
}

func (a *adopter) mcp() {
	lock, allowed := a.doc.Get("allowManagedMcpServersOnly"), a.doc.Get("allowedMcpServers")
	if lock.Is(true) {
		a.Set(draft.ManagedOnly, "true", "", lock)
	} else if allowed != nil {
		a.Put(draft.ManagedOnly, "true", "")
		a.Warn("without allowManagedMcpServersOnly users' own lists widen the allow list", allowed)
	}
	if allowed != nil && len(allowed.Kids) == 0 {
		a.Map(draft.ManagedOnly, "", allowed)
	}
	name := func(of string) string {
		return draft.NameOf(of, func(n string) bool {
			return slices.ContainsFunc(a.Servers, func(s draft.Server) bool { return s.Name == n })
		})
	}
	for _, n := range allowed.Items() {
		url, hasURL := n.Get("serverUrl").Text()
		argv, hasCommand := n.Get("serverCommand").Texts()
		switch {
		case hasURL && !strings.Contains(url, "*") && !strings.Contains(url, "${"):
			a.AddServer(draft.Server{Name: name(url), URL: url}, n)
		case hasCommand && len(argv) > 0:
			a.AddServer(draft.Server{Name: name(argv[0]), Command: argv}, n)
		default:
			a.Drop("a profile admits a server by its whole URL or its whole command; a name is the user's choice", n)
		}
	}
	for _, n := range a.doc.Get("deniedMcpServers").Items() {
		text, ok := n.Get("serverName").Text()
		if !ok {
			text, ok = n.Get("serverUrl").Text()
			ok = ok && strings.Contains(text, "://")
		}
		if !ok || len(n.Members()) != 1 {
			a.Drop("a profile denies servers by name or URL", n)
			continue
		}
		a.Put(draft.MCPDenied, text, "", n)
	}
}

func (a *adopter) telemetry() {
	t := a.doc.Get("telemetry")
	if n := t.Get("enabled"); n.Is(true) || n.Is(false) {
		a.Set(draft.Telemetry, n.Compact(), "", n)
	}
	if n := t.Get("endpoint"); n != nil {
		s, _ := n.Text()
		if !a.SetURL(draft.Endpoint, s, n, "https", "http") && !strings.Contains(s, "://") {
			a.Warn("an endpoint without a scheme exports nothing", n)
		}
	}
	if n := t.Get("protocol"); n.Is("http/protobuf") {
		a.Set(draft.Protocol, "http/protobuf", "", n)
	} else if n != nil {
		a.Drop("a profile has the protocols grpc and http/protobuf", n)
	}
	if n := t.Get("captureContent"); n.Is(false) {
		a.Set(draft.LogPrompts, "false", "", n)
		if lock := t.Get("lockCaptureContent"); lock.Is(true) {
			a.Keep("halo writes it with telemetry.logPrompts: false", lock)
		}
	}
	if n := t.At("capture", "prompts"); n.Is(true) && !a.Has(draft.LogPrompts, "") {
		a.Set(draft.LogPrompts, "true", "", n)
	}
	for _, n := range t.Get("resourceAttributes").Members() {
		if s, ok := n.Text(); ok {
			a.Attribute(n.Key, s, n)
		}
	}
	if n := t.Get("headers"); n != nil {
		a.Hide("a header of telemetry", n)
	}
}
