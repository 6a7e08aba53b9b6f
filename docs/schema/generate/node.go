package main

import (
	"bytes"
	"encoding/json"
)

// node is a JSON Schema, its keywords in the order in which people read them.
type node struct {
	Schema              string  `json:"$schema,omitempty"`
	ID                  string  `json:"$id,omitempty"`
	Ref                 string  `json:"$ref,omitempty"`
	Title               string  `json:"title,omitempty"`
	Description         string  `json:"description,omitempty"`
	Type                any     `json:"type,omitempty"`
	Const               any     `json:"const,omitempty"`
	Enum                []any   `json:"enum,omitempty"`
	Pattern             string  `json:"pattern,omitempty"`
	Format              string  `json:"format,omitempty"`
	MaxLength           int     `json:"maxLength,omitempty"`
	Minimum             *int64  `json:"minimum,omitempty"`
	Maximum             *int64  `json:"maximum,omitempty"`
	MinItems            int     `json:"minItems,omitempty"`
	MaxItems            int     `json:"maxItems,omitempty"`
	Items               *node   `json:"items,omitempty"`
	Required            []any   `json:"required,omitempty"`
	Properties          *object `json:"properties,omitempty"`
	PropertyNames       *node   `json:"propertyNames,omitempty"`
	Additional          any     `json:"additionalProperties,omitempty"`
	If                  *node   `json:"if,omitempty"`
	Then                *node   `json:"then,omitempty"`
	Else                *node   `json:"else,omitempty"`
	Not                 *node   `json:"not,omitempty"`
	AllOf               []*node `json:"allOf,omitempty"`
	AnyOf               []*node `json:"anyOf,omitempty"`
	Default             any     `json:"default,omitempty"`
	Examples            []any   `json:"examples,omitempty"`
	Deprecated          bool    `json:"deprecated,omitempty"`
	DeprecationMessage  string  `json:"deprecationMessage,omitempty"`
	DoNotSuggest        bool    `json:"doNotSuggest,omitempty"`
	PatternErrorMessage string  `json:"patternErrorMessage,omitempty"`
	ErrorMessage        string  `json:"errorMessage,omitempty"`
	Defs                *object `json:"$defs,omitempty"`
}

// object is a JSON object whose members keep their order.
type object struct{ members []member }

// member is a schema under a name: a *node, or false for one that nothing fits.
type member struct {
	name   string
	schema any
}

func (o *object) add(name string, schema any) { o.members = append(o.members, member{name, schema}) }

// MarshalJSON writes the members in their order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := compact(m.name)
		if err != nil {
			return nil, err
		}
		value, err := compact(m.schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// compact is json.Marshal that leaves <, > and & as they are.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// print writes a schema as its file has it.
func print(n *node) ([]byte, error) {
	data, err := compact(n)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return short(b.Bytes()), nil
}

// short puts lists of plain values on one line, as people write them: half of the lines are in such lists.
func short(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	var out [][]byte
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if bytes.HasSuffix(line, []byte("[")) {
			joined := line
			end := i + 1
			for ; end < len(lines) && !bytes.ContainsAny(bytes.TrimRight(lines[end], ","), "[{]"); end++ {
				joined = append(append(bytes.Clone(joined), bytes.TrimSpace(lines[end])...), ' ')
			}
			if rest := bytes.TrimSpace(lines[end]); len(joined) < 160 && end > i+1 && rest[0] == ']' {
				out = append(out, append(bytes.TrimSuffix(joined, []byte(" ")), rest...))
				i = end
				continue
			}
		}
		out = append(out, line)
	}
	return bytes.Join(out, []byte("\n"))
}
