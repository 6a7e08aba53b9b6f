package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/lint/report"
)

// texts is a flag that may be repeated and whose values may hold commas.
type texts []string

func (t *texts) Set(s string) error { *t = append(*t, s); return nil }

func (t *texts) String() string { return "" }

func textsFlag(name, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &texts{}}
}

func textsOf(c *cli.Context, name string) []string { return *c.Generic(name).(*texts) }

func (p *program) policyCommand() *cli.Command {
	return &cli.Command{
		Name: "policy", Usage: "ask what a sandbox gets",
		Subcommands: []*cli.Command{{
			Name: "explain", Usage: "print the effective sandbox policy, and which layer decided each setting",
			Description: "Puts together the pack, the openshell block of a Sandbox document, the options of one run and the administrator's limits, as DefenseClaw does when a\n" +
				"sandbox starts. Every setting has its value, the layer and key that decided it, and what was requested when a limit replaced it. Limits that\n" +
				"replace somebody's choice are listed as the user sees them. Exit status 1 when no sandbox would start, 2 when an option is malformed or a pack does not load.",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "sandbox", Usage: "the Sandbox document `NAME` (default: the only one)"},
				&cli.StringFlag{Name: "deployment-mode", Usage: "DefenseClaw's deployment_mode `MODE`, to say whether the admin block is authoritative or advisory"},
				&cli.StringFlag{Name: "harness", Usage: "run option: the harness `ID` of DefenseClaw, such as claudecode or codex"},
				&cli.StringFlag{Name: "pack", Usage: "run option: use `PACK`, a name or an absolute path"},
				&cli.StringFlag{Name: "profile", Usage: "run option: use `PROFILE`: open, balanced or strict"},
				&cli.BoolFlag{Name: "copy", Usage: "run option: work on a copy of the project"},
				&cli.BoolFlag{Name: "safe", Usage: "run option: keep the permission prompts"},
				textsFlag("unmask", "run option: show the files of a project `GLOB`; may be repeated"),
				textsFlag("host-port", "run option: open a `PORT` of the host; may be repeated"),
				&cli.BoolFlag{Name: "no-mcp", Usage: "run option: leave the MCP servers of the host behind"},
				&cli.StringFlag{Name: "cpu", Usage: "run option: at most this `CPU`: cores (1.5) or millicores (500m)"},
				&cli.StringFlag{Name: "memory", Usage: "run option: at most this `MEMORY`: bytes such as 512Mi or 8Gi"},
				&cli.BoolFlag{Name: "yolo", Usage: "option of DefenseClaw's API: skip the permission prompts (--yolo=false keeps them)"},
				&cli.BoolFlag{Name: "learn", Usage: "option of DefenseClaw's API: learn mode"},
				&cli.StringFlag{Name: "project", Usage: "the project `DIR` on the device, for require_copy_for"},
				&cli.StringFlag{Name: "home", Usage: "the home `DIR` on the device, for patterns that begin with ~"},
			},
			Action: p.policyExplain,
		}},
	}
}

// runOptions reads the options of one run.
func runOptions(c *cli.Context) (pack.Run, error) {
	run := pack.Run{Pack: c.String("pack"), Profile: c.String("profile"), Copy: c.Bool("copy"), Safe: c.Bool("safe"), Unmask: textsOf(c, "unmask"), NoMCP: c.Bool("no-mcp"),
		CPU: c.String("cpu"), Memory: c.String("memory"), Harness: c.String("harness"), Project: c.String("project"), Home: c.String("home"), Learn: c.Bool("learn")}
	for _, s := range textsOf(c, "host-port") {
		port, err := strconv.Atoi(s)
		if err != nil {
			return run, fmt.Errorf("sandbox policy: --host-port %q must be a number between 1 and 65535", s)
		}
		run.HostPorts = append(run.HostPorts, port)
	}
	if c.IsSet("yolo") {
		yolo := c.Bool("yolo")
		run.Yolo = &yolo
	}
	if hint := pack.ForeignHarness(run.Harness); hint != "" {
		return run, fmt.Errorf("sandbox policy: --harness %q is not a harness name of DefenseClaw; %s", run.Harness, hint)
	}
	return run, nil
}

// box compiles the policy repo and returns one of its Sandbox documents.
func (p *program) box(c *cli.Context) (*compiler.Compiled, *compiler.Sandbox, error) {
	r, err := p.open(c, "")
	if err != nil {
		return nil, nil, err
	}
	compiled, _, err := p.query(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(compiled.Sandboxes))
	for i, s := range compiled.Sandboxes {
		names[i] = s.Doc.Name.V
	}
	slices.Sort(names)
	name := c.String("sandbox")
	switch {
	case len(names) == 0:
		return nil, nil, errors.New("the policy repo has no Sandbox document")
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return nil, nil, fmt.Errorf("there are several Sandbox documents; name one with --sandbox: %s", strings.Join(names, ", "))
	}
	box := compiled.Sandbox(name)
	if box == nil {
		return nil, nil, fmt.Errorf("there is no Sandbox document %q; there are %s", name, strings.Join(names, ", "))
	}
	if box.Config == nil {
		return nil, nil, fmt.Errorf("sandbox %s has neither a pack nor an openshell block, so DefenseClaw decides nothing for it", name)
	}
	return compiled, box, nil
}

// findPack finds packs by name in the policy repo and by path on this machine, which is said, because a device may hold another.
func (p *program) findPack(c *cli.Context, compiled *compiler.Compiled) func(ref string) (*pack.Pack, error) {
	return func(ref string) (*pack.Pack, error) {
		if pack.ValidName(ref) || ref == "" {
			return compiled.FindPack(ref)
		}
		root := string(filepath.Separator)
		if volume := filepath.VolumeName(ref); volume != "" {
			root = volume + root
		}
		found, err := pack.Finder{FS: os.DirFS(root), Home: filepath.ToSlash(p.getenv("HOME"))}.Find(ref)
		if err == nil && !c.Bool("quiet") {
			fmt.Fprintf(p.err, "halo: the pack %s is read from this machine; a device may hold another\n", report.Printable(found.Path))
		}
		return found, err
	}
}

type policyJSON struct {
	Sandbox    string           `json:"sandbox"`
	Pack       packJSON         `json:"pack"`
	Admin      adminJSON        `json:"admin"`
	Settings   []settingJSON    `json:"settings"`
	Violations []pack.Violation `json:"violations"`
	Starts     bool             `json:"starts"`
}

type adminJSON struct {
	Configured bool `json:"configured"`
	// Binding is keyed by deployment mode; "other" is every mode that is not named.
	Binding map[string]string `json:"binding"`
}

type settingJSON struct {
	Key       string `json:"key"`
	Value     string `json:"value"`
	Layer     string `json:"layer"`
	Origin    string `json:"origin"`
	Requested string `json:"requested,omitempty"`
	// HeldBy is policy.yaml when OpenShell holds the setting.
	HeldBy string `json:"heldBy"`
}

func (p *program) policyExplain(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	run, err := runOptions(c)
	if err != nil {
		return err
	}
	compiled, box, err := p.box(c)
	if err != nil {
		return err
	}
	policy, err := pack.Resolve(pack.Input{Config: box.Config, Run: run, Find: p.findPack(c, compiled)})
	if err != nil {
		return err
	}
	out := policyJSON{Sandbox: box.Doc.Name.V, Pack: packResult("", &pack.File{Pack: policy.Pack}, nil), Violations: policy.Violations, Starts: !policy.Fatal(),
		Admin: adminJSON{Configured: policy.Admin.Configured(), Binding: map[string]string{}}}
	const managed = "managed_enterprise"
	switch mode := c.String("deployment-mode"); mode {
	case "":
		out.Admin.Binding[managed], out.Admin.Binding["other"] = pack.Binding(managed), pack.Binding("")
	default:
		out.Admin.Binding[mode] = pack.Binding(mode)
	}
	for _, s := range policy.Settings {
		out.Settings = append(out.Settings, settingJSON{s.Key, s.Value, s.Source, s.Origin, s.Requested, pack.HeldBy(s.Key)})
	}
	if out.Violations == nil {
		out.Violations = []pack.Violation{}
	}
	if f == "json" {
		err = report.WriteJSON(p.out, out)
	} else {
		err = p.printPolicy(&out)
	}
	if err == nil && !out.Starts {
		return no
	}
	return err
}

func (p *program) printPolicy(out *policyJSON) error {
	fmt.Fprintf(p.out, "sandbox %s  (pack %s %s)\n", out.Sandbox, out.Pack.Name, out.Pack.Digest)
	switch b := out.Admin.Binding; {
	case !out.Admin.Configured:
		fmt.Fprintln(p.out, "admin block: not configured")
	case len(b) == 1:
		for mode, binding := range b {
			fmt.Fprintf(p.out, "admin block: configured, %s in deployment mode %s\n", binding, report.Printable(mode))
		}
	default:
		fmt.Fprintln(p.out, "admin block: configured; authoritative in deployment mode managed_enterprise, advisory in any other, where the user can edit it away")
	}
	width := 0
	for _, s := range out.Settings {
		width = max(width, len(s.Key))
	}
	for _, s := range out.Settings {
		requested := ""
		if s.Requested != "" {
			requested = "; requested " + report.Printable(s.Requested)
		}
		fmt.Fprintf(p.out, "  %-*s  %s  # %s: %s%s\n", width, s.Key, report.Printable(s.Value), s.Layer, s.Origin, requested)
	}
	for _, held := range []struct{ by, text string }{
		{pack.HeldByPolicy, "held by OpenShell's policy.yaml"}, {pack.HeldByProxy, "held by the egress proxy, not by OpenShell"}, {pack.HeldByDefenseClaw, "held by DefenseClaw alone"},
	} {
		var keys []string
		for _, s := range out.Settings {
			if s.HeldBy == held.by {
				keys = append(keys, s.Key)
			}
		}
		fmt.Fprintf(p.out, "%s: %s\n", held.text, strings.Join(keys, ", "))
	}
	for _, v := range out.Violations {
		fmt.Fprintf(p.out, "told  %s [%s: %s]\n", report.Printable(v.String()), v.Source, report.Printable(v.Attempted))
	}
	if !out.Starts {
		fmt.Fprintln(p.out, "no sandbox starts")
	}
	return nil
}

// unresolved is what every offline answer about a host has to say.
const unresolved = "nothing was resolved: the addresses behind a name are checked again when a connection is made"

type sandboxEgressJSON struct {
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Decision    string `json:"decision"`
	Sandbox     string `json:"sandbox"`
	Pack        string `json:"pack"`
	Profile     string `json:"profile"`
	Step        int    `json:"step"`
	Rule        string `json:"rule"`
	Match       string `json:"match"`
	Unblockable bool   `json:"unblockable"`
	Reason      string `json:"reason"`
	Hint        string `json:"hint"`
	Note        string `json:"note"`
}

// sandboxEgress decides hosts by the twelve steps of a sandbox.
func (p *program) sandboxEgress(c *cli.Context, form string) error {
	for _, flag := range []string{"ring", "unit", "os"} {
		if c.IsSet(flag) {
			return fmt.Errorf("--%s and --sandbox are two questions: a sandbox decides by its own document", flag)
		}
	}
	port := 0
	if c.IsSet("port") {
		var err error
		if port, err = strconv.Atoi(c.String("port")); err != nil || port < 0 || port > 65535 {
			return fmt.Errorf("--port %q is not a number from 0, any port, to 65535", c.String("port"))
		}
	}
	var unblocks []pack.Pattern
	for _, s := range textsOf(c, "unblock") {
		u, err := pack.ParseUnblock(s)
		if err != nil {
			return fmt.Errorf("--unblock: %w", err)
		}
		unblocks = append(unblocks, u)
	}
	qs, err := p.questions(c)
	if err != nil {
		return err
	}
	compiled, box, err := p.box(c)
	if err != nil {
		return err
	}
	policy, err := pack.Resolve(pack.Input{Config: box.Config, Find: p.findPack(c, compiled)})
	if err != nil {
		return err
	}
	engine := policy.Engine(unblocks)
	failed := false
	var rows []sandboxEgressJSON
	for _, q := range qs {
		d := engine.Decide(q.host, port)
		row := sandboxEgressJSON{Host: q.host, Port: port, Decision: effect(d.Allowed), Sandbox: box.Doc.Name.V, Pack: policy.Pack.Name, Profile: policy.Profile, Step: d.Step, Rule: d.Rule,
			Match: d.Match, Unblockable: d.Unblockable, Note: unresolved}
		row.Reason, row.Hint = engine.Explain(d)
		rows = append(rows, row)
		if q.expect == "" {
			failed = failed || !d.Allowed
		} else if row.Decision != q.expect {
			failed = true
			fmt.Fprintf(p.err, "halo: %s is %s, expected %s\n", report.Printable(q.host), row.Decision, q.expect)
		}
	}
	switch {
	case form == "text":
		err = p.printSandboxEgress(rows)
	case len(rows) == 1 && c.String("file") == "":
		err = report.WriteJSON(p.out, rows[0])
	default:
		err = report.WriteJSON(p.out, map[string]any{"results": rows})
	}
	if err == nil && failed {
		return no
	}
	return err
}

func (p *program) printSandboxEgress(rows []sandboxEgressJSON) error {
	for i, r := range rows {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		where := "port not checked"
		if r.Port != 0 {
			where = "port " + strconv.Itoa(r.Port)
		}
		fmt.Fprintf(p.out, "%s %s  (%s, sandbox %s, pack %s, profile %s)\n", strings.ToUpper(r.Decision), report.Printable(r.Host), where, r.Sandbox, r.Pack, r.Profile)
		fmt.Fprintf(p.out, "step   %d %s\n", r.Step, strings.TrimSpace(r.Rule+" "+r.Match))
		fmt.Fprintf(p.out, "why    %s\n", r.Reason)
		if r.Hint != "" {
			fmt.Fprintf(p.out, "hint   %s\n", r.Hint)
		}
	}
	_, err := fmt.Fprintf(p.out, "note   %s\n", unresolved)
	return err
}
