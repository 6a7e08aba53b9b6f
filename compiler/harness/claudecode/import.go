package claudecode

import (
	"fmt"
	neturl "net/url"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
)

// noCounterpart are the settings of the program that a profile has no field for, with the reason. Read in the settings schema of 2.1.332.
var noCounterpart = []draft.Reason{
	{Pointer: "/$schema", Text: "the name of the schema says nothing about the policy"},
	{Pointer: "/allowManagedPermissionRulesOnly", Text: "a profile has no lock on permission rules: users may add rules for what no list of the policy names"},
	{Pointer: "/allowedProviders", Text: "a profile has no field for logins and providers"},
	{Pointer: "/apiKeyHelper", Text: "a profile runs no program for credentials"},
	{Pointer: "/autoUpdatesChannel", Text: "a profile pins one version instead"},
	{Pointer: "/awsAuthRefresh", Text: "a profile runs no program for credentials"},
	{Pointer: "/awsCredentialExport", Text: "a profile runs no program for credentials"},
	{Pointer: "/blockedMarketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/deniedModels", Text: "a profile lists the models that may be used, not those that may not"},
	{Pointer: "/disableBypassPermissionsMode", Text: "the program reads this key below permissions only; it does nothing here"},
	{Pointer: "/disableRemoteControl", Text: "a profile has no field for remote control"},
	{Pointer: "/disableSideloadFlags", Text: "a profile has no field for plugins"},
	{Pointer: "/disableSkillShellExecution", Text: "a profile has no field for skills"},
	{Pointer: "/enabledPlugins", Text: "a profile has no field for plugins"},
	{Pointer: "/extraKnownMarketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/forceLoginMethod", Text: "a profile has no field for logins and providers"},
	{Pointer: "/forceLoginOrgUUID", Text: "a profile has no field for logins and providers"},
	{Pointer: "/managedSourcesBehavior", Text: "a release is one source; how sources combine is no part of a profile"},
	{Pointer: "/minimumVersion", Text: "a floor for downgrades is no pin; a profile pins one version"},
	{Pointer: "/permissions/additionalDirectories", Text: "a profile opens folders with sandbox.writableRoots only"},
	{Pointer: "/permissions/blockReadsOutsideWorkingDirectories", Text: "a profile has no field that keeps file tools in the session folder"},
	{Pointer: "/permissions/blockWritesOutsideWorkingDirectories", Text: "a profile has no field that keeps file tools in the session folder"},
	{Pointer: "/permissions/denyInsteadOfPrompting", Text: "a profile has no field that turns questions into denials"},
	{Pointer: "/policyHelper", Text: "a profile runs no program for settings"},
	{Pointer: "/sandbox/allowAppleEvents", Text: "the setting loosens the sandbox, and halo never writes it"},
	{Pointer: "/sandbox/allowNestedUserNamespaces", Text: "the setting loosens the sandbox, and halo never writes it"},
	{Pointer: "/sandbox/autoAllowBashIfSandboxed", Text: "a profile has no field that answers questions for sandboxed commands"},
	{Pointer: "/sandbox/bwrapPath", Text: "a profile has no field for the sandbox's own programs"},
	{Pointer: "/sandbox/credentials", Text: "a profile has no field for credentials that are hidden from commands; protect their files with sandbox.protectedPaths"},
	{Pointer: "/sandbox/enableWeakerNestedSandbox", Text: "the setting loosens the sandbox, and halo never writes it"},
	{Pointer: "/sandbox/enableWeakerNetworkIsolation", Text: "the setting loosens the sandbox, and halo never writes it"},
	{Pointer: "/sandbox/enabledPlatforms", Text: "halo writes the sandbox for Linux and macOS alike"},
	{Pointer: "/sandbox/excludedCommands", Text: "the commands run outside the sandbox, and halo never writes such a list"},
	{Pointer: "/sandbox/ignoreViolations", Text: "a profile has no field for what the sandbox reports"},
	{Pointer: "/sandbox/ripgrep", Text: "a profile has no field for the sandbox's own programs"},
	{Pointer: "/sandbox/filesystem/allowRead", Text: "the entries open places inside protected paths again; list what is to be protected instead"},
	{Pointer: "/sandbox/filesystem/disabled", Text: "the setting loosens the sandbox, and halo never writes it"},
	{Pointer: "/sandbox/network", Text: "the setting has no field in a profile; a sandbox that halo writes leaves it unset"},
	{Pointer: "/sandbox/socatPath", Text: "a profile has no field for the sandbox's own programs"},
	{Pointer: "/sandbox/windows", Text: "halo writes no sandbox for native Windows"},
	{Pointer: "/skipWebFetchPreflight", Text: "a profile has no field for the check that the fetch tool makes with its vendor"},
	{Pointer: "/statusLine", Text: "a profile runs no program for looks"},
	{Pointer: "/strictKnownMarketplaces", Text: "a profile has no field for plugins"},
	{Pointer: "/strictPluginOnlyCustomization", Text: "a profile has no field for plugins"},
	{Pointer: "/wslInheritsWindowsSettings", Text: "a profile has no field for how WSL takes the settings of Windows"},
}

// fieldless are further settings of the program that a profile has no field for: the names in the settings schema of SchemaStore (2026-08-03) that no room writes.
var fieldless = [...]string{
	"advisorModel", "agent", "agentPushNotifEnabled", "allowAllClaudeAiMcps", "allowedChannelPlugins", "allowedHttpHookUrls", "alwaysThinkingEnabled",
	"askUserQuestionTimeout", "autoCompactEnabled", "autoConnectIde", "autoInstallIdeExtension", "autoMemoryDirectory", "autoMemoryEnabled", "autoMode",
	"autoScrollEnabled", "awaySummaryEnabled", "axScreenReader", "browserExternalPageTools", "channelsEnabled", "claudeMdExcludes", "defaultShell",
	"diffTool", "disableAgentView", "disableArtifact", "disableBrowserExternalNavigation", "disableBundledSkills", "disableClaudeAiConnectors",
	"disableDeepLinkRegistration", "disableMobileSimulatorTools", "disableWorkflows", "disabledMcpjsonServers", "editorMode", "effortLevel",
	"emojiCompletionEnabled", "enableAllProjectMcpServers", "enableArtifact", "enabledMcpjsonServers", "externalEditorContext", "fallbackModel",
	"fastMode", "fastModePerSessionOptIn", "feedbackSurveyRate", "fileCheckpointingEnabled", "fileSuggestion", "footerLinksRegexes",
	"forceLoginGatewayUrl", "forceRemoteSettingsRefresh", "gcpAuthRefresh", "httpHookAllowedEnvVars", "includeGitInstructions",
	"inputNeededNotifEnabled", "modelOverrides", "otelHeadersHelper", "parentSettingsBehavior", "permissionExplainerEnabled", "plansDirectory",
	"pluginConfigs", "pluginSuggestionMarketplaces", "pluginTrustMessage", "policyHelpers", "prUrlTemplate", "preferredNotifChannel", "processWrapper",
	"remoteControlAtStartup", "requireCoworkFullVmSandbox", "respondToBashCommands", "showClearContextOnPlanAccept", "showThinkingSummaries",
	"skillListingBudgetFraction", "skillListingMaxDescChars", "skillOverrides", "skipDangerousModePermissionPrompt", "skippedMarketplaces",
	"skippedPlugins", "sshConfigs", "sshHostAllowlist", "subagentStatusLine", "syntaxHighlightingDisabled", "teammateDefaultModel", "teammateMode",
	"terminalProgressBarEnabled", "tui", "useAutoModeDuringPlan", "verbose", "viewMode", "vimInsertModeRemaps", "voice", "voiceEnabled",
	"wheelScrollAccelerationEnabled", "workflowKeywordTriggerEnabled", "workflowSizeGuideline", "worktree",
}

// adopter reads the files of a draft.
type adopter struct {
	*draft.Draft
	// doc is the settings, base file and drop-ins together, servers the fixed set of servers.
	doc, servers *draft.Node
	// on is set when the sandbox is switched on.
	on bool
}

// importFiles reads managed-settings.json with its drop-ins, managed-mcp.json and CLAUDE.md.
func importFiles(d *draft.Draft) error {
	a := &adopter{Draft: d}
	reasons := slices.Clone(noCounterpart)
	for _, key := range fieldless {
		reasons = append(reasons, draft.Reason{Pointer: "/" + key, Text: "a profile has no field for it"})
	}
	d.Reasons(reasons)
	var base, dropIns []*draft.Node
	files := slices.Clone(d.Files)
	slices.SortStableFunc(files, func(x, y draft.File) int { return strings.Compare(x.Base(), y.Base()) })
	for _, f := range files {
		if f.Base() == instructionsName {
			a.text(f)
			continue
		}
		n, err := draft.JSON(f.Name, f.Data, draft.Dialect{BOM: true})
		if err != nil {
			return fmt.Errorf("%s: %w, and the program refuses it", f.Name, err)
		}
		draft.RepeatedKeys(n)
		d.Roots = append(d.Roots, n)
		switch {
		case n.Get("mcpServers") != nil && f.Base() != settingsName:
			if a.servers != nil {
				return fmt.Errorf("%s: there is one %s, and this is the second", f.Name, serversName)
			}
			a.servers = n
		case f.Base() == settingsName || f.Base() == "settings.json":
			base = append(base, n)
		default:
			dropIns = append(dropIns, n)
		}
	}
	// Drop-ins follow the base file in byte order of their names; scalars of later files win and lists are united (observed on 2.1.332).
	a.doc = draft.Merge(append(base, dropIns...), func(string) bool { return false })
	a.sandbox()
	a.permissions()
	a.mcp()
	a.hooks()
	a.models()
	a.environment()
	a.version()
	if n := a.doc.Get("claudeMd"); n != nil {
		if s, ok := n.Text(); !ok || a.Has(draft.Instructions, "") {
			a.Drop("the text of "+instructionsName+" is the profile's", n)
		} else {
			a.Put(draft.Instructions, strings.TrimRight(s, "\n")+"\n", "as the "+instructionsName+" of the managed directory", n)
		}
	}
	for _, key := range overrides {
		n := a.doc.Get(key)
		if n == nil {
			continue
		}
		if !fits(key, n.Document(), nil) {
			a.Drop("the value is not one that this setting takes", n)
			continue
		}
		a.Override(key, n)
	}
	return nil
}

func (a *adopter) text(f draft.File) {
	n := &draft.Node{File: f.Name, Value: strings.TrimRight(string(f.Data), "\n") + "\n"}
	a.Roots = append(a.Roots, n)
	s, _ := n.Text()
	a.Put(draft.Instructions, s, "", n)
}

// truth reads a truth value as the program does: "true" in quotes is true.
func truth(n *draft.Node) bool { return n.Is(true) || n.Is("true") }

// sandbox reads the sandbox block, and the rules for paths and hosts that belong to it.
func (a *adopter) sandbox() {
	box := a.doc.Get("sandbox")
	enabled := box.Get("enabled")
	a.on = enabled != nil && !enabled.Is(false) && !enabled.Is("false")
	rules := a.doc.Get("permissions")
	switch {
	case a.on:
		a.Set(draft.Sandbox, policy.ModeWorkspaceWrite, "", enabled)
		if a.OS == "windows" {
			a.Warn("on native Windows both backends are behind a vendor gate", enabled)
		}
		switch {
		case !truth(box.Get("failIfUnavailable")):
			a.Warn("without failIfUnavailable commands run outside the sandbox where it cannot start", enabled)
		case box.Get("allowUnsandboxedCommands") == nil || !box.Get("allowUnsandboxedCommands").Is(false):
			a.Warn("without allowUnsandboxedCommands: false a command may ask to run outside the sandbox", enabled)
		}
	case enabled != nil:
		a.Set(draft.Sandbox, policy.ModeOff, "", enabled)
		a.Drop("the sandbox is switched off, so this holds nothing", box)
		return
	case box != nil && len(box.Kids) > 0:
		// Without the switch the block does nothing; the profile has what it says.
		for _, key := range [...]string{"filesystem", "network"} {
			if n := box.Get(key); n != nil {
				a.Warn("the sandbox is not switched on (sandbox.enabled), so the block does nothing", n)
				a.on = true
			}
		}
	}
	if n := box.Get("failIfUnavailable"); truth(n) {
		a.Set(draft.Required, "true", "", n)
	} else if n != nil {
		a.Keep("halo always writes true", n)
	}
	if n := box.Get("allowUnsandboxedCommands"); n != nil {
		a.Keep("halo always writes false", n)
	}
	if !a.on {
		return
	}
	files := box.Get("filesystem")
	for _, n := range files.Get("allowWrite").Items() {
		s, ok := n.Text()
		switch {
		case !ok:
			a.Drop("the entry is not a text", n)
		case strings.HasPrefix(s, "//"):
			a.Root(s[1:], n)
		case !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~") && !strings.ContainsAny(s, "$*?[]{}\\") && !strings.Contains("/"+s+"/", "/../"):
			a.Keep("the session folder is writable already", n)
		case strings.ContainsAny(s, "*?[]{}$"):
			a.Drop("a glob or a variable makes nothing writable", n)
			a.Warn("a glob or a variable makes nothing writable", n)
		default:
			a.Root(s, n)
		}
	}
	if n := files.Get("allowManagedReadPathsOnly"); n != nil {
		a.Keep("halo writes it with protected paths", n)
	}
	a.paths(files, rules)
	a.network(box.Get("network"), rules)
}

// place is a path with the nodes that keep it from being read and written.
type place struct {
	path        string
	read, write []*draft.Node
	// shell and tool say which kinds of nodes there are.
	shell, tool bool
}

// paths reads protected paths: what must not be read and not be written, by the lists of the sandbox or by rules, which the program projects into it. The half of a
// pair stays what it is, a rule.
func (a *adopter) paths(files, rules *draft.Node) {
	var places []*place
	at := func(path string) *place {
		for _, p := range places {
			if p.path == path {
				return p
			}
		}
		p := &place{path: path}
		places = append(places, p)
		return p
	}
	var whole *draft.Node
	list := func(key string, add func(*place, *draft.Node)) {
		for _, n := range files.Get(key).Items() {
			s, ok := n.Text()
			switch {
			case !ok:
				a.Drop("the entry is not a text", n)
				continue
			case key == "denyWrite" && (s == "." || s == "./"):
				whole = n
				continue
			case strings.HasPrefix(s, "//"):
				s = s[1:]
			case strings.HasPrefix(s, "$HOME/"):
				a.Warn("variables are not expanded, so the entry never matches; the profile has ~/", n)
				s = "~" + s[len("$HOME"):]
			case s != "" && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~"):
				s = strings.TrimPrefix(s, "./")
				if strings.Contains(s, "/") && !strings.HasPrefix(s, "**/") {
					s = "./" + s
				}
			}
			add(at(draft.Folder(s)), n)
		}
	}
	list("denyRead", func(p *place, n *draft.Node) { p.read, p.shell = append(p.read, n), true })
	list("denyWrite", func(p *place, n *draft.Node) { p.write, p.shell = append(p.write, n), true })
	outside := map[string][]*draft.Node{}
	tools := map[string]*draft.Node{}
	for _, n := range rules.Get("deny").Items() {
		s, ok := n.Text()
		if !ok {
			continue
		}
		r, problem := parseRule(s)
		if problem == "" && slices.Contains(readOnlyTools[:], s) {
			tools[s] = n
		}
		if problem != "" || r.tool != "Read" && r.tool != "Edit" || !r.hasContent || deadPath(r.content) != "" {
			continue
		}
		path := r.content
		switch {
		case strings.HasPrefix(path, "//**/"):
			key := r.tool + path[len("//**/"):]
			outside[key] = append(outside[key], n)
			continue
		case strings.HasPrefix(path, "//"):
			path = path[1:]
		case strings.HasPrefix(path, "~"), strings.HasPrefix(path, "**/"):
		case strings.Contains(path, "/"):
			path = "./" + strings.TrimPrefix(path, "./")
		}
		p := at(draft.Folder(path))
		p.tool = true
		if r.tool == "Read" {
			p.read = append(p.read, n)
		} else {
			p.write = append(p.write, n)
		}
	}
	switch {
	case whole == nil:
	case len(tools) == len(readOnlyTools):
		nodes := []*draft.Node{whole}
		for _, t := range readOnlyTools {
			nodes = append(nodes, tools[t])
		}
		a.Set(draft.Sandbox, policy.ModeReadOnly, "", nodes...)
	default:
		a.Set(draft.Sandbox, policy.ModeReadOnly, "the tools that edit are denied too", whole)
	}
	for _, p := range places {
		if len(p.read) == 0 || len(p.write) == 0 || strings.HasPrefix(p.path, "./") {
			a.half(p)
			continue
		}
		reason := ""
		if !p.tool {
			reason = "file tools are kept away too"
		}
		path := strings.TrimPrefix(p.path, "**/")
		nodes := slices.Concat(p.read, p.write)
		if path != p.path || !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~") {
			for _, tool := range [...]string{"Read", "Edit"} {
				for _, suffix := range [...]string{"", "/**"} {
					nodes = append(nodes, outside[tool+path+suffix]...)
				}
			}
		}
		a.ProtectAs(path, reason, nodes...)
	}
}

// half reads a path that is only kept from being read, or only from being written: a rule says that, for the shell as well.
func (a *adopter) half(p *place) {
	path := strings.TrimPrefix(p.path, "./")
	if strings.HasPrefix(path, "/") {
		path = "/" + path
	} else if p.path != path {
		path = "./" + path
	}
	for _, l := range [...]struct {
		tool  string
		nodes []*draft.Node
	}{{"Read", p.read}, {"Edit", p.write}} {
		tool := l.tool
		for _, n := range l.nodes {
			if s, _ := n.Text(); strings.HasPrefix(s, tool+"(") {
				continue // stays with the rules
			}
			rule := tool + "(" + path + ")"
			if why := deadPath(path); why != "" {
				a.Drop("the entry "+why, n)
				continue
			}
			a.Put(draft.Deny, rule, "as a rule, which file tools obey too", n)
		}
	}
}

// network reads the host lists. Rules for the fetch tool are merged into the sandbox by the program, so with lists they are lists.
func (a *adopter) network(net, rules *draft.Node) {
	lock, allowed, denied := net.Get("allowManagedDomainsOnly"), net.Get("allowedDomains"), net.Get("deniedDomains")
	var everywhere *draft.Node
	for _, n := range rules.Get("allow").Items() {
		if n.Is("WebFetch(domain:*)") {
			everywhere = n
		}
	}
	if truth(lock) || allowed != nil || everywhere != nil {
		a.lists(lock, allowed, denied, everywhere, rules)
		return
	}
	// Denied hosts alone: others are asked about, which egress cannot say and rules can.
	for _, n := range denied.Items() {
		s, ok := n.Text()
		r := rule{tool: "WebFetch", content: "domain:" + strings.ToLower(s), hasContent: true}
		if !ok {
			a.Drop("the entry is not a text", n)
			continue
		}
		if _, _, problem := r.domain(); problem != "" {
			a.Drop("the entry is not a host name that a profile may hold", n)
			continue
		}
		a.Put(draft.Deny, r.String(), "as a rule, which the fetch tool obeys too", n)
	}
	if lock != nil {
		a.Keep("halo writes the lock with the list it is for", lock)
	}
}

func (a *adopter) lists(lock, allowed, denied, everywhere, rules *draft.Node) {
	closed := truth(lock)
	for _, n := range allowed.Items() {
		s, ok := n.Text()
		_, port, hasPort := strings.Cut(s, ":")
		switch {
		case !ok:
			a.Drop("the entry is not a text", n)
		case s == "*":
			everywhere = n
		case hasPort && !strings.Contains(port, ":") && strings.Trim(port, "0123456789") == "":
			a.Drop("the entry is for one port, and a profile knows no ports, so the host is denied", n)
		default:
			if !a.AllowHost(s, n) {
				a.Warn("the program never matches this entry", n)
			}
		}
	}
	switch {
	case everywhere != nil:
		a.Set(draft.Default, "allow", "", everywhere)
	default:
		a.Set(draft.Default, "deny", "", lock)
		if !closed && allowed != nil {
			a.Warn("without allowManagedDomainsOnly hosts on no list are asked about, and users add hosts of their own", allowed)
		}
	}
	if lock != nil {
		a.Map(draft.Default, "", lock)
	}
	if allowed != nil && len(allowed.Kids) == 0 {
		a.Map(draft.Default, "", allowed)
	}
	if n := rules.Get("deny"); n != nil {
		for _, n := range n.Items() {
			s, _ := n.Text()
			r, problem := parseRule(s)
			if problem != "" || r.tool != "WebFetch" || !r.hasContent {
				continue
			}
			if p, all, problem := r.domain(); problem == "" && !all {
				a.DenyHost(p.String(), true, n)
			} else if all {
				a.nothing("the rule closes the sandbox for every host as well", n)
			}
		}
	}
	for _, n := range rules.Get("allow").Items() {
		s, _ := n.Text()
		r, problem := parseRule(s)
		if problem != "" || r.tool != "WebFetch" || !r.hasContent {
			continue
		}
		if p, all, problem := r.domain(); problem == "" && !all {
			a.AllowHost(p.String(), n)
		} else if all {
			a.Map(draft.Default, "", n)
		}
	}
	for _, n := range denied.Items() {
		s, ok := n.Text()
		name, port, hasPort := strings.Cut(s, ":")
		switch {
		case !ok:
			a.Drop("the entry is not a text", n)
		case s == "*":
			a.nothing("the entry denies every host", n)
		case hasPort && strings.Trim(port, "0123456789") == "":
			a.DenyHost(name, true, n)
		default:
			a.DenyHost(strings.TrimSuffix(s, "."), strings.Trim(s, "0123456789.:[]/abcdefABCDEF") == "", n)
		}
	}
}

// nothing makes a policy that allows no host.
func (a *adopter) nothing(reason string, n *draft.Node) {
	for _, s := range a.Values(draft.Allowed) {
		a.Remove(draft.Allowed, s, "another entry denies every host")
	}
	a.Set(draft.Default, "deny", "", n)
	a.Map(draft.Default, reason, n)
}

// permissions reads the rule lists, the start mode and the locks.
func (a *adopter) permissions() {
	p := a.doc.Get("permissions")
	for _, l := range [...]struct{ key, field string }{{"deny", draft.Deny}, {"ask", draft.Ask}, {"allow", draft.Allow}} {
		for _, n := range p.Get(l.key).Items() {
			s, ok := n.Text()
			if !ok {
				a.Drop("the rule is not a text", n)
				continue
			}
			if a.Said(n) {
				continue
			}
			if s == "WebFetch" && l.key == "deny" && a.Has(draft.Default, "deny") && !a.Has(draft.Allowed, "") {
				a.Map(draft.Default, "", n)
				continue
			}
			r, problem := parseRule(s)
			switch {
			case problem != "":
				a.Drop("the rule "+problem, n)
				if strings.HasPrefix(problem, "names no tool") {
					a.Warn("the rule matches nothing", n)
				}
				continue
			case r.paths() && deadPath(r.content) != "":
				a.Drop("the rule "+deadPath(r.content)+"; "+pathRemedyKind(r), n)
				a.Warn("the rule "+deadPath(r.content), n)
				continue
			}
			a.Put(l.field, s, "", n)
		}
	}
	if n := p.Get("disableBypassPermissionsMode"); n != nil {
		reason := ""
		if !n.Is("disable") {
			reason = "the program takes any value for disable"
		}
		a.Set(draft.Bypass, "true", reason, n)
	}
	lock, top := p.Get("disableAutoMode"), a.doc.Get("disableAutoMode")
	if lock == nil {
		lock, top = top, nil
	}
	if top != nil {
		a.Keep("it stands below permissions too", top)
	}
	mode := p.Get("defaultMode")
	if mode != nil {
		word, _ := mode.Text()
		switch {
		case word == "manual":
			a.Set(draft.Mode, "default", "", mode)
		case slices.Contains(policy.PermissionModes, word):
			a.Set(draft.Mode, word, "", mode)
		case word == "bypassPermissions" || word == "dontAsk":
			a.Drop("the start mode has no counterpart in a profile", mode)
		default:
			a.Set(draft.Mode, "default", "the program takes an unknown mode for default", mode)
		}
	}
	if lock != nil {
		switch {
		case !a.Has(draft.Mode, "") && lock.Is("disable"):
			a.Set(draft.Mode, "default", "", lock)
		case a.Has(draft.Mode, "auto"):
			a.Drop("the start mode is auto, and halo writes the lock with the other modes only", lock)
		default:
			a.Keep("halo writes it with permissions.mode", lock)
		}
	}
}

// pathRemedyKind says how a path that never matches is written.
func pathRemedyKind(r rule) string {
	if strings.HasPrefix(r.content, "/") {
		return "two slashes mean the root of the file system"
	}
	return "write an absolute path with two slashes, or one in the home (~/)"
}

// mcp reads the fixed set of servers, the allow list with its lock, the servers beside the user's own, and the denied ones.
func (a *adopter) mcp() {
	lock, allowed, denied := a.doc.Get("allowManagedMcpServersOnly"), a.doc.Get("allowedMcpServers"), a.doc.Get("deniedMcpServers")
	fixed := a.servers.Get("mcpServers")
	for _, n := range fixed.Members() {
		a.server(n)
	}
	if fixed != nil {
		a.Put(draft.ManagedOnly, "true", "")
		if len(fixed.Kids) == 0 {
			a.Map(draft.ManagedOnly, "", fixed)
		}
	}
	if lock != nil || allowed != nil {
		switch {
		case truth(lock):
			a.Set(draft.ManagedOnly, "true", "", lock)
			if allowed == nil && fixed == nil {
				a.Warn("without allowedMcpServers or managed-mcp.json the lock restricts nothing; the profile admits no server", lock)
			}
		case fixed == nil:
			a.Put(draft.ManagedOnly, "true", "")
			if allowed != nil {
				a.Warn("without allowManagedMcpServersOnly users' own lists widen the allow list", allowed)
			}
		}
		if allowed != nil && len(allowed.Kids) == 0 {
			a.Map(draft.ManagedOnly, "", allowed)
		}
	}
	for _, n := range allowed.Items() {
		a.matcher(n, fixed != nil)
	}
	for _, n := range a.doc.Get("managedMcpServers").Members() {
		a.server(n)
	}
	for _, n := range denied.Items() {
		name, ok := n.Get("serverName").Text()
		switch {
		case !ok || len(n.Members()) != 1:
			a.Drop("a profile denies servers by name only; with mcp.managedOnly every other server is shut out", n)
		default:
			a.Put(draft.MCPDenied, name, "", n)
		}
	}
}

// server reads the definition of a server.
func (a *adopter) server(n *draft.Node) {
	s := draft.Server{Name: n.Key}
	kind, _ := n.Get("type").Text()
	url, hasURL := n.Get("url").Text()
	command, hasCommand := n.Get("command").Text()
	nodes := []*draft.Node{}
	for _, key := range [...]string{"type", "url", "command", "args"} {
		if k := n.Get(key); k != nil {
			nodes = append(nodes, k)
		}
	}
	args, argsOK := n.Get("args").Texts()
	switch {
	case hasURL && (kind == "http" || kind == "streamable-http"):
		s.URL = url
	case hasCommand && (kind == "" || kind == "stdio") && (argsOK || n.Get("args") == nil):
		s.Command = append([]string{command}, args...)
	default:
		a.Drop("a profile has no form for this kind of server", n)
		return
	}
	if s.URL != "" && strings.Contains(s.URL, "*") {
		a.Drop("* in a server's URL matches any text", n)
		return
	}
	for _, h := range n.Get("headers").Members() {
		value, ok := h.Text()
		if !ok || s.URL == "" {
			a.Drop("the header has no form in a profile", h)
			continue
		}
		if a.Public(h.Key, value, h) && a.Fit(value, h) {
			s.Headers = append(s.Headers, [2]string{h.Key, value})
			a.Map(draft.MCPServers, "", h)
		}
	}
	if len(nodes) == 0 {
		nodes = append(nodes, n)
	}
	if a.AddServer(s, nodes...) {
		a.Drop("a profile has no field for it in a server", n)
	} else {
		a.Drop("its server was not taken", n)
	}
}

// matcher reads an entry of the allow list. With a fixed set of servers it only repeats what the set says.
func (a *adopter) matcher(n *draft.Node, fixed bool) {
	url, hasURL := n.Get("serverUrl").Text()
	argv, hasCommand := n.Get("serverCommand").Texts()
	same := slices.ContainsFunc(a.Servers, func(s draft.Server) bool {
		return hasURL && s.URL == url || hasCommand && slices.Equal(s.Command, argv)
	})
	switch {
	case len(n.Members()) != 1:
		a.Drop("an entry holds one matcher", n)
		a.Warn("the program ignores an entry that does not hold exactly one matcher", n)
	case same:
		a.Keep("halo writes a matcher for every server", n)
	case fixed:
		a.Drop("managed-mcp.json is the exclusive set and does not have the server", n)
	case hasURL && strings.Contains(url, "*"):
		a.Drop("a profile admits a server by its whole URL", n)
	case hasURL:
		a.AddServer(draft.Server{Name: a.serverName(url), URL: url}, n)
	case hasCommand && len(argv) > 0:
		a.AddServer(draft.Server{Name: a.serverName(argv[0]), Command: argv}, n)
	default:
		a.Drop("a name is the user's choice and says nothing about the server, so a profile does not admit by name", n)
	}
}

// serverName makes a name for a server that has none.
func (a *adopter) serverName(of string) string {
	return draft.NameOf(of, func(name string) bool {
		return slices.ContainsFunc(a.Servers, func(s draft.Server) bool { return s.Name == name })
	})
}

func (a *adopter) hooks() {
	lock, off := a.doc.Get("allowManagedHooksOnly"), a.doc.Get("disableAllHooks")
	if truth(lock) {
		a.Set(draft.HooksOnly, "true", "", lock)
	} else if lock != nil {
		a.Keep("the lock is off", lock)
	}
	events := a.doc.Get("hooks")
	if truth(off) {
		a.Put(draft.HooksOnly, "true", "no hook runs: the profile ships none and shuts out all others", off)
		if events != nil {
			a.Drop("disableAllHooks switches managed hooks off too", events)
			a.Warn("disableAllHooks switches managed hooks off too", events)
		}
		return
	} else if off != nil {
		a.Keep("hooks are not switched off", off)
	}
	for _, ev := range events.Members() {
		for _, group := range ev.Items() {
			m := group.Get("matcher")
			matcher, ok := m.Text()
			taken := false
			for _, h := range group.Get("hooks").Items() {
				command, isText := h.Get("command").Text()
				switch {
				case !slices.Contains(policy.HookEvents, ev.Key):
					a.Drop("a profile has no hook of this event", h)
				case !isText || !h.Get("type").Is("command") || m != nil && !ok:
					a.Drop("a profile has hooks that run a command only", h)
				default:
					if a.AddHook(draft.Hook{Event: ev.Key, Matcher: matcher, Command: command}, h.Get("command"), h.Get("type")) {
						taken = true
						a.Drop("a profile has no field for it in a hook", h)
					}
				}
			}
			if taken && m != nil {
				a.Map(draft.HookItems, "", m)
			}
			a.Drop("no hook of the group was taken", group)
		}
	}
}

func (a *adopter) models() {
	if n := a.doc.Get("model"); n != nil {
		if s, ok := n.Text(); ok {
			a.Set(draft.Model, s, "", n)
		}
	}
	list, lock := a.doc.Get("availableModels"), a.doc.Get("enforceAvailableModels")
	if list != nil && len(list.Kids) == 0 {
		a.Drop("an empty list leaves the vendor's default model, which a profile cannot say", list)
		a.Warn("an empty list leaves the vendor's default model", list)
	}
	for _, n := range list.Items() {
		if s, ok := n.Text(); ok {
			a.Put(draft.Models, s, "", n)
		} else {
			a.Drop("the entry is not a text", n)
		}
	}
	switch {
	case !a.Has(draft.Models, ""):
		if lock != nil {
			a.Drop("there is no list of models that it would lock", lock)
		}
	case truth(lock):
		a.Set(draft.Enforce, "true", "", lock)
	default:
		if lock != nil {
			a.Keep("halo locks a list of models", lock)
		}
		a.Put(draft.Enforce, "true", "")
		a.Warn("without enforceAvailableModels the list does not bind the default model", list)
	}
	if n := a.doc.Get("availableModelsMatch"); n != nil {
		a.Keep("halo writes exact", n)
	}
}

func (a *adopter) environment() {
	env := a.doc.Get("env")
	get := func(key string) (string, *draft.Node) {
		n := env.Get(key)
		s, _ := n.Text()
		return s, n
	}
	if s, n := get("ANTHROPIC_BASE_URL"); n != nil {
		a.SetGateway(s, n)
	}
	on, enable := get("CLAUDE_CODE_ENABLE_TELEMETRY")
	switch on {
	case "1", "true":
		a.Set(draft.Telemetry, "true", "", enable)
	case "0", "false":
		a.Set(draft.Telemetry, "false", "", enable)
	}
	for _, key := range [...]string{"OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"} {
		s, n := get(key)
		switch {
		case n == nil && a.Has(draft.Telemetry, "true"):
			a.Warn("without "+key+"=otlp the signal is not sent", enable)
		case n == nil:
		case s == "otlp" && a.Has(draft.Telemetry, "true"):
			a.Keep("halo writes otlp", n)
		default:
			a.Drop("halo sends telemetry by OTLP only", n)
		}
	}
	if s, n := get("OTEL_EXPORTER_OTLP_ENDPOINT"); n != nil {
		a.SetURL(draft.Endpoint, s, n, "https", "http")
	}
	switch s, n := get("OTEL_EXPORTER_OTLP_PROTOCOL"); s {
	case "grpc", "http/protobuf":
		a.Set(draft.Protocol, s, "", n)
	default:
		if n != nil {
			a.Drop("a profile has the protocols grpc and http/protobuf", n)
		}
	}
	if s, n := get("OTEL_LOG_USER_PROMPTS"); s == "1" || s == "true" {
		a.Set(draft.LogPrompts, "true", "", n)
	} else if n != nil {
		a.Set(draft.LogPrompts, "false", "", n)
	}
	if s, n := get("OTEL_RESOURCE_ATTRIBUTES"); n != nil {
		a.attributes(s, n)
	}
	if s, n := get("OTEL_EXPORTER_OTLP_HEADERS"); s != "" {
		a.Hide("a header of telemetry", n)
	}
	if _, n := get("CLAUDE_CODE_DISABLE_CLAUDE_MDS"); n.Is("0") && a.Has(draft.Instructions, "") {
		a.Keep("halo writes it with instructions", n)
	}
	for _, n := range env.Members() {
		if !a.Said(n) {
			a.Variable(n)
		}
	}
}

// attributes reads key=value pairs with commas between, percent-encoded. One text holds all of them, so one that is not taken drops the text.
func (a *adopter) attributes(s string, n *draft.Node) {
	for pair := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key, err := neturl.PathUnescape(strings.TrimSpace(key))
		value, err2 := neturl.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || err2 != nil || key == "" {
			a.Attributes = nil
			a.Drop("the value is not a list of key=value pairs", n)
			return
		}
		if !a.Attribute(key, value, n) {
			a.Attributes = nil
			return
		}
	}
}

// version reads the bounds. A profile pins one version within them.
func (a *adopter) version() {
	low, high := a.doc.Get("requiredMinimumVersion"), a.doc.Get("requiredMaximumVersion")
	known, _ := harness.ParseVersion(a.Known)
	at := known
	for _, b := range [...]struct {
		n   *draft.Node
		low bool
	}{{low, true}, {high, false}} {
		if b.n == nil {
			continue
		}
		s, _ := b.n.Text()
		v, ok := harness.ParseVersion(strings.TrimPrefix(s, "v"))
		if !ok || v.Pre != "" || v.String() != strings.TrimPrefix(s, "v") {
			a.Drop("the value is not a version of three numbers", b.n)
			a.Warn("the program takes a version of three numbers only, so nothing is pinned", b.n)
			continue
		}
		if b.low && at.Less(v) || !b.low && v.Less(at) {
			at = v
		}
	}
	nodes := []*draft.Node{}
	for _, n := range [...]*draft.Node{low, high} {
		if n != nil && !a.Said(n) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return
	}
	reason := ""
	if len(nodes) == 1 || !low.Is(high.Value) {
		reason = "a profile pins one version: " + at.String()
	}
	a.Set(draft.Version, at.String(), reason, nodes...)
}
