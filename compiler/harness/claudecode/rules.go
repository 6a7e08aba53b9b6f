package claudecode

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
)

// tools are the tools that a permission rule may name: the names in the settings schema of SchemaStore (2026-08-03) and the older names that CLIs of the
// 2.0 and 2.1 lines know. A rule for any other name is kept by the CLI and matches nothing (observed on 2.1.332).
var tools = [...]string{
	"Agent", "Artifact", "AskUserQuestion", "Bash", "BashOutput", "Cd", "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep",
	"KillBash", "KillShell", "LS", "LSP", "ListMcpResourcesTool", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead", "PowerShell", "Read", "ReadMcpResourceTool",
	"SendMessage", "ShareOnboardingGuide", "Skill", "SlashCommand", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite",
	"ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
}

// rule is a permission rule, Tool or Tool(content).
type rule struct {
	tool, content string
	hasContent    bool
}

func (r rule) String() string {
	if !r.hasContent {
		return r.tool
	}
	return r.tool + "(" + r.content + ")"
}

// parseRule reads a rule; the problem completes "the rule …".
func parseRule(s string) (r rule, problem string) {
	name, rest, paren := strings.Cut(s, "(")
	r.tool = name
	if paren {
		content, closed := strings.CutSuffix(rest, ")")
		if !closed || content == "" {
			return r, "has no content in its parentheses or does not close them"
		}
		r.content, r.hasContent = content, true
	}
	if server, ok := strings.CutPrefix(name, "mcp__"); ok {
		switch {
		case paren:
			return r, "has parentheses, which a rule for an MCP tool cannot have"
		case server == "":
			return r, "names no MCP server"
		}
		return r, ""
	}
	if !slices.Contains(tools[:], name) {
		return r, "names no tool of this harness, so it would match nothing"
	}
	return r, ""
}

// paths reports whether the tool's content is a path.
func (r rule) paths() bool {
	switch r.tool {
	case "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS":
		return r.hasContent
	}
	return false
}

// deadPath says why a path in a rule would not mean what it seems to, or "". Observed on 2.1.332: one leading slash is the session folder.
func deadPath(p string) string {
	switch {
	case strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//"):
		return "has a path with one leading slash, which means the session folder and never the root of the file system"
	case strings.Contains(p, `\`) || len(p) > 1 && p[1] == ':':
		return "has a path in Windows form, which never matches"
	case strings.Contains(p, "$"):
		return "has a variable, which is not expanded"
	case strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/"):
		return "names the home of another user, which is not expanded"
	case strings.ContainsAny(p, "{}"):
		return "has braces, which are not alternatives here"
	}
	return ""
}

// domain returns the host of a WebFetch rule: a pattern, or "*" for every host.
func (r rule) domain() (p host.Pattern, all bool, problem string) {
	name, ok := strings.CutPrefix(r.content, "domain:")
	if !ok {
		return p, false, "is malformed: a WebFetch rule holds domain: and a host name"
	}
	if name == "*" {
		return p, true, ""
	}
	p, bad := host.ParseDenyPattern(name)
	if bad != nil {
		return p, false, "has a host that never matches: it " + bad.Reason
	}
	return p, false, ""
}

// rendered is what becomes of a rule of the policy in one list.
type rendered struct {
	text string
	// reason says why the rule is not rendered, remedy what to write instead.
	reason, remedy string
}

// restrictRule translates a rule of the deny or ask list. A rule that names a path under a tool that is never consulted for paths becomes the rule that is.
func restrictRule(s string) rendered {
	r, problem := parseRule(s)
	if problem != "" {
		return rendered{reason: problem}
	}
	switch {
	case r.paths():
		if why := deadPath(r.content); why != "" {
			return rendered{reason: why, remedy: pathRemedy(r)}
		}
		switch r.tool {
		case "Write", "MultiEdit", "NotebookEdit":
			// Edit rules with a path cover every editing tool; the CLI never consults the others with one (settings doctor of 2.1.332).
			r.tool = "Edit"
		case "Read", "Edit":
		default:
			return rendered{reason: "names a tool that is not asked about paths", remedy: "write Read(" + r.content + ")"}
		}
	case r.tool == "WebFetch" && r.hasContent:
		_, all, problem := r.domain()
		if problem != "" {
			return rendered{reason: problem}
		}
		if all {
			// As a domain rule it would close the sandbox for every host as well (observed on 2.1.332); the rule without a domain stops just the tool.
			return rendered{text: "WebFetch"}
		}
	}
	return rendered{text: r.String()}
}

func pathRemedy(r rule) string {
	p := r.content
	switch {
	case strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//"):
		return "write " + r.tool + "(/" + p + ") for the file system or " + r.tool + "(." + p + ") for the session folder"
	case len(p) > 2 && p[1] == ':':
		return "write the drive as a folder: " + r.tool + "(//" + strings.ToLower(p[:1]) + strings.ReplaceAll(p[2:], `\`, "/") + ")"
	}
	return "write an absolute path with two slashes, or one in the home (~/)"
}

// pathRules are the four or two rules that keep file tools away from a protected path, and what the sandbox is told about it. Observed on 2.1.332: a
// directory covers its content, a rule for **/x reaches the sandbox and one for //**/x only the tools, and braces match nothing.
func pathRules(p fspath.Path, os string) (rules, sandbox []string) {
	spellings := []string{p.String()}
	if p.Kind() == fspath.Absolute {
		spellings = fspath.Spellings(p, os)
	}
	for _, spelling := range spellings {
		for _, text := range fspath.Expand(spelling) {
			switch p.Kind() {
			case fspath.Absolute:
				rules = append(rules, "Read(/"+text+")", "Edit(/"+text+")")
				sandbox = append(sandbox, text)
			case fspath.Home:
				rules = append(rules, "Read("+text+")", "Edit("+text+")")
				sandbox = append(sandbox, text)
			case fspath.Relative:
				text = "**/" + strings.TrimPrefix(text, "**/")
				rules = append(rules, "Read("+text+")", "Edit("+text+")", "Read(//"+text+")", "Edit(//"+text+")")
			}
		}
	}
	return rules, sandbox
}
