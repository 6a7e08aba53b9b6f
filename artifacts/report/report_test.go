package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/diff"
	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/policy"
)

var update = flag.Bool("update", false, "rewrite the golden page")

// input is a release in which every text that comes from it is s, as far as a manifest can hold it there.
func input(s string) Input {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	m := &artifacts.Manifest{Org: s, Version: s, Sequence: 2, Issued: at, AsOf: at, Expires: at.AddDate(0, 3, 0), Tool: artifacts.Tool{Name: s, Version: s}, Source: artifacts.Source{Commit: s, Dirty: true, Digest: s},
		Previous: s, Egress: map[string]artifacts.Egress{}, Presets: map[string][]string{s: {s, "b.example"}}}
	for i, os := range policy.OSes {
		path := "targets/ring/" + os
		m.Files = append(m.Files, artifacts.File{Path: path, SHA256: fmt.Sprintf("%064d", i/2), Size: 10})
		for _, id := range []string{"ring", "ring+a", "ring+b"} {
			t := artifacts.Target{ID: id, Ring: "ring", Profile: s, OS: os, Files: []artifacts.TargetFile{{Path: path, Harness: s, Dest: s, Owner: s, Mode: "0644"}}}
			if _, unit, ok := strings.Cut(id, "+"); ok {
				t.Units = []string{unit + s}
			}
			m.Targets = append(m.Targets, t)
			m.Warnings = append(m.Warnings, artifacts.Warning{Code: "HALO1701", Target: id, Harness: "h", OS: os, Field: s, Message: "h: " + s}, artifacts.Warning{Code: "HALO1702", Target: id, Message: s})
		}
	}
	slices.SortStableFunc(m.Targets, func(a, b artifacts.Target) int { return strings.Compare(a.ID, b.ID) })
	m.Egress["ring"] = artifacts.Egress{Default: "deny", Allowed: []string{"a.example", s}, Denied: []string{}}
	m.Egress["ring+a"] = artifacts.Egress{Default: "deny", Allowed: []string{"a.example"}, Denied: []string{s}}
	m.Egress["ring+b"] = m.Egress["ring"]
	m.Exceptions = []artifacts.Exception{{Name: s, Scope: s, Field: s, Witness: s, Owner: s, Reason: s, Ticket: s, Expires: s}}
	m.Sandboxes = []artifacts.Sandbox{{Name: s, Target: "ring", Agent: s, Path: m.Files[0].Path}, {Name: s, Target: "ring", Path: m.Files[1].Path, Pack: s, PackDigest: s}}
	m.Packs = []artifacts.Pack{{Name: s, Digest: s, Path: s}}
	matrix := coverage.Matrix{Enforced: 2, Unverified: 1, Rows: []coverage.Row{{Harness: s, Version: s}}, Sandboxes: []coverage.Sandbox{{Sandbox: s, File: s, Agent: s, Grade: "none", Limits: []string{s}, Evidence: s}}}
	for i, os := range policy.OSes {
		matrix.Rows[0].Cells = append(matrix.Rows[0].Cells, coverage.Cell{Concept: "egress", OS: os, Grade: "enforced", Verified: i > 0, How: s, Limit: s, Bypass: []string{s, s}, Evidence: s})
	}
	data, _ := json.Marshal(map[string]any{"rings": []ring{{"ring", matrix}, {"other" + s, matrix}}})
	changes := &diff.Report{Verdict: diff.Looser, Summary: s, Targets: diff.Counts{Looser: 1}, Notes: []string{s},
		Groups: []diff.Group{{Verdict: diff.Looser, Targets: []string{"ring"}, Looser: []diff.Difference{{Field: s, Witness: s}}}}}
	return Input{Manifest: m, Digest: s, Coverage: data, Halo: s, Title: func(string) string { return s }, Signatures: []artifacts.SignedBy{{File: s, Key: s}},
		Previous: &Previous{Manifest: m, Digest: s + "x", Diff: changes}}
}

func render(t testing.TB, in Input) string {
	t.Helper()
	data, err := Page(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// body is a page without its style and script, which have their own files.
func body(page string) string {
	for _, part := range []string{style, script} {
		page = strings.Replace(page, part, "", 1)
		page = strings.Replace(page, integrity(part), "sha256-", 1)
	}
	return page
}

func TestGolden(t *testing.T) {
	const golden = "testdata/page.html"
	got := body(render(t, input("text")))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("the page is not %s (%v); look at it and run go test ./artifacts/report -update", golden, err)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	first, second := render(t, input("text")), render(t, input("text"))
	if first != second {
		t.Error("two pages of one release differ")
	}
}

// TestTrust holds the page to saying verified of nothing that was not.
func TestTrust(t *testing.T) {
	in := input("text")
	page := body(render(t, in))
	if strings.Contains(page, "Signature verified") || strings.Contains(page, "verified at") || !strings.Contains(page, "Signature not checked") || !strings.Contains(page, "Its signature was not checked") {
		t.Error("an unverified release is not called one")
	}
	// The manifest of an unverified release may name anything.
	in.Previous.Named = true
	if page = body(render(t, in)); strings.Contains(page, "The verified manifest") || !strings.Contains(page, "Its signature was not checked") {
		t.Error("an unverified manifest vouches for the release before")
	}
	in.Verified = &Verified{Keys: []string{strings.Repeat("ab", 32)}, At: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	page = body(render(t, in))
	for _, want := range []string{"<strong>Signature verified</strong> at 2026-12-01T00:00:00Z, by key <code>abababababab</code>", "The verified manifest names it", strings.Repeat("ab", 32)} {
		if !strings.Contains(page, want) {
			t.Errorf("a verified release lacks %q", want)
		}
	}
	if strings.Contains(page, "not checked") {
		t.Error("a verified release is called unchecked")
	}
	in.Previous.Named = false
	if page = body(render(t, in)); !strings.Contains(page, "Its signature was not checked") {
		t.Error("the release before is vouched for by nobody and not called unchecked")
	}
}

// TestStandsAlone holds the page to its promise and the policy to what is on it.
func TestStandsAlone(t *testing.T) {
	page := render(t, input("text"))
	for _, part := range []struct{ before, text, after string }{{"<style>", style, "</style>"}, {"<script>", script, "</script>"}} {
		if strings.Count(page, part.before+part.text+part.after) != 1 || strings.Contains(part.text, "</") || strings.Contains(part.text, "\r") {
			t.Errorf("%s is not on the page as it is", part.before)
		}
	}
	for _, never := range []string{"http://", "https://", "url(", "@import", " src=", " style="} {
		if strings.Contains(body(page)+style, never) {
			t.Errorf("the page has %q", never)
		}
	}
	if !strings.HasPrefix(page, Mark) {
		t.Error("the page does not begin with its mark")
	}
}

// TestSame holds the page to telling once of what is the same.
func TestSame(t *testing.T) {
	in := input("text")
	m := in.Manifest
	few := len(render(t, in))
	targets := m.Targets
	m.Targets = nil
	for i := range 3000 {
		for _, x := range targets[:3] {
			x.ID, x.Units = fmt.Sprintf("ring+unit%04d", i), []string{fmt.Sprintf("unit%04d", i)}
			m.Targets = append(m.Targets, x)
		}
		m.Egress[m.Targets[3*i].ID] = m.Egress["ring"]
	}
	page := render(t, in)
	if n := strings.Count(page, "<details id=f"); n != 1 {
		t.Errorf("one set of files is listed %d times", n)
	}
	if n := strings.Count(page, "<article"); n != 1 {
		t.Errorf("one set of host rules is listed %d times", n)
	}
	// A row of the list of targets, and the name where the files, the hosts and each gap are told of.
	if got, most := len(page), few+3000*450; got > most {
		t.Errorf("3000 equal targets make a page of %d bytes, more than %d", got, most)
	}
}

func TestNoCoverage(t *testing.T) {
	in := input("text")
	in.Coverage = nil
	if !strings.Contains(render(t, in), "This release has no <code>coverage.json</code>") {
		t.Error("that there is no coverage is not said")
	}
	in.Coverage = []byte("[")
	if _, err := Page(in); err == nil {
		t.Error("broken coverage makes a page")
	}
}

// FuzzPage holds every text of a release to being text: whatever it is, the page has the same tags.
func FuzzPage(f *testing.F) {
	for _, s := range []string{"</script><script>1</script>", `"'><img src=x onerror=1>`, "\u202e\u2066", "<!--", "]]>", "{}", "\x00", "a\xff", "&lt;", "text", "a.example"} {
		f.Add(s)
	}
	tags := func(page string) (n, quotes int) { return strings.Count(page, "<"), strings.Count(page, `"`) }
	n, quotes := tags(body(render(f, input("x"))))
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || s == "a.example" || s == "x" || !utf8.ValidString(s) {
			t.Skip()
		}
		if gotN, gotQuotes := tags(body(render(t, input(s)))); gotN != n || gotQuotes != quotes {
			t.Errorf("%q: %d tags and %d quotes, not %d and %d", s, gotN, gotQuotes, n, quotes)
		}
	})
}

// FuzzEscape holds escaped text to having nothing that HTML reads and nothing that people cannot see.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"plain", `<a href="x">&'`, "\u202e\u200b\ufeff\u00a0", "\xff\xc0\x80", "a\nb\tc", "\x00\x1b[0m\x7f", "é漢字", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := escape(nil, s)
		if bytes.ContainsAny(out, `<>"'`) || !utf8.Valid(out) {
			t.Errorf("%q becomes %q", s, out)
		}
		for _, r := range string(out) {
			if !unicode.IsPrint(r) {
				t.Errorf("%q becomes %q, with %U", s, out, r)
			}
		}
		if plain := !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune("<>&\"'\ufffd", r) }); plain && string(out) != s {
			t.Errorf("%q needs no escape and becomes %q", s, out)
		}
	})
}
