// Package tape keeps values as text between two runs of the same program. The walk over a type is written down once and serves both ways: it writes the values one
// after the other, or reads them again into the same places. Nothing on a tape says what it is, so the reader must be the walk of the writer.
package tape

import (
	"encoding/binary"
)

// Tape is one text, written or read.
type Tape struct {
	out     []byte
	in      string
	reading bool
	bad     bool
}

// Writer returns a tape that appends to buf.
func Writer(buf []byte) *Tape { return &Tape{out: buf} }

// Reader returns a tape with a text. Texts that are read from it share its memory.
func Reader(text string) *Tape { return &Tape{in: text, reading: true} }

// Reading reports whether values are read.
func (t *Tape) Reading() bool { return t.reading }

// Fail says that a value cannot be kept, or that what was read is none. A tape that failed reads zero values.
func (t *Tape) Fail() { t.bad, t.in = true, "" }

// Text returns what was written; ok is false when something could not be.
func (t *Tape) Text() (text []byte, ok bool) { return t.out, !t.bad }

// Done reports whether the text was read to its end and every value was there.
func (t *Tape) Done() bool { return !t.bad && t.in == "" }

// Num is a number that is seldom large.
func (t *Tape) Num(v *uint64) {
	if !t.reading {
		t.out = binary.AppendUvarint(t.out, *v)
		return
	}
	*v = 0
	for shift := 0; shift < 64 && t.in != ""; shift += 7 {
		c := t.in[0]
		t.in = t.in[1:]
		*v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return
		}
	}
	*v = 0
	t.Fail()
}

// Int is a number.
func (t *Tape) Int(v *int64) {
	n := uint64(*v)
	t.Num(&n)
	*v = int64(n)
}

// Mark is yes or no.
func (t *Tape) Mark(v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	t.Num(&n)
	*v = n == 1
}

// Str is a text of any length.
func (t *Tape) Str(v *string) {
	n := uint64(len(*v))
	t.Num(&n)
	if !t.reading {
		t.out = append(t.out, *v...)
		return
	}
	if n > uint64(len(t.in)) {
		t.Fail()
		n = 0
	}
	*v, t.in = t.in[:n], t.in[n:]
}

// Bytes are as many bytes as there is room for.
func (t *Tape) Bytes(v []byte) {
	if !t.reading {
		t.out = append(t.out, v...)
		return
	}
	if len(v) > len(t.in) {
		t.Fail()
		return
	}
	t.in = t.in[copy(v, t.in):]
}

// Each walks a list. One that is nil stays nil.
func Each[T any](t *Tape, l *[]T, item func(*T)) {
	n := uint64(0)
	if *l != nil {
		n = uint64(len(*l)) + 1
	}
	t.Num(&n)
	if t.reading {
		*l = nil
		// An item takes a byte at least.
		if n > uint64(len(t.in))+1 {
			t.Fail()
			n = 0
		}
		if n > 0 {
			*l = make([]T, n-1)
		}
	}
	for i := range *l {
		item(&(*l)[i])
	}
}
