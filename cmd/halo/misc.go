package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint/report"
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version of halo",
		Action: func(c *cli.Context) error {
			f, err := form(c, "text", "json")
			if err != nil {
				return err
			}
			if err := noArgs(c); err != nil {
				return err
			}
			if f == "json" {
				return report.WriteJSON(p.out, map[string]string{"name": "halo", "version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err = fmt.Fprintf(p.out, "halo %s\n", version)
			return err
		},
	}
}

func (p *program) explainCodeCommand() *cli.Command {
	return &cli.Command{
		Name: "explain-code", Usage: "explain a diagnostic code", ArgsUsage: "[CODE]",
		Description: "Without a code, lists all codes.",
		Action: func(c *cli.Context) error {
			f, err := form(c, "text", "json", "markdown")
			if err != nil {
				return err
			}
			id, err := oneArg(c, "code")
			if err != nil {
				return err
			}
			codes := codes()
			if id != "" {
				i := slices.IndexFunc(codes, func(x *diag.Code) bool { return strings.EqualFold(x.ID, id) || x.ID == "HALO"+id })
				if i < 0 {
					return fmt.Errorf("there is no code %q; halo explain-code lists all", id)
				}
				codes = codes[i : i+1]
			}
			switch {
			case f == "json":
				out := make([]codeJSON, len(codes))
				for i, x := range codes {
					out[i] = codeJSON{x.ID, x.Severity.String(), x.Title, x.Text, x.Before, x.After, x.Since}
				}
				return report.WriteJSON(p.out, out)
			case f == "markdown":
				_, err = fmt.Fprint(p.out, codesMarkdown(codes))
				return err
			case id == "":
				for _, x := range codes {
					fmt.Fprintf(p.out, "%s  %-7s  %s\n", x.ID, x.Severity, x.Title)
				}
				return nil
			}
			x := codes[0]
			fmt.Fprintf(p.out, "%s (%s): %s\n\n%s\n", x.ID, x.Severity, x.Title, x.Text)
			if x.Before != "" {
				fmt.Fprintf(p.out, "\nInstead of:\n%s\n", indent(x.Before))
			}
			if x.After != "" {
				fmt.Fprintf(p.out, "\nWrite:\n%s\n", indent(x.After))
			}
			return nil
		},
	}
}

type codeJSON struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
	Text     string `json:"text"`
	Before   string `json:"before"`
	After    string `json:"after"`
	Since    string `json:"since"`
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

// codesMarkdown prints codes one after the other.
func codesMarkdown(codes []*diag.Code) string {
	var b strings.Builder
	b.WriteString("# Diagnostic codes\n")
	for _, x := range codes {
		b.WriteString("\n#")
		b.WriteString(codeMarkdown(x))
	}
	return b.String()
}

// codeMarkdown is the reference page of one code.
func codeMarkdown(x *diag.Code) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\nSeverity: %s. Since %s.\n\n%s\n", x.ID, x.Title, x.Severity, x.Since, x.Text)
	if x.Before != "" {
		fmt.Fprintf(&b, "\nInstead of:\n\n```yaml\n%s\n```\n", x.Before)
	}
	if x.After != "" {
		fmt.Fprintf(&b, "\nWrite:\n\n```yaml\n%s\n```\n", x.After)
	}
	return b.String()
}

// codesIndex is the reference page that leads to the page of every code.
func codesIndex(codes []*diag.Code) string {
	var b strings.Builder
	b.WriteString("# Diagnostic codes\n\nEvery finding of halo carries one of these codes. `halo explain-code CODE` prints the text of its page. A code is never reused.\n\n" +
		"| code | severity | finding |\n| --- | --- | --- |\n")
	for _, x := range codes {
		fmt.Fprintf(&b, "| [%s](../rules/%s.md) | %s | %s |\n", x.ID, x.ID, x.Severity, x.Title)
	}
	return b.String()
}

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a completion script for a shell", ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish: source <(halo completion bash)",
		Action: func(c *cli.Context) error {
			if err := exactly(c, 1, "a shell: bash, zsh or fish"); err != nil {
				return err
			}
			script, ok := completion(c.App, c.Args().First())
			if !ok {
				return fmt.Errorf("%q is not one of bash, zsh, fish", c.Args().First())
			}
			_, err := fmt.Fprint(p.out, script)
			return err
		},
	}
}

func exactly(c *cli.Context, n int, what string) error {
	if c.NArg() != n {
		return fmt.Errorf("%s needs %s", c.Command.Name, what)
	}
	return nil
}

// completion writes a script that knows every command and flag; it runs nothing.
func completion(app *cli.App, shell string) (string, bool) {
	type entry struct {
		path  string
		words []string
	}
	var entries []entry
	global := flagWords(app.Flags)
	var walk func(path string, commands []*cli.Command, flags []string)
	walk = func(path string, commands []*cli.Command, flags []string) {
		var words []string
		for _, c := range commands {
			if !c.Hidden && c.Name != "help" {
				words = append(words, c.Name)
			}
		}
		entries = append(entries, entry{path, append(append(words, flags...), global...)})
		for _, c := range commands {
			if !c.Hidden && c.Name != "help" {
				walk(strings.TrimSpace(path+" "+c.Name), c.Subcommands, flagWords(c.Flags))
			}
		}
	}
	walk("", app.Commands, nil)
	var b strings.Builder
	switch shell {
	case "bash", "zsh":
		if shell == "zsh" {
			b.WriteString("autoload -U +X bashcompinit && bashcompinit\n")
		}
		b.WriteString("_halo() {\n  local cur=${COMP_WORDS[COMP_CWORD]} path=\"\" w\n  for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $w in -*) ;; *) path=\"${path:+$path }$w\" ;; esac\n  done\n  case $path in\n")
		for _, e := range slices.Backward(entries) {
			pattern := "\"" + e.path + "\""
			if e.path != "" {
				pattern += "|\"" + e.path + " \"*"
			} else {
				pattern = "*"
			}
			fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", pattern, strings.Join(e.words, " "))
		}
		b.WriteString("  esac\n  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _halo halo\n")
	case "fish":
		for _, e := range entries {
			condition := "__fish_use_subcommand"
			if e.path != "" {
				words := strings.Fields(e.path)
				condition = "__fish_seen_subcommand_from " + words[len(words)-1]
			}
			for _, w := range e.words {
				if name, ok := strings.CutPrefix(w, "--"); ok {
					fmt.Fprintf(&b, "complete -c halo -n '%s' -l %s\n", condition, name)
				} else {
					fmt.Fprintf(&b, "complete -c halo -n '%s' -f -a %s\n", condition, w)
				}
			}
		}
	default:
		return "", false
	}
	return b.String(), true
}

func flagWords(flags []cli.Flag) []string {
	var out []string
	for _, f := range flags {
		if name := f.Names()[0]; len(name) > 1 {
			out = append(out, "--"+name)
		}
	}
	return out
}
