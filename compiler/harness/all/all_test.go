package all

import (
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

func TestListIsTheKnownHarnesses(t *testing.T) {
	var ids []string
	for _, h := range Harnesses() {
		ids = append(ids, h.ID)
		if h.Render == nil || h.Check == nil {
			t.Errorf("%s is not whole", h.ID)
		}
	}
	if !slices.Equal(ids, policy.Harnesses) {
		t.Errorf("got %v, want %v", ids, policy.Harnesses)
	}
}

// TestTables holds every room's table to the same rules.
func TestTables(t *testing.T) {
	for _, h := range Harnesses() {
		t.Run(h.ID, func(t *testing.T) { rendertest.Complete(t, h) })
	}
}

// TestEverySetSectionIsHeldOrNamed renders a policy with every section: a concept that a table grades below enforced must be named by a gap.
func TestEverySetSectionIsHeldOrNamed(t *testing.T) {
	for _, h := range Harnesses() {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, h.ID, h.Known.String(), goos, rendertest.Everything)
			_, gaps := h.Render(tg)
			for _, c := range policy.Concepts {
				row := h.Capability(harness.Concept(c), goos, h.Known)
				if c == "overrides" || row.Grade == harness.Enforced {
					continue
				}
				if !slices.ContainsFunc(gaps, func(g harness.Gap) bool { return string(g.Concept) == c }) {
					t.Errorf("%s on %s holds %s only as %s, and no gap says so", h.ID, goos, c, row.Grade)
				}
			}
			for _, g := range gaps {
				if strings.TrimSpace(g.Reason) == "" || g.Harness != h.ID {
					t.Errorf("%s: gap %+v", h.ID, g)
				}
			}
		}
	}
}

// TestReorderingSetsChangesNothing renders a policy and the same one with its lists in another order.
func TestReorderingSetsChangesNothing(t *testing.T) {
	const a = `
sandbox: {protectedPaths: ["~/.ssh", "~/.aws", .env*], writableRoots: [/opt/a, /opt/b]}
egress: {allowedDomains: [b.example, a.example, "*.c.example"], deniedDomains: [y.example, x.example]}
mcp: {managedOnly: true, denied: [two, one], servers: [{name: b, url: "https://b.example/x"}, {name: a, command: [/bin/a]}]}
permissions: {deny: ["Bash(rm:*)", "Bash(curl:*)", WebSearch]}
`
	const b = `
sandbox: {protectedPaths: [.env*, "~/.aws", "~/.ssh"], writableRoots: [/opt/b, /opt/a]}
egress: {allowedDomains: ["*.c.example", a.example, b.example], deniedDomains: [x.example, y.example]}
mcp: {managedOnly: true, denied: [one, two], servers: [{name: a, command: [/bin/a]}, {name: b, url: "https://b.example/x"}]}
permissions: {deny: [WebSearch, "Bash(curl:*)", "Bash(rm:*)"]}
`
	for _, h := range Harnesses() {
		for _, goos := range policy.OSes {
			fa, _ := h.Render(rendertest.Target(t, h.ID, h.Known.String(), goos, a))
			fb, _ := h.Render(rendertest.Target(t, h.ID, h.Known.String(), goos, b))
			if string(rendertest.Print(fa, nil)) != string(rendertest.Print(fb, nil)) {
				t.Errorf("%s on %s: the order of a set shows in the bytes", h.ID, goos)
			}
		}
	}
}
