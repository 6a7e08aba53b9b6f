package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func targetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "ring", Usage: "the `RING` to ask about (default: the default ring)"},
		&cli.StringSliceFlag{Name: "unit", Usage: "a `UNIT` whose overlay applies; may be repeated"},
	}
}

func osFlag() cli.Flag {
	return &cli.StringFlag{Name: "os", Usage: "the operating `SYSTEM`: darwin, linux or windows (default: this machine's)"}
}

// system returns --os, by default the system halo runs on.
func system(c *cli.Context) (string, error) {
	s := c.String("os")
	if s == "" {
		if s = runtime.GOOS; !slices.Contains(policy.OSes, s) {
			s = "linux"
		}
	}
	if !slices.Contains(policy.OSes, s) {
		return "", fmt.Errorf("--os %s is not one of %s", s, strings.Join(policy.OSes, ", "))
	}
	return s, nil
}

func (p *program) egressCommand() *cli.Command {
	return &cli.Command{
		Name: "egress", Usage: "ask which hosts may be reached",
		Subcommands: []*cli.Command{{
			Name: "test", Usage: "decide hosts and say which rule decided", ArgsUsage: "HOST...",
			Description: "Decides by what the ring leads to; whether the rest of the policy is sound is for halo lint to say.\n" +
				"HOST is a host name or a URL, of which only the host is judged. Exit status 0 when it is allowed, 1 when it is denied; with --expect, 0 when the answer is\n" +
				"the expected one.\n" +
				"With --file, each line is HOST, or ALLOW HOST or DENY HOST; - reads standard input.\n" +
				"With --sandbox, the answer is that of DefenseClaw's twelve steps for a host name or an address; no name is resolved.",
			Flags: append(targetFlags(), osFlag(),
				&cli.StringFlag{Name: "expect", Usage: "the expected `ANSWER`: allow or deny"},
				&cli.StringFlag{Name: "file", Usage: "decide the hosts in a `FILE`"},
				&cli.StringFlag{Name: "sandbox", Usage: "decide as DefenseClaw does in the sandbox `NAME`, and name the step"},
				&cli.StringFlag{Name: "port", Usage: "with --sandbox, the destination `PORT` (default: any)"},
				textsFlag("unblock", "with --sandbox, as if a user had unblocked a `HOST`; may be repeated")),
			Action: p.egressTest,
		}, p.whoCommand()},
	}
}

// question is one host with the answer it should get, or "", and the line of the file that asks, as messages begin with it.
type question struct{ host, expect, at string }

func (p *program) egressTest(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if c.IsSet("sandbox") {
		return p.sandboxEgress(c, f)
	}
	if c.IsSet("port") || len(textsOf(c, "unblock")) > 0 {
		return errors.New("--port and --unblock ask about a sandbox; name one with --sandbox")
	}
	system, err := system(c)
	if err != nil {
		return err
	}
	qs, err := p.questions(c)
	if err != nil {
		return err
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	who := compiler.Who{Ring: c.String("ring"), Units: c.StringSlice("unit")}
	compiled, rep, err := p.query(c, r, compiler.Input{NoRender: true, Question: &policy.Question{Units: who.Units, Alone: true, Ring: who.Ring}})
	if err != nil {
		return err
	}
	t, err := compiled.Resolve(who)
	if err != nil {
		return err
	}
	renderings := compiled.Renderings(t.Policy, system)
	answers := make([]compiler.Egress, len(qs))
	for i, q := range qs {
		if answers[i], err = compiled.Egress(t, system, q.host, renderings); err != nil {
			return fmt.Errorf("%s%w", q.at, err)
		}
	}
	failed := false
	var results []egressJSON
	for i, q := range qs {
		a, answer := answers[i], effect(answers[i].Decision.Allow)
		failed = failed || answer != cmp.Or(q.expect, "allow")
		if f == "json" {
			results = append(results, egressResult(&a, compiled, rep))
			continue
		}
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		if err := printEgress(p.out, &a, len(qs) > 1 && i > 0); err != nil {
			return err
		}
		if q.expect != "" && answer != q.expect {
			fmt.Fprintf(p.err, "halo: %s is %s, expected %s\n", a.Host, answer, q.expect)
		}
	}
	if f == "json" {
		var out any = map[string]any{"results": results}
		if len(results) == 1 && c.String("file") == "" {
			out = results[0]
		}
		if err := report.WriteJSON(p.out, out); err != nil {
			return err
		}
	}
	if failed {
		return no
	}
	return nil
}

// questions collects the hosts from the arguments or from --file.
func (p *program) questions(c *cli.Context) ([]question, error) {
	expect := c.String("expect")
	if expect != "" && expect != "allow" && expect != "deny" {
		return nil, fmt.Errorf("--expect %s is not one of allow, deny", expect)
	}
	file := c.String("file")
	var out []question
	for _, h := range c.Args().Slice() {
		out = append(out, question{host: h, expect: expect})
	}
	switch {
	case file == "" && len(out) == 0:
		return nil, errors.New("egress test needs a host or URL, or --file")
	case file == "":
		return out, nil
	case len(out) > 0:
		return nil, errors.New("egress test takes hosts or --file, not both")
	}
	var in io.Reader = p.in
	if file != "-" {
		h, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, cause(err))
		}
		defer h.Close()
		if info, err := h.Stat(); err != nil || info.IsDir() {
			return nil, fmt.Errorf("%s is not a file", file)
		}
		in = h
	}
	if file == "-" {
		file = "standard input"
	}
	sc := bufio.NewScanner(in)
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		fields := strings.Fields(line)
		q := question{expect: expect, at: fmt.Sprintf("%s:%d: ", file, n)}
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
			continue
		case len(fields) == 1 && !answerWord(fields[0]):
			q.host = fields[0]
		case len(fields) == 2 && answerWord(fields[0]):
			q.host, q.expect = fields[1], strings.ToLower(fields[0])
		default:
			return nil, fmt.Errorf("%s%q is not HOST, ALLOW HOST or DENY HOST", q.at, line)
		}
		out = append(out, q)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no hosts", file)
	}
	return out, nil
}

// answerWord reports whether a word of a line is an answer, so that a host must follow.
func answerWord(s string) bool { return strings.EqualFold(s, "allow") || strings.EqualFold(s, "deny") }

// printEgress prints an answer. The harness lines are the same for every host of a run and are printed once.
func printEgress(w io.Writer, a *compiler.Egress, repeated bool) error {
	lines := a.Lines
	if repeated {
		lines = nil
	}
	if err := printDecision(w, a.Decision.Allow, string(a.Host), a.Target, a.Decision.Rule(), lines); err != nil || a.Port == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "note   %s\n", portNote(a))
	return err
}

// portNote says what became of the port of a host or URL, or "".
func portNote(a *compiler.Egress) string {
	if a.Port == "" {
		return ""
	}
	return "a profile does not judge ports: the answer for port " + a.Port + " is that for the host"
}

// printDecision prints a decision for a target with the rule that made it, and how far each harness holds it.
func printDecision(w io.Writer, allow bool, about string, t effective.Target, rule string, lines []compiler.HarnessLine) error {
	where := fmt.Sprintf("ring %s, profile %s", t.Ring.Name.V, t.Policy.Profile)
	for _, u := range t.Units {
		where += ", unit " + u.Name.V
	}
	if _, err := fmt.Fprintf(w, "%s %s  (%s)\nrule   %s\n", strings.ToUpper(effect(allow)), about, where, rule); err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "  %-13s %s\n", l.Harness, statusText(l)); err != nil {
			return err
		}
		for _, caveat := range l.Caveats {
			if _, err := fmt.Fprintf(w, "%18s- %s\n", "", caveat); err != nil {
				return err
			}
		}
	}
	return nil
}

func statusText(l compiler.HarnessLine) string {
	switch {
	case l.Status == harness.None && l.How != "" && len(l.Caveats) == 0:
		return "not enforced: " + l.How
	case l.Status == harness.None:
		return "not enforced"
	case l.Status == harness.Enforced && !l.Verified:
		return "enforced (unverified): " + l.How
	}
	return l.Status.String() + ": " + l.How
}

type sourceJSON struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Document string `json:"document"`
	// Commit is there when it was asked for.
	Commit *commitJSON `json:"commit,omitempty"`
}

type matchJSON struct {
	Field  string     `json:"field"`
	Entry  string     `json:"entry"`
	Effect string     `json:"effect"`
	Host   string     `json:"host,omitempty"`
	Source sourceJSON `json:"source"`
}

type egressJSON struct {
	Host     string   `json:"host"`
	Input    string   `json:"input"`
	Decision string   `json:"decision"`
	Ring     string   `json:"ring"`
	Profile  string   `json:"profile"`
	Units    []string `json:"units"`
	OS       string   `json:"os"`
	Rule     struct {
		Field   string     `json:"field"`
		Entry   string     `json:"entry"`
		Host    string     `json:"host,omitempty"`
		Implied bool       `json:"implied"`
		Source  sourceJSON `json:"source"`
	} `json:"rule"`
	Matches  []matchJSON `json:"matches"`
	Resolved struct {
		Default string   `json:"default"`
		Implied bool     `json:"implied"`
		Allowed []string `json:"allowed"`
		Denied  []string `json:"denied"`
	} `json:"resolved"`
	Harnesses []harnessJSON `json:"harnesses"`
	Note      string        `json:"note,omitempty"`
}

type harnessJSON struct {
	Harness  string   `json:"harness"`
	Version  string   `json:"version"`
	Status   string   `json:"status"`
	Verified bool     `json:"verified"`
	How      string   `json:"how"`
	Caveats  []string `json:"caveats"`
}

func sourceOf(c *compiler.Compiled, rep *report.Report, pos diag.Pos) sourceJSON {
	s := sourceJSON{File: rep.Files.Name(pos), Line: pos.Line(), Column: pos.Col()}
	if h := c.Repo.DocumentAt(pos); h != nil {
		s.Document = h.ID()
	}
	return s
}

func effect(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

func egressResult(a *compiler.Egress, c *compiler.Compiled, rep *report.Report) egressJSON {
	out := egressJSON{Host: string(a.Host), Input: a.Input, Decision: effect(a.Decision.Allow), Ring: a.Target.Ring.Name.V, Profile: a.Target.Policy.Profile,
		Units: []string{}, OS: a.OS, Matches: []matchJSON{}, Harnesses: []harnessJSON{}, Note: portNote(a)}
	for _, u := range a.Target.Units {
		out.Units = append(out.Units, u.Name.V)
	}
	d := a.Decision
	out.Rule.Field, out.Rule.Entry, out.Rule.Implied, out.Rule.Source = d.Field, d.Entry, d.Implied, sourceOf(c, rep, d.Pos)
	if d.Field == "egress.presets" {
		out.Rule.Host = d.Pattern.String()
	}
	for _, m := range a.Matches {
		j := matchJSON{Field: m.Entry.Field, Entry: m.Entry.Name, Effect: effect(m.Allow), Source: sourceOf(c, rep, m.Entry.Pos)}
		if m.Entry.Field == "egress.presets" {
			j.Host = m.Entry.Pattern.String()
		}
		out.Matches = append(out.Matches, j)
	}
	hosts := a.Target.Policy.Hosts
	open, implied := hosts.Default()
	out.Resolved.Default, out.Resolved.Implied = effect(open), implied
	out.Resolved.Allowed, out.Resolved.Denied = []string{}, []string{}
	for _, e := range hosts.Allowed() {
		out.Resolved.Allowed = append(out.Resolved.Allowed, e.Pattern.String())
	}
	for _, e := range hosts.Denied() {
		out.Resolved.Denied = append(out.Resolved.Denied, e.Pattern.String())
	}
	for _, l := range a.Lines {
		out.Harnesses = append(out.Harnesses, harnessLineJSON(l))
	}
	return out
}

func harnessLineJSON(l compiler.HarnessLine) harnessJSON {
	caveats := l.Caveats
	if caveats == nil {
		caveats = []string{}
	}
	return harnessJSON{l.Harness, l.Version, l.Status.String(), l.Verified, l.How, caveats}
}
