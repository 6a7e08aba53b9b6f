// Package diag holds the one diagnostic type of halo: what was found, where, and what to write instead.
//
// Message, place and key path are separate facts; only a printer joins them.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Severity says what a diagnostic means for the exit status.
type Severity uint8

// Error stops a build, Warning is reported, Info is for people only.
const (
	Error Severity = iota
	Warning
	Info
)

// String returns the word used in every output form.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "info"
}

// Pos is a place in a repo in 8 bytes: file index, line and column, both 1-based and saturating. The zero Pos is "no place".
//
// File indexes follow the sorted file names, so comparing two Pos values compares (file, line, column).
type Pos uint64

const (
	colBits  = 20
	lineBits = 28
	maxCol   = 1<<colBits - 1
	maxLine  = 1<<lineBits - 1
)

// NewPos returns the place of a 1-based line and column in the file with the given index; values out of range saturate.
func NewPos(file, line, col int) Pos {
	return Pos(uint64(file&0xffff)<<(colBits+lineBits) | uint64(min(max(line, 0), maxLine))<<colBits | uint64(min(max(col, 0), maxCol)))
}

// IsValid reports whether p names a place.
func (p Pos) IsValid() bool { return p.Line() > 0 }

// File returns the file index.
func (p Pos) File() int { return int(p >> (colBits + lineBits)) }

// Line returns the 1-based line, or 0 when p names only a file.
func (p Pos) Line() int { return int(p>>colBits) & maxLine }

// Col returns the 1-based column in characters.
func (p Pos) Col() int { return int(p) & maxCol }

// Code is one kind of finding. IDs are never reused. Title is one line; Text explains why it matters and what to do; Before and
// After are a wrong and a right piece of policy. Severity is what a diagnostic of this code has unless it says otherwise.
type Code struct {
	ID       string
	Severity Severity
	Title    string
	Text     string
	Before   string
	After    string
	Since    string
	// NoAnswer marks findings after which there is no answer at all (unreadable input, a limit exceeded): exit status 2 in every command.
	NoAnswer bool
	// Secret marks findings about a line that may hold a credential: it is not printed.
	Secret bool
}

// Related is a further place that explains a diagnostic, such as the first of two definitions.
type Related struct {
	Pos     Pos
	Message string
}

// Diagnostic is one finding.
type Diagnostic struct {
	Code     *Code
	Severity Severity
	// Pos is the place of the key or value at fault. When it is not valid, File may still name a file or directory.
	Pos  Pos
	File string
	// Document is KIND/NAME of the document at fault, Path the key path in it (egress.deniedDomains[2]).
	Document string
	Path     string
	// Message is one sentence, without a final period, that says what was found and what is wanted.
	Message string
	// Hint says what to write instead.
	Hint    string
	Related []Related
}

// New returns a diagnostic with the severity of its code.
func New(code *Code, pos Pos, path, format string, args ...any) Diagnostic {
	return Diagnostic{Code: code, Severity: code.Severity, Pos: pos, Path: path, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns d with a hint.
func (d Diagnostic) WithHint(format string, args ...any) Diagnostic {
	d.Hint = fmt.Sprintf(format, args...)
	return d
}

// WithRelated returns d with one more related place. An invalid place is left out.
func (d Diagnostic) WithRelated(pos Pos, format string, args ...any) Diagnostic {
	if pos.IsValid() {
		d.Related = append(slices.Clip(d.Related), Related{pos, fmt.Sprintf(format, args...)})
	}
	return d
}

// Compare is the one total order of diagnostics: file, line, column, then code, path and message.
func Compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Pos, b.Pos),
		strings.Compare(a.File, b.File),
		strings.Compare(a.Code.ID, b.Code.ID),
		strings.Compare(a.Document, b.Document),
		strings.Compare(a.Path, b.Path),
		strings.Compare(a.Message, b.Message),
	)
}

// List collects diagnostics. The zero List is ready. It is safe for concurrent use.
type List struct {
	mu       sync.Mutex
	items    []Diagnostic
	errors   int
	warnings int
	noAnswer bool
}

// Add adds findings.
func (l *List) Add(ds ...Diagnostic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		switch d.Severity {
		case Error:
			l.errors++
		case Warning:
			l.warnings++
		}
		l.noAnswer = l.noAnswer || d.Code.NoAnswer
		l.items = append(l.items, d)
	}
}

// Sorted returns the findings in the total order, exact repetitions dropped.
func (l *List) Sorted() []Diagnostic {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.items, Compare)
	l.items = slices.CompactFunc(l.items, func(a, b Diagnostic) bool { return Compare(a, b) == 0 })
	l.errors, l.warnings = 0, 0
	for _, d := range l.items {
		switch d.Severity {
		case Error:
			l.errors++
		case Warning:
			l.warnings++
		}
	}
	return slices.Clip(l.items)
}

// Len returns the number of findings.
func (l *List) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.items)
}

// Errors returns the number of errors.
func (l *List) Errors() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors
}

// Warnings returns the number of warnings.
func (l *List) Warnings() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warnings
}

// NoAnswer reports whether a finding makes an answer impossible (exit status 2).
func (l *List) NoAnswer() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noAnswer
}

// Quote quotes a value for a message and cuts long ones.
func Quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return strconv.Quote(s)
}

// Nearest returns the candidate closest to word by edit distance, or "" when none is near enough to be meant.
func Nearest(word string, candidates []string) string {
	best, bestDist := "", max(2, len(word)/3)+1
	lower := strings.ToLower(word)
	for _, c := range candidates {
		d := distance(lower, strings.ToLower(c))
		if d < bestDist {
			best, bestDist = c, d
		}
	}
	if best == "" {
		for _, c := range candidates {
			if len(word) >= 3 && (strings.HasPrefix(strings.ToLower(c), lower) || strings.HasPrefix(lower, strings.ToLower(c))) {
				return c
			}
		}
	}
	return best
}

// distance is the Levenshtein distance with a bound on the work: long words are never near.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 10
	}
	var prev, cur [65]int
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j+1]+1, cur[j]+1, prev[j]+cost)
		}
		prev = cur
	}
	return prev[len(b)]
}
