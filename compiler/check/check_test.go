package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
)

// now is the instant at which the tests judge expiry.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// scaffold is a repo without a finding. A document given under the same kind and name takes the place of one of it.
var scaffold = []string{
	"Gateway main baseURL: https://ai.acme.example",
	"Profile base harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}, telemetry: {enabled: true}",
	"Ring ga order: 3, profile: base, membership: {default: true}",
}

func check(t *testing.T, docs ...string) ([]Permit, []diag.Diagnostic) {
	t.Helper()
	byName := map[string]string{}
	var order []string
	for _, d := range slices.Concat(scaffold, docs) {
		f := strings.SplitN(d, " ", 3)
		name := f[0] + " " + f[1]
		if _, ok := byName[name]; !ok {
			order = append(order, name)
		}
		byName[name] = ""
		if len(f) > 2 {
			byName[name] = f[2]
		}
	}
	var text strings.Builder
	for _, name := range order {
		body := byName[name]
		if body == "-" {
			continue // takes a document of the scaffold away
		}
		kind, name, _ := strings.Cut(name, " ")
		if kind == "Halos" {
			continue
		}
		if body != "" {
			body = ", " + body
		}
		fmt.Fprintf(&text, "---\n{apiVersion: halos.dev/v1, kind: %s, name: %s%s}\n", kind, name, body)
	}
	root := "org: acme\n"
	if body, ok := byName["Halos root"]; ok {
		root += body + "\n"
	}
	var diags diag.List
	repo := policy.Load(t.Context(), fstest.MapFS{"halos.yaml": {Data: []byte(root)}, "x.yaml": {Data: []byte(text.String())}}, policy.Options{}, &diags)
	if diags.Errors() > 0 {
		for _, d := range diags.Sorted() {
			t.Errorf("%s %s: %s", d.Code.ID, d.Path, d.Message)
		}
		t.Fatal(text.String())
	}
	r := effective.NewResolver(repo)
	permits := Repo(Input{Repo: repo, Resolver: r, Targets: r.Targets(), Overrides: map[string][]string{"claude-code": {"theme", "tui.*"}}, Now: now}, &diags)
	return permits, diags.Sorted()
}

// base is the profile of the scaffold with more to it.
func base(rest string) string { return scaffold[1] + ", " + rest }

const (
	locked = "harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}, telemetry: {enabled: true}"
	// listed allows what the policies of the tests need.
	listed = "egress: {allowedDomains: [ai.acme.example, '*.corp.example']}"
)

func exception(who, field, entry, expires string) string {
	return fmt.Sprintf("Exception e %s, field: %s, entry: %s, owner: o, reason: r, expires: %s", who, field, entry, expires)
}

// TestCodes has, for every code, a repo with exactly this finding at a place and a repo, as near to it as can be, without any.
func TestCodes(t *testing.T) {
	rows := []struct {
		code      *diag.Code
		path      string
		bad, good []string
	}{
		{codePreset, "egress.presets[1]", []string{base("egress: {allowedDomains: [ai.acme.example], presets: [vcs, npm]}")}, []string{base("egress: {allowedDomains: [ai.acme.example], presets: [vcs, npm]}"), "Preset npm hosts: [npm.acme.example]"}},
		{codeDefaultAllow, "egress.default", []string{base("egress: {default: allow, presets: [vcs]}")}, []string{base("egress: {default: allow, presets: []}")}},
		{codeGateway, "egress", []string{base("egress: {allowedDomains: [github.com]}")}, []string{base("egress: {allowedDomains: [github.com]}"), "Gateway main baseURL: http://127.0.0.1:8080"}},
		{codeGateway, "egress.deniedDomains[1]", []string{base("egress: {allowedDomains: [github.com, ai.acme.example], deniedDomains: [x.example, '*.acme.example']}"), "Gateway main baseURL: https://b.acme.example"}, []string{base("egress: {deniedDomains: [x.example, '*.x.example', '*.acme.example']}"), "Gateway main baseURL: https://acme.example"}},
		{codeFlip, "egress.allowedDomains", []string{"Profile parent " + listed, "Profile base extends: parent, egress: {allowedDomains: []}, " + locked}, []string{"Profile parent egress: {deniedDomains: [x.example, '*.x.example']}", "Profile base extends: parent, egress: {allowedDomains: [ai.acme.example]}, " + locked}},
		{codeOpenByEmptiness, "egress.presets", []string{base("egress: {presets: []}")}, []string{base("egress: {presets: [], deniedDomains: [x.example], default: deny, allowedDomains: [ai.acme.example]}")}},
		{codePreset, "egress.presets[0]", []string{base("egress: {presets: [npm]}")}, nil},
		{codeOpenByEmptiness, "egress.allowedDomains", []string{base("egress: {allowedDomains: []}")}, []string{base("egress: {allowedDomains: [], default: allow}")}},
		{codeSwallowed, "egress.allowedDomains[1]", []string{base("egress: {allowedDomains: [ai.acme.example, a.x.example], deniedDomains: ['*.x.example']}")}, []string{base("egress: {allowedDomains: [ai.acme.example, x.example], deniedDomains: ['*.x.example']}")}},
		{codeCovered, "egress.allowedDomains[1]", []string{base("egress: {allowedDomains: ['*.acme.example', b.acme.example]}")}, []string{base("egress: {allowedDomains: ['*.acme.example', acme.example]}")}},
		{codeCovered, "egress.deniedDomains[1]", []string{base("egress: {default: deny, allowedDomains: [ai.acme.example], deniedDomains: [x.example, x.example]}")}, []string{base("egress: {default: deny, allowedDomains: [ai.acme.example], deniedDomains: [x.example]}")}},
		{codeApexOnly, "egress.deniedDomains[0]", []string{base("egress: {deniedDomains: [x.example]}")}, []string{base("egress: {deniedDomains: [x.example], allowedDomains: [ai.acme.example]}")}},
		{codeSharedSuffix, "egress.allowedDomains[1]", []string{base("egress: {allowedDomains: [ai.acme.example, '*.github.io']}")}, []string{base("egress: {allowedDomains: [ai.acme.example, '*.acme.github.io']}")}},
		{codeSharedSuffix, "hosts[0]", []string{"Preset pages hosts: ['*.github.io']"}, []string{"Preset pages hosts: [acme.github.io]"}},
		{codeCovered, "hosts[1]", []string{"Preset pages hosts: [acme.github.io, acme.github.io]"}, []string{"Preset pages hosts: [acme.github.io]"}},
		{codeEndpointDenied, "telemetry.otlpEndpoint", []string{"Profile base harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}, " + listed + ", telemetry: {enabled: true, otlpEndpoint: 'https://otel.example'}"}, []string{"Profile base harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}, " + listed + ", telemetry: {enabled: true, otlpEndpoint: 'https://otel.corp.example'}"}},
		{codeEndpointDenied, "mcp.servers[0].url", []string{base(listed + ", mcp: {servers: [{name: a, url: 'https://mcp.example'}]}")}, []string{base(listed + ", mcp: {servers: [{name: a, url: 'https://mcp.corp.example'}]}")}},

		{codeReadOnlyRoots, "sandbox.writableRoots", []string{base("sandbox: {mode: read-only, writableRoots: [/opt/a]}")}, []string{base("sandbox: {mode: read-only, writableRoots: []}")}},
		{codeOff, "sandbox.mode", []string{base("sandbox: {mode: 'off', protectedPaths: [~/.ssh]}")}, []string{base("sandbox: {mode: 'off', protectedPaths: []}")}},
		{codeOff, "sandbox.mode", []string{base("sandbox: {mode: 'off'}, egress: {deniedDomains: [x.example, '*.x.example']}")}, []string{base("sandbox: {mode: 'off'}, egress: {default: allow}")}},
		{codeConflict, "sandbox.writableRoots[1]", []string{base("sandbox: {writableRoots: [/opt/b, /opt/a], protectedPaths: [/opt/a/x]}")}, []string{base("sandbox: {writableRoots: [/opt/b, /opt/a], protectedPaths: [/opt/ax]}")}},
		{codeConfigRoot, "sandbox.writableRoots[0]", []string{base("sandbox: {writableRoots: [~/.claude]}")}, []string{base("sandbox: {writableRoots: [~/.claude-cache]}")}},
		{codeRequiredOff, "permissions.sandboxRequired", []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}, permissions: {disableBypass: true, sandboxRequired: true, sandbox: 'off'}, egress: {default: allow}"}, []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}, permissions: {disableBypass: true, sandboxRequired: true, sandbox: read-only}, egress: {default: allow}"}},
		{codeUnionEmpty, "sandbox.protectedPaths", []string{"Profile parent sandbox: {protectedPaths: [~/.ssh]}", "Profile base extends: parent, sandbox: {protectedPaths: []}, " + locked}, []string{"Profile parent sandbox: {protectedPaths: [~/.ssh]}", "Profile base extends: parent, sandbox: {writableRoots: []}, " + locked}},

		{codeUnionEmpty, "hooks.items", []string{"Profile parent hooks: {items: [{event: Stop, command: a}], managedOnly: true}", "Profile base extends: parent, hooks: {items: []}, " + locked}, []string{"Profile parent hooks: {items: [{event: Stop, command: a}], managedOnly: true}", "Profile base extends: parent, hooks: {managedOnly: true}, " + locked}},

		{codeExtends, "extends", []string{"Profile a extends: bse"}, []string{"Profile a extends: base"}},
		{codeExtends, "extends", []string{"Profile a extends: a"}, []string{"Profile a extends: base", "Profile b extends: a"}},
		{codeNoRing, "", []string{"Ring ga -"}, nil},
		{codeRing, "order", []string{"Ring early order: 3, profile: base"}, []string{"Ring early order: 2, profile: base"}},
		{codeRing, "membership.default", []string{"Ring early order: 1, profile: base, membership: {default: true}"}, []string{"Ring early order: 1, profile: base, membership: {default: false}"}},
		{codeRing, "membership.default", []string{"Ring ga order: 3, profile: base"}, nil},
		{codeRing, "membership.percent", []string{"Ring ga order: 3, profile: base, membership: {default: true, percent: 5}"}, []string{"Ring early order: 1, profile: base, membership: {percent: 5}"}},
		{codeRing, "membership.percent", []string{"Ring a order: 1, profile: base, membership: {percent: 60}", "Ring b order: 2, profile: base, membership: {percent: 40.01}"}, []string{"Ring a order: 1, profile: base, membership: {percent: 60}", "Ring b order: 2, profile: base, membership: {percent: 40}"}},
		{codeRing, "membership.users[1]", []string{"Ring a order: 1, profile: base, membership: {users: [eve]}", "Ring b order: 2, profile: base, membership: {users: [bob, eve]}"}, []string{"Ring a order: 1, profile: base, membership: {users: [eve]}", "Ring b order: 2, profile: base, membership: {users: [bob]}"}},
		{codeRingProfile, "profile", []string{"Ring early order: 1, profile: bse"}, []string{"Ring early order: 1, profile: base"}},
		{codeRingProfile, "profile", []string{"Profile base permissions: {disableBypass: true}, telemetry: {enabled: true}"}, nil},
		{codeRingProfile, "harnesses.claude-code.version", []string{"Profile base harnesses: {claude-code: {model: a}}, permissions: {disableBypass: true}, telemetry: {enabled: true}"}, []string{"Profile other harnesses: {claude-code: {model: a}}"}},
		{codeUnit, "rings[1]", []string{"Unit u rings: [ga, g], overlay: {}"}, []string{"Unit u rings: [ga], overlay: {}"}},
		{codeUnit, "rings", []string{"Unit u rings: [], overlay: {}"}, []string{"Unit u overlay: {}"}},
		{codeUnit, "parent", []string{"Unit u parent: v, overlay: {}"}, []string{"Unit u parent: v, overlay: {}", "Unit v overlay: {}"}},
		{codeUnit, "parent", []string{"Unit u parent: u, overlay: {}"}, nil},
		{codeReference, "combinations[0][1]", []string{"Halos root combinations: [[u, v]]", "Unit u overlay: {}"}, []string{"Halos root combinations: [[u, v]]", "Unit u overlay: {}", "Unit v overlay: {}"}},
		{codeReference, "tests[0].ring", []string{"PolicyTest t tests: [{host: a.example, ring: g, expect: allow}]"}, []string{"PolicyTest t tests: [{host: a.example, ring: ga, expect: allow}]"}},
		{codeReference, "tests[0].units[0]", []string{"PolicyTest t tests: [{host: a.example, units: [u], expect: allow}]"}, []string{"PolicyTest t tests: [{host: a.example, units: [u], expect: allow}]", "Unit u overlay: {}"}},
		{codeReference, "models.a.upstream", []string{"Gateway main baseURL: https://ai.acme.example, models: {a: {upstream: x, model: m}}"}, []string{"Gateway main baseURL: https://ai.acme.example, models: {a: {upstream: x, model: m}}, upstreams: {x: {kind: openai}}"}},
		{codeReference, "unit", []string{exception("unit: u", "egress.default", "allow", "2027-06-30")}, nil},
		{codeReference, "ring", []string{exception("ring: g", "egress.default", "allow", "2027-06-30")}, nil},
		{codeRelease, "release", []string{"Ring ga order: 3, profile: base, membership: {default: true}, release: sha256:0123"}, []string{"Ring ga order: 3, profile: base, membership: {default: true}, release: 'sha256:" + strings.Repeat("0a", 32) + "'"}},

		{codeBypass, "permissions.mode", []string{"Profile other permissions: {mode: bypassPermissions}"}, []string{"Profile other permissions: {mode: auto}"}},
		{codeBypass, "env.MODE", []string{base("env: {MODE: x-danger-full-access}")}, []string{base("env: {MODE: full-access}")}},
		{codeBypass, "harnesses.claude-code.overrides.theme", []string{"Profile base harnesses: {claude-code: {version: 2.1.332, overrides: {theme: bypassPermissions}}}, permissions: {disableBypass: true}, telemetry: {enabled: true}"}, []string{"Profile base harnesses: {claude-code: {version: 2.1.332, overrides: {theme: dark}}}, permissions: {disableBypass: true}, telemetry: {enabled: true}"}},
		{codeBypass, "harnesses.claude-code.overrides", []string{"Profile base harnesses: {claude-code: {version: 2.1.332, overrides: {theme: [{a: [bypassPermissions]}]}}}, permissions: {disableBypass: true}, telemetry: {enabled: true}"}, nil},
		{codeDisableBypass, "permissions.disableBypass", []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}"}, []string{"Profile other harnesses: {claude-code: 2.1.332}"}},
		{codeAuto, "permissions.mode", []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}, permissions: {disableBypass: true, mode: auto}"}, []string{"Profile other extends: base, permissions: {mode: plan}"}},
		{codeLogPrompts, "telemetry.logPrompts", []string{"Profile base harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}, telemetry: {enabled: true, logPrompts: true}"}, []string{"Profile early extends: base, telemetry: {logPrompts: true}", "Ring early order: 1, profile: early"}},
		{codeTelemetry, "telemetry.enabled", []string{"Profile base harnesses: {claude-code: 2.1.332}, permissions: {disableBypass: true}"}, []string{"Profile other permissions: {disableBypass: true}"}},
		{codeHooks, "hooks.managedOnly", []string{base("hooks: {items: [{event: Stop, command: x}]}")}, []string{base("hooks: {managedOnly: true, items: [{event: Stop, command: x}]}")}},
		{codeRequiredEgress, "permissions.sandboxRequired", []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}, permissions: {disableBypass: true, sandboxRequired: true}"}, []string{"Profile base harnesses: {claude-code: 2.1.332}, telemetry: {enabled: true}, permissions: {disableBypass: true, sandboxRequired: true}, egress: {allowedDomains: [ai.acme.example]}"}},
		{codeOverride, "harnesses.claude-code.overrides.hooks", []string{"Profile other harnesses: {claude-code: {overrides: {hooks: {}}}}"}, []string{"Profile other harnesses: {claude-code: {overrides: {theme: x, tui: {a: {b: 1}}}}}"}},
		{codeOverride, "harnesses.codex.overrides.theme", []string{"Profile other harnesses: {codex: {overrides: {theme: x}}}"}, []string{"Profile other harnesses: {codex: {overrides: {}}}"}},
		{codeOverride, "harnesses.claude-code.overrides.themes", []string{"Profile other harnesses: {claude-code: {overrides: {themes: x}}}"}, nil},
		{codeEnv, "env.ld_preload", []string{base("env: {ld_preload: x}")}, []string{base("env: {OLD_PRELOAD: x}")}},
		{codeEnv, "env.ANTHROPIC_CUSTOM_HEADERS", []string{base(`env: {ANTHROPIC_CUSTOM_HEADERS: "a: b\n X-Halo-User: eve"}`)}, []string{base(`env: {ANTHROPIC_CUSTOM_HEADERS: "a: b\nc: d"}`)}},
		{codeEnv, "env.anthropic_custom_headers", []string{base(`env: {anthropic_custom_headers: "a: b"}`)}, nil},
		{codeProxyEnv, "env.https_proxy", []string{base("env: {https_proxy: x}")}, []string{base("env: {MY_HTTPS_PROXY: x}")}},
		{codeSecret, "mcp.servers[0].url", []string{base("mcp: {servers: [{name: a, url: 'https://a.example/?t=ghp_abcdefghijklmnop'}]}")}, []string{base("mcp: {servers: [{name: a, url: 'https://a.example/?t=0123456789abcdef0123456789abcdef'}]}")}},
		{codeSecret, "mcp.servers[0].command[1]", []string{base("mcp: {servers: [{name: a, command: [b, --token=ghp_abcdefghijklmnop]}]}")}, []string{base("mcp: {servers: [{name: a, command: [b, --token-file=/run/token]}]}")}},
		{codeSameServer, "mcp.servers[1].name", []string{base("mcp: {servers: [{name: a, command: [b]}, {name: a, command: [c]}]}")}, []string{base("mcp: {servers: [{name: a, command: [b]}, {name: b, command: [c]}]}")}},
		{codeEnvName, "env.A=B", []string{base("env: {A=B: x}")}, []string{base("env: {A.B: x}")}},
		{codeEnvName, "env.", []string{base("env: {'': x}")}, []string{base("env: {a: x}")}},
		{codeSecret, "env.TOKEN", []string{base("env: {TOKEN: 'ghp_abcdefghijklmnop'}")}, []string{base("env: {TOKEN: '${GH}'}")}},
		{codeSecret, "mcp.servers[0].headers.A", []string{base("mcp: {servers: [{name: a, url: 'https://a.example', headers: {A: Basic eve}}]}")}, []string{base("mcp: {servers: [{name: a, url: 'https://a.example', headers: {A: 'Basic ${EVE}'}}]}")}},
		{codeSecret, "telemetry.attributes.a", []string{"Profile other telemetry: {attributes: {a: AKIAIOSFODNN7EXAMPLE}}"}, []string{"Profile other telemetry: {attributes: {a: AKIA}}"}},
		{codeNoGateway, "", []string{"Gateway main -"}, nil},
		{codeModel, "models.default", []string{base("models: {default: a}"), "Gateway main baseURL: https://ai.acme.example, models: {b: {model: m}}"}, []string{base("models: {default: b}"), "Gateway main baseURL: https://ai.acme.example, models: {b: {model: m}}"}},
		{codeModel, "harnesses.claude-code.model", []string{"Profile other harnesses: {claude-code: {model: a}}", "Gateway main baseURL: https://ai.acme.example, protocols: {claude-code: anthropic-messages}, models: {a: {upstream: x, model: m}}, upstreams: {x: {kind: openai}}"},
			[]string{"Profile other harnesses: {claude-code: {model: a}}", "Gateway main baseURL: https://ai.acme.example, protocols: {claude-code: anthropic-messages}, models: {a: {upstream: x, model: m}}, upstreams: {x: {kind: anthropic}}"}},

		{codeLoosens, "overlay.egress.allowedDomains[1]", []string{base(listed), "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.example]}}"}, []string{base(listed), "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.corp.example]}}"}},
		{codeLoosens, "overlay.egress.allowedDomains[1]", []string{base(listed), "Unit v overlay: {egress: {allowedDomains: [ai.acme.example]}}", "Unit u parent: v, overlay: {egress: {allowedDomains: [ai.acme.example, x.corp.example]}}"},
			[]string{base(listed), "Unit v overlay: {egress: {allowedDomains: [ai.acme.example]}}", "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.corp.example]}}"}},
		{codeLoosens, "overlay.egress.allowedDomains[1]", []string{base(listed), "Unit v overlay: {egress: {deniedDomains: [x.example]}}", "Unit u parent: v, overlay: {egress: {allowedDomains: [ai.acme.example, y.example]}}"},
			[]string{base(listed), "Unit v overlay: {egress: {deniedDomains: [x.example]}}", "Unit u parent: v, overlay: {egress: {allowedDomains: [ai.acme.example, y.corp.example]}}"}},
		{codeLoosens, "overlay.sandbox.mode", []string{"Unit v overlay: {sandbox: {mode: read-only}}", "Unit u parent: v, overlay: {sandbox: {mode: workspace-write}}"}, []string{"Unit v overlay: {sandbox: {mode: workspace-write}}", "Unit u parent: v, overlay: {sandbox: {mode: read-only}}"}},
		{codeLoosens, "overlay.egress.deniedDomains", []string{base(listed), "Unit u overlay: {egress: {deniedDomains: []}}"}, []string{base(listed), "Unit u overlay: {egress: {deniedDomains: [x.example]}}"}},
		{codeLoosens, "overlay.sandbox.mode", []string{base("sandbox: {mode: read-only}"), "Unit u overlay: {sandbox: {mode: workspace-write}}"}, []string{base("sandbox: {mode: workspace-write}"), "Unit u overlay: {sandbox: {mode: read-only}}"}},
		{codeWidens, "egress.allowedDomains[1]", []string{base(listed), "Profile child extends: base, egress: {allowedDomains: [ai.acme.example, x.example]}"}, []string{base(listed), "Profile child extends: base, egress: {allowedDomains: [ai.acme.example, x.corp.example]}"}},
		{codeWidens, "egress.allowedDomains[1]", []string{base(listed), "Profile child extends: base, egress: {allowedDomains: [ai.acme.example, x.example]}", "Ring a order: 1, profile: child", "Ring b order: 2, profile: child", exception("ring: a", "egress.allowedDomains", "x.example", "2027-06-30")},
			[]string{base(listed), "Profile child extends: base, egress: {allowedDomains: [ai.acme.example, x.example]}", "Ring a order: 1, profile: child", exception("ring: a", "egress.allowedDomains", "x.example", "2027-06-30")}},
		{codeExpired, "expires", []string{base(listed), "Profile child extends: base, egress: {allowedDomains: [ai.acme.example, x.example]}", "Ring a order: 1, profile: child", exception("ring: a", "egress.allowedDomains", "x.example", "2026-11-29")}, nil},
		{codeExpires, "expires", []string{base(listed), "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.example]}}", exception("unit: u", "egress.allowedDomains", "x.example", "2026-11-30")},
			[]string{base(listed), "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.example]}}", exception("unit: u", "egress.allowedDomains", "x.example", "2026-12-14")}},
		{codeUnused, "name", []string{exception("ring: ga", "egress.default", "allow", "2027-06-30")}, nil},
	}
	seen := map[*diag.Code]bool{}
	for _, row := range rows {
		seen[row.code] = true
		_, ds := check(t, row.bad...)
		if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == row.code && d.Path == row.path }) {
			t.Errorf("%s at %s is not found in %v:\n%v", row.code.ID, row.path, row.bad, found(ds))
		}
		for _, d := range ds {
			if !d.Pos.IsValid() && d.File == "" || strings.HasSuffix(d.Message, ".") {
				t.Errorf("%s: a finding without a place, or a message with a period: %+v", row.code.ID, d)
			}
		}
		if _, ds := check(t, row.good...); len(ds) > 0 && !(row.code == codeWidens || row.code == codeLogPrompts) {
			t.Errorf("%s: findings in %v:\n%v", row.code.ID, row.good, found(ds))
		} else if slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Code == row.code }) {
			t.Errorf("%s is found in %v", row.code.ID, row.good)
		}
	}
	for _, c := range Codes() {
		if !seen[c] {
			t.Errorf("no repo has a finding of %s (%s)", c.ID, c.Title)
		}
	}
}

func found(ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s %s %s: %s", d.Severity, d.Code.ID, d.Path, d.Message))
	}
	return strings.Join(out, "\n")
}

// TestOwners holds that a finding names the document that contributed the value, once, however many inherit it.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		docs []string
		want string
	}{
		{[]string{base("sandbox: {writableRoots: [/opt/a], protectedPaths: [/opt/a]}"), "Profile b extends: base", "Profile c extends: b", "Unit u overlay: {}"}, "Profile/base sandbox.writableRoots[0]"},
		{[]string{base("sandbox: {writableRoots: [/opt/a]}"), "Unit u overlay: {sandbox: {protectedPaths: [/opt/a]}}"}, "Profile/base sandbox.writableRoots[0]"},
		{[]string{base(listed), "Unit u overlay: {egress: {allowedDomains: [x.corp.example]}}"}, "Unit/u overlay.egress"},
		{[]string{base(listed), "Unit u overlay: {egress: {deniedDomains: [ai.acme.example]}}"}, "Profile/base egress.allowedDomains[0]; Unit/u overlay.egress.deniedDomains[0]"},
		// Two units of equal overlay have a finding each.
		{[]string{base(listed), "Unit u overlay: {egress: {default: allow}}", "Unit v overlay: {egress: {default: allow}}"}, "Unit/u overlay.egress.default; Unit/u overlay.egress.default; Unit/v overlay.egress.default; Unit/v overlay.egress.default"},
	} {
		_, ds := check(t, c.docs...)
		var got []string
		for _, d := range ds {
			got = append(got, d.Document+" "+d.Path)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%v:\n%s\nwant\n%s", c.docs, found(ds), c.want)
		}
	}
}

// TestExceptions holds that an exception permits one loosening of one unit or ring and no more, until the end of its last day.
func TestExceptions(t *testing.T) {
	loose := []string{base(listed), "Unit u overlay: {egress: {allowedDomains: [ai.acme.example, x.example]}}", "Unit v overlay: {}"}
	for _, c := range []struct {
		exception string
		permits   bool
	}{
		{exception("unit: u", "egress.allowedDomains", "x.example", "2027-06-30"), true},
		{exception("unit: u", "egress.allowedDomains", "x.example", "2026-11-30"), true},
		{exception("unit: u", "egress.allowedDomains", "x.example", "2026-11-29"), false},
		{exception("unit: v", "egress.allowedDomains", "x.example", "2027-06-30"), false},
		{exception("ring: ga", "egress.allowedDomains", "x.example", "2027-06-30"), false},
		{exception("unit: u", "egress.allowedDomains", "y.example", "2027-06-30"), false},
		{exception("unit: u", "egress.deniedDomains", "x.example", "2027-06-30"), false},
	} {
		permits, ds := check(t, append(slices.Clone(loose), c.exception)...)
		errors := slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
		if errors == c.permits || len(permits) > 0 != c.permits {
			t.Errorf("%s permits %v:\n%s", c.exception, permits, found(ds))
		}
		if c.permits && (permits[0].Target != "ga+u" || permits[0].Exception.Name.V != "e" || permits[0].Loosening.Witness != "host x.example: deny -> allow") {
			t.Errorf("%+v", permits)
		}
	}
}

func TestSecrets(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "acme": false, "true": false, "https://otel.internal.acme.example:4318/v1/traces": false, "Bearer ${MCP_TOKEN}": false, "${TOKEN}": false, "${KEY:-none}": false, "-----BEGIN PUBLIC KEY-----": false,
		"-----BEGIN CERTIFICATE-----": false, "sk-short": false, "ghp_": false, "task-management-of-the-team": false, "basic": false, "0123456789012345678901234567890123456789": false,
		strings.Repeat("a", 64): false, "/opt/acme/bin/a-long-path-without-secrets/in-it": false, "bearer": false, "AKIAIOSFODNN7": false,
		"sk-abcdefghij": true, "sk-proj-abcdefghijkl": true, "xxx ghp_abcdefghijklmnop yyy": true, "github_pat_abcdefghijk": true, "xoxb-1234567890-abc": true, "xapp-1234567890": true, "AKIAIOSFODNN7EXAMPLE": true,
		"ASIAIOSFODNN7EXAMPLE": true, "key=AKIAIOSFODNN7EXAMPLE;": true, "-----BEGIN OPENSSH PRIVATE KEY-----": true, "-----BEGIN PRIVATE KEY-----\nx": true, "x -----BEGIN PUBLIC KEY----- -----BEGIN RSA PRIVATE KEY-----": true,
		"Bearer abc123": true, "basic dXNlcg==": true, "TOKEN x": true, " token x": true, "0123456789abcdef0123456789abcdef": true, "0123456789ABCDEF0123456789ABCDEF": true,
		"aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF": true, "${KEY:-ghp_abcdefghijklmnop}": true, "${A}${B:-sk-abcdefghij}": true, "${OPEN ghp_abcdefghijklmnop": true,
	} {
		if got := Secret(value); (got != "") != want {
			t.Errorf("%q: %q", value, got)
		} else if want && strings.Contains(value, got) {
			t.Errorf("%q is printed", value)
		}
	}
	for text, want := range map[string]bool{`{"a":"ghp_abcdefghijklmnop"}`: true, `{"digest":"0123456789abcdef0123456789abcdef"}`: false, "Bearer ${X}": false, "-----BEGIN EC PRIVATE KEY-----": true} {
		if got := KnownSecret(text); (got != "") != want {
			t.Errorf("%q in a file: %q", text, got)
		}
	}
}
