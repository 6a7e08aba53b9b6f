package opencode

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness/draft"
)

// noCounterpart are the keys of the program that a profile has no field for, with the reason. Keys and meanings as of 1.18.33.
var noCounterpart = []draft.Reason{
	{Pointer: "/agent", Text: "a profile has no agents; their permissions beat those of every managed file"},
	{Pointer: "/autoshare", Text: "halo writes share: disabled where hosts on no list are denied"},
	{Pointer: "/command", Text: "a profile has no field for commands"},
	{Pointer: "/disabled_providers", Text: "a profile lists the models that may be used, not providers that may not"},
	{Pointer: "/enabled_providers", Text: "a provider without a list of models has no form in a profile"},
	{Pointer: "/experimental", Text: "a profile pins no feature flags"},
	{Pointer: "/formatter", Text: "a profile has no field for tools of editors"},
	{Pointer: "/instructions", Text: "the text of the file is not part of the input; import the file too"},
	{Pointer: "/keybinds", Text: "halo takes no settings of taste for opencode"},
	{Pointer: "/layout", Text: "halo takes no settings of taste for opencode"},
	{Pointer: "/lsp", Text: "a profile has no field for tools of editors"},
	{Pointer: "/mode", Text: "a profile has no agents; their permissions beat those of every managed file"},
	{Pointer: "/permission", Text: "a profile has no rule for it that halo would write for opencode"},
	{Pointer: "/plugin", Text: "a profile has no field for plugins"},
	{Pointer: "/provider", Text: "of providers a profile has lists of models and the gateway's address only"},
	{Pointer: "/share", Text: "halo writes share: disabled where hosts on no list are denied, and has no field for it"},
	{Pointer: "/small_model", Text: "a profile has a default model only"},
	{Pointer: "/theme", Text: "halo takes no settings of taste for opencode"},
	{Pointer: "/tools", Text: "a profile has no switches of tools; it denies them"},
	{Pointer: "/username", Text: "halo takes no settings of taste for opencode"},
}

// adopter reads the files of a draft.
type adopter struct {
	*draft.Draft
	doc *draft.Node
}

// importFiles reads opencode.json, opencode.jsonc on top of it, and texts of instructions.
func importFiles(d *draft.Draft) error {
	a := &adopter{Draft: d}
	d.Reasons(noCounterpart)
	files := slices.Clone(d.Files)
	slices.SortStableFunc(files, func(x, y draft.File) int { return strings.Compare(x.Base(), y.Base()) })
	var layers []*draft.Node
	var texts []string
	for _, f := range files {
		if strings.HasSuffix(f.Base(), ".md") {
			n := &draft.Node{File: f.Name, Value: strings.TrimRight(string(f.Data), "\n") + "\n"}
			d.Roots = append(d.Roots, n)
			texts = append(texts, f.Base())
			s, _ := n.Text()
			if a.Has(draft.Instructions, "") {
				a.Drop("a profile has one text of instructions", n)
			}
			a.Set(draft.Instructions, s, "", n)
			continue
		}
		n, err := draft.JSON(f.Name, f.Data, draft.Dialect{Comments: true, Commas: true})
		if err != nil {
			return fmt.Errorf("%s: %w, and the program refuses to start on it", f.Name, err)
		}
		draft.RepeatedKeys(n)
		d.Roots = append(d.Roots, n)
		layers = append(layers, n)
	}
	a.doc = draft.Merge(layers, func(p string) bool { return p != "/instructions" })
	if n := a.doc.Get("$schema"); n != nil {
		a.Keep("halo writes it", n)
	}
	if n := a.doc.Get("autoupdate"); n.Is(false) {
		a.Keep("halo writes it with a pinned version", n)
	}
	for _, key := range [...]string{"permissions", "agents"} {
		if n := a.doc.Get(key); n != nil {
			a.Warn("the key is one of version 2, and version 1 refuses to start on it", n)
		}
	}
	for _, n := range a.doc.Get("instructions").Items() {
		s, _ := n.Text()
		if slices.Contains(texts, s[strings.LastIndexAny(s, `/\`)+1:]) {
			a.Keep("halo writes the text and names its file", n)
		}
	}
	a.permission(a.doc.Get("permission"))
	a.mcp()
	a.models()
	return nil
}

// toolName returns the name that policies have for a tool.
func toolName(key string) string {
	for _, t := range tools {
		if t[1] == key {
			return t[0]
		}
	}
	return ""
}

// answer adds a rule for a whole tool.
func (a *adopter) answer(key string, n *draft.Node, reason string) {
	name := toolName(key)
	switch {
	case n.Is("allow"):
		a.Keep("the program allows what no rule names", n)
	case name == "":
	case n.Is("deny"):
		a.Put(draft.Deny, name, reason, n)
	case n.Is("ask"):
		a.Put(draft.Ask, name, reason, n)
	}
}

func (a *adopter) permission(p *draft.Node) {
	if _, ok := p.Text(); ok {
		for _, t := range tools {
			a.answer(t[1], p, "for the tools that a profile knows")
		}
		return
	}
	if all := p.Get("*"); all != nil {
		for _, t := range tools {
			if p.Get(t[1]) == nil {
				a.answer(t[1], all, "for the tools that a profile knows")
			}
		}
	}
	a.web(p)
	a.files(p)
	for _, n := range p.Members() {
		switch {
		case n.Kind == draft.Scalar:
			if !a.Said(n) {
				a.answer(n.Key, n, "")
			}
		case n.Key == "bash":
			a.commands(n)
		default:
			for _, k := range n.Members() {
				if k.Key == "*" && !a.Said(k) {
					a.answer(n.Key, k, "")
				}
			}
		}
	}
}

// web reads the answers of the tools that reach the web. With sharing off they are what a default of deny is written as; which hosts may be asked about the files do
// not say.
func (a *adopter) web(p *draft.Node) {
	fetch, search, share := p.Get("webfetch"), p.Get("websearch"), a.doc.Get("share")
	if !share.Is("disabled") || !search.Is("deny") || !fetch.Is("ask") && !fetch.Is("deny") {
		return
	}
	a.Set(draft.Default, "deny", "", share, search)
	if fetch.Is("ask") {
		a.Map(draft.Default, "hosts are denied instead of asked about; the files do not say which may be reached, so none is", fetch)
	}
	a.Map(draft.Default, "", fetch)
}

// overruled warns about entries of a map that a later one overrules: the last that matches wins.
func (a *adopter) overruled(m *draft.Node) {
	all := m.Members()
	for i, n := range all {
		if n.Is("allow") {
			continue
		}
		for _, later := range all[i+1:] {
			if (later.Key == "*" || later.Key == "**") && later.Is("allow") || later.Key == "*" && n.Is("deny") && later.Is("ask") {
				a.Warn("a later * overrules the entry: the last one that matches counts", n)
			}
		}
	}
}

// files reads protected paths and writable roots out of the maps for folders outside the workspace and for files in it.
func (a *adopter) files(p *draft.Node) {
	outside, read, edit := p.Get("external_directory"), p.Get("read"), p.Get("edit")
	for _, m := range [...]*draft.Node{outside, read, edit} {
		if m != nil && m.Kind == draft.Object {
			a.overruled(m)
		}
	}
	denies := func(m *draft.Node, pattern string) *draft.Node {
		if n := m.Get(pattern); n.Is("deny") {
			return n
		}
		return nil
	}
	for _, n := range outside.Members() {
		folder, inside := strings.CutSuffix(n.Key, "/*")
		folder = strings.Replace(folder, "$HOME/", "~/", 1)
		switch {
		case n.Key == "*" && n.Is("deny"):
			a.Drop("a profile does not close every folder outside the workspace", n)
		case n.Key == "*":
			a.Keep("the program asks about folders outside the workspace", n)
		case n.Is("ask"):
			a.Keep("the program asks about folders outside the workspace", n)
		case !inside:
			if n.Is("deny") {
				a.Warn("an entry that does not end in /* never matches", n)
				a.Protect(n.Key, n)
			} else {
				a.Drop("an entry that does not end in /* never matches", n)
			}
		case n.Is("allow"):
			a.Root(folder, n)
		case n.Is("deny"):
			nodes := []*draft.Node{n}
			for _, pattern := range below(strings.TrimPrefix(strings.TrimPrefix(folder, "~"), "/")) {
				for _, m := range [...]*draft.Node{read, edit} {
					if k := denies(m, pattern); k != nil {
						nodes = append(nodes, k)
					}
				}
			}
			a.Protect(folder, nodes...)
		}
	}
	names := map[string]bool{}
	for _, m := range [...]*draft.Node{read, edit} {
		for _, n := range m.Members() {
			if n.Key == "*" || !n.Is("deny") || a.Said(n) {
				continue
			}
			name := strings.TrimPrefix(strings.TrimSuffix(n.Key, "/*"), "*/")
			if names[name] {
				continue
			}
			names[name] = true
			a.name(name, read, edit, denies)
		}
	}
}

// name reads the patterns for one name in the workspace.
func (a *adopter) name(name string, read, edit *draft.Node, denies func(*draft.Node, string) *draft.Node) {
	var nodes []*draft.Node
	reads, edits, deep := 0, 0, false
	for _, pattern := range below(name) {
		if n := denies(read, pattern); n != nil {
			nodes, reads = append(nodes, n), reads+1
			deep = deep || strings.HasPrefix(pattern, "*/")
		}
		if n := denies(edit, pattern); n != nil {
			nodes, edits = append(nodes, n), edits+1
		}
	}
	if edit.Is("deny") {
		// Nothing at all is written.
		edits = reads
	}
	switch {
	case strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~"):
		for _, n := range nodes {
			a.Warn("files outside the workspace are asked about by their folder (external_directory), so the entry never matches", n)
		}
		a.Protect(name, nodes...)
	case reads == 0 || edits == 0:
		a.Drop("halo denies files for reading and writing alike, and the entry is for one of the two", nodes...)
	case deep:
		a.ProtectAs(name, "", nodes...)
	default:
		a.ProtectAs(name, "at any depth", nodes...)
	}
}

// commands reads the map of the shell.
func (a *adopter) commands(m *draft.Node) {
	a.overruled(m)
	for _, n := range m.Members() {
		prefix, wild := strings.CutSuffix(n.Key, " *")
		text := "Bash(" + prefix + ")"
		if wild {
			text = "Bash(" + prefix + ":*)"
		}
		switch {
		case n.Key == "*":
			a.answer("bash", n, "")
		case n.Is("allow"):
			a.Drop("an allow rule would only undo stricter rules, and halo writes none for opencode", n)
		case command(strings.TrimSuffix(strings.TrimPrefix(text, "Bash("), ")")) != n.Key:
			a.Drop("the pattern is neither a command nor the beginning of one", n)
		case n.Is("deny"):
			a.Put(draft.Deny, text, "", n)
		case n.Is("ask"):
			a.Put(draft.Ask, text, "", n)
		}
	}
}

// fromVariables writes {env:NAME} as ${NAME}.
func fromVariables(s string) (string, bool) {
	if strings.Contains(s, "{file:") || strings.Contains(s, "${") {
		return "", false
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{env:")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{:-+=?") {
			return "", false
		}
		b.WriteString("${" + name + "}")
		s = after
	}
}

func (a *adopter) mcp() {
	for _, n := range a.doc.Get("mcp").Members() {
		if off := n.Get("enabled"); off.Is(false) {
			a.Put(draft.MCPDenied, n.Key, "", off)
			a.Drop("the server is switched off", n)
			continue
		}
		s := draft.Server{Name: n.Key}
		ok := false
		switch {
		case n.Get("type").Is("remote"):
			url, _ := n.Get("url").Text()
			s.URL, ok = fromVariables(url)
		case n.Get("type").Is("local"):
			argv, _ := n.Get("command").Texts()
			ok = len(argv) > 0
			for _, x := range argv {
				y, fine := fromVariables(x)
				s.Command, ok = append(s.Command, y), ok && fine
			}
		}
		if !ok {
			a.Drop("a profile has no form for this server or the variables in it", n)
			continue
		}
		for _, h := range n.Get("headers").Members() {
			v, isText := h.Text()
			v, fine := fromVariables(v)
			if isText && fine && s.URL != "" && a.Public(h.Key, v, h) && a.Fit(v, h) {
				s.Headers = append(s.Headers, [2]string{h.Key, v})
				a.Map(draft.MCPServers, "", h)
			}
		}
		var nodes []*draft.Node
		for _, key := range [...]string{"type", "url", "command", "enabled"} {
			if k := n.Get(key); k != nil {
				nodes = append(nodes, k)
			}
		}
		if a.AddServer(s, nodes...) {
			a.Drop("a profile has no field for it in a server", n)
		} else {
			a.Drop("its server was not taken", n)
		}
	}
}

// models reads providers with their lists of models, the gateway among them, and the model to begin with.
func (a *adopter) models() {
	enabled := a.doc.Get("enabled_providers")
	on := func(id string) *draft.Node {
		for _, n := range enabled.Items() {
			if n.Is(id) {
				return n
			}
		}
		return nil
	}
	gateway := ""
	for _, p := range a.doc.Get("provider").Members() {
		url, ok := p.At("options", "baseURL").Text()
		if !ok || gateway != "" {
			continue
		}
		if a.SetGateway(url, p.At("options", "baseURL")); a.Gateway.Text == "" {
			continue
		}
		gateway = p.Key
		for _, key := range [...]string{"name", "npm", "models"} {
			if n := p.Get(key); n != nil && (key != "npm" || n.Is("@ai-sdk/openai-compatible")) && (key != "models" || plainModels(n)) {
				a.Keep("halo writes a provider of its own for the gateway", n)
			}
		}
	}
	for _, p := range a.doc.Get("provider").Members() {
		list := p.Get("whitelist")
		switch {
		case list == nil:
			continue
		case gateway != "" && p.Key != gateway:
			a.Drop("behind a gateway every model is one of the gateway's", list)
			continue
		case enabled == nil:
			a.Warn("without enabled_providers other providers stay open", list)
		case on(p.Key) == nil:
			a.Drop("the provider is not enabled", list)
			continue
		}
		for _, n := range list.Items() {
			s, ok := n.Text()
			if !ok {
				continue
			}
			if gateway == "" {
				s = p.Key + "/" + s
			}
			a.Put(draft.Models, s, "", n)
		}
		if n := on(p.Key); n != nil && a.Has(draft.Models, "") {
			a.Set(draft.Enforce, "true", "", n)
		}
	}
	if a.Has(draft.Models, "") && !a.Has(draft.Enforce, "") {
		a.Put(draft.Enforce, "true", "")
	}
	n := a.doc.Get("model")
	if s, ok := n.Text(); ok {
		if id, name, has := strings.Cut(s, "/"); gateway != "" && has && id == gateway {
			s = name
		}
		a.Set(draft.Model, s, "", n)
	}
}

// plainModels reports whether the models of a provider have no settings of their own.
func plainModels(n *draft.Node) bool {
	for _, m := range n.Members() {
		if len(m.Kids) > 0 {
			return false
		}
	}
	return n.Kind == draft.Object
}
