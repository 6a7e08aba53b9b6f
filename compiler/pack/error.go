package pack

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Error is why a pack does not load. Its text is DefenseClaw's: "sandbox pack PATH: KEY: REASON".
type Error struct {
	// Path is the file, builtin:NAME, or the reference that found nothing.
	Path string
	// Key is the first offending key (egress.ports[1]), "" for the file as a whole.
	Key string
	// Reason is DefenseClaw's text. Class is its error class, such as yaml_alias, unknown_field or invalid_value.
	Reason string
	Class  string
	// Hint is what to write instead, "" for none; it is not part of the text.
	Hint string
	// Line and Column are 1-based; 0 when the problem has no place.
	Line, Column int
	// Structural marks problems of the YAML structure, whose text names the line.
	Structural bool
}

func (e *Error) Error() string {
	key := e.Key
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	switch {
	case key == "":
		return fmt.Sprintf("sandbox pack %s: %s", e.Path, e.Reason)
	case e.Structural && e.Line > 0:
		return fmt.Sprintf("sandbox pack %s: %s: line %d: %s", e.Path, key, e.Line, e.Reason)
	}
	return fmt.Sprintf("sandbox pack %s: %s: %s", e.Path, key, e.Reason)
}
