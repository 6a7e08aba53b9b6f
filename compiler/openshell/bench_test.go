package openshell

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func benchInput() Input {
	in := Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "vertexai"}}
	var allowed, denied []Host
	for i := range 100 {
		allowed = append(allowed, Host{Text: fmt.Sprintf("*.team%d.example.com", i)}, Host{Text: fmt.Sprintf("team%d.example.com", i)})
		denied = append(denied, Host{Text: fmt.Sprintf("secret.team%d.example.com", i)}, Host{Text: fmt.Sprintf("*.paste%d.example.org", i)})
		in.Hosts = append(in.Hosts, Host{Text: fmt.Sprintf("team%d.example.com", i)})
	}
	in.Egress = &Egress{Policy: resolved("deny", allowed, denied),
		Permit: hosts("*.googleapis.com", "github.com", "api.github.com", "platform.claude.com", "raw.githubusercontent.com")}
	return in
}

// BenchmarkComposeCheckPrint is a policy with 200 allowed and 200 denied hosts; the budget is 10 ms of process time.
func BenchmarkComposeCheckPrint(b *testing.B) {
	in := benchInput()
	for b.Loop() {
		out := Compose(in)
		if len(out.Findings)+len(Check(out.Policy)) > 0 {
			b.Fatal(show(out.Findings), show(Check(out.Policy)))
		}
		Print(out.Policy)
	}
}

func BenchmarkComposeCheckPrintDefault(b *testing.B) {
	for b.Loop() {
		out := Compose(Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}})
		Check(out.Policy)
		Print(out.Policy)
	}
}

func BenchmarkParse(b *testing.B) {
	text := Print(Compose(benchInput()).Policy)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Parse(0, text)
	}
}

func BenchmarkLooser(b *testing.B) {
	base, next := Compose(benchInput()).Policy, Compose(benchInput()).Policy
	for b.Loop() {
		if w, looser := Looser(base, next); looser {
			b.Fatal(w)
		}
	}
}

// BenchmarkDecide asks policies of 200 endpoints; the budget is 2 microseconds a decision. In the row "every endpoint" all of them match and each of their rules is tried.
func BenchmarkDecide(b *testing.B) {
	build := func(host string, protocol bool) *Decider {
		p := &Policy{Version: 1}
		for i := range 20 {
			r := Rule{Slug: fmt.Sprintf("r%02d", i), Binaries: binaries("/usr/bin/git", "/usr/bin/**", "/opt/**/tool")}
			for k := range 10 {
				e := Endpoint{Host: strings.ReplaceAll(host, "#", strconv.Itoa(i*10+k)), Port: 443}
				if protocol {
					e = inspect(e.Host, "read-only")
					e.Access, e.Rules, e.DenyRules = "", []L7Rule{{Method: "POST", Path: "/x"}, {Method: "GET", Path: "/**/info/*"}}, []L7Rule{{Method: "*", Path: "/admin/**"}}
				}
				r.Endpoints = append(r.Endpoints, e)
			}
			p.Rules = append(p.Rules, r)
		}
		return NewDecider(p)
	}
	ancestors := []string{"/usr/bin/bash", "/sandbox/.local/bin/claude"}
	for _, c := range []struct {
		name string
		d    *Decider
		q    Request
	}{
		{"exact", build("h#.example.com", false), Request{Binary: "/usr/bin/curl", Ancestors: ancestors, Host: "h150.example.com", Port: 443}},
		{"wildcard", build("**.h#.example.com", false), Request{Binary: "/opt/a/b/tool", Ancestors: ancestors, Host: "a.b.h150.example.com", Port: 443}},
		{"star", build("*-a.h#.example.com", false), Request{Binary: "/opt/a/b/tool", Ancestors: ancestors, Host: "x-a.h150.example.com", Port: 443}},
		{"request", build("*.h#.example.com", true), Request{Binary: "/usr/bin/git", Ancestors: ancestors, Host: "a.h199.example.com", Port: 443, Method: "GET", Path: "/o/r.git/info/refs?service=x"}},
		{"every endpoint", build("**.example.com", true), Request{Binary: "/usr/bin/git", Ancestors: ancestors, Host: "a.b.example.com", Port: 443, Method: "GET", Path: "/o/r.git/info/refs"}},
		{"no match", build("**.h#.example.com", false), Request{Binary: "/usr/bin/git", Ancestors: ancestors, Host: "a.b.example.net", Port: 443}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.d.Decide(&c.q)
			}
		})
	}
}
