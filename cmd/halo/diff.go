package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/diff"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/report"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "say what a change of policy means for every target", ArgsUsage: "OLD NEW",
		Description: "OLD and NEW are policy directories, releases (a directory or an archive) or git revisions of the policy repo; A..B is short for the revisions A and B, and A...B for\n" +
			"where B left A, and B. A name that exists as a file or directory is one.\n\n" +
			"Effective policies are compared, not text. Each target is LOOSER, TIGHTER, CHANGED (in no direction) or SAME, with a witness for each difference;\n" +
			"what cannot be decided is LOOSER. Then come rendered files, gaps, people, presets, packs, pins and warnings, and one closing sentence. A release\n" +
			"records egress and files only: what changed in its files beside hosts counts as LOOSER.\n\n" +
			"Exit status 1 when a policy has errors, and with --fail-on looser when something got looser.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Usage: "exit with 1 when the change is `VERDICT`: looser"},
		},
		Action: p.diff,
	}
}

func (p *program) diff(c *cli.Context) error {
	f, err := form(c, "text", "json", "markdown")
	if err != nil {
		return err
	}
	failOn := c.String("fail-on")
	if c.IsSet("fail-on") && failOn != "looser" {
		return fmt.Errorf("--fail-on %s is not looser", failOn)
	}
	args := c.Args().Slice()
	if len(args) == 1 && !exists(args[0]) {
		from, to, mergeBase, ok := diff.Range(args[0])
		if ok {
			if args, err = p.revisions(c, from, to, mergeBase); err != nil {
				return err
			}
		}
	}
	if len(args) != 2 {
		return errors.New("diff needs OLD and NEW: two policy directories, releases or git revisions, or one range A..B")
	}
	old, err := p.side(c, args[0])
	if err != nil {
		return err
	}
	defer old.close()
	next, err := p.side(c, args[1])
	if err != nil {
		return err
	}
	defer next.close()
	failed, answer, err := p.failures(c, f, old, next)
	if err != nil {
		return err
	}
	if answer == none {
		if f == "json" {
			if err := report.WriteJSON(p.out, struct {
				SchemaVersion int           `json:"schemaVersion"`
				Old           diff.Name     `json:"old"`
				New           diff.Name     `json:"new"`
				Failed        []diffFailure `json:"failed"`
			}{1, old.id, next.id, failed}); err != nil {
				return err
			}
		}
		return none
	}
	rep, err := diff.Compare(old.Side, next.Side)
	if err != nil {
		return err
	}
	switch f {
	case "json":
		err = report.WriteJSON(p.out, diffJSON{rep, failed})
	case "markdown":
		err = rep.Markdown(p.out)
	default:
		style := p.style(c, p.out)
		err = rep.Text(p.out, func(v diff.Verdict) string {
			color := map[diff.Verdict]string{diff.Looser: style.Error, diff.Changed: style.Warning}[v]
			return style.Bold + color + string(v) + style.Reset
		})
	}
	if err != nil {
		return err
	}
	if answer == no || failOn != "" && rep.Verdict == diff.Looser {
		return no
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// revisions resolves a range.
func (p *program) revisions(c *cli.Context, from, to string, mergeBase bool) ([]string, error) {
	if mergeBase {
		dir, err := p.repoDir(c)
		if err != nil {
			return nil, err
		}
		if from, err = diff.MergeBase(c.Context, dir, from, to); err != nil {
			return nil, err
		}
	}
	return []string{from, to}, nil
}

// repoDir is the policy repo whose revisions are compared.
func (p *program) repoDir(c *cli.Context) (string, error) {
	if dir := c.String("policy-dir"); dir != "" {
		return dir, nil
	}
	return nearest()
}

// side is one side of a comparison, with what was found in it when it is a policy.
type side struct {
	*diff.Side
	id    diff.Name
	rep   *report.Report
	diags *diag.List
	tree  *diff.Tree
}

func (s *side) close() {
	s.Side.Close()
	if s.tree != nil {
		s.tree.Close()
	}
}

// side opens and compiles what an argument names.
func (p *program) side(c *cli.Context, arg string) (*side, error) {
	s := &side{id: diff.Name{Kind: "directory", Name: filepath.ToSlash(arg)}}
	r := &repo{dir: arg}
	switch info, err := os.Stat(arg); {
	case err == nil && (!info.IsDir() || isRelease(arg)):
		if s.Side, err = diff.Release(arg); err != nil {
			return nil, err
		}
		s.id = s.Name
		return s, nil
	case err == nil:
		if r.fs, err = source.Dir(arg); err != nil {
			return nil, fmt.Errorf("policy repo %s: %w", arg, cause(err))
		}
	default:
		dir, err := p.repoDir(c)
		if err != nil {
			return nil, fmt.Errorf("%s is not a directory, and as a revision it needs a policy repo: %w", arg, err)
		}
		if s.tree, err = diff.OpenTree(c.Context, dir, arg); err != nil {
			return nil, err
		}
		r.fs, s.id = s.tree, diff.Name{Kind: "revision", Name: arg, Commit: s.tree.Commit}
	}
	p.advise = true
	compiled, rep, diags, err := p.compile(c, r, compiler.Input{Keep: true})
	if err != nil {
		s.close()
		return nil, err
	}
	if s.tree != nil {
		rep.Prefix = arg + ":"
	}
	s.rep, s.diags = rep, diags
	if !diags.NoAnswer() {
		s.Side = diff.Policy(s.id, compiled, diags.Sorted())
	}
	return s, nil
}

// isRelease reports whether a directory is a release rather than a policy repo.
func isRelease(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, policy.RootFile)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Lstat(filepath.Join(dir, artifacts.ManifestName))
	return err == nil
}

// diffJSON is a report with the errors of the policies.
type diffJSON struct {
	*diff.Report
	Failed []diffFailure `json:"failed"`
}

type diffFailure struct {
	Side     string           `json:"side"`
	Name     string           `json:"name"`
	Findings []report.Finding `json:"diagnostics"`
	Summary  report.Summary   `json:"summary"`
}

// failures reports the errors of the sides that have some, and the exit status that they make: 0, no, or none when a side cannot be compared at all.
func (p *program) failures(c *cli.Context, form string, sides ...*side) ([]diffFailure, status, error) {
	failed := []diffFailure{}
	var answer status
	for i, s := range sides {
		if s.diags == nil || s.diags.Errors() == 0 {
			continue
		}
		which := [...]string{"old", "new"}[i]
		answer = max(answer, no)
		consequence := "what they touch counts as looser"
		if s.diags.NoAnswer() {
			answer, consequence = none, "nothing can be compared"
		}
		s.rep.Diagnostics = onlyErrors(s.rep.Diagnostics)
		if form == "json" {
			doc := s.rep.Document()
			failed = append(failed, diffFailure{which, s.id.Name, doc.Diagnostics, doc.Summary})
			continue
		}
		if err := s.rep.Text(p.err, p.style(c, p.err)); err != nil {
			return nil, none, err
		}
		n, _ := s.rep.Counts()
		fmt.Fprintf(p.err, "halo: the %s policy, %s, has errors (%d): %s\n", which, s.id.Name, n, consequence)
	}
	return failed, answer, nil
}
