package probe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Plan is what is tried on one harness.
type Plan struct {
	Harness string
	// Program is the program to start, as the room shows it; Programs and Path are those of Run.
	Program        string
	Programs, Path []string
	// Protected are protected paths to put a canary below: a directory of the home (~/.ssh), or a pattern for a name in the workspace (.env*).
	Protected []string
	// Denied is a host name that the policy denies, Allowed one that it allows; "" is none.
	Denied, Allowed string
	// Gateways are the URLs in the managed files: where a session may go.
	Gateways []string
	// Token makes the names and texts of this probe unlike any other: letters and digits.
	Token string
	// Limit ends the session; zero is three minutes.
	Limit time.Duration
}

// Outcome is what came of one try.
type Outcome string

// The outcomes. Unknown is a try that was not made, or whose control failed: it proves nothing.
const (
	Held    Outcome = "held"
	Leaked  Outcome = "leaked"
	Unknown Outcome = "unknown"
)

// The ways to try: a command in a script, the tool that reads files (a plain command for a CLI that has none), a request of a command to a host.
const (
	Shell   = "shell"
	Read    = "read"
	Request = "request"
)

// Try is one thing that the policy should keep from happening.
type Try struct {
	// Way is Shell, Read or Request.
	Way string `json:"way"`
	// What is the protected path or the denied host.
	What    string  `json:"what"`
	Outcome Outcome `json:"outcome"`
}

// Finding is what a probe found out.
type Finding struct {
	// Reason says why some outcome is not known; "" when all are.
	Reason string `json:"reason,omitempty"`
	Tries  []Try  `json:"tries"`
	// Closed reports that commands did not reach the allowed name either.
	Closed bool `json:"closed,omitempty"`
}

// Proven reports that everything was tried and held.
func (f Finding) Proven() bool {
	return f.Reason == "" && len(f.Tries) > 0 && !slices.ContainsFunc(f.Tries, func(t Try) bool { return t.Outcome != Held })
}

// step is one call of the script: a control when try is nil, else the try that it makes.
type step struct {
	call Call
	way  string
	try  *Try
	// secret is what the answer has when the call did what it wanted.
	secret string
}

// Run makes the session of a plan, with do to run it (Do, but in tests), and judges what came of it.
func (p Plan) Run(ctx context.Context, do func(context.Context, Run) (Result, error)) Finding {
	c, ok := Find(p.Harness)
	if !ok {
		return Finding{Reason: "no session of it can be led from outside"}
	}
	if p.Limit == 0 {
		p.Limit = 3 * time.Minute
	}
	files, steps := p.script(c)
	var calls []Call
	for _, s := range steps {
		calls = append(calls, s.call)
	}
	run := c.Session(files, calls)
	run.Argv = append([]string{p.Program}, run.Argv[1:]...)
	run.Programs, run.Path, run.Gateways, run.Limit = p.Programs, p.Path, p.Gateways, p.Limit
	for _, h := range []string{p.Denied, p.Allowed} {
		if h != "" {
			run.Hosts = append(run.Hosts, h)
		}
	}
	res, err := do(ctx, run)
	if err != nil {
		res = Result{}
	}
	f := p.judge(steps, res)
	if err != nil {
		f.Reason = err.Error()
	}
	return f
}

// script puts the canaries and controls in their places and lists the calls. The commands stand in scripts, so that no CLI can recognise a path or a host in
// the command line: what is tried is what holds the command itself.
func (p Plan) script(c CLI) (files []File, steps []step) {
	put := func(path, text string) { files = append(files, File{Path: path, Content: []byte(text + "\n")}) }
	shell := func(text string) Call {
		name := "halo-step-" + strconv.Itoa(len(steps))
		put(Work+"/"+name, text)
		return c.Shell("sh " + name)
	}
	control, plain := "control-"+p.Token, Work+"/halo-control"
	put(plain, control)
	steps = append(steps, step{call: shell("cat '" + plain + "'"), way: Shell, secret: control})
	steps = append(steps, step{call: c.Read(plain), way: Read, secret: control})
	for i, what := range p.Protected {
		path, secret := canary(what, p.Token), fmt.Sprintf("canary-%d-%s", i, p.Token)
		put(path, secret)
		steps = append(steps, step{call: shell("cat '" + path + "'"), way: Shell, try: &Try{Way: Shell, What: what}, secret: secret})
		steps = append(steps, step{call: c.Read(path), way: Read, try: &Try{Way: Read, What: what}, secret: secret})
	}
	for _, name := range []string{p.Allowed, p.Denied} {
		if name == "" {
			continue
		}
		s := step{way: Request, secret: p.asked()}
		s.call = shell("command -v curl >/dev/null || exit 0\necho " + s.secret + "\ncurl -sS -m 5 'http://" + name + "/' 2>&1\ntrue")
		if name == p.Denied {
			s.try = &Try{Way: Request, What: name}
		}
		steps = append(steps, s)
	}
	return files, steps
}

// asked is what a command prints that makes a request.
func (p Plan) asked() string { return "asked-" + p.Token }

// canary is a new file below a protected path.
func canary(what, token string) string {
	if dir, ok := strings.CutPrefix(what, "~/"); ok {
		return Home + "/" + dir + "/halo-canary-" + token
	}
	return Work + "/" + strings.ReplaceAll(strings.ReplaceAll(what, "*", "halo"+token), "?", "x")
}

func (p Plan) judge(steps []step, res Result) Finding {
	f := Finding{Tries: []Try{}}
	passed := map[string]bool{}
	failed := ""
	for i, s := range steps {
		answered := i < len(res.Results)
		shows := answered && strings.Contains(res.Results[i], s.secret)
		switch {
		case s.way == Request && s.try == nil:
			f.Closed = shows && !slices.Contains(res.Hits, p.Allowed)
		case s.way == Request:
			s.try.Outcome = Unknown
			if slices.Contains(res.Hits, p.Denied) {
				s.try.Outcome = Leaked
			} else if shows || answered && strings.Contains(res.Results[i], p.Denied) {
				// The command did make its request: it says so, or the CLI names the host, which only the request did (Codex 0.171.0 gives nothing of
				// the output of a command that it blocked).
				s.try.Outcome = Held
			} else if answered && failed == "" {
				failed = "a command was not seen to make its request, for which it needs curl: " + quoted(res.Results[i])
			}
		case s.try == nil:
			passed[s.way] = shows
			if answered && !shows && failed == "" {
				failed = "its " + s.way + " tool did not show a file that nothing protects: " + quoted(res.Results[i])
			}
		case shows:
			s.try.Outcome = Leaked
		case answered && passed[s.way]:
			s.try.Outcome = Held
		default:
			s.try.Outcome = Unknown
		}
		if s.try != nil {
			f.Tries = append(f.Tries, *s.try)
		}
	}
	said := ""
	if line := last(res.Output); line != "" {
		said = ": " + quoted(line)
	}
	n := len(res.Results)
	switch {
	case n == len(steps):
		f.Reason = failed
	case res.TimedOut:
		f.Reason = fmt.Sprintf("it was ended after %s, with %d of %d tool calls answered", p.Limit, n, len(steps))
	case n == 0:
		f.Reason = fmt.Sprintf("it ended with status %d before it answered a tool call%s", res.Exit, said)
	default:
		f.Reason = fmt.Sprintf("it ended with status %d after %d of %d tool calls%s", res.Exit, n, len(steps), said)
	}
	return f
}

// last is the last line of a text that has more than blanks.
func last(s string) string {
	line := ""
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			line = l
		}
	}
	return line
}

// quoted is a short form of what a program said, fit for a terminal.
func quoted(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 160 {
		r = append(r[:160], '…')
	}
	return strconv.Quote(string(r))
}
