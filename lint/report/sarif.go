package report

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Invocations []sarifInvocation        `json:"invocations"`
	ColumnKind  string                   `json:"columnKind"`
	Bases       map[string]sarifArtifact `json:"originalUriBaseIds"`
	Results     []sarifResult            `json:"results"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string       `json:"level"`
	Message sarifMessage `json:"message"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string       `json:"id"`
	Name             string       `json:"name"`
	ShortDescription sarifMessage `json:"shortDescription"`
	FullDescription  sarifMessage `json:"fullDescription"`
	Help             sarifMessage `json:"help"`
	Default          struct {
		Level string `json:"level"`
	} `json:"defaultConfiguration"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifArtifact struct {
	URI       string        `json:"uri,omitempty"`
	URIBaseID string        `json:"uriBaseId,omitempty"`
	Message   *sarifMessage `json:"description,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

type sarifLocation struct {
	Physical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	} `json:"physicalLocation"`
	Message *sarifMessage `json:"message,omitempty"`
}

type sarifResult struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifMessage      `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Related      []sarifLocation   `json:"relatedLocations,omitempty"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

// results is how many results a run lists: GitHub takes no more.
const results = 25_000

// SARIF prints the report as SARIF 2.1.0. Fingerprints are made of the rule, the document, the key path and the message, so they survive edits elsewhere in the
// file. What a run has no room for is counted in a notification.
func (r *Report) SARIF(w io.Writer) error {
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: make([]sarifRun, 1)}
	run := &log.Runs[0]
	run.ColumnKind = "unicodeCodePoints"
	run.Bases = map[string]sarifArtifact{"%SRCROOT%": {Message: &sarifMessage{"the root of the repository"}}}
	run.Tool.Driver = sarifDriver{Name: "halo", Version: r.Version, InformationURI: "https://halos.dev/halo", Rules: []sarifRule{}}
	run.Results = []sarifResult{}
	ds, left := capped(r.Diagnostics, results)
	run.Invocations = []sarifInvocation{{Successful: true}}
	if left > 0 {
		run.Invocations[0].Notifications = []sarifNotification{{"warning", sarifMessage{count(left, "more finding") + " not listed"}}}
	}
	var codes []*diag.Code
	for _, d := range ds {
		codes = append(codes, d.Code)
	}
	slices.SortFunc(codes, func(a, b *diag.Code) int { return strings.Compare(a.ID, b.ID) })
	codes = slices.Compact(codes)
	index := map[*diag.Code]int{}
	for i, c := range codes {
		index[c] = i
		rule := sarifRule{ID: c.ID, Name: camel(c.Title), ShortDescription: sarifMessage{c.Title}, FullDescription: sarifMessage{c.Text}, Help: sarifMessage{help(c)}}
		rule.Default.Level = level(c.Severity)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	src := r.lines()
	seen := map[string]int{}
	for _, d := range ds {
		text := d.Message
		if d.Path != "" {
			text = d.Path + ": " + text
		}
		if d.Hint != "" {
			text += "\nhint: " + d.Hint
		}
		print := fingerprint(d, r.FileOf(d))
		res := sarifResult{RuleID: d.Code.ID, RuleIndex: index[d.Code], Level: level(d.Severity), Message: sarifMessage{text},
			Fingerprints: map[string]string{"haloFinding/v1": print + ":" + strconv.Itoa(seen[print])}}
		seen[print]++
		res.Locations = []sarifLocation{r.location(src, d.Pos, r.FileOf(d), "")}
		for _, rel := range d.Related {
			res.Related = append(res.Related, r.location(src, rel.Pos, r.Files.Name(rel.Pos), rel.Message))
		}
		run.Results = append(run.Results, res)
	}
	return WriteJSON(w, log)
}

func (r *Report) location(src *lines, p diag.Pos, file, message string) sarifLocation {
	var l sarifLocation
	l.Physical.Artifact = sarifArtifact{URI: (&url.URL{Path: r.Prefix + file}).EscapedPath(), URIBaseID: "%SRCROOT%"}
	if strings.HasPrefix(r.Prefix, "/") {
		l.Physical.Artifact = sarifArtifact{URI: (&url.URL{Scheme: "file", Path: r.Prefix + file}).String()}
	}
	if p.IsValid() {
		s := src.span(p)
		l.Physical.Region = &sarifRegion{s.line, max(1, s.col), s.endLine, max(2, s.endCol)}
	}
	if message != "" {
		l.Message = &sarifMessage{message}
	}
	return l
}

func level(s diag.Severity) string {
	return [...]string{"error", "warning", "note"}[min(s, diag.Info)]
}

// help is what a code says, with its examples.
func help(c *diag.Code) string {
	text := c.Text
	if c.Before != "" {
		text += "\n\nInstead of:\n" + c.Before
	}
	if c.After != "" {
		text += "\n\nWrite:\n" + c.After
	}
	return text
}

// fingerprint knows a finding again when lines or list entries before it come or go.
func fingerprint(d diag.Diagnostic, file string) string {
	h := sha256.New()
	for _, s := range []string{d.Code.ID, file, d.Document, withoutIndexes(d.Path), d.Message} {
		io.WriteString(h, s)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// withoutIndexes replaces [N] in a key path by [].
func withoutIndexes(path string) string {
	var b strings.Builder
	inside := false
	for _, r := range path {
		if inside && r >= '0' && r <= '9' {
			continue
		}
		inside = r == '['
		b.WriteRune(r)
	}
	return b.String()
}

// camel makes the name of a rule from its title.
func camel(title string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(title, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') }) {
		b.WriteString(strings.ToUpper(w[:1]))
		b.WriteString(w[1:])
	}
	return b.String()
}
