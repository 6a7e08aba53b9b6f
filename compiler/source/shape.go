package source

// Type is the type of the value of a key.
type Type uint8

// The types of values: a word is one of a few texts, a mapping has known keys, a table has keys of the author's choice, and any value is whatever a harness
// takes there.
const (
	AnyValue Type = iota
	TextValue
	WordValue
	BoolValue
	WholeValue
	NumberValue
	ListValue
	MappingValue
	TableValue
)

// Shape says what the reader takes as the value of a key. The reader itself does not look at it: schemas are made from it, when halo is built.
type Shape struct {
	Type Type
	// Form names the spelling that a text must have; empty for any text.
	Form string
	// Words are the values of a word. Old ones are read and are not to be written.
	Words, Old []string
	// Min and Max bound a number.
	Min, Max int64
	// Least and Most bound the length of a list; Most is 0 when there is no limit.
	Least, Most int
	// Item describes the items of a list and the values of a table; Names the keys of a table, nil for any.
	Item, Names *Shape
	// Keys are the keys of a mapping, Need those it cannot do without. Of the keys in One, exactly one is given.
	Keys      []Key
	Need, One []string
	// Or is another shape that is taken as well.
	Or *Shape
	// Null is set when null stands for a value that is not given.
	Null bool
	// Go is the Go type that a mapping is read into, for its documentation: a nil *T.
	Go any
}

// Key is one key of a mapping.
type Key struct {
	Name string
	// Hint, when set, makes it a refused key, without a shape.
	Hint  string
	Shape Shape
	// At is the place of the value in its Go type, for its documentation: a func(*T) *V.
	At any
}

// Describe returns the shape of a mapping that Map reads by these fields.
func Describe[T any](fields []Field[T]) Shape {
	s := Shape{Type: MappingValue, Go: (*T)(nil), Keys: make([]Key, 0, len(fields))}
	for i := range fields {
		k := Key{Name: fields[i].Name, Hint: fields[i].Hint, At: fields[i].At}
		if fields[i].Shape != nil {
			k.Shape = fields[i].Shape()
		}
		s.Keys = append(s.Keys, k)
	}
	return s
}
