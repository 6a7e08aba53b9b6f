package policy

import (
	"math"
	"net/netip"
	neturl "net/url"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

const notHere = "this version of halo does not support it; see docs/guides/scope.md"

const simpleMode = "simple mode is not supported by this version of halo; write Gateway, Profile and Ring documents; see docs/guides/scope.md"

var identityFields = []source.Field[Identity]{
	url("issuer", func(i *Identity) *source.Str { return &i.Issuer }, "https"),
	str("clientID", func(i *Identity) *source.Str { return &i.ClientID }),
	str("audience", func(i *Identity) *source.Str { return &i.Audience }),
	str("userClaim", func(i *Identity) *source.Str { return &i.UserClaim }),
	str("groupsClaim", func(i *Identity) *source.Str { return &i.GroupsClaim }),
	list("adminGroups", func(i *Identity) *source.Strs { return &i.AdminGroups }),
}

var acknowledgeFields = []source.Field[Acknowledgement]{
	str("code", func(a *Acknowledgement) *source.Str { return &a.Code }),
	str("path", func(a *Acknowledgement) *source.Str { return &a.Path }),
	str("why", func(a *Acknowledgement) *source.Str { return &a.Why }),
	date("until", func(a *Acknowledgement) *Date { return &a.Until }),
}

var halosFields = append(header(func(h *Halos) *Header { return &h.Header }),
	str("org", func(h *Halos) *source.Str { return &h.Org }),
	source.Field[Halos]{Name: "lifetime", Read: func(d *decoder, n *node, h *Halos) { h.Lifetime = readLifetime(d, n) }},
	source.Field[Halos]{Name: "combinations", Read: func(d *decoder, n *node, h *Halos) {
		source.Seq(d, n, func(_ int, c *node) {
			if set := d.Strings(c); set.IsSet() {
				h.Combinations = append(h.Combinations, set)
			}
		})
	}},
	source.Field[Halos]{Name: "require", Read: func(d *decoder, n *node, h *Halos) { h.Require = readRequire(d, n) }},
	source.Field[Halos]{Name: "acknowledge", Read: func(d *decoder, n *node, h *Halos) {
		source.Seq(d, n, func(_ int, c *node) {
			a := Acknowledgement{Pos: d.Pos(c)}
			source.Map(d, c, acknowledgeFields, &a)
			if source.IsMapping(c) {
				for _, key := range []string{"code", "path", "why", "until"} {
					d.Require(c, key, false)
				}
			}
			h.Acknowledge = append(h.Acknowledge, a)
		})
	}},
	source.Field[Halos]{Name: "identity", Read: func(d *decoder, n *node, h *Halos) { source.Map(d, n, identityFields, &h.Identity) }},
	source.Field[Halos]{Name: "selfService", Hint: notHere},
	source.Field[Halos]{Name: "tools", Hint: simpleMode},
	source.Field[Halos]{Name: "provider", Hint: simpleMode},
	source.Field[Halos]{Name: "models", Hint: simpleMode},
	source.Field[Halos]{Name: "gateway", Hint: simpleMode},
	source.Field[Halos]{Name: "gatewayEngine", Hint: simpleMode},
	source.Field[Halos]{Name: "telemetry", Hint: simpleMode},
	source.Field[Halos]{Name: "team", Hint: simpleMode},
	source.Field[Halos]{Name: "safety", Hint: simpleMode},
	source.Field[Halos]{Name: "rollout", Hint: simpleMode},
)

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
	{Name: "ttlSeconds", Read: func(d *decoder, n *node, a *GatewayAuth) { a.TTLSeconds = d.Int(n, 1, 31_536_000) }},
	str("identityHeader", func(a *GatewayAuth) *source.Str { return &a.IdentityHeader }),
}

var targetFields = []source.Field[ModelTarget]{
	name("upstream", func(t *ModelTarget) *source.Str { return &t.Upstream }),
	str("model", func(t *ModelTarget) *source.Str { return &t.Model }),
	{Name: "weight", Read: func(d *decoder, n *node, t *ModelTarget) { t.Weight = d.Int(n, 0, math.MaxInt32) }},
	{Name: "priority", Read: func(d *decoder, n *node, t *ModelTarget) { t.Priority = d.Int(n, 0, math.MaxInt32) }},
	{Name: "timeoutSeconds", Read: func(d *decoder, n *node, t *ModelTarget) { t.TimeoutSeconds = d.Int(n, 1, 86_400) }},
}

type gatewayModel struct {
	one  ModelTarget
	many []ModelTarget
}

var gatewayModelFields = []source.Field[gatewayModel]{
	name("upstream", func(m *gatewayModel) *source.Str { return &m.one.Upstream }),
	str("model", func(m *gatewayModel) *source.Str { return &m.one.Model }),
	{Name: "targets", Read: func(d *decoder, n *node, m *gatewayModel) {
		source.Seq(d, n, func(_ int, c *node) {
			var t ModelTarget
			source.Map(d, c, targetFields, &t)
			m.many = append(m.many, t)
		})
	}},
}

var credentialFields = []source.Field[Upstream]{
	str("env", func(u *Upstream) *source.Str { return &u.CredentialEnv }),
	str("file", func(u *Upstream) *source.Str { return &u.CredentialFile }),
	str("scheme", func(u *Upstream) *source.Str { return &u.AuthForm }),
}

var upstreamFields = []source.Field[Upstream]{
	url("url", func(u *Upstream) *source.Str { return &u.URL }, "https", "http"),
	enum("kind", func(u *Upstream) *source.Str { return &u.Kind }, "orchestrator", "anthropic", "bedrock", "vertex", "openai", "azure-openai", "gemini"),
	str("project", func(u *Upstream) *source.Str { return &u.Project }),
	str("region", func(u *Upstream) *source.Str { return &u.Region }),
	str("apiVersion", func(u *Upstream) *source.Str { return &u.APIVersion }),
	{Name: "credential", Read: func(d *decoder, n *node, u *Upstream) { source.Map(d, n, credentialFields, u) }},
	list("serves", func(u *Upstream) *source.Strs { return &u.Serves }),
}

var gatewayFields = append(header(func(g *Gateway) *Header { return &g.Header }),
	source.Field[Gateway]{Name: "baseURL", Read: func(d *decoder, n *node, g *Gateway) {
		g.BaseURL = absoluteURL(d, n, "https", "http")
		g.Host = gatewayHost(g.BaseURL.V)
	}},
	enum("engine", func(g *Gateway) *source.Str { return &g.Engine }, "halo-proxy", "kong", "external"),
	source.Field[Gateway]{Name: "protocols", Read: func(d *decoder, n *node, g *Gateway) {
		source.Keys(d, n, func(k source.Str, v *node) {
			if s := d.Enum(v, "anthropic-messages", "bedrock-invoke", "openai-responses", "gemini"); s.IsSet() {
				g.Protocols = append(g.Protocols, source.Pair{Key: k, Value: s})
			}
		})
	}},
	source.Field[Gateway]{Name: "auth", Read: func(d *decoder, n *node, g *Gateway) { source.Map(d, n, authFields, &g.Auth) }},
	source.Field[Gateway]{Name: "models", Read: func(d *decoder, n *node, g *Gateway) {
		source.Keys(d, n, func(k source.Str, v *node) {
			var m gatewayModel
			source.Map(d, v, gatewayModelFields, &m)
			if m.one.Upstream.IsSet() || m.one.Model.IsSet() {
				m.many = append(m.many, m.one)
			}
			g.Models = append(g.Models, GatewayModel{k, m.many})
		})
	}},
	source.Field[Gateway]{Name: "upstreams", Read: func(d *decoder, n *node, g *Gateway) {
		source.Keys(d, n, func(k source.Str, v *node) {
			u := Upstream{Name: k}
			source.Map(d, v, upstreamFields, &u)
			g.Upstreams = append(g.Upstreams, u)
		})
	}},
)

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

var presetFields = append(header(func(p *Preset) *Header { return &p.Header }),
	source.Field[Preset]{Name: "hosts", Read: func(d *decoder, n *node, p *Preset) { p.Hosts = readHosts(d, n, false).Items }},
	url("source", func(p *Preset) *source.Str { return &p.Source }, "https", "http"),
	date("reviewed", func(p *Preset) *Date { return &p.Reviewed }),
)

var profileFields = bodyOf(append(header(func(p *Profile) *Header { return &p.Header }),
	name("extends", func(p *Profile) *source.Str { return &p.Extends })),
	bodyFields, func(p *Profile) *Body { return &p.Body })

// bodyOf adds the fields of a Body to those of the document that holds one.
func bodyOf[T any](fields []source.Field[T], body []source.Field[Body], at func(*T) *Body) []source.Field[T] {
	for _, f := range body {
		g := source.Field[T]{Name: f.Name, Hint: f.Hint}
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
	{Name: "percent", Read: func(d *decoder, n *node, m *Membership) {
		f, pos := d.Number(n)
		if !pos.IsValid() {
			return
		}
		if f < 0 || f > 100 || f*100 != math.Round(f*100) {
			x := d.Report(codePercent, n, "%s is not a percentage from 0 to 100 with at most two decimals", n.Value)
			d.Diags.Add(*x)
			return
		}
		m.Percent = source.Int{V: int64(math.Round(f * 100)), Pos: pos}
	}},
	boolean("default", func(m *Membership) *source.Bool { return &m.Default }),
	boolean("optIn", func(m *Membership) *source.Bool { return &m.OptIn }),
}

var unitMembershipFields = []source.Field[Membership]{ringMembershipFields[0], ringMembershipFields[1]}

var ringFields = append(header(func(r *Ring) *Header { return &r.Header }),
	source.Field[Ring]{Name: "order", Read: func(d *decoder, n *node, r *Ring) { r.Order = d.Int(n, 0, math.MaxInt32) }},
	name("profile", func(r *Ring) *source.Str { return &r.Profile }),
	str("release", func(r *Ring) *source.Str { return &r.Release }),
	source.Field[Ring]{Name: "membership", Read: func(d *decoder, n *node, r *Ring) { source.Map(d, n, ringMembershipFields, &r.Membership) }},
	enum("posture", func(r *Ring) *source.Str { return &r.Posture }, "off", "warn", "enforce"),
	enum("versionGate", func(r *Ring) *source.Str { return &r.VersionGate }, "off", "warn", "enforce"),
	source.Field[Ring]{Name: "egress", Hint: "a ring has no policy of its own: write a child profile with the extra hosts and point the ring at it"},
	source.Field[Ring]{Name: "sandbox", Hint: "a ring has no policy of its own: write a child profile and point the ring at it"},
)

var unitFields = append(header(func(u *Unit) *Header { return &u.Header }),
	source.Field[Unit]{Name: "membership", Read: func(d *decoder, n *node, u *Unit) { source.Map(d, n, unitMembershipFields, &u.Membership) }},
	list("rings", func(u *Unit) *source.Strs { return &u.Rings }),
	name("parent", func(u *Unit) *source.Str { return &u.Parent }),
	source.Field[Unit]{Name: "overlay", Read: func(d *decoder, n *node, u *Unit) { source.Map(d, n, overlayFields, &u.Overlay) }},
	source.Field[Unit]{Name: "egress", Hint: "write it under overlay"},
	source.Field[Unit]{Name: "sandbox", Hint: "write it under overlay"},
)

var testFields = []source.Field[Test]{
	str("host", func(t *Test) *source.Str { return &t.Host }),
	str("path", func(t *Test) *source.Str { return &t.Path }),
	name("ring", func(t *Test) *source.Str { return &t.Ring }),
	list("units", func(t *Test) *source.Strs { return &t.Units }),
	enum("os", func(t *Test) *source.Str { return &t.OS }, OSes...),
	name("sandbox", func(t *Test) *source.Str { return &t.Sandbox }),
	{Name: "port", Read: func(d *decoder, n *node, t *Test) { t.Port = d.Int(n, 1, 65535) }},
	enum("expect", func(t *Test) *source.Str { return &t.Expect }, "allow", "deny"),
	str("rule", func(t *Test) *source.Str { return &t.Rule }),
}

var testDocFields = append(header(func(t *PolicyTest) *Header { return &t.Header }),
	source.Field[PolicyTest]{Name: "tests", Read: func(d *decoder, n *node, p *PolicyTest) {
		source.Seq(d, n, func(_ int, c *node) {
			t := Test{Pos: d.Pos(c)}
			source.Map(d, c, testFields, &t)
			if source.IsMapping(c) {
				d.Require(c, "expect", t.Expect.IsSet())
				if (source.Get(c, "host") == nil) == (source.Get(c, "path") == nil) {
					d.Diags.Add(*d.Report(codeTest, c, "a policy test needs exactly one of host and path"))
				}
				switch sandbox := source.Get(c, "sandbox") != nil; {
				case !sandbox && source.Get(c, "port") != nil:
					d.Diags.Add(*d.Report(codeTest, source.Get(c, "port"), "a port matters to a sandbox only; name one with sandbox"))
				case sandbox && source.Get(c, "path") != nil:
					d.Diags.Add(*d.Report(codeTest, source.Get(c, "sandbox"), "a test of a sandbox asks about a host"))
				}
			}
			p.Tests = append(p.Tests, t)
		})
	}},
)

var exceptionFields = append(header(func(e *Exception) *Header { return &e.Header }),
	name("unit", func(e *Exception) *source.Str { return &e.Unit }),
	name("ring", func(e *Exception) *source.Str { return &e.Ring }),
	str("field", func(e *Exception) *source.Str { return &e.Field }),
	str("entry", func(e *Exception) *source.Str { return &e.Entry }),
	str("owner", func(e *Exception) *source.Str { return &e.Owner }),
	str("reason", func(e *Exception) *source.Str { return &e.Reason }),
	str("ticket", func(e *Exception) *source.Str { return &e.Ticket }),
	date("expires", func(e *Exception) *Date { return &e.Expires }),
)

// required lists the keys that each kind cannot do without.
var required = map[string][]string{
	"Gateway":    {"name", "baseURL"},
	"Preset":     {"name", "hosts"},
	"Profile":    {"name"},
	"Ring":       {"name", "order", "profile"},
	"Unit":       {"name", "overlay"},
	"PolicyTest": {"name", "tests"},
	"Sandbox":    {"name"},
	"Exception":  {"name", "field", "owner", "reason", "expires"},
}

// Kinds are the kinds of documents besides Halos, sorted.
var Kinds = []string{"Exception", "Gateway", "PolicyTest", "Preset", "Profile", "Ring", "Sandbox", "Unit"}

// document decodes one document of a known kind and returns the typed value.
func document(d *decoder, kind string, n *node, pos diag.Pos) headed {
	h := Header{Kind: kind, Pos: pos}
	var out headed
	switch kind {
	case "Gateway":
		out = read(d, n, gatewayFields, &Gateway{Header: h})
	case "Preset":
		out = read(d, n, presetFields, &Preset{Header: h})
	case "Profile":
		out = read(d, n, profileFields, &Profile{Header: h})
	case "Ring":
		out = read(d, n, ringFields, &Ring{Header: h})
	case "Unit":
		out = read(d, n, unitFields, &Unit{Header: h})
	case "PolicyTest":
		out = read(d, n, testDocFields, &PolicyTest{Header: h})
	case "Exception":
		e := read(d, n, exceptionFields, &Exception{Header: h})
		if (source.Get(n, "unit") == nil) == (source.Get(n, "ring") == nil) {
			d.Diags.Add(*d.Report(codeException, n, "an exception names exactly one of unit and ring"))
		}
		out = e
	case "Sandbox":
		out = readSandbox(d, n, &Sandbox{Header: h})
	}
	for _, key := range required[kind] {
		d.Require(n, key, false)
	}
	return out
}

func read[T any](d *decoder, n *node, fields []source.Field[T], into *T) *T {
	source.Map(d, n, fields, into)
	return into
}
