package pack

import (
	"bytes"
	"encoding/hex"
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
)

// document builds one pack: a fixture with its edits (first occurrence) and what is appended, or literal text, then repetitions, padding and a prefix.
type caseDocument struct {
	Base  string
	Text  *string
	Edits []struct{ From, To string }
	// Append is put at the end; Repeat puts count copies of unit, {i} being the index, in place of marker.
	Append string
	Repeat struct {
		Marker, Unit string
		Count        int
	}
	CRLF      bool   `yaml:"crlf"`
	PadTo     int    `yaml:"pad_to"`
	PrefixHex string `yaml:"prefix_hex"`
}

func (d caseDocument) bytes(t *testing.T, fixtures map[string]string) []byte {
	t.Helper()
	text := fixtures[d.Base]
	if d.Text != nil {
		text = *d.Text
	} else if text == "" {
		t.Fatalf("no fixture %q", d.Base)
	}
	for _, e := range d.Edits {
		if !strings.Contains(text, e.From) {
			t.Fatalf("edit %q finds nothing", e.From)
		}
		text = strings.Replace(text, e.From, e.To, 1)
	}
	text += d.Append
	if d.Repeat.Count > 0 {
		var b strings.Builder
		for i := range d.Repeat.Count {
			b.WriteString(strings.ReplaceAll(d.Repeat.Unit, "{i}", strconv.Itoa(i)))
		}
		text = strings.Replace(text, d.Repeat.Marker, b.String(), 1)
	}
	if d.CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if d.PadTo > len(text) {
		text += "#" + strings.Repeat("x", d.PadTo-len(text)-1)
	}
	prefix, err := hex.DecodeString(d.PrefixHex)
	if err != nil {
		t.Fatal(err)
	}
	return append(prefix, text...)
}

type caseInput struct {
	caseDocument `yaml:",inline"`

	A, B     caseDocument
	Pattern  string
	Patterns []string
	Table    string
	Glob     string
	CPU      *string
	Memory   *string
	Home     string

	Tree []struct {
		Path string
		Link string
		Pack *caseDocument
	}
	Ref     string
	PackDir string `yaml:"pack_dir"`

	Me        int
	FileOwner int    `yaml:"file_owner"`
	DirOwner  int    `yaml:"dir_owner"`
	FileMode  string `yaml:"file_mode"`
	DirMode   string `yaml:"dir_mode"`

	Config     yaml.Node
	Run        caseRun
	Packs      map[string]caseDocument
	Unblocks   []string
	Host       string
	Port       int
	ResolvesTo []string `yaml:"resolves_to"`
}

type caseRun struct {
	Pack, Profile, CPU, Memory, Harness, Project, Home string
	Copy, Safe, Learn                                  bool
	NoMCP                                              bool `yaml:"no_mcp"`
	Unmask                                             []string
	HostPorts                                          []int `yaml:"host_ports"`
	Yolo                                               *bool
}

type caseSetting struct{ Value, Source, Origin, Requested *string }

type caseViolation struct {
	Key                                                             string
	Source, Attempted, Enforced, Constraint, Message, Detail, Fatal *string
}

type caseDecision struct {
	Allowed     *bool
	Rule        string
	Match       *string
	Unblockable *bool
	Step        *int
	Dial        string
}

type caseExpect struct {
	OK             *bool
	Key            *string
	Code           string
	Message        string
	ReasonContains string `yaml:"reason_contains"`
	Pack           map[string]yaml.Node
	Loads          string
	Digest         string
	Same           *bool
	Canonical      *string
	Broad          *bool    `yaml:"broad_in_allow"`
	AsAdminBlock   []string `yaml:"as_admin_block"`
	Each           map[string]yaml.Node
	Matches        []string
	Covers         []string
	No             []string          `yaml:"no"`
	MostSpecific   map[string]string `yaml:"most_specific"`
	BadKeys        []string          `yaml:"bad_keys"`
	Value          *int64
	Settings       map[string]caseSetting
	Violations     *[]caseViolation
	ErrorContains  string              `yaml:"error_contains"`
	ListHas        map[string][]string `yaml:"list_has"`
	ListLacks      map[string][]string `yaml:"list_lacks"`
	caseDecision   `yaml:",inline"`
}

type caseFile struct {
	Format   string
	Fixtures map[string]string
	Cases    []struct {
		ID     string
		Area   string
		Input  caseInput
		Expect caseExpect
		Why    string
	}
}

func TestCases(t *testing.T) {
	data, err := os.ReadFile("testdata/packs-cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runCases(t, data)
}

func runCases(t *testing.T, data []byte) {
	var file caseFile
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 50 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	areas := map[string]func(*testing.T, map[string]string, *caseInput, *caseExpect){
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

func checkError(t *testing.T, err error, want *caseExpect) {
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

func caseLoad(t *testing.T, fixtures map[string]string, in *caseInput, want *caseExpect) {
	data := in.bytes(t, fixtures)
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

func caseDigest(t *testing.T, fixtures map[string]string, in *caseInput, want *caseExpect) {
	a, b := Digest(in.A.bytes(t, fixtures)), Digest(in.B.bytes(t, fixtures))
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

func casePattern(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseMatch(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseCovers(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseGlob(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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
	g, err := ParseGlob(in.Glob)
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	for _, s := range want.Matches {
		if !MatchGlob(g, s) {
			t.Errorf("%s does not match %s", g, s)
		}
	}
	for _, s := range want.No {
		if MatchGlob(g, s) {
			t.Errorf("%s matches %s", g, s)
		}
	}
}

func caseCopy(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseQuantity(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseAdmin(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
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

func caseOwner(t *testing.T, _ map[string]string, in *caseInput, want *caseExpect) {
	err := CheckOwner("pack.yaml", in.Me, Owned{in.FileOwner, fileMode(t, in.FileMode)}, Owned{in.DirOwner, fileMode(t, in.DirMode)})
	if *want.OK != (err == nil) {
		t.Fatalf("error %v", err)
	}
	if err != nil {
		checkError(t, err, want)
	}
}

func caseFind(t *testing.T, fixtures map[string]string, in *caseInput, want *caseExpect) {
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
			err = os.WriteFile(name, f.Pack.bytes(t, fixtures), 0o644)
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

func resolveCase(t *testing.T, fixtures map[string]string, in *caseInput) (*Policy, error) {
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
				return Load(ref, d.bytes(t, fixtures))
			}
			return Finder{FS: os.DirFS(t.TempDir()), Dir: "/packs"}.Find(ref)
		},
	})
}

func caseResolve(t *testing.T, fixtures map[string]string, in *caseInput, want *caseExpect) {
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

func checkDecision(t *testing.T, what string, d Decision, want caseDecision) {
	t.Helper()
	if want.Allowed != nil && d.Allowed != *want.Allowed || want.Rule != "" && d.Rule != want.Rule || want.Match != nil && d.Match != *want.Match ||
		want.Unblockable != nil && d.Unblockable != *want.Unblockable || want.Step != nil && d.Step != *want.Step {
		t.Errorf("%s: %+v does not fit the expectation (allowed, rule, match, unblockable, step)", what, d)
	}
}

func caseDecide(t *testing.T, fixtures map[string]string, in *caseInput, want *caseExpect) {
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
		var w caseDecision
		if err := node.Decode(&w); err != nil {
			t.Fatal(err)
		}
		checkDecision(t, dest, e.Decide(host, port), w)
	}
	if in.Host == "" {
		return
	}
	checkDecision(t, in.Host, e.Decide(in.Host, in.Port), want.caseDecision)
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
