// Package report makes one HTML page of a release, for people and auditors: what it is, who signed it, what is not held, what each harness holds, who gets which
// files, what may be reached, what changed. The page stands alone: it loads nothing, and it is read without its script, which only searches.
package report

import (
	"crypto/sha256"
	_ "embed" // the style and the script
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/diff"
	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/diag"
)

// Mark is what every page begins with; a file that begins otherwise is not one.
const Mark = "<!doctype html>\n<!-- halo report -->\n"

// CodeNotReport says that the output is something else.
var CodeNotReport = &diag.Code{
	ID: "HALO2601", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
	Title:  "output is not a halo report",
	Text:   "--out names a file that halo report did not write, a directory or a link. It is left alone. Choose a new file.",
	Before: "halo report release --out README.md", After: "halo report release --out report.html",
}

// Codes returns the codes of this package.
func Codes() []*diag.Code { return []*diag.Code{CodeNotReport} }

// Input is a release and what is known of it. The files of a release must have been compared with its manifest.
type Input struct {
	Manifest *artifacts.Manifest
	// Digest is the release digest.
	Digest string
	// Coverage is coverage.json of the release; nil when it has none.
	Coverage []byte
	// Signatures are those that the release claims.
	Signatures []artifacts.SignedBy
	// Verified is who was found to have signed; nil means that nobody looked, which the page says.
	Verified *Verified
	// Previous is an earlier release to compare with; nil when there is none.
	Previous *Previous
	// Title names a code of a warning in a few words; "" for a code that it does not know.
	Title func(code string) string
	// Halo is the version of the program that makes the page.
	Halo string
}

// Verified says whose signatures were verified, and when.
type Verified struct {
	// Keys are the ids of the keys that signed.
	Keys []string
	// Identities are who signed with a certificate: a name and the issuer that knows it.
	Identities []Identity
	// At is when the signature was verified.
	At time.Time
}

// Identity is a signer without a key.
type Identity struct{ Name, Issuer string }

// Previous is the release that the page compares with.
type Previous struct {
	Manifest *artifacts.Manifest
	Digest   string
	// Verified is as in Input; nil with Named set means that the verified manifest of the release itself names this one.
	Verified *Verified
	Named    bool
	Diff     *diff.Report
}

//go:embed page.css
var style string

//go:embed page.js
var script string

// ring is the coverage of one ring, as coverage.json has it.
type ring struct {
	Ring string `json:"ring"`
	coverage.Matrix
}

// Page makes the page. The same input gives the same bytes. The error says that coverage.json cannot be read.
func Page(in Input) ([]byte, error) {
	var doc struct {
		SchemaVersion int    `json:"schemaVersion"`
		Rings         []ring `json:"rings"`
	}
	if in.Coverage != nil {
		if err := json.Unmarshal(in.Coverage, &doc); err != nil {
			return nil, fmt.Errorf("coverage.json: %w", err)
		}
	}
	r := &reporter{Input: in, rings: doc.Rings}
	r.index()
	p := &r.page
	p.put(Mark + "<html lang=en>\n<head>\n<meta charset=utf-8>\n")
	p.put(`<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'">`+"\n", integrity(style), integrity(script))
	p.put("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=referrer content=no-referrer>\n<meta name=color-scheme content=\"light dark\">\n")
	p.put("<meta name=generator content=\"halo {}\">\n<title>Agent policy of {}, version {}</title>\n", in.Halo, in.Manifest.Org, in.Manifest.Version)
	p.put("<style>{}</style>\n</head>\n<body>\n", markup(style))
	p.put(shapes)
	p.put("<a class=skip href=#release>Skip to the content</a>\n")
	r.header()
	r.nav()
	p.put("<main>\n")
	for _, s := range r.sections() {
		p.section(s.id, s.title)
		s.write()
		p.endSection()
	}
	p.put("</main>\n")
	r.footer()
	p.put("<script>{}</script>\n</body>\n</html>\n", markup(script))
	return p.out, nil
}

// integrity is how a content security policy names what may run.
func integrity(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// part is a section of the page.
type part struct {
	id, title markup
	write     func()
}

// sections lists the page in its order.
func (r *reporter) sections() []part {
	return []part{
		{"release", "The release", r.release},
		{"gaps", "What is not held", r.gaps},
		{"coverage", "What each harness holds", r.coverage},
		{"targets", "Rings and units", r.targetList},
		{"egress", "Hosts", r.egress},
		{"exceptions", "Exceptions", r.exceptions},
		{"sandboxes", "Sandboxes and packs", r.sandboxes},
		{"changes", "Changes", r.changes},
		{"evidence", "Evidence", r.evidence},
		{"files", "Files", r.files},
	}
}
