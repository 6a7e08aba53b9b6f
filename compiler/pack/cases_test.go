package pack

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack/packtest"
)

func TestCases(t *testing.T) { runCases(t, "testdata/packs-cases.yaml") }

func TestMoreCases(t *testing.T) { runCases(t, "testdata/more-cases.yaml") }

func runCases(t *testing.T, name string) {
	file := packtest.Load(t, name)
	areas := map[string]func(*testing.T, map[string]string, *packtest.Input, *packtest.Expect){
		"load": caseLoad, "digest": caseDigest, "pattern": casePattern, "match": caseMatch, "covers": caseCovers, "project-glob": caseGlob, "copy-pattern": caseCopy,
		"quantity": caseQuantity, "admin-config": caseAdmin, "owner": caseOwner, "find": caseFind, "resolve": caseResolve, "decide": caseDecide,
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			run := areas[c.Area]
			if run == nil {
				t.Fatalf("unknown area %q", c.Area)
			}
			run(t, file.Fixtures, &c.Input, &c.Expect)
		})
	}
}

func checkPack(t *testing.T, p *Pack, want map[string]yaml.Node) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(Print(p), &doc); err != nil {
		t.Fatal(err)
	}
	for key, node := range want {
		if key == "profile" {
			if p.Profile() != node.Value {
				t.Errorf("profile %s, want %s", p.Profile(), node.Value)
			}
			continue
		}
		have := doc.Content[0]
		for part := range strings.SplitSeq(key, ".") {
			i := slices.IndexFunc(have.Content, func(n *yaml.Node) bool { return n.Value == part })
			have = have.Content[i+1]
		}
		var a, b any
		if err := have.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if err := node.Decode(&b); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%T %v", a, a) != fmt.Sprintf("%T %v", b, b) {
			t.Errorf("%s is %v, want %v", key, a, b)
		}
	}
}

func checkError(t *testing.T, err error, want *packtest.Expect) {
	t.Helper()
	var e *Error
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("error %v (%T), want an *Error", err, err)
	}
	if want.Key != nil && e.Key != *want.Key {
		t.Errorf("key %q, want %q (%v)", e.Key, *want.Key, e)
	}
	if want.Code != "" && e.Class != want.Code {
		t.Errorf("class %q, want %q (%v)", e.Class, want.Code, e)
	}
	if want.Message != "" && e.Error() != want.Message {
		t.Errorf("error\n%s\nwant\n%s", e, want.Message)
	}
	if !strings.Contains(e.Reason, want.ReasonContains) {
		t.Errorf("reason %q lacks %q", e.Reason, want.ReasonContains)
	}
}

func caseLoad(t *testing.T, fixtures map[string]string, in *packtest.Input, want *packtest.Expect) {
	data := in.Bytes(t, fixtures)
	p, err := Load("test/pack.yaml", data)
	found := Check("test/pack.yaml", data, 0)
	if *want.OK {
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if d.Severity == diag.Error {
				t.Errorf("Check reports %s: %s", d.Path, d.Message)
			}
		}
		checkPack(t, p, want.Pack)
		return
	}
	if err == nil {
		t.Fatal("loads")
	}
	checkError(t, err, want)
	if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool {
		return d.Path == err.(*Error).Key && d.Severity == diag.Error && d.Pos.IsValid()
	}) {
		t.Errorf("Check lacks the loader's error %v: %v", err, found)
	}
}

func caseDigest(t *testing.T, fixtures map[string]string, in *packtest.Input, want *packtest.Expect) {
	a, b := Digest(in.A.Bytes(t, fixtures)), Digest(in.B.Bytes(t, fixtures))
	if want.Digest != "" && a != want.Digest {
		t.Errorf("digest %s, want %s", a, want.Digest)
	}
	if want.Same != nil && (a == b) != *want.Same {
		t.Errorf("same digest: %v", a == b)
	}
	if !ValidDigest(a) {
		t.Errorf("%s is not a valid digest", a)
	}
}

func casePattern(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	if want.Each != nil {
		for s, node := range want.Each {
			p, err := ParsePattern(s)
			if node.Tag == "!!null" != (err != nil) || err == nil && p.String() != node.Value {
				t.Errorf("%q is %q %v, want %s", s, p, err, node.Value)
			}
		}
		return
	}
	p, err := ParsePattern(in.Pattern)
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), want.ReasonContains) {
		t.Errorf("reason %q lacks %q", err, want.ReasonContains)
	}
	if want.Canonical != nil && p.String() != *want.Canonical {
		t.Errorf("canonical %q, want %q", p, *want.Canonical)
	}
	if want.Broad != nil && p.Broad() != *want.Broad {
		t.Errorf("broad %v", p.Broad())
	}
	if want.AsAdminBlock != nil && patterns(p.Widen()) != list(want.AsAdminBlock) {
		t.Errorf("as admin block %s, want %v", patterns(p.Widen()), want.AsAdminBlock)
	}
}

func caseMatch(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	texts := in.Patterns
	if in.Pattern != "" {
		texts = append(texts, in.Pattern)
	}
	var all []Pattern
	for _, s := range texts {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	matches := func(dest string) bool {
		return slices.ContainsFunc(all, func(p Pattern) bool { return p.Matches(dest) })
	}
	for _, dest := range want.Matches {
		if !matches(dest) {
			t.Errorf("%v does not match %q", texts, dest)
		}
	}
	for _, dest := range want.No {
		if matches(dest) {
			t.Errorf("%v matches %q", texts, dest)
		}
	}
	e := NewEngine(Rules{Profile: "balanced", Ports: []int{443}, Allow: all})
	for dest, match := range want.MostSpecific {
		if d := e.Decide(dest, 443); d.Match != match {
			t.Errorf("%s is matched by %q, want %q", dest, d.Match, match)
		}
	}
}

func caseCovers(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	p, err := ParsePattern(in.Pattern)
	if err != nil {
		t.Fatal(err)
	}
	for covered, list := range map[bool][]string{true: want.Covers, false: want.No} {
		for _, s := range list {
			q, err := ParsePattern(s)
			if err != nil {
				t.Fatal(err)
			}
			if p.Covers(q) != covered {
				t.Errorf("%s covers %s: %v", p, q, !covered)
			}
		}
	}
}

func caseGlob(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	if want.Each != nil {
		for s, node := range want.Each {
			v, err := ParseGlob(s)
			refused := node.Tag == "!!null" || node.Value == "false"
			if refused != (err != nil) || err == nil && node.Tag == "!!str" && v != node.Value {
				t.Errorf("%q is %q %v, want %s", s, v, err, node.Value)
			}
		}
		return
	}
	if _, err := ParseGlob(in.Glob); *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
}

func caseCopy(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	p, err := ParseCopyPattern(in.Pattern)
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	for _, s := range want.Covers {
		if !CopyCovers(p, s, in.Home) {
			t.Errorf("%s does not cover %s", p, s)
		}
	}
	for _, s := range want.No {
		if CopyCovers(p, s, in.Home) {
			t.Errorf("%s covers %s", p, s)
		}
	}
}

func caseQuantity(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	parse, text := ParseCPU, in.CPU
	if in.Memory != nil || in.Table == "memory" {
		parse, text = ParseMemory, in.Memory
	}
	if want.Each != nil {
		for s, node := range want.Each {
			v, err := parse(s)
			if node.Tag == "!!null" != (err != nil) || err == nil && strconv.FormatInt(v, 10) != node.Value {
				t.Errorf("%q is %d %v, want %s", s, v, err, node.Value)
			}
		}
		return
	}
	v, err := parse(*text)
	if *want.OK != (err == nil) {
		t.Fatalf("%d, error %v", v, err)
	}
	if want.Value != nil && v != *want.Value {
		t.Errorf("%d, want %d", v, *want.Value)
	}
}

func parseConfig(t *testing.T, n *yaml.Node) (*Config, []diag.Diagnostic) {
	t.Helper()
	if n.Kind == 0 {
		return &Config{}, nil
	}
	c, _, found := ParseConfig(n, Source{Path: "openshell"})
	return c, slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
}

func caseAdmin(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	_, found := parseConfig(t, &in.Config)
	if *want.OK != (len(found) == 0) {
		t.Errorf("found %v", found)
	}
	if want.BadKeys == nil {
		return
	}
	have := map[string]bool{}
	for _, d := range found {
		have[d.Path] = true
	}
	for _, key := range want.BadKeys {
		if !have[key] {
			t.Errorf("%s is not reported", key)
		}
		delete(have, key)
	}
	if len(have) > 0 {
		t.Errorf("also reported: %v", have)
	}
}

func fileMode(t *testing.T, s string) fs.FileMode {
	t.Helper()
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		t.Fatal(err)
	}
	mode := fs.FileMode(n & 0o777)
	if n&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func caseOwner(t *testing.T, _ map[string]string, in *packtest.Input, want *packtest.Expect) {
	err := CheckOwner("pack.yaml", in.Me, Owned{in.FileOwner, fileMode(t, in.FileMode)}, Owned{in.DirOwner, fileMode(t, in.DirMode)})
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	if err != nil {
		checkError(t, err, want)
	}
}

func caseFind(t *testing.T, fixtures map[string]string, in *packtest.Input, want *packtest.Expect) {
	root := t.TempDir()
	place := func(s string) string { return strings.ReplaceAll(s, "{root}", root) }
	for _, f := range in.Tree {
		name := place(f.Path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case f.Link != "":
			err = os.Symlink(place(f.Link), name)
		case f.Pack != nil:
			err = os.WriteFile(name, f.Pack.Bytes(t, fixtures), 0o644)
		default:
			err = os.MkdirAll(name, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := Finder{FS: os.DirFS("/"), Dir: place(in.PackDir), Home: root}.Find(place(in.Ref))
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	if err != nil {
		checkError(t, err, want)
		return
	}
	if p.BuiltIn != (want.Loads == "builtin") {
		t.Errorf("loads %s, want %s", p.Path, want.Loads)
	}
	checkPack(t, p, want.Pack)
}

func resolveCase(t *testing.T, fixtures map[string]string, in *packtest.Input) (*Policy, error) {
	t.Helper()
	cfg, found := parseConfig(t, &in.Config)
	if len(found) > 0 {
		return nil, fmt.Errorf("%s: %s", found[0].Path, found[0].Message)
	}
	run := in.Run
	return Resolve(Input{
		Config: cfg,
		Run: Run{Pack: run.Pack, Profile: run.Profile, Copy: run.Copy, Safe: run.Safe, Unmask: run.Unmask, HostPorts: run.HostPorts, NoMCP: run.NoMCP, CPU: run.CPU,
			Memory: run.Memory, Harness: run.Harness, Project: run.Project, Home: run.Home, Yolo: run.Yolo, Learn: run.Learn},
		Find: func(ref string) (*Pack, error) {
			if d, ok := in.Packs[ref]; ok {
				return Load(ref, d.Bytes(t, fixtures))
			}
			return Finder{FS: os.DirFS(t.TempDir()), Dir: "/packs"}.Find(ref)
		},
	})
}

func caseResolve(t *testing.T, fixtures map[string]string, in *packtest.Input, want *packtest.Expect) {
	p, err := resolveCase(t, fixtures, in)
	if want.ErrorContains != "" {
		if err == nil || !strings.Contains(err.Error(), want.ErrorContains) {
			t.Fatalf("error %v, want one with %q", err, want.ErrorContains)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	same := func(what, have string, want *string) {
		t.Helper()
		if want != nil && have != *want {
			t.Errorf("%s is %q, want %q", what, have, *want)
		}
	}
	for key, w := range want.Settings {
		s, ok := p.Setting(key)
		if !ok {
			t.Errorf("no setting %s", key)
			continue
		}
		same(key+" value", s.Value, w.Value)
		same(key+" source", s.Source, w.Source)
		same(key+" origin", s.Origin, w.Origin)
		same(key+" requested", s.Requested, w.Requested)
	}
	for key, members := range want.ListHas {
		s, _ := p.Setting(key)
		for _, m := range members {
			if !slices.Contains(strings.Split(s.Value, ", "), m) {
				t.Errorf("%s lacks %s: %s", key, m, s.Value)
			}
		}
	}
	for key, members := range want.ListLacks {
		s, _ := p.Setting(key)
		for _, m := range members {
			if slices.Contains(strings.Split(s.Value, ", "), m) {
				t.Errorf("%s holds %s", key, m)
			}
		}
	}
	if want.Violations == nil {
		return
	}
	if len(p.Violations) != len(*want.Violations) {
		t.Fatalf("violations %+v", p.Violations)
	}
	for i, w := range *want.Violations {
		v := p.Violations[i]
		if v.Key != w.Key {
			t.Errorf("violation %d is about %s, want %s", i, v.Key, w.Key)
		}
		same("source", v.Source, w.Source)
		same("attempted", v.Attempted, w.Attempted)
		same("enforced", v.Enforced, w.Enforced)
		same("constraint", v.Constraint, w.Constraint)
		same("message", v.Message, w.Message)
		same("detail", v.Detail, w.Detail)
		same("fatal", strconv.FormatBool(v.Fatal), w.Fatal)
	}
}

func checkDecision(t *testing.T, what string, d Decision, want packtest.Decision) {
	t.Helper()
	if want.Allowed != nil && d.Allowed != *want.Allowed || want.Rule != "" && d.Rule != want.Rule || want.Match != nil && d.Match != *want.Match ||
		want.Unblockable != nil && d.Unblockable != *want.Unblockable || want.Step != nil && d.Step != *want.Step {
		t.Errorf("%s: %+v does not fit the expectation (allowed, rule, match, unblockable, step)", what, d)
	}
}

func caseDecide(t *testing.T, fixtures map[string]string, in *packtest.Input, want *packtest.Expect) {
	p, err := resolveCase(t, fixtures, in)
	if err != nil {
		t.Fatal(err)
	}
	var unblocks []Pattern
	for _, s := range in.Unblocks {
		u, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		unblocks = append(unblocks, u)
	}
	e := p.Engine(unblocks)
	for dest, node := range want.Each {
		host, portText, _ := strings.Cut(dest, " ")
		port, err := strconv.Atoi(portText)
		if err != nil {
			t.Fatal(err)
		}
		var w packtest.Decision
		if err := node.Decode(&w); err != nil {
			t.Fatal(err)
		}
		checkDecision(t, dest, e.Decide(host, port), w)
	}
	if in.Host == "" {
		return
	}
	checkDecision(t, in.Host, e.Decide(in.Host, in.Port), want.Decision)
	if want.Dial != "" {
		var answers []netip.Addr
		for _, s := range in.ResolvesTo {
			answers = append(answers, netip.MustParseAddr(s))
		}
		if d := e.Dial(in.Host, in.Port, answers); d.Rule != want.Dial {
			t.Errorf("dial is %+v, want %s", d, want.Dial)
		}
	}
}
