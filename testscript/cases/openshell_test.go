package cases

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type openshellEndpoint struct {
	Host, Protocol, TLS, Enforcement, Access string
	Port                                     uint16
	Rules                                    []string
}

type openshellCase struct {
	ID, Kind, Title string
	Given           struct {
		Agent, Inference, Endpoint, Policy string
		WorkspaceHosts                     []string `yaml:"workspace_hosts"`
		WorkspaceJSON                      string   `yaml:"workspace_json"`
	}
	Expect struct {
		Slugs              []string
		Endpoints          map[string][]openshellEndpoint
		Binaries           map[string][]string
		Error              string
		OK                 bool
		Kinds, Says, Warns []string
		Requests           []struct {
			Binary, Host, Method, Path, Want, Matched string
			Ancestors                                 []string
			Port                                      int
		}
	}
}

// TestOpenShell runs the worked cases of OpenShell policies, which the engine's own tests read too.
func TestOpenShell(t *testing.T) {
	data, err := os.ReadFile(filepath.FromSlash("../../compiler/openshell/testdata/openshell-cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Cases []openshellCase }
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, c := range doc.Cases {
		kinds[c.Kind]++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			switch c.Kind {
			case "build":
				c.build(t)
			case "check":
				c.check(t)
			case "decide":
				c.decide(t)
			default:
				t.Fatalf("unknown kind %q", c.Kind)
			}
			if t.Failed() {
				t.Log(c.Title)
			}
		})
	}
	if kinds["build"] < 18 || kinds["check"] < 30 || kinds["decide"] < 12 {
		t.Errorf("cases read: %v", kinds)
	}
}

func (c *openshellCase) build(t *testing.T) {
	args := []string{"openshell", "build"}
	for _, f := range [][2]string{{"--agent", c.Given.Agent}, {"--inference", c.Given.Inference}, {"--base-url", c.Given.Endpoint}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, h := range c.Given.WorkspaceHosts {
		args = append(args, "--host", h)
	}
	if c.Given.WorkspaceJSON != "" {
		file := filepath.Join(t.TempDir(), "workspace.json")
		if err := os.WriteFile(file, []byte(c.Given.WorkspaceJSON), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--workspace", file)
	}
	r := run(t, nil, args...)
	if c.Expect.Error != "" {
		code := map[string]string{"unsupported-inference": "HALO2242", "endpoint-unsupported": "HALO2243",
			"invalid-workspace-host": "HALO2245", "workspace-json": "HALO2244"}[c.Expect.Error]
		if r.status != 1 || r.stdout != "" || code == "" || !strings.Contains(r.stderr, code) {
			t.Errorf("want status 1 and %s (%s): %v", c.Expect.Error, code, r)
		}
		return
	}
	if r.status != 0 || r.stderr != "" && len(c.Expect.Warns) == 0 {
		t.Fatal(r)
	}
	for _, w := range c.Expect.Warns {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("no warning says %q: %v", w, r)
		}
	}
	var p struct {
		NetworkPolicies map[string]struct {
			Endpoints []struct {
				Host, Protocol, TLS, Enforcement, Access string
				Port                                     uint16
				Rules                                    []struct{ Allow struct{ Method, Path string } }
			}
			Binaries []struct{ Path string }
		} `yaml:"network_policies"`
	}
	if err := yaml.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatal(err)
	}
	if c.Expect.Slugs != nil {
		var slugs []string
		for slug := range p.NetworkPolicies {
			slugs = append(slugs, slug)
		}
		if slices.Sort(slugs); !slices.Equal(slugs, c.Expect.Slugs) {
			t.Errorf("slugs %v, want %v", slugs, c.Expect.Slugs)
		}
	}
	for slug, want := range c.Expect.Endpoints {
		var got []openshellEndpoint
		for _, e := range p.NetworkPolicies[slug].Endpoints {
			g := openshellEndpoint{Host: e.Host, Protocol: e.Protocol, TLS: e.TLS, Enforcement: e.Enforcement, Access: e.Access, Port: e.Port}
			for _, r := range e.Rules {
				g.Rules = append(g.Rules, r.Allow.Method+" "+r.Allow.Path)
			}
			got = append(got, g)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", slug, got, want)
		}
	}
	for slug, want := range c.Expect.Binaries {
		var got []string
		for _, b := range p.NetworkPolicies[slug].Binaries {
			got = append(got, b.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: binaries %v, want %v", slug, got, want)
		}
	}
	// What is built has nothing to find, and the two other forms say the same.
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(r.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	if again := run(t, nil, "openshell", "check", file, "--fail-on", "warning"); again.status != 0 || again.stderr != "" {
		t.Errorf("check: %v", again)
	}
	if y := run(t, nil, append(args, "--output", "yaml")...); y.stdout != r.stdout {
		t.Errorf("--output yaml: %v", y)
	}
	var j struct{ YAML string }
	if err := json.Unmarshal([]byte(run(t, nil, append(args, "--output", "json")...).stdout), &j); err != nil || j.YAML != r.stdout {
		t.Errorf("--output json: %v %q", err, j.YAML)
	}
}

func (c *openshellCase) file(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(c.Given.Policy), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c *openshellCase) check(t *testing.T) {
	r := run(t, nil, "openshell", "check", c.file(t), "--layer", "openshell", "--output", "json")
	if c.Expect.OK != (r.status == 0) || r.status > 1 {
		t.Errorf("ok %v: %v", c.Expect.OK, r)
	}
	var doc struct {
		Diagnostics []struct {
			Severity, Message, Hint, Layer, File string
			Line                                 int
			Kinds                                []string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	text := map[string]string{}
	for _, d := range doc.Diagnostics {
		text[d.Severity] += d.Message + "\n"
		if d.Layer != "openshell" || d.Line == 0 || d.File == "" {
			t.Errorf("no place or another layer: %+v", d)
		}
		if d.Severity == "error" {
			kinds = append(kinds, d.Kinds...)
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if want := slices.Sorted(slices.Values(c.Expect.Kinds)); !slices.Equal(kinds, want) {
		t.Errorf("kinds %v, want %v\n%v", kinds, want, r)
	}
	for severity, all := range map[string][]string{"error": c.Expect.Says, "warning": c.Expect.Warns} {
		for _, s := range all {
			if !strings.Contains(text[severity], s) {
				t.Errorf("no %s says %q\n%v", severity, s, r)
			}
		}
	}
}

func (c *openshellCase) decide(t *testing.T) {
	file := c.file(t)
	for _, q := range c.Expect.Requests {
		args := []string{"openshell", "test", "--policy", file, "--binary", q.Binary, "--host", q.Host, "--port", strconv.Itoa(q.Port), "--output", "json"}
		for _, a := range q.Ancestors {
			args = append(args, "--ancestor", a)
		}
		if q.Method != "" {
			args = append(args, "--method", q.Method, "--path", q.Path)
		}
		r := run(t, nil, args...)
		var got struct{ Decision, Policy string }
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatalf("%v: %v", err, r)
		}
		status := 0
		if q.Want == "deny" {
			status = 1
		}
		if got.Decision != q.Want || r.status != status || got.Policy != cmp.Or(q.Matched, got.Policy) {
			t.Errorf("%+v: %v", q, r)
		}
	}
}
