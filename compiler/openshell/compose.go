package openshell

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// Input is what one policy.yaml is composed from. The zero Input composes the built-in base alone.
type Input struct {
	// Base is a parsed policy of the repo; nil is the built-in base.
	Base *Fragment
	// Agent is claude or opencode; empty text is no agent.
	Agent Host
	// Provider and BaseURL choose the inference provider; empty text is none.
	Provider, BaseURL Host
	// Hosts are the workspace hosts, from a workspace.json or from the document.
	Hosts []Host
	// Fragments are further policies of the repo, in order.
	Fragments []Fragment
	// Replace lists the slugs that a later source may take over.
	Replace []Host
	// Egress is the target's egress policy; nil composes without one.
	Egress *Egress
	// At is the place of what asked for the policy, for findings about the built-in base and about the policy as a whole. Its Text is not used.
	At Host
}

// Fragment is a policy document of the repo.
type Fragment struct {
	Name   string // file name, for messages
	Policy *Policy
}

// Composed is the outcome of Compose.
type Composed struct {
	Policy *Policy
	// Findings are those of composing; Check finds what is wrong with the outcome.
	Findings []Finding
	// Gaps say where the policy differs from what the egress policy says. It is never looser.
	Gaps []Gap
}

// EgressSlug is the slug of the rule that holds the profile's allowed hosts.
const EgressSlug = "halo_egress"

// source is one policy on its way into the composed one.
type source struct {
	name    string
	builtin bool
	rules   []Rule
}

// Compose merges the sources base, inference, agent, workspace and fragments in that order, keyed by slug; the file system, landlock, process and
// middleware sections are those of the base. A slug that is taken is an error unless Replace lists it. It then applies the egress policy.
// The inputs are not changed. With errors among the findings the policy is incomplete.
func Compose(in Input) *Composed {
	c := &composer{in: in, out: &Policy{Version: 1}, builtin: map[string]bool{}}
	sources := []source{c.base()}
	a, hasAgent := c.agent()
	if s, ok := c.inference(a, hasAgent); ok {
		sources = append(sources, s)
	}
	if hasAgent {
		sources = append(sources, source{originAgent(a.id), true, []Rule{{Slug: a.slug, Name: a.name, Endpoints: a.endpoints(), Binaries: binaries(a.binary)}}})
	}
	workBinaries := WorkspaceBinaries()
	if hasAgent {
		workBinaries = append(workBinaries, a.binary)
	}
	if s, ok := c.workspace(workBinaries); ok {
		sources = append(sources, s)
	}
	for _, f := range in.Fragments {
		sources = append(sources, c.fragment(f))
	}
	eg := newEgressFilter(in.Egress, &c.fs, &c.gaps)
	for _, s := range sources {
		c.merge(s, eg)
	}
	// Only what is left after replacing counts against the egress policy.
	if eg != nil {
		for i := range c.out.Rules {
			eg.filter(&c.out.Rules[i], c.builtin[c.out.Rules[i].Slug])
		}
		c.out.Rules = slices.DeleteFunc(c.out.Rules, func(r Rule) bool { return c.builtin[r.Slug] && len(r.Endpoints) == 0 })
		eg.addRule(c.out, workBinaries)
	}
	c.unusedReplace()
	slices.SortFunc(c.out.Rules, func(a, b Rule) int { return strings.Compare(a.Slug, b.Slug) })
	if eg != nil {
		eg.inspectedGaps(c.out)
	}
	sortFindings(c.fs)
	return &Composed{Policy: c.out, Findings: c.fs, Gaps: c.gaps}
}

type composer struct {
	in       Input
	out      *Policy
	fs       findings
	gaps     []Gap
	replaced []string
	builtin  map[string]bool // slugs whose rule is built in
}

func (c *composer) base() source {
	p, s := BuiltinBase(), source{"the built-in base", true, nil}
	if c.in.Base != nil {
		p, s = c.in.Base.Policy, source{c.in.Base.Name, false, nil}
	}
	c.out.Place, c.out.Version = p.Place, p.Version
	c.out.Filesystem, c.out.Landlock, c.out.Process, c.out.Middlewares = p.Filesystem, p.Landlock, p.Process, p.Middlewares
	s.rules = p.Rules
	return s
}

func (c *composer) agent() (agent, bool) {
	id := c.in.Agent
	if id.Text == "" {
		return agent{}, false
	}
	a, ok := findAgent(id.Text)
	if !ok {
		hint := "agents of OpenShell: " + strings.Join(Agents(), ", ")
		if id.Text == "claude-code" {
			hint = "write claude, OpenShell's name for it"
		} else if near := diag.Nearest(id.Text, Agents()); near != "" {
			hint = "did you mean " + near + "?"
		}
		c.fs.compose(codeAgent, id.Pos, id.Path, hint, "%q is not an agent of OpenShell", clip(id.Text))
	}
	return a, ok
}

func (c *composer) inference(a agent, hasAgent bool) (source, bool) {
	id, url := c.in.Provider, c.in.BaseURL
	none := source{}
	if id.Text == "" {
		if url.Text != "" {
			c.fs.compose(codeBaseURL, url.Pos, url.Path, "add the provider", "a base URL without a provider")
		}
		return none, false
	}
	all := providers()
	i := slices.IndexFunc(all, func(p provider) bool { return p.id == id.Text })
	if i < 0 {
		hint := "providers: " + strings.Join(Providers(""), ", ")
		if near := diag.Nearest(id.Text, Providers("")); near != "" {
			hint = "did you mean " + near + "?"
		}
		c.fs.compose(codeAgent, id.Pos, id.Path, hint, "%q is not an inference provider", clip(id.Text))
		return none, false
	}
	p := all[i]
	ok := true
	if url.Text != "" && !p.baseURL {
		c.fs.compose(codeBaseURL, url.Pos, url.Path, "remove the base URL", "inference provider %s takes no base URL", p.id)
		ok = false
	}
	switch {
	case c.in.Agent.Text == "":
		c.fs.compose(codeNoAgent, id.Pos, id.Path, "add the agent", "inference provider %s without an agent has no binary to apply to and adds nothing", p.id)
		ok = false
	case hasAgent && !slices.Contains(a.providers, p.id):
		c.fs.compose(codeAgent, id.Pos, id.Path, "providers of "+a.id+": "+strings.Join(a.providers, ", "), "agent %s does not support inference provider %s", a.id, p.id)
		ok = false
	case !hasAgent:
		ok = false
	}
	if !ok {
		return none, false
	}
	s := source{name: originProvider(p.id), builtin: true}
	r := Rule{Slug: p.id, Name: p.id, Binaries: binaries(a.binary)}
	if url.Text == "" {
		r.Endpoints = p.endpoints()
	} else {
		host, port, err := baseURLTarget(url.Text)
		if err != nil {
			c.fs.compose(codeBaseURL, url.Pos, url.Path, "write https://host or https://host:port", "base URL %q cannot be used: %v", clip(url.Text), err)
			return none, false
		}
		if p.localhost && host == "localhost" {
			host = localMachine
		}
		// The host is the repo's own, so the egress policy holds against it as for any file of the repo.
		s.name, s.builtin = "the base URL", false
		e := inspect(host, "full")
		e.Port, e.Pos, e.Place.Path = port, url.Pos, url.Path
		r.Endpoints = []Endpoint{e}
		r.Pos, r.Place.Path = url.Pos, url.Path
	}
	s.rules = []Rule{r}
	return s, true
}

func (c *composer) workspace(workBinaries []string) (source, bool) {
	r := Rule{Slug: "workspace", Name: "workspace", Binaries: binaries(workBinaries...)}
	for _, h := range c.in.Hosts {
		t, port, err := workspaceTarget(h.Text)
		if err != nil {
			c.fs.compose(codeWorkspaceHost, h.Pos, h.Path, "write host or host:port", "invalid workspace host %q: %v", clip(h.Text), err)
			continue
		}
		if t.extra {
			c.fs.compose(codeWorkspaceDrop, h.Pos, h.Path, "write the host alone", "workspace host %q: only %s and port %d are used", clip(h.Text), t.host, port)
		} else if own, web := webPort(t.scheme); web && t.port < 0 && own != 443 {
			c.fs.compose(codeWorkspaceDrop, h.Pos, h.Path, "write the port after the host", "workspace host %q means port 443, the scheme %s does not count", clip(h.Text), t.scheme)
		}
		r.Endpoints = append(r.Endpoints, Endpoint{Place: Place{Pos: h.Pos, Path: h.Path}, Host: t.host, Port: port})
	}
	if len(r.Endpoints) == 0 {
		return source{}, false
	}
	r.Place = r.Endpoints[0].Place
	return source{"the workspace hosts", false, []Rule{r}}, true
}

func (c *composer) fragment(f Fragment) source {
	p := f.Policy
	for _, s := range []struct {
		there bool
		key   string
	}{{p.Filesystem != nil, "filesystem_policy"}, {p.Landlock != nil, "landlock"}, {p.Process != nil, "process"}, {len(p.Middlewares) > 0, "network_middlewares"}} {
		if s.there {
			c.fs.compose(codeSection, p.At(s.key), s.key, "move it to the base", "%s of the fragment %s is not used", s.key, f.Name)
		}
	}
	return source{f.Name, false, p.Rules}
}

// merge adds the rules of a source.
func (c *composer) merge(s source, eg *egressFilter) {
	for _, r := range s.rules {
		r.Origin = s.name
		r.Endpoints = slices.Clone(r.Endpoints)
		for i := range r.Endpoints {
			// Both values are accepted and do nothing (Check warned about them); what halo writes does not carry them on.
			if t := r.Endpoints[i].TLS; t == "terminate" || t == "passthrough" {
				r.Endpoints[i].TLS = ""
			}
		}
		if eg != nil && r.Slug == EgressSlug && eg.writesRule() {
			c.fs.compose(codeSlug, r.At(""), r.Path, "choose another slug", "slug %s of %s is the one of the profile's egress rule", EgressSlug, s.name)
			continue
		}
		if i := slices.IndexFunc(c.out.Rules, func(o Rule) bool { return o.Slug == r.Slug }); i >= 0 {
			first := &c.out.Rules[i]
			if !slices.ContainsFunc(c.in.Replace, func(h Host) bool { return h.Text == r.Slug }) {
				c.taken(&r, first)
				continue
			}
			c.replaced = append(c.replaced, r.Slug)
			c.out.Rules = slices.Delete(c.out.Rules, i, i+1)
		}
		c.out.Rules = append(c.out.Rules, r)
		c.builtin[r.Slug] = s.builtin
	}
}

// taken reports a slug that two sources have, at the later one unless that is built in.
func (c *composer) taken(later, first *Rule) {
	hint := "rename it, or list " + clip(later.Slug) + " under replace"
	if pos := later.At(""); pos.IsValid() || !first.At("").IsValid() {
		f := c.fs.compose(codeSlug, pos, later.Place.Path, hint, "slug %q of %s is taken by %s", clip(later.Slug), later.Origin, first.Origin)
		f.Diagnostic, f.Origin = f.WithRelated(first.At(""), "the rule it would replace"), later.Origin
		return
	}
	f := c.fs.compose(codeSlug, first.At(""), first.Place.Path, hint, "slug %q of %s is the one of %s, which would replace it", clip(first.Slug), first.Origin, later.Origin)
	f.Origin = first.Origin
}

func (c *composer) unusedReplace() {
	for _, h := range c.in.Replace {
		if !slices.Contains(c.replaced, h.Text) {
			c.fs.compose(codeReplace, h.Pos, h.Path, "remove it", "replace lists %q, which no source replaces", clip(h.Text))
		}
	}
}
