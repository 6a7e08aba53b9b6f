package device

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"halos.dev/halo/artifacts/device/probe"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// program is where an installed harness was found, as a room can reach it.
type program struct {
	// dirs are directories that a room hides and has to mount; path are the directories to look for other programs in; bin is the program in the room.
	dirs, path []string
	bin        string
}

// npmProgram is the program of a package below a directory of modules. A package of a user's home is mounted, because a room has no homes but its own.
func npmProgram(modules, name, bin string, hidden bool) *program {
	if bin == "" {
		return nil
	}
	p := &program{}
	// npm has the programs themselves, node among them, beside its lib directory.
	beside := ""
	if lib := path.Dir(modules); path.Base(lib) == "lib" {
		beside = path.Join(path.Dir(lib), "bin")
	}
	if hidden {
		p.dirs = append(p.dirs, modules)
		modules = path.Join(probe.ProgramDir, path.Base(modules))
		if strings.Contains(beside, "/.nvm/") {
			p.dirs = append(p.dirs, beside)
			p.path = append(p.path, path.Join(probe.ProgramDir, path.Base(beside)))
		}
	} else if beside != "" {
		p.path = append(p.path, beside)
	}
	p.bin = path.Join(modules, name, bin)
	return p
}

// nativeProgram is the program of a vendor's own installer, below the directory of its versions in a home.
func nativeProgram(id, versions, name string) *program {
	if id != policy.ClaudeCode {
		return nil
	}
	return &program{dirs: []string{versions}, bin: path.Join(probe.ProgramDir, path.Base(versions), name)}
}

// Probe is what running a harness showed.
type Probe struct {
	// Reason says why something is not known; "" when everything was tried and answered.
	Reason string      `json:"reason,omitempty"`
	Tries  []probe.Try `json:"tries,omitempty"`
}

const noCursor = "Cursor CLI has no managed file, and talks to its vendor's service only, so no stand-in for its model can lead it"

// parallel is how many programs are run at once.
const parallel = 2

// prove runs every installed harness that has managed files, and raises its level to proven when everything that was tried was held.
func (x *doctor) prove(programs map[string]*program) {
	findings := make([]*probe.Finding, len(x.Harnesses))
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range x.Harnesses {
		p := &x.Harnesses[i]
		at := programs[p.Harness]
		switch plan := x.plan(p.Harness, at); {
		case p.Harness == policy.CursorCLI:
			x.unproven(p, Info, noCursor, "")
		case x.managed[p.Harness] == nil: // posture has said so
		case p.Version == "":
			x.unproven(p, Info, "no installed program was found", "")
		case at == nil:
			x.unproven(p, Warn, "the package of the program does not name what to start", "install it again")
		case len(plan.Protected) == 0 && plan.Denied == "":
			x.unproven(p, Info, "the policy protects no path below a home or of a workspace, and denies no host", "")
		default:
			running.Go(func() {
				slots <- struct{}{}
				f := x.o.Probe(plan)
				<-slots
				findings[i] = &f
			})
		}
	}
	running.Wait()
	for i, f := range findings {
		if f != nil {
			x.found(&x.Harnesses[i], *f)
		}
	}
}

// unproven reports a harness about which a probe could not find out anything.
func (x *doctor) unproven(p *Posture, s Status, reason, fix string) {
	p.Probe = &Probe{Reason: reason}
	x.add(s, "proven", p.Harness, CodeUnproven, "", "not probed: "+reason, fix)
}

// found reports what a probe found out.
func (x *doctor) found(p *Posture, f probe.Finding) {
	p.Probe = &Probe{Reason: f.Reason, Tries: f.Tries}
	h := x.t.device.harness(p.Harness)
	v, ok := harness.ParseVersion(p.Version)
	if !ok {
		v = h.Known
	}
	held := map[string][]string{}
	for _, t := range f.Tries {
		switch t.Outcome {
		case probe.Held:
			held[t.What] = append(held[t.What], ways[t.Way])
		case probe.Leaked:
			text, concept := "probed "+p.Version+": "+ways[t.Way]+" read the canary of the protected path "+t.What, harness.ProtectedPaths
			if t.Way == probe.Request {
				text, concept = "probed "+p.Version+": a command reached "+t.What+", which the policy denies", harness.Egress
			}
			fix := "install the release again, look for what works against it above, and install the version that the policy pins"
			if row := h.Capability(concept, x.OS, v); row.Limit != "" {
				text += "; known limit: " + row.Limit
				fix = "leave " + p.Harness + " out of the profile where this must hold, or keep it off devices with such files"
			}
			x.add(Warn, "posture", p.Harness, CodeLeak, "", text, fix)
		}
	}
	if f.Reason != "" {
		x.add(Warn, "proven", p.Harness, CodeUnproven, "", "not proven: "+f.Reason, "start the program by hand, put right what keeps it from working, and probe again")
		return
	}
	if !f.Proven() {
		return
	}
	var texts []string
	for _, t := range f.Tries {
		names := held[t.What]
		if len(names) == 0 {
			continue
		}
		delete(held, t.What)
		if t.Way == probe.Request {
			text := "a command did not reach " + t.What
			if f.Closed {
				text += ", nor any other host"
			}
			texts = append(texts, text)
			continue
		}
		texts = append(texts, strings.Join(names, " and ")+" did not read the canary of "+t.What)
	}
	text := strings.Join(texts, "; ")
	if p.Level != Selected {
		x.add(Info, "proven", p.Harness, nil, "", "held, but not proven while its files or sources are not in order: "+text, "")
		return
	}
	p.Level = Proven
	x.add(OK, "proven", p.Harness, nil, "", "proven: "+p.Version+" was run; "+text, "")
}

var ways = map[string]string{probe.Shell: "a command", probe.Read: "the file tool", probe.Request: "a request"}

// plan chooses what to try: one protected directory of a home and one pattern of the workspace, and one denied host.
func (x *doctor) plan(id string, at *program) probe.Plan {
	if at == nil || x.expected == nil {
		return probe.Plan{}
	}
	c := x.claims()
	plan := probe.Plan{Harness: id, Program: at.bin, Programs: at.dirs, Path: at.path, Gateways: c.gateways, Token: x.o.Token}
	for _, fits := range []func(string) bool{homeDir, workspaceName} {
		if i := slices.IndexFunc(c.protected, fits); i >= 0 {
			plan.Protected = append(plan.Protected, c.protected[i])
		}
	}
	plan.Denied, plan.Allowed = c.hosts(x.expected.Default, x.o.Token, c.gateways)
	return plan
}

// homeDir reports whether a protected path is a directory of a home in which a room can put a canary: not the workspace, and nothing that git or a CLI has there.
func homeDir(p string) bool {
	dir, ok := strings.CutPrefix(p, "~/")
	first, _, _ := strings.Cut(dir, "/")
	return ok && dir != "" && filepath.IsLocal(dir) && path.Clean(dir) == dir && !strings.ContainsAny(dir, `*?[]{}'\`) && plain(dir) &&
		!slices.Contains([]string{path.Base(probe.Work), ".gitconfig", ".claude", ".claude.json", ".codex", ".copilot", ".gemini"}, first)
}

// workspaceName reports whether a protected path is a name or a pattern for names in the workspace, of which one can be made.
func workspaceName(p string) bool {
	return strings.Trim(p, "*?.") != "" && !strings.ContainsAny(p, `/[]{}'\~$`) && plain(p) && !slices.Contains([]string{".git", "README.md"}, p)
}

// plain reports whether a text can stand in a path and in a line of a script.
func plain(s string) bool { return printable(s) == s && !strings.Contains(s, "\n") }

// claims are what the managed files of all harnesses say about paths and hosts, as the policy has it.
type claims struct {
	protected, allowed, denied, gateways []string
}

// claims reads the managed files. A record of an installation has no policy, and what each harness cannot hold is missing in its own file, so the files of all
// are taken together.
func (x *doctor) claims() claims {
	var c claims
	for _, id := range x.harnesses() {
		m := x.managed[id]
		for _, file := range sortedDocs(m.docs) {
			doc := m.docs[file]
			c.gateways = append(c.gateways, urls(doc)...)
			c.protected = append(c.protected, protectedPaths(doc)...)
			c.allowed = append(c.allowed, hostLists(doc, "allow")...)
			c.denied = append(c.denied, hostLists(doc, "deny")...)
		}
	}
	for _, list := range []*[]string{&c.protected, &c.allowed, &c.denied, &c.gateways} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return c
}

func sortedDocs(docs map[string]map[string]any) []string {
	var out []string
	for name := range docs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// texts lists the texts in a value: those of a list, or the keys of a table whose value is want.
func texts(want string, vs ...any) []string {
	var out []string
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					out = append(out, s)
				}
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if v[k] == want {
					out = append(out, k)
				}
			}
		}
	}
	return out
}

// protectedPaths finds the protected paths in the form of each harness: claude-code, copilot-cli, codex, opencode and the messages of gemini-cli's rules.
func protectedPaths(doc map[string]any) []string {
	var out []string
	add := func(list []string, prefix, suffix string) {
		for _, s := range list {
			if s, ok := strings.CutPrefix(s, prefix); ok {
				if s, ok = strings.CutSuffix(s, suffix); ok {
					out = append(out, s)
				}
			}
		}
	}
	add(texts("", values(doc, "sandbox", "filesystem", "denyRead")...), "", "")
	add(texts("", values(doc, "permissions", "deny")...), "Read(**/", ")")
	add(texts("", values(doc, "sandbox", "userPolicy", "filesystem", "deniedPaths")...), "", "")
	add(texts("deny", values(doc, "permissions", "filesystem", "deny_read")...), "", "")
	add(texts("deny", values(doc, "permissions", "*", "filesystem")...), "", "")
	add(texts("deny", values(doc, "permissions", "*", "filesystem", ":workspace_roots")...), "**/", "")
	add(texts("deny", values(doc, "permission", "external_directory")...), "", "/*")
	if rules, ok := doc["rule"].([]any); ok {
		for _, r := range rules {
			add(texts("", value(r, "denyMessage")), "sandbox.protectedPaths ", "")
		}
	}
	return out
}

// hostLists finds the host patterns of one effect, "allow" or "deny", in the form of each harness that has lists.
func hostLists(doc map[string]any, effect string) []string {
	claude, copilot := "allowedDomains", "allowedHosts"
	if effect == "deny" {
		claude, copilot = "deniedDomains", "blockedHosts"
	}
	return slices.Concat(texts("", values(doc, "sandbox", "network", claude)...), texts("", values(doc, "sandbox", "userPolicy", "network", copilot)...),
		texts(effect, values(doc, "experimental_network", "domains")...))
}

// urls lists the URLs of a document, without their paths.
func urls(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		for _, scheme := range []string{"https://", "http://"} {
			if rest, ok := strings.CutPrefix(v, scheme); ok {
				at, _, _ := strings.Cut(rest, "/")
				if name, err := host.ParseName(at); err == nil && !strings.ContainsAny(at, "@?#*") && (!name.Literal() || strings.HasPrefix(at, "127.0.0.1")) {
					out = append(out, scheme+at)
				}
			}
		}
	case []any:
		for _, e := range v {
			out = append(out, urls(e)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			// The schema of a document is no place that a program sends anything to.
			if k != "$schema" {
				out = append(out, urls(v[k])...)
			}
		}
	}
	return out
}

// hosts chooses a denied name and an allowed one. Names of gateways are not taken: they resolve to the stand-in of the model.
func (c claims) hosts(def, token string, gateways []string) (denied, allowed string) {
	allow, deny := patterns(c.allowed), patterns(c.denied)
	usable := func(n host.Name) bool {
		return !n.Literal() && n != "localhost" && !slices.ContainsFunc(gateways, func(g string) bool {
			name, err := host.ParseName(g)
			return err == nil && name == n
		})
	}
	unlisted := host.Name("halo-" + token + ".example")
	_, listed := host.NewSet(allow).Match(unlisted)
	_, refused := host.NewSet(deny).Match(unlisted)
	if def == "deny" && !listed {
		denied = string(unlisted)
	}
	if def == "allow" && !refused {
		allowed = string(unlisted)
	}
	for _, p := range deny {
		if denied == "" && usable(p.Example()) {
			denied = string(p.Example())
		}
	}
	for _, p := range allow {
		if _, no := host.NewSet(deny).Match(p.Example()); allowed == "" && !no && usable(p.Example()) {
			allowed = string(p.Example())
		}
	}
	if denied == "" {
		allowed = "" // it would be the control of nothing
	}
	return denied, allowed
}

func patterns(list []string) []host.Pattern {
	var out []host.Pattern
	for _, s := range list {
		if p, problem := host.ParseDenyPattern(s); problem == nil {
			out = append(out, p)
		}
	}
	return out
}
