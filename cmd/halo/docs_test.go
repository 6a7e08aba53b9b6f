package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
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
	for name, want := range map[string]string{
		"coverage.md":        matrix.String(),
		"reference/codes.md": codesMarkdown(codes()),
		"reference/cli.md":   cliMarkdown((&program{}).app()),
	} {
		file := filepath.Join("..", "..", "docs", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("docs/%s is not what the program says; run go test ./cmd/halo -update", name)
		}
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
	if !slices.IsSortedFunc(codes(), func(a, b *diag.Code) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("codes are not in order")
	}
}

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
