package main

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
)

// chainJSON is how one field came to be.
type chainJSON struct {
	Field   string       `json:"field"`
	Merging string       `json:"merging"`
	Unset   *unsetJSON   `json:"unset,omitempty"`
	Layers  []layerJSON  `json:"layers"`
	Implied []valueJSON  `json:"implied,omitempty"`
	Presets []presetJSON `json:"presets,omitempty"`
}

// unsetJSON says what holds for a field that nobody wrote.
type unsetJSON struct {
	Value string `json:"value"`
	Why   string `json:"why"`
}

type layerJSON struct {
	Document string        `json:"document"`
	Unit     bool          `json:"unit"`
	Values   []writtenJSON `json:"values"`
}

type writtenJSON struct {
	Key    string     `json:"key"`
	Value  string     `json:"value"`
	Fate   string     `json:"fate"`
	By     string     `json:"by,omitempty"`
	Source sourceJSON `json:"source"`
}

type presetJSON struct {
	Name    string     `json:"name"`
	BuiltIn bool       `json:"builtIn"`
	Hosts   []string   `json:"hosts"`
	Source  sourceJSON `json:"source,omitzero"`
}

// mergings are the words for what a layer makes of an earlier one: for the JSON form, and for people.
var mergings = [...][2]string{
	effective.Replaced: {"replaced", "the last layer that writes it decides"},
	effective.United:   {"united", "the entries of all layers add up"},
	effective.Keyed:    {"keyed", "for each key, the last layer that writes the key decides"},
}

func (x *explanation) chain(c effective.Chain) chainJSON {
	out := chainJSON{Field: c.Field.Key, Merging: mergings[c.Field.Merging][0], Layers: []layerJSON{}}
	presets := map[string]bool{}
	for _, l := range c.Layers {
		layer := layerJSON{Document: l.Doc.ID(), Unit: l.Unit}
		for _, v := range l.Values {
			by := ""
			if v.By != nil {
				by = v.By.ID()
			}
			layer.Values = append(layer.Values, writtenJSON{v.Key, v.Value.Value, v.Fate.String(), by, x.source(v.Pos)})
			if c.Field.Key == "egress.presets" && v.Entry >= 0 && v.Fate == effective.InEffect {
				presets[v.Value.Value] = true
			}
		}
		out.Layers = append(out.Layers, layer)
	}
	for _, v := range c.Implied {
		out.Implied = append(out.Implied, valueJSON{v.Key, v.Value, x.source(v.Pos)})
	}
	if len(c.Layers) == 0 && len(c.Implied) == 0 {
		value, why := x.target.Policy.Unset(c.Field)
		out.Unset = &unsetJSON{value, why}
	}
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		out.Presets = append(out.Presets, x.preset(name))
	}
	return out
}

// preset says what a preset stands for and where it is defined.
func (x *explanation) preset(name string) presetJSON {
	out := presetJSON{Name: name, Hosts: []string{}}
	_, out.BuiltIn = policy.BuiltinPatterns(name)
	if hosts, ok := x.compiled.Resolver.Preset(name); ok {
		for _, h := range hosts {
			out.Hosts = append(out.Hosts, h.String())
		}
	}
	if doc := x.compiled.Repo.Preset(name); doc != nil && !out.BuiltIn {
		out.Source = x.source(doc.Name.Pos)
	}
	return out
}

func (p presetJSON) String() string {
	if p.BuiltIn {
		return "preset " + p.Name + " is built into halo"
	}
	return "preset " + p.Name + " is defined at " + p.Source.String()
}

// places lists every place in a chain, for the commits.
func (c *chainJSON) places() []*sourceJSON {
	var out []*sourceJSON
	for i := range c.Layers {
		for j := range c.Layers[i].Values {
			out = append(out, &c.Layers[i].Values[j].Source)
		}
	}
	for i := range c.Implied {
		out = append(out, &c.Implied[i].Source)
	}
	for i := range c.Presets {
		if !c.Presets[i].BuiltIn {
			out = append(out, &c.Presets[i].Source)
		}
	}
	return out
}

func (c *chainJSON) print(w *strings.Builder) {
	if c.Unset != nil {
		value := c.Unset.Value
		if value == "" {
			value = "not set"
		}
		fmt.Fprintf(w, "\n%s: no layer writes it: %s  # built in: %s\n", c.Field, value, c.Unset.Why)
		return
	}
	fmt.Fprintf(w, "\n%s: %s\n", c.Field, mergings[slices.IndexFunc(mergings[:], func(m [2]string) bool { return m[0] == c.Merging })][1])
	for _, l := range c.Layers {
		fmt.Fprintf(w, "  %s\n", l.Document)
		width := 0
		for _, v := range l.Values {
			width = max(width, utf8.RuneCountInString(v.label(c.Field)))
		}
		for _, v := range l.Values {
			s := v.Source
			fmt.Fprintf(w, "    %-*s  %s  # %s:%d:%d%s\n", width, v.label(c.Field), v.fate(), s.File, s.Line, s.Column, s.Commit)
		}
	}
	for _, v := range c.Implied {
		fmt.Fprintf(w, "  the units together\n    %s  in effect  # %s\n", firstLine(v.Value), v.Source)
	}
	for _, p := range c.Presets {
		fmt.Fprintf(w, "  %s: %s\n", p, strings.Join(p.Hosts, ", "))
	}
}

// label is the value, with the key of one that is more than an item of a list.
func (v writtenJSON) label(field string) string {
	rest := strings.TrimPrefix(v.Key, field)
	if rest == "" || strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
		return firstLine(v.Value)
	}
	return strings.TrimPrefix(rest, ".") + "=" + firstLine(v.Value)
}

// fate is what became of a value, for people.
func (v writtenJSON) fate() string {
	switch {
	case v.Fate == effective.InEffect.String():
		return "in effect"
	case v.Fate == effective.Beaten.String():
		return "beaten by " + v.By
	case v.Fate == effective.Repeated.String():
		return "said already by " + v.By
	case v.By != "":
		return "narrowed by " + v.By + ": units that apply together allow what each of them allows"
	}
	return "narrowed: units that apply together allow what each of them allows"
}

// commitJSON is the commit that last changed a line, or why there is none to name.
type commitJSON struct {
	Hash    string `json:"hash,omitempty"`
	Date    string `json:"date,omitempty"`
	Shallow bool   `json:"shallow,omitempty"`
	None    string `json:"none,omitempty"`
}

func (s sourceJSON) String() string {
	if s.File == "" {
		return "built in"
	}
	return fmt.Sprintf("%s:%d:%d %s%s", s.File, s.Line, s.Column, s.Document, s.Commit)
}

// String is what follows a place.
func (c *commitJSON) String() string {
	switch {
	case c == nil:
		return ""
	case c.None != "":
		return " (no commit: " + c.None + ")"
	case c.Shallow:
		return " (commit " + c.Hash[:12] + " of " + c.Date + " or an older one that this shallow clone lacks)"
	}
	return " (commit " + c.Hash[:12] + " of " + c.Date + ")"
}

// commits adds the commit of every place when --commits asks for it. Git never makes the command fail.
func (x *explanation) commits(places []*sourceJSON) {
	if !x.c.Bool("commits") {
		return
	}
	byFile := map[string][]*sourceJSON{}
	for _, s := range places {
		if s.File != "" {
			byFile[s.File] = append(byFile[s.File], s)
		}
	}
	for file, places := range byFile {
		data, err := fs.ReadFile(x.repo.fs, file)
		if err != nil {
			continue
		}
		var lines []int
		for _, s := range places {
			lines = append(lines, s.Line)
		}
		blamed := artifacts.Blame(x.c.Context, x.repo.dir, file, data, lines)
		for _, s := range places {
			c := blamed[s.Line]
			s.Commit = &commitJSON{Hash: c.Commit, Shallow: c.Shallow, None: c.Reason}
			if c.Commit != "" {
				s.Commit.Date = c.Time.Format("2006-01-02")
			}
		}
	}
}
