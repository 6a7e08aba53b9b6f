// Package browser opens halo's report in a real browser: it must be quiet, readable on a phone, without a script and on paper, accessible, and its search must
// answer as halo does.
package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/report"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/host"
)

// browser finds Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("HALO_BROWSER") == "" {
		t.Skip("HALO_BROWSER is not set; bash .ci/run report installs what is needed and sets it")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium")
	return ""
}

// lab is the directory with the pages.
type lab struct {
	dir, halo string
}

func (l *lab) run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(l.halo, args...)
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("halo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (l *lab) url(page string) string {
	return "file://" + filepath.ToSlash(filepath.Join(l.dir, page))
}

// setUp builds halo and makes a page with changes, exceptions and a verified signature, a page with sandboxes and one of a hostile release.
func setUp(t *testing.T) *lab {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	dir := t.TempDir()
	l := &lab{dir: dir, halo: filepath.Join(dir, "halo")}
	cmd := exec.Command("go", "build", "-o", l.halo, "./cmd/halo")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("HALO_KEY_PASSWORD", "test")
	l.run(t, "keygen", "--out", "k")
	l.run(t, "build", filepath.Join(root, "examples", "acme"), "--out", "old", "--key", "k.key", "--as-of", "2026-11-01T00:00:00Z", "--version", "1.0.0", "--sequence", "1")
	l.run(t, "build", filepath.Join(root, "testdata", "acme-looser"), "--out", "new", "--key", "k.key", "--as-of", "2026-11-30T00:00:00Z", "--version", "1.1.0", "--sequence", "2", "--previous", "old")
	l.run(t, "report", "new", "--previous", "old", "--key", "k.pub", "--as-of", "2026-11-30T00:00:00Z", "--out", "acme.html")
	l.run(t, "build", filepath.Join(root, "examples", "sandbox"), "--out", "sandbox", "--as-of", "2026-11-30T00:00:00Z")
	l.run(t, "report", "sandbox", "--out", "sandbox.html")

	data, err := report.Page(Hostile())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "hostile.html"), data, 0o644))
	return l
}

// Hostile is a release whose every text tries to be more than a text.
func Hostile() report.Input {
	evil := `"'></script></style></title><script>pwned = 1</script><img src=x onerror="pwned = 1">` + "\u202e\u0000{}" + ` onfocus=pwned=1 autofocus javascript:pwned=1`
	m := &artifacts.Manifest{SchemaVersion: 1, Org: evil, Version: evil, Tool: artifacts.Tool{Name: evil, Version: evil}, Source: artifacts.Source{Commit: evil, Digest: evil, Dirty: true}, Previous: evil,
		Files: []artifacts.File{{Path: "p", SHA256: evil}}, Egress: map[string]artifacts.Egress{}, Presets: map[string][]string{evil: {evil, evil}}, Packs: []artifacts.Pack{{Name: evil, Digest: evil, Path: "p"}}}
	for i := range 9 {
		id := fmt.Sprint(evil, i)
		m.Targets = append(m.Targets, artifacts.Target{ID: id, Ring: evil, Units: []string{evil, evil}, Profile: evil, OS: "linux", Files: []artifacts.TargetFile{{Path: "p", Harness: evil, Dest: evil, Owner: evil, Mode: evil}}})
		m.Egress[id] = artifacts.Egress{Default: evil, Allowed: []string{evil}, Denied: []string{evil}}
		m.Sandboxes = append(m.Sandboxes, artifacts.Sandbox{Name: evil, Target: id, Agent: evil, Path: "p", Pack: evil, PackDigest: evil})
		m.Warnings = append(m.Warnings, artifacts.Warning{Code: evil, Target: id, Harness: evil, OS: evil, Field: evil, Message: evil})
	}
	m.Exceptions = []artifacts.Exception{{Name: evil, Scope: evil, Field: evil, Witness: evil, Owner: evil, Reason: evil, Ticket: evil, Expires: evil}}
	cell := map[string]any{"concept": "egress", "os": evil, "grade": evil, "how": evil, "limit": evil, "bypass": []string{evil}, "evidence": evil}
	sandbox := map[string]any{"sandbox": evil, "file": evil, "agent": evil, "grade": evil, "limits": []string{evil}, "evidence": evil}
	rows := []any{map[string]any{"harness": evil, "version": evil, "cells": []any{cell}}}
	coverage, _ := json.Marshal(map[string]any{"rings": []any{map[string]any{"ring": evil, "harnesses": rows, "sandboxes": []any{sandbox}},
		map[string]any{"ring": "other", "harnesses": rows}}})
	return report.Input{Manifest: m, Digest: evil, Coverage: coverage, Halo: evil, Title: func(string) string { return evil },
		Signatures: []artifacts.SignedBy{{File: evil, Key: evil}, {File: evil, Certificate: true}}}
}

// sections are the headings that every page has.
var sections = []string{"The release", "What is not held", "What each harness holds", "Rings and units", "Hosts", "Exceptions", "Sandboxes and packs", "Changes", "Evidence", "Files"}

func TestReport(t *testing.T) {
	program := browser(t)
	l := setUp(t)
	c := open(t, program)
	axe, err := os.ReadFile(axeFile())
	if err != nil {
		t.Errorf("accessibility is not checked: %v", err)
	}
	for _, name := range []string{"acme", "sandbox", "hostile"} {
		t.Run(name, func(t *testing.T) {
			p := c.page(t, l.url(name+".html"), nil)
			for _, s := range []struct {
				px     int
				scheme string
			}{{1440, "light"}, {1440, "dark"}, {375, "light"}, {375, "dark"}, {320, "light"}} {
				p.width(s.px)
				p.media("", s.scheme)
				p.fits(s.px)
				if s.px != 320 {
					for _, part := range []string{"header", "#release", "#gaps", "#coverage", "#targets", "#egress", "#sandboxes", "#changes", "#evidence", "#files"} {
						p.shoot(fmt.Sprintf("%s %d %s %s", name, s.px, s.scheme, strings.Trim(part, "#")), part)
					}
				}
			}
			p.eval(`document.querySelectorAll("details").forEach((d) => d.open = true); const input = document.getElementById("host"); input.value = "github.com"; input.dispatchEvent(new Event("input")); 1`, nil)
			if axe != nil {
				p.eval(string(axe)+";1", nil)
			}
			for _, s := range []struct {
				px     int
				scheme string
			}{{1440, "light"}, {375, "dark"}} {
				p.width(s.px)
				p.media("", s.scheme)
				p.fits(s.px)
				p.shoot(fmt.Sprintf("%s %d %s open", name, s.px, s.scheme), "#coverage details")
				p.shoot(fmt.Sprintf("%s %d %s found", name, s.px, s.scheme), "#egress")
				if axe != nil {
					p.accessible(fmt.Sprintf("%d px, %s", s.px, s.scheme))
				}
			}
			var pwned bool
			p.eval(`"pwned" in window || document.querySelectorAll("img, script").length !== 1`, &pwned)
			if pwned {
				t.Error("a text of the release became more than a text")
			}
			p.quiet()
		})
		t.Run(name+" printed", func(t *testing.T) {
			p := c.page(t, l.url(name+".html"), nil)
			p.printed(name)
			p.quiet()
		})
	}
	t.Run("without a script", func(t *testing.T) {
		p := c.page(t, l.url("sandbox.html"), func(p *tab) {
			p.do("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		})
		p.printed("sandbox")
		var form bool
		p.eval(`document.querySelector("form.search").checkVisibility()`, &form)
		if form {
			t.Error("a search that cannot work is shown")
		}
		p.quiet()
	})
	t.Run("search", func(t *testing.T) { testSearch(t, l, c) })
}

// axeFile is where CI keeps axe-core.
func axeFile() string {
	cache := os.Getenv("HALO_CI_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "halo-ci")
	}
	return filepath.Join(cache, "npm", "axe", "node_modules", "axe-core", "axe.min.js")
}

// fits fails when the page is wider than the screen.
func (p *tab) fits(px int) {
	p.t.Helper()
	var size struct {
		Width int
		Who   []string
	}
	p.eval(`(() => { const e = document.scrollingElement; const w = Math.max(e.scrollWidth, document.body.scrollWidth); return {width: w, who: w <= innerWidth ? [] :
		Array.from(document.querySelectorAll("body *")).filter((x) => x.getBoundingClientRect().right > innerWidth + 1 && !x.closest(".wrap")).slice(0, 5).map((x) => x.outerHTML.slice(0, 120))} })()`, &size)
	if size.Width > px {
		p.t.Errorf("at %d px the page is %d px wide: %q", px, size.Width, size.Who)
	}
}

// accessible runs axe-core over the page as it stands.
func (p *tab) accessible(what string) {
	p.t.Helper()
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	p.eval(`axe.run({resultTypes: ["violations"]}).then((r) => r.violations)`, &found)
	for _, v := range found {
		p.t.Errorf("%s: %s: %s (%d places), such as\n%.300s\n%.600s", what, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
}

// printed prints the page and looks for all that a reader of paper needs.
func (p *tab) printed(name string) {
	p.t.Helper()
	var pdf struct{ Data []byte }
	p.do("Page.printToPDF", map[string]any{"printBackground": false, "preferCSSPageSize": true}, &pdf)
	if !bytes.HasPrefix(pdf.Data, []byte("%PDF")) {
		p.t.Fatal("no PDF")
	}
	file := filepath.Join(p.t.TempDir(), "page.pdf")
	must(p.t, os.WriteFile(file, pdf.Data, 0o644))
	if dir := os.Getenv("HALO_BROWSER_SHOTS"); dir != "" {
		must(p.t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".pdf"), pdf.Data, 0o644))
	}
	out, err := exec.Command("pdftotext", "-layout", file, "-").Output()
	must(p.t, err)
	text := string(out)
	for _, s := range sections {
		if !strings.Contains(text, s) {
			p.t.Errorf("the printed page has no section %q", s)
		}
	}
	// What is folded on a screen is not on paper.
	if name != "hostile" && !strings.Contains(text, "root:wheel") {
		p.t.Error("the printed page lacks the owners of files, which are folded on a screen")
	}
	if strings.Contains(text, "Who may reach a host?") {
		p.t.Error("the search is printed")
	}
}

// hostsToAsk are written as people paste them. The script answers as halo does or says that it cannot; those marked are ones that it must answer.
func hostsToAsk(m *artifacts.Manifest) (must, may []string) {
	for _, e := range m.Egress {
		for _, h := range slices.Concat(e.Allowed, e.Denied) {
			name := strings.TrimPrefix(h, "*.")
			must = append(must, name, "any."+name, "a.b.c."+name, "x"+name, name+".evil.example", strings.ToUpper(name), "https://"+name+"/p?q#f", name+":443", name+".", "http://"+name+":8080")
		}
	}
	must = append(must, "localhost", "example.com", "127.0.0.1", "http://10.0.0.1:80/", "[::1]:443", "::1", "http://[2001:db8::1]/", "a_b.example", "xn--bcher-kva.example", "npm", "-", ".", "..", "a..b",
		"-a.example", "a-.example", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "0x7f.1", "example.123", "example.0x1", "http://", "https://x.example:", "x.example:", "x.example:x", "x.example:123456",
		strings.Repeat("a", 64)+".example", strings.Repeat("a.", 126)+"ab", strings.Repeat("a.", 127)+"ab", "1::2::3", "[1.2.3.4]", "[::1", "[::1]x", "http://::1/", "1http://x.example", "//x.example", "")
	slices.Sort(must)
	must = slices.Compact(must)
	may = []string{"bücher.example", "*.github.com", "a b.example", "user@github.com", "https://u:p@github.com/", "a@b@c.example", "git%68ub.com", "https://github.com/%zz", `github.com\x`, "github.com\u200b", "ﬀ.example",
		"http://github.com/a b", "fe80::1%eth0", "::ffff:1.2.3.4", "[::ffff:1.2.3.4]", "github。com", "\u00a0github.com", "mailto:x@github.com"}
	return must, may
}

func testSearch(t *testing.T, l *lab, c *chrome) {
	m, _, err := artifacts.ReadManifest(filepath.Join(l.dir, "new"))
	must(t, err)
	p := c.page(t, l.url("acme.html"), nil)

	var pages []struct {
		ID  string
		Who string
	}
	p.eval(`Array.from(document.querySelectorAll("#targets tbody tr"), (tr) => ({id: [tr.cells[0].textContent, ...(tr.cells[1].querySelector(".dim") ? [] : tr.cells[1].textContent.split(", "))].join("+"),
		who: tr.cells[5].querySelector("a").getAttribute("href")}))`, &pages)
	if len(pages) == 0 {
		t.Fatal("the page has no targets")
	}
	asked, maybe := hostsToAsk(m)
	count := 0
	for i, text := range slices.Concat(asked, maybe) {
		quoted, _ := json.Marshal(text)
		var got map[string]struct {
			Allow bool
			Rule  string
		}
		p.eval(fmt.Sprintf(`(() => { globalThis.ps ??= readPolicies(); const h = parseHost(%s); if (h.why) return {}; return Object.fromEntries(ps.map((x) => ["#" + x.article.id, decide(x, h)])) })()`, quoted), &got)
		name, err := host.ParseName(text)
		if len(got) == 0 {
			if err == nil && i < len(asked) {
				t.Errorf("%q: no answer, and halo has one", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: an answer, and halo has none: %v", text, err)
			continue
		}
		for _, at := range pages {
			e := compile(t, m.Egress[at.ID])
			d := e.Decide(name)
			rule := map[string]string{"egress.allowedDomains": "allowed ", "egress.deniedDomains": "denied ", "egress.default": "default "}[d.Field] + d.Entry
			if have := got[at.Who]; have.Allow != d.Allow || have.Rule != rule {
				t.Errorf("%q for %s: allow %v by %q, halo says %v by %q", text, at.ID, have.Allow, have.Rule, d.Allow, rule)
			}
			count++
		}
	}
	if count < 1000 {
		t.Errorf("only %d decisions were compared", count)
	}

	// As a person does it.
	p.eval(`document.getElementById("host").focus(); 1`, nil)
	p.do("Input.insertText", map[string]any{"text": "https://uploads.example/x"}, nil)
	var answer, hits string
	p.eval(`document.getElementById("answer").textContent`, &answer)
	allowed := 0
	for _, at := range pages {
		if compile(t, m.Egress[at.ID]).Decide("uploads.example").Allow {
			allowed++
		}
	}
	if want := fmt.Sprintf("uploads.example: allowed for %d and denied for %d of %d targets.", allowed, len(pages)-allowed, len(pages)); answer != want || allowed == 0 {
		t.Errorf("the page says %q, not %q", answer, want)
	}
	p.eval(`document.getElementById("host").value = ""; 1`, nil)
	p.do("Input.insertText", map[string]any{"text": "gitlab"}, nil)
	p.eval(`document.getElementById("hits").textContent`, &hits)
	if !strings.Contains(hits, "gitlab.com") {
		t.Errorf("gitlab is in no rule: %s", hits)
	}
	p.quiet()
}

func compile(t *testing.T, e artifacts.Egress) *egress.Policy {
	t.Helper()
	rules := egress.Rules{Default: e.Default}
	for _, s := range e.Allowed {
		pattern, problem := host.ParsePattern(s)
		if problem != nil {
			t.Fatal(s, problem.Reason)
		}
		rules.Allowed = append(rules.Allowed, egress.Entry{Pattern: pattern, Field: "egress.allowedDomains", Name: s})
	}
	for _, s := range e.Denied {
		pattern, problem := host.ParseDenyPattern(s)
		if problem != nil {
			t.Fatal(s, problem.Reason)
		}
		rules.Denied = append(rules.Denied, egress.Entry{Pattern: pattern, Field: "egress.deniedDomains", Name: s})
	}
	return egress.Compile(rules)
}
