package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness/all"
)

var update = flag.Bool("update", false, "rewrite generated files")

// TestReference keeps the generated reference pages equal to what the program says.
func TestReference(t *testing.T) {
	var matrix bytes.Buffer
	if err := coverage.Builtin(all.Harnesses()).Markdown(&matrix, "Coverage"); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{
		"coverage.md":        matrix.String(),
		"reference/codes.md": codesIndex(codes()),
		"reference/cli.md":   cliMarkdown((&program{}).app()),
	}
	for _, c := range codes() {
		pages["rules/"+c.ID+".md"] = codeMarkdown(c)
	}
	maps.Copy(pages, manPages((&program{}).app()))
	docs := filepath.Join("..", "..", "docs")
	for name, want := range pages {
		file := filepath.Join(docs, filepath.FromSlash(name))
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("docs/%s is not what the program says; run go generate ./cmd/halo (%v)", name, err)
		}
	}
	for _, dir := range []string{"rules", "man"} {
		files, err := os.ReadDir(filepath.Join(docs, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if pages[dir+"/"+f.Name()] != "" {
				continue
			}
			if !*update {
				t.Errorf("docs/%s/%s is the page of nothing any more; run go generate ./cmd/halo", dir, f.Name())
			} else if err := os.Remove(filepath.Join(docs, dir, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCommandsNamed checks that every command and flag that a page, a usage text or a code names in running text exists.
func TestCommandsNamed(t *testing.T) {
	texts := map[string]string{"usage texts": cliMarkdown((&program{}).app())}
	for _, c := range codes() {
		texts[c.ID] = c.Text
	}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guides/*.md", "examples/*/README.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[f] = string(text)
		}
	}
	named := 0
	for where, text := range texts {
		for i, span := range strings.Split(text, "`") {
			words := strings.Fields(span)
			if i%2 == 0 || len(words) < 2 || words[0] != "halo" || strings.ContainsAny(span, "[\n") || strings.HasPrefix(words[1], "halo-") {
				continue
			}
			named++
			args := slices.DeleteFunc(words, func(w string) bool { return w == "--" })
			// A flag that is named without its value is not wrong.
			for i, a := range args {
				if strings.HasPrefix(a, "--") && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
					args[i] = a + "=x"
				}
			}
			if _, err := arrange((&program{}).app(), args); err != nil {
				t.Errorf("%s: `%s`: %v", where, span, err)
			}
		}
	}
	if named < 60 {
		t.Errorf("only %d commands were found", named)
	}
}

// TestCodes holds the promises of diagnostic codes: unique, in order, documented.
func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range codes() {
		if len(c.ID) != 8 || !strings.HasPrefix(c.ID, "HALO") || seen[c.ID] {
			t.Errorf("code %q is malformed or used twice", c.ID)
		}
		seen[c.ID] = true
		if c.Title == "" || c.Text == "" || c.Since == "" {
			t.Errorf("code %s lacks a title, a text or the version it appeared in", c.ID)
		}
		if strings.HasSuffix(c.Title, ".") || !strings.HasSuffix(c.Text, ".") && !strings.HasSuffix(c.Text, ".)") {
			t.Errorf("code %s: a title has no final period, a text has one", c.ID)
		}
	}
	for _, c := range codes() {
		// What policy says wrongly can be shown right; what is wrong with a file, a clock or a device cannot.
		if shown := c.ID >= "HALO1100" && c.ID < "HALO1700" || c.ID >= "HALO2300" && c.ID < "HALO2400"; shown && c.After == "" && !slices.Contains(withoutExample, c.ID) {
			t.Errorf("code %s does not show what to write instead", c.ID)
		}
		for _, example := range []string{c.Before, c.After} {
			if strings.TrimSpace(example) != example {
				t.Errorf("code %s: an example has space around it", c.ID)
			}
		}
		if c.Before != "" && c.Before == c.After {
			t.Errorf("code %s: before and after are the same", c.ID)
		}
	}
	if !slices.IsSortedFunc(codes(), func(a, b *diag.Code) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("codes are not in order")
	}
}

// withoutExample are codes about policy that are put right by removing something or by a date.
var withoutExample = []string{"HALO1604", "HALO1605", "HALO2307", "HALO2392"}

// cliMarkdown is the reference page of the commands.
func cliMarkdown(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands\n\n`%s`: %s.\n\n%s\n\n## Global flags\n\n", app.UsageText, app.Usage, app.Description)
	flags(&b, app.Flags)
	var walk func(path string, commands []*cli.Command)
	walk = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			name := path + " " + c.Name
			fmt.Fprintf(&b, "\n## %s\n\n`%s`: %s.\n", name, strings.TrimSpace(name+" "+c.ArgsUsage), c.Usage)
			if c.Description != "" {
				fmt.Fprintf(&b, "\n%s\n", c.Description)
			}
			if len(c.Flags) > 0 {
				b.WriteString("\n")
				flags(&b, c.Flags)
			}
			walk(name, c.Subcommands)
		}
	}
	walk("halo", app.Commands)
	return b.String()
}

func flags(b *strings.Builder, fs []cli.Flag) {
	b.WriteString("| flag | meaning |\n| --- | --- |\n")
	for _, f := range fs {
		d := f.(cli.DocGenerationFlag)
		usage := strings.ReplaceAll(strings.ReplaceAll(d.GetUsage(), "`", ""), "|", "\\|")
		name := "--" + f.Names()[0]
		if _, value, ok := strings.Cut(d.GetUsage(), "`"); ok && d.TakesValue() {
			value, _, _ = strings.Cut(value, "`")
			name += " " + value
		}
		if v := strings.Trim(d.GetDefaultText(), `"`); v != "" && v != "false" && v != "0" {
			usage += " (default: " + v + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, usage)
	}
}

// manDate is the day that manual pages bear. It is no clock: pages are generated, and the version of the program is what tells them apart.
const manDate = "2026-11-30"

// manPages are the manual pages of halo and of every command, by their path below docs, in the man(7) language.
func manPages(app *cli.App) map[string]string {
	pages := map[string]string{}
	var names []string
	var walk func(path []string, commands []*cli.Command)
	walk = func(path []string, commands []*cli.Command) {
		for _, c := range commands {
			name := append(slices.Clone(path), c.Name)
			page := strings.Join(name, "-")
			names = append(names, page)
			b := manHead(page, c.Usage)
			b.WriteString(".SH SYNOPSIS\n.B " + roff(strings.Join(name, " ")) + "\n")
			if len(c.Subcommands) > 0 {
				b.WriteString(".I COMMAND\n")
			}
			if len(c.Flags) > 0 {
				b.WriteString(".RI [ flags ]\n")
			}
			if c.ArgsUsage != "" {
				b.WriteString(roff(c.ArgsUsage) + "\n")
			}
			description := c.Description
			if description == "" {
				description = strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + "."
			}
			b.WriteString(".SH DESCRIPTION\n" + manText(description))
			if len(c.Subcommands) > 0 {
				b.WriteString(".SH COMMANDS\n")
				for _, s := range c.Subcommands {
					fmt.Fprintf(b, ".TP\n.BR %s (1)\n%s\n", roff(page+"-"+s.Name), roff(s.Usage))
				}
			}
			if len(c.Flags) > 0 {
				b.WriteString(".SH OPTIONS\n")
				manFlags(b, c.Flags)
			}
			b.WriteString(manEnd("halo(1)"))
			pages["man/"+page+".1"] = b.String()
			walk(name, c.Subcommands)
		}
	}
	walk([]string{"halo"}, app.Commands)

	b := manHead("halo", app.Usage)
	b.WriteString(".SH SYNOPSIS\n.B halo\n.RI [ \"global flags\" ]\n.I COMMAND\n.RI [ \"flags and arguments in any order\" ]\n.SH DESCRIPTION\n" + manText(app.Description) + ".SH COMMANDS\n")
	for _, c := range app.Commands {
		fmt.Fprintf(b, ".TP\n.BR %s (1)\n%s\n", roff("halo-"+c.Name), roff(c.Usage))
	}
	b.WriteString(".SH OPTIONS\nThese hold for every command.\n")
	manFlags(b, app.Flags)
	slices.Sort(names)
	for i, n := range names {
		names[i] = n + "(1)"
	}
	b.WriteString(manEnd(names...))
	pages["man/halo.1"] = b.String()
	return pages
}

func manHead(page, usage string) *strings.Builder {
	b := &strings.Builder{}
	fmt.Fprintf(b, ".\\\" Generated from the program by go generate ./cmd/halo.\n.TH %s 1 %s halo\n.SH NAME\n%s \\- %s\n", strings.ToUpper(page), manDate, roff(page), roff(usage))
	return b
}

func manEnd(names ...string) string {
	var b strings.Builder
	b.WriteString(".SH SEE ALSO\n")
	for i, n := range names {
		name, section, _ := strings.Cut(n, "(")
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (%s%s\n", roff(name), section, comma)
	}
	return b.String()
}

// manText is running text: blank lines part paragraphs, backticks mark what is typed.
func manText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		for line := range strings.SplitSeq(paragraph, "\n") {
			b.WriteString(manSpans(line, "B") + "\n")
		}
	}
	return b.String()
}

// manSpans is a line with its backticked parts in a font.
func manSpans(line, font string) string {
	parts := strings.Split(line, "`")
	for i := range parts {
		parts[i] = roff(parts[i])
		if i%2 == 1 {
			parts[i] = `\f` + font + parts[i] + `\fR`
		}
	}
	line = strings.Join(parts, "")
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}

// roff is text in which nothing means anything to roff.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
}

func manFlags(b *strings.Builder, fs []cli.Flag) {
	for _, f := range fs {
		d := f.(cli.DocGenerationFlag)
		name := `\fB` + roff("--"+f.Names()[0]) + `\fR`
		if _, value, ok := strings.Cut(d.GetUsage(), "`"); ok && d.TakesValue() {
			value, _, _ = strings.Cut(value, "`")
			name += ` \fI` + roff(value) + `\fR`
		}
		usage := manSpans(d.GetUsage(), "I")
		if v := strings.Trim(d.GetDefaultText(), `"`); v != "" && v != "false" && v != "0" {
			usage += " (default: " + roff(v) + ")"
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", name, usage)
	}
}

// TestManPages has the pages read by the formatters that are at hand.
func TestManPages(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "man", "*.1"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d manual pages (%v)", len(files), err)
	}
	for _, formatter := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-man", "-ww", "-z", "-Tutf8", "-K", "utf8"}} {
		t.Run(formatter[0], func(t *testing.T) {
			path, err := exec.LookPath(formatter[0])
			if err != nil {
				t.Skipf("SKIP: %s is not installed", formatter[0])
			}
			if out, err := exec.Command(path, append(formatter[1:], files...)...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
