package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler/trace"
	"halos.dev/halo/lint/report"
)

func lineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "file", Usage: "with --harness: walk the lines of the rendered file `DEST` back to what produced them; DEST:LINE is one line, and a unique file name is enough"},
		&cli.StringFlag{Name: "line", Usage: "with --harness: walk the line `N` of the rendered file back; with --file when there are several files"},
		&cli.StringFlag{Name: "rendered", Usage: "with --harness: walk every rendered line that contains `TEXT` back"},
	}
}

// lineQuestion is which rendered lines are asked about.
type lineQuestion struct {
	any      bool
	file     string
	line     int
	rendered string
}

// linesOf reads the flags that ask about rendered lines.
func linesOf(c *cli.Context, s subject, harness string) (lineQuestion, error) {
	q := lineQuestion{any: c.IsSet("file") || c.IsSet("line") || c.IsSet("rendered"), file: c.String("file"), rendered: c.String("rendered")}
	switch {
	case !q.any:
		return q, nil
	case s != subject{}:
		return q, errors.New("explain takes a key, host or path, or --file, --line and --rendered, not both")
	case harness == "":
		return q, errors.New("--file, --line and --rendered need --harness, and --os for another system than this machine's")
	case c.IsSet("rendered") && c.IsSet("line"):
		return q, errors.New("--rendered takes no --line")
	}
	number := c.String("line")
	if at := strings.LastIndexByte(q.file, ':'); at > 0 && !c.IsSet("line") {
		if n := q.file[at+1:]; n != "" && strings.Trim(n, "0123456789") == "" {
			q.file, number = q.file[:at], n
		}
	}
	if number == "" && !c.IsSet("line") {
		return q, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return q, fmt.Errorf("line %q is not a number from 1", number)
	}
	q.line = n
	return q, nil
}

// lineJSON is a rendered line with what it depends on.
type lineJSON struct {
	Line   int        `json:"line"`
	Text   string     `json:"text"`
	Closes int        `json:"closes,omitempty"`
	Parts  []partJSON `json:"parts"`
}

type partJSON struct {
	Texts    []string      `json:"texts"`
	Pointer  string        `json:"pointer"`
	Constant bool          `json:"constant"`
	Whole    bool          `json:"whole,omitempty"`
	Needs    []causeJSON   `json:"needs,omitempty"`
	AnyOf    [][]causeJSON `json:"anyOf,omitempty"`
}

type causeJSON struct {
	Key     string       `json:"key"`
	Value   string       `json:"value,omitempty"`
	Sources []sourceJSON `json:"sources"`
	Preset  *presetJSON  `json:"preset,omitempty"`
}

type linesJSON struct {
	Target  string        `json:"target"`
	Profile string        `json:"profile"`
	Harness string        `json:"harness"`
	OS      string        `json:"os"`
	Files   []linesOfJSON `json:"files"`
}

type linesOfJSON struct {
	Dest  string     `json:"dest"`
	Lines []lineJSON `json:"lines"`
}

// lines walks rendered lines back to what produced them.
func (x *explanation) lines(q lineQuestion) error {
	files, err := x.files(q)
	if err != nil {
		return err
	}
	traced := x.compiled.Trace(x.target.Policy, x.rendering, func(dest string, n int, text string) bool {
		return slices.Contains(files, dest) && (q.line == 0 || q.line == n) && strings.Contains(text, q.rendered)
	})
	out := linesJSON{Target: x.target.ID, Profile: x.target.Policy.Profile, Harness: x.rendering.Harness.ID, OS: x.system, Files: []linesOfJSON{}}
	var places []*sourceJSON
	for _, f := range traced {
		if len(f.Lines) == 0 {
			continue
		}
		file := linesOfJSON{Dest: f.Dest}
		for _, l := range f.Lines {
			line := lineJSON{Line: l.Number, Text: l.Text, Closes: l.Closes, Parts: []partJSON{}}
			for _, p := range l.Parts {
				line.Parts = append(line.Parts, x.part(p))
			}
			file.Lines = append(file.Lines, line)
		}
		out.Files = append(out.Files, file)
	}
	switch {
	case len(out.Files) == 0 && q.rendered != "":
		return fmt.Errorf("no line that is rendered for %s on %s contains %q", out.Harness, out.OS, q.rendered)
	case len(out.Files) == 0 && q.line > 0:
		return fmt.Errorf("%s has no line %d", files[0], q.line)
	}
	for _, f := range out.Files {
		for _, l := range f.Lines {
			for _, p := range l.Parts {
				for _, set := range append([][]causeJSON{p.Needs}, p.AnyOf...) {
					for i := range set {
						for j := range set[i].Sources {
							places = append(places, &set[i].Sources[j])
						}
						if set[i].Preset != nil {
							places = append(places, &set[i].Preset.Source)
						}
					}
				}
			}
		}
	}
	x.commits(places)
	if x.json {
		return report.WriteJSON(x.out, out)
	}
	w := &strings.Builder{}
	for _, f := range out.Files {
		fmt.Fprintf(w, "%s  (%s, %s on %s)\n", f.Dest, out.Target, out.Harness, out.OS)
		for _, l := range f.Lines {
			// In a whole file the line that closes something has its answer above.
			l.print(w, q.line == 0 && q.rendered == "")
		}
	}
	_, err = io.WriteString(x.out, w.String())
	return err
}

// files returns the destinations that are asked about.
func (x *explanation) files(q lineQuestion) ([]string, error) {
	var all, named []string
	for _, f := range x.rendering.Files {
		all = append(all, f.Dest)
		base := f.Dest[strings.LastIndexAny(f.Dest, `/\`)+1:]
		if f.Dest == q.file {
			return []string{f.Dest}, nil
		}
		if base == q.file {
			named = append(named, f.Dest)
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s on %s gets no file from this policy", x.rendering.Harness.ID, x.system)
	case len(named) == 1:
		return named, nil
	case q.file != "":
		return nil, fmt.Errorf("no file %s is rendered for %s on %s; there are %s", q.file, x.rendering.Harness.ID, x.system, strings.Join(all, ", "))
	case q.line > 0 && len(all) > 1:
		return nil, fmt.Errorf("--line needs --file, because %s on %s gets several files: %s", x.rendering.Harness.ID, x.system, strings.Join(all, ", "))
	}
	return all, nil
}

func (x *explanation) part(p trace.Part) partJSON {
	causes := func(cs []trace.Cause) []causeJSON {
		var out []causeJSON
		for _, c := range cs {
			j := causeJSON{Key: c.Key, Value: c.Value, Sources: []sourceJSON{}}
			for _, pos := range c.Pos {
				j.Sources = append(j.Sources, x.source(pos))
			}
			if c.Field == "egress.presets" && c.Entry >= 0 {
				preset := x.preset(c.Value)
				j.Preset = &preset
			}
			out = append(out, j)
		}
		return out
	}
	out := partJSON{Texts: p.Texts, Pointer: p.Pointer, Constant: p.Constant, Whole: p.Whole, Needs: causes(p.Needs)}
	for _, set := range p.AnyOf {
		out.AnyOf = append(out.AnyOf, causes(set))
	}
	return out
}

func (l lineJSON) print(w *strings.Builder, whole bool) {
	fmt.Fprintf(w, "%4d  %s\n", l.Line, report.Printable(l.Text))
	if l.Closes > 0 {
		fmt.Fprintf(w, "        <- closes line %d\n", l.Closes)
		if whole {
			return
		}
	}
	for _, p := range l.Parts {
		if len(l.Parts) > 1 {
			fmt.Fprintf(w, "        %s\n", report.Printable(strings.Join(p.Texts, ", ")))
		}
		switch {
		case p.Constant:
			w.WriteString("        <- constant: rendered whatever the policy says\n")
		case p.Whole:
			w.WriteString("        <- constant: in every rendering of this file, which is there because of\n")
		}
		for _, c := range p.Needs {
			fmt.Fprintf(w, "        <- %s\n", c)
		}
		switch {
		case len(p.AnyOf) > 0 && len(p.Needs) > 0:
			w.WriteString("        and any one of these is enough:\n")
		case len(p.AnyOf) > 0:
			w.WriteString("        any one of these is enough:\n")
		}
		for _, set := range p.AnyOf {
			for i, c := range set {
				mark := "<-"
				if i > 0 {
					mark = " +"
				}
				fmt.Fprintf(w, "        %s %s\n", mark, c)
			}
		}
	}
}

func (c causeJSON) String() string {
	out := c.Key
	if c.Value != "" {
		out += "  " + firstLine(c.Value)
	}
	places := make([]string, len(c.Sources))
	for i, s := range c.Sources {
		places[i] = s.String()
	}
	out += "  # " + strings.Join(places, ", ")
	if c.Preset != nil {
		out += "; " + c.Preset.String()
	}
	return out
}
