package compiler

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Sandbox is a Sandbox document with what its parts come to.
type Sandbox struct {
	Doc *policy.Sandbox
	// Config is DefenseClaw's openshell block, ready for release: pack and pack_dir are filled in, and repo:NAME is pinned. Nil when the document has neither a pack nor a block.
	Config *pack.Config
	// Packs are the packs of the repo that the release carries for the document, by name.
	Packs []*RepoPack
	// compose is what policy.yaml is composed from, but for the agent and the target's egress.
	compose openshell.Input
}

// RepoPack is a pack of the repo with its exact bytes.
type RepoPack struct {
	*pack.Pack
	Data []byte
}

// PolicyFile is the policy.yaml of one agent.
type PolicyFile struct {
	Agent   string
	Policy  *openshell.Policy
	Gaps    []openshell.Gap
	Content []byte
}

// Sandbox returns the Sandbox document of a name with its parts, or nil.
func (c *Compiled) Sandbox(name string) *Sandbox {
	i := slices.IndexFunc(c.Sandboxes, func(s *Sandbox) bool { return s.Doc.Name.V == name })
	if i < 0 {
		return nil
	}
	return c.Sandboxes[i]
}

// SandboxEngine returns what decides about hosts in a sandbox of this document, without run options.
func (c *Compiled) SandboxEngine(name string) (*pack.Engine, error) {
	s := c.Sandbox(name)
	switch {
	case s == nil:
		return nil, fmt.Errorf("there is no Sandbox document %q", name)
	case s.Config == nil:
		return nil, fmt.Errorf("sandbox %s has neither a pack nor an openshell block, so DefenseClaw decides nothing for it", name)
	case s.Doc.Resolved == nil:
		return nil, fmt.Errorf("sandbox %s does not resolve here; halo lint says why", name)
	}
	return s.Doc.Resolved.Engine(nil), nil
}

// FindPack loads what a pack reference means in this repo: a built-in pack or packs/NAME/pack.yaml. Places on a device are not looked at.
func (c *Compiled) FindPack(ref string) (*pack.Pack, error) {
	ref = strings.TrimSpace(ref)
	switch {
	case ref == "":
		return pack.Builtin("open")
	case pack.IsBuiltin(ref):
		return pack.Builtin(ref)
	case !pack.ValidName(ref):
		return nil, &pack.Error{Path: ref, Class: "not_found", Reason: "lies on the device, and halo reads the packs of the repo only"}
	}
	p, err := c.repoPack(ref)
	if err != nil {
		return nil, err
	}
	return p.Pack, nil
}

// repoPack loads a pack of the repo once.
func (c *Compiled) repoPack(name string) (*RepoPack, error) {
	if p, ok := c.packs[name]; ok {
		return p, nil
	}
	i := slices.IndexFunc(c.Repo.Packs, func(f *policy.PackFile) bool { return f.Name == name })
	if i < 0 {
		return nil, &pack.Error{Path: name, Class: "not_found", Reason: "pack not found: there is no packs/" + name + "/pack.yaml in the repo"}
	}
	data, err := c.read(c.Repo.Packs[i].File)
	if err != nil {
		return nil, err
	}
	p, err := pack.Load(c.Repo.Files[c.Repo.Packs[i].File].Name, data)
	if err != nil {
		return nil, err
	}
	c.packs[name] = &RepoPack{p, data}
	return c.packs[name], nil
}

// read returns the bytes of a file of the repo as they were when the repo was read.
func (c *Compiled) read(file int) ([]byte, error) {
	f := c.Repo.Files[file]
	data, err := fs.ReadFile(c.fs, f.Name)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(data) != f.Digest {
		return nil, errors.New(f.Name + " changed while it was read")
	}
	return data, nil
}

// boxes resolves the Sandbox documents of a repo.
type boxes struct {
	*Compiled
	diags *diag.List
	// named marks the files of the repo that a document names.
	named map[string]bool
	// parsed holds the policies that were read, nil for one with errors, so that each is read and reported once.
	parsed map[string]*openshell.Policy
}

// sandboxes resolves the Sandbox documents: their packs, their blocks and the files they name.
func (c *Compiled) sandboxes(diags *diag.List) {
	b := &boxes{c, diags, map[string]bool{}, map[string]*openshell.Policy{}}
	for _, doc := range c.Repo.Sandboxes {
		s := &Sandbox{Doc: doc}
		before := diags.Errors()
		b.block(s)
		h := sha256.New()
		if s.Config != nil {
			h.Write(pack.PrintConfig(s.Config))
		}
		if doc.OpenShell != nil {
			b.parts(s)
			fmt.Fprintf(h, "%+v", meaning(&s.compose, doc.OpenShell))
		}
		h.Sum(doc.Digest[:0])
		doc.Bad = doc.Bad || diags.Errors() > before
		c.Sandboxes = append(c.Sandboxes, s)
	}
	b.unnamed()
}

// meaning returns what tells two policy sections apart, without places.
func meaning(in *openshell.Input, o *policy.OpenShell) []string {
	out := []string{o.Egress.V, in.Provider.Text, in.BaseURL.Text}
	texts := func(name string, hs []openshell.Host) {
		out = append(out, name)
		for _, h := range hs {
			out = append(out, h.Text)
		}
	}
	texts("hosts", in.Hosts)
	texts("replace", in.Replace)
	texts("permit", texted(o.Permit, ""))
	texts("agents", texted(o.Agents, ""))
	for _, p := range o.Ports {
		out = append(out, strconv.FormatInt(p.V, 10))
	}
	fragments := in.Fragments
	if in.Base != nil {
		fragments = append([]openshell.Fragment{*in.Base}, fragments...)
	}
	for _, f := range fragments {
		out = append(out, f.Name, string(openshell.Print(f.Policy)))
	}
	return out
}

func (b *boxes) report(doc *policy.Sandbox, d diag.Diagnostic) {
	if d.Document == "" {
		d.Document = doc.ID()
		if h := b.Repo.DocumentAt(d.Pos); h != nil {
			d.Document = h.ID()
		}
	}
	b.diags.Add(d)
}

// block makes the openshell block ready for release and resolves it.
func (b *boxes) block(s *Sandbox) {
	doc := s.Doc
	if doc.Block == nil && !doc.Pack.IsSet() && !doc.PackDir.IsSet() {
		return
	}
	config := pack.Config{}
	if doc.Block != nil {
		config = *doc.Block
	}
	at, path := doc.Places["pack"], "openshell.pack"
	if doc.Pack.IsSet() {
		config.Pack, at, path = doc.Pack.V, doc.Pack.Pos, "pack"
	}
	config.PackDir = cmp.Or(doc.PackDir.V, config.PackDir, policy.SandboxPackDir)
	pinned, found := pack.Pin(&config, doc.Places, func(name string) *pack.Pack {
		p, err := b.FindPack(name)
		if err != nil {
			return nil
		}
		return p
	})
	for _, d := range found {
		d.Path = "openshell." + d.Path
		b.report(doc, d)
	}
	s.Config = pinned
	fit := b.usePack(s, pinned.Pack, at, path, doc.Pack.IsSet())
	if !b.usePack(s, pinned.Admin.RequiredPack, doc.Places["admin.required_pack"], "openshell.admin.required_pack", false) || !fit || doc.Bad {
		return
	}
	resolved, err := pack.Resolve(pack.Input{Config: pinned, Find: b.FindPack})
	if err != nil {
		b.report(doc, diag.New(codeBlock, cmp.Or(doc.Places[""], doc.Pack.Pos, doc.Pos), "openshell", "the sandbox cannot be resolved: %s", err))
		return
	}
	doc.Resolved = resolved
	for _, v := range resolved.Violations {
		if v.Constraint == "openshell.admin.require_copy_for" {
			continue // without a project folder every run counts as covered; which are is known on the device
		}
		b.report(doc, diag.New(codeClamped, cmp.Or(doc.Places[""], doc.Pack.Pos, doc.Pos), "openshell", "%s is %s, and the document's own limit %s makes it %s", v.Key, v.Attempted, v.Constraint, v.Enforced).
			WithHint("write what holds, so that nobody reads the other"))
	}
}

// usePack takes a pack of the repo into the release and reports whether the block can be resolved here. must says that the reference has to name a known pack.
func (b *boxes) usePack(s *Sandbox, ref string, at diag.Pos, path string, must bool) bool {
	if ref == "" || pack.IsBuiltin(ref) {
		return true
	}
	if pack.ValidName(ref) {
		i := slices.IndexFunc(b.Repo.Packs, func(f *policy.PackFile) bool { return f.Name == ref })
		if i >= 0 {
			b.named[b.Repo.Files[b.Repo.Packs[i].File].Name] = true
			p, err := b.repoPack(ref)
			if err != nil {
				if !b.Repo.Packs[i].Bad {
					b.report(s.Doc, diag.New(codeBlock, at, path, "%s", err))
				}
				s.Doc.Bad = true
				return false
			}
			if !slices.Contains(s.Packs, p) {
				s.Packs = append(s.Packs, p)
			}
			return true
		}
		if must {
			names := pack.BuiltinNames()
			for _, f := range b.Repo.Packs {
				names = append(names, f.Name)
			}
			d := diag.New(codeNoSuchPack, at, path, "there is no pack %q: neither built in nor at packs/%s/%s", ref, ref, pack.FileName)
			if near := diag.Nearest(ref, names); near != "" {
				d.Hint = "did you mean " + near + "?"
			}
			b.report(s.Doc, d)
			return false
		}
	}
	if strings.HasPrefix(ref, "repo:") {
		return false // Pin has reported it
	}
	b.report(s.Doc, diag.New(codeDevicePack, at, path, "pack %q is not in the repo, so halo cannot check it or say what the sandbox comes to", ref).
		WithHint("keep the pack at packs/NAME/%s and name it", pack.FileName))
	return false
}

func texted(l source.Strs, path string) []openshell.Host {
	out := make([]openshell.Host, len(l.Items))
	for i, s := range l.Items {
		out[i] = openshell.Host{Text: s.V, Pos: s.Pos, Path: path + "[" + strconv.Itoa(i) + "]"}
	}
	return out
}

// parts reads what policy.yaml is composed from.
func (b *boxes) parts(s *Sandbox) {
	o, in := s.Doc.OpenShell, &s.compose
	if len(o.Agents.Items) == 0 {
		b.report(s.Doc, diag.New(codeNoAgents, cmp.Or(o.Agents.Pos, o.Pos), "policy.agents", "the policy is for no agent, so no policy.yaml would be written").
			WithHint("agents: [%s]", strings.Join(openshell.Agents(), ", ")))
	}
	for i, a := range o.Agents.Items {
		if slices.ContainsFunc(o.Agents.Items[:i], func(x source.Str) bool { return x.V == a.V }) {
			b.report(s.Doc, diag.New(codeNoAgents, a.Pos, "policy.agents["+strconv.Itoa(i)+"]", "agent %q is listed twice", a.V).WithHint("remove one"))
		}
	}
	in.At = openshell.Host{Pos: o.Pos, Path: "policy"}
	in.Provider = openshell.Host{Text: o.Provider.V, Pos: o.Provider.Pos, Path: "policy.inference.provider"}
	in.BaseURL = openshell.Host{Text: o.BaseURL.V, Pos: o.BaseURL.Pos, Path: "policy.inference.baseURL"}
	in.Replace = texted(o.Replace, "policy.replace")
	in.Hosts = texted(o.Hosts, "policy.network.hosts")
	if o.Base.IsSet() {
		in.Base = b.fragment(s, o.Base, "policy.base")
	}
	for i, f := range o.Fragments.Items {
		if p := b.fragment(s, f, "policy.fragments["+strconv.Itoa(i)+"]"); p != nil {
			in.Fragments = append(in.Fragments, *p)
		}
	}
	if o.Workspace.IsSet() {
		if file, data, ok := b.file(s, o.Workspace, "policy.workspace"); ok {
			ws, found := openshell.ReadWorkspace(file, data)
			b.findings(s, found)
			in.Hosts = ws.Hosts
		}
	}
}

func (b *boxes) fragment(s *Sandbox, name source.Str, path string) *openshell.Fragment {
	p, ok := b.parsed[name.V]
	if !ok {
		file, data, ok := b.file(s, name, path)
		if !ok {
			return nil
		}
		var found []openshell.Finding
		p, found = openshell.Parse(file, data)
		b.findings(s, found)
		if openshell.HasErrors(openshell.ForBuild(found)) {
			p = nil
		}
		b.parsed[name.V] = p
	}
	if p == nil {
		s.Doc.Bad = true
		return nil
	}
	return &openshell.Fragment{Name: name.V, Policy: p}
}

func (b *boxes) findings(s *Sandbox, found []openshell.Finding) {
	for _, d := range openshell.Diagnostics(openshell.ForBuild(found)) {
		b.report(s.Doc, d)
	}
}

// file reads a file that a document names.
func (b *boxes) file(s *Sandbox, name source.Str, path string) (file int, data []byte, ok bool) {
	b.named[name.V] = true
	i := slices.IndexFunc(b.Repo.Others, func(f *policy.RepoFile) bool { return f.Name == name.V })
	if i < 0 {
		names := make([]string, len(b.Repo.Others))
		for k, f := range b.Repo.Others {
			names[k] = f.Name
		}
		d := diag.New(codeNoFile, name.Pos, path, "there is no readable file %s in the repo", name.V)
		if near := diag.Nearest(name.V, names); near != "" {
			d.Hint = "did you mean " + near + "?"
		}
		b.report(s.Doc, d)
		return 0, nil, false
	}
	file = b.Repo.Others[i].File
	data, err := b.read(file)
	if err != nil {
		b.report(s.Doc, diag.New(codeNoFile, name.Pos, path, "%s", err))
		return 0, nil, false
	}
	return file, data, true
}

// unnamed warns about documents that no policy names and files that no document names: they look like policy and are not in force.
func (b *boxes) unnamed() {
	used := map[string]bool{}
	for _, p := range b.Repo.Profiles {
		used[p.Sandbox.Policy.V] = true
	}
	for _, u := range b.Repo.Units {
		used[u.Overlay.Sandbox.Policy.V] = true
	}
	for _, s := range b.Sandboxes {
		if used[s.Doc.Name.V] {
			continue
		}
		b.report(s.Doc, diag.New(codeUnnamed, s.Doc.Name.Pos, "name", "no profile and no unit names sandbox %s, so it is not released", s.Doc.Name.V).WithHint("sandbox: {policy: %s}", s.Doc.Name.V))
		if s.Doc.OpenShell != nil && !s.Doc.Bad {
			for _, f := range b.compose(s) {
				b.report(s.Doc, f)
			}
		}
	}
	file := func(name, what string) {
		if b.named[name] {
			return
		}
		d := diag.New(codeUnreferenced, 0, "", "no Sandbox document names this %s, so it is not released", what)
		d.File = name
		b.diags.Add(d)
	}
	for _, f := range b.Repo.Packs {
		file(path.Join("packs", f.Name, pack.FileName), "pack")
	}
	for _, f := range b.Repo.Others {
		if f.Name != policy.WorkspaceFile {
			file(f.Name, "file")
		}
	}
	for _, name := range b.Repo.Strays {
		d := diag.New(codeUnreferenced, 0, "", "this file is no packs/NAME/pack.yaml, so it is not read and not released")
		d.File = name
		b.diags.Add(d)
	}
}

// build builds the policy.yaml of one agent.
func (s *Sandbox) build(agent openshell.Host, eg *openshell.Egress) *openshell.Built {
	in := s.compose
	in.Agent, in.Egress = agent, eg
	return openshell.Build(in)
}

// compose composes a document for each of its agents without a target, so with nothing denied, and returns what is wrong.
func (b *boxes) compose(s *Sandbox) []diag.Diagnostic {
	eg := &openshell.Egress{Policy: egress.Compile(egress.Rules{}), DeniedOnly: true, Permit: texted(s.Doc.OpenShell.Permit, "policy.permit")}
	var out []diag.Diagnostic
	for _, agent := range texted(s.Doc.OpenShell.Agents, "policy.agents") {
		for _, d := range openshell.Diagnostics(s.build(agent, eg).Findings) {
			if !slices.ContainsFunc(out, func(x diag.Diagnostic) bool { return sameFinding(x, d) }) {
				out = append(out, d)
			}
		}
	}
	return out
}

func sameFinding(a, b diag.Diagnostic) bool {
	return a.Code == b.Code && a.Pos == b.Pos && a.Message == b.Message
}

// sandboxed returns the plan of a policy with its Sandbox document, and nothing else yet.
func (c *Compiled) sandboxed(p *effective.Policy) *Plan {
	plan := &Plan{Policy: p}
	if p.Box != nil {
		plan.Sandbox = c.Sandbox(p.Box.Name.V)
	}
	return plan
}

// Agents returns the agents that a document's policy.yaml is written for, none without a policy section.
func (s *Sandbox) Agents() []openshell.Host {
	if s.Doc.OpenShell == nil {
		return nil
	}
	return texted(s.Doc.OpenShell.Agents, "policy.agents")
}

// OpenShell composes the policy.yaml of one of the document's agents as a release carries it for targets of the policy.
func (s *Sandbox) OpenShell(agent openshell.Host, p *effective.Policy) *openshell.Built {
	o := s.Doc.OpenShell
	eg := &openshell.Egress{Policy: p.Hosts, DeniedOnly: o.Egress.V == "none", Permit: texted(o.Permit, "policy.permit")}
	for _, port := range o.Ports {
		eg.Ports = append(eg.Ports, uint16(port.V))
	}
	return s.build(agent, eg)
}

// openshell composes the policy.yaml of every agent for a plan.
func (p *Plan) openshell() {
	if p.Sandbox == nil || p.Sandbox.Doc.OpenShell == nil {
		return
	}
	for _, agent := range p.Sandbox.Agents() {
		b := p.Sandbox.OpenShell(agent, p.Policy)
		p.OpenShell = append(p.OpenShell, PolicyFile{Agent: agent.Text, Policy: b.Policy, Gaps: b.Gaps, Content: b.Data})
		p.findings = append(p.findings, openshell.Diagnostics(b.Findings)...)
		for _, g := range b.Gaps {
			p.findings = append(p.findings, g.Finding.Diagnostic)
		}
	}
}

// reportSandboxes reports what composing found, each finding once, and units whose sandbox allows what their ring's does not.
func (c *Compiled) reportSandboxes(plans []*Plan, diags *diag.List) {
	type key struct {
		code    *diag.Code
		pos     diag.Pos
		message string
	}
	seen := map[key]bool{}
	add := func(d diag.Diagnostic) {
		if k := (key{d.Code, d.Pos, d.Message}); seen[k] {
			return
		} else {
			seen[k] = true
		}
		if h := c.Repo.DocumentAt(d.Pos); h != nil && d.Document == "" {
			d.Document = h.ID()
		}
		diags.Add(d)
	}
	for _, p := range plans {
		for _, d := range p.findings {
			add(d)
		}
	}
	for _, t := range c.Targets {
		base := c.Resolver.Profile(t.Ring.Profile.V)
		if len(t.Units) == 0 || base == nil || base.Box == nil || t.Policy.Box == nil {
			continue
		}
		for _, u := range t.Units {
			if own := u.Overlay.Sandbox.Policy; own.IsSet() && len(t.Units) > 1 && effective.LooserBox(c.Repo.Sandbox(own.V), t.Policy.Box) {
				add(diag.New(codeUnranked, own.Pos, "overlay.sandbox.policy", "units that apply together name sandboxes %s and %s, and neither is as strict as the other", own.V, t.Policy.Box.Name.V))
			}
		}
		ring, unit := c.plans[base], c.plans[t.Policy]
		if base.Box == t.Policy.Box || ring == nil || unit == nil {
			continue
		}
		at := t.Policy.Sandbox.Policy.Pos
		for _, f := range unit.OpenShell {
			i := slices.IndexFunc(ring.OpenShell, func(r PolicyFile) bool { return r.Agent == f.Agent })
			if i < 0 {
				add(diag.New(codeLooserPolicy, at, "overlay.sandbox.policy", "sandbox %s is for agent %s too, which ring %s has no sandbox for", t.Policy.Box.Name.V, f.Agent, t.Ring.Name.V))
				continue
			}
			if f.Content == nil || ring.OpenShell[i].Content == nil {
				continue
			}
			if w, looser := openshell.Looser(ring.OpenShell[i].Policy, f.Policy); looser {
				add(diag.New(codeLooserPolicy, at, "overlay.sandbox.policy", "the policy.yaml of sandbox %s for %s allows what ring %s does not: %s", t.Policy.Box.Name.V, f.Agent, t.Ring.Name.V, w).
					WithRelated(base.Sandbox.Policy.Pos, "what the ring has"))
			}
		}
	}
}

// sandboxCoverage says how far the files of the plan's Sandbox document hold.
func (p *Plan) sandboxCoverage() []coverage.Sandbox {
	var out []coverage.Sandbox
	if p.Sandbox == nil {
		return nil
	}
	name := p.Sandbox.Doc.Name.V
	for _, f := range p.OpenShell {
		x := coverage.Sandbox{Sandbox: name, File: "openshell", Agent: f.Agent, Grade: harness.Enforced.String(), Limits: []string{}, Evidence: openshell.Evidence}
		for _, g := range f.Gaps {
			x.Limits = append(x.Limits, g.Finding.Message)
		}
		out = append(out, x)
	}
	if p.Sandbox.Config != nil {
		out = append(out, coverage.Sandbox{Sandbox: name, File: "defenseclaw", Grade: harness.Overridable.String(), Evidence: pack.Evidence,
			Limits: []string{"the admin block binds where DefenseClaw's deployment mode is managed_enterprise; elsewhere a user can edit it"}})
	}
	return out
}
