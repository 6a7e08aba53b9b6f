package trace

import (
	"fmt"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// TestFacts holds what is read from files: the same said at another index is the same fact, another value, key or place is another.
func TestFacts(t *testing.T) {
	for _, c := range []struct{ dest, content, want string }{
		{"x.json", "{\n  \"a\": [\n    \"x\",\n    {\n      \"b\": true\n    }\n  ],\n  \"c\": {},\n  \"d\": 1.50\n}\n",
			"1:= 2:/a=a 3:/a/0=x 4:/a/1= 5:/a/1/b=true 6:/a/1= 7:/a=a 8:/c={} 9:/d=1.50 10:="},
		{"x.json", "{}\n", "1:={}"},
		{"x.toml", "# note\na = [\"x\", \"y\"]\nb = []\n\n[t.\"u v\"]\n'q.r' = { s = 1 }\n\n[[e]]\nk = \"1\"\n[e.f]\nk = \"1\"\n[[e]]\nk = \"2\"\n[z]\nk = \"1\"\n",
			`1:=# note 2:a=x 2:a=y 3:b=[] 5:t."u v"=[t."u v"] 6:t."u v".q.r={"s":1} 8:e=[[e]] 9:e.k=1 10:e.f=[e.f] 11:e.f.k=1 12:e=[[e]] 13:e.k=2 14:z=[z] 15:z.k=1`},
		{"x.md", "one\n\none\n", "1:=one 2:= 3:=one"},
		{"x.json", "{ not json\n", "1:={ not json"},
	} {
		var got []string
		ids := map[string]int{}
		for _, f := range facts(harness.File{Dest: c.dest, Content: []byte(c.content)}) {
			got = append(got, fmt.Sprintf("%d:%s=%s", f.line, f.pointer, f.text))
			if other, ok := ids[f.id]; ok && f.closes == 0 {
				t.Errorf("%s: lines %d and %d are the same fact", c.dest, other, f.line)
			}
			ids[f.id] = f.line
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.dest, text, c.want)
		}
	}
	one := facts(harness.File{Dest: "x.json", Content: []byte("{\n  \"a\": [\n    \"x\",\n    \"y\"\n  ]\n}\n")})
	two := facts(harness.File{Dest: "x.json", Content: []byte("{\n  \"a\": [\n    \"y\"\n  ]\n}\n")})
	if one[3].id != two[2].id || one[3].text != "y" {
		t.Errorf("y is another fact at another index: %+v, %+v", one, two)
	}
}

// input is a policy of n allowed hosts with a renderer that has each kind of dependency once.
func input(n int) Input {
	p := &effective.Policy{Profile: "p"}
	rules := egress.Rules{}
	for i := range n {
		h, _ := host.ParsePattern(fmt.Sprintf("h%d.example", i))
		pos := diag.NewPos(0, 10+i, 1)
		p.Egress.AllowedDomains.Items = append(p.Egress.AllowedDomains.Items, policy.Host{Pattern: h, Pos: pos})
		rules.Allowed = append(rules.Allowed, egress.Entry{Pattern: h, Field: "egress.allowedDomains", Name: h.String(), Pos: pos})
	}
	p.Egress.AllowedDomains.Pos = diag.NewPos(0, 9, 1)
	p.Hosts = egress.Compile(rules)
	p.Harnesses = []policy.Pin{{Harness: source.Str{V: "codex", Pos: 1}, Version: source.Str{V: "1.2.3", Pos: diag.NewPos(0, 2, 1)}}}
	p.Models.Default = source.Str{V: "m", Pos: diag.NewPos(0, 3, 1)}
	p.Models.Allowed = source.Strs{Items: []source.Str{{V: "m", Pos: diag.NewPos(0, 4, 1)}}, Pos: diag.NewPos(0, 4, 1)}
	p.Permissions.DisableBypass = source.Bool{V: true, Pos: diag.NewPos(0, 5, 1)}
	return Input{
		Target: harness.Target{Policy: p, Version: harness.Version{Major: 1, Minor: 2, Patch: 3}, Org: "acme"}, Harness: "codex",
		Beside: []Beside{{Key: "org", Value: "acme", Pos: diag.NewPos(1, 1, 1), Drop: func(t *harness.Target) { t.Org = "" }}},
		Render: func(t harness.Target) ([]harness.File, []harness.Gap) {
			var b strings.Builder
			b.WriteString("always\nversion " + t.Version.String() + "\norg " + t.Org + "\n")
			model := t.Policy.Models.Default.V
			if model == "" && len(t.Policy.Models.Allowed.Items) > 0 {
				model = t.Policy.Models.Allowed.Items[0].V
			}
			b.WriteString("model " + model + "\n")
			hosts := t.Policy.Hosts.AllowedHosts()
			if t.Policy.Permissions.DisableBypass.V && (len(hosts) > 0 || model != "") {
				b.WriteString("lock\n")
			}
			for _, h := range hosts {
				b.WriteString("host " + h + "\n")
			}
			if len(hosts) > 0 {
				b.WriteString("closed\n")
			}
			return []harness.File{{Dest: "f", Content: []byte(b.String())}}, nil
		},
	}
}

// text prints what a line depends on.
func text(l Line) string {
	var out []string
	keys := func(cs []Cause) string {
		var ks []string
		for _, c := range cs {
			ks = append(ks, c.Key)
		}
		return strings.Join(ks, "+")
	}
	for _, p := range l.Parts {
		s := keys(p.Needs)
		for _, set := range p.AnyOf {
			s += "|" + keys(set)
		}
		if p.Constant {
			s += "constant"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestLines(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 33} {
		files := Lines(input(n), func(string, int, string) bool { return true })
		if len(files) != 1 || len(files[0].Lines) != 6+n {
			t.Fatalf("%d hosts: %+v", n, files)
		}
		hosts := "egress.allowedDomains"
		if n == 1 {
			hosts += "[0]"
		}
		for _, l := range files[0].Lines {
			want := map[string]string{"always": "constant", "version 1.2.3": "harnesses.codex.version", "org acme": "org", "model m": "|models.default|models.allowed[0]",
				"lock": "permissions.disableBypass|models.default|models.allowed[0]|" + hosts, "closed": hosts}[l.Text]
			if i, ok := strings.CutPrefix(l.Text, "host h"); ok {
				want = "egress.allowedDomains[" + strings.TrimSuffix(i, ".example") + "]"
			}
			if got := text(l); got != want {
				t.Errorf("%d hosts: %s: %s, want %s", n, l.Text, got, want)
			}
		}
	}
}

// TestLinesIsFast holds the number of renderings to the logarithm of the entries: a line of a long list is found without leaving out each entry.
func TestLinesIsFast(t *testing.T) {
	in := input(5000)
	render, n := in.Render, 0
	in.Render = func(t harness.Target) ([]harness.File, []harness.Gap) {
		n++
		return render(t)
	}
	files := Lines(in, func(_ string, _ int, text string) bool { return text == "host h4321.example" })
	if len(files[0].Lines) != 1 || text(files[0].Lines[0]) != "egress.allowedDomains[4321]" || n > 60 {
		t.Errorf("%d renderings: %+v", n, files[0].Lines)
	}
	if files := Lines(in, func(string, int, string) bool { return false }); len(files) != 1 || len(files[0].Lines) != 0 {
		t.Errorf("%+v", files)
	}
}
