package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler/diag"
)

// arrange puts arguments into the one order that the flag parser understands: global flags, then each command with its flags, then the other arguments. A
// parser that stops at the first positional argument would take `halo egress test HOST --ring R` for three hosts.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	level := [][]string{nil}
	flags := [][]cli.Flag{app.Flags}
	var path []*cli.Command
	var rest []string
	commands := app.Commands
	in := args[1:]
	if len(in) == 1 && in[0] == "--version" {
		in = []string{"version"}
	}
	for len(in) > 0 {
		arg := in[0]
		in = in[1:]
		switch {
		case arg == "--":
			rest = append(rest, in...)
			in = nil
		case len(arg) > 1 && arg[0] == '-':
			name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			at, flag := owner(flags, name)
			if at < 0 {
				return nil, unknownFlag(arg, flags, path)
			}
			if takesValue(flag) && !hasValue {
				if len(in) == 0 {
					return nil, fmt.Errorf("flag %s needs a value", arg)
				}
				// One word with "=" keeps a value that begins with a hyphen a value.
				value, in = in[0], in[1:]
				arg += "=" + value
			}
			if _, texts := flag.(*cli.GenericFlag); strings.TrimSpace(value) == "" && takesValue(flag) && !texts {
				// An unset variable of a script must not turn into the default ring, or a release without a signature.
				return nil, fmt.Errorf("flag --%s has an empty value; leave it out for the default", name)
			}
			level[at] = append(level[at], arg)
		case len(rest) == 0 && len(commands) > 0:
			i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(arg) })
			if i < 0 {
				if len(path) == 0 && (arg == "help" || arg == "h") {
					return helpOf(app, args[0], in)
				}
				return nil, unknownCommand(arg, commands, path)
			}
			path = append(path, commands[i])
			commands = commands[i].Subcommands
			level = append(level, nil)
			flags = append(flags, path[len(path)-1].Flags)
		default:
			rest = append(rest, arg)
		}
	}
	out := append([]string{args[0]}, level[0]...)
	for i, c := range path {
		out = append(out, c.Name)
		out = append(out, level[i+1]...)
	}
	if len(rest) > 0 {
		out = append(append(out, "--"), rest...)
	}
	return out, nil
}

// helpOf turns `halo help egress test` into `halo egress test --help`, so that help knows subcommands and refuses what is no command.
func helpOf(app *cli.App, halo string, topic []string) ([]string, error) {
	if len(topic) == 0 || topic[0] == "help" {
		return []string{halo, "help"}, nil
	}
	return arrange(app, append([]string{halo}, append(slices.Clone(topic), "--help")...))
}

// owner finds the innermost command that has a flag.
func owner(flags [][]cli.Flag, name string) (level int, flag cli.Flag) {
	if name == "help" || name == "h" {
		return len(flags) - 1, nil
	}
	for i, fs := range slices.Backward(flags) {
		for _, f := range fs {
			if slices.Contains(f.Names(), name) {
				return i, f
			}
		}
	}
	return -1, nil
}

// takesValue reports whether a flag has a value; nil is --help.
func takesValue(flag cli.Flag) bool {
	_, isBool := flag.(*cli.BoolFlag)
	return flag != nil && !isBool
}

func unknownFlag(arg string, flags [][]cli.Flag, path []*cli.Command) error {
	var names []string
	for _, fs := range flags {
		for _, f := range fs {
			names = append(names, "--"+f.Names()[0])
		}
	}
	name, _, _ := strings.Cut(arg, "=")
	err := fmt.Errorf("unknown flag %s", name)
	if len(path) > 0 {
		err = fmt.Errorf("%w of %s", err, commandPath(path))
	}
	if near := diag.Nearest(name, names); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return err
}

func unknownCommand(arg string, commands []*cli.Command, path []*cli.Command) error {
	var names []string
	for _, c := range commands {
		if !c.Hidden && c.Name != "help" {
			names = append(names, c.Name)
		}
	}
	err := fmt.Errorf("unknown command %q", strings.TrimSpace(commandPath(path)+" "+arg))
	if near := diag.Nearest(arg, names); near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return fmt.Errorf("%w; commands are %s", err, strings.Join(names, ", "))
}

func commandPath(path []*cli.Command) string {
	names := make([]string, len(path))
	for i, c := range path {
		names[i] = c.Name
	}
	return strings.Join(names, " ")
}
