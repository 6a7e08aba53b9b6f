package all

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// TestNothingIsDroppedInSilence takes every value out of many policies, one at a time: where the files stay the same without it, a gap has to name its field, or the entry.
func TestNothingIsDroppedInSilence(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	said := map[string]bool{}
	for range 150 {
		body := rendertest.Random(rnd)
		for _, h := range Harnesses() {
			if !slices.Contains(strict, h.ID) || h.ID == policy.CursorCLI {
				continue // one gap a concept says it of everything
			}
			goos := policy.OSes[rnd.IntN(3)]
			vs := versions(h)
			tg := rendertest.Target(t, h.ID, vs[rnd.IntN(len(vs))].String(), goos, body)
			files, gaps := h.Render(tg)
			whole := string(rendertest.Print(files, nil))
			for _, v := range effective.Values(tg.Policy) {
				if v.Field == "harnesses."+h.ID+".version" || v.Value == "[]" || follows(tg.Policy, v) {
					continue
				}
				less := tg
				less.Policy = tg.Policy.Without(func(key string, entry int) bool { return key == v.Field && entry == v.Entry })
				rest, _ := h.Render(less)
				if string(rendertest.Print(rest, nil)) != whole {
					continue
				}
				if slices.ContainsFunc(gaps, func(g harness.Gap) bool { return names(g, v) }) {
					continue
				}
				key := h.ID + " " + v.Field
				if !said[key] {
					said[key] = true
					t.Errorf("%s %s on %s: %s = %s changes nothing and no gap says so\n%s", h.ID, tg.Version, goos, v.Key, v.Value, body)
				}
			}
		}
	}
}

// follows reports whether a value says what follows from another one anyway.
func follows(p *effective.Policy, v effective.Value) bool {
	t := &p.Telemetry
	switch v.Field {
	case "sandbox.mode", "permissions.sandboxRequired", "egress.default":
		return true
	case "telemetry.otlpEndpoint", "telemetry.protocol":
		// Nothing is sent, or the protocol is the one without which it would be.
		return t.OTLPEndpoint.IsSet() && (!t.Enabled.V || v.Value == "http/protobuf")
	case "egress.deniedDomains":
		// Nothing is allowed.
		open, _ := p.Hosts.Default()
		return !open && len(p.Hosts.Allowed()) == 0
	case "permissions.deny":
		if p.Mode() == policy.ModeReadOnly && (v.Value == "Write" || v.Value == "Edit") {
			return true
		}
		// The web search is off.
		return strings.HasPrefix(v.Value, "Web") && (p.EgressRules() || slices.ContainsFunc(p.Permissions.Deny.Items, func(s source.Str) bool { return s.V == "WebSearch" }))
	case "mcp.denied":
		// The closed list has no denied server.
		return p.MCP.ManagedOnly.V
	case "models.enforce":
		// The list has a gap.
		return len(p.Models.Allowed.Items) > 0
	}
	return false
}

func names(g harness.Gap, v effective.Value) bool {
	return g.Field == v.Field && (v.Entry < 0 || g.Entry == "" || strings.Contains(g.Entry, v.Value) || strings.Contains(v.Value, g.Entry) || v.Field == "hooks.items" || v.Field == "mcp.servers" || v.Field == "models.allowed")
}

// versions are the oldest and the newest version of a harness, each at which a row of its table ends, and one that is just older.
func versions(h *harness.Harness) []harness.Version {
	out := []harness.Version{h.Known, h.Oldest}
	for _, c := range h.Capabilities {
		v, ok := harness.ParseVersion(c.Until)
		if !ok {
			continue
		}
		before := v
		if before.Patch > 0 {
			before.Patch--
		} else {
			before.Minor, before.Patch = max(v.Minor-1, 0), 99
		}
		out = append(out, v, before)
	}
	return out
}

// TestRandomFilesFitSchemas holds what is rendered of many policies against the vendors' schemas, and reads it back, for versions on both sides of every limit.
func TestRandomFilesFitSchemas(t *testing.T) {
	schemas := map[string][]*jsonschema.Schema{
		policy.GeminiCLI:  {rendertest.Schema(t, "gemini-cli-0.61.0.settings.schema.json"), rendertest.Schema(t, "gemini-cli-0.56-nightly.settings.schema.upstream.json")},
		policy.ClaudeCode: {rendertest.Schema(t, "claude-code-settings.schemastore.json")},
		policy.OpenCode:   {rendertest.Schema(t, "opencode-1.18.33.config.schema.json")},
	}
	rnd := rand.New(rand.NewPCG(7, 9))
	for range 250 {
		body := rendertest.Random(rnd)
		for _, h := range Harnesses() {
			goos := policy.OSes[rnd.IntN(3)]
			vs := versions(h)
			tg := rendertest.Target(t, h.ID, vs[rnd.IntN(len(vs))].String(), goos, body)
			if rnd.IntN(2) == 0 {
				tg.GatewayURL = "https://ai.acme.example"
			}
			files, _ := h.Render(tg)
			for _, f := range files {
				if !strings.HasSuffix(f.Dest, ".json") {
					continue
				}
				content := f.Content
				if h.ID == policy.ClaudeCode {
					if !strings.HasSuffix(f.Dest, "settings.json") {
						continue
					}
					content = likeSchema(t, content)
				}
				for _, s := range schemas[h.ID] {
					rendertest.Valid(t, s, content)
				}
			}
			for _, f := range h.Check(tg, files) {
				t.Errorf("%s %s on %s: %s%s %s", h.ID, tg.Version, goos, f.Dest, f.Pointer, f.Message)
			}
			if t.Failed() {
				t.Fatal(body)
			}
		}
	}
}

// likeSchema takes out what the published schema of Claude Code knows otherwise than the program does (observed on 2.1.332): it has only the newer of two names of one
// tool, both of which deny it, and the form of managedMcpServers that Claude Desktop takes and the CLI refuses.
func likeSchema(t *testing.T, content []byte) []byte {
	t.Helper()
	doc, err := jsondoc.Parse(bytes.ReplaceAll(content, []byte(`"Task"`), []byte(`"Agent"`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(doc, func(m jsondoc.Member) bool { return m.Key == "managedMcpServers" }).Bytes()
}

// TestGateway holds that a gateway stands in a file of a harness, or in a gap.
func TestGateway(t *testing.T) {
	const gateway = "https://ai.acme.example"
	rnd := rand.New(rand.NewPCG(11, 13))
	for range 100 {
		body := rendertest.Random(rnd)
		for _, h := range Harnesses() {
			vs := versions(h)
			tg := rendertest.Target(t, h.ID, vs[rnd.IntN(len(vs))].String(), policy.OSes[rnd.IntN(3)], body)
			tg.GatewayURL = gateway
			files, gaps := h.Render(tg)
			if !slices.ContainsFunc(files, func(f harness.File) bool { return strings.Contains(string(f.Content), gateway) }) &&
				!slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "gateway.baseURL" && g.Grade < harness.Enforced }) {
				t.Fatalf("%s %s on %s says nothing of the gateway\n%s", h.ID, tg.Version, tg.OS, body)
			}
		}
	}
}
