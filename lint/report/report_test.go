package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	_ "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif" // for the published schema in its source
	"github.com/santhosh-tekuri/jsonschema/v6"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint"
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// run lints a repo.
func run(t *testing.T, fsys fstest.MapFS) *Report {
	t.Helper()
	var diags diag.List
	var texts lint.Texts
	c := compiler.Compile(t.Context(), compiler.Input{FS: fsys, Now: now, Inspect: texts.Inspect}, &diags)
	lint.Run(c, fsys, &texts, &diags)
	return &Report{Diagnostics: lint.Acknowledge(c.Repo, diags.Sorted(), now, true), Files: c.Repo.Files, FS: fsys, Version: "0.1.0"}
}

// findings is the repo that the documentation shows.
func findings(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	root := filepath.Join("..", "..", "testdata", "lint-findings")
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, relErr := filepath.Rel(root, name)
		out[filepath.ToSlash(rel)] = &fstest.MapFile{Data: data}
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	bad     = &diag.Code{ID: "HALO9001", Severity: diag.Error, Title: "bad: 100%, or\nworse", Text: "It is bad.", Before: "a: b", After: "a: c"}
	doubted = &diag.Code{ID: "HALO9002", Severity: diag.Warning, Title: "doubted", Text: "It may be bad."}
	noted   = &diag.Code{ID: "HALO9003", Severity: diag.Info, Title: "noted", Text: "It is so."}
)

// odd is a report with everything a printer can be given: no place, related places, control characters, names with blanks, a file that is gone.
func odd() *Report {
	place := diag.NewPos(0, 1, 3)
	return &Report{
		Files: source.Files{{Name: "a b,c:d%\u202e.yaml"}}, Version: "0.1.0", Prefix: "dir with blank/",
		Diagnostics: []diag.Diagnostic{
			{Code: bad, File: ".", Message: "nothing is here"},
			{Code: noted, Severity: diag.Info, File: "x\x01.md", Message: "a\x00b\r\nc \x1b[31m ]]> & <b> \"q\" 100%"},
			{Code: bad, Pos: place, Path: "a[1].b", Document: "Profile/base", Message: "50% of \"x\"", Hint: "first\nsecond", Related: []diag.Related{{Pos: place, Message: "here"}}},
			{Code: doubted, Severity: diag.Warning, Pos: diag.NewPos(0, 1<<30, 1<<30), Message: "far away"},
		},
	}
}

// many is a report with n findings, every hundredth of them an error.
func many(n int) *Report {
	r := &Report{Files: source.Files{{Name: "a.yaml"}, {Name: "b.yaml"}}}
	for i := range n {
		d := diag.New(doubted, diag.NewPos(i*2/n, i+1, 1), "p", "finding %d", i)
		if i%100 == 99 {
			d = diag.New(bad, diag.NewPos(i*2/n, i+1, 1), "p", "finding %d", i)
		}
		r.Diagnostics = append(r.Diagnostics, d)
	}
	return r
}

func text(t *testing.T, print func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sarifSchema is the schema that OASIS published with SARIF 2.1.0 errata 01, from the source of a library that carries it.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "pkg", "report", "v210", "sarif", "schema.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	value := file.Scope.Lookup("schema").Decl.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value
	if value, err = strconv.Unquote(value); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// few keeps the first results of a log, for a validator that is slow.
func few(t *testing.T, log string) string {
	t.Helper()
	head, rest, ok := strings.Cut(log, `"results": [`)
	first, _, ok2 := strings.Cut(rest, "\n        },\n")
	if !ok || !ok2 {
		t.Fatal("the log has no results")
	}
	return head + `"results": [` + first + "}]}]}"
}

// TestSARIFSchema holds SARIF output against the published schema, and that the schema refuses what is not SARIF.
func TestSARIFSchema(t *testing.T) {
	schema := sarifSchema(t)
	valid := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	outside := odd()
	outside.Prefix = "/srv/policy/"
	full := text(t, run(t, findings(t)).SARIF)
	for name, out := range map[string]string{"findings": full, "none": text(t, (&Report{}).SARIF), "odd": text(t, odd().SARIF), "outside": text(t, outside.SARIF), "many": few(t, text(t, many(results+2).SARIF))} {
		if err := valid(out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, broken := range [][2]string{
		{`"version": "2.1.0"`, `"version": "2.2"`}, {`"level": "error"`, `"level": "fatal"`}, {`"startLine": `, `"startLine": -`}, {`"ruleIndex": `, `"ruleNumber": `}, {`"columnKind": "unicodeCodePoints"`, `"columnKind": "bytes"`},
		{`"executionSuccessful": true`, `"exitCode": 1`},
	} {
		if out := strings.Replace(full, broken[0], broken[1], 1); out == full || valid(out) == nil {
			t.Errorf("%s passes for SARIF", broken[1])
		}
	}
}

type sarifResults struct {
	Runs []struct {
		Invocations []struct {
			Notifications []struct {
				Message struct{ Text string }
			} `json:"toolExecutionNotifications"`
		}
		Results []struct {
			RuleID       string            `json:"ruleId"`
			Level        string            `json:"level"`
			Fingerprints map[string]string `json:"partialFingerprints"`
			Message      struct{ Text string }
		}
	}
}

func logOf(t *testing.T, r *Report) sarifResults {
	t.Helper()
	var out sarifResults
	if err := json.Unmarshal([]byte(text(t, r.SARIF)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFingerprints holds that a finding is known again after lines, documents and list entries come before it, and that no two findings share a fingerprint.
func TestFingerprints(t *testing.T) {
	prints := func(fsys fstest.MapFS) (out []string) {
		for _, r := range logOf(t, run(t, fsys)).Runs[0].Results {
			out = append(out, r.RuleID+" "+r.Fingerprints["haloFinding/v1"])
		}
		slices.Sort(out)
		return out
	}
	repo := findings(t)
	before := prints(repo)
	if len(before) < 20 || len(slices.Compact(slices.Clone(before))) != len(before) {
		t.Fatalf("few fingerprints, or two that are the same: %q", before)
	}
	edit := func(file, old, new string) {
		t.Helper()
		data := string(repo[file].Data)
		if !strings.Contains(data, old) {
			t.Fatalf("%s has no %q", file, old)
		}
		repo[file] = &fstest.MapFile{Data: []byte(strings.Replace(data, old, new, 1))}
	}
	edit("profiles/base.yaml", "apiVersion", "# A new comment,\n\n# and another.\napiVersion")
	edit("profiles/base.yaml", "[/opt/build-cache, /etc", "[/opt/build-cache, /opt/artifacts, /etc")
	edit("profiles/base.yaml", `"*.github.io"`, `docs.acme.example, "*.github.io"`)
	edit("rings.yaml", "apiVersion", "apiVersion: halos.dev/v1\nkind: PolicyTest\nname: more\ntests: [{host: github.com, expect: deny}]\n---\napiVersion")
	if after := prints(repo); !slices.Equal(before, after) {
		t.Errorf("fingerprints changed:\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	edit("profiles/base.yaml", "webhook.site", "file.io")
	if after := prints(repo); slices.Equal(before, after) {
		t.Error("another finding has the fingerprint of the one before")
	}
}

// TestCaps holds that a hundred thousand findings give bounded output with exact counts, and that no error is left out for a warning.
func TestCaps(t *testing.T) {
	const n, wrong = 100_000, 1000
	r := many(n)

	out := text(t, func(w io.Writer) error { return r.Text(w, Style{}) })
	if strings.Count(out, "error[") != wrong || strings.Count(out, "\n") != printed+1 || !strings.HasSuffix(out, "\n... and 99000 more findings\n") {
		t.Errorf("text: %d errors, %d lines, %q", strings.Count(out, "error["), strings.Count(out, "\n"), out[len(out)-60:])
	}
	if got := r.Summary(); got != "1000 errors, 99000 warnings in 2 files" {
		t.Error(got)
	}
	if got := text(t, func(w io.Writer) error { return many(printed+1).Text(w, Style{}) }); !strings.HasSuffix(got, "\n... and 1 more finding\n") {
		t.Error(got[len(got)-60:])
	}

	var doc Document
	if err := json.Unmarshal([]byte(text(t, r.JSON)), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Summary != (Summary{Errors: wrong, Warnings: n - wrong, Files: 2, Omitted: n - listed}) || len(doc.Diagnostics) != listed {
		t.Errorf("json: %+v, %d", doc.Summary, len(doc.Diagnostics))
	}
	if !slices.IsSortedFunc(doc.Diagnostics, func(a, b Finding) int { return strings.Compare(a.File, b.File) }) {
		t.Error("json: not in the order of the files")
	}

	log := logOf(t, r).Runs[0]
	errs := 0
	for _, res := range log.Results {
		if res.Level == "error" {
			errs++
		}
	}
	if len(log.Results) != results || errs != wrong || log.Invocations[0].Notifications[0].Message.Text != "75000 more findings not listed" {
		t.Errorf("sarif: %d results, %d errors, %v", len(log.Results), errs, log.Invocations)
	}

	annotations := strings.Split(strings.TrimSuffix(text(t, r.GitHub), "\n"), "\n")
	if len(annotations) != 2*shown || !strings.HasPrefix(annotations[9], "::error title=halo::991 more findings") || !strings.HasPrefix(annotations[19], "::warning title=halo::98991 more findings") {
		t.Errorf("github: %d, %q", len(annotations), annotations)
	}
	for i, a := range annotations {
		if strings.HasPrefix(a, "::error ") != (i < shown) {
			t.Errorf("github: annotation %d is %q", i, a)
		}
	}

	junit := text(t, r.JUnit)
	if !strings.Contains(junit, `<testsuite name="halo" tests="2" failures="2">`) || !strings.Contains(junit, `message="500 findings"`) || !strings.Contains(junit, "... and 400 more findings") {
		t.Errorf("junit: %.400s", junit)
	}
}

// TestGitHub holds the escapes of workflow commands: one line a finding, and nothing in it that ends a property or a command.
func TestGitHub(t *testing.T) {
	want := []string{
		`::error file=dir with blank,title=HALO9001 bad%3A 100%25%2C or\u000aworse::nothing is here`,
		`::error file=dir with blank/a b%2Cc%3Ad%25\u202e.yaml,line=1,endLine=1,col=3,endColumn=4,title=HALO9001 bad%3A 100%25%2C or\u000aworse::a[1].b: 50%25 of "x"%0Ahint: first%0Asecond`,
		`::warning file=dir with blank/a b%2Cc%3Ad%25\u202e.yaml,line=268435455,endLine=268435455,col=1048575,endColumn=1048576,title=HALO9002 doubted::far away`,
		`::notice file=dir with blank/x\u0001.md,title=HALO9003 noted::a\u0000b\u000d%0Ac \u001b[31m ]]> & <b> "q" 100%25`,
	}
	if got := strings.Split(strings.TrimSuffix(text(t, odd().GitHub), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := text(t, (&Report{}).GitHub); got != "" {
		t.Errorf("no findings: %q", got)
	}
}

// TestJUnit holds that JUnit output is well-formed whatever it says, and that its numbers are those of its cases.
func TestJUnit(t *testing.T) {
	for name, r := range map[string]*Report{"odd": odd(), "none": {}, "findings": run(t, findings(t)), "many": many(300)} {
		for _, strict := range []bool{false, true} {
			r.Strict = strict
			var doc struct {
				Tests    int `xml:"tests,attr"`
				Failures int `xml:"failures,attr"`
				Suite    struct {
					Cases []struct {
						Name    string `xml:"name,attr"`
						Failure *struct {
							Text string `xml:",chardata"`
						} `xml:"failure"`
					} `xml:"testcase"`
				} `xml:"testsuite"`
			}
			out := text(t, r.JUnit)
			if err := xml.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			failed, named := 0, 0
			for _, c := range doc.Suite.Cases {
				if c.Failure != nil {
					failed++
					named += strings.Count(c.Failure.Text, "\n")
				}
			}
			errs, warnings := r.Counts()
			want := errs
			if strict {
				want += warnings
			}
			if doc.Tests != len(doc.Suite.Cases) || doc.Failures != failed || name != "many" && named != want {
				t.Errorf("%s, strict %v: %d tests, %d failures, %d cases, %d failed, %d named, want %d", name, strict, doc.Tests, doc.Failures, len(doc.Suite.Cases), failed, named, want)
			}
		}
	}
}

// TestCaret holds the line under a source line, for lines that are long, wide or hold what a terminal must not see.
func TestCaret(t *testing.T) {
	long := strings.Repeat("x", 500) + " 'here' " + strings.Repeat("y", 500)
	for _, row := range []struct{ line, want string }{
		{"a: b", "    a: b\n       ^\n"},
		{"a:\tb", "    a:\tb\n      \t^\n"},
		{"\"日本\": \x1b[31m", "    \"日本\": \\u001b[31m\n    " + strings.Repeat(" ", 8) + "^^^^^^^^^^\n"},
	} {
		col := strings.LastIndexAny(row.line, "b\x1b")
		r := &Report{Files: source.Files{{Name: "x", Digest: digest(row.line)}}, FS: fstest.MapFS{"x": {Data: []byte(row.line)}}}
		at := len([]rune(row.line[:col])) + 1
		r.Diagnostics = []diag.Diagnostic{{Code: bad, Pos: diag.NewPos(0, 1, at), Message: "m"}}
		_, got, _ := strings.Cut(text(t, func(w io.Writer) error { return r.Text(w, Style{}) }), "\n")
		if got != row.want {
			t.Errorf("%q: got\n%q want\n%q", row.line, got, row.want)
		}
	}
	r := &Report{Files: source.Files{{Name: "x", Digest: digest(long)}}, FS: fstest.MapFS{"x": {Data: []byte(long)}}}
	r.Diagnostics = []diag.Diagnostic{{Code: bad, Pos: diag.NewPos(0, 1, 502), Message: "m"}}
	lines := strings.Split(text(t, func(w io.Writer) error { return r.Text(w, Style{}) }), "\n")
	if len(lines[1]) != window+4 || strings.Index(lines[2], "^^^^^^") != strings.Index(lines[1], "'here'") || strings.Count(lines[2], "^") != 6 {
		t.Errorf("a long line: %q", lines)
	}
}

// TestOrder holds that output does not depend on the order in which findings were made.
func TestOrder(t *testing.T) {
	fsys := findings(t)
	want := run(t, fsys)
	for i := range 4 {
		var diags diag.List
		for j := range want.Diagnostics {
			diags.Add(want.Diagnostics[(j*7+i)%len(want.Diagnostics)], want.Diagnostics[len(want.Diagnostics)-1-j])
		}
		got := *want
		got.Diagnostics = diags.Sorted()
		for _, print := range []func(*Report, io.Writer) error{(*Report).JSON, (*Report).SARIF, (*Report).GitHub, (*Report).JUnit} {
			a, b := text(t, func(w io.Writer) error { return print(want, w) }), text(t, func(w io.Writer) error { return print(&got, w) })
			if a != b {
				t.Fatalf("%.300s\n\nis not\n\n%.300s", a, b)
			}
		}
	}
}

func digest(s string) [sha256.Size]byte { return sha256.Sum256([]byte(s)) }
