package policy

import (
	"math"
	"net/netip"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

const notHere = "this version of halo does not support it; see docs/guides/scope.md"

// engines are the programs that can serve the gateway.
var engines = []string{"halo-proxy", "kong", "external"}

var identityFields = []source.Field[Identity]{
	url("issuer", func(i *Identity) *source.Str { return &i.Issuer }, "https"),
	str("clientID", func(i *Identity) *source.Str { return &i.ClientID }),
	str("audience", func(i *Identity) *source.Str { return &i.Audience }),
	str("userClaim", func(i *Identity) *source.Str { return &i.UserClaim }),
	str("groupsClaim", func(i *Identity) *source.Str { return &i.GroupsClaim }),
	list("adminGroups", func(i *Identity) *source.Strs { return &i.AdminGroups }),
}

var acknowledgeMapping = mapping[Acknowledgement]{
	fields: []source.Field[Acknowledgement]{
		str("code", func(a *Acknowledgement) *source.Str { return &a.Code }),
		str("path", func(a *Acknowledgement) *source.Str { return &a.Path }),
		str("why", func(a *Acknowledgement) *source.Str { return &a.Why }),
		date("until", func(a *Acknowledgement) *Date { return &a.Until }),
	},
	need: []string{"code", "path", "why", "until"},
}

var halosMapping = mapping[Halos]{
	fields: slices.Concat(header("Halos", func(h *Halos) *Header { return &h.Header }), []source.Field[Halos]{
		str("org", func(h *Halos) *source.Str { return &h.Org }),
		leaf("lifetime", func(h *Halos) *source.Int { return &h.Lifetime }, readLifetime, form("lifetime")),
		custom("combinations", func(h *Halos) *[]source.Strs { return &h.Combinations }, func() source.Shape { return listOf(listOf(anyText())) }, func(d *decoder, n *node, h *Halos) {
			source.Seq(d, n, func(_ int, c *node) {
				if set := d.Strings(c); set.IsSet() {
					h.Combinations = append(h.Combinations, set)
				}
			})
		}),
		require(func(h *Halos) *[]Requirement { return &h.Require }),
		items("acknowledge", acknowledgeMapping, func(h *Halos) *[]Acknowledgement { return &h.Acknowledge }, func(p diag.Pos) Acknowledgement { return Acknowledgement{Pos: p} }, nil),
		section("identity", fields(identityFields), func(h *Halos) *Identity { return &h.Identity }),
	}, rootFields(), refused[Halos](notHere, "selfService")),
	need: []string{"org"},
}

// readLifetime reads a number of days, hours or weeks: 90d.
func readLifetime(d *decoder, n *node) source.Int {
	s := d.String(n)
	if !s.IsSet() {
		return source.Int{}
	}
	unit := map[byte]int64{'h': 3600, 'd': 86400, 'w': 7 * 86400}
	if len(s.V) >= 2 && len(s.V) <= 6 {
		num, err := strconv.ParseUint(s.V[:len(s.V)-1], 10, 31)
		if secs := unit[s.V[len(s.V)-1]]; err == nil && secs > 0 && num > 0 {
			return source.Int{V: int64(num) * secs, Pos: s.Pos}
		}
	}
	x := d.Report(codeLifetime, n, "%s is not a lifetime", strconv.Quote(s.V))
	x.Hint = "write a number of days, weeks or hours: 90d, 12w, 72h"
	d.Diags.Add(*x)
	return source.Int{}
}

var authFields = []source.Field[GatewayAuth]{
	str("helperCommand", func(a *GatewayAuth) *source.Str { return &a.HelperCommand }),
	whole("ttlSeconds", 1, 31_536_000, func(a *GatewayAuth) *source.Int { return &a.TTLSeconds }),
	str("identityHeader", func(a *GatewayAuth) *source.Str { return &a.IdentityHeader }),
}

var targetFields = []source.Field[ModelTarget]{
	name("upstream", func(t *ModelTarget) *source.Str { return &t.Upstream }),
	str("model", func(t *ModelTarget) *source.Str { return &t.Model }),
	whole("weight", 0, math.MaxInt32, func(t *ModelTarget) *source.Int { return &t.Weight }),
	whole("priority", 0, math.MaxInt32, func(t *ModelTarget) *source.Int { return &t.Priority }),
	whole("timeoutSeconds", 1, 86_400, func(t *ModelTarget) *source.Int { return &t.TimeoutSeconds }),
}

// An alias is written as one upstream model, or as several.
var (
	targetMapping = mapping[ModelTarget]{fields: targetFields, need: []string{"model"}}
	aliasMapping  = mapping[ModelTarget]{fields: targetFields[:2], need: []string{"model"}}

	targetsMapping = mapping[GatewayModel]{
		fields: append([]source.Field[GatewayModel]{
			atLeastOne(items("targets", targetMapping, func(m *GatewayModel) *[]ModelTarget { return &m.Targets }, func(diag.Pos) ModelTarget { return ModelTarget{} }, nil)),
		}, refused[GatewayModel]("with targets, each target has an upstream and a model", "upstream", "model")...),
		need: []string{"targets"},
		check: func(d *decoder, n *node, _ *GatewayModel) {
			if targets := source.Get(n, "targets"); targets != nil && source.IsList(targets) && len(targets.Content) == 0 {
				d.Diags.Add(*d.Report(codeAlias, targets, "the alias leads to no model: targets is empty"))
			}
		},
	}
)

func aliasShape() source.Shape {
	s := aliasMapping.shape()
	s.Or = new(targetsMapping.shape())
	return s
}

func readAlias(d *decoder, alias source.Str, n *node) (GatewayModel, bool) {
	m := GatewayModel{Alias: alias}
	if source.IsMapping(n) && source.Get(n, "targets") != nil {
		targetsMapping.read(d, n, &m)
		return m, true
	}
	var t ModelTarget
	aliasMapping.read(d, n, &t)
	if t.Upstream.IsSet() || t.Model.IsSet() {
		m.Targets = []ModelTarget{t}
	}
	return m, true
}

var credentialMapping = mapping[Upstream]{
	fields: []source.Field[Upstream]{
		leaf("env", func(u *Upstream) *source.Str { return &u.CredentialEnv }, readVariable, form("variable")),
		str("file", func(u *Upstream) *source.Str { return &u.CredentialFile }),
		str("scheme", func(u *Upstream) *source.Str { return &u.AuthForm }),
	},
	one: []string{"env", "file"}, code: codeCredential, text: "a credential is in exactly one of env, the name of a variable, and file, the path of a file",
}

// readVariable reads the name of an environment variable. What is none may be the secret itself, so it is not repeated.
func readVariable(d *decoder, n *node) source.Str {
	s := d.String(n)
	name := strings.Trim(s.V, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
	if s.IsSet() && (name != "" || s.V == "" || s.V[0] >= '0' && s.V[0] <= '9') {
		x := d.Report(codeCredential, n, "env is not the name of a variable: letters, digits and underscores")
		x.Hint = "write the name of the variable that holds the credential, never the credential"
		d.Diags.Add(*x)
		return source.Str{}
	}
	return s
}

var upstreamFields = []source.Field[Upstream]{
	url("url", func(u *Upstream) *source.Str { return &u.URL }, "https", "http"),
	enum("kind", func(u *Upstream) *source.Str { return &u.Kind }, "orchestrator", "anthropic", "bedrock", "vertex", "openai", "azure-openai", "gemini"),
	str("project", func(u *Upstream) *source.Str { return &u.Project }),
	str("region", func(u *Upstream) *source.Str { return &u.Region }),
	str("apiVersion", func(u *Upstream) *source.Str { return &u.APIVersion }),
	custom("credential", func(u *Upstream) *credential { return (*credential)(u) }, credentialMapping.shape,
		func(d *decoder, n *node, u *Upstream) {
			if source.IsScalar(n) {
				// It may be the credential, so it is not repeated.
				d.Diags.Add(*d.Report(codeCredential, n, "a credential is written as a mapping: {env: NAME} or {file: PATH}"))
				return
			}
			credentialMapping.read(d, n, u)
		}),
	list("serves", func(u *Upstream) *source.Strs { return &u.Serves }),
}

// wires are the protocols between a harness and the gateway.
var wires = []string{"anthropic-messages", "bedrock-invoke", "openai-responses", "gemini"}

var gatewayMapping = mapping[Gateway]{
	fields: append(header("Gateway", func(g *Gateway) *Header { return &g.Header }),
		custom("baseURL", func(g *Gateway) *source.Str { return &g.BaseURL }, form("https or http URL"), func(d *decoder, n *node, g *Gateway) {
			g.BaseURL = absoluteURL(d, n, "https", "http")
			g.Host = gatewayHost(g.BaseURL.V)
		}),
		enum("engine", func(g *Gateway) *source.Str { return &g.Engine }, engines...),
		table("protocols", func(g *Gateway) *[]source.Pair { return &g.Protocols }, byHarness, words(wires), func(d *decoder, k source.Str, n *node) (source.Pair, bool) {
			s := d.Enum(n, wires...)
			return source.Pair{Key: k, Value: s}, s.IsSet()
		}),
		section("auth", fields(authFields), func(g *Gateway) *GatewayAuth { return &g.Auth }),
		table("models", func(g *Gateway) *[]GatewayModel { return &g.Models }, byName, aliasShape, readAlias),
		table("upstreams", func(g *Gateway) *[]Upstream { return &g.Upstreams }, byName, func() source.Shape { return source.Describe(upstreamFields) }, func(d *decoder, k source.Str, n *node) (Upstream, bool) {
			u := Upstream{Name: k}
			source.Map(d, n, upstreamFields, &u)
			return u, true
		}),
	),
	need: []string{"name", "baseURL"},
	late: []string{"baseURL"}, head: (*Gateway).head,
}

// gatewayHost returns the host name of the gateway, or "" when it is on the device itself.
func gatewayHost(baseURL string) host.Name {
	u, err := neturl.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	n, err := host.ParseName(u.Hostname())
	if err != nil || n == "localhost" || strings.HasSuffix(string(n), ".localhost") {
		return ""
	}
	if ip, err := netip.ParseAddr(string(n)); err == nil && ip.IsLoopback() {
		return ""
	}
	return n
}

var presetMapping = mapping[Preset]{
	fields: append(header("Preset", func(p *Preset) *Header { return &p.Header }),
		leaf("hosts", func(p *Preset) *[]Host { return &p.Hosts }, func(d *decoder, n *node) []Host { return readHosts(d, n, false).Items }, func() source.Shape { return hostList(false) }),
		url("source", func(p *Preset) *source.Str { return &p.Source }, "https", "http"),
		date("reviewed", func(p *Preset) *Date { return &p.Reviewed }),
	),
	need: []string{"name", "hosts"},
}

var profileMapping = mapping[Profile]{
	fields: bodyOf(append(header("Profile", func(p *Profile) *Header { return &p.Header }),
		name("extends", func(p *Profile) *source.Str { return &p.Extends })),
		bodyFields, func(p *Profile) *Body { return &p.Body }),
	need: []string{"name"},
}

// bodyOf adds the fields of a Body to those of the document that holds one.
func bodyOf[T any](fields []source.Field[T], body []source.Field[Body], at func(*T) *Body) []source.Field[T] {
	for _, f := range body {
		g := source.Field[T]{Name: f.Name, Hint: f.Hint, Shape: f.Shape, At: f.At}
		if f.Read != nil {
			g.Read = func(d *decoder, n *node, t *T) { f.Read(d, n, at(t)) }
		}
		fields = append(fields, g)
	}
	return fields
}

var ringMembershipFields = []source.Field[Membership]{
	list("users", func(m *Membership) *source.Strs { return &m.Users }),
	list("groups", func(m *Membership) *source.Strs { return &m.Groups }),
	leaf("percent", func(m *Membership) *source.Int { return &m.Percent }, readPercent, func() source.Shape { return source.Shape{Type: source.NumberValue, Max: 100} }),
	boolean("default", func(m *Membership) *source.Bool { return &m.Default }),
	boolean("optIn", func(m *Membership) *source.Bool { return &m.OptIn }),
}

// readPercent reads a percentage into hundredths of a percent.
func readPercent(d *decoder, n *node) source.Int {
	f, pos := d.Number(n)
	if !pos.IsValid() {
		return source.Int{}
	}
	if f < 0 || f > 100 || f*100 != math.Round(f*100) {
		d.Diags.Add(*d.Report(codePercent, n, "%s is not a percentage from 0 to 100 with at most two decimals", n.Value))
		return source.Int{}
	}
	return source.Int{V: int64(math.Round(f * 100)), Pos: pos}
}

var unitMembershipFields = []source.Field[Membership]{ringMembershipFields[0], ringMembershipFields[1]}

var ringMapping = mapping[Ring]{
	fields: slices.Concat(header("Ring", func(r *Ring) *Header { return &r.Header }), []source.Field[Ring]{
		whole("order", 0, math.MaxInt32, func(r *Ring) *source.Int { return &r.Order }),
		name("profile", func(r *Ring) *source.Str { return &r.Profile }),
		str("release", func(r *Ring) *source.Str { return &r.Release }),
		section("membership", fields(ringMembershipFields), func(r *Ring) *Membership { return &r.Membership }),
		enum("posture", func(r *Ring) *source.Str { return &r.Posture }, "off", "warn", "enforce"),
		enum("versionGate", func(r *Ring) *source.Str { return &r.VersionGate }, "off", "warn", "enforce"),
	},
		refused[Ring]("a ring has no policy of its own: write a child profile with the extra hosts and point the ring at it", "egress"),
		refused[Ring]("a ring has no policy of its own: write a child profile and point the ring at it", "sandbox")),
	need: []string{"name", "order", "profile"},
	late: []string{"order", "profile"}, head: (*Ring).head,
}

var unitMapping = mapping[Unit]{
	fields: append(append(header("Unit", func(u *Unit) *Header { return &u.Header }),
		section("membership", fields(unitMembershipFields), func(u *Unit) *Membership { return &u.Membership }),
		list("rings", func(u *Unit) *source.Strs { return &u.Rings }),
		name("parent", func(u *Unit) *source.Str { return &u.Parent }),
		section("overlay", fields(overlayFields), func(u *Unit) *Body { return &u.Overlay }),
	), refused[Unit]("write it under overlay", "egress", "sandbox")...),
	need: []string{"name", "overlay"},
}

var testMapping = mapping[Test]{
	fields: []source.Field[Test]{
		str("host", func(t *Test) *source.Str { return &t.Host }),
		str("path", func(t *Test) *source.Str { return &t.Path }),
		name("ring", func(t *Test) *source.Str { return &t.Ring }),
		list("units", func(t *Test) *source.Strs { return &t.Units }),
		enum("os", func(t *Test) *source.Str { return &t.OS }, OSes...),
		name("sandbox", func(t *Test) *source.Str { return &t.Sandbox }),
		whole("port", 1, 65535, func(t *Test) *source.Int { return &t.Port }),
		enum("expect", func(t *Test) *source.Str { return &t.Expect }, "allow", "deny"),
		str("rule", func(t *Test) *source.Str { return &t.Rule }),
	},
	need: []string{"expect"},
	one:  []string{"host", "path"}, code: codeTest, text: "a policy test needs exactly one of host and path",
	check: func(d *decoder, n *node, t *Test) {
		switch sandbox := source.Get(n, "sandbox") != nil; {
		case !sandbox && source.Get(n, "port") != nil:
			d.Diags.Add(*d.Report(codeTest, source.Get(n, "port"), "a port matters to a sandbox only; name one with sandbox"))
		case sandbox && source.Get(n, "path") != nil:
			d.Diags.Add(*d.Report(codeTest, source.Get(n, "sandbox"), "a test of a sandbox asks about a host"))
		case !sandbox && t.Host.IsSet():
			if _, err := host.ParseName(t.Host.V); err != nil {
				d.Diags.Add(*d.Report(codeTest, source.Get(n, "host"), "%s", err))
			}
		case t.Path.IsSet():
			if _, problem := fspath.ParseQuery(t.Path.V); problem != nil {
				d.Diags.Add(*d.Report(codeTest, source.Get(n, "path"), "path %s %s", diag.Quote(t.Path.V), problem.Reason))
			}
		}
	},
}

var policyTestMapping = mapping[PolicyTest]{
	fields: append(header("PolicyTest", func(t *PolicyTest) *Header { return &t.Header }),
		items("tests", testMapping, func(p *PolicyTest) *[]Test { return &p.Tests }, func(p diag.Pos) Test { return Test{Pos: p} }, nil)),
	need: []string{"name", "tests"},
}

var exceptionMapping = mapping[Exception]{
	fields: append(header("Exception", func(e *Exception) *Header { return &e.Header }),
		name("unit", func(e *Exception) *source.Str { return &e.Unit }),
		name("ring", func(e *Exception) *source.Str { return &e.Ring }),
		str("field", func(e *Exception) *source.Str { return &e.Field }),
		str("entry", func(e *Exception) *source.Str { return &e.Entry }),
		str("owner", func(e *Exception) *source.Str { return &e.Owner }),
		str("reason", func(e *Exception) *source.Str { return &e.Reason }),
		str("ticket", func(e *Exception) *source.Str { return &e.Ticket }),
		date("expires", func(e *Exception) *Date { return &e.Expires }),
	),
	need: []string{"name", "field", "owner", "reason", "expires"},
	one:  []string{"unit", "ring"}, code: codeException, text: "an exception names exactly one of unit and ring",
}

// Kinds are the kinds of documents besides Halos, sorted.
var Kinds = []string{"Exception", "Gateway", "PolicyTest", "Preset", "Profile", "Ring", "Sandbox", "Unit"}

// document decodes one document of a known kind and returns the typed value.
func document(d *decoder, kind string, n *node, pos diag.Pos) headed {
	h := Header{Kind: kind, Pos: pos}
	switch kind {
	case "Gateway":
		return gatewayMapping.read(d, n, &Gateway{Header: h})
	case "Preset":
		return presetMapping.read(d, n, &Preset{Header: h})
	case "Profile":
		return profileMapping.read(d, n, &Profile{Header: h})
	case "Ring":
		return ringMapping.read(d, n, &Ring{Header: h})
	case "Unit":
		return unitMapping.read(d, n, &Unit{Header: h})
	case "PolicyTest":
		return policyTestMapping.read(d, n, &PolicyTest{Header: h})
	case "Exception":
		return exceptionMapping.read(d, n, &Exception{Header: h})
	case "Sandbox":
		return sandboxMapping.read(d, n, &Sandbox{Header: h})
	}
	return nil
}

// Shape describes the documents of a kind: one of Kinds, or Halos. A kind that does not exist has no keys.
func Shape(kind string) source.Shape {
	switch kind {
	case "Halos":
		return halosMapping.shape()
	case "Gateway":
		return gatewayMapping.shape()
	case "Preset":
		return presetMapping.shape()
	case "Profile":
		return profileMapping.shape()
	case "Ring":
		return ringMapping.shape()
	case "Unit":
		return unitMapping.shape()
	case "PolicyTest":
		return policyTestMapping.shape()
	case "Exception":
		return exceptionMapping.shape()
	case "Sandbox":
		return sandboxMapping.shape()
	}
	return source.Shape{}
}
