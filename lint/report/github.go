package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// shown is how many annotations of a kind GitHub shows for one step; the rest vanish there without a word.
const shown = 10

// GitHub prints the report as workflow commands, errors first. When there are more findings than GitHub shows, the last annotation of a kind says how many more.
func (r *Report) GitHub(w io.Writer) error {
	src := r.lines()
	left := map[diag.Severity]int{}
	for _, d := range r.Diagnostics {
		left[d.Severity]++
	}
	printed := map[diag.Severity]int{}
	for _, d := range worst(r.Diagnostics) {
		command := [...]string{"error", "warning", "notice"}[min(d.Severity, diag.Info)]
		switch n := printed[d.Severity]; {
		case n == shown-1 && left[d.Severity] > shown:
			fmt.Fprintf(w, "::%s title=halo::%s\n", command, escapeData(fmt.Sprintf("%d more findings of this kind; halo lint prints all", left[d.Severity]-n)))
			printed[d.Severity]++
			continue
		case n >= shown:
			continue
		}
		printed[d.Severity]++
		s := src.span(d.Pos)
		props := "file=" + escapeProperty(r.display(d))
		if s.line > 0 {
			props += fmt.Sprintf(",line=%d,endLine=%d,col=%d,endColumn=%d", s.line, s.endLine, s.col, s.endCol)
		}
		text := d.Message
		if d.Path != "" {
			text = d.Path + ": " + text
		}
		if d.Hint != "" {
			text += "\nhint: " + d.Hint
		}
		if _, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", command, props, escapeProperty(d.Code.ID+" "+d.Code.Title), escapeData(text)); err != nil {
			return err
		}
	}
	return nil
}

// escapeData and escapeProperty follow the encoding of GitHub's toolkit: the percent sign first, or the other escapes would be escaped again.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(multiline(s))
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(printable(s))
}

// multiline makes every line of a text printable.
func multiline(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n")
}

// Case is one test case of a JUnit report.
type Case struct {
	Class, Name string
	// Failure is empty for a case that passed.
	Failure, Detail string
}

type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit prints test cases as a JUnit XML report.
func WriteJUnit(w io.Writer, suite string, cases []Case) error {
	out := junitSuites{Suite: junitSuite{Name: suite, Tests: len(cases)}, Tests: len(cases)}
	for _, c := range cases {
		j := junitCase{Class: printable(c.Class), Name: printable(c.Name)}
		if c.Failure != "" {
			j.Failure = &junitFailure{printable(c.Failure), c.Detail}
			out.Failures++
		}
		out.Suite.Cases = append(out.Suite.Cases, j)
	}
	out.Suite.Failures = out.Failures
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// detailed is how many findings of a file JUnit output names; the failure counts all.
const detailed = 100

// JUnit prints every file as a case that fails when it has findings that fail the run.
func (r *Report) JUnit(w io.Writer) error {
	byFile := map[string][]diag.Diagnostic{}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error || r.Strict && d.Severity == diag.Warning {
			byFile[r.FileOf(d)] = append(byFile[r.FileOf(d)], d)
		}
	}
	var cases []Case
	add := func(file string) {
		c := Case{Class: "policy", Name: file}
		var detail strings.Builder
		ds, left := capped(byFile[file], detailed)
		for _, d := range ds {
			at, path := file, ""
			if d.Pos.IsValid() {
				at = fmt.Sprintf("%s:%d:%d", file, d.Pos.Line(), d.Pos.Col())
			}
			if d.Path != "" {
				path = d.Path + ": "
			}
			fmt.Fprintf(&detail, "%s: %s[%s] %s%s\n", printable(r.Prefix+at), d.Severity, d.Code.ID, printable(path), printable(d.Message))
		}
		if left > 0 {
			fmt.Fprintf(&detail, "... and %s\n", count(left, "more finding"))
		}
		if n := len(byFile[file]); n > 0 {
			c.Failure, c.Detail = count(n, "finding"), detail.String()
		}
		cases = append(cases, c)
		delete(byFile, file)
	}
	for _, f := range r.Files {
		add(f.Name)
	}
	for _, d := range r.Diagnostics {
		if _, left := byFile[r.FileOf(d)]; left {
			add(r.FileOf(d))
		}
	}
	return WriteJUnit(w, "halo", cases)
}
