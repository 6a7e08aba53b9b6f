package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/policy"
)

// agents are OpenShell's agents and the harnesses that they are.
var agents = [...][2]string{{"claude", policy.ClaudeCode}, {"opencode", policy.OpenCode}}

// openshellPolicy imports a policy.yaml. A profile knows neither executables nor paths of URLs, so the policy stays what it is: a base and a fragment that a Sandbox
// document names, composed without the built-in rules of the agent and without a rule of the profile. The profile gets the hosts that the agent's own executable
// reaches without a limit.
func openshellPolicy(ctx context.Context, in Input, r *Result) (*Result, error) {
	if len(in.Files) != 1 {
		return nil, errors.New("one policy.yaml is imported at a time")
	}
	f := in.Files[0]
	if len(f.Data) > draft.MaxBytes {
		return nil, fmt.Errorf("%s: it is larger than %d MiB", f.Name, draft.MaxBytes>>20)
	}
	p, found := openshell.Parse(0, f.Data)
	if err := refusal(f, found); err != nil {
		return nil, err
	}
	root, err := tree(f)
	if err != nil {
		return nil, err
	}
	agent, id := agents[0][0], agents[0][1]
	for _, a := range slices.Backward(agents[:]) {
		if slices.ContainsFunc(p.Rules, func(r openshell.Rule) bool { return runs(r, a[0]) }) {
			agent, id = a[0], a[1]
		}
	}
	harnesses := all.Harnesses()
	h := harnesses[slices.IndexFunc(harnesses, func(h *harness.Harness) bool { return h.ID == id })]
	d := &draft.Draft{Harness: id, OS: r.OS, Known: h.Known.String(), Secret: check.Secret, Files: in.Files, Roots: []*draft.Node{root}}
	r.Harness = OpenShell
	r.Name = in.Name
	if r.Name == "" {
		r.Name = "imported"
	}
	if !policy.ValidName(r.Name) {
		return nil, fmt.Errorf("%q is not a name: lower-case letters, digits and dashes", r.Name)
	}
	if what := check.KnownSecret(string(f.Data)); what != "" {
		return nil, fmt.Errorf("%s: it holds what looks like %s, and a release is read by every device; take it out first", f.Name, what)
	}
	strict(d, root, p)
	base, rules := "openshell/"+r.Name+"-base.yaml", "openshell/"+r.Name+"-rules.yaml"
	hosts(d, root, p, agent)
	d.Keep("in "+base+", which the Sandbox document names", root.Get("version"), root.Get("filesystem_policy"), root.Get("landlock"), root.Get("process"), root.Get("network_middlewares"))
	d.Keep("in "+rules+", which the Sandbox document names", root)
	r.Extra = map[string][]byte{
		base: openshell.Print(&openshell.Policy{Version: p.Version, Filesystem: p.Filesystem, Landlock: p.Landlock, Process: p.Process, Middlewares: p.Middlewares}),
	}
	composed := "  egress: profile\n"
	if replaced := replaces(p, agent); replaced != "" {
		r.Extra[rules] = openshell.Print(&openshell.Policy{Version: p.Version, Rules: p.Rules})
		composed = "  fragments: [" + draft.Quote(rules) + "]\n  replace: [" + draft.Quote(replaced) + "]\n  egress: none\n"
	}
	d.Put("sandbox.policy", r.Name, "")
	d.Documents = "---\n# The OpenShell policy as it was: no built-in rule of the agent, and no rule for the hosts of the profile.\napiVersion: halos.dev/v1\nkind: Sandbox\nname: " +
		draft.Quote(r.Name) + "\npolicy:\n  base: " + draft.Quote(base) + "\n  agents: [" + agent + "]\n" + composed
	d.Settle()
	return r, r.finish(ctx, d, r.Name)
}

// refusal returns the first error among findings, with its place.
func refusal(f draft.File, found []openshell.Finding) error {
	for _, x := range found {
		if x.Severity == diag.Error {
			return fmt.Errorf("%s: line %d: %s (%s); halo openshell check lists everything", f.Name, x.Pos.Line(), x.Path, x.Code.Title)
		}
	}
	return nil
}

// tree reads the document for its places. Its contents were parsed strictly before.
func tree(f draft.File) (*draft.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(f.Data, &doc); err != nil || len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s: it is not YAML", f.Name)
	}
	root := &draft.Node{File: f.Name}
	left := draft.MaxKeys
	if !fill(root, doc.Content[0], 0, &left) {
		return nil, fmt.Errorf("%s: it is nested more than %d levels deep or has more than %d keys and entries", f.Name, draft.MaxDepth, draft.MaxKeys)
	}
	return root, nil
}

func fill(n *draft.Node, y *yaml.Node, depth int, left *int) bool {
	if *left--; depth > draft.MaxDepth || *left < 0 {
		return false
	}
	for y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.Kind = draft.Object
		for i := 0; i+1 < len(y.Content); i += 2 {
			k := &draft.Node{File: n.File, Key: y.Content[i].Value, Pointer: jsondoc.Pointer(n.Pointer, y.Content[i].Value)}
			n.Kids = append(n.Kids, k)
			if !fill(k, y.Content[i+1], depth+1, left) {
				return false
			}
		}
	case yaml.SequenceNode:
		n.Kind = draft.List
		for i, c := range y.Content {
			k := &draft.Node{File: n.File, Pointer: n.Pointer + "/" + strconv.Itoa(i)}
			n.Kids = append(n.Kids, k)
			if !fill(k, c, depth+1, left) {
				return false
			}
		}
	default:
		n.Value = y.Value
	}
	return true
}

// runs reports whether a rule is for an agent's own executable.
func runs(r openshell.Rule, agent string) bool {
	return slices.ContainsFunc(r.Binaries, func(b openshell.Binary) bool { return b.Path == openshell.AgentBinary(agent) })
}

// strict makes a policy hold what it says: what OpenShell only logs is enforced, and what does nothing is left out. A build refuses both.
func strict(d *draft.Draft, root *draft.Node, p *openshell.Policy) {
	draft.RepeatedKeys(root)
	p.Rules = slices.DeleteFunc(p.Rules, func(r openshell.Rule) bool {
		n := root.At("network_policies", r.Slug)
		switch {
		case len(r.Binaries) == 0:
			d.Drop("a rule without binaries matches no process", n)
			d.Warn("a rule without binaries matches no process", n)
			return true
		case len(r.Endpoints) == 0:
			d.Drop("a rule without endpoints matches nothing", n)
			return true
		}
		return false
	})
	for i := range p.Rules {
		r := &p.Rules[i]
		at := root.At("network_policies", r.Slug, "endpoints").Items()
		for k := range r.Endpoints {
			e := &r.Endpoints[k]
			var n *draft.Node
			if k < len(at) {
				n = at[k]
			}
			if t := e.TLS; t == "terminate" || t == "passthrough" {
				e.TLS = ""
				d.Drop("the value does nothing", n.Get("tls"))
			}
			inspected := e.Protocol != "" && !strings.EqualFold(e.Protocol, "tcp") && !strings.EqualFold(e.Protocol, "sql")
			if inspected && !strings.EqualFold(e.Enforcement, "enforce") {
				e.Enforcement = "enforce"
				d.Warn("without enforcement: enforce violations are only logged; the fragment enforces what the rule says", n.Get("protocol"))
				if x := n.Get("enforcement"); x != nil {
					d.Keep("the fragment has enforce", x)
				}
			}
		}
	}
}

// hosts gives the profile what the agent's own executable reaches without a limit on port 443.
func hosts(d *draft.Draft, root *draft.Node, p *openshell.Policy, agent string) {
	for _, r := range p.Rules {
		if !runs(r, agent) {
			continue
		}
		at := root.At("network_policies", r.Slug, "endpoints").Items()
		for k, e := range r.Endpoints {
			open := e.Protocol == "" || e.Access == "full" && len(e.DenyRules) == 0 && len(e.Rules) == 0
			if !open || e.Path != "" && e.Path != "**" || len(e.AllowedIPs) > 0 || !slices.Contains(e.EffectivePorts(), 443) || k >= len(at) {
				continue
			}
			name := strings.ToLower(e.Host)
			if rest, ok := strings.CutPrefix(name, "**."); ok {
				name = "*." + rest
			} else if strings.Contains(name, "*") {
				continue
			}
			if _, problem := host.ParsePattern(name); problem == nil && len(d.Values(draft.Allowed)) < draft.MaxKeys {
				d.Put(draft.Allowed, name, "", at[k].Get("host"))
			}
		}
	}
	if !d.Has(draft.Allowed, "") {
		d.Add(draft.Default, "deny", "no host is open to the agent's own executable without a limit, and the profile knows no limits")
	}
}

// replaces returns the slug of the agent's built-in rule, which the fragment takes over: a rule of the input of that slug, else a second copy of another rule, which
// allows nothing more. Without any rule nothing is taken over, and the profile's default keeps the built-in hosts out.
func replaces(p *openshell.Policy, agent string) string {
	if len(p.Rules) == 0 {
		return ""
	}
	built := openshell.Compose(openshell.Input{Base: &openshell.Fragment{Policy: &openshell.Policy{Version: 1}}, Agent: openshell.Host{Text: agent}}).Policy
	slug := built.Rules[0].Slug
	if p.Rule(slug) == nil {
		again := p.Rules[0]
		again.Slug = slug
		p.Rules = append(p.Rules, again)
		slices.SortFunc(p.Rules, func(a, b openshell.Rule) int { return strings.Compare(a.Slug, b.Slug) })
	}
	return slug
}
