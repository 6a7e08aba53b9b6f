package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func (p *program) renderCommand() *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the files one device would get",
		Description: "One file is printed as its exact bytes, several each after a line `# ==> DEST (mode)`. Gaps and warnings go to standard error.",
		Flags: append(targetFlags(), osFlag(),
			&cli.StringFlag{Name: "harness", Usage: "the `HARNESS`: " + strings.Join(policy.Harnesses, ", ")},
			&cli.StringFlag{Name: "file", Usage: "print only the file for one `DEST`"},
			&cli.StringFlag{Name: "out", Usage: "write the files below `DIR`/root"}),
		Action: p.render,
	}
}

func (p *program) render(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	system, err := system(c)
	if err != nil {
		return err
	}
	id := c.String("harness")
	if id == "" {
		return errors.New("render needs --harness")
	}
	if !slices.Contains(policy.Harnesses, id) {
		return fmt.Errorf("--harness %s is not one of %s", id, strings.Join(policy.Harnesses, ", "))
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	compiled, _, err := p.query(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return err
	}
	t, err := compiled.Resolve(compiler.Who{Ring: c.String("ring"), Units: c.StringSlice("unit")})
	if err != nil {
		return err
	}
	if _, ok := compiled.Target(t.ID); !ok {
		return fmt.Errorf("%s is not a target; add the set to combinations in %s: %s", t.ID, policy.RootFile, missingCombination(t))
	}
	var found *compiler.Rendering
	for _, x := range compiled.Renderings(t.Policy, system) {
		if x.Harness.ID == id {
			found = x
		}
	}
	if found == nil {
		return fmt.Errorf("profile %s of ring %s does not enable %s", t.Policy.Profile, t.Ring.Name.V, id)
	}
	if fs := compiled.Recheck(t.Policy, found); len(fs) > 0 {
		return fmt.Errorf("the rendered file %s would not hold: %s: %s", fs[0].Dest, fs[0].Pointer, fs[0].Message)
	}
	files := found.Files
	if dest := c.String("file"); dest != "" {
		files = slices.DeleteFunc(slices.Clone(files), func(f harness.File) bool { return f.Dest != dest })
		if len(files) == 0 {
			there := make([]string, len(found.Files))
			for i, f := range found.Files {
				there[i] = f.Dest
			}
			return fmt.Errorf("no file %s is rendered for %s on %s; there are: %s", dest, id, system, strings.Join(there, ", "))
		}
	}
	for _, g := range found.Gaps {
		if c.Bool("quiet") {
			break
		}
		fmt.Fprintf(p.err, "warning[%s] %s: %s\n", compiler.GapCode(g).ID, id, g.Reason)
	}
	if out := c.String("out"); out != "" {
		return writeRoot(out, files)
	}
	if f == "json" {
		return report.WriteJSON(p.out, renderJSON(files, found.Gaps))
	}
	for _, f := range files {
		if len(files) > 1 {
			fmt.Fprintf(p.out, "# ==> %s (%04o)\n", f.Dest, f.Mode)
		}
		if _, err := p.out.Write(f.Content); err != nil {
			return err
		}
	}
	if len(files) == 0 && !c.Bool("quiet") {
		fmt.Fprintf(p.err, "halo: %s on %s gets no file from this policy\n", id, system)
	}
	return nil
}

func missingCombination(t effective.Target) string {
	names := make([]string, len(t.Units))
	for i, u := range t.Units {
		names[i] = u.Name.V
	}
	return "[" + strings.Join(names, ", ") + "]"
}

type gapJSON struct {
	Code    string `json:"code"`
	Concept string `json:"concept"`
	Field   string `json:"field"`
	Entry   string `json:"entry"`
	Grade   string `json:"grade"`
	Reason  string `json:"reason"`
}

func renderJSON(files []harness.File, gaps []harness.Gap) any {
	type fileJSON struct {
		Dest    string `json:"dest"`
		Mode    string `json:"mode"`
		Content string `json:"content"`
	}
	out := struct {
		Files []fileJSON `json:"files"`
		Gaps  []gapJSON  `json:"gaps"`
	}{[]fileJSON{}, []gapJSON{}}
	for _, f := range files {
		out.Files = append(out.Files, fileJSON{f.Dest, fmt.Sprintf("%04o", f.Mode), string(f.Content)})
	}
	for _, g := range gaps {
		out.Gaps = append(out.Gaps, gapJSON{compiler.GapCode(g).ID, string(g.Concept), g.Field, g.Entry, g.Grade.String(), g.Reason})
	}
	return out
}

// writeRoot writes files below DIR/root, which must not exist yet.
func writeRoot(dir string, files []harness.File) error {
	root := filepath.Join(dir, "root")
	if _, err := os.Lstat(root); err == nil {
		return fmt.Errorf("%s exists already; name another directory", root)
	}
	if info, err := os.Lstat(dir); err == nil {
		if entries, err := os.ReadDir(dir); err != nil || !info.IsDir() || len(entries) > 0 {
			return fmt.Errorf("%s is not an empty directory; name another one", dir)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s: %w", dir, cause(err))
	}
	tmp, err := os.MkdirTemp(dir, ".root-")
	if err != nil {
		return fmt.Errorf("%s: %w", dir, cause(err))
	}
	defer os.RemoveAll(tmp)
	for _, f := range files {
		name := filepath.Join(tmp, filepath.FromSlash(strings.TrimPrefix(artifacts.RootPath(f.Dest), "root/")))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Content, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, root)
}
