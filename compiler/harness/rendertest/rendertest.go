// Package rendertest has what the tests of every harness room need: policies made from real documents, goldens, the checks of a capability table, a universe of
// hosts, and the published schemas where they are at hand. Only tests import it.
package rendertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/jsondoc"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

var update = flag.Bool("update", false, "write the golden files")

// Worked is the policy that the vendors' files were tried with: a sandbox, a writable root, three protected paths, an allow list and two denied hosts.
const Worked = `
sandbox:
  mode: workspace-write
  writableRoots: [/opt/build-cache]
  protectedPaths: ["~/.ssh", "~/.aws", ".env*"]
egress:
  allowedDomains: [ai.acme.example, otel.internal.acme.example]
  presets: [vcs]
  deniedDomains: [pastebin.com, transfer.sh]
`

// Everything is a policy that writes every section.
const Everything = `
models: {default: sonnet, allowed: [sonnet, haiku], enforce: true}
permissions:
  mode: default
  allow: ["Bash(git status)"]
  ask: ["Bash(git push:*)"]
  deny: ["Bash(curl:*)", "WebFetch(domain:pastebin.com)", "Read(~/.ssh/**)", WebSearch]
  disableBypass: true
  sandboxRequired: true
sandbox:
  mode: workspace-write
  writableRoots: [/opt/build-cache, ~/.cache/acme]
  protectedPaths: [/tmp/secrets, "~/.ssh", "~/*.pem", ".env*", "config/*.key"]
egress:
  allowedDomains: [ai.acme.example, "*.acme.example", a.blocked.example]
  deniedDomains: [blocked.example, "*.evil.example"]
mcp:
  managedOnly: true
  servers:
    - {name: docs, url: "https://mcp.acme.example/docs", headers: {X-Team: platform, Authorization: "${DOCS_TOKEN}"}}
    - {name: local_db, command: [/usr/local/bin/mcp-db, --read-only]}
  denied: [shady]
hooks:
  managedOnly: true
  items:
    - {event: SessionStart, command: /usr/local/bin/acme-start}
    - {event: PreToolUse, matcher: Bash, command: /usr/local/bin/acme-guard}
telemetry: {enabled: true, otlpEndpoint: "https://otel.internal.acme.example:4318", protocol: http/protobuf, logPrompts: false, attributes: {team: platform}}
instructions: |
  Never commit to main.
env: {ACME_REGION: eu}
`

// Policy returns the effective policy of a profile body with one pin. It fails the test when the documents have errors.
func Policy(t testing.TB, id, version, body string) *effective.Policy {
	t.Helper()
	body = strings.TrimPrefix(body, "{}")
	doc := "apiVersion: halos.dev/v1\nkind: Profile\nname: base\n" + body
	if !strings.Contains(body, "harnesses:") {
		doc += "\nharnesses:\n  " + id + ": " + version + "\n"
	}
	fsys := fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n")}, "profiles/base.yaml": {Data: []byte(doc)}}
	var diags diag.List
	repo := policy.Load(t.Context(), fsys, policy.Options{}, &diags)
	if diags.Errors() > 0 {
		for _, d := range diags.Sorted() {
			t.Errorf("%s: %s", d.Path, d.Message)
		}
		t.Fatalf("policy does not load:\n%s", doc)
	}
	p := effective.NewResolver(repo).Profile("base")
	if p == nil {
		t.Fatal("no profile base")
	}
	return p
}

// Target returns a target for a profile body.
func Target(t testing.TB, id, version, goos, body string) harness.Target {
	t.Helper()
	v, ok := harness.ParseVersion(version)
	if !ok {
		t.Fatalf("version %q", version)
	}
	return harness.Target{Policy: Policy(t, id, version, body), OS: goos, Version: v, Org: "acme"}
}

// Print writes files and gaps the way goldens hold them.
func Print(files []harness.File, gaps []harness.Gap) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "==> %s %s %04o\n%s", f.Dest, f.Owner, f.Mode, f.Content)
	}
	b.WriteString("==> gaps\n")
	for _, g := range gaps {
		fmt.Fprintf(&b, "%s %s [%s] %s: %s", g.Concept, g.Field, g.Entry, g.Grade, g.Reason)
		if g.Remedy != "" {
			fmt.Fprintf(&b, " | remedy: %s", g.Remedy)
		}
		if len(g.Bypass) > 0 {
			fmt.Fprintf(&b, " | bypass: %s", strings.Join(g.Bypass, ", "))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Golden compares with testdata/NAME.golden.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", file, got)
	}
}

// Renders renders a body for every system, compares with goldens, and checks what every rendering must hold: the strict reader accepts it, twice gives the same
// bytes, every file lies in a managed directory, every gap is whole.
func Renders(t *testing.T, h *harness.Harness, name, version, body string) {
	for _, goos := range policy.OSes {
		t.Run(name+"-"+goos, func(t *testing.T) {
			tg := Target(t, h.ID, version, goos, body)
			files, gaps := h.Render(tg)
			Golden(t, name+"-"+goos, Print(files, gaps))
			Sound(t, h, tg)
		})
	}
}

// Sound checks what every rendering must hold.
func Sound(t *testing.T, h *harness.Harness, tg harness.Target) {
	t.Helper()
	files, gaps := h.Render(tg)
	again, gapsAgain := h.Render(tg)
	if !bytes.Equal(Print(files, gaps), Print(again, gapsAgain)) {
		t.Error("rendered twice, got different bytes")
	}
	for _, f := range h.Check(tg, files) {
		t.Errorf("finding %s%s %s", f.Dest, f.Pointer, f.Message)
	}
	if !slices.IsSortedFunc(files, func(a, b harness.File) int { return cmp.Compare(a.Dest, b.Dest) }) {
		t.Error("files are not sorted")
	}
	for _, f := range files {
		if !slices.ContainsFunc(h.Dirs[tg.OS], func(d string) bool {
			return strings.HasPrefix(f.Dest, d+"/") || strings.HasPrefix(f.Dest, d+`\`)
		}) {
			t.Errorf("%s is in no managed directory", f.Dest)
		}
		if !bytes.HasSuffix(f.Content, []byte("\n")) {
			t.Errorf("%s has no final newline", f.Dest)
		}
	}
	for _, g := range gaps {
		if g.Harness != h.ID || g.OS != tg.OS || g.Concept == "" || g.Field == "" || g.Reason == "" {
			t.Errorf("gap is not whole: %+v", g)
		}
		if strings.HasSuffix(g.Reason, ".") || strings.Contains(g.Reason, "\n") {
			t.Errorf("reason is not one sentence without a final period: %q", g.Reason)
		}
	}
}

// Complete checks a capability table: a row for every concept, system and version, a limit where nothing is held, evidence everywhere.
func Complete(t *testing.T, h *harness.Harness) {
	for _, row := range h.Capabilities {
		for _, s := range []string{row.Since, row.Until} {
			if s == "" {
				continue
			}
			if _, ok := harness.ParseVersion(s); !ok {
				t.Errorf("%s: version %q", row.Concept, s)
			}
		}
		if row.Grade == harness.None && row.Limit == "" {
			t.Errorf("%s %v: none without a reason", row.Concept, row.OS)
		}
		if row.Grade < harness.Enforced && row.Limit == "" {
			t.Errorf("%s %v: %s without a limit", row.Concept, row.OS, row.Grade)
		}
		if row.Grade > harness.None && row.How == "" {
			t.Errorf("%s %v: nothing says how it is held", row.Concept, row.OS)
		}
		if row.Evidence == "" {
			t.Errorf("%s %v: no evidence", row.Concept, row.OS)
		}
		if row.Verified && !strings.HasPrefix(row.Evidence, "observed") {
			t.Errorf("%s %v: verified, and the evidence is %q", row.Concept, row.OS, row.Evidence)
		}
		if row.Verified && slices.Contains(row.OS, "windows") {
			t.Errorf("%s: verified on windows, where nothing was run", row.Concept)
		}
		if !slices.Contains(policy.Concepts, string(row.Concept)) {
			t.Errorf("%s is no concept", row.Concept)
		}
	}
	for _, c := range policy.Concepts {
		for _, goos := range policy.OSes {
			for _, v := range []harness.Version{h.Oldest, h.Known, {Major: 0, Minor: 0, Patch: 1}, {Major: 99}} {
				if got := h.Capability(harness.Concept(c), goos, v); got.Evidence == "" {
					t.Errorf("no row for %s on %s at %s", c, goos, v)
				}
			}
		}
	}
	if h.Known.Less(h.Oldest) {
		t.Error("known is older than oldest")
	}
}

// Edit is one change of a rendered file that the strict reader must notice: its name, the text to replace, the new text, a part of the finding, and how the name
// of the file ends when the text stands in several.
type Edit [5]string

// Edits applies each change and wants a finding.
func Edits(t *testing.T, h *harness.Harness, tg harness.Target, edits []Edit) {
	files, _ := h.Render(tg)
	for _, e := range edits {
		name, before, after, want, in := e[0], e[1], e[2], e[3], e[4]
		t.Run(name, func(t *testing.T) {
			changed := slices.Clone(files)
			i := slices.IndexFunc(changed, func(f harness.File) bool {
				return strings.HasSuffix(f.Dest, in) && bytes.Contains(f.Content, []byte(before))
			})
			if i < 0 {
				t.Fatalf("no file holds %q:\n%s", before, Print(files, nil))
			}
			changed[i].Content = bytes.Replace(changed[i].Content, []byte(before), []byte(after), 1)
			found := h.Check(tg, changed)
			if !slices.ContainsFunc(found, func(f harness.Finding) bool { return strings.Contains(f.Pointer+" "+f.Message, want) }) {
				t.Errorf("want a finding with %q, got %v", want, found)
			}
		})
	}
	t.Run("a file is missing", func(t *testing.T) {
		for i := range files {
			if len(h.Check(tg, slices.Delete(slices.Clone(files), i, i+1))) == 0 {
				t.Errorf("%s is missing and nothing is found", files[i].Dest)
			}
		}
	})
}

// Hosts is a universe of host names around the patterns of a policy: each name, names below it, above it and beside it.
func Hosts(p *egress.Policy) []host.Name {
	out := []host.Name{"unlisted.example", "10.0.0.1", "localhost"}
	for _, l := range [][]egress.Entry{p.Allowed(), p.Denied()} {
		for _, e := range l {
			s := e.Pattern.Suffix()
			_, parent, _ := strings.Cut(s, ".")
			for _, n := range []string{s, "a." + s, "b.a." + s, "not" + s, s + ".other.example", "x-" + s, parent, "sibling." + parent} {
				if n != "" {
					out = append(out, host.Name(n))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Named reports whether a gap of a concept names the entry that decides a host.
func Named(gaps []harness.Gap, c harness.Concept, d egress.Decision) bool {
	return slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == c && g.Entry == d.Entry })
}

// Policies are egress sections that differ in default, lists and overlap.
var Policies = []string{
	Worked,
	"egress: {allowedDomains: [a.example, '*.a.example'], deniedDomains: [x.a.example, '*.y.a.example']}",
	"egress: {allowedDomains: ['*.a.example'], deniedDomains: [a.example]}",
	"egress: {allowedDomains: [sub.bad.example, good.example], deniedDomains: [bad.example]}",
	"egress: {allowedDomains: ['*.good.example'], deniedDomains: ['*.good.example']}",
	"egress: {deniedDomains: [bad.example, '*.worse.example']}",
	"egress: {deniedDomains: [bad.example, '*.bad.example']}",
	"egress: {default: deny}",
	"egress: {default: deny, deniedDomains: [bad.example]}",
	"egress: {default: allow}",
	"egress: {allowedDomains: [localhost, a.example]}",
	"{}",
}

// Schema returns a published schema that is kept beside the repository, or skips the test with a loud line.
func Schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		t.Fatal("no go.mod above the test")
	}
	file := filepath.Join(dir, "..", "shared", "schemas", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("SKIPPED, NOT CHECKED: the published schema %s is not at hand", name)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Valid checks bytes against a schema.
func Valid(t *testing.T, s *jsonschema.Schema, content []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, content)
	}
}

// Tampered changes every value of every rendered JSON file, one at a time, takes every member and entry out, and adds an entry to every list: the strict reader must
// notice each. Places that free reports may change unnoticed.
func Tampered(t *testing.T, h *harness.Harness, tg harness.Target, free func(dest, pointer string) bool) {
	t.Helper()
	files, _ := h.Render(tg)
	for i, f := range files {
		if !strings.HasSuffix(f.Dest, ".json") {
			continue
		}
		doc, err := jsondoc.Parse(f.Content, nil)
		if err != nil {
			t.Fatal(err)
		}
		changed := slices.Clone(files)
		try := func(what, pointer string) {
			t.Helper()
			changed[i].Content = doc.Bytes()
			if len(h.Check(tg, changed)) == 0 && !free(f.Dest, pointer) {
				t.Errorf("%s on %s: %s %s%s is not noticed", tg.Version, tg.OS, what, f.Dest, pointer)
			}
		}
		tamper(doc, "", func(v any) { doc, _ = v.(jsondoc.Object) }, try)
	}
}

// tamper makes each change at and below a value, calls try, and takes the change back. put writes the value where it stands.
func tamper(v any, pointer string, put func(any), try func(what, pointer string)) {
	with := func(what string, changed any) {
		put(changed)
		try(what, pointer)
		put(v)
	}
	switch v := v.(type) {
	case jsondoc.Object:
		for i, m := range v {
			at := jsondoc.Pointer(pointer, m.Key)
			put(slices.Delete(slices.Clone(v), i, i+1))
			try("removing", at)
			put(v)
			tamper(m.Value, at, func(x any) { v[i].Value = x }, try)
		}
		with("a new key in", append(slices.Clone(v), jsondoc.Member{Key: "haloTampered", Value: "x"}))
	case []any:
		for i, x := range v {
			at := pointer + "/" + strconv.Itoa(i)
			put(slices.Delete(slices.Clone(v), i, i+1))
			try("removing", at)
			put(v)
			tamper(x, at, func(x any) { v[i] = x }, try)
		}
		with("a text added to", append(slices.Clone(v), "tampered.example"))
		with("an object added to", append(slices.Clone(v), jsondoc.Object{{Key: "serverName", Value: "tampered"}}))
	case bool:
		with("negating", !v)
		with("a text for", strconv.FormatBool(v))
	case string:
		with("changing", v+"x")
		with("emptying", "")
	default:
		with("changing", json.Number("7777"))
	}
}
