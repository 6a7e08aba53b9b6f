package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint/report"
)

func (p *program) testCommand() *cli.Command {
	return &cli.Command{
		Name: "test", Usage: "run the policy tests of a repo", ArgsUsage: "[DIR]",
		Description: "Runs every PolicyTest document. Exit status 1 when a test fails or the policy has errors, 2 when there is no test.",
		Action:      p.test,
	}
}

func (p *program) test(c *cli.Context) error {
	f, err := form(c, "text", "json", "junit")
	if err != nil {
		return err
	}
	dir, err := oneArg(c, "directory")
	if err != nil {
		return err
	}
	r, err := p.open(c, dir)
	if err != nil {
		return err
	}
	compiled, rep, diags, err := p.compile(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return err
	}
	if diags.Errors() > 0 {
		if err := p.print(c, &report.Report{Diagnostics: onlyErrors(rep.Diagnostics), Files: rep.Files, FS: rep.FS, Prefix: rep.Prefix, Version: version}, f); err != nil {
			return err
		}
		if diags.NoAnswer() {
			return none
		}
		return no
	}
	outcomes, err := compiled.RunTests()
	if err != nil {
		return err
	}
	if len(outcomes) == 0 {
		return errors.New("there is no policy test in " + r.dir + "; write a document of kind PolicyTest")
	}
	failed := 0
	for _, o := range outcomes {
		if !o.Passed() {
			failed++
		}
	}
	switch f {
	case "json":
		err = report.WriteJSON(p.out, testJSON(outcomes, rep, failed))
	case "junit":
		var cases []report.Case
		for _, o := range outcomes {
			j := report.Case{Class: o.Document, Name: o.Name()}
			if !o.Passed() {
				j.Failure, j.Detail = o.Failure(), place(rep, o.Test.Pos)
			}
			cases = append(cases, j)
		}
		err = report.WriteJUnit(p.out, "halo test", cases)
	default:
		for _, o := range outcomes {
			switch {
			case !o.Passed():
				fmt.Fprintf(p.out, "FAIL %s  %s\n     %s: %s\n", o.Document, o.Name(), place(rep, o.Test.Pos), o.Failure())
			case !c.Bool("quiet"):
				fmt.Fprintf(p.out, "ok   %s  %s\n", o.Document, o.Name())
			}
		}
		fmt.Fprintf(p.out, "%d passed, %d failed\n", len(outcomes)-failed, failed)
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return no
	}
	return nil
}

func onlyErrors(ds []diag.Diagnostic) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, d)
		}
	}
	return out
}

func place(rep *report.Report, pos diag.Pos) string {
	return rep.Prefix + rep.Files.Name(pos) + ":" + strconv.Itoa(pos.Line()) + ":" + strconv.Itoa(pos.Col())
}

func testJSON(outcomes []compiler.Outcome, rep *report.Report, failed int) any {
	type result struct {
		Document string `json:"document"`
		Name     string `json:"name"`
		File     string `json:"file"`
		Line     int    `json:"line"`
		Passed   bool   `json:"passed"`
		Answer   string `json:"answer"`
		Rule     string `json:"rule"`
		Failure  string `json:"failure,omitempty"`
	}
	out := struct {
		Results []result `json:"results"`
		Passed  int      `json:"passed"`
		Failed  int      `json:"failed"`
	}{[]result{}, len(outcomes) - failed, failed}
	for _, o := range outcomes {
		r := result{Document: o.Document, Name: o.Name(), File: rep.Files.Name(o.Test.Pos), Line: o.Test.Pos.Line(), Passed: o.Passed(), Answer: o.Answer, Rule: o.Rule}
		if !r.Passed {
			r.Failure = o.Failure()
		}
		out.Results = append(out.Results, r)
	}
	return out
}
