// Package report prints diagnostics: as text with the source line and carets, as JSON, SARIF 2.1.0, GitHub workflow commands and JUnit XML.
package report

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

// Report is a run's findings and where they lie.
type Report struct {
	// Diagnostics are in the total order.
	Diagnostics []diag.Diagnostic
	Files       source.Files
	// FS is the policy repo, read again for source lines and the ends of places. Nil prints none.
	FS fs.FS
	// Prefix is put before file names: the path of the policy repo from the working directory, or "".
	Prefix string
	// Version is the version of halo.
	Version string
	// Strict says that warnings fail the run too.
	Strict bool
}

// Counts returns the numbers of errors and warnings.
func (r *Report) Counts() (errors, warnings int) {
	for _, d := range r.Diagnostics {
		switch d.Severity {
		case diag.Error:
			errors++
		case diag.Warning:
			warnings++
		}
	}
	return errors, warnings
}

// FileOf returns the file a finding is about, relative to the policy repo.
func (r *Report) FileOf(d diag.Diagnostic) string {
	if name := r.Files.Name(d.Pos); name != "" {
		return name
	}
	if d.File != "" {
		return d.File
	}
	return "."
}

// display is the file of a finding as it can be opened from the working directory.
func (r *Report) display(d diag.Diagnostic) string {
	if file := r.FileOf(d); file != "." || r.Prefix == "" {
		return r.Prefix + file
	}
	return strings.TrimSuffix(r.Prefix, "/")
}

// span is a place with its end and the text of its line. The end lies behind the last character; columns count characters from 1.
type span struct {
	line, col, endLine, endCol int
	text                       string
}

// lines reads source lines. It keeps one file at a time: findings come in file order.
type lines struct {
	r     *Report
	index int
	rows  []string
}

func (r *Report) lines() *lines { return &lines{r: r, index: -1} }

// span finds the extent of the value at a place. Without the file, or when it changed since it was read, the place is one character wide.
func (l *lines) span(p diag.Pos) span {
	s := span{line: p.Line(), col: p.Col(), endLine: p.Line(), endCol: p.Col() + 1}
	if !p.IsValid() || !l.load(p.File()) || p.Line() > len(l.rows) {
		return s
	}
	s.text = l.rows[p.Line()-1]
	s.endCol = s.col + width(s.text, s.col)
	return s
}

func (l *lines) load(i int) bool {
	if i == l.index {
		return l.rows != nil
	}
	l.index, l.rows = i, nil
	if l.r.FS == nil || i >= len(l.r.Files) {
		return false
	}
	f := l.r.Files[i]
	data, err := fs.ReadFile(l.r.FS, f.Name)
	if err != nil || sha256.Sum256(data) != f.Digest {
		return false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	l.rows = strings.Split(string(data), "\n")
	return true
}

// width returns how many characters the YAML token at a column has, at least one.
func width(line string, col int) int {
	rs := []rune(strings.TrimRight(line, "\r"))
	if col < 1 || col > len(rs) {
		return 1
	}
	rest := rs[col-1:]
	switch q := rest[0]; q {
	case '"', '\'':
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' && q == '"' {
				i++
				continue
			}
			if rest[i] == q {
				return i + 1
			}
		}
		return len(rest)
	case '[', '{':
		depth := 0
		for i, c := range rest {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(rest)
	}
	for i, c := range rest {
		end := i + 1
		if c == ',' || c == ']' || c == '}' || c == ':' && (end == len(rest) || rest[end] == ' ') || c == '#' && i > 0 && rest[i-1] == ' ' {
			return max(1, len([]rune(strings.TrimRight(string(rest[:i]), " "))))
		}
	}
	return max(1, len([]rune(strings.TrimRight(string(rest), " "))))
}

// Style has the terminal sequences of a run; the zero Style prints plain text.
type Style struct{ Error, Warning, Info, Bold, Dim, Reset string }

// Color is the style for terminals.
var Color = Style{Error: "\x1b[31m", Warning: "\x1b[33m", Info: "\x1b[36m", Bold: "\x1b[1m", Dim: "\x1b[2m", Reset: "\x1b[0m"}

func (s Style) of(sev diag.Severity) string {
	return [...]string{s.Error, s.Warning, s.Info}[min(sev, diag.Info)]
}

// printed is how many findings text output prints; the summary counts all.
const printed = 1000

// Text prints findings for people: place, severity, code, key path and message on one line, then the source line with carets, related places and the hint.
func (r *Report) Text(w io.Writer, style Style) error {
	src := r.lines()
	secret := map[diag.Pos]bool{}
	for _, d := range r.Diagnostics {
		if d.Code.Secret {
			secret[lineOf(d.Pos)] = true
		}
	}
	var b bytes.Buffer
	ds, left := capped(r.Diagnostics, printed)
	for _, d := range ds {
		s := src.span(d.Pos)
		b.WriteString(style.Bold)
		b.WriteString(printable(r.display(d)))
		if s.line > 0 {
			fmt.Fprintf(&b, ":%d:%d", s.line, s.col)
		}
		fmt.Fprintf(&b, ":%s %s%s[%s]%s ", style.Reset, style.of(d.Severity), d.Severity, d.Code.ID, style.Reset)
		if d.Path != "" {
			b.WriteString(printable(d.Path))
			b.WriteString(": ")
		}
		b.WriteString(printable(d.Message))
		b.WriteByte('\n')
		if s.text != "" && !secret[lineOf(d.Pos)] {
			caret(&b, s, style, d.Severity)
		}
		for _, rel := range d.Related {
			if rel.Pos.IsValid() {
				fmt.Fprintf(&b, "    %s:%d:%d: %s\n", printable(r.Prefix+r.Files.Name(rel.Pos)), rel.Pos.Line(), rel.Pos.Col(), printable(rel.Message))
			}
		}
		if d.Hint != "" {
			fmt.Fprintf(&b, "    hint: %s\n", printable(d.Hint))
		}
		if b.Len() > 64<<10 {
			if _, err := w.Write(b.Bytes()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "... and %s\n", count(left, "more finding"))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// lineOf returns the line of a place.
func lineOf(p diag.Pos) diag.Pos { return diag.NewPos(p.File(), p.Line(), 0) }

// window is how much of a long line is shown around the place.
const window = 160

func caret(b *bytes.Buffer, s span, style Style, sev diag.Severity) {
	rs := []rune(strings.TrimRight(s.text, "\r"))
	from, col := 0, s.col-1
	if len(rs) > window {
		from = min(max(0, col-window/3), len(rs)-window)
		rs = rs[from : from+window]
	}
	col -= from
	n := min(s.endCol-s.col, max(1, len(rs)-col))
	b.WriteString("    ")
	for _, r := range rs {
		b.WriteString(visible(r))
	}
	b.WriteString("\n    ")
	for i := range min(col, len(rs)) {
		if rs[i] == '\t' {
			b.WriteByte('\t')
			continue
		}
		b.WriteString(strings.Repeat(" ", cells(rs[i])))
	}
	b.WriteString(style.of(sev))
	for i := range n {
		c := 1
		if col+i < len(rs) {
			c = cells(rs[col+i])
		}
		b.WriteString(strings.Repeat("^", max(1, c)))
	}
	b.WriteString(style.Reset)
	b.WriteByte('\n')
}

// cells is how many columns of a terminal a character takes.
func cells(r rune) int {
	switch {
	case r < 0x300:
		return utf8.RuneCountInString(visible(r))
	case r >= 0x300 && r <= 0x36f, r == 0x200b, r == 0x200d, r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// visible replaces characters that would move the cursor, colour the terminal or reorder text.
func visible(r rune) string {
	switch {
	case r == '\t':
		return "\t"
	case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return fmt.Sprintf("\\u%04x", r)
	}
	return string(r)
}

// Printable makes a text safe for one line of a terminal.
func Printable(s string) string { return printable(s) }

// printable makes a text safe for one line of a terminal.
func printable(s string) string {
	safe := true
	for _, r := range s {
		if r == '\t' || r == utf8.RuneError || visible(r) != string(r) {
			safe = false
			break
		}
	}
	if safe {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\t' {
			b.WriteString("\\t")
			continue
		}
		b.WriteString(visible(r))
	}
	return b.String()
}

// Summary is the closing line of text output.
func (r *Report) Summary() string {
	errors, warnings := r.Counts()
	return fmt.Sprintf("%s, %s in %s", count(errors, "error"), count(warnings, "warning"), count(len(r.Files), "file"))
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
