package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func (p *program) explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say where the policy of a ring comes from: a key, a host, a path or a line of a rendered file", ArgsUsage: "[KEY|HOST|PATH]",
		Description: "Without an argument, prints every value of the effective policy with the document, line and column it comes from.\n" +
			"KEY is a key or a section, such as egress or sandbox.mode: its value, and every layer that wrote it with what became of each entry. HOST is a host name or URL and PATH\n" +
			"begins with / or ~/: the decision of the policy, and all rules that match, the one that decides first. --key, --host and --path say which is meant.\n" +
			"With --harness and --os, what that harness holds follows; with --line, --file or --rendered, lines of its files are walked back to what produced them.\n" +
			"--commits adds the commit that last changed each line. Exit status 0 when there is an answer, whatever it is, and 2 when there is none.",
		Flags: slices.Concat(targetFlags(), []cli.Flag{osFlag(), expandFlag(),
			&cli.StringFlag{Name: "harness", Usage: "also say what `HARNESS` holds of it"},
			&cli.StringFlag{Name: "key", Usage: "explain the key or section `KEY`"},
			&cli.StringFlag{Name: "host", Usage: "explain the decision about the `HOST` or URL"},
			&cli.StringFlag{Name: "path", Usage: "explain the decision about the `PATH`: absolute, below ~/, or in the workspace"},
			&cli.BoolFlag{Name: "commits", Usage: "add the commit that last changed each line, as git blame tells it"}},
			lineFlags()),
		Action: p.explain,
	}
}

// subject is what is to be explained: a key, a host or a path; without a kind, everything.
type subject struct{ kind, text string }

// subjectOf reads the argument or one of the flags that stand for it.
func subjectOf(c *cli.Context) (subject, error) {
	arg, err := oneArg(c, "key, host or path")
	if err != nil {
		return subject{}, err
	}
	var given []subject
	if c.NArg() > 0 {
		given = append(given, subject{"", arg})
	}
	for _, kind := range []string{"key", "host", "path"} {
		if c.IsSet(kind) {
			given = append(given, subject{kind, c.String(kind)})
		}
	}
	switch {
	case len(given) == 0:
		return subject{}, nil
	case len(given) > 1:
		return subject{}, errors.New("explain takes one of KEY, HOST, PATH, --key, --host and --path")
	case given[0].text == "":
		return subject{}, errors.New("explain needs a key, host or path that is not empty")
	case given[0].kind == "":
		return sort(arg)
	}
	return given[0], nil
}

// sort decides what an argument is by its form.
func sort(arg string) (subject, error) {
	section, _, dotted := strings.Cut(arg, ".")
	section, _, _ = strings.Cut(section, "[")
	_, err := host.ParseName(arg)
	switch {
	case slices.Contains(keys(), section):
		return subject{"key", arg}, nil
	case strings.HasPrefix(arg, "/"), strings.HasPrefix(arg, "~"), len(arg) > 2 && arg[1] == ':' && (arg[2] == '\\' || arg[2] == '/'):
		return subject{"path", arg}, nil
	case strings.Contains(arg, "://"):
		return subject{"host", arg}, nil
	case err == nil && (dotted || strings.Contains(arg, ":")) && diag.Nearest(arg, keys()) == "":
		return subject{"host", arg}, nil
	case strings.Contains(arg, "/"):
		return subject{}, fmt.Errorf("%q is no key, host or path of its own form; write --path for a path in the workspace, or https:// before a host", arg)
	}
	err = unknownKey(arg)
	if _, bad := host.ParseName(arg); bad == nil {
		err = fmt.Errorf("%w; for the host of that name write --host %s", err, arg)
	}
	return subject{}, err
}

// keys lists everything that names a part of the model: sections, fields and the other spelling of the sandbox mode.
func keys() []string {
	out := []string{sandboxSpelling}
	for _, f := range effective.Fields() {
		for key := f.Key; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
			if !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

func unknownKey(key string) error {
	if near := diag.Nearest(key, keys()); near != "" {
		return fmt.Errorf("there is no key %q; did you mean %s?", key, near)
	}
	return fmt.Errorf("there is no key %q; sections are %s", key, strings.Join(sections(), ", "))
}

func sections() []string {
	out := slices.DeleteFunc(keys(), func(k string) bool { return strings.Contains(k, ".") })
	slices.Sort(out)
	return out
}

// sandboxSpelling is the other spelling of sandbox.mode in documents.
const sandboxSpelling = "permissions.sandbox"

// fieldsOf returns the fields that a key names or lies in.
func fieldsOf(key string) ([]effective.Field, error) {
	var out []effective.Field
	for _, f := range effective.Fields() {
		if covers(key, f.Key) || strings.HasPrefix(key, f.Key+"[") || f.Merging == effective.Keyed && strings.HasPrefix(key, f.Key+".") {
			out = append(out, f)
		}
	}
	if out == nil {
		return nil, unknownKey(key)
	}
	return out, nil
}

// covers reports whether a key is another or a part of it.
func covers(key, other string) bool {
	rest, ok := strings.CutPrefix(other, key)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// explanation is what every form of the command works on.
type explanation struct {
	*program
	c         *cli.Context
	repo      *repo
	compiled  *compiler.Compiled
	rep       *report.Report
	target    effective.Target
	system    string
	json      bool
	rendering *compiler.Rendering
}

type explainJSON struct {
	Target  string      `json:"target"`
	Profile string      `json:"profile"`
	Values  []valueJSON `json:"values"`
	Chain   []chainJSON `json:"chain,omitempty"`
	Files   []string    `json:"files,omitempty"`
	Gaps    []gapJSON   `json:"gaps,omitempty"`
}

type valueJSON struct {
	Key    string     `json:"key"`
	Value  string     `json:"value"`
	Source sourceJSON `json:"source"`
}

func (p *program) explain(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if c.Bool("expand") {
		return p.expand(c, f)
	}
	subject, err := subjectOf(c)
	if err != nil {
		return err
	}
	system, err := system(c)
	if err != nil {
		return err
	}
	id := c.String("harness")
	if id != "" && !slices.Contains(policy.Harnesses, id) {
		return fmt.Errorf("--harness %s is not one of %s", id, strings.Join(policy.Harnesses, ", "))
	}
	asked, err := linesOf(c, subject, id)
	if err != nil {
		return err
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	units := c.StringSlice("unit")
	compiled, rep, err := p.query(c, r, compiler.Input{NoRender: true, Question: &policy.Question{Units: units}})
	if err != nil {
		return err
	}
	t, err := compiled.Resolve(compiler.Who{Ring: c.String("ring"), Units: units})
	if err != nil {
		return err
	}
	x := &explanation{program: p, c: c, repo: r, compiled: compiled, rep: rep, target: t, system: system, json: f == "json"}
	if id != "" {
		i := slices.IndexFunc(compiled.Renderings(t.Policy, system), func(r *compiler.Rendering) bool { return r.Harness.ID == id })
		if i < 0 {
			return fmt.Errorf("profile %s does not enable %s", t.Policy.Profile, id)
		}
		x.rendering = compiled.Renderings(t.Policy, system)[i]
	}
	switch {
	case asked.any:
		return x.lines(asked)
	case subject.kind == "host":
		return x.host(subject.text)
	case subject.kind == "path":
		return x.path(subject.text)
	}
	return x.key(subject.text)
}

// key explains a key or a section, or lists every value.
func (x *explanation) key(key string) error {
	if key == sandboxSpelling {
		key = "sandbox.mode"
	}
	out := explainJSON{Target: x.target.ID, Profile: x.target.Policy.Profile, Values: []valueJSON{}}
	var fields []effective.Field
	if key != "" {
		var err error
		if fields, err = fieldsOf(key); err != nil {
			return err
		}
	}
	for _, v := range effective.Values(x.target.Policy) {
		if key == "" || covers(key, v.Key) {
			out.Values = append(out.Values, valueJSON{v.Key, v.Value, x.source(v.Pos)})
		}
	}
	for _, f := range fields {
		chain := x.target.Policy.Chain(f)
		if len(chain.Layers) == 0 && strings.HasPrefix(f.Key, "harnesses.") && key != f.Key {
			continue // what nobody wrote for one harness of six is no news
		}
		out.Chain = append(out.Chain, x.chain(chain))
	}
	if len(out.Values) == 0 && len(fields) == 1 && key != fields[0].Key && !strings.HasPrefix(fields[0].Key, key+".") && len(out.Chain) > 0 && len(out.Chain[0].Layers) > 0 {
		// An override is one value in the list and several in the chain.
		if !slices.ContainsFunc(out.Chain[0].Layers, func(l layerJSON) bool {
			return slices.ContainsFunc(l.Values, func(v writtenJSON) bool { return covers(key, v.Key) })
		}) {
			return fmt.Errorf("the effective policy of %s has no value %s; halo explain %s lists what there is", x.target.ID, key, fields[0].Key)
		}
	}
	if r := x.rendering; r != nil {
		for _, file := range r.Files {
			out.Files = append(out.Files, file.Dest)
		}
		for _, g := range r.Gaps {
			if key != "" && !covers(key, g.Field) && !covers(g.Field, key) {
				continue
			}
			out.Gaps = append(out.Gaps, gapJSON{compiler.GapCode(g).ID, string(g.Concept), g.Field, g.Entry, g.Grade.String(), g.Reason})
		}
	}
	var places []*sourceJSON
	for i := range out.Values {
		places = append(places, &out.Values[i].Source)
	}
	for i := range out.Chain {
		places = append(places, out.Chain[i].places()...)
	}
	x.commits(places)
	if x.json {
		return report.WriteJSON(x.out, out)
	}
	w := &strings.Builder{}
	fmt.Fprintf(w, "%s  (profile %s)\n", out.Target, out.Profile)
	width := 0
	for _, v := range out.Values {
		width = max(width, len(v.Key))
	}
	for _, v := range out.Values {
		fmt.Fprintf(w, "  %-*s  %s  # %s\n", width, v.Key, firstLine(v.Value), v.Source)
	}
	for _, c := range out.Chain {
		c.print(w)
	}
	for _, file := range out.Files {
		fmt.Fprintf(w, "file  %s\n", file)
	}
	for _, g := range out.Gaps {
		fmt.Fprintf(w, "gap   %s (%s): %s\n", g.Concept, g.Grade, g.Reason)
	}
	_, err := io.WriteString(x.out, w.String())
	return err
}

// firstLine makes a value safe for one line of a terminal: the first of several lines, without characters that would move the cursor.
func firstLine(value string) string {
	if i := strings.IndexByte(value, '\n'); i >= 0 {
		value = value[:i] + " …"
	}
	return report.Printable(value)
}

func (x *explanation) source(pos diag.Pos) sourceJSON { return sourceOf(x.compiled, x.rep, pos) }
