package all

import (
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
)

// strict are the harnesses whose reader compares all that it reads.
var strict = []string{policy.ClaudeCode, policy.Codex, policy.CopilotCLI, policy.CursorCLI, policy.GeminiCLI, policy.OpenCode}

// tampered are policies that together write every key of every file.
var tampered = []string{
	rendertest.Everything,
	rendertest.Worked,
	"permissions: {mode: plan, deny: [Edit, Bash, WebSearch, 'Bash(rm:*)'], ask: [Read, Task]}\nmodels: {allowed: [a/b, c/d], enforce: true, default: a/b}\n" +
		"sandbox: {mode: read-only, protectedPaths: ['~/.ssh']}\negress: {default: deny}\ntelemetry: {enabled: false}\n",
	"harnesses:\n  codex: {version: 0.171.0, model: m, overrides: {model_verbosity: low, tui: {theme: x}}}\n" +
		"  gemini-cli: {version: 0.61.0, model: m, overrides: {ui.theme: dark, general.vimMode: true}}\n  opencode: {version: 1.18.33, model: vm}\negress: {deniedDomains: [x.example]}\n",
}

// swaps turn a text of a file into one that says something else.
var swaps = [...][2]string{{"true", "false"}, {"false", "true"}, {`"deny"`, `"allow"`}, {`"deny"`, `"ask"`}, {`"ask"`, `"allow"`}, {`"ask_user"`, `"deny"`}, {"example", "exampel"}, {"sonnet", "opus"},
	{`": "/`, `": "/x/`}, {`= "/`, `= "/x/`}, {"priority = ", "priority = 1"}, {"acme-", "evil-"}, {`"local"`, `"remote"`}}

// looks are the parts of files that say nothing to the program.
var looks = [...]string{`"$schema"`, `"name": "acme"`, `name = "acme gateway"`, "justification = "}

// TestTampering takes every line out of every file, and changes what it says: the strict readers must notice each.
func TestTampering(t *testing.T) {
	for _, h := range Harnesses() {
		if !slices.Contains(strict, h.ID) {
			continue
		}
		for _, body := range tampered {
			for _, v := range []harness.Version{h.Known, h.Oldest} {
				for _, gateway := range []string{"", "https://ai.acme.example"} {
					tg := rendertest.Target(t, h.ID, v.String(), "linux", body)
					tg.GatewayURL = gateway
					tamper(t, h, tg)
				}
			}
		}
	}
}

func tamper(t *testing.T, h *harness.Harness, tg harness.Target) {
	files, _ := h.Render(tg)
	if found := h.Check(tg, files); len(found) > 0 {
		t.Fatalf("%s %s: %+v", h.ID, tg.Version, found)
	}
	for i, f := range files {
		try := func(what string, files []harness.File) {
			if len(h.Check(tg, files)) == 0 {
				t.Errorf("%s %s: in %s nobody notices %s", h.ID, tg.Version, f.Dest, what)
			}
		}
		try("that it is missing", slices.Delete(slices.Clone(files), i, i+1))
		lines := strings.SplitAfter(string(f.Content), "\n")
		for j, line := range lines {
			if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || slices.ContainsFunc(looks[:], func(s string) bool { return strings.Contains(line, s) }) {
				continue
			}
			edit := func(what, text string) {
				edited := slices.Clone(files)
				changed := slices.Clone(lines)
				changed[j] = text
				edited[i].Content = []byte(uncomma(strings.Join(changed, "")))
				try(what, edited)
			}
			edit("the loss of "+line, "")
			for _, s := range swaps {
				if text := strings.Replace(line, s[0], s[1], 1); text != line {
					edit(text, text)
				}
			}
		}
	}
}

// uncomma takes the comma from a last member.
func uncomma(s string) string {
	var b strings.Builder
	for rest := s; ; {
		before, after, found := strings.Cut(rest, ",\n")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if next := strings.TrimLeft(after, " "); !strings.HasPrefix(next, "}") && !strings.HasPrefix(next, "]") {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		rest = after
	}
}
