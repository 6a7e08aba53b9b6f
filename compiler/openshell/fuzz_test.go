package openshell

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, c := range loadCases(f) {
		if c.Given.Policy != "" {
			f.Add([]byte(c.Given.Policy))
		}
	}
	f.Add(Print(BuiltinBase()))
	f.Add([]byte("version: 1\na: &a [*a]\n"))
	f.Add([]byte("version: 1\nnetwork_middlewares: &m {m: {middleware: x, config: {a: *m, b: [1.0, ~, {}]}, endpoints: {include: ['**']}}}\n"))
	f.Add([]byte("version: 1\nnetwork_policies: {a: {endpoints: [{host: a, rules: [{allow: {params: {a: {any: []}, b: {c: {d: x}}}, tool: {any: [x]}}}]}]}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, fs := Parse(0, data)
		if HasErrors(fs) {
			return
		}
		Check(p)
		NewDecider(p).Decide(&Request{Binary: "/usr/bin/curl", Host: "a.example.com", Port: 443, Method: "GET", Path: "/"})
		text := Print(p)
		back, fs := Parse(0, text)
		if len(fs) > 0 {
			t.Fatalf("what was printed does not parse:%s\n%s", show(fs), text)
		}
		if again := Print(back); !bytes.Equal(again, text) {
			t.Fatalf("not the same bytes:\n%s\n%s", text, again)
		}
		if !reflect.DeepEqual(clean(back), clean(p)) {
			t.Fatalf("not the same policy:\n%s\n%#v\n%#v", text, back, p)
		}
	})
}

func FuzzWorkspace(f *testing.F) {
	for _, c := range loadCases(f) {
		if c.Given.WorkspaceJSON != "" {
			f.Add([]byte(c.Given.WorkspaceJSON))
		}
	}
	f.Add([]byte(`{"network": {"hosts": ["http://u@[::1]:80/x", "0x7f.1", "a%2e.example:0"]}, "ports": [1, 1], "features": {"a": {"b": [{}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ws, fs := ReadWorkspace(0, data)
		if HasErrors(fs) {
			return
		}
		out := Compose(Input{Agent: Host{Text: "claude"}, Hosts: ws.Hosts})
		if HasErrors(out.Findings) {
			return
		}
		if rule := out.Policy.Rule("workspace"); (rule != nil) != (len(ws.Hosts) > 0) || rule != nil && len(rule.Endpoints) != len(ws.Hosts) {
			t.Fatalf("%d hosts, rule %+v", len(ws.Hosts), rule)
		}
		if _, fs := Parse(0, Print(out.Policy)); len(fs) > 0 {
			t.Fatal(show(fs))
		}
	})
}

func FuzzDecide(f *testing.F) {
	f.Add("*.example.com", "/usr/bin/**", "/a/**", "b.example.com", "/usr/bin/git", "/a/b?x=1", true)
	f.Add("a.**.b", "/x*{a,b}", "/[!a]*", "a.b", "/xa", "/%61/../b;c", false)
	f.Add("**", "**", "/**/**", "", "", "", false)
	f.Add("**", "**", "/*"+strings.Repeat("{", 3000)+strings.Repeat("}", 3000), "a", "/", "/", true)
	f.Add("**", "**", strings.Repeat("{a,b}", 60)+"{,}", "a", "/", "/", true)
	f.Add("*.[x", "/*\\", "/{a,{b,c}}", "a", "/", "//", true)
	f.Fuzz(func(t *testing.T, host, binary, pattern, askHost, askBinary, path string, enforce bool) {
		e := Endpoint{Host: host, Port: 443, Protocol: "rest", Rules: []L7Rule{{Method: "GET", Path: pattern}}}
		if enforce {
			e.Enforcement = "enforce"
		}
		p := &Policy{Version: 1, Rules: []Rule{{Slug: "a", Binaries: binaries(binary), Endpoints: []Endpoint{e}}}}
		d := NewDecider(p)
		q := Request{Binary: askBinary, Host: askHost, Port: 443, Method: "GET", Path: path}
		got := d.Decide(&q)
		if got.Answer == Audit && enforce {
			t.Fatal("audit where violations are enforced")
		}
		all := host + binary + pattern
		if strings.ContainsAny(all, "[]{}\\") || strings.Contains(all, "**/**") || strings.Contains(all, "***") || strings.Contains(all, "**.**") ||
			strings.ContainsFunc(all+askHost+askBinary+path, func(r rune) bool { return r < ' ' || r > '~' }) || askHost == "inference.local" {
			return
		}
		if host == "" {
			return
		}
		if want := naiveDecide(p, q); got.Answer.String() != want {
			t.Fatalf("%s because %s %s, the reference says %s", got.Answer, got.Reason, got.Detail, want)
		}
		// Denying everything is never looser, and nothing is looser than itself.
		if w, looser := Looser(p, p); looser && !strings.HasPrefix(w.What, "cannot") {
			t.Fatalf("looser than itself: %s", w)
		}
	})
}
