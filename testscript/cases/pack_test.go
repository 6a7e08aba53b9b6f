package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/pack/packtest"
)

// TestPacks asks the built program every row of the sandbox pack cases that a command can answer: packs through halo pack, openshell blocks as Sandbox
// documents through halo policy explain and halo egress test.
func TestPacks(t *testing.T) {
	for _, name := range []string{"packs-cases.yaml", "more-cases.yaml"} {
		packRows(t, packtest.Load(t, "../../compiler/pack/testdata/"+name))
	}
}

func packRows(t *testing.T, file *packtest.File) {
	areas := map[string]func(*packCase){
		"load": (*packCase).load, "digest": (*packCase).digest, "find": (*packCase).find, "owner": (*packCase).owner, "pattern": (*packCase).pattern,
		"match": (*packCase).match, "project-glob": (*packCase).glob, "copy-pattern": (*packCase).copyPattern, "quantity": (*packCase).quantity,
		"admin-config": (*packCase).admin, "resolve": (*packCase).resolve, "decide": (*packCase).decide,
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			ask := areas[c.Area]
			if ask == nil {
				t.Skipf("no command answers for area %s", c.Area)
			}
			ask(&packCase{t, t.TempDir(), file.Fixtures, &c.Input, &c.Expect})
		})
	}
}

type packCase struct {
	*testing.T
	dir      string
	fixtures map[string]string
	in       *packtest.Input
	want     *packtest.Expect
}

func (c *packCase) write(name string, data []byte) string {
	c.Helper()
	full := filepath.Join(c.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(full, data, 0o644); err != nil {
		c.Fatal(err)
	}
	return full
}

// halo runs the program in the directory of the case.
func (c *packCase) halo(status int, args ...string) result {
	c.Helper()
	r := runIn(c.T, c.dir, args...)
	if r.status != status {
		c.Fatalf("halo %s: want exit status %d, %v", strings.Join(args, " "), status, r)
	}
	return r
}

func decode[T any](t *testing.T, r result) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatalf("not JSON: %v\n%v", err, r)
	}
	return out
}

type packAnswer struct {
	Name, Profile, Digest, Path string
	BuiltIn, Valid              bool
	Error                       *struct{ Text, Key, Reason, Class string }
	Pack                        map[string]any
}

// refused checks the answer about a pack that must not load.
func (c *packCase) refused(arg string, args ...string) {
	c.Helper()
	status := 1
	switch c.want.Code {
	case "too_large", "not_found", "unreadable":
		status = 2
	}
	a := decode[packAnswer](c.T, c.halo(status, append([]string{"pack", "validate", arg, "--output", "json"}, args...)...))
	if a.Valid || a.Error == nil {
		c.Fatalf("%+v", a)
	}
	if c.want.Key != nil && a.Error.Key != *c.want.Key || c.want.Code != "" && a.Error.Class != c.want.Code || c.want.Message != "" && a.Error.Text != c.want.Message ||
		!strings.Contains(a.Error.Reason, c.want.ReasonContains) {
		c.Errorf("%+v", *a.Error)
	}
}

// loads checks the answer about a pack that must load.
func (c *packCase) loads(arg string, args ...string) packAnswer {
	c.Helper()
	a := decode[packAnswer](c.T, c.halo(0, append([]string{"pack", "show", arg, "--output", "json"}, args...)...))
	for key, node := range c.want.Pack {
		var have, want any = a.Profile, nil
		if key != "profile" {
			have = a.Pack
			for part := range strings.SplitSeq(key, ".") {
				have = have.(map[string]any)[part]
			}
		}
		if err := node.Decode(&want); err != nil {
			c.Fatal(err)
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			c.Errorf("%s is %v, want %v", key, have, want)
		}
	}
	return a
}

func (c *packCase) load() {
	c.write("test/pack.yaml", c.in.Bytes(c, c.fixtures))
	if !*c.want.OK {
		c.refused("test/pack.yaml")
		return
	}
	c.halo(0, "pack", "validate", "test/pack.yaml")
	c.loads("test/pack.yaml")
}

func (c *packCase) digest() {
	c.write("a/pack.yaml", c.in.A.Bytes(c, c.fixtures))
	c.write("b/pack.yaml", c.in.B.Bytes(c, c.fixtures))
	a, b := c.halo(0, "pack", "digest", "./a"), c.halo(0, "pack", "digest", "./b")
	if c.want.Digest != "" && a.stdout != c.want.Digest+"\n" || c.want.Same != nil && (a.stdout == b.stdout) != *c.want.Same {
		c.Errorf("digests %s and %s", a.stdout, b.stdout)
	}
}

func (c *packCase) find() {
	place := func(s string) string { return strings.ReplaceAll(s, "{root}", c.dir) }
	for _, f := range c.in.Tree {
		rel := strings.TrimPrefix(f.Path, "{root}/")
		switch {
		case f.Link != "":
			if runtime.GOOS == "windows" {
				c.Skip("links need a privilege")
			}
			c.write(filepath.Dir(rel)+"/.keep", nil)
			if err := os.Symlink(place(f.Link), filepath.Join(c.dir, rel)); err != nil {
				c.Fatal(err)
			}
		case f.Pack != nil:
			c.write(rel, f.Pack.Bytes(c, c.fixtures))
		}
	}
	if c.want.Code == "relative_path" {
		// On the command line of halo pack a relative path is one from the working directory; as a run option it means nothing.
		c.repo(yaml.Node{})
		if r := c.halo(2, "policy", "explain", "--sandbox", "box", "--pack", c.in.Ref); !strings.Contains(r.stderr, "must be a pack name, an absolute path") {
			c.Error(r)
		}
		return
	}
	c.write("halos.yaml", []byte("org: acme\n"))
	if !*c.want.OK {
		c.refused(place(c.in.Ref), "--policy-dir", c.dir)
		return
	}
	if a := c.loads(place(c.in.Ref), "--policy-dir", c.dir); a.BuiltIn != (c.want.Loads == "builtin") {
		c.Errorf("loads %s", a.Path)
	}
}

func (c *packCase) owner() {
	if c.in.FileOwner != c.in.Me || c.in.DirOwner != c.in.Me || runtime.GOOS == "windows" {
		c.Skip("another owner takes root")
	}
	file := c.write("p/pack.yaml", packtest.Document{Base: "minimal"}.Bytes(c, c.fixtures))
	for name, octal := range map[string]string{file: c.in.FileMode, filepath.Dir(file): c.in.DirMode} {
		mode, err := strconv.ParseUint(octal, 8, 32)
		if err != nil {
			c.Fatal(err)
		}
		if err := os.Chmod(name, os.FileMode(mode&0o777)); err != nil {
			c.Fatal(err)
		}
	}
	if !*c.want.OK {
		c.refused("./p", "--owner-check")
		return
	}
	c.halo(0, "pack", "validate", "./p", "--owner-check")
}

// with is the smallest pack with one more section.
func (c *packCase) with(section string, value any) string {
	text, err := yaml.Marshal(map[string]any{section: value})
	if err != nil {
		c.Fatal(err)
	}
	minimal := c.fixtures["minimal"]
	if section == "workspace" {
		minimal = strings.Replace(minimal, "workspace: {mode: mount}\n", "", 1)
	}
	c.write(".with/pack.yaml", append([]byte(minimal), text...))
	return "./.with"
}

func (c *packCase) pattern() {
	rows := map[string]*string{c.in.Pattern: c.want.Canonical}
	if c.want.Each != nil {
		rows = map[string]*string{}
		for s, n := range c.want.Each {
			rows[s] = nil
			if n.Tag != "!!null" {
				rows[s] = &n.Value
			}
		}
	}
	for s, canonical := range rows {
		arg := c.with("egress", map[string]any{"block": []string{s}})
		if canonical == nil {
			if r := c.halo(1, "pack", "validate", arg); !strings.Contains(r.stderr, "egress.block[0]: egress pattern") {
				c.Error(r)
			}
			continue
		}
		a := c.loads(arg)
		if have := a.Pack["egress"].(map[string]any)["block"]; fmt.Sprint(have) != fmt.Sprint([]string{*canonical}) {
			c.Errorf("%q is %v, want %s", s, have, *canonical)
		}
		if c.want.Broad != nil {
			status := 0
			if *c.want.Broad {
				status = 1
			}
			c.halo(status, "pack", "validate", c.with("egress", map[string]any{"allow": []string{s}}))
		}
		if c.want.AsAdminBlock != nil {
			c.repoOf(map[string]any{"admin": map[string]any{"egress_block": []string{s}}})
			if v := c.explain(0)["egress.admin_block"].Value; v != strings.Join(c.want.AsAdminBlock, ", ") {
				c.Errorf("the admin block is %s", v)
			}
		}
	}
}

func (c *packCase) match() {
	patterns := c.in.Patterns
	if c.in.Pattern != "" {
		patterns = append(patterns, c.in.Pattern)
	}
	c.repoOf(map[string]any{"profile": "balanced", "egress": map[string]any{"allow": patterns}})
	ask := func(host string) decisionAnswer { return c.decision(host, 443) }
	for _, host := range c.want.Matches {
		if d := ask(host); d.Step > 2 && (d.Rule != "allow" || !slices.Contains(patterns, d.Match)) {
			c.Errorf("%s: %+v", host, d)
		}
	}
	for _, host := range c.want.No {
		if d := ask(host); slices.Contains(patterns, d.Match) {
			c.Errorf("%s: %+v", host, d)
		}
	}
	for host, pattern := range c.want.MostSpecific {
		if d := ask(host); d.Match != pattern {
			c.Errorf("%s: %+v, want %s", host, d, pattern)
		}
	}
}

func (c *packCase) glob() {
	status := 1
	if c.want.OK != nil && *c.want.OK {
		status = 0
	}
	c.halo(status, "pack", "validate", c.with("workspace", map[string]any{"mode": "mount", "masks": []string{c.in.Glob}}))
}

func (c *packCase) copyPattern() {
	c.repoOf(map[string]any{"admin": map[string]any{"require_copy_for": []string{c.in.Pattern}}})
	if !*c.want.OK {
		c.badKeys("openshell.admin.require_copy_for[0]")
		return
	}
	for mode, folders := range map[string][]string{"copy": c.want.Covers, "mount": c.want.No} {
		for _, folder := range folders {
			args := []string{"--project", folder}
			if c.in.Home != "" {
				args = append(args, "--home", c.in.Home)
			}
			if v := c.explain(0, args...)["workdir.mode"].Value; v != mode {
				c.Errorf("%s is worked on as %s, want %s", folder, v, mode)
			}
		}
	}
}

func (c *packCase) quantity() {
	c.repo(yaml.Node{})
	rows := map[string]bool{}
	flag := "--cpu"
	if c.in.Memory != nil || c.in.Table == "memory" {
		flag = "--memory"
	}
	switch {
	case c.want.Each != nil:
		for s, n := range c.want.Each {
			if s != "" {
				rows[s] = n.Tag != "!!null"
			}
		}
	case c.in.CPU != nil:
		rows[*c.in.CPU] = *c.want.OK
	default:
		rows[*c.in.Memory] = *c.want.OK
	}
	for s, ok := range rows {
		if ok {
			c.explain(0, flag+"="+s)
		} else if r := c.halo(2, "policy", "explain", "--sandbox", "box", flag+"="+s); !strings.Contains(r.stderr, "sandbox policy: "+flag+" ") {
			c.Error(r)
		}
	}
}

// badKeys wants exactly these keys refused by lint.
func (c *packCase) badKeys(keys ...string) {
	c.Helper()
	have := map[string]bool{}
	for _, f := range findings(c.T, c.halo(min(len(keys), 1), "lint", "--output", "json")) {
		if f.Severity == "error" {
			have[f.Path] = true
		}
	}
	if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
		c.Errorf("refused %v, want %v", got, keys)
	}
}

func (c *packCase) admin() {
	c.repo(c.in.Config)
	c.badKeys(c.want.BadKeys...)
}

// repo writes a policy repo with a sandbox of this openshell block and the packs of the case.
func (c *packCase) repo(config yaml.Node) {
	var block any = &config
	if config.Kind == 0 {
		block = map[string]any{}
	}
	c.repoOf(block)
}

// sandboxRepo is the policy around a Sandbox document.
const sandboxRepo = `apiVersion: halos.dev/v1
kind: Gateway
name: main
baseURL: https://ai.acme.example
---
apiVersion: halos.dev/v1
kind: Profile
name: base
harnesses: {claude-code: {version: 2.1.332}}
permissions: {disableBypass: true}
sandbox: {mode: workspace-write, protectedPaths: ["~/.ssh", "~/.aws"], policy: box}
egress: {allowedDomains: [ai.acme.example, otel.acme.example]}
telemetry: {enabled: true, otlpEndpoint: "https://otel.acme.example:4318", protocol: http/protobuf}
---
apiVersion: halos.dev/v1
kind: Ring
name: ga
order: 0
profile: base
membership: {default: true}
`

func (c *packCase) repoOf(block any) {
	c.Helper()
	doc, err := yaml.Marshal(map[string]any{"apiVersion": "halos.dev/v1", "kind": "Sandbox", "name": "box", "openshell": block})
	if err != nil {
		c.Fatal(err)
	}
	c.write("policy.yaml", []byte(sandboxRepo))
	c.write("halos.yaml", []byte("org: acme\n"))
	c.write("box.yaml", doc)
	for name, pack := range c.in.Packs {
		c.write("packs/"+name+"/pack.yaml", pack.Bytes(c, c.fixtures))
	}
}

type settingAnswer struct{ Key, Value, Layer, Origin, Requested string }

type violationAnswer struct {
	Key, Source, Attempted, Enforced, Constraint, Message, Detail string
	Fatal                                                         bool
}

type explainAnswer struct {
	Settings   []settingAnswer
	Violations []violationAnswer
}

func (c *packCase) explainAll(status int, args ...string) explainAnswer {
	c.Helper()
	return decode[explainAnswer](c.T, c.halo(status, append([]string{"policy", "explain", "--sandbox", "box", "--output", "json"}, args...)...))
}

func (c *packCase) explain(status int, args ...string) map[string]settingAnswer {
	c.Helper()
	out := map[string]settingAnswer{}
	for _, s := range c.explainAll(status, args...).Settings {
		out[s.Key] = s
	}
	return out
}

func runArgs(run packtest.Run) []string {
	var args []string
	text := func(flag, v string) {
		if v != "" {
			args = append(args, flag, v)
		}
	}
	on := func(flag string, v bool) {
		if v {
			args = append(args, flag)
		}
	}
	text("--pack", run.Pack)
	text("--profile", run.Profile)
	text("--cpu", run.CPU)
	text("--memory", run.Memory)
	text("--harness", run.Harness)
	text("--project", run.Project)
	text("--home", run.Home)
	on("--copy", run.Copy)
	on("--safe", run.Safe)
	on("--no-mcp", run.NoMCP)
	on("--learn", run.Learn)
	for _, g := range run.Unmask {
		args = append(args, "--unmask", g)
	}
	for _, p := range run.HostPorts {
		args = append(args, "--host-port", strconv.Itoa(p))
	}
	if run.Yolo != nil {
		args = append(args, "--yolo="+strconv.FormatBool(*run.Yolo))
	}
	return args
}

func (c *packCase) resolve() {
	c.repo(c.in.Config)
	args := runArgs(c.in.Run)
	if c.want.ErrorContains != "" {
		if r := c.halo(2, append([]string{"policy", "explain", "--sandbox", "box"}, args...)...); !strings.Contains(r.stderr, c.want.ErrorContains) {
			c.Error(r)
		}
		return
	}
	status := 0
	if c.want.Violations != nil {
		for _, v := range *c.want.Violations {
			if v.Fatal != nil && *v.Fatal == "true" {
				status = 1
			}
		}
	}
	a := c.explainAll(status, args...)
	settings := map[string]settingAnswer{}
	for _, s := range a.Settings {
		settings[s.Key] = s
	}
	same := func(what, have string, want *string) {
		c.Helper()
		if want != nil && have != *want {
			c.Errorf("%s is %q, want %q", what, have, *want)
		}
	}
	for key, w := range c.want.Settings {
		s := settings[key]
		same(key, s.Value, w.Value)
		same(key+" layer", s.Layer, w.Source)
		same(key+" origin", s.Origin, w.Origin)
		same(key+" requested", s.Requested, w.Requested)
	}
	for held, lists := range map[bool]map[string][]string{true: c.want.ListHas, false: c.want.ListLacks} {
		for key, members := range lists {
			for _, m := range members {
				if slices.Contains(strings.Split(settings[key].Value, ", "), m) != held {
					c.Errorf("%s is %s", key, settings[key].Value)
				}
			}
		}
	}
	if c.want.Violations == nil {
		return
	}
	if len(a.Violations) != len(*c.want.Violations) {
		c.Fatalf("violations %+v", a.Violations)
	}
	for i, w := range *c.want.Violations {
		v := a.Violations[i]
		same("key", v.Key, &w.Key)
		same("source", v.Source, w.Source)
		same("attempted", v.Attempted, w.Attempted)
		same("enforced", v.Enforced, w.Enforced)
		same("constraint", v.Constraint, w.Constraint)
		same("message", v.Message, w.Message)
		same("detail", v.Detail, w.Detail)
		same("fatal", strconv.FormatBool(v.Fatal), w.Fatal)
	}
}

type decisionAnswer struct {
	Decision, Rule, Match string
	Step                  int
	Unblockable           bool
}

func (c *packCase) decision(host string, port int) decisionAnswer {
	c.Helper()
	args := []string{"egress", "test", "--sandbox", "box", "--port", strconv.Itoa(port), "--output", "json"}
	for _, u := range c.in.Unblocks {
		args = append(args, "--unblock", u)
	}
	r := runIn(c.T, c.dir, append(args, "--", host)...)
	d := decode[decisionAnswer](c.T, r)
	if (r.status == 0) != (d.Decision == "allow") || r.status > 1 {
		c.Fatalf("%+v and %v", d, r)
	}
	return d
}

func (c *packCase) decide() {
	c.repo(c.in.Config)
	check := func(host string, port int, w packtest.Decision) {
		c.Helper()
		d := c.decision(host, port)
		if w.Allowed != nil && (d.Decision == "allow") != *w.Allowed || w.Rule != "" && d.Rule != w.Rule || w.Match != nil && d.Match != *w.Match ||
			w.Unblockable != nil && d.Unblockable != *w.Unblockable || w.Step != nil && d.Step != *w.Step {
			c.Errorf("%s %d: %+v", host, port, d)
		}
	}
	for dest, node := range c.want.Each {
		host, portText, _ := strings.Cut(dest, " ")
		port, err := strconv.Atoi(portText)
		if err != nil {
			c.Fatal(err)
		}
		var w packtest.Decision
		if err := node.Decode(&w); err != nil {
			c.Fatal(err)
		}
		check(host, port, w)
	}
	if c.in.Host != "" {
		check(c.in.Host, c.in.Port, c.want.Decision)
	}
}
