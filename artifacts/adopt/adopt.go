// Package adopt turns existing files of harnesses and sandboxes into a first profile: it finds out whose files they are, has the room of the harness read them,
// proves that the profile is one, and says what became of every key. It never reads a policy repo.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// Input is what to import.
type Input struct {
	Files []draft.File
	// Harness and OS say whose files they are and for which system; empty means that names and contents decide.
	Harness, OS string
	// Name is the name of the profile; empty is the one that the files suggest, else imported.
	Name string
}

// OpenShell stands for the harness of a policy.yaml of OpenShell.
const OpenShell = "openshell"

// Result is a first profile and the account of it.
type Result struct {
	Harness, OS, Name string
	Files             []string
	// Profile is the YAML of the profile, with further documents behind it. Extra are the files of the repo that they name, by path from its root.
	Profile   []byte
	Extra     map[string][]byte
	Lines     []draft.Line
	Additions []draft.Addition
	// Allowed are the names that are allowed and not denied, Denied and Protected the patterns of the profile.
	Allowed, Denied, Protected []string
}

// Count returns how many lines have an outcome.
func (r *Result) Count(o draft.Outcome) int {
	n := 0
	for _, l := range r.Lines {
		if l.Outcome == o {
			n++
		}
	}
	return n
}

// MaxFiles bounds the files of one import.
const MaxFiles = 256

// Import reads files into a profile. The error says why there is no answer: files of nobody, of two programs, or ones that their program refuses.
func Import(ctx context.Context, in Input) (*Result, error) {
	if len(in.Files) == 0 {
		return nil, errors.New("import needs a file")
	}
	if len(in.Files) > MaxFiles {
		return nil, fmt.Errorf("%d files are more than %d, the limit", len(in.Files), MaxFiles)
	}
	id, err := whose(in.Files, in.Harness)
	if err != nil {
		return nil, err
	}
	goos := in.OS
	if goos == "" {
		goos = system(in.Files)
	}
	if !slices.Contains(policy.OSes, goos) {
		return nil, fmt.Errorf("%q is not one of %s", goos, strings.Join(policy.OSes, ", "))
	}
	r := &Result{Harness: id, OS: goos}
	for _, f := range in.Files {
		r.Files = append(r.Files, f.Base())
	}
	slices.Sort(r.Files)
	if id == OpenShell {
		return openshellPolicy(ctx, in, r)
	}
	harnesses := all.Harnesses()
	i := slices.IndexFunc(harnesses, func(h *harness.Harness) bool { return h.ID == id })
	if i < 0 || harnesses[i].Import == nil {
		return nil, fmt.Errorf("files of %s cannot be imported", id)
	}
	h := harnesses[i]
	d := &draft.Draft{Harness: id, OS: goos, Known: h.Known.String(), Secret: check.Secret, Files: in.Files}
	if err := h.Import(d); err != nil {
		return nil, err
	}
	d.Settle()
	return r, r.finish(ctx, d, in.Name)
}

// finish names the profile, takes out what halo would not render for the harness, and prints the documents.
func (r *Result) finish(ctx context.Context, d *draft.Draft, name string) error {
	r.Name = name
	if r.Name == "" {
		r.Name = d.Name
	}
	if r.Name == "" {
		r.Name = "imported"
	}
	if !policy.ValidName(r.Name) {
		return fmt.Errorf("%q is not a name: lower-case letters, digits and dashes", r.Name)
	}
	// Taking out a value can only take away reasons to take out another.
	c, err := r.prove(ctx, d)
	if err != nil {
		return err
	}
	if r.refused(c, d) {
		d.Settle()
		if _, err := r.prove(ctx, d); err != nil {
			return err
		}
	}
	r.Lines, r.Additions = d.Lines(), d.Additions
	for i := range r.Lines {
		r.Lines[i].Field = d.FieldName(r.Lines[i].Field)
	}
	for i := range r.Additions {
		r.Additions[i].Field = d.FieldName(r.Additions[i].Field)
	}
	r.Profile = d.Print(r.Name, r.head())
	r.Denied, r.Protected = d.Values(draft.Denied), d.Values(draft.Protected)
	for _, h := range d.Values(draft.Allowed) {
		if n, err := host.ParseName(h); err == nil && !strings.HasPrefix(h, "*") && d.Decide(n) {
			r.Allowed = append(r.Allowed, h)
		}
	}
	return nil
}

// head is the comment at the top of the profile: where it comes from and what it is not.
func (r *Result) head() []string {
	out := []string{
		fmt.Sprintf("Imported from %s (%s, %s): %d keys mapped, %d kept, %d dropped.", strings.Join(r.Files, ", "), r.Harness, r.OS, r.Count(draft.Mapped), r.Count(draft.Kept), r.Count(draft.Dropped)),
		"It has what the files say; halo import lists what became of every key.",
	}
	for _, l := range r.Lines {
		if l.Warning != "" {
			out = append(out, "Not in force in the input: "+l.Pointer+": "+l.Warning+".")
		}
	}
	return out
}

// prove compiles a repo of the profile and one ring. An error is a profile that halo would refuse, which nobody may be given.
func (r *Result) prove(ctx context.Context, d *draft.Draft) (*compiler.Compiled, error) {
	return Prove(ctx, r.Name, d.Print(r.Name, nil), r.Extra)
}

// Prove compiles a repo that has nothing but the imported documents and a ring.
func Prove(ctx context.Context, name string, profile []byte, extra map[string][]byte) (*compiler.Compiled, error) {
	fsys := memory{
		"halos.yaml":             []byte("apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n"),
		"profiles/imported.yaml": profile,
		"rings/ring.yaml":        []byte("apiVersion: halos.dev/v1\nkind: Ring\nname: everybody\norder: 0\nprofile: " + draft.Quote(name) + "\nmembership: {default: true}\n"),
	}
	for p, data := range extra {
		fsys[path.Clean(p)] = data
	}
	var diags diag.List
	c := compiler.Compile(ctx, compiler.Input{FS: fsys, Now: time.Unix(0, 0), Keep: true, Workers: 1}, &diags)
	if diags.Errors() == 0 {
		return c, nil
	}
	for _, x := range diags.Sorted() {
		if x.Severity == diag.Error {
			return nil, fmt.Errorf("the files come to a profile that halo refuses: %s: %s (%s)", x.Path, x.Message, x.Code.ID)
		}
	}
	return nil, errors.New("the files come to a profile that halo refuses")
}

// refused takes out of the draft what the room itself would not render for the system of the files, and reports whether there was anything.
func (r *Result) refused(c *compiler.Compiled, d *draft.Draft) bool {
	found := false
	for _, t := range c.Targets {
		p := c.Plan(t)
		if p == nil {
			continue
		}
		for _, x := range p.Renderings {
			if x.Harness.ID != d.Harness || x.OS != r.OS {
				continue
			}
			for _, g := range x.Gaps {
				found = g.Grade == harness.None && d.Unrendered(g.Field, g.Entry, g.Reason) || found
			}
		}
	}
	return found
}
