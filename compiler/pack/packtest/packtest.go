// Package packtest reads the worked cases of compiler/pack/testdata, for the tests of the package and of the program.
package packtest

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// Load reads a file of cases; a key that no field takes is an error.
func Load(t testing.TB, name string) *File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file := &File{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 50 {
		t.Fatalf("%s has only %d cases", name, len(file.Cases))
	}
	return file
}

// Document builds one pack: a fixture with its edits (first occurrence) and what is appended, or literal text, then repetitions, padding and a prefix.
type Document struct {
	Base  string
	Text  *string
	Edits []struct{ From, To string }
	// Append is put at the end; Repeat puts count copies of unit, {i} being the index, in place of marker.
	Append string
	Repeat struct {
		Marker, Unit string
		Count        int
	}
	CRLF      bool   `yaml:"crlf"`
	PadTo     int    `yaml:"pad_to"`
	PrefixHex string `yaml:"prefix_hex"`
}

// Bytes builds the pack from the file's fixtures.
func (d Document) Bytes(t testing.TB, fixtures map[string]string) []byte {
	t.Helper()
	text := fixtures[d.Base]
	if d.Text != nil {
		text = *d.Text
	} else if text == "" {
		t.Fatalf("no fixture %q", d.Base)
	}
	for _, e := range d.Edits {
		if !strings.Contains(text, e.From) {
			t.Fatalf("edit %q finds nothing", e.From)
		}
		text = strings.Replace(text, e.From, e.To, 1)
	}
	text += d.Append
	if d.Repeat.Count > 0 {
		var b strings.Builder
		for i := range d.Repeat.Count {
			b.WriteString(strings.ReplaceAll(d.Repeat.Unit, "{i}", strconv.Itoa(i)))
		}
		text = strings.Replace(text, d.Repeat.Marker, b.String(), 1)
	}
	if d.CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if d.PadTo > len(text) {
		text += "#" + strings.Repeat("x", d.PadTo-len(text)-1)
	}
	prefix, err := hex.DecodeString(d.PrefixHex)
	if err != nil {
		t.Fatal(err)
	}
	return append(prefix, text...)
}

// Input is what a case asks about; each area uses some of it.
type Input struct {
	Document `yaml:",inline"`

	A, B     Document
	Pattern  string
	Patterns []string
	Table    string
	Glob     string
	CPU      *string
	Memory   *string
	Home     string

	Tree []struct {
		Path string
		Link string
		Pack *Document
	}
	Ref     string
	PackDir string `yaml:"pack_dir"`

	Me        int
	FileOwner int    `yaml:"file_owner"`
	DirOwner  int    `yaml:"dir_owner"`
	FileMode  string `yaml:"file_mode"`
	DirMode   string `yaml:"dir_mode"`

	Config     yaml.Node
	Run        Run
	Packs      map[string]Document
	Unblocks   []string
	Host       string
	Port       int
	ResolvesTo []string `yaml:"resolves_to"`
}

// Run holds the options of one run.
type Run struct {
	Pack, Profile, CPU, Memory, Harness, Project, Home string
	Copy, Safe, Learn                                  bool
	NoMCP                                              bool `yaml:"no_mcp"`
	Unmask                                             []string
	HostPorts                                          []int `yaml:"host_ports"`
	Yolo                                               *bool
}

// Setting is what must hold of a setting; nil fields may be anything.
type Setting struct{ Value, Source, Origin, Requested *string }

// Violation is what must hold of a violation; nil fields may be anything.
type Violation struct {
	Key                                                             string
	Source, Attempted, Enforced, Constraint, Message, Detail, Fatal *string
}

// Decision is what must hold of a decision; nil and empty fields may be anything.
type Decision struct {
	Allowed     *bool
	Rule        string
	Match       *string
	Unblockable *bool
	Step        *int
	Dial        string
}

// Expect is what must hold; nil and empty fields may be anything.
type Expect struct {
	OK             *bool
	Key            *string
	Code           string
	Message        string
	ReasonContains string `yaml:"reason_contains"`
	Pack           map[string]yaml.Node
	Loads          string
	Digest         string
	Same           *bool
	Canonical      *string
	Broad          *bool    `yaml:"broad_in_allow"`
	AsAdminBlock   []string `yaml:"as_admin_block"`
	Each           map[string]yaml.Node
	Matches        []string
	Covers         []string
	No             []string          `yaml:"no"`
	MostSpecific   map[string]string `yaml:"most_specific"`
	BadKeys        []string          `yaml:"bad_keys"`
	Value          *int64
	Settings       map[string]Setting
	Violations     *[]Violation
	ErrorContains  string              `yaml:"error_contains"`
	ListHas        map[string][]string `yaml:"list_has"`
	ListLacks      map[string][]string `yaml:"list_lacks"`
	Decision       `yaml:",inline"`
}

// File is the file of cases.
type File struct {
	Format   string
	Fixtures map[string]string
	Cases    []struct {
		ID     string
		Area   string
		Input  Input
		Expect Expect
		Why    string
	}
}
