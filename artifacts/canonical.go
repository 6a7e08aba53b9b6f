package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// canon writes or reads JSON in the canonical form of RFC 8785, driven by one description of the fields for both directions.
// Because every value has exactly one canonical spelling, reading is a comparison with what would have been written: another key
// order, a repeated or unknown key, white space, another escape or number form are all errors at their byte.
type canon struct {
	reading bool
	out     []byte // writing: what was written so far
	in      string // reading: the whole text; strings that are read share its memory
	pos     int    // reading: the next byte
	first   bool   // no member of the current object or array was seen yet
	lists   map[string]readList
	err     error
}

// maxInteger is the largest integer that RFC 8785 can carry exactly.
const maxInteger = 1<<53 - 1

func (c *canon) fail(format string, args ...any) {
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf(format, args...)
	if c.reading {
		c.err = fmt.Errorf("byte %d: %w", c.pos, c.err)
	}
}

// take reads the literal s.
func (c *canon) take(s string) bool {
	if c.err != nil || len(c.in)-c.pos < len(s) || c.in[c.pos:c.pos+len(s)] != s {
		return false
	}
	c.pos += len(s)
	return true
}

func (c *canon) literal(s string) {
	if !c.reading {
		c.out = append(c.out, s...)
	} else if !c.take(s) {
		c.fail("%q is wanted here in canonical JSON", s)
	}
}

// object reads or writes { members }.
func (c *canon) object(members func(*canon)) {
	c.literal("{")
	outer := c.first
	c.first = true
	members(c)
	if c.reading && c.err == nil && !c.take("}") {
		c.fail("%s", c.unexpectedMember())
	}
	if !c.reading {
		c.out = append(c.out, '}')
	}
	c.first = outer
}

// unexpectedMember says what stands where an object should end.
func (c *canon) unexpectedMember() string {
	if key, ok := c.nextKey(); ok {
		return fmt.Sprintf("key %q is unknown, repeated or out of order", key)
	}
	return "not canonical JSON (RFC 8785)"
}

// nextKey returns the key of the member that comes next, without reading on.
func (c *canon) nextKey() (string, bool) {
	probe := *c
	if !probe.first {
		probe.take(",")
	}
	key, ok := probe.scanString()
	return key, ok && probe.take(":")
}

// member starts the member key. When present is false the member is left out in writing; in reading it may be absent, and
// member reports whether it is there. It must be called in the sorted order of the keys.
func (c *canon) member(key string, optional, present bool) bool {
	if c.err != nil {
		return false
	}
	if !c.reading {
		if optional && !present {
			return false
		}
		if !c.first {
			c.out = append(c.out, ',')
		}
		c.first = false
		c.out = append(append(append(c.out, '"'), key...), '"', ':')
		return true
	}
	start := c.pos
	if (c.first || c.take(",")) && c.take(`"`) && c.take(key) && c.take(`":`) {
		c.first = false
		return true
	}
	c.pos = start
	if !optional {
		if found, ok := c.nextKey(); ok {
			c.fail("key %q is unknown, repeated or out of order; %q is wanted here", found, key)
		}
		c.fail("key %q is wanted here", key)
	}
	return false
}

func (c *canon) str(key string, v *string) {
	if c.member(key, false, true) {
		c.stringValue(v)
		if *v == "" {
			c.fail("%q is empty", key)
		}
	}
}

func (c *canon) optStr(key string, v *string) {
	if c.member(key, true, *v != "") {
		c.stringValue(v)
		if *v == "" {
			c.fail("%q is empty; leave it out", key)
		}
	}
}

func (c *canon) integer(key string, v *int64) {
	if !c.member(key, false, true) {
		return
	}
	if !c.reading {
		if *v < 0 || *v > maxInteger {
			c.fail("%q is %d, not an integer from 0 to 2^53-1", key, *v)
		}
		c.out = strconv.AppendInt(c.out, *v, 10)
		return
	}
	start, n := c.pos, uint64(0)
	for c.pos < len(c.in) && c.in[c.pos] >= '0' && c.in[c.pos] <= '9' {
		hi, lo := bits.Mul64(n, 10)
		if n = lo + uint64(c.in[c.pos]-'0'); hi != 0 || n > maxInteger {
			c.fail("%q is not an integer from 0 to 2^53-1", key)
			return
		}
		c.pos++
	}
	if c.pos == start || c.in[start] == '0' && c.pos > start+1 {
		c.fail("%q is not an integer in canonical form", key)
		return
	}
	*v = int64(n)
}

func (c *canon) boolean(key string, v *bool) {
	if !c.member(key, false, true) {
		return
	}
	switch {
	case !c.reading:
		c.out = strconv.AppendBool(c.out, *v)
	case c.take("true"):
		*v = true
	case c.take("false"):
		*v = false
	default:
		c.fail("%q is not true or false", key)
	}
}

// readList is the list of strings that was last read under a key: its text and what it says.
type readList struct {
	text string
	list []string
}

// strings reads or writes a member that is an array of strings. One that is read again in the same words shares its memory with the first: neighbours often say
// the same.
func (c *canon) strings(key string, v *[]string) {
	if !c.reading {
		list(c, key, v, (*canon).stringValue)
		return
	}
	if !c.member(key, false, true) {
		return
	}
	if last := c.lists[key]; last.text != "" && c.take(last.text) {
		*v = last.list
		return
	}
	start := c.pos
	array(c, v, (*canon).stringValue)
	if c.err == nil {
		*v = slices.Clip(*v)
		c.lists[key] = readList{c.in[start:c.pos], *v}
	}
}

// list reads or writes a member that is an array.
func list[T any](c *canon, key string, v *[]T, item func(*canon, *T)) {
	if c.member(key, false, true) {
		array(c, v, item)
	}
}

// array reads or writes an array. One that is read is never nil.
func array[T any](c *canon, v *[]T, item func(*canon, *T)) {
	c.literal("[")
	if !c.reading {
		for i := range *v {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			item(c, &(*v)[i])
		}
		c.out = append(c.out, ']')
		return
	}
	*v = []T{}
	if c.take("]") {
		return
	}
	for c.err == nil {
		if len(*v) == cap(*v) {
			*v = slices.Grow(*v, max(4, len(*v)))
		}
		*v = append(*v, *new(T))
		item(c, &(*v)[len(*v)-1])
		if !c.take(",") {
			c.literal("]")
			return
		}
	}
}

// dict reads or writes an object with free keys, which RFC 8785 sorts by UTF-16 code units. A map that is read is never nil.
func dict[T any](c *canon, key string, v *map[string]T, item func(*canon, *T)) {
	if !c.member(key, false, true) {
		return
	}
	c.literal("{")
	if !c.reading {
		keys := make([]string, 0, len(*v))
		for k := range *v {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, compareUTF16)
		for i, k := range keys {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.stringValue(&k)
			c.out = append(c.out, ':')
			one := (*v)[k]
			item(c, &one)
		}
		c.out = append(c.out, '}')
		return
	}
	*v = map[string]T{}
	if c.take("}") {
		return
	}
	for last := ""; c.err == nil; {
		var k string
		c.stringValue(&k)
		if len(*v) > 0 && compareUTF16(last, k) >= 0 {
			c.fail("key %q is repeated or out of order", k)
		}
		last = k
		c.literal(":")
		var one T
		item(c, &one)
		(*v)[k] = one
		if !c.take(",") {
			c.literal("}")
			return
		}
	}
}

func (c *canon) stringValue(v *string) {
	if !c.reading {
		if !utf8.ValidString(*v) {
			c.fail("%q is not UTF-8", *v)
			return
		}
		c.out = appendString(c.out, *v)
		return
	}
	if c.err != nil {
		return
	}
	s, ok := c.scanString()
	if !ok {
		c.fail("a string in canonical form is wanted here")
		return
	}
	*v = s
}

// scanString reads a string in canonical spelling.
func (c *canon) scanString() (string, bool) {
	if !c.take(`"`) {
		return "", false
	}
	start, plain := c.pos, true
	for i := start; i < len(c.in); i++ {
		switch b := c.in[i]; {
		case b == '"':
			raw := c.in[start:i]
			c.pos = i + 1
			if plain {
				return raw, true
			}
			return unescape(raw)
		case b == '\\':
			plain = false
			i++
		case b < 0x20:
			return "", false
		case b >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", false
}

// escapes are the two-character escapes of RFC 8785; other control characters are written \u00xx in lower case.
var escapes = [...]byte{'"': '"', '\\': '\\', '\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

const hexDigits = "0123456789abcdef"

// appendString appends s, which is UTF-8, as a canonical JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		if e := escapes[b]; e != 0 {
			dst = append(dst, '\\', e)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	return append(append(dst, s[done:]...), '"')
}

// unescape reads the inside of a string and accepts only the spelling that appendString would write. raw has no control character that no
// backslash stands before.
func unescape(raw string) (string, bool) {
	if !utf8.ValidString(raw) {
		return "", false
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if rest, ok := strings.CutPrefix(raw[i:], "u00"); ok {
			if len(rest) < 2 {
				return "", false
			}
			hi, lo := strings.IndexByte("01", rest[0]), strings.IndexByte(hexDigits, rest[1])
			if hi < 0 || lo < 0 || escapes[hi<<4|lo] != 0 {
				return "", false
			}
			out = append(out, byte(hi<<4|lo))
			i += 4
			continue
		}
		if i == len(raw) || raw[i] == 0 { // 0 is no escape in the table
			return "", false
		}
		e := bytes.IndexByte(escapes[:], raw[i])
		if e < 0 {
			return "", false
		}
		out = append(out, byte(e))
	}
	return string(out), true
}

// compareUTF16 orders strings by UTF-16 code units, as RFC 8785 sorts keys.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return slices.Compare(utf16.AppendRune(nil, ra), utf16.AppendRune(nil, rb))
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}

var errTrailing = errors.New("more bytes behind the end")
