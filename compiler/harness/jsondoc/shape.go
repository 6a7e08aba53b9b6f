package jsondoc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type a value must have.
type Kind uint8

// The kinds. Fixed is an object with known keys, Map one with any keys.
const (
	Any Kind = iota
	String
	Bool
	Number
	List
	Fixed
	Map
)

var kindWords = [...]string{"anything", "a text", "true or false", "a number", "a list", "an object", "an object"}

// Shape is the key table of a document: what may stand where.
type Shape struct {
	Kind Kind
	// Fields are the keys of a Fixed object. Elem is the shape of list items and of the values of a Map.
	Fields []Field
	Elem   *Shape
	// Words limits a text to some values.
	Words []string
	// Or is tried when the value is not of this kind.
	Or *Shape
}

// Field is one key of a Fixed object.
type Field struct {
	Key   string
	Shape *Shape
}

// Shapes that many tables use.
var (
	AnyShape    = &Shape{Kind: Any}
	StringShape = &Shape{Kind: String}
	BoolShape   = &Shape{Kind: Bool}
	NumberShape = &Shape{Kind: Number}
	TextList    = &Shape{Kind: List, Elem: StringShape}
	TextMap     = &Shape{Kind: Map, Elem: StringShape}
)

// Check reports every key that is not in the table and every value of another type.
func (s *Shape) Check(v any, pointer string, report func(pointer, message string)) {
	if s.Kind == Any {
		return
	}
	if kindOf(v) != s.Kind && (s.Kind != Map || kindOf(v) != Fixed) {
		if s.Or != nil {
			s.Or.Check(v, pointer, report)
			return
		}
		report(pointer, "is not "+kindWords[s.Kind])
		return
	}
	switch v := v.(type) {
	case string:
		if len(s.Words) > 0 && !slices.Contains(s.Words, v) {
			report(pointer, fmt.Sprintf("is %q, want one of %s", v, strings.Join(s.Words, ", ")))
		}
	case []any:
		if s.Elem == nil {
			return
		}
		for i, x := range v {
			s.Elem.Check(x, pointer+"/"+strconv.Itoa(i), report)
		}
	case Object:
		for _, m := range v {
			at := Pointer(pointer, m.Key)
			if s.Kind == Map {
				if s.Elem != nil {
					s.Elem.Check(m.Value, at, report)
				}
				continue
			}
			i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Key == m.Key })
			if i < 0 {
				report(at, "is a key that the program does not read")
				continue
			}
			s.Fields[i].Shape.Check(m.Value, at, report)
		}
	}
}

func kindOf(v any) Kind {
	switch v.(type) {
	case string:
		return String
	case bool:
		return Bool
	case json.Number:
		return Number
	case []any:
		return List
	case Object:
		return Fixed
	}
	return Any
}
