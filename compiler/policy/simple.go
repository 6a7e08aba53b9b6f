package policy

import (
	neturl "net/url"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

// SimpleName is the name of the Gateway and of the Profile that simple mode makes.
const SimpleName = "default"

// Simple holds the root keys of simple mode. Load makes a Gateway, a Profile and Rings of them; documents of the same kind and name lie over what it makes, key by
// key, as a profile lies over the one it extends.
type Simple struct {
	// Tools are the harnesses of everybody, each at one version, with the model alias that it starts on when that is not default.
	//
	// Example: {claude-code: 2.1.332, codex: {version: 0.171.0, model: code}}
	Tools []Pin
	// Provider is the provider of the models, by name or with its region, project or URL; multi when models name theirs.
	//
	// Example: anthropic
	// Example: {name: bedrock, region: eu-west-1}
	Provider Provider
	// Models are the aliases that harnesses ask the gateway for, each with the model behind it or a list of models in the order of preference. The alias default is needed.
	//
	// Example: {default: claude-sonnet-4-5, code: [openai/gpt-5-codex, openai/gpt-5]}
	Models []SimpleModel
	// Gateway is the URL of the model gateway.
	//
	// Example: https://ai.acme.example
	Gateway source.Str
	// GatewayEngine is the program that serves the gateway.
	GatewayEngine source.Str
	// Telemetry is the OTLP endpoint that harnesses send their telemetry to, over HTTP.
	//
	// Example: https://otel.acme.example:4318
	Telemetry source.Str
	// Team are the groups and the users (with an @) of the first ring; without it, the groups of the administrators.
	//
	// Example: [platform-security, ann@acme.example]
	Team source.Strs
	// Safety is how much agents are held: standard when it is not written.
	Safety source.Str
	// Rollout is the rings in which a release reaches everybody: standard when it is not written.
	Rollout source.Str
	// Egress adds hosts to those that safety allows and denies.
	Egress SimpleEgress
	// Pos is the place of the first of these keys.
	Pos diag.Pos
}

// Provider is a model provider.
type Provider struct {
	// Name is the provider, or multi when every model names its own.
	Name source.Str
	// Region is where models run; bedrock and vertex need it.
	//
	// Example: eu-west-1
	Region source.Str
	// Project is the Google Cloud project; vertex needs it.
	Project source.Str
	// URL takes the place of the provider's public API.
	URL source.Str
}

// SimpleModel is an alias with the ids of its models in the order of preference, each as ID or PROVIDER/ID.
type SimpleModel struct {
	Alias source.Str
	IDs   source.Strs
}

// SimpleEgress are hosts beyond those that safety allows and denies.
type SimpleEgress struct {
	// Allow lists hosts that may be reached, beside the gateway, the telemetry endpoint and what safety allows. With it every other host is denied, whatever safety says.
	//
	// Example: ["*.acme.example"]
	Allow Hosts
	// Deny lists hosts that may never be reached.
	//
	// Example: [pastebin.com]
	Deny Hosts
}

// providers are the providers that can be named, in display order; multi stands for several.
var providers = []string{"anthropic", "bedrock", "vertex", "openai", "gemini", multi}

const multi = "multi"

// providerURL is the API of each provider that has one for everybody. From the vendors' API references, read 2026-11-30.
var providerURL = map[string]string{
	"anthropic": "https://api.anthropic.com",
	"openai":    "https://api.openai.com",
	"gemini":    "https://generativelanguage.googleapis.com",
}

// speaks is the protocol that each harness speaks to a gateway. A harness that is not listed is not routed.
var speaks = map[string]string{ClaudeCode: "anthropic-messages", Codex: "openai-responses", GeminiCLI: "gemini"}

// safety is what a word of `safety` stands for.
type safety struct {
	word, mode string
	// managed locks MCP servers and hooks to the managed ones, required makes the sandbox a condition.
	managed, required bool
	protected         []string
	// presets, when there are any, are allowed and everything else is denied.
	presets []string
}

// secrets are where credentials lie on most devices.
var secrets = []string{".env", ".env.*", "secrets/**", "~/.aws", "~/.ssh"}

// safeties are the words of `safety`, the default first.
var safeties = []safety{
	{word: "standard", mode: "default", managed: true, protected: secrets},
	{word: "strict", mode: "default", managed: true, required: true, protected: slices.Concat(secrets, []string{"~/.kube", "~/.config/gcloud", "**/*.pem", "**/*.key"}),
		presets: []string{"vcs", "package-registries"}},
	{word: "relaxed", mode: "acceptEdits", protected: secrets},
}

// rollout is what a word of `rollout` stands for. The first ring takes the team, the last everybody who is left.
type rollout struct {
	word  string
	rings []stage
}

// stage is a ring with its percentage in hundredths.
type stage struct {
	name    string
	percent int64
}

// rollouts are the words of `rollout`, the default first.
var rollouts = []rollout{
	{"standard", []stage{{"ring0-team", 0}, {"ring1-canary", 5_00}, {"ring2-early", 25_00}, {"ring3-ga", 0}}},
	{"fast", []stage{{"ring0-team", 0}, {"ring1-ga", 0}}},
	{"careful", []stage{{"ring0-team", 0}, {"ring1-canary", 1_00}, {"ring2-early", 5_00}, {"ring3-broad", 25_00}, {"ring4-ga", 0}}},
}

var toolMapping = mapping[Pin]{fields: append(slices.Clone(pinMapping.fields[:2]), refused[Pin]("write a document: kind: Profile, name: default, harnesses: {…}", "overrides")...)}

var providerMapping = mapping[Provider]{
	fields: []source.Field[Provider]{
		enum("name", func(p *Provider) *source.Str { return &p.Name }, providers...),
		str("region", func(p *Provider) *source.Str { return &p.Region }),
		str("project", func(p *Provider) *source.Str { return &p.Project }),
		url("url", func(p *Provider) *source.Str { return &p.URL }, "https", "http"),
	},
	need: []string{"name"},
}

var simpleEgressFields = append([]source.Field[SimpleEgress]{
	hosts("allow", false, func(e *SimpleEgress) *Hosts { return &e.Allow }),
	hosts("deny", true, func(e *SimpleEgress) *Hosts { return &e.Deny }),
}, refused[SimpleEgress]("in halos.yaml the lists are allow and deny; everything else is for a document: kind: Profile, name: default, egress: {…}",
	"default", "presets", "allowedDomains", "deniedDomains")...)

// simpleFields are the root keys of simple mode.
var simpleFields = []source.Field[Simple]{
	harnesses("tools", toolMapping, func(s *Simple) *[]Pin { return &s.Tools }),
	leaf("provider", func(s *Simple) *Provider { return &s.Provider }, readProvider, func() source.Shape {
		return source.Shape{Type: source.WordValue, Words: providers, Or: new(providerMapping.shape())}
	}),
	table("models", func(s *Simple) *[]SimpleModel { return &s.Models }, byName, func() source.Shape {
		id := fullText()
		id.Or = new(fullTexts())
		return id
	}, readSimpleModel),
	url("gateway", func(s *Simple) *source.Str { return &s.Gateway }, "https", "http"),
	enum("gatewayEngine", func(s *Simple) *source.Str { return &s.GatewayEngine }, engines...),
	url("telemetry", func(s *Simple) *source.Str { return &s.Telemetry }, "https", "http"),
	list("team", func(s *Simple) *source.Strs { return &s.Team }),
	enum("safety", func(s *Simple) *source.Str { return &s.Safety }, wordsOf(safeties, func(s safety) string { return s.word })...),
	enum("rollout", func(s *Simple) *source.Str { return &s.Rollout }, wordsOf(rollouts, func(r rollout) string { return r.word })...),
	section("egress", fields(simpleEgressFields), func(s *Simple) *SimpleEgress { return &s.Egress }),
}

// readProvider reads a provider as its name, or as a mapping with what it needs.
func readProvider(d *decoder, n *node) (p Provider) {
	if source.IsScalar(n) {
		p.Name = d.Enum(n, providers...)
		return p
	}
	return *providerMapping.read(d, n, &p)
}

// readSimpleModel reads what is behind an alias: one id, or several.
func readSimpleModel(d *decoder, k source.Str, n *node) (SimpleModel, bool) {
	m := SimpleModel{Alias: k}
	if !source.IsScalar(n) {
		m.IDs = d.Texts(n)
	} else if id := d.Text(n); id.IsSet() {
		m.IDs = source.Strs{Items: []source.Str{id}, Pos: id.Pos}
	}
	return m, true
}

func wordsOf[T any](rows []T, word func(T) string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = word(r)
	}
	return out
}

// SimpleKeys are the root keys of simple mode.
func SimpleKeys() []string {
	return wordsOf(simpleFields, func(f source.Field[Simple]) string { return f.Name })
}

// rootFields are the simple fields as keys of the root document.
func rootFields() []source.Field[Halos] {
	out := make([]source.Field[Halos], len(simpleFields))
	for i, f := range simpleFields {
		out[i] = source.Field[Halos]{Name: f.Name, Hint: f.Hint, Shape: f.Shape, At: f.At, Read: func(d *decoder, n *node, h *Halos) {
			if h.Simple == nil {
				h.Simple = &Simple{Pos: d.Pos(n)}
			}
			f.Read(d, n, h.Simple)
		}}
	}
	return out
}

// expand adds to a repo what the root keys of simple mode make, below the documents of the same names.
func (r *Repo) expand(diags *diag.List) {
	s := r.Root.Simple
	if s == nil {
		return
	}
	e := expansion{r: r, s: s, diags: diags, read: !r.Root.Bad}
	e.gateway()
	own := r.Profile(SimpleName)
	if len(s.Tools) == 0 && (own == nil || len(own.Harnesses) == 0) {
		if e.read {
			e.fail(codeSimple, s.Pos, "tools", "simple mode needs tools: the harnesses, each at one version", "tools: {claude-code: 2.1.332}; in a repo of documents, write the key into a Profile")
		}
		return
	}
	profile := e.profile(own)
	if own == nil {
		r.Profiles = append(r.Profiles, profile)
		slices.SortFunc(r.Profiles, func(a, b *Profile) int { return strings.Compare(a.Name.V, b.Name.V) })
		r.Made = append(r.Made, &profile.Header)
	} else {
		// Two layers of one name would be told apart by nobody.
		profile.Header = Header{Kind: "Halos", Pos: profile.Pos, Bad: profile.Bad}
		own.Base = profile
		r.Made = append(r.Made, &own.Header)
	}
	e.rings()
	for _, g := range r.Rings {
		if g.Profile.IsSet() && !r.leads(g.Profile.V, SimpleName) {
			e.fail(codeBeside, g.Profile.Pos, "profile", "ring "+g.Name.V+" gets nothing of what halos.yaml says in simple mode: its profile "+g.Profile.V+" does not extend "+SimpleName,
				"extends: "+SimpleName+" in that profile, or profile: "+SimpleName+" here")
		}
	}
}

// leads reports whether a profile is the other one or extends it.
func (r *Repo) leads(from, to string) bool {
	for range len(r.Profiles) + 1 {
		if from == to {
			return true
		}
		p := r.Profile(from)
		if p == nil || !p.Extends.IsSet() {
			return p == nil // what is not there is reported
		}
		from = p.Extends.V
	}
	return true
}

// expansion is one run of expand.
type expansion struct {
	r     *Repo
	s     *Simple
	diags *diag.List
	// read is set when halos.yaml was read without an error, so that a key that is missing is really missing.
	read bool
}

func (e *expansion) fail(code *diag.Code, pos diag.Pos, path, message, hint string) {
	d := diag.New(code, pos, path, "%s", message)
	d.Hint = "write " + hint
	if h := e.r.DocumentAt(pos); h != nil {
		d.Document = h.ID()
		if code.Severity == diag.Error {
			h.Bad = true
		}
	}
	e.diags.Add(d)
}

// header is that of a document that simple mode makes, at a place in halos.yaml.
func (e *expansion) header(kind, name string, pos diag.Pos) Header {
	return Header{Kind: kind, Name: source.Str{V: name, Pos: pos}, Pos: pos, Bad: e.r.Root.Bad}
}

// gateway makes the Gateway, or fills in what the repo's own leaves out. A repo has one, so its name does not matter.
func (e *expansion) gateway() {
	s := e.s
	needs := []source.Str{s.Provider.Name, s.GatewayEngine}
	for _, m := range s.Models {
		needs = append(needs, m.Alias)
	}
	needs = slices.DeleteFunc(needs, func(n source.Str) bool { return !n.IsSet() })
	if !s.Gateway.IsSet() && len(needs) == 0 {
		return
	}
	own := e.r.Gateway
	if !s.Gateway.IsSet() && (own == nil || !own.BaseURL.IsSet()) {
		if e.read && (own == nil || !own.Bad) {
			at := needs[0].Pos
			e.fail(codeSimple, at, s.Key(at), "models and their provider are reached through a gateway, and there is none", "gateway: https:// and the host of your model gateway")
		}
		return
	}
	g := &Gateway{Header: e.header("Gateway", SimpleName, s.Gateway.Pos), BaseURL: s.Gateway, Host: gatewayHost(s.Gateway.V), Engine: s.GatewayEngine}
	e.models(g)
	g.Bad = e.r.Root.Bad
	if own == nil {
		e.r.Gateway = g
		e.r.Made = append(e.r.Made, &g.Header)
		return
	}
	e.r.Made = append(e.r.Made, &own.Header)
	own.Bad = own.Bad || g.Bad
	if !own.BaseURL.IsSet() {
		own.BaseURL, own.Host = g.BaseURL, g.Host
	}
	fill(&own.Engine, g.Engine)
	for _, p := range g.Protocols {
		if !slices.ContainsFunc(own.Protocols, func(o source.Pair) bool { return o.Key.V == p.Key.V }) {
			own.Protocols = append(own.Protocols, p)
		}
	}
	for _, m := range g.Models {
		if !slices.ContainsFunc(own.Models, func(o GatewayModel) bool { return o.Alias.V == m.Alias.V }) {
			own.Models = append(own.Models, m)
		}
	}
	for _, u := range g.Upstreams {
		i := slices.IndexFunc(own.Upstreams, func(o Upstream) bool { return o.Name.V == u.Name.V })
		if i < 0 {
			own.Upstreams = append(own.Upstreams, u)
			continue
		}
		o := &own.Upstreams[i]
		fill(&o.URL, u.URL)
		fill(&o.Kind, u.Kind)
		fill(&o.Project, u.Project)
		fill(&o.Region, u.Region)
	}
}

// models fills in the models, upstreams and protocols of the gateway.
func (e *expansion) models(g *Gateway) {
	s := e.s
	if s.Provider.Name.IsSet() && s.Provider.Name.V != multi {
		e.upstream(g, s.Provider.Name)
	}
	if s.Provider.Name.V == multi {
		switch {
		case s.Provider.URL.IsSet():
			e.fail(codeSimple, s.Provider.URL.Pos, "provider.url", "several providers have no URL in common", "a Gateway document with upstreams: {NAME: {url: …}}")
		case len(s.Models) == 0:
			e.fail(codeSimple, s.Provider.Name.Pos, "provider", "several providers serve nothing without models", "models: {default: anthropic/ID}")
		}
	}
	for _, m := range s.Models {
		if !m.IDs.IsSet() {
			continue // reported
		}
		at := "models." + m.Alias.V
		if len(m.IDs.Items) == 0 && e.read {
			e.fail(codeSimple, m.IDs.Pos, at, "the alias "+m.Alias.V+" has no model", at+": and the id of a model")
		}
		out := GatewayModel{Alias: m.Alias}
		for i, id := range m.IDs.Items {
			upstream, model := source.Str{V: s.Provider.Name.V, Pos: id.Pos}, id
			if name, rest, ok := strings.Cut(id.V, "/"); ok && name != multi && slices.Contains(providers, name) {
				upstream.V, model.V = name, rest
			}
			if upstream.V == "" || upstream.V == multi {
				e.fail(codeNoProvider, id.Pos, s.Key(id.Pos), "the model "+id.V+" names no provider", "provider: and its name, or the model as PROVIDER/"+id.V)
				continue
			}
			if model.V == "" {
				e.fail(codeNoProvider, id.Pos, s.Key(id.Pos), "the provider "+upstream.V+" is named and no model", upstream.V+"/ and the id of a model")
				continue
			}
			e.upstream(g, upstream)
			t := ModelTarget{Upstream: upstream, Model: model}
			if len(m.IDs.Items) > 1 {
				t.Priority = source.Int{V: int64(i), Pos: id.Pos}
			}
			out.Targets = append(out.Targets, t)
		}
		g.Models = append(g.Models, out)
	}
	if len(s.Models) > 0 && !slices.ContainsFunc(s.Models, func(m SimpleModel) bool { return m.Alias.V == SimpleName }) && e.read {
		at := s.Models[0].Alias.Pos
		e.fail(codeSimple, at, "models", "there is no alias default, the model that harnesses start on", "models: {default: ID}")
	}
	for _, p := range s.Tools {
		wire, routed := speaks[p.Harness.V]
		if !routed {
			continue
		}
		for _, m := range g.Models {
			// Claude Code speaks to Bedrock in Bedrock's own protocol.
			if m.Alias.V == startOn(p) && p.Harness.V == ClaudeCode && len(m.Targets) > 0 && m.Targets[0].Upstream.V == "bedrock" {
				wire = "bedrock-invoke"
			}
		}
		g.Protocols = append(g.Protocols, source.Pair{Key: p.Harness, Value: source.Str{V: wire, Pos: p.Harness.Pos}})
	}
}

// startOn returns the alias that a harness starts on.
func startOn(p Pin) string {
	if p.Model.IsSet() {
		return p.Model.V
	}
	return SimpleName
}

// upstream adds a provider to the gateway, once.
func (e *expansion) upstream(g *Gateway, name source.Str) {
	if slices.ContainsFunc(g.Upstreams, func(u Upstream) bool { return u.Name.V == name.V }) {
		return
	}
	p := &e.s.Provider
	u := Upstream{Name: name, Kind: name}
	if v := providerURL[name.V]; v != "" {
		u.URL = source.Str{V: v, Pos: name.Pos}
	}
	if p.Name.V == name.V && p.URL.IsSet() {
		u.URL = p.URL
	}
	lacks := func(key string, value source.Str) {
		if !value.IsSet() && e.read {
			e.fail(codeSimple, name.Pos, e.s.Key(name.Pos), "provider "+name.V+" needs a "+key+", which halo does not choose for you", "provider: {name: "+p.Name.V+", "+key+": …}")
		}
	}
	switch name.V {
	case "bedrock":
		u.Region = p.Region
		lacks("region", p.Region)
	case "vertex":
		u.Region, u.Project = p.Region, p.Project
		lacks("region", p.Region)
		lacks("project", p.Project)
	}
	g.Upstreams = append(g.Upstreams, u)
}

// profile makes the profile. own is the document that will lie over it, nil for none.
func (e *expansion) profile(own *Profile) *Profile {
	s := e.s
	preset, at := safeties[0], e.tools()
	if s.Safety.IsSet() {
		preset, at = safeties[slices.IndexFunc(safeties, func(p safety) bool { return p.word == s.Safety.V })], s.Safety.Pos
	}
	p := &Profile{Header: e.header("Profile", SimpleName, e.tools())}
	on := source.Bool{V: true, Pos: at}
	p.Harnesses = slices.Clone(s.Tools)
	if len(s.Models) > 0 {
		for i := range p.Harnesses {
			h := &p.Harnesses[i]
			if _, routed := speaks[h.Harness.V]; routed && !h.Model.IsSet() {
				// Written out, so that the model's provider is checked against what this harness speaks.
				h.Model = source.Str{V: SimpleName, Pos: h.Harness.Pos}
			}
		}
		first := s.Models[0].Alias.Pos
		p.Models.Default = source.Str{V: SimpleName, Pos: first}
		p.Models.Enforce = source.Bool{V: true, Pos: first}
		p.Models.Allowed.Pos = first
		for _, m := range s.Models {
			p.Models.Allowed.Items = append(p.Models.Allowed.Items, m.Alias)
		}
	}
	p.Permissions.Mode = source.Str{V: preset.mode, Pos: at}
	p.Permissions.DisableBypass = on
	p.Sandbox.Mode, p.Sandbox.ModeField = source.Str{V: ModeWorkspaceWrite, Pos: at}, "sandbox.mode"
	p.Sandbox.ProtectedPaths.Pos = at
	for _, text := range preset.protected {
		// The tables are constant and tested: a path of theirs is always one.
		if path, problem := fspath.ParseProtected(text); problem == nil {
			p.Sandbox.ProtectedPaths.Items = append(p.Sandbox.ProtectedPaths.Items, FilePath{path, at})
		}
	}
	if preset.required {
		p.Permissions.SandboxRequired = on
	}
	if preset.managed {
		p.MCP.ManagedOnly, p.Hooks.ManagedOnly = on, on
	}
	if s.Telemetry.IsSet() {
		p.Telemetry.Enabled = source.Bool{V: true, Pos: s.Telemetry.Pos}
		p.Telemetry.OTLPEndpoint = s.Telemetry
		p.Telemetry.Protocol = source.Str{V: "http/protobuf", Pos: s.Telemetry.Pos}
	}
	e.egress(p, own, preset, at)
	return p
}

// egress fills in the hosts of the profile. An allow list always has the hosts that the policy itself names.
func (e *expansion) egress(p, own *Profile, preset safety, at diag.Pos) {
	allow, deny := e.s.Egress.Allow, e.s.Egress.Deny
	p.Egress.DeniedDomains = deny
	if len(preset.presets) == 0 && !allow.IsSet() {
		return
	}
	if len(preset.presets) == 0 {
		at = allow.Pos
	}
	p.Egress.Default = source.Str{V: "deny", Pos: at}
	p.Egress.AllowedDomains.Pos = at
	add := func(h Host) {
		if !slices.ContainsFunc(allow.Items, func(own Host) bool { return own.Pattern.Covers(h.Pattern) }) &&
			!slices.ContainsFunc(p.Egress.AllowedDomains.Items, func(x Host) bool { return x.Pattern == h.Pattern }) {
			p.Egress.AllowedDomains.Items = append(p.Egress.AllowedDomains.Items, h)
		}
	}
	named := func(u source.Str) {
		parsed, err := neturl.Parse(u.V)
		if err != nil {
			return
		}
		// Neither the device itself nor an address is a host of the list.
		n, err := host.ParseName(parsed.Hostname())
		if err != nil || n == "localhost" {
			return
		}
		if pattern, problem := host.ParsePattern(string(n)); problem == nil {
			add(Host{pattern, u.Pos})
		}
	}
	if g := e.r.Gateway; g != nil && g.Host != "" {
		named(g.BaseURL)
	}
	endpoint := e.s.Telemetry
	if own != nil && own.Telemetry.OTLPEndpoint.IsSet() {
		endpoint = own.Telemetry.OTLPEndpoint
	}
	if endpoint.IsSet() {
		named(endpoint)
	}
	p.Egress.AllowedDomains.Items = append(p.Egress.AllowedDomains.Items, allow.Items...)
	if len(preset.presets) > 0 {
		p.Egress.Presets.Pos = at
		for _, name := range preset.presets {
			p.Egress.Presets.Items = append(p.Egress.Presets.Items, source.Str{V: name, Pos: at})
		}
	}
}

// tools is the place of the key that makes whatever no other key does.
func (e *expansion) tools() diag.Pos {
	if len(e.s.Tools) > 0 {
		return slices.MinFunc(e.s.Tools, func(a, b Pin) int { return int(a.Harness.Pos) - int(b.Harness.Pos) }).Harness.Pos
	}
	return e.s.Pos
}

// rings makes the rings, or fills in what those of the repo leave out.
func (e *expansion) rings() {
	s := e.s
	preset, at := rollouts[0], e.tools()
	if s.Rollout.IsSet() {
		preset, at = rollouts[slices.IndexFunc(rollouts, func(r rollout) bool { return r.word == s.Rollout.V })], s.Rollout.Pos
	}
	var made []*Ring
	for i, st := range preset.rings {
		g := &Ring{Header: e.header("Ring", st.name, at), Order: source.Int{V: int64(i), Pos: at}, Profile: source.Str{V: SimpleName, Pos: at}}
		switch {
		case i == 0:
			e.team(&g.Membership)
		case i == len(preset.rings)-1:
			g.Membership.Default = source.Bool{V: true, Pos: at}
		default:
			g.Membership.Percent = source.Int{V: st.percent, Pos: at}
		}
		own := e.r.Ring(st.name)
		if own == nil {
			made = append(made, g)
			e.r.Made = append(e.r.Made, &g.Header)
			continue
		}
		e.r.Made = append(e.r.Made, &own.Header)
		own.Bad = own.Bad || g.Bad
		fill(&own.Order, g.Order)
		fill(&own.Profile, g.Profile)
		m := &own.Membership
		fill(&m.Users, g.Membership.Users)
		fill(&m.Groups, g.Membership.Groups)
		fill(&m.Percent, g.Membership.Percent)
		fill(&m.Default, g.Membership.Default)
	}
	e.r.Rings = append(e.r.Rings, made...)
	slices.SortFunc(e.r.Rings, func(a, b *Ring) int { return strings.Compare(a.Name.V, b.Name.V) })
}

// team puts the team into a membership: those that halos.yaml names, or else the groups of its administrators.
func (e *expansion) team(m *Membership) {
	members := e.s.Team
	if !members.IsSet() {
		members = e.r.Root.Identity.AdminGroups
	}
	for _, who := range members.Items {
		l := &m.Groups
		if strings.Contains(who.V, "@") {
			l = &m.Users
		}
		l.Items, l.Pos = append(l.Items, who), members.Pos
	}
}

func fill[T interface{ IsSet() bool }](into *T, from T) {
	if !(*into).IsSet() {
		*into = from
	}
}

// Key returns the key path in halos.yaml of the value at a place, "" for a place that is of no key of simple mode.
func (s *Simple) Key(pos diag.Pos) string {
	if s == nil || !pos.IsValid() {
		return ""
	}
	for _, x := range []struct {
		key string
		pos diag.Pos
	}{
		{"safety", s.Safety.Pos}, {"rollout", s.Rollout.Pos}, {"gateway", s.Gateway.Pos}, {"gatewayEngine", s.GatewayEngine.Pos}, {"telemetry", s.Telemetry.Pos}, {"team", s.Team.Pos},
		{"provider", s.Provider.Name.Pos}, {"provider.region", s.Provider.Region.Pos}, {"provider.project", s.Provider.Project.Pos}, {"provider.url", s.Provider.URL.Pos},
		{"egress.allow", s.Egress.Allow.Pos}, {"egress.deny", s.Egress.Deny.Pos},
	} {
		if x.pos == pos {
			return x.key
		}
	}
	for _, p := range s.Tools {
		switch pos {
		case p.Harness.Pos, p.Version.Pos:
			return "tools." + p.Harness.V
		case p.Model.Pos:
			return "tools." + p.Harness.V + ".model"
		}
	}
	for _, m := range s.Models {
		if m.Alias.Pos == pos || m.IDs.Pos == pos || slices.ContainsFunc(m.IDs.Items, func(id source.Str) bool { return id.Pos == pos }) {
			return "models." + m.Alias.V
		}
	}
	at := func(key string, i int) string {
		if i < 0 {
			return ""
		}
		return key + "[" + strconv.Itoa(i) + "]"
	}
	host := func(h Host) bool { return h.Pos == pos }
	return at("egress.allow", slices.IndexFunc(s.Egress.Allow.Items, host)) + at("egress.deny", slices.IndexFunc(s.Egress.Deny.Items, host)) +
		at("team", slices.IndexFunc(s.Team.Items, func(t source.Str) bool { return t.Pos == pos }))
}
