package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/report"
)

// documents are the inputs of an openshell command: files, and flags as one file each with a line for every value, so that a finding about a flag has a place
// as any other.
type documents struct {
	files source.Files
	data  [][]byte
	// fs and prefix are those of the policy repo when it has the files.
	fs     fs.FS
	prefix string
}

func (d *documents) add(name string, data []byte) int {
	d.files = append(d.files, source.File{Name: name, Size: int64(len(data)), Digest: sha256.Sum256(data)})
	d.data = append(d.data, data)
	return len(d.files) - 1
}

// ReadFile and Open make the documents the file system that a report reads source lines from.
func (d *documents) ReadFile(name string) ([]byte, error) {
	for i, f := range d.files {
		if f.Name == name {
			return d.data[i], nil
		}
	}
	return nil, fs.ErrNotExist
}

func (d *documents) Open(string) (fs.File, error) { return nil, fs.ErrNotExist }

// flag makes a document of the values of a flag.
func (d *documents) flag(name string, values ...string) []openshell.Host {
	var out []openshell.Host
	if len(values) == 0 {
		return nil
	}
	file := d.add("--"+name, []byte(strings.Join(values, "\n")))
	for i, v := range values {
		out = append(out, openshell.Host{Text: v, Pos: diag.NewPos(file, i+1, 1)})
	}
	return out
}

// value is flag for one that takes a single value; "" is an absent one.
func (d *documents) value(c *cli.Context, name string) openshell.Host {
	if v := c.String(name); v != "" {
		return d.flag(name, v)[0]
	}
	return openshell.Host{}
}

// report joins findings and where they lie.
func (d *documents) report(fs []openshell.Finding) *report.Report {
	r := &report.Report{Diagnostics: openshell.Diagnostics(fs), Files: d.files, FS: d.fs, Prefix: d.prefix, Version: version}
	if d.fs == nil {
		r.FS = d
	}
	return r
}

// read reads a file that an argument names, or standard input for -.
func (p *program) read(d *documents, name string) (int, []byte, error) {
	limit := source.DefaultLimits.FileSize
	var in io.Reader = p.in
	if name != "-" {
		// Looking first keeps a FIFO without a writer from holding the command up.
		info, err := os.Stat(name)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", name, cause(err))
		}
		if !info.Mode().IsRegular() {
			return 0, nil, fmt.Errorf("%s is not a file; - reads standard input", name)
		}
		f, err := os.Open(name)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w", name, cause(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%s: %w", name, cause(err))
	case int64(len(data)) > limit:
		return 0, nil, fmt.Errorf("%s is larger than %d MiB", name, limit>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return 0, nil, fmt.Errorf("%s is empty", name)
	}
	if name == "-" {
		name = "(standard input)"
	}
	return d.add(name, data), data, nil
}

// readPolicy reads one policy.yaml.
func (p *program) readPolicy(d *documents, name string) (*openshell.Fragment, []openshell.Finding, error) {
	file, data, err := p.read(d, name)
	if err != nil {
		return nil, nil, err
	}
	policy, fs := openshell.Parse(file, data)
	return &openshell.Fragment{Name: d.files[file].Name, Policy: policy}, fs, nil
}

// compose builds the policy that the compose flags describe. With errors in a file of it nothing is composed.
func (p *program) compose(c *cli.Context, d *documents, hostFlag string) (*openshell.Built, error) {
	if fromRepo(c) {
		all, err := p.composeSandbox(c, d)
		switch {
		case err != nil:
			return nil, err
		case len(all) > 1:
			return nil, fmt.Errorf("the sandbox is for several agents; choose one with --agent")
		}
		return all[0], nil
	}
	var in openshell.Input
	var fs []openshell.Finding
	if id := c.String("agent"); id != "" && !slices.Contains(openshell.Agents(), id) {
		err := fmt.Errorf("--agent %s is not one of %s", id, strings.Join(openshell.Agents(), ", "))
		if id == "claude-code" {
			err = fmt.Errorf("%w; write claude, OpenShell's name for it", err)
		}
		return nil, err
	}
	if id := c.String("inference"); id != "" && !slices.Contains(openshell.Providers(""), id) {
		return nil, fmt.Errorf("--inference %s is not one of %s", id, strings.Join(openshell.Providers(""), ", "))
	}
	if name := c.String("base"); name != "" {
		base, found, err := p.readPolicy(d, name)
		if err != nil {
			return nil, err
		}
		in.Base, fs = base, append(fs, found...)
	}
	in.Provider, in.BaseURL, in.Agent = d.value(c, "inference"), d.value(c, "base-url"), d.value(c, "agent")
	if name := c.String("workspace"); name != "" {
		file, data, err := p.read(d, name)
		if err != nil {
			return nil, err
		}
		ws, found := openshell.ReadWorkspace(file, data)
		in.Hosts, fs = ws.Hosts, append(fs, found...)
	}
	in.Hosts = append(in.Hosts, d.flag(hostFlag, c.StringSlice(hostFlag)...)...)
	for _, name := range c.StringSlice("fragment") {
		f, found, err := p.readPolicy(d, name)
		if err != nil {
			return nil, err
		}
		in.Fragments, fs = append(in.Fragments, *f), append(fs, found...)
	}
	in.Replace = d.flag("replace", c.StringSlice("replace")...)
	if fs = openshell.ForBuild(fs); openshell.HasErrors(fs) {
		return &openshell.Built{Findings: fs}, nil
	}
	b := openshell.Build(in)
	b.Findings = append(fs, b.Findings...)
	return b, nil
}

// fromRepo reports whether the policy is that of a Sandbox document.
func fromRepo(c *cli.Context) bool {
	return c.IsSet("sandbox") || c.IsSet("ring") || c.IsSet("unit")
}

// composeSandbox builds the policies of a Sandbox document as a release carries them, one for each agent or that of --agent. An error of the repo is one finding
// among others.
func (p *program) composeSandbox(c *cli.Context, d *documents) ([]*openshell.Built, error) {
	sources := composeFlags()
	if c.Command.Name == "test" {
		sources = renamed(sources, "host", "workspace-host")
	}
	for _, f := range sources {
		if name := f.Names()[0]; c.IsSet(name) && name != "agent" && name != "sandbox" {
			return nil, fmt.Errorf("--%s cannot be combined with --sandbox, --ring or --unit: the Sandbox document names the sources", name)
		}
	}
	r, err := p.open(c, "")
	if err != nil {
		return nil, err
	}
	compiled, rep, diags, err := p.compile(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return nil, err
	}
	d.files, d.fs, d.prefix = rep.Files, rep.FS, rep.Prefix
	if diags.Errors() > 0 {
		b := &openshell.Built{}
		for _, x := range onlyErrors(rep.Diagnostics) {
			b.Findings = append(b.Findings, openshell.Finding{Diagnostic: x, Layer: openshell.LayerHalo})
		}
		if diags.NoAnswer() {
			if err := p.say(c, d, b.Findings); err != nil {
				return nil, err
			}
			return nil, none
		}
		return []*openshell.Built{b}, nil
	}
	t, err := compiled.Resolve(compiler.Who{Ring: c.String("ring"), Units: c.StringSlice("unit")})
	if err != nil {
		return nil, err
	}
	name, own := c.String("sandbox"), ""
	if t.Policy.Box != nil {
		own = t.Policy.Box.Name.V
	}
	if name == "" {
		name = own
	}
	s := compiled.Sandbox(name)
	switch {
	case name == "":
		return nil, fmt.Errorf("target %s has no sandbox; name one with --sandbox", t.ID)
	case s == nil:
		err := fmt.Errorf("there is no Sandbox document %q", name)
		var known []string
		for _, x := range compiled.Sandboxes {
			known = append(known, x.Doc.Name.V)
		}
		if near := diag.Nearest(name, known); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return nil, err
	case len(s.Agents()) == 0:
		return nil, fmt.Errorf("sandbox %s has no policy section, so it has no policy.yaml", name)
	}
	if name != own && !c.Bool("quiet") {
		fmt.Fprintf(p.err, "halo: target %s does not use sandbox %s; this is what it would get\n", t.ID, name)
	}
	var out []*openshell.Built
	var ids []string
	for _, agent := range s.Agents() {
		ids = append(ids, agent.Text)
		if want := c.String("agent"); want != "" && want != agent.Text {
			continue
		}
		b := s.OpenShell(agent, t.Policy)
		for _, g := range b.Gaps {
			b.Findings = append(b.Findings, g.Finding)
		}
		for i := range b.Findings {
			if h := compiled.Repo.DocumentAt(b.Findings[i].Pos); h != nil {
				b.Findings[i].Document = h.ID()
			}
		}
		out = append(out, b)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--agent %s is not one of the agents of sandbox %s: %s", c.String("agent"), name, strings.Join(ids, ", "))
	}
	return out, nil
}
