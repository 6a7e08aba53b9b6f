package openshell

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
)

type caseEndpoint struct {
	Host, Protocol, TLS, Enforcement, Access string
	Port                                     uint16
	Rules                                    []string
}

type testCase struct {
	ID, Kind, Title string
	Given           struct {
		Agent, Inference, Endpoint, Policy string
		WorkspaceHosts                     []string `yaml:"workspace_hosts"`
		WorkspaceJSON                      string   `yaml:"workspace_json"`
	}
	Expect struct {
		Slugs     []string
		Endpoints map[string][]caseEndpoint
		Binaries  map[string][]string
		Error     string
		OK        bool
		Kinds     []string
		Says      []string
		Warns     []string
		Requests  []struct {
			Binary, Host, Method, Path, Want, Matched string
			Ancestors                                 []string
			Port                                      uint16
		}
	}
}

func loadCases(t testing.TB) []testCase {
	data, err := os.ReadFile("testdata/openshell-cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Cases []testCase }
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Cases
}

func TestCases(t *testing.T) {
	n := map[string]int{}
	for _, c := range loadCases(t) {
		n[c.Kind]++
		t.Run(c.ID+" "+c.Title, func(t *testing.T) {
			switch c.Kind {
			case "build":
				testBuild(t, c)
			case "check":
				testCheck(t, c)
			case "decide":
				testDecide(t, c)
			default:
				t.Fatalf("kind %q", c.Kind)
			}
		})
	}
	if n["build"] != 18 || n["check"] != 30 || n["decide"] != 15 {
		t.Errorf("cases read: %v", n)
	}
}

func testBuild(t *testing.T, c testCase) {
	in := Input{Agent: Host{Text: c.Given.Agent}, Provider: Host{Text: c.Given.Inference}, BaseURL: Host{Text: c.Given.Endpoint}}
	for _, h := range c.Given.WorkspaceHosts {
		in.Hosts = append(in.Hosts, Host{Text: h})
	}
	var fs []Finding
	if c.Given.WorkspaceJSON != "" {
		ws, found := ReadWorkspace(0, []byte(c.Given.WorkspaceJSON))
		in.Hosts, fs = ws.Hosts, found
	}
	out := Compose(in)
	fs = append(fs, out.Findings...)
	if c.Expect.Error != "" {
		want := map[string]*diag.Code{"unsupported-inference": codeAgent, "endpoint-unsupported": codeBaseURL,
			"invalid-workspace-host": codeWorkspaceHost, "workspace-json": codeWorkspace}[c.Expect.Error]
		if len(fs) != 1 || want == nil || fs[0].Code != want || fs[0].Severity != diag.Error {
			t.Errorf("findings %v, want one %s", show(fs), c.Expect.Error)
		}
		return
	}
	if HasErrors(fs) || len(fs) != len(c.Expect.Warns) {
		t.Fatalf("findings: %v", show(fs))
	}
	for i, w := range c.Expect.Warns {
		if !strings.Contains(fs[i].Message, w) {
			t.Errorf("no warning says %q: %s", w, show(fs))
		}
	}
	if found := Check(out.Policy); len(found) > 0 {
		t.Errorf("the composed policy has findings: %v", show(found))
	}
	var slugs []string
	for _, r := range out.Policy.Rules {
		slugs = append(slugs, r.Slug)
	}
	if c.Expect.Slugs != nil && !slices.Equal(slugs, c.Expect.Slugs) {
		t.Errorf("slugs %v, want %v", slugs, c.Expect.Slugs)
	}
	for slug, want := range c.Expect.Endpoints {
		got := out.Policy.Rule(slug)
		if got == nil || len(got.Endpoints) != len(want) {
			t.Fatalf("%s: %+v, want %+v", slug, got, want)
		}
		for i, e := range got.Endpoints {
			g := caseEndpoint{Host: e.Host, Port: e.Port, Protocol: e.Protocol, TLS: e.TLS, Enforcement: e.Enforcement, Access: e.Access}
			for _, r := range e.Rules {
				g.Rules = append(g.Rules, r.Method+" "+r.Path)
			}
			if fmt.Sprint(g) != fmt.Sprint(want[i]) {
				t.Errorf("%s[%d]: %+v, want %+v", slug, i, g, want[i])
			}
		}
	}
	for slug, want := range c.Expect.Binaries {
		var got []string
		for _, b := range out.Policy.Rule(slug).Binaries {
			got = append(got, b.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: binaries %v, want %v", slug, got, want)
		}
	}
}

func show(fs []Finding) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "\n\t%d:%d %s %s[%s] %s: %s (%s)", f.Pos.Line(), f.Pos.Col(), f.Layer, f.Severity, f.Code.ID, f.Path, f.Message, f.Hint)
	}
	return cmp.Or(b.String(), "none")
}

func testCheck(t *testing.T, c testCase) {
	p, fs := Parse(0, []byte(c.Given.Policy))
	if !HasErrors(fs) {
		fs = append(fs, Check(p)...)
	}
	fs = OfLayer(fs, LayerOpenShell)
	var kinds []string
	var errors, warnings strings.Builder
	for _, f := range fs {
		if !f.Pos.IsValid() {
			t.Errorf("no place: %s", f.Message)
		}
		if f.Severity != diag.Error {
			fmt.Fprintln(&warnings, f.Message)
			continue
		}
		fmt.Fprintln(&errors, f.Message)
		for _, k := range f.Kinds {
			kinds = append(kinds, string(k))
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	want := slices.Sorted(slices.Values(c.Expect.Kinds))
	if !slices.Equal(kinds, want) || c.Expect.OK != (len(kinds) == 0) {
		t.Errorf("kinds %v, want %v; %s", kinds, want, show(fs))
	}
	for _, s := range c.Expect.Says {
		if !strings.Contains(errors.String(), s) {
			t.Errorf("no error says %q: %s", s, show(fs))
		}
	}
	for _, s := range c.Expect.Warns {
		if !strings.Contains(warnings.String(), s) {
			t.Errorf("no warning says %q: %s", s, show(fs))
		}
	}
}

func testDecide(t *testing.T, c testCase) {
	p, fs := Parse(0, []byte(c.Given.Policy))
	if fs = append(fs, Check(p)...); HasErrors(fs) {
		t.Fatal(show(fs))
	}
	d := NewDecider(p)
	for i, r := range c.Expect.Requests {
		q := Request{Binary: r.Binary, Ancestors: r.Ancestors, Host: r.Host, Port: r.Port, Method: r.Method, Path: r.Path}
		got := d.Decide(&q)
		if got.Answer.String() != r.Want || r.Matched != "" && got.Policy != r.Matched {
			t.Errorf("request %d %+v: %s by %s (%s), want %s by %q", i, q, got.Answer, got.Policy, got.Reason, r.Want, r.Matched)
		}
		if naive := naiveDecide(p, q); naive != r.Want {
			t.Errorf("request %d %+v: the reference says %s, want %s", i, q, naive, r.Want)
		}
	}
}

// TestDecideBody covers what the cases have no words for: requests that are judged by their body, and presets of protocols in another case.
func TestDecideBody(t *testing.T) {
	const all = "mcp: {allow_all_known_mcp_methods: true}"
	rows := []struct {
		endpoint string
		method   string
		call     *Call
		want     Answer
	}{
		{"protocol: mcp, " + all, "POST", &Call{Method: "tools/call", Tool: "write"}, Allow},
		{"protocol: mcp, " + all + ", rules: [{allow: {tool: read}}]", "POST", &Call{Method: "initialize"}, Allow},
		{"protocol: mcp, " + all + ", rules: [{allow: {tool: read}}]", "POST", &Call{Method: "tools/call", Tool: "read"}, Allow},
		{"protocol: mcp, " + all + ", rules: [{allow: {tool: read}}]", "POST", &Call{Method: "tools/call", Tool: "write"}, Deny},
		{"protocol: mcp, " + all + ", deny_rules: [{tool: read}]", "POST", &Call{Method: "tools/call", Tool: "read"}, Deny},
		{"protocol: mcp, " + all + ", deny_rules: [{tool: read}]", "POST", &Call{Method: "prompts/get", Tool: "read"}, Allow},
		{"protocol: mcp, " + all + ", deny_rules: [{}]", "POST", &Call{Method: "a.b"}, Allow},
		{"protocol: mcp, " + all + ", deny_rules: [{}]", "POST", &Call{Method: "initialize"}, Deny},
		{"protocol: mcp, rules: [{allow: {method: tools/call, tool: 'list*'}}]", "POST", &Call{Method: "tools/call", Tool: "list.all"}, Deny},
		{"protocol: json-rpc, rules: [{allow: {method: a.b}}]", "POST", &Call{Method: "a.b"}, Allow},
		{"protocol: json-rpc, rules: [{allow: {method: a.b}}]", "POST", &Call{Method: "A.b"}, Deny},
		{"protocol: graphql, access: read-only", "POST", &Call{OperationType: "query", Fields: []string{"a"}}, Allow},
		{"protocol: graphql, access: read-only", "POST", &Call{OperationType: "mutation", Fields: []string{"a"}}, Deny},
		{"protocol: websocket, access: read-write", "WEBSOCKET_TEXT", nil, Allow},
		{"protocol: WebSocket, access: read-write", "WEBSOCKET_TEXT", nil, Deny}, // expanded as for rest
		{"protocol: WebSocket, access: read-write", "GET", nil, Allow},
	}
	for _, r := range rows {
		p, fs := Parse(0, []byte("version: 1\nnetwork_policies: {a: {endpoints: [{host: a.example, port: 443, enforcement: enforce, "+r.endpoint+"}], binaries: [{path: /x}]}}\n"))
		if fs = append(fs, Check(p)...); HasErrors(fs) {
			t.Fatal(r.endpoint, show(fs))
		}
		got := NewDecider(p).Decide(&Request{Binary: "/x", Host: "a.example", Port: 443, Method: r.method, Path: "/", Call: r.call})
		if got.Answer != r.want {
			t.Errorf("%s: %s %+v: %s (%s), want %s", r.endpoint, r.method, r.call, got.Answer, got.Reason, r.want)
		}
	}
}
