package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/lint/report"
)

func (p *program) openshellCommand() *cli.Command {
	return &cli.Command{
		Name: "openshell", Usage: "compose, check and ask an OpenShell policy.yaml",
		Subcommands: []*cli.Command{p.openshellBuildCommand(), p.openshellCheckCommand(), p.openshellTestCommand()},
	}
}

// composeFlags name the sources of a policy.yaml.
func composeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "agent", Usage: "the `AGENT` in the sandbox: " + strings.Join(openshell.Agents(), ", ")},
		&cli.StringFlag{Name: "inference", Usage: "the inference `PROVIDER` of the agent: " + strings.Join(openshell.Providers(""), ", ")},
		&cli.StringFlag{Name: "base-url", Usage: "the `URL` of the inference provider, in place of its own hosts"},
		&cli.StringFlag{Name: "base", Usage: "the base policy in `FILE`, in place of the built-in one"},
		&cli.StringSliceFlag{Name: "fragment", Usage: "a policy in `FILE` to add; may be repeated"},
		&cli.StringFlag{Name: "workspace", Usage: "take the hosts of the workspace.json in `FILE`"},
		&cli.StringSliceFlag{Name: "host", Usage: "a workspace `HOST` or HOST:PORT; may be repeated"},
		&cli.StringSliceFlag{Name: "replace", Usage: "a `SLUG` that a later source may take over; may be repeated"},
		sandboxFlag(),
	}
}

func sandboxFlag() cli.Flag {
	return &cli.StringFlag{Name: "sandbox", Usage: "the Sandbox document `NAME` of the policy repo, for --ring and --unit, in place of the sources above"}
}

func (p *program) openshellBuildCommand() *cli.Command {
	return &cli.Command{
		Name: "build", Usage: "compose a policy.yaml and print it",
		Description: "Sources are taken in the order base, inference, agent, workspace, fragments; a slug that is taken is an error unless --replace names it. No policy repo is\n" +
			"needed; with --sandbox, --ring or --unit the policy is that of a Sandbox document, as a release carries it. The policy goes to standard output as its exact bytes, findings to standard error; with --output json both are one document. Exit status 1 when the\n" +
			"composed policy has errors, and then no policy is printed. Warnings about what OpenShell reads otherwise than it looks are errors here.",
		Flags:  append(composeFlags(), targetFlags()...),
		Action: p.openshellBuild,
	}
}

func (p *program) openshellCheckCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "check policy.yaml files as OpenShell does, and more strictly", ArgsUsage: "FILE...",
		Description: "FILE is a policy.yaml, - is standard input. Errors are what OpenShell's gateway or supervisor refuses; warnings are what it accepts and reads otherwise than it\n" +
			"looks. --layer openshell leaves the second kind out. With --sandbox, --ring or --unit the policies of a Sandbox document are checked for each of its agents. Exit status 1 when there are errors (or warnings, with --fail-on warning).",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "layer", Value: "all", Usage: "whose findings to show: all, or one `LAYER` of openshell, halo"},
			&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "the least `SEVERITY` that fails: error or warning"},
			&cli.StringFlag{Name: "sandbox", Usage: "check what the Sandbox document `NAME` of the policy repo comes to, in place of a FILE"},
			&cli.StringFlag{Name: "agent", Usage: "only the policy of one `AGENT` of the sandbox"},
		}, targetFlags()...),
		Action: p.openshellCheck,
	}
}

func (p *program) openshellTestCommand() *cli.Command {
	return &cli.Command{
		Name: "test", Usage: "ask what OpenShell does with one request",
		Description: "Answers for the policy in --policy, or for the one that halo openshell build prints for the same flags. Exit status 0 when the request passes, 1 when it is denied;\n" +
			"AUDIT is a violation that OpenShell logs and lets pass, so it is 0 too. With --expect, 0 when the answer is the expected one. Without --method only the connection is\n" +
			"judged. A policy that OpenShell refuses has no answer: exit status 2.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "policy", Usage: "the policy.yaml in `FILE`, - for standard input"},
			&cli.StringFlag{Name: "binary", Usage: "the `PATH` of the executable that asks"},
			&cli.StringSliceFlag{Name: "ancestor", Usage: "the `PATH` of the executable of a parent process; may be repeated"},
			&cli.StringFlag{Name: "host", Usage: "the `HOST` it connects to (with the flags of build: a workspace host is --workspace-host here)"},
			&cli.IntFlag{Name: "port", Value: 443, Usage: "the `PORT` it connects to"},
			&cli.StringFlag{Name: "method", Usage: "the HTTP `METHOD` of the request"},
			&cli.StringFlag{Name: "path", Usage: "the `PATH` of the request, with its query (default: /)"},
			&cli.StringFlag{Name: "operation", Usage: "the `TYPE` of a GraphQL operation: query, mutation or subscription"},
			&cli.StringFlag{Name: "operation-name", Usage: "the `NAME` of the GraphQL operation"},
			&cli.StringSliceFlag{Name: "field", Usage: "a root `FIELD` of the GraphQL operation; may be repeated"},
			&cli.StringFlag{Name: "rpc-method", Usage: "the `METHOD` of a JSON-RPC or MCP call"},
			&cli.StringFlag{Name: "tool", Usage: "the `TOOL` of an MCP call"},
			&cli.StringFlag{Name: "expect", Usage: "the expected `ANSWER`: allow, deny or audit"},
		}, append(renamed(composeFlags(), "host", "workspace-host"), targetFlags()...)...),
		Action: p.openshellTest,
	}
}

// renamed gives one string list flag another name.
func renamed(flags []cli.Flag, from, to string) []cli.Flag {
	for _, f := range flags {
		if s, ok := f.(*cli.StringSliceFlag); ok && s.Name == from {
			s.Name = to
		}
	}
	return flags
}

// findingJSON is a finding with what OpenShell calls it.
type findingJSON struct {
	report.Finding
	Layer string   `json:"layer"`
	Kinds []string `json:"kinds"`
	Build bool     `json:"stopsBuild"`
}

type findingsJSON struct {
	SchemaVersion int            `json:"schemaVersion"`
	Diagnostics   []findingJSON  `json:"diagnostics"`
	Summary       report.Summary `json:"summary"`
}

func (d *documents) json(fs []openshell.Finding) findingsJSON {
	doc := d.report(fs).Document()
	out := findingsJSON{SchemaVersion: doc.SchemaVersion, Diagnostics: make([]findingJSON, len(fs)), Summary: doc.Summary}
	for i, f := range fs {
		kinds := []string{}
		for _, k := range f.Kinds {
			if k != openshell.KindStrict {
				kinds = append(kinds, string(k))
			}
		}
		out.Diagnostics[i] = findingJSON{doc.Diagnostics[i], string(f.Layer), kinds, f.Strict || f.Severity == diag.Error}
	}
	return out
}

// structured prints a value as JSON, or as the same document in YAML.
func structured(w io.Writer, form string, v any) error {
	if form == "json" {
		return report.WriteJSON(w, v)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return err
	}
	block(&n)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return err
	}
	return enc.Close()
}

// block takes the flow style and the quotes of JSON away where YAML does not need them.
func block(n *yaml.Node) {
	n.Style = 0
	for _, sub := range n.Content {
		block(sub)
	}
}

// say prints findings for people on standard error.
func (p *program) say(c *cli.Context, d *documents, fs []openshell.Finding) error {
	if c.Bool("quiet") {
		fs = slices.DeleteFunc(slices.Clone(fs), func(f openshell.Finding) bool { return f.Severity != diag.Error })
	}
	return d.report(named(fs)).Text(p.err, p.style(c, p.err))
}

// named adds to each message the names that OpenShell has for the refusal.
func named(fs []openshell.Finding) []openshell.Finding {
	fs = slices.Clone(fs)
	for i := range fs {
		var kinds []string
		for _, k := range fs[i].Kinds {
			if k != openshell.KindStrict && k != openshell.KindParse {
				kinds = append(kinds, string(k))
			}
		}
		if len(kinds) > 0 {
			fs[i].Message += " (" + strings.Join(kinds, ", ") + ")"
		}
	}
	return fs
}

// openshellGapJSON is a place where the policy differs from the egress policy.
type openshellGapJSON struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
	Host   string `json:"host"`
	Grade  string `json:"grade"`
	Reason string `json:"reason"`
}

func gapsJSON(gaps []openshell.Gap) []openshellGapJSON {
	out := make([]openshellGapJSON, len(gaps))
	for i, g := range gaps {
		out[i] = openshellGapJSON{g.Name, g.Slug, g.Host, g.Grade, g.Finding.Message}
	}
	return out
}

func (p *program) openshellBuild(c *cli.Context) error {
	f, err := form(c, "text", "yaml", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	var d documents
	b, err := p.compose(c, &d, "host")
	if err != nil {
		return err
	}
	if f == "json" {
		var policy any
		if b.Data != nil {
			if err := yaml.Unmarshal(b.Data, &policy); err != nil {
				return err
			}
		}
		err = report.WriteJSON(p.out, struct {
			findingsJSON
			Gaps   []openshellGapJSON `json:"gaps"`
			Policy any                `json:"policy"`
			YAML   string             `json:"yaml"`
		}{d.json(b.Findings), gapsJSON(b.Gaps), policy, string(b.Data)})
	} else if err = p.say(c, &d, b.Findings); err == nil {
		_, err = p.out.Write(b.Data)
	}
	if err != nil {
		return err
	}
	if openshell.HasErrors(b.Findings) {
		return no
	}
	return nil
}

func (p *program) openshellCheck(c *cli.Context) error {
	f, err := form(c, "text", "yaml", "json", "sarif", "github", "junit")
	if err != nil {
		return err
	}
	layer, failOn := openshell.Layer(c.String("layer")), c.String("fail-on")
	if layer != "all" && layer != openshell.LayerOpenShell && layer != openshell.LayerHalo {
		return fmt.Errorf("--layer %s is not one of all, openshell, halo", layer)
	}
	if failOn != "error" && failOn != "warning" {
		return fmt.Errorf("--fail-on %s is not one of error, warning", failOn)
	}
	var d documents
	var all []openshell.Finding
	switch {
	case fromRepo(c) && c.NArg() > 0:
		return errors.New("openshell check takes files, or --sandbox, --ring and --unit, not both")
	case fromRepo(c):
		built, err := p.composeSandbox(c, &d)
		if err != nil {
			return err
		}
		for _, b := range built {
			for _, f := range b.Findings {
				if !slices.ContainsFunc(all, func(x openshell.Finding) bool { return diag.Compare(x.Diagnostic, f.Diagnostic) == 0 }) {
					all = append(all, f)
				}
			}
		}
	case c.NArg() == 0:
		return errors.New("openshell check needs a policy.yaml, or - for standard input")
	case c.IsSet("agent"):
		return errors.New("--agent wants --sandbox: a policy.yaml is for one agent")
	}
	for _, name := range c.Args().Slice() {
		fragment, fs, err := p.readPolicy(&d, name)
		if err != nil {
			return err
		}
		// What did not parse was left out of the policy, and its absence would be found again.
		if !openshell.HasErrors(fs) {
			fs = append(fs, openshell.Check(fragment.Policy)...)
		}
		all = append(all, fs...)
	}
	if layer != "all" {
		all = openshell.OfLayer(all, layer)
	}
	slices.SortStableFunc(all, func(a, b openshell.Finding) int { return diag.Compare(a.Diagnostic, b.Diagnostic) })
	switch f {
	case "json", "yaml":
		err = structured(p.out, f, d.json(all))
	case "text":
		err = p.print(c, d.report(named(all)), f)
	default:
		err = p.print(c, d.report(all), f)
	}
	if err != nil {
		return err
	}
	if openshell.HasErrors(all) || failOn == "warning" && len(all) > 0 {
		return no
	}
	return nil
}

type requestJSON struct {
	Binary    string   `json:"binary"`
	Ancestors []string `json:"ancestors"`
	Host      string   `json:"host"`
	Port      uint16   `json:"port"`
	Method    string   `json:"method"`
	Path      string   `json:"path"`
}

type spotJSON struct {
	Path   string `json:"path"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type decisionJSON struct {
	Decision string      `json:"decision"`
	Request  requestJSON `json:"request"`
	// Policy is the slug that OpenShell reports; Endpoint is its first endpoint that matches. Both are null when no policy matches.
	Policy   *string       `json:"policy"`
	Endpoint *spotJSON     `json:"endpoint"`
	Reason   string        `json:"reason"`
	Detail   string        `json:"detail"`
	By       *spotJSON     `json:"by"`
	Findings []findingJSON `json:"diagnostics"`
}

// request reads the question of openshell test.
func request(c *cli.Context) (*openshell.Request, error) {
	if !c.IsSet("binary") {
		return nil, errors.New("test needs --binary PATH, the executable that asks")
	}
	q := &openshell.Request{Binary: c.String("binary"), Ancestors: c.StringSlice("ancestor"), Host: c.String("host"), Method: c.String("method"), Path: c.String("path")}
	for _, path := range append([]string{q.Binary}, q.Ancestors...) {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("--binary and --ancestor want the absolute path of an executable, got %q", path)
		}
	}
	switch port := c.Int("port"); {
	case port < 1 || port > 65535:
		return nil, fmt.Errorf("--port %d is not a port from 1 to 65535", port)
	case q.Host == "":
		return nil, errors.New("openshell test needs --host")
	case strings.ContainsAny(q.Host, "/@ *\\") || strings.Contains(q.Host, ":") && !strings.HasPrefix(q.Host, "[") && strings.Count(q.Host, ":") == 1:
		return nil, fmt.Errorf("--host %q is not a host name; the port goes to --port, the path to --path", q.Host)
	default:
		q.Port = uint16(port)
	}
	if q.Method == "" && (q.Path != "" || c.IsSet("method")) {
		return nil, errors.New("--path wants a --method")
	}
	if strings.ContainsFunc(q.Method, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}*`, r) }) {
		return nil, fmt.Errorf("--method %q is not an HTTP method", q.Method)
	}
	if q.Method != "" && q.Path == "" {
		q.Path = "/"
	}
	call := openshell.Call{OperationType: c.String("operation"), OperationName: c.String("operation-name"), Fields: c.StringSlice("field"), Method: c.String("rpc-method"), Tool: c.String("tool")}
	graphQL := call.OperationType != "" || call.OperationName != "" || len(call.Fields) > 0
	switch {
	case graphQL && (call.Method != "" || call.Tool != ""):
		return nil, errors.New("a request is a GraphQL operation or a JSON-RPC call, not both")
	case graphQL && !slices.Contains([]string{"query", "mutation", "subscription"}, call.OperationType):
		return nil, errors.New("--operation wants query, mutation or subscription")
	case call.Tool != "" && call.Method == "":
		return nil, errors.New("--tool wants --rpc-method tools/call")
	case graphQL || call.Method != "":
		if q.Method == "" {
			return nil, errors.New("a request with a body wants a --method")
		}
		q.Call = &call
	}
	return q, nil
}

func (p *program) openshellTest(c *cli.Context) error {
	f, err := form(c, "text", "yaml", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	expect := c.String("expect")
	if !slices.Contains([]string{"", "allow", "deny", "audit"}, expect) {
		return fmt.Errorf("--expect %s is not one of allow, deny, audit", expect)
	}
	q, err := request(c)
	if err != nil {
		return err
	}
	var d documents
	policy, findings, err := p.openshellPolicy(c, &d)
	if err != nil {
		return err
	}
	if openshell.HasErrors(findings) {
		if err := p.say(c, &d, slices.DeleteFunc(findings, func(f openshell.Finding) bool { return f.Severity != diag.Error })); err != nil {
			return err
		}
		if d.fs != nil {
			return errors.New("the policy does not load; run halo lint")
		}
		return errors.New("OpenShell would not load this policy")
	}
	got := openshell.NewDecider(policy).Decide(q)
	if f == "text" {
		if err := p.say(c, &d, findings); err != nil {
			return err
		}
		err = d.printDecision(p.out, policy, q, &got)
	} else {
		err = structured(p.out, f, d.decision(policy, q, &got, findings))
	}
	if err != nil {
		return err
	}
	answer := got.Answer.String()
	if expect != "" && answer != expect {
		fmt.Fprintf(p.err, "halo: the answer is %s, expected %s\n", answer, expect)
		return no
	}
	if expect == "" && got.Answer == openshell.Deny {
		return no
	}
	return nil
}

// openshellPolicy returns the policy to ask: that of --policy, or the composed one.
func (p *program) openshellPolicy(c *cli.Context, d *documents) (*openshell.Policy, []openshell.Finding, error) {
	file := c.String("policy")
	if file == "" {
		b, err := p.compose(c, d, "workspace-host")
		if err != nil {
			return nil, nil, err
		}
		return b.Policy, b.Findings, nil
	}
	for _, f := range append(renamed(composeFlags(), "host", "workspace-host"), targetFlags()...) {
		if name := f.Names()[0]; c.IsSet(name) {
			return nil, nil, fmt.Errorf("--policy and --%s: a policy is read or composed, not both", name)
		}
	}
	fragment, fs, err := p.readPolicy(d, file)
	if err != nil {
		return nil, nil, err
	}
	if !openshell.HasErrors(fs) {
		fs = append(fs, openshell.Check(fragment.Policy)...)
	}
	return fragment.Policy, fs, nil
}

// spot finds the place of an endpoint or rule of a policy.
func (d *documents) spot(policy *openshell.Policy, s openshell.Spot) *spotJSON {
	r := policy.Rule(s.Slug)
	if s.Slug == "" || r == nil {
		return nil
	}
	e := &r.Endpoints[s.Endpoint]
	pos := e.Pos
	switch {
	case s.Rule < 0:
	case s.Deny:
		pos = e.DenyRules[s.Rule].Pos
	default:
		pos = e.Rules[s.Rule].Pos
	}
	return &spotJSON{"network_policies." + s.String(), d.files.Name(pos), pos.Line(), pos.Col()}
}

func (d *documents) decision(policy *openshell.Policy, q *openshell.Request, got *openshell.Decision, fs []openshell.Finding) decisionJSON {
	out := decisionJSON{Decision: got.Answer.String(), Reason: got.Reason.String(), Detail: got.Detail, By: d.spot(policy, got.By), Findings: d.json(fs).Diagnostics,
		Request: requestJSON{q.Binary, append([]string{}, q.Ancestors...), q.Host, q.Port, q.Method, q.Path}}
	if got.Policy != "" {
		out.Policy, out.Endpoint = &got.Policy, d.spot(policy, openshell.Spot{Slug: got.Policy, Endpoint: got.Endpoint, Rule: -1})
	}
	return out
}

func (s *spotJSON) String() string {
	if s.File == "" {
		return s.Path
	}
	return fmt.Sprintf("%s (%s:%d:%d)", s.Path, s.File, s.Line, s.Column)
}

// shown quotes a text that would do something to a terminal.
func shown(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func (d *documents) printDecision(w io.Writer, policy *openshell.Policy, q *openshell.Request, got *openshell.Decision) error {
	out := d.decision(policy, q, got, nil)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s to %s:%d", strings.ToUpper(out.Decision), shown(q.Binary), shown(q.Host), q.Port)
	if q.Method != "" {
		fmt.Fprintf(&b, " %s %s", q.Method, shown(q.Path))
	}
	b.WriteByte('\n')
	if out.Endpoint != nil {
		fmt.Fprintf(&b, "policy  %s\nmatch   %s\n", shown(got.Policy), shown(out.Endpoint.String()))
	}
	fmt.Fprintf(&b, "reason  %s", out.Reason)
	if out.Detail != "" {
		fmt.Fprintf(&b, ": %s", shown(out.Detail))
	}
	if out.By != nil && (out.Endpoint == nil || out.By.Path != out.Endpoint.Path) {
		fmt.Fprintf(&b, ": %s", shown(out.By.String()))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
