// Package compiler turns a policy repo into what every device gets. Compile is the pipeline; reading its stages is reading the program.
package compiler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Input is a policy repo and how to compile it.
type Input struct {
	FS fs.FS
	// Now is the instant at which expiry is judged.
	Now time.Time
	// Ring limits the targets to one ring, "" means all.
	Ring string
	// Keep keeps the bytes of rendered files. Without it they are checked and dropped.
	Keep bool
	// NoRender stops before rendering, for questions that files do not answer.
	NoRender bool
	// Question, when set, reads only what a question about its ring and units needs.
	Question *policy.Question
	// Inspect, when set, sees the bytes of every file of the repo that is read, once, and reports whether it found anything; it is called concurrently.
	Inspect func(file int, data []byte) bool
	// Memory, when set, saves work that an earlier run did and found nothing wrong in. It is not used with Keep.
	Memory Memory
	// Workers is the number of files and policies worked on at a time; 0 means one per processor.
	Workers int
	Limits  source.Limits
}

// Memory has what an earlier run of the same program made. It is called concurrently.
type Memory interface {
	policy.Memory
	// Plan returns the text that was kept for everything that a plan depends on.
	Plan(of [sha256.Size]byte) (text string, ok bool)
	// KeepPlan keeps a text for a plan.
	KeepPlan(of [sha256.Size]byte, text []byte)
}

// Compiled is a repo with everything that was made of it. It is read-only.
type Compiled struct {
	Repo      *policy.Repo
	Resolver  *effective.Resolver
	Targets   []effective.Target
	Permits   []check.Permit
	Harnesses []*harness.Harness
	// Sandboxes are the Sandbox documents, by name. A question that left files out has none.
	Sandboxes []*Sandbox
	fs        fs.FS
	packs     map[string]*RepoPack
	plans     map[*effective.Policy]*Plan
}

// Plan is what one effective policy is rendered to; targets of equal policy share it.
type Plan struct {
	Policy     *effective.Policy
	Renderings []*Rendering
	// Sandbox is the Sandbox document that the policy names, nil for none; OpenShell has its policy.yaml for each agent.
	Sandbox   *Sandbox
	OpenShell []PolicyFile
	findings  []diag.Diagnostic
	// lacks is made when Lacks is first asked.
	lacks map[string]bool
}

// Rendering is the part of a plan for one harness on one operating system.
type Rendering struct {
	Harness *harness.Harness
	Pin     *policy.Pin
	OS      string
	Version harness.Version
	// Files are sorted by destination; their content is nil when it was not kept.
	Files []harness.File
	Gaps  []harness.Gap
}

// Lacks reports whether the plan has the same gap.
func (p *Plan) Lacks(g harness.Gap) bool {
	if p == nil {
		return false
	}
	if p.lacks == nil {
		p.lacks = map[string]bool{}
		for _, r := range p.Renderings {
			for _, own := range r.Gaps {
				p.lacks[own.OS+"\x00"+own.Key()] = true
			}
		}
	}
	return p.lacks[g.OS+"\x00"+g.Key()]
}

// Compile runs the pipeline. It always answers with what it has; whether that may be used is in diags.
func Compile(ctx context.Context, in Input, diags *diag.List) *Compiled {
	c := &Compiled{Harnesses: all.Harnesses(), fs: in.FS, packs: map[string]*RepoPack{}, plans: map[*effective.Policy]*Plan{}}
	if in.Keep {
		in.Memory = nil
	}
	c.Repo = policy.Load(ctx, in.FS, policy.Options{Limits: in.Limits, Workers: in.Workers, ReadPack: pack.Check, Inspect: in.Inspect, Memory: in.Memory, Question: in.Question}, diags)
	if in.Question == nil {
		c.sandboxes(diags)
	}
	c.Resolver = effective.NewResolver(c.Repo)
	c.Targets = c.Resolver.Targets()
	if diags.NoAnswer() {
		return c
	}
	c.Permits = check.Repo(check.Input{Repo: c.Repo, Resolver: c.Resolver, Targets: c.Targets, Overrides: c.overrides(), Now: in.Now, Partial: in.Question != nil}, diags)
	if in.Ring != "" {
		c.Targets = slices.DeleteFunc(c.Targets, func(t effective.Target) bool { return t.Ring.Name.V != in.Ring })
	}
	if in.NoRender {
		return c
	}
	plans := c.plan(diags)
	c.render(ctx, plans, in, diags)
	c.report(plans, diags)
	c.reportSandboxes(plans, diags)
	return c
}

func (c *Compiled) overrides() map[string][]string {
	out := make(map[string][]string, len(c.Harnesses))
	for _, h := range c.Harnesses {
		out[h.ID] = h.Overrides
	}
	return out
}

// Harness returns the harness of an id, or nil.
func (c *Compiled) Harness(id string) *harness.Harness {
	i := slices.IndexFunc(c.Harnesses, func(h *harness.Harness) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	return c.Harnesses[i]
}

// Target returns the target of an id.
func (c *Compiled) Target(id string) (effective.Target, bool) {
	i := slices.IndexFunc(c.Targets, func(t effective.Target) bool { return t.ID == id })
	if i < 0 {
		return effective.Target{}, false
	}
	return c.Targets[i], true
}

// Plan returns what a target is rendered to, or nil when its policy has errors.
func (c *Compiled) Plan(t effective.Target) *Plan { return c.plans[t.Policy] }

// plan groups the targets' policies by meaning, so that each is rendered once.
func (c *Compiled) plan(diags *diag.List) []*Plan {
	byDigest := map[[sha256.Size]byte]*Plan{}
	var out []*Plan
	for _, t := range c.Targets {
		if t.Policy.Box != nil && t.Policy.Box.Bad {
			t.Policy.Bad = true
		}
		if t.Policy.Unfit() || c.plans[t.Policy] != nil {
			continue
		}
		digest := t.Policy.Digest()
		p := byDigest[digest]
		if p == nil {
			p = c.sandboxed(t.Policy)
			for i := range t.Policy.Harnesses {
				pin := &t.Policy.Harnesses[i]
				h := c.Harness(pin.Harness.V)
				v, ok := harness.ParseVersion(pin.Version.V)
				if h == nil || !ok {
					continue
				}
				for _, os := range policy.OSes {
					p.Renderings = append(p.Renderings, &Rendering{Harness: h, Pin: pin, OS: os, Version: v})
				}
			}
			byDigest[digest] = p
			out = append(out, p)
		}
		c.plans[t.Policy] = p
	}
	return out
}

// render renders every plan, reads the bytes back with the harness's strict reader, and drops them unless they are wanted.
func (c *Compiled) render(ctx context.Context, plans []*Plan, in Input, diags *diag.List) {
	org, gatewayURL, models := c.gateway()
	workers := in.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range min(workers, len(plans)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(plans) {
					return
				}
				p := plans[i]
				p.openshell()
				var of [sha256.Size]byte
				if in.Memory != nil {
					of = p.identity(org, gatewayURL, models)
					if text, ok := in.Memory.Plan(of); ok && p.recall(text) {
						continue
					}
				}
				var found diag.List
				for _, r := range p.Renderings {
					t := harness.Target{Policy: p.Policy, OS: r.OS, Version: r.Version, Org: org, GatewayURL: gatewayURL, Models: models}
					r.run(t, in.Keep, &found)
				}
				if found.Len() > 0 {
					diags.Add(found.Sorted()...)
				} else if in.Memory != nil {
					in.Memory.KeepPlan(of, p.stored())
				}
			}
		})
	}
	wg.Wait()
}

func (r *Rendering) run(t harness.Target, keep bool, diags *diag.List) {
	r.Files, r.Gaps = r.Harness.Render(t)
	slices.SortFunc(r.Files, func(a, b harness.File) int { return strings.Compare(a.Dest, b.Dest) })
	for _, f := range r.Harness.Check(t, r.Files) {
		d := diag.New(codeRecheck, r.Pin.Harness.Pos, "harnesses."+r.Harness.ID, "the file rendered for %s on %s would not hold: %s %s: %s", r.Harness.ID, r.OS, f.Dest, f.Pointer, f.Message)
		diags.Add(d)
	}
	for i := range r.Files {
		f := &r.Files[i]
		if what := check.KnownSecret(string(f.Content)); what != "" {
			diags.Add(diag.New(codeRenderedSecret, r.Pin.Harness.Pos, "harnesses."+r.Harness.ID, "the file %s rendered for %s holds what looks like %s", f.Dest, r.Harness.ID, what))
		}
		if !keep {
			f.Content = nil
		}
	}
}

// gateway returns what renderers need to know of the gateway.
func (c *Compiled) gateway() (org, baseURL string, models map[string]string) {
	if c.Repo.Root != nil {
		org = c.Repo.Root.Org.V
	}
	g := c.Repo.Gateway
	if g == nil {
		return org, "", nil
	}
	models = make(map[string]string, len(g.Models))
	for _, m := range g.Models {
		// What a harness asks the gateway for is the alias; the gateway maps it to the upstream's model.
		models[m.Alias.V] = m.Alias.V
	}
	return org, g.BaseURL.V, models
}

// Grade returns how far a rendering holds a concept: the capability of the harness, lowered by what this policy's gaps say.
func (r *Rendering) Grade(concept harness.Concept) (harness.Grade, harness.Capability) {
	row := r.Harness.Capability(concept, r.OS, r.Version)
	g := row.Grade
	for _, gap := range r.Gaps {
		if gap.Concept == concept {
			g = min(g, gap.Grade)
		}
	}
	return g, row
}

// reported is one gap over all plans and systems it occurs in.
type reported struct {
	gap harness.Gap
	oss map[string]bool
	pin *policy.Pin
	of  *effective.Policy
}

// report turns gaps into warnings, each once, and gaps that the policy requires to be closed into errors.
func (c *Compiled) report(plans []*Plan, diags *diag.List) {
	gaps := map[string]*reported{}
	versions := map[*policy.Pin]bool{}
	for _, p := range plans {
		for _, r := range p.Renderings {
			if !versions[r.Pin] {
				versions[r.Pin] = true
				c.version(r, diags)
			}
			for _, g := range r.Gaps {
				key := g.Key()
				at := gaps[key]
				if at == nil {
					at = &reported{gap: g, oss: map[string]bool{}, pin: r.Pin, of: p.Policy}
					gaps[key] = at
				} else if r.Pin.Harness.Pos < at.pin.Harness.Pos {
					at.pin, at.of = r.Pin, p.Policy
				}
				at.oss[g.OS] = true
			}
		}
		c.require(p, diags)
	}
	at := places{}
	for _, key := range slices.Sorted(maps.Keys(gaps)) {
		g := gaps[key]
		oss := slices.Sorted(maps.Keys(g.oss))
		where := strings.Join(oss, ", ")
		if len(oss) == len(policy.OSes) {
			where = "every system"
		}
		d := diag.New(gapCode(g.gap.Grade), g.pin.Harness.Pos, "harnesses."+g.gap.Harness, "%s on %s: %s", g.gap.Harness, where, strings.TrimPrefix(g.gap.Reason, g.gap.Harness+": "))
		d.Hint = g.gap.Remedy
		c.Repo.Locate(&d)
		diags.Add(d.WithRelated(at.place(g.of, g.gap.Field, g.gap.Entry), "%s", strings.TrimSpace(g.gap.Field+" "+g.gap.Entry)))
	}
}

// places remembers where the entries of protected paths stand, since a policy may have a gap for every one of them.
type places map[*effective.Policy]map[string]diag.Pos

func (m places) place(p *effective.Policy, field, entry string) diag.Pos {
	if field != "sandbox.protectedPaths" || entry == "" {
		return Place(p, field, entry)
	}
	at := m[p]
	if at == nil {
		at = make(map[string]diag.Pos, len(p.Sandbox.ProtectedPaths.Items))
		for _, f := range p.Sandbox.ProtectedPaths.Items {
			if _, ok := at[f.Path.String()]; !ok {
				at[f.Path.String()] = f.Pos
			}
		}
		m[p] = at
	}
	return cmp.Or(at[entry], p.Sandbox.ProtectedPaths.Pos)
}

// version warns about a pin outside the versions that the tables know.
func (c *Compiled) version(r *Rendering, diags *diag.List) {
	h := r.Harness
	d := diag.Diagnostic{}
	switch {
	case h.Known.Less(r.Version):
		d = diag.New(codeNewVersion, r.Pin.Version.Pos, "harnesses."+h.ID+".version", "%s %s is newer than %s, the newest version that halo knows; what it holds is assumed, not observed", h.ID, r.Version, h.Known)
	case r.Version.Less(h.Oldest):
		d = diag.New(codeOldVersion, r.Pin.Version.Pos, "harnesses."+h.ID+".version", "%s %s is older than %s, the oldest version that halo renders for; what it holds is not known", h.ID, r.Version, h.Oldest)
	default:
		return
	}
	c.Repo.Locate(&d)
	diags.Add(d)
}

// require reports requirements that a rendering does not meet.
func (c *Compiled) require(p *Plan, diags *diag.List) {
	reqs := p.Policy.Require
	if c.Repo.Root != nil {
		reqs = append(slices.Clip(reqs), c.Repo.Root.Require...)
	}
	for _, q := range reqs {
		want, _ := harness.ParseGrade(q.Grade.V)
		for _, r := range p.Renderings {
			if r.Harness.ID != q.Harness.V || len(q.OS.Items) > 0 && !slices.ContainsFunc(q.OS.Items, func(s source.Str) bool { return s.V == r.OS }) {
				continue
			}
			got, row := r.Grade(harness.Concept(q.Concept.V))
			if got >= want {
				continue
			}
			why := row.Limit
			for _, g := range r.Gaps {
				if g.Concept == harness.Concept(q.Concept.V) && g.Grade == got {
					why = g.Reason
					break
				}
			}
			d := diag.New(codeRequired, q.Pos, "require", "%s %s on %s reaches %s for %s, and the policy requires %s: %s", r.Harness.ID, r.Version, r.OS, got, q.Concept.V, want, why)
			c.Repo.Locate(&d)
			diags.Add(d)
		}
	}
}

// Place returns where a field of a policy was written: the list entry when one is named, else the value. It is not valid for a field nobody wrote.
func Place(p *effective.Policy, field, entry string) diag.Pos {
	hosts := func(l policy.Hosts) diag.Pos {
		for _, h := range l.Items {
			if h.Pattern.String() == entry {
				return h.Pos
			}
		}
		return l.Pos
	}
	paths := func(l policy.FilePaths) diag.Pos {
		for _, f := range l.Items {
			if f.Path.String() == entry {
				return f.Pos
			}
		}
		return l.Pos
	}
	strs := func(l source.Strs) diag.Pos {
		for _, s := range l.Items {
			if s.V == entry {
				return s.Pos
			}
		}
		return l.Pos
	}
	pairs := func(l []source.Pair) diag.Pos {
		for _, s := range l {
			if s.Key.V == entry || entry == "" {
				return s.Key.Pos
			}
		}
		return 0
	}
	switch field {
	case "egress", "egress.default":
		return cmp.Or(p.Egress.Default.Pos, p.Egress.AllowedDomains.Pos, p.Egress.Presets.Pos, p.Egress.DeniedDomains.Pos)
	case "egress.allowedDomains":
		return cmp.Or(hosts(p.Egress.AllowedDomains), p.Egress.Presets.Pos)
	case "egress.presets":
		return strs(p.Egress.Presets)
	case "egress.deniedDomains":
		return hosts(p.Egress.DeniedDomains)
	case "sandbox", "sandbox.mode", "permissions.sandbox":
		return cmp.Or(p.Sandbox.Mode.Pos, p.Sandbox.ProtectedPaths.Pos, p.Sandbox.WritableRoots.Pos)
	case "sandbox.writableRoots":
		return paths(p.Sandbox.WritableRoots)
	case "sandbox.protectedPaths":
		return paths(p.Sandbox.ProtectedPaths)
	case "permissions.mode":
		return p.Permissions.Mode.Pos
	case "permissions.allow":
		return strs(p.Permissions.Allow)
	case "permissions.ask":
		return strs(p.Permissions.Ask)
	case "permissions.deny":
		return strs(p.Permissions.Deny)
	case "permissions.disableBypass":
		return p.Permissions.DisableBypass.Pos
	case "permissions.sandboxRequired":
		return p.Permissions.SandboxRequired.Pos
	case "mcp.managedOnly":
		return p.MCP.ManagedOnly.Pos
	case "mcp.servers":
		return p.MCP.ServersPos
	case "mcp.denied":
		return strs(p.MCP.Denied)
	case "hooks.managedOnly":
		return p.Hooks.ManagedOnly.Pos
	case "hooks", "hooks.items":
		return p.Hooks.Pos
	case "models.default":
		return p.Models.Default.Pos
	case "models.allowed":
		return strs(p.Models.Allowed)
	case "models.enforce":
		return p.Models.Enforce.Pos
	case "telemetry", "telemetry.enabled":
		return p.Telemetry.Enabled.Pos
	case "telemetry.otlpEndpoint":
		return p.Telemetry.OTLPEndpoint.Pos
	case "telemetry.protocol":
		return p.Telemetry.Protocol.Pos
	case "telemetry.logPrompts":
		return p.Telemetry.LogPrompts.Pos
	case "telemetry.attributes":
		return pairs(p.Telemetry.Attributes)
	case "instructions":
		return p.Instructions.Pos
	case "env":
		return pairs(p.Env)
	}
	return 0
}
