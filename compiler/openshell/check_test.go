package openshell

import (
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
)

func endpointPolicy(endpoint string) string {
	return "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: /usr/bin/curl}]\n    endpoints:\n      - " + endpoint + "\n"
}

// TestFindings has one row for each refusal and warning: what is written, where the finding points, its kinds.
func TestFindings(t *testing.T) {
	type row struct {
		name, policy string // § marks the place
		layer        Layer
		code         *diag.Code
		kinds        string
	}
	ep := func(name, endpoint string, layer Layer, code *diag.Code, kinds string) row {
		return row{name, endpointPolicy(endpoint), layer, code, kinds}
	}
	const both = "InvalidL7Endpoint L7Policy"
	rows := []row{
		{"empty", "§", LayerOpenShell, codeParse, "parse"},
		{"two documents", "version: 1\n§---\nversion: 1\n", LayerOpenShell, codeParse, "parse"},
		{"a list", "§- 1\n", LayerOpenShell, codeParse, "parse"},
		{"not YAML", "version: 1\n§a: [\n", LayerOpenShell, codeParse, "parse"},
		{"quoted number", "version: §\"1\"\n", LayerOpenShell, codeParse, "parse"},
		{"leading zero", "version: §01\n", LayerOpenShell, codeParse, "parse"},
		{"repeated key", "version: 1\n§version: 1\n", LayerOpenShell, codeParse, "parse"},
		{"yes is no boolean", "version: 1\nfilesystem_policy: {include_workdir: §yes}\n", LayerOpenShell, codeParse, "parse"},
		{"null list", "version: 1\nnetwork_policies: §null\n", LayerOpenShell, codeParse, "parse"},
		{"merge key", "version: 1\nlandlock: &l {}\nprocess:\n  §<<: *l\n", LayerOpenShell, codeParse, "parse"},
		ep("plain text matcher", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: /, query: {q: §1}}}]}", LayerOpenShell, codeParse, "parse"),
		{"repeated slug", "version: 1\nnetwork_policies:\n  a: {binaries: [{path: /x}], endpoints: [{host: a.b, port: 1}]}\n  §a: {binaries: [{path: /x}], endpoints: [{host: a.b, port: 1}]}\n", LayerHalo, codeRepeated, "Strict"},
		{"version 2", "version: §2\n", LayerHalo, codeValue, "Strict"},
		{"root", "version: 1\nprocess: {run_as_user: §root}\n", LayerOpenShell, codeIdentity, "InvalidProcessIdentity"},
		{"relative path", "version: 1\nfilesystem_policy:\n  read_write:\n    - §work\n", LayerOpenShell, codePath, "RelativePath"},
		{"landlock", "version: 1\nlandlock: {compatibility: §hard}\n", LayerHalo, codeValue, "Strict"},
		{"no endpoints", "version: 1\nnetwork_policies:\n  §a: {binaries: [{path: /x}]}\n", LayerHalo, codeNothing, "Strict"},
		{"no binaries", "version: 1\nnetwork_policies:\n  §a: {endpoints: [{host: a.example.com, port: 443}]}\n", LayerHalo, codeNothing, "Strict"},
		{"relative binary", "version: 1\nnetwork_policies:\n  a: {binaries: [{path: §curl}], endpoints: [{host: a.example.com, port: 443}]}\n", LayerHalo, codeNothing, "Strict"},
		{"binary that does not compile", "version: 1\nnetwork_policies:\n  a: {binaries: [{path: §'/usr/*{'}], endpoints: [{host: a.example.com, port: 443}]}\n", LayerHalo, codePattern, "Strict"},
		ep("two labels", "{host: §'foo.*', port: 443}", LayerOpenShell, codeHost, "L7Policy"),
		ep("deep in the middle", "{host: §'a.**.example.com', port: 443}", LayerOpenShell, codeHost, "InvalidHostWildcard L7Policy"),
		ep("no host", "§{port: 443}", LayerOpenShell, codeEndpoint, "MissingEndpointHost"),
		ep("port 0", "{host: a.example.com, ports: [443, §0]}", LayerOpenShell, codeEndpoint, "InvalidEndpointPort"),
		ep("tcp without host", "§{port: 443, protocol: tcp}", LayerOpenShell, codeEndpoint, "MissingTcpEndpointHost"),
		ep("tcp host", "{host: §a.example.com., port: 443, protocol: tcp}", LayerOpenShell, codeEndpoint, "InvalidTcpEndpointHost"),
		ep("no rule says anything", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: §[{allow: {query: {a: b}}}]}", LayerOpenShell, codeL7, both),
		ep("endpoint path", "{host: a.example.com, port: 443, path: §x, protocol: rest, enforcement: enforce, access: full}", LayerOpenShell, codeL7, both),
		ep("sql", "{host: a.example.com, port: 443, protocol: sql, enforcement: §enforce, access: full}", LayerOpenShell, codeL7, both),
		ep("graphql operation", "{host: a.example.com, port: 443, protocol: graphql, enforcement: enforce, rules: [{allow: {operation_type: §'*'}}]}", LayerOpenShell, codeL7, both),
		ep("mcp keys", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: full, mcp: §{strict_tool_names: false}}", LayerOpenShell, codeL7, both),
		ep("persisted queries", "{host: a.example.com, port: 443, protocol: graphql, enforcement: enforce, access: full, persisted_queries: §all}", LayerOpenShell, codeL7, both),
		ep("empty any", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: /, query: {§q: {any: []}}}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("tool on rest", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: /, tool: §x}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("websocket allow", "{host: a.example.com, port: 443, protocol: websocket, enforcement: enforce, rules: [{allow: {method: GET, path: /, operation_type: §query}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("json-rpc wildcard", "{host: a.example.com, port: 443, protocol: json-rpc, enforcement: enforce, rules: [{allow: {method: §'a*'}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("mcp wildcard", "{host: a.example.com, port: 443, protocol: mcp, enforcement: enforce, rules: [{allow: {method: §'*'}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("mcp tool and broad", "{host: a.example.com, port: 443, protocol: mcp, enforcement: enforce, rules: [{allow: {method: tools/call, tool: x}}, {allow: {method: §'tools/*'}}]}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("signing", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: full, credential_signing: §v4, signing_service: s3}", LayerOpenShell, codeSigning, "UnknownCredentialSigning"),
		ep("tcp signing", "{host: a.example.com, port: 443, protocol: tcp, signing_region: §eu}", LayerOpenShell, codeL7Rule, "L7Policy"),
		ep("unknown access", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: §all}", LayerOpenShell, codeNoEffect, ""),
		ep("passthrough", "{host: a.example.com, port: 443, tls: §passthrough}", LayerOpenShell, codeNoEffect, ""),
		ep("skip and inspect", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: full, tls: §skip}", LayerOpenShell, codeNoEffect, ""),
		ep("unknown tls", "{host: a.example.com, port: 443, tls: §none}", LayerHalo, codeValue, "Strict"),
		ep("upper case", "{host: a.example.com, port: 443, protocol: §REST, enforcement: enforce, access: full}", LayerHalo, codeValue, "Strict"),
		ep("audit", "§{host: a.example.com, port: 443, protocol: rest, access: full}", LayerHalo, codeAudit, "Strict"),
		ep("Enforce", "{host: a.example.com, port: 443, protocol: rest, enforcement: §Enforce, access: full}", LayerHalo, codeAudit, "Strict"),
		ep("dead", "{host: a.example.com, port: 443, access: §full}", LayerHalo, codeDead, "Strict"),
		ep("both ports", "{host: a.example.com, port: §443, ports: [80]}", LayerHalo, codeBothPorts, "Strict"),
		ep("scheme", "{host: §'https://a.example.com', port: 443}", LayerHalo, codeName, "Strict"),
		ep("port in host", "{host: §'a.example.com:443', port: 443}", LayerHalo, codeName, "Strict"),
		ep("final dot", "{host: §a.example.com., port: 443}", LayerHalo, codeName, "Strict"),
		ep("localhost", "{host: §localhost, port: 443}", LayerHalo, codeName, "Strict"),
		ep("metadata", "{host: §metadata.google.internal, port: 443}", LayerHalo, codeName, "Strict"),
		ep("mapped allowed ip", "{host: a.example.com, port: 443, allowed_ips: [§'::ffff:127.0.0.1']}", LayerHalo, codeAllowedIPs, "Strict"),
		ep("bad allowed ip", "{host: a.example.com, port: 443, allowed_ips: [10.0.0.0/8, §127.0.0.1]}", LayerHalo, codeAllowedIPs, "Strict"),
		ep("host that does not compile", "{host: §'*.[x.example.com', port: 443}", LayerHalo, codePattern, "Strict"),
		ep("rule without path", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: §{method: GET}}]}", LayerHalo, codeNothing, "Strict"),
		ep("deny rule without method", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: full, deny_rules: [§{path: '**'}]}", LayerHalo, codeNothing, "Strict"),
		ep("rule path", "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: §x}}]}", LayerHalo, codeNothing, "Strict"),
		ep("deny tool with a star", "{host: a.example.com, port: 443, protocol: mcp, enforcement: enforce, mcp: {allow_all_known_mcp_methods: true}, deny_rules: [{method: tools/call, tool: §'list*'}]}", LayerHalo, codeMiss, "Strict"),
		{"middleware and skip", "version: 1\nnetwork_policies: {a: {endpoints: [{host: a.example.com, port: 443, tls: skip}], binaries: [{path: /x}]}}\nnetwork_middlewares: {m: {middleware: openshell/regex, endpoints: §{include: ['**.example.com']}}}\n", LayerOpenShell, codeMiddleware, "MiddlewareTlsSkipConflict"},
		{"middleware config", "version: 1\nnetwork_middlewares: {m: {middleware: openshell/regex, config: §{mode: block}, endpoints: {include: ['**']}}}\n", LayerOpenShell, codeMiddleware, "Gateway"},
	}
	hit := map[*diag.Code]bool{}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			before, after, _ := strings.Cut(r.policy, "§")
			want := diag.NewPos(7, strings.Count(before, "\n")+1, len(before)-strings.LastIndexByte(before, '\n'))
			p, fs := Parse(7, []byte(before+after))
			if !HasErrors(fs) {
				fs = append(fs, Check(p)...)
			}
			if len(fs) != 1 {
				t.Fatalf("findings %s", show(fs))
			}
			f := fs[0]
			var kinds []string
			for _, k := range f.Kinds {
				kinds = append(kinds, string(k))
			}
			if f.Pos != want || f.Layer != r.layer || f.Code != r.code || strings.Join(kinds, " ") != r.kinds {
				t.Errorf("%s kinds %v, want %d:%d %s %s", show(fs), kinds, want.Line(), want.Col(), r.code.ID, r.kinds)
			}
			if refused := r.layer == LayerOpenShell && r.kinds != ""; HasErrors(fs) != refused {
				t.Errorf("errors: %v", HasErrors(fs))
			}
			if r.layer == LayerHalo && !HasErrors(ForBuild(fs)) {
				t.Error("a build does not refuse it")
			}
			hit[r.code] = true
		})
	}
	for _, c := range []*diag.Code{codeAmbiguity, codeGateway, codeSlug, codeReplace, codeAgent, codeBaseURL, codeWorkspace, codeWorkspaceHost, codeWorkspaceDrop, codeSection, codeNoAgent, codeDenied, codePermit, codeRemoved, codeGap, codeReadBack} {
		hit[c] = true // in the cases and in the tests of composing; nothing reaches the last, the fuzz targets would
	}
	for _, c := range Codes() {
		if !hit[c] {
			t.Errorf("%s %s has no row", c.ID, c.Title)
		}
	}
}

func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.ID] || !strings.HasPrefix(c.ID, "HALO22") || len(c.ID) != 8 || c.Title == "" || c.Text == "" || c.Since != "0.1.0" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
}

func TestAccepted(t *testing.T) {
	for _, text := range []string{
		"\uFEFF---\nversion: 0x1\nnetwork_policies:\nprocess: ~\nlandlock: null\n",
		"version: +1\nprocess: {run_as_user: 1500}\nfilesystem_policy: {read_only: [/usr/..hidden, /], read_write: [/.]}\n",
		"version: 1\nnetwork_policies:\n  ~: &r {binaries: [{path: /x, harness: true}], endpoints: [{host: 10.0.0.5, port: 443}]}\n  1: *r\n",
		endpointPolicy("{host: '*-x.example.com', port: 443, rules: [], deny_rules: []}"),
		endpointPolicy("{allowed_ips: [10.0.0.0/8], port: 443}"),
		endpointPolicy("{host: a.example.com, port: 443, protocol: mcp, enforcement: enforce, mcp: {allow_all_known_mcp_methods: true}, deny_rules: [{tool: read}]}"),
	} {
		p, fs := Parse(0, []byte(text))
		if fs = append(fs, Check(p)...); len(fs) > 0 {
			t.Errorf("%s%s", text, show(fs))
		}
	}
}

// TestUnknownKeyHints covers keys of other versions of OpenShell, and files that are not read as they look.
func TestUnknownKeyHints(t *testing.T) {
	for _, r := range []struct{ policy, message, hint string }{
		{"version: 1\ninference: {allowed_routes: [x]}\n", `unknown key "inference" in the policy`, "older versions"},
		{endpointPolicy("{host: a.example.com, port: 443, protocol: mcp, mcp: {versions: [x]}}"), `unknown key "versions"`, "newer versions"},
		{endpointPolicy("{host: a.example.com, port: 443, acces: full}"), `unknown key "acces"`, "did you mean access?"},
		{endpointPolicy("{host: a.example.com, port: 443, zone: full}"), `unknown key "zone"`, "known keys: host, path"},
		{"\xff\xfev\x00e\x00r\x00s\x00i\x00o\x00n\x00:\x00 \x001\x00", "the file is not UTF-8 text", "save the file as UTF-8"},
	} {
		_, fs := Parse(0, []byte(r.policy))
		if len(fs) != 1 || fs[0].Severity != diag.Error || !strings.Contains(fs[0].Message, r.message) || !strings.Contains(fs[0].Hint, r.hint) {
			t.Errorf("%q: %s", r.policy, show(fs))
		}
	}
}

func TestAmbiguityAcrossSources(t *testing.T) {
	a := parsed(t, 1, endpointPolicy("{host: '*.example.com', port: 443, tls: skip}"))
	b := parsed(t, 2, strings.Replace(endpointPolicy("{host: api.example.com, ports: [80, 443]}"), "  a:", "  b:", 1))
	out := Compose(Input{Fragments: []Fragment{{"a.yaml", a}, {"b.yaml", b}}})
	fs := Check(out.Policy)
	if len(fs) != 1 || fs[0].Code != codeAmbiguity || fs[0].Pos != diag.NewPos(2, 6, 9) || len(fs[0].Related) != 1 || fs[0].Related[0].Pos != diag.NewPos(1, 6, 9) {
		t.Error(show(fs))
	}
}

func TestComposeRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		code *diag.Code
		hint string
	}{
		{"harness id", Input{Agent: Host{Text: "claude-code"}}, codeAgent, "claude"},
		{"unknown agent", Input{Agent: Host{Text: "opencod"}}, codeAgent, "opencode"},
		{"unknown provider", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "antropic"}}, codeAgent, "anthropic"},
		{"base URL alone", Input{BaseURL: Host{Text: "https://a.example.com"}}, codeBaseURL, "provider"},
		{"not a URL", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}, BaseURL: Host{Text: "proxy.example.com:8443"}}, codeBaseURL, "https://"},
		{"IPv6", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}, BaseURL: Host{Text: "https://[::1]/"}}, codeBaseURL, "https://"},
		{"wildcard", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}, BaseURL: Host{Text: "https://*.example.com"}}, codeBaseURL, "https://"},
		{"port 0", Input{Hosts: hosts("a.example.com:0")}, codeWorkspaceHost, "host"},
		{"dropped path", Input{Hosts: hosts("https://a.example.com/v2")}, codeWorkspaceDrop, "host"},
		{"http means 443", Input{Hosts: hosts("http://a.example.com")}, codeWorkspaceDrop, "port"},
		{"section", Input{Fragments: []Fragment{{"f.yaml", &Policy{Version: 1, Process: &Process{}}}}}, codeSection, "base"},
	} {
		fs := Compose(c.in).Findings
		if len(fs) != 1 || fs[0].Code != c.code || !strings.Contains(fs[0].Hint, c.hint) {
			t.Errorf("%s: %s", c.name, show(fs))
		}
	}
}

func TestWorkspaceHosts(t *testing.T) {
	for _, c := range []struct {
		entry, host string
		port        uint16
	}{
		{"a.example", "a.example", 443}, {"A.EXAMPLE", "a.example", 443}, {"a.example/", "a.example", 443}, {"a.example/x?y", "a.example", 443},
		{"user:pw@a.example", "a.example", 443}, {"a.example:", "a.example", 443}, {"a.example ", "a.example", 443}, {"a.example:8443", "a.example", 8443},
		{"https://a.example:8443/x", "a.example", 8443}, {"http://a.example", "a.example", 443}, {"http://a.example:80", "a.example", 443},
		{"ftp://a.example", "a.example", 443}, {"wss://a.example:443", "a.example", 443}, {"http://a.example:443", "a.example", 443},
		{"ssh://git@A.Example:22", "A.Example", 22}, {"*.a.example", "*.a.example", 443}, {"*.com", "*.com", 443}, {"1.2.3", "1.2.0.3", 443},
		{"0x7f.1", "127.0.0.1", 443}, {"010.0.0.1", "8.0.0.1", 443}, {"[::1]:8080", "[::1]", 8080},
		{"", "", 0}, {"a b.example", "", 0}, {" a.example", "", 0}, {"a.example:65536", "", 0}, {"not a valid host", "", 0}, {"file:///x", "", 0}, {"a.example:0", "", 0},
		{"b\u00fccher.example", "", 0}, {"256.1.1.1", "", 0}, {"1.2.3.4.5", "", 0}, {"[::1", "", 0},
	} {
		got, port, err := workspaceTarget(c.entry)
		if c.host == "" {
			if err == nil {
				t.Errorf("%q: %s:%d, want an error", c.entry, got.host, port)
			}
		} else if err != nil || got.host != c.host || port != c.port {
			t.Errorf("%q: %s:%d %v, want %s:%d", c.entry, got.host, port, err, c.host, c.port)
		}
	}
}

func TestReadWorkspace(t *testing.T) {
	good := `{"features": {"ghcr.io/x/go:1": {"version": "1.26", "list": [1, {}]}}, "skills": ["s"],
 "network": {"mode": "deny", "hosts": ["a.example.com", "b.example.com"]},
 "mounts": [{"host": "/a", "target": "/b", "ro": true}], "environment": [{"name": "A", "value": "1"}, {"name": "B", "secret": "s"}],
 "mcp": {"servers": [{"name": "x", "url": "https://x", "headers": {"a": "b"}}], "commands": [{"name": "x", "command": "y", "args": ["z"], "env": {}}]},
 "ports": [80, 8080], "secrets": ["s"]}`
	ws, fs := ReadWorkspace(3, []byte(good))
	if len(fs) > 0 || ws.Mode != "deny" || !slices.Equal(ws.Hosts, []Host{{"a.example.com", diag.NewPos(3, 2, 40), "network.hosts[0]"}, {"b.example.com", diag.NewPos(3, 2, 57), "network.hosts[1]"}}) {
		t.Errorf("%+v %s", ws, show(fs))
	}
	for _, c := range []struct {
		text      string
		line, col int
		says      string
	}{
		{`{"network": {"host": []}}`, 1, 14, "unknown key"},
		{"{\"network\":\n {\"hosts\": null}}", 2, 12, "null"},
		{`{"network": {"mode": "open"}}`, 1, 22, "allow or deny"},
		{`{"skills": "a"}`, 1, 12, "a list"},
		{`{"ports": [80, 80]}`, 1, 16, "twice"},
		{`{"ports": [0]}`, 1, 12, "port"},
		{`{"skills": [], "skills": []}`, 1, 16, "repeated"},
		{`{"environment": [{"name": "a", "value": "b", "secret": "c"}]}`, 1, 18, "both"},
		{`{"mounts": [{"host": "/a"}]}`, 1, 13, "target"},
		{`{} {}`, 1, 4, "behind"},
		{`{"skills": ["a"`, 1, 16, "JSON"},
		{`{"skills": [true]}`, 1, 13, "a text"},
		{"", 1, 1, "too early"},
		{"[]", 1, 1, "an object"},
		{"{\"\xff\": 1}", 1, 1, "UTF-8"},
	} {
		_, fs := ReadWorkspace(3, []byte(c.text))
		if len(fs) != 1 || fs[0].Pos != diag.NewPos(3, c.line, c.col) || !strings.Contains(fs[0].Message, c.says) {
			t.Errorf("%s: %s", c.text, show(fs))
		}
	}
}

// TestBraces holds that no pattern of braces costs more than its bounds.
func TestBraces(t *testing.T) {
	for _, row := range []struct {
		pattern string
		want    error
	}{
		{"/{a,b}/{c,d}", nil},
		{"/" + strings.Repeat("{a}", 64), nil},
		{"/" + strings.Repeat("{a}", 65), errAlternatives},
		{"/" + strings.Repeat("{", 100_000) + strings.Repeat("}", 100_000), errLong},
		{"/" + strings.Repeat("{a,b}", 6), nil},
		{"/" + strings.Repeat("{a,b}", 7), errAlternatives},
		{"/" + strings.Repeat("{a,b}", 60) + "{,}", errAlternatives},
	} {
		if _, err := compileGlob(row.pattern, '/'); err != row.want {
			t.Errorf("%.40s: %v, want %v", row.pattern, err, row.want)
		}
	}
}
