// Package draft collects the profile that existing files of a harness come to, and what became of every key of them. The rooms of the harnesses fill it in; the
// readers of their formats are here, because what is imported is written by people and other tools and not by halo.
package draft

import (
	"cmp"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// File is an input file: its name as it was given, and its bytes.
type File struct {
	Name string
	Data []byte
}

// Base returns the last element of the name, of either kind of path.
func (f File) Base() string { return f.Name[strings.LastIndexAny(f.Name, `/\`)+1:] }

// Outcome is what became of a key.
type Outcome string

// The outcomes. Mapped keys are in the profile, kept ones are written again by halo without a word in the profile, dropped ones are neither.
const (
	Mapped  Outcome = "mapped"
	Kept    Outcome = "kept"
	Dropped Outcome = "dropped"
)

// Line says what became of one leaf of the input.
type Line struct {
	File    string  `json:"file"`
	Pointer string  `json:"pointer"`
	Outcome Outcome `json:"outcome"`
	// Field is the key of the profile that a mapped leaf is in.
	Field string `json:"field,omitempty"`
	// Reason says why a leaf was dropped or kept, or how the profile differs from it.
	Reason string `json:"reason,omitempty"`
	// Warning says that the leaf is not in force in the input, whatever it looks like.
	Warning string `json:"warning,omitempty"`
	// Code is the code of a dropped leaf or of the warning.
	Code string `json:"code,omitempty"`
}

// Addition is a value of the profile that is in no file.
type Addition struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	Code   string `json:"code"`
}

// Entry is a value of the profile and the nodes it comes from.
type Entry struct {
	Text string
	From []*Node
}

// Server is an MCP server of the profile.
type Server struct {
	Name, URL string
	Command   []string
	Headers   [][2]string
	From      []*Node
}

// Hook is a hook of the profile.
type Hook struct {
	Event, Matcher, Command string
	From                    []*Node
}

// Draft is a profile in the making.
type Draft struct {
	// Harness is the id of the harness, OS the operating system that the files are for, Known the newest version of the harness that halo knows.
	Harness, OS, Known string
	// Secret says what kind of secret a text seems to hold, or "".
	Secret func(string) string
	Files  []File
	// Name is a name for the profile that the files suggest, or "".
	Name    string
	Servers []Server
	Hooks   []Hook
	// Attributes, Env are pairs of the telemetry attributes and of the environment; Overrides have values in JSON.
	Attributes, Env, Overrides []Pair
	// Gateway is the base URL of the model gateway.
	Gateway Entry
	// Documents are further YAML documents, printed behind the profile.
	Documents string
	Additions []Addition
	// Roots are the parsed files.
	Roots  []*Node
	values map[string][]Entry
	// reasons is the room's table of keys without a counterpart.
	reasons []Reason
}

// Pair is a named value.
type Pair struct {
	Key, Value string
	From       []*Node
}

// Reason says why the keys below a pointer have no counterpart. * stands for any one key.
type Reason struct{ Pointer, Text string }

// Fields of the profile that more than one room writes.
const (
	Version       = "harnesses.version"
	Model         = "models.default"
	Models        = "models.allowed"
	Enforce       = "models.enforce"
	Mode          = "permissions.mode"
	Allow         = "permissions.allow"
	Ask           = "permissions.ask"
	Deny          = "permissions.deny"
	Bypass        = "permissions.disableBypass"
	Required      = "permissions.sandboxRequired"
	Sandbox       = "sandbox.mode"
	WritableRoots = "sandbox.writableRoots"
	Protected     = "sandbox.protectedPaths"
	Default       = "egress.default"
	Allowed       = "egress.allowedDomains"
	Denied        = "egress.deniedDomains"
	ManagedOnly   = "mcp.managedOnly"
	MCPServers    = "mcp.servers"
	MCPDenied     = "mcp.denied"
	HooksOnly     = "hooks.managedOnly"
	HookItems     = "hooks.items"
	Telemetry     = "telemetry.enabled"
	Endpoint      = "telemetry.otlpEndpoint"
	Protocol      = "telemetry.protocol"
	LogPrompts    = "telemetry.logPrompts"
	Attributes    = "telemetry.attributes"
	Instructions  = "instructions"
	Environment   = "env"
	GatewayURL    = "gateway.baseURL"
)

// Reasons sets the room's table of keys without a counterpart.
func (d *Draft) Reasons(table []Reason) { d.reasons = table }

// mark sets what became of the leaves of nodes that nothing was said about.
func mark(nodes []*Node, line Line) {
	for _, n := range nodes {
		for leaf := range n.Leaves {
			switch {
			case leaf.line == nil:
				l := line
				leaf.line = &l
			case leaf.line.Outcome == "":
				l := line
				l.Warning, l.Code = leaf.line.Warning, leaf.line.Code
				leaf.line = &l
			}
		}
	}
}

// remark sets what became of leaves whatever was said before.
func remark(nodes []*Node, line Line) {
	for _, n := range nodes {
		for leaf := range n.Leaves {
			l := line
			if leaf.line != nil {
				l.Warning = leaf.line.Warning
				if l.Warning != "" {
					l.Code = CodeNotInForce.ID
				}
			}
			leaf.line = &l
		}
	}
}

// Map says that nodes are in a field of the profile; reason says how the profile differs, or "".
func (d *Draft) Map(field, reason string, nodes ...*Node) {
	mark(nodes, Line{Outcome: Mapped, Field: field, Reason: reason})
}

// Keep says that halo writes nodes again by itself.
func (d *Draft) Keep(reason string, nodes ...*Node) {
	mark(nodes, Line{Outcome: Kept, Reason: reason})
}

// Drop says that nodes are not in the profile.
func (d *Draft) Drop(reason string, nodes ...*Node) {
	mark(nodes, Line{Outcome: Dropped, Reason: reason, Code: CodeNoCounterpart.ID})
}

// Hide drops nodes that may hold a secret.
func (d *Draft) Hide(what string, nodes ...*Node) {
	remark(nodes, Line{Outcome: Dropped, Reason: "the value may be a secret (" + what + "); refer to a variable instead: ${NAME}", Code: CodeSecret.ID})
}

// Warn says that a node looks in force and is not.
func (d *Draft) Warn(warning string, n *Node) {
	for leaf := range n.Leaves {
		if leaf.line == nil {
			leaf.line = &Line{}
		}
		leaf.line.Warning = warning
		leaf.line.Code = CodeNotInForce.ID
		return
	}
}

// Put adds a value to a field of the profile. What may be a secret and what switches a protection off is dropped instead.
func (d *Draft) Put(field, text, reason string, nodes ...*Node) bool {
	if !d.fit(text, nodes) {
		return false
	}
	if d.values == nil {
		d.values = map[string][]Entry{}
	}
	l := d.values[field]
	if i := slices.IndexFunc(l, func(e Entry) bool { return e.Text == text }); i >= 0 {
		l[i].From = append(l[i].From, nodes...)
	} else {
		d.values[field] = append(l, Entry{text, nodes})
	}
	d.Map(field, reason, nodes...)
	return true
}

// Set is Put for a field of one value: another value that was there is dropped.
func (d *Draft) Set(field, text, reason string, nodes ...*Node) bool {
	for _, e := range d.values[field] {
		if e.Text != text {
			d.Remove(field, e.Text, "another key of the input says otherwise")
		}
	}
	return d.Put(field, text, reason, nodes...)
}

// bypass are the values that no release may hold.
var bypass = [...]string{"bypassPermissions", "danger-full-access"}

// fit reports whether a text may stand in a profile, and drops its nodes when it may not.
func (d *Draft) fit(text string, nodes []*Node) bool {
	if what := d.secret(text); what != "" {
		d.Hide(what, nodes...)
		return false
	}
	for _, b := range bypass {
		if strings.Contains(text, b) {
			d.Drop("the value "+b+" switches the protection off and is never part of a release", nodes...)
			return false
		}
	}
	if strings.TrimSpace(text) == "" {
		d.Drop("the text is empty", nodes...)
		return false
	}
	if !printable(text) {
		d.Drop("the text has control characters", nodes...)
		return false
	}
	return true
}

// Fit reports whether a text may stand in a profile, and drops the nodes when it may not.
func (d *Draft) Fit(text string, nodes ...*Node) bool { return d.fit(text, nodes) }

func printable(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfffd || r == 0xfeff || r == '\u2028' || r == '\u2029' || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}

// Values returns the texts of a field.
func (d *Draft) Values(field string) []string {
	var out []string
	for _, e := range d.values[field] {
		out = append(out, e.Text)
	}
	return out
}

// Entries returns the values of a field with their nodes.
func (d *Draft) Entries(field string) []Entry { return d.values[field] }

// Has reports whether a field has that value, or any value when text is "".
func (d *Draft) Has(field, text string) bool {
	return slices.ContainsFunc(d.values[field], func(e Entry) bool { return text == "" || e.Text == text })
}

// Remove takes a value out of a field again and drops its nodes.
func (d *Draft) Remove(field, text, reason string) {
	d.take(field, text, Line{Outcome: Dropped, Reason: reason, Code: CodeNoCounterpart.ID})
}

func (d *Draft) take(field, text string, line Line) {
	l := d.values[field]
	i := slices.IndexFunc(l, func(e Entry) bool { return e.Text == text })
	if i < 0 {
		return
	}
	remark(l[i].From, line)
	d.values[field] = slices.Delete(l, i, i+1)
}

// Add sets a field that no file has, and says why.
func (d *Draft) Add(field, text, reason string) {
	if d.values == nil {
		d.values = map[string][]Entry{}
	}
	d.values[field] = []Entry{{Text: text}}
	d.Additions = append(d.Additions, Addition{field, reason, CodeAdded.ID})
}

// AllowHost adds a pattern to the allow list. What has no form there is dropped: the host is then denied, which is never looser.
func (d *Draft) AllowHost(pattern string, nodes ...*Node) bool {
	if p, problem := host.ParsePattern(spell(pattern)); problem == nil {
		return d.Put(Allowed, p.String(), "", nodes...)
	} else if d.fit(pattern, nodes) {
		d.Drop("the entry "+problem.Reason+", so the host is denied", nodes...)
	}
	return false
}

// DenyHost adds a pattern to the deny list. live says that the program matches a pattern that has no form there: then nothing is allowed that it may match.
func (d *Draft) DenyHost(pattern string, live bool, nodes ...*Node) bool {
	p, problem := host.ParseDenyPattern(spell(pattern))
	if problem == nil {
		return d.Put(Denied, p.String(), "", nodes...)
	}
	if !d.fit(pattern, nodes) {
		live = true
	} else if !live {
		d.Drop("the entry "+problem.Reason, nodes...)
		d.warnAll("the program never matches this entry, so the host is not denied", nodes)
	} else {
		d.Drop("the entry "+problem.Reason+", so the profile allows no host that it may match", nodes...)
	}
	if live {
		d.undeniable(pattern)
	}
	return false
}

func (d *Draft) warnAll(warning string, nodes []*Node) {
	for _, n := range nodes {
		d.Warn(warning, n)
	}
}

// spell writes a host as profiles do: programs ignore its case.
func spell(pattern string) string { return strings.ToLower(pattern) }

// Undeniable is set in values when a deny entry could not be said; the patterns are kept until every allowed host is known.
const undeniable = "\x00undeniable"

func (d *Draft) undeniable(pattern string) {
	if d.values == nil {
		d.values = map[string][]Entry{}
	}
	d.values[undeniable] = append(d.values[undeniable], Entry{Text: pattern})
}

// Root adds a writable root.
func (d *Draft) Root(path string, nodes ...*Node) bool {
	p, problem := fspath.ParseRoot(d.alias(path))
	if problem == nil {
		return d.Put(WritableRoots, p.String(), "", nodes...)
	}
	if d.fit(path, nodes) {
		d.Drop("the path "+problem.Reason+", so it is not writable", nodes...)
	}
	return false
}

// Protect adds a protected path.
func (d *Draft) Protect(path string, nodes ...*Node) bool {
	return d.ProtectAs(path, "", nodes...)
}

// ProtectAs is Protect with a reason how the profile differs from the nodes.
func (d *Draft) ProtectAs(path, reason string, nodes ...*Node) bool {
	p, problem := fspath.ParseProtected(d.alias(Folder(path)))
	if problem == nil {
		return d.Put(Protected, p.String(), reason, nodes...)
	}
	if d.fit(path, nodes) {
		d.Drop("the path "+problem.Reason, nodes...)
	}
	return false
}

// Folder takes the /** off the end of a path without another pattern: a folder covers what is in it.
func Folder(path string) string {
	if base, ok := strings.CutSuffix(path, "/**"); ok && base != "" && base != "~" && base != "**" {
		return base
	}
	return path
}

// alias writes a path of macOS as profiles do: halo adds the spelling under /private itself.
func (d *Draft) alias(path string) string {
	if d.OS != "darwin" {
		return path
	}
	for _, dir := range [...]string{"etc", "tmp", "var"} {
		if rest, ok := strings.CutPrefix(path, "/private/"+dir); ok && (rest == "" || rest[0] == '/') {
			return "/" + dir + rest
		}
	}
	return path
}

// URL reports whether a text is an absolute URL of one of the schemes that a profile takes.
func URL(s string, schemes ...string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	if !ok || !slices.Contains(schemes, scheme) || strings.ContainsAny(s, " \t\r\n\\\"<>`") {
		return false
	}
	u, err := neturl.Parse(s)
	if err != nil || u.User != nil {
		return false
	}
	_, err = host.ParseName(s)
	return err == nil
}

// SetURL sets a field to a URL.
func (d *Draft) SetURL(field, url string, n *Node, schemes ...string) bool {
	if !URL(url, schemes...) {
		if d.fit(url, []*Node{n}) {
			d.Drop("the value is no absolute URL with a host and without user information, with the scheme "+strings.Join(schemes, " or "), n)
		}
		return false
	}
	return d.Set(field, url, "", n)
}

// SetGateway sets the gateway's base URL.
func (d *Draft) SetGateway(url string, n *Node) {
	if !URL(url, "https", "http") {
		if d.fit(url, []*Node{n}) {
			d.Drop("the value is no absolute URL with a host and without user information", n)
		}
		return
	}
	if !d.fit(url, []*Node{n}) {
		return
	}
	d.Gateway = Entry{url, []*Node{n}}
	d.Map(GatewayURL, "", n)
}

// ServerName makes a name that a document may hold out of the name of a server.
func ServerName(s string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r | 0x20
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
	name = strings.Trim(name[:min(len(name), 63)], ".-_")
	if !policy.ValidName(name) {
		return ""
	}
	return name
}

// NameOf makes a name for a server out of its URL or command. taken says which names there are.
func NameOf(of string, taken func(string) bool) string {
	if u, err := neturl.Parse(of); err == nil && u.Host != "" {
		of = u.Hostname()
	} else {
		of = of[strings.LastIndexAny(of, `/\`)+1:]
	}
	base := cmp.Or(ServerName(of), "server")
	name := base
	for i := 2; taken(name); i++ {
		name = base[:min(len(base), 55)] + "-" + strconv.Itoa(i)
	}
	return name
}

// Said reports whether something was said about a node already.
func (d *Draft) Said(n *Node) bool {
	for leaf := range n.Leaves {
		return leaf.line != nil && leaf.line.Outcome != ""
	}
	return false
}

// AddServer adds an MCP server. nodes are what makes up the server.
func (d *Draft) AddServer(s Server, nodes ...*Node) bool {
	name := ServerName(s.Name)
	for _, text := range append([]string{s.Name, s.URL, strings.Join(s.Command, " ")}, s.Command...) {
		if text != "" && !d.fit(text, nodes) {
			return false
		}
	}
	switch {
	case name == "":
		d.Drop("the server has no name that a profile may hold", nodes...)
		return false
	case slices.ContainsFunc(d.Servers, func(x Server) bool { return x.Name == name }):
		d.Drop("another server has the name already", nodes...)
		return false
	case s.URL != "" && !URL(s.URL, "https"):
		d.Drop("the server is not reached by an https URL", nodes...)
		return false
	case s.URL == "" && (len(s.Command) == 0 || slices.ContainsFunc(s.Command, func(a string) bool { return strings.TrimSpace(a) == "" })):
		d.Drop("the server has no command, or an empty part in it", nodes...)
		return false
	}
	reason := ""
	if name != s.Name {
		reason = "the name is written " + name
	}
	s.Name, s.From = name, nodes
	d.Map(MCPServers, reason, nodes...)
	d.Servers = append(d.Servers, s)
	return true
}

// secretNames are parts of the names of variables and headers whose value is a secret by its name.
var secretNames = [...]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "API-KEY", "CREDENTIAL", "PRIVATE", "AUTHORIZATION", "COOKIE", "ACCESS_KEY", "AUTH"}

// Public reports whether a named value may be shown, and drops its node when it may be a secret. References to variables may.
func (d *Draft) Public(name, value string, n *Node) bool {
	if what := cmp.Or(d.secret(value), d.secret(name)); what != "" {
		d.Hide(what, n)
		return false
	}
	if value == "" || strings.Contains(value, "${") {
		return true
	}
	upper := strings.ToUpper(name)
	for _, s := range secretNames {
		if strings.Contains(upper, s) {
			d.Hide("by its name", n)
			return false
		}
	}
	return true
}

// reservedEnv are beginnings of names of variables that no profile sets: they steer harnesses, their sandboxes or the loader.
var reservedEnv = [...]string{"OTEL_", "ANTHROPIC_", "CLAUDE_CODE_", "DISABLE_", "CODEX_", "GEMINI_", "GOOGLE_GEMINI_", "COPILOT_", "OPENCODE_", "CURSOR_", "SANDBOX", "SEATBELT_", "LD_", "DYLD_"}

// Variable adds a variable of the environment.
func (d *Draft) Variable(n *Node) {
	value, ok := n.Text()
	if !ok {
		d.Drop("the value is not a text", n)
		return
	}
	upper := strings.ToUpper(n.Key)
	if !d.Public(n.Key, value, n) || value != "" && !d.fit(value, []*Node{n}) || !d.fit(n.Key, []*Node{n}) {
		return
	}
	for _, p := range reservedEnv {
		if strings.HasPrefix(upper, p) {
			d.Drop("names that begin with "+p+" change how a harness or its sandbox works, and a profile does not set them", n)
			return
		}
	}
	d.Env = append(d.Env, Pair{n.Key, value, []*Node{n}})
	d.Map(Environment, "", n)
}

// Attribute adds an attribute of telemetry.
func (d *Draft) Attribute(key, value string, n *Node) bool {
	if !d.Public(key, value, n) || !d.fit(key, []*Node{n}) || value != "" && !d.fit(value, []*Node{n}) {
		return false
	}
	if !slices.ContainsFunc(d.Attributes, func(p Pair) bool { return p.Key == key }) {
		d.Attributes = append(d.Attributes, Pair{key, value, []*Node{n}})
	}
	d.Map(Attributes, "", n)
	return true
}

// Override adds a raw key of the overrides. A value without a form in a profile is dropped.
func (d *Draft) Override(key string, n *Node) {
	for leaf := range n.Leaves {
		switch v := leaf.Value.(type) {
		case string:
			if v != "" && !d.fit(v, []*Node{n}) {
				return
			}
		case nil:
			if leaf.Kind == Scalar {
				d.Drop("a value is null, which a profile has no form for", n)
				return
			}
		}
	}
	d.Overrides = append(d.Overrides, Pair{key, n.Compact(), []*Node{n}})
	d.Map("harnesses."+d.Harness+".overrides", "", n)
}

// AddHook adds a hook.
func (d *Draft) AddHook(h Hook, nodes ...*Node) bool {
	if !d.fit(h.Command, nodes) || h.Matcher != "" && !d.fit(h.Matcher, nodes) {
		return false
	}
	h.From = nodes
	d.Hooks = append(d.Hooks, h)
	d.Map(HookItems, "", nodes...)
	return true
}

// Lines returns what became of every leaf of the input, in the order of the files. What no room said anything about is dropped, with the reason of the room's table.
func (d *Draft) Lines() []Line {
	var out []Line
	for _, r := range d.Roots {
		if len(r.Kids) == 0 && r.Kind != Scalar {
			d.Keep("there is nothing in the file", r)
		}
		for leaf := range r.Leaves {
			l := Line{}
			if leaf.line != nil {
				l = *leaf.line
			}
			if l.Outcome == "" {
				l.Outcome, l.Reason = Dropped, d.why(leaf.Pointer)
				l.Code = cmp.Or(l.Code, CodeNoCounterpart.ID)
			}
			l.File, l.Pointer = r.File, d.shown(leaf.Pointer)
			out = append(out, l)
		}
	}
	return out
}

// why returns the reason of the longest entry of the room's table above a pointer.
func (d *Draft) why(pointer string) string {
	best, text := -1, "halo knows no such setting of "+d.Harness+": the program ignores it, or a version newer than "+d.Known+" reads it"
	for _, r := range d.reasons {
		if len(r.Pointer) > best && under(r.Pointer, pointer) {
			best, text = len(r.Pointer), r.Text
		}
	}
	return text
}

func under(pattern, pointer string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(pointer, "/")
	if len(p) > len(q) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != q[i] {
			return false
		}
	}
	return true
}

// RepeatedKeys drops the members of objects that a later member of the same key shadows.
func RepeatedKeys(n *Node) {
	if n.Kind == Object {
		counted := map[*Node]bool{}
		for _, m := range n.Members() {
			counted[m] = true
		}
		for _, k := range n.Kids {
			if !counted[k] {
				mark([]*Node{k}, Line{Outcome: Dropped, Code: CodeNoCounterpart.ID, Reason: "the key is written twice, and the program takes the last one"})
			}
		}
	}
	for _, k := range n.Kids {
		RepeatedKeys(k)
	}
}

// Protected reports whether a path is protected already.
func (d *Draft) Protected(path string) bool {
	p, problem := fspath.ParseProtected(d.alias(Folder(path)))
	return problem == nil && d.Has(Protected, p.String())
}

// DenyLive is DenyHost for programs that match every pattern they take.
func (d *Draft) DenyLive(pattern string, n *Node) { d.DenyHost(pattern, true, n) }

// Reword sets how the profile differs from a mapped node.
func (d *Draft) Reword(n *Node, reason string) {
	for leaf := range n.Leaves {
		if leaf.line != nil && leaf.line.Outcome == Mapped {
			leaf.line.Reason = reason
		}
	}
}

// Restate sets a field of one value to another one that says the same nodes and more.
func (d *Draft) Restate(field, text string, nodes ...*Node) {
	for i := range d.values[field] {
		d.values[field][i].Text = text
		d.values[field][i].From = append(d.values[field][i].From, nodes...)
	}
	d.Map(field, "", nodes...)
}
