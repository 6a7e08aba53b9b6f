package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts/adopt"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

// importFlags say whose files an import reads.
func importFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "harness", Usage: "whose files they are, a harness `ID` or openshell (default: names and contents decide)"},
		&cli.StringFlag{Name: "os", Usage: "the `OS` they are for: " + strings.Join(policy.OSes, ", ") + " (default: their paths decide, else linux)"},
	}
}

func (p *program) importCommand() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "make a first profile of existing files of a harness or of OpenShell", ArgsUsage: "FILE...",
		Description: "Managed files of Claude Code, Codex, Copilot CLI, Gemini CLI and OpenCode, and policy.yaml of OpenShell. Several files of one program become one\n" +
			"profile. Standard error has a line for every key: mapped to a field, kept because halo writes it by itself, or dropped with the reason. The profile has\n" +
			"what the files say; where a file does not do what it says, a warning names it. What may be a secret is never printed. No policy repo is read.\n\n" +
			"A policy.yaml of OpenShell becomes a profile, a Sandbox document and files below openshell/ of the repo: with --out they are written below --policy-dir,\n" +
			"or else below the folder of FILE, or above it when the folder is profiles/.\n\n" +
			"Exit status 0 imported, 1 something was dropped and --strict is set, 2 a file that cannot be read, or whose it is nobody can say.",
		Flags: append(importFlags(),
			&cli.StringFlag{Name: "name", Usage: "the `NAME` of the profile (default: what the files suggest, else imported)"},
			&cli.StringFlag{Name: "out", Usage: "write the profile to `FILE`, which must not exist"},
			&cli.BoolFlag{Name: "strict", Usage: "exit status 1 when a key was dropped"},
		),
		Action: p.importFiles,
	}
}

// imported reads files and imports them.
func (p *program) imported(c *cli.Context, names []string, in adopt.Input) (*adopt.Result, error) {
	var d documents
	for _, name := range names {
		i, data, err := p.read(&d, name)
		if err != nil {
			return nil, err
		}
		in.Files = append(in.Files, draft.File{Name: d.files[i].Name, Data: data})
	}
	in.Harness, in.OS = c.String("harness"), c.String("os")
	return adopt.Import(c.Context, in)
}

func (p *program) importFiles(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	r, err := p.imported(c, c.Args().Slice(), adopt.Input{Name: c.String("name")})
	if err != nil {
		return err
	}
	out := c.String("out")
	written := map[string][]byte{}
	if out != "" {
		root := c.String("policy-dir")
		if root == "" {
			if root = filepath.Dir(out); filepath.Base(root) == "profiles" {
				root = filepath.Dir(root)
			}
		}
		written[out] = r.Profile
		for path, data := range r.Extra {
			written[filepath.Join(root, filepath.FromSlash(path))] = data
		}
		if err := adopt.Write(written); err != nil {
			return err
		}
	}
	if f == "json" {
		extra := map[string]string{}
		for path, data := range r.Extra {
			extra[path] = string(data)
		}
		err = report.WriteJSON(p.out, map[string]any{"harness": r.Harness, "os": r.OS, "name": r.Name, "lines": r.Lines, "added": slices.Concat([]draft.Addition{}, r.Additions),
			"summary": map[string]int{"mapped": r.Count(draft.Mapped), "kept": r.Count(draft.Kept), "dropped": r.Count(draft.Dropped)}, "profile": string(r.Profile), "files": extra,
			"written": slices.Sorted(maps.Keys(written))})
	} else {
		err = p.printImport(c, r, written)
	}
	if err == nil && c.Bool("strict") && r.Count(draft.Dropped) > 0 {
		return no
	}
	return err
}

// account writes what became of every key to standard error.
func (p *program) account(c *cli.Context, r *adopt.Result) error {
	if c.Bool("quiet") {
		return nil
	}
	if err := r.Text(p.err); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.err, "%d keys mapped, %d kept, %d dropped\n", r.Count(draft.Mapped), r.Count(draft.Kept), r.Count(draft.Dropped))
	return err
}

func (p *program) printImport(c *cli.Context, r *adopt.Result, written map[string][]byte) error {
	if err := p.account(c, r); err != nil {
		return err
	}
	if len(written) > 0 {
		for _, path := range slices.Sorted(maps.Keys(written)) {
			if _, err := fmt.Fprintln(p.out, path); err != nil {
				return err
			}
		}
		return nil
	}
	if len(r.Extra) == 0 {
		_, err := p.out.Write(r.Profile)
		return err
	}
	all := maps.Clone(r.Extra)
	all["profiles/"+r.Name+".yaml"] = r.Profile
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if _, err := io.WriteString(p.out, "# ==> "+path+"\n"+string(all[path])); err != nil {
			return err
		}
	}
	return nil
}
