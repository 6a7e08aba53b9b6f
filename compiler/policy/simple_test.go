package policy

import (
	"fmt"
	"strings"
	"testing"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
)

// simple is a halos.yaml in simple mode, in the form that load takes; routed has a gateway.
func simple(more string) string { return "halos.yaml=org: a\ntools: {claude-code: 2.1.332}\n" + more }

func routed(more string) string { return simple("gateway: https://ai.acme.example\n" + more) }

// TestSimpleTables holds that the tables of simple mode are what expand takes them for.
func TestSimpleTables(t *testing.T) {
	for _, s := range safeties {
		for _, p := range s.protected {
			if _, problem := fspath.ParseProtected(p); problem != nil {
				t.Errorf("%s: %s %s", s.word, p, problem.Reason)
			}
		}
		for _, name := range s.presets {
			if _, ok := BuiltinPatterns(name); !ok {
				t.Errorf("%s: there is no preset %s", s.word, name)
			}
		}
	}
	for _, r := range rollouts {
		var percent int64
		for i, st := range r.rings {
			percent += st.percent
			if middle := i > 0 && i < len(r.rings)-1; middle != (st.percent > 0) || badName(st.name) != "" {
				t.Errorf("%s: ring %+v", r.word, st)
			}
		}
		if percent > 100_00 || len(r.rings) < 2 {
			t.Errorf("%s: %d", r.word, percent)
		}
	}
	for id, url := range providerURL {
		if !validURL(url, []string{"https"}) {
			t.Errorf("%s: %s", id, url)
		}
	}
}

// TestSimple loads simple mode and compares what it makes, each value with its line in halos.yaml.
func TestSimple(t *testing.T) {
	r, ds := load(t, `halos.yaml=org: acme
tools:
  claude-code: 2.1.332
  codex: {version: 0.138.0, model: code}
  opencode: 1.19.5
provider: {name: bedrock, region: eu-west-1}
models:
  default: claude
  code: [openai/gpt, openai/gpt-old]
gateway: https://ai.acme.example
gatewayEngine: kong
telemetry: https://otel.acme.example:4318
team: [platform, ann@acme.example]
safety: strict
rollout: fast
egress:
  allow: ["*.acme.example", ai.acme.example]
  deny: [pastebin.com]
`)
	if len(ds) > 0 {
		t.Fatal(lines(r, ds))
	}
	g, p := r.Gateway, r.Profile("default")
	if r.Gateway == nil || p == nil || len(r.Profiles) != 1 || p.Base != nil || len(r.Rings) != 2 {
		t.Fatalf("%+v %+v %d", g, p, len(r.Rings))
	}
	var got strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&got, format+"\n", args...) }
	say("gateway %s %s %s %d", g.ID(), g.BaseURL.V, g.Engine.V, g.Pos.Line())
	for _, x := range g.Protocols {
		say("protocol %s %s %d", x.Key.V, x.Value.V, x.Key.Pos.Line())
	}
	for _, m := range g.Models {
		for _, x := range m.Targets {
			say("model %s %s %s %d %d", m.Alias.V, x.Upstream.V, x.Model.V, x.Priority.V, x.Model.Pos.Line())
		}
	}
	for _, u := range g.Upstreams {
		say("upstream %s %s %s %s %d", u.Name.V, u.Kind.V, u.URL.V, u.Region.V, u.Name.Pos.Line())
	}
	for _, h := range p.Harnesses {
		say("harness %s %s %s %d %d", h.Harness.V, h.Version.V, h.Model.V, h.Version.Pos.Line(), h.Model.Pos.Line())
	}
	say("models %s %s %s %d", p.Models.Default.V, p.Models.Allowed.Items[0].V, p.Models.Allowed.Items[1].V, p.Models.Default.Pos.Line())
	say("%s %v %v %d", p.Permissions.Mode.V, p.Permissions.DisableBypass.V, p.Permissions.SandboxRequired.V, p.Permissions.SandboxRequired.Pos.Line())
	say("sandbox %s %d", p.Sandbox.Mode.V, p.Sandbox.Mode.Pos.Line())
	for _, x := range p.Sandbox.ProtectedPaths.Items {
		say("protected %s %d", x.Path, x.Pos.Line())
	}
	say("egress %s %d", p.Egress.Default.V, p.Egress.Default.Pos.Line())
	for _, h := range p.Egress.AllowedDomains.Items {
		say("allow %s %d", h.Pattern, h.Pos.Line())
	}
	for _, x := range p.Egress.Presets.Items {
		say("preset %s %d", x.V, x.Pos.Line())
	}
	for _, h := range p.Egress.DeniedDomains.Items {
		say("deny %s %d", h.Pattern, h.Pos.Line())
	}
	say("managed %v %v", p.MCP.ManagedOnly.V, p.Hooks.ManagedOnly.V)
	say("telemetry %v %s %s %d", p.Telemetry.Enabled.V, p.Telemetry.OTLPEndpoint.V, p.Telemetry.Protocol.V, p.Telemetry.Enabled.Pos.Line())
	for _, x := range r.Rings {
		m := x.Membership
		say("ring %s %d %s users %d groups %d default %v percent %v %d", x.Name.V, x.Order.V, x.Profile.V, len(m.Users.Items), len(m.Groups.Items), m.Default.V, m.Percent.IsSet(), x.Pos.Line())
	}
	const want = `gateway Gateway/default https://ai.acme.example kong 10
protocol claude-code bedrock-invoke 3
protocol codex openai-responses 4
model default bedrock claude 0 8
model code openai gpt 0 9
model code openai gpt-old 1 9
upstream bedrock bedrock  eu-west-1 6
upstream openai openai https://api.openai.com  9
harness claude-code 2.1.332 default 3 3
harness codex 0.138.0 code 4 4
harness opencode 1.19.5  5 0
models default default code 8
default true true 14
sandbox workspace-write 14
protected .env 14
protected .env.* 14
protected secrets/** 14
protected ~/.aws 14
protected ~/.ssh 14
protected ~/.kube 14
protected ~/.config/gcloud 14
protected **/*.pem 14
protected **/*.key 14
egress deny 14
allow *.acme.example 17
allow ai.acme.example 17
preset vcs 14
preset package-registries 14
deny pastebin.com 18
managed true true
telemetry true https://otel.acme.example:4318 http/protobuf 12
ring ring0-team 0 default users 1 groups 1 default false percent false 15
ring ring1-ga 1 default users 0 groups 0 default true percent false 15
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
	for _, h := range []*Header{&g.Header, &p.Header, &r.Rings[0].Header} {
		if h.Bad || r.Files.Name(h.Pos) != RootFile {
			t.Errorf("%s: %+v", h.ID(), h)
		}
	}
	for pos, want := range map[string]string{
		r.Root.Simple.Key(p.Harnesses[1].Model.Pos):                 "tools.codex.model",
		r.Root.Simple.Key(p.Egress.AllowedDomains.Items[1].Pos):     "egress.allow[1]",
		r.Root.Simple.Key(p.Egress.DeniedDomains.Items[0].Pos):      "egress.deny[0]",
		r.Root.Simple.Key(r.Rings[0].Membership.Users.Items[0].Pos): "team[1]",
		r.Root.Simple.Key(g.Models[1].Targets[1].Model.Pos):         "models.code",
		r.Root.Simple.Key(r.Root.Org.Pos):                           "",
	} {
		if pos != want {
			t.Errorf("key %q, want %q", pos, want)
		}
	}
}

// TestSimpleHosts holds which hosts an allow list gets, and that there is none without need.
func TestSimpleHosts(t *testing.T) {
	for _, c := range []struct{ root, more, allow, dflt string }{
		{"safety: standard", "", "", ""},
		{"egress: {deny: [a.example]}", "", "", ""},
		{"egress: {allow: [a.example]}", "", "a.example", "deny"},
		{"egress: {allow: []}", "", "", "deny"},
		{"safety: strict", "", "", "deny"},
		{"gateway: https://ai.acme.example\nsafety: strict", "", "ai.acme.example", "deny"},
		{"gateway: https://ai.acme.example\ntelemetry: https://ai.acme.example:4318\nsafety: strict", "", "ai.acme.example", "deny"},
		{"gateway: https://ai.acme.example\nsafety: relaxed\negress: {allow: ['*.acme.example']}", "", "*.acme.example", "deny"},
		{"gateway: http://localhost:8080\ntelemetry: http://localhost:4318\nsafety: strict", "", "", "deny"},
		{"gateway: https://10.1.2.3\nsafety: strict", "", "", "deny"},
		// What documents say counts.
		{"gateway: https://ai.acme.example\nsafety: strict", doc("Gateway", "baseURL: https://other.acme.example"), "other.acme.example", "deny"},
		{"safety: strict", doc("Gateway", "baseURL: https://other.acme.example"), "other.acme.example", "deny"},
		{"telemetry: https://otel.acme.example\nsafety: strict", strings.Replace(doc("Profile", "telemetry: {otlpEndpoint: https://o.acme.example}"), "name: x", "name: default", 1), "o.acme.example", "deny"},
	} {
		r, ds := load(t, simple(c.root), "x.yaml="+c.more)
		p := r.Profile("default")
		if p == nil || len(ds) > 0 {
			t.Errorf("%s: %s", c.root, lines(r, ds))
			continue
		}
		if p.Base != nil {
			p = p.Base
		}
		var hosts []string
		for _, h := range p.Egress.AllowedDomains.Items {
			hosts = append(hosts, h.Pattern.String())
		}
		if got := strings.Join(hosts, " "); got != c.allow || p.Egress.Default.V != c.dflt {
			t.Errorf("%s: allows %q by default %q", c.root, got, p.Egress.Default.V)
		}
	}
}

// TestSimpleOverlay holds that documents lie over what simple mode makes, key by key.
func TestSimpleOverlay(t *testing.T) {
	r, ds := load(t, routed("provider: {name: bedrock, region: eu-west-1}\nmodels: {default: a, fast: b}\nrollout: standard\nteam: [platform]"), "x.yaml="+`apiVersion: halos.dev/v1
kind: Ring
name: ring1-canary
membership: {percent: 10, groups: [early]}
---
apiVersion: halos.dev/v1
kind: Ring
name: ring0-team
order: 9
membership: {users: []}
---
apiVersion: halos.dev/v1
kind: Gateway
name: mine
engine: external
models: {fast: {upstream: other, model: c}}
upstreams: {bedrock: {region: us-east-1}, other: {url: https://o.acme.example, kind: anthropic}}
---
apiVersion: halos.dev/v1
kind: Profile
name: default
instructions: Be kind.
`)
	if len(ds) > 0 {
		t.Fatal(lines(r, ds))
	}
	canary, team := r.Ring("ring1-canary"), r.Ring("ring0-team")
	if canary.Order.V != 1 || canary.Profile.V != "default" || canary.Membership.Percent.V != 10_00 || len(canary.Membership.Groups.Items) != 1 || canary.Name.Pos.File() != 1 || len(r.Rings) != 4 {
		t.Errorf("%+v", canary)
	}
	if team.Order.V != 9 || !team.Membership.Users.IsSet() || len(team.Membership.Groups.Items) != 1 || team.Profile.V != "default" {
		t.Errorf("%+v", team)
	}
	g := r.Gateway
	if g.Name.V != "mine" || g.Engine.V != "external" || g.BaseURL.V != "https://ai.acme.example" || g.Host != host.Name("ai.acme.example") || len(g.Models) != 2 || len(g.Upstreams) != 2 ||
		g.Upstreams[0].Region.V != "us-east-1" || g.Upstreams[0].Kind.V != "bedrock" || g.Models[0].Targets[0].Model.V != "c" || g.Models[1].Alias.V != "default" {
		t.Errorf("%+v", g)
	}
	p := r.Profile("default")
	if p.Base == nil || p.Instructions.V != "Be kind." || p.Base.Instructions.IsSet() || len(p.Harnesses) > 0 || len(p.Base.Harnesses) != 1 || len(r.Layers()) != 2 {
		t.Errorf("%+v", p)
	}
	if len(r.Documents) != 5 {
		t.Errorf("%d documents", len(r.Documents))
	}
}

// TestSimpleLacks holds that simple mode gives to documents what it has, and that everything else they lack is still missed.
func TestSimpleLacks(t *testing.T) {
	for _, c := range []struct{ root, more, want string }{
		{simple("rollout: fast"), doc("Ring", "order: 4"), "x.yaml:1:1 HALO1017 profile: required key \"profile\" is missing ()"},
		{simple("rollout: fast"), doc("Gateway", "engine: kong"), "x.yaml:1:1 HALO1017 baseURL: required key \"baseURL\" is missing ()"},
		{root, doc("Ring", "membership: {default: true}"), "x.yaml:1:1 HALO1017 order: required key \"order\" is missing ()\nx.yaml:1:1 HALO1017 profile: required key \"profile\" is missing ()"},
		{"halos.yaml=org: a\nsafety: strict", strings.Replace(doc("Profile", "harnesses: {codex: 0.138.0}"), "name: x", "name: default", 1), ""},
		{simple("rollout: fast"), doc("Profile", "telemetry: {enabled: true}") + "\n---\n" + doc("Ring", "order: 7\nprofile: x"),
			"x.yaml:10:10 HALO1120 profile: ring x gets nothing of what halos.yaml says in simple mode: its profile x does not extend default (write extends: default in that profile, or profile: default here)"},
		{simple("rollout: fast"), doc("Profile", "extends: default") + "\n---\n" + doc("Ring", "order: 7\nprofile: x"), ""},
		{simple("rollout: fast"), doc("Profile", "extends: x") + "\n---\n" + doc("Ring", "order: 7\nprofile: x"), ""},
	} {
		if !strings.HasPrefix(c.root, "halos.yaml=") {
			c.root = "halos.yaml=" + c.root
		}
		r, ds := load(t, c.root, "x.yaml="+c.more)
		if got := lines(r, ds); got != c.want {
			t.Errorf("%s\n%s\ngot\n%s\nwant\n%s", c.root, c.more, got, c.want)
		}
		for _, d := range ds {
			if h := r.DocumentAt(d.Pos); h == nil || d.Code != codeBeside && !h.Bad {
				t.Errorf("%s: not marked", d.Message)
			}
		}
	}
	// The administrators are the team when there is no other.
	r, _ := load(t, simple("identity: {adminGroups: [admins]}"))
	if got := r.Ring("ring0-team").Membership; len(got.Groups.Items) != 1 || got.Groups.Items[0].V != "admins" {
		t.Errorf("%+v", got)
	}
	// An error in halos.yaml marks everything that is made of it.
	r, _ = load(t, simple("lifetime: soon"))
	if p := r.Profile("default"); p == nil || !p.Bad || !r.Rings[0].Bad {
		t.Errorf("%+v", p)
	}
}
