package gap_test

import (
	"slices"
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

func paths(fs []gap.Field) []string {
	var out []string
	for _, f := range fs {
		out = append(out, string(f.Concept)+" "+f.Path)
	}
	return out
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{"{}", []string{"version-pin harnesses.codex.version"}},
		{"permissions: {disableBypass: false, sandboxRequired: false}\nhooks: {managedOnly: false}\nsandbox: {mode: off}\negress: {default: allow}", []string{"version-pin harnesses.codex.version"}},
		{"permissions: {sandbox: read-only}", []string{"sandbox permissions.sandbox", "version-pin harnesses.codex.version"}},
		{"egress: {default: deny}", []string{"sandbox sandbox.mode", "egress egress.default", "fetch egress.default", "version-pin harnesses.codex.version"}},
		{"egress: {deniedDomains: [a.example]}", []string{"sandbox sandbox.mode", "egress egress.deniedDomains", "fetch egress.deniedDomains", "version-pin harnesses.codex.version"}},
		{"telemetry: {enabled: false}", []string{"telemetry telemetry.enabled", "version-pin harnesses.codex.version"}},
	} {
		p := rendertest.Policy(t, policy.Codex, "0.171.0", c.body)
		if got := paths(gap.Fields(p, policy.Codex)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.body, got, c.want)
		}
	}
	// Every concept that a policy can write is asked for by the policy that writes everything.
	all := gap.Fields(rendertest.Policy(t, policy.Codex, "0.171.0", rendertest.Everything), policy.Codex)
	for _, c := range policy.Concepts {
		if c != "overrides" && !slices.ContainsFunc(all, func(f gap.Field) bool { return string(f.Concept) == c }) {
			t.Errorf("%s is not asked for", c)
		}
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b gap.Field) int {
		return slices.Index(policy.Concepts, string(a.Concept)) - slices.Index(policy.Concepts, string(b.Concept))
	})
	if !slices.Equal(order, all) {
		t.Error("concepts are not in display order")
	}
}

func TestGapsAreSortedAndOnce(t *testing.T) {
	table := &harness.Harness{ID: "x", Capabilities: []harness.Capability{{Concept: harness.MCP, Grade: harness.Default, Limit: "limit"}, {Concept: harness.Hooks, Grade: harness.Enforced}}}
	l := gap.New(table, harness.Target{OS: "linux"})
	l.Unsupported(harness.Env, "env")
	// The same row twice, for a gap that must be listed once.
	for range 2 {
		if got := l.Row(harness.MCP, "mcp.denied"); got != harness.Default {
			t.Errorf("mcp has grade %s", got)
		}
	}
	if got := l.Row(harness.Hooks, "hooks.items"); got != harness.Enforced {
		t.Errorf("hooks have grade %s", got)
	}
	l.Add(harness.Gap{Concept: harness.Sandbox, Field: "sandbox.mode", Reason: "b"})
	l.Add(harness.Gap{Concept: harness.Sandbox, Field: "sandbox.mode", Entry: "e", Reason: "a"})
	var got []string
	for _, g := range l.Gaps() {
		got = append(got, g.Harness+" "+g.OS+" "+string(g.Concept)+" "+g.Entry+" "+g.Reason)
	}
	want := []string{"x linux sandbox  b", "x linux sandbox e a", "x linux mcp  limit", `x linux env  x: profile field "env" is not supported and was not rendered`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConceptsAreThoseOfPolicies(t *testing.T) {
	l := gap.New(&harness.Harness{ID: "x"}, harness.Target{})
	for _, c := range slices.Backward(policy.Concepts) {
		l.Unsupported(harness.Concept(c), "f")
	}
	for i, g := range l.Gaps() {
		if string(g.Concept) != policy.Concepts[i] {
			t.Errorf("%d is %s, want %s", i, g.Concept, policy.Concepts[i])
		}
	}
}
