// Command halo is the compiler for AI-agent policy. Each file of this package is one command: it parses flags, calls one function, prints, and maps the
// answer to an exit status.
package main

//go:generate go test . -run TestReference -count=1 -update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts/device/probe"
)

// version is the version of the tool that releases record. The linker may set it.
var version = "0.1.0-dev"

func main() {
	probe.Inside(nil)
	os.Exit(start())
}

// unused is memory that is never touched, so that it costs none: the collector counts it and leaves a small heap room to grow. Without it a run begins with a
// hundred collections of a heap of 2 MB, each of which looks at every global.
const unused = 8 << 20

// collect sets when memory is collected: not before the heap is some 16 MB, which most commands never reach, and then more often than by Go's default, since
// collecting costs less time than touching new memory would. The limit keeps the promise for the largest repos. What it returns must stay reachable.
func collect() []byte {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(200<<20 + unused)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, 40)
	return make([]byte, unused)
}

func start() int {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		defer runtime.KeepAlive(collect())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, &program{args: os.Args, in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, lookupEnv: os.LookupEnv, now: time.Now})
}

// program is everything a command touches outside its arguments.
type program struct {
	args      []string
	in        io.Reader
	out, err  io.Writer
	getenv    func(string) string
	lookupEnv func(string) (string, bool)
	now       func() time.Time
	// advise adds advisory rules to what a compilation finds.
	advise bool
}

// status is the exit status of a run that has said what it had to say.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// no is the status of a negative answer, none that of no answer at all.
const (
	no   status = 1
	none status = 2
)

// answerError is an error that is itself the negative answer: exit status 1.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

func run(ctx context.Context, p *program) int {
	app := p.app()
	args, err := arrange(app, p.args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		return 0
	}
	if s, ok := errors.AsType[status](err); ok {
		return int(s)
	}
	fmt.Fprintf(p.err, "halo: %s\n", strings.TrimSpace(err.Error()))
	if _, ok := errors.AsType[answerError](err); ok {
		return int(no)
	}
	return int(none)
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:      "halo",
		Usage:     "the compiler for AI-agent policy",
		UsageText: "halo [global flags] COMMAND [flags and arguments in any order]",
		Description: "A policy repo is a directory of YAML with a halos.yaml at its root. halo checks it, says what a host or a path gets and why, and builds one\n" +
			"signed, reproducible release with the managed settings of every harness, ring, unit and operating system.\n\n" +
			"Exit status: 0 yes, 1 the answer is no, 2 no answer (usage, unreadable input).",
		Writer:          p.out,
		ErrWriter:       p.err,
		HideVersion:     true,
		HideHelpCommand: false,
		Suggest:         false,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return err },
		// A script whose command came out empty must not pass.
		Action: func(*cli.Context) error { return errors.New("name a command; halo help lists them") },
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "policy-dir", Usage: "the policy repo `DIR` (default: the nearest parent directory with a halos.yaml)"},
			&cli.StringFlag{Name: "output", Value: "text", Usage: "output `FORM`: text or json; some commands add sarif, github, junit, markdown"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "`WHEN` to colour: auto, always or never"},
			&cli.BoolFlag{Name: "quiet", Usage: "print errors and results only"},
			&cli.StringFlag{Name: "as-of", Usage: "the `TIME` (RFC 3339) to judge expiry at, and to record in a release"},
		},
	}
	quietDefaults(app.Flags)
	app.Commands = p.commands()
	for _, c := range app.Commands {
		harden("halo", c)
	}
	return app
}

// quietDefaults keeps "(default: false)" out of help: every switch is off.
func quietDefaults(flags []cli.Flag) {
	for _, f := range flags {
		if b, ok := f.(*cli.BoolFlag); ok {
			b.DisableDefaultText = true
		}
	}
}

// harden makes usage errors of every command errors like any other, without a page of help.
func harden(path string, c *cli.Command) {
	path += " " + c.Name
	if len(c.Subcommands) > 0 {
		c.UsageText = path + " COMMAND"
	}
	quietDefaults(c.Flags)
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return err }
	c.HideHelpCommand = true
	for _, s := range c.Subcommands {
		harden(path, s)
	}
	if len(c.Subcommands) > 0 && c.Action == nil {
		name := c.Name
		c.Action = func(ctx *cli.Context) error {
			var names []string
			for _, s := range ctx.Command.Subcommands {
				if s.Name != "help" {
					names = append(names, s.Name)
				}
			}
			return fmt.Errorf("%s needs one of %s", name, strings.Join(names, ", "))
		}
	}
}

func (p *program) commands() []*cli.Command {
	return []*cli.Command{
		// Writing a policy, asking it, building it, its sandboxes, its devices.
		p.initCommand(), p.importCommand(), p.ejectCommand(), p.schemaCommand(),
		p.lintCommand(), p.validateCommand(), p.testCommand(), p.explainCommand(), p.egressCommand(), p.harnessesCommand(), p.diffCommand(), p.explainCodeCommand(),
		p.buildCommand(), p.renderCommand(), p.keygenCommand(), p.releaseCommand(), p.reportCommand(),
		p.packCommand(), p.policyCommand(), p.openshellCommand(),
		p.mdmCommand(), p.installCommand(), p.doctorCommand(), p.agentCommand(),
		p.versionCommand(), p.completionCommand(),
	}
}
