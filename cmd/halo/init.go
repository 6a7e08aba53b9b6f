package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts/adopt"
	"halos.dev/halo/artifacts/scaffold"
	"halos.dev/halo/compiler/harness/claudecode"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name: "init", Usage: "write a small working policy repo into an empty directory", ArgsUsage: "[DIR]",
		Description: "The repo has a gateway, a profile, two rings, a unit, a sandbox with a pack, policy tests, a GitHub workflow, .gitattributes and editor settings,\n" +
			"and lints without a finding. A directory that is not empty is refused.\n\n" +
			"With --from the profile is what existing files say, as halo import reads them, and the example gateway, sandbox, unit and tests are left out. What became of\n" +
			"every key is on standard error. --from may be given several times.",
		Flags: append(importFlags(), &cli.StringSliceFlag{Name: "from", Usage: "begin with what these existing `FILE`s of one harness, or a policy.yaml of OpenShell, say (halo import)"},
			&cli.StringFlag{Name: "org", Value: "acme", Usage: "the `NAME` of the organization, part of its example hosts"}),
		Action: p.initialize,
	}
}

func (p *program) initialize(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if c.NArg() > 1 {
		return fmt.Errorf("init takes at most one directory, got %d", c.NArg())
	}
	org := c.String("org")
	if !policy.ValidName(org) || strings.ContainsAny(org, "._") {
		return fmt.Errorf("--org %q is not a name: lower-case letters, digits and dashes", org)
	}
	now, _, err := p.instant(c)
	if err != nil {
		return err
	}
	dir := c.Args().First()
	if dir == "" {
		dir = "."
	}
	files, err := scaffold.Files(org, claudecode.Harness().Known.String(), now)
	if err != nil {
		return err
	}
	var imported *adopt.Result
	if from := c.StringSlice("from"); len(from) > 0 {
		if imported, err = p.imported(c, from, adopt.Input{Name: "base"}); err != nil {
			return err
		}
		files = imported.Repo(files)
	} else if c.String("harness") != "" || c.String("os") != "" {
		return errors.New("--harness and --os are about the files of --from")
	}
	paths, err := scaffold.Write(c.Context, dir, files)
	if err != nil {
		return err
	}
	if imported != nil {
		if err := p.account(c, imported); err != nil {
			return err
		}
	}
	if f == "json" {
		return report.WriteJSON(p.out, map[string]any{"dir": dir, "org": org, "files": paths})
	}
	if c.Bool("quiet") {
		return nil
	}
	for _, path := range paths {
		if _, err := fmt.Fprintln(p.out, filepath.Join(dir, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(p.out, "%d files; next: halo lint, halo test, halo build --out DIR\n", len(paths))
	return err
}
