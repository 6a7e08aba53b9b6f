package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// answers is a CLI that answers calls by what they are about: the secret of the call, or a refusal.
type answers struct {
	// shows are the kinds that show their secret: control, canary and open for what the policy allows, closed for the denied host; a kind with "read " before it
	// is about the file tool.
	shows string
	// until is how many calls are answered, 0 for all.
	until int
	then  Result
	err   error
}

func (a answers) do(p Plan, steps []step) Result {
	res := a.then
	for i, s := range steps {
		if a.until > 0 && i >= a.until {
			break
		}
		kind := "control"
		switch {
		case s.way == Request && s.try == nil:
			kind = "open"
		case s.way == Request:
			kind = "closed"
		case s.try != nil:
			kind = "canary"
		}
		if s.way == Read {
			kind = "read-" + kind
		}
		has := func(k string) bool { return strings.Contains(" "+a.shows+" ", " "+k+" ") }
		text := "refused"
		switch {
		case kind == "closed" && has("blocked"):
			text = "blocked " + p.Denied
		case s.way == Request && !has("no-curl"):
			text = "x " + s.secret
		case s.way != Request && has(kind):
			text = "x " + s.secret
		}
		if kind == "open" && has(kind) {
			res.Hits = append(res.Hits, p.Allowed)
		}
		if kind == "closed" && has(kind) {
			res.Hits = append(res.Hits, p.Denied)
		}
		res.Results = append(res.Results, text)
	}
	return res
}

// TestJudge holds the judgement to what may be called held: only what was tried, with a control that worked.
func TestJudge(t *testing.T) {
	rows := []struct {
		name           string
		a              answers
		want           string
		proven, closed bool
		reason         string
	}{
		{name: "holds", a: answers{shows: "control read-control open"}, want: "held held held held held", proven: true},
		{name: "holds and reaches no host at all", a: answers{shows: "control read-control"}, want: "held held held held held", proven: true, closed: true},
		{name: "leaks by command", a: answers{shows: "control read-control canary open"}, want: "leaked held leaked held held"},
		{name: "leaks by file tool", a: answers{shows: "control read-control read-canary open"}, want: "held leaked held leaked held"},
		{name: "reaches the denied host", a: answers{shows: "control read-control open closed"}, want: "held held held held leaked"},
		{name: "nothing works", a: answers{}, want: "unknown unknown unknown unknown held", closed: true, reason: `its shell tool did not show a file that nothing protects: "refused"`},
		{name: "no file tool", a: answers{shows: "control open"}, want: "held unknown held unknown held", reason: `its read tool did not show a file that nothing protects: "refused"`},
		{name: "no control and a leak", a: answers{shows: "canary open"}, want: "leaked unknown leaked unknown held", reason: "its shell tool"},
		{name: "no curl", a: answers{shows: "control read-control no-curl"}, want: "held held held held unknown", reason: `a command was not seen to make its request, for which it needs curl: "refused"`},
		{name: "names the host that it blocked", a: answers{shows: "control read-control open blocked no-curl"}, want: "held held held held held", proven: true},
		{name: "a host without curl", a: answers{shows: "control read-control no-curl closed"}, want: "held held held held leaked"},
		{name: "crashes", a: answers{until: -1, then: Result{Exit: 3, Output: "a\n cannot\x1b start \n\n"}}, want: "unknown unknown unknown unknown unknown",
			reason: `it ended with status 3 before it answered a tool call: "cannot\x1b start"`},
		{name: "stops early", a: answers{shows: "control read-control canary", until: 3, then: Result{Exit: 5}}, want: "leaked unknown unknown unknown unknown",
			reason: "it ended with status 5 after 3 of 8 tool calls"},
		{name: "hangs", a: answers{shows: "control read-control", until: 7, then: Result{TimedOut: true}}, want: "held held held held unknown", closed: true,
			reason: "it was ended after 3m0s, with 7 of 8 tool calls answered"},
		{name: "no room", a: answers{err: errors.New("no room")}, want: "unknown unknown unknown unknown unknown", reason: "no room"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := Plan{Harness: "claude-code", Program: "/p", Protected: []string{"~/.ssh", ".env*"}, Denied: "closed.example", Allowed: "open.example", Token: "t0k3n"}
			f := p.Run(t.Context(), func(_ context.Context, run Run) (Result, error) {
				if run.Argv[0] != "/p" || run.Limit != 3*time.Minute || strings.Join(run.Hosts, " ") != "closed.example open.example" {
					t.Errorf("run %+v", run)
				}
				c, _ := Find(p.Harness)
				_, steps := p.script(c)
				if len(steps) != len(run.Script) {
					t.Fatalf("%d calls, want %d", len(run.Script), len(steps))
				}
				if row.a.until < 0 {
					return row.a.then, row.a.err
				}
				return row.a.do(p, steps), row.a.err
			})
			var got []string
			for _, try := range f.Tries {
				got = append(got, string(try.Outcome))
			}
			if s := strings.Join(got, " "); s != row.want || f.Proven() != row.proven || f.Closed != row.closed {
				t.Errorf("got %s, proven %v, closed %v, want %s, %v, %v: %s", s, f.Proven(), f.Closed, row.want, row.proven, row.closed, f.Reason)
			}
			if !strings.HasPrefix(f.Reason, row.reason) || (f.Reason == "") != (row.reason == "") {
				t.Errorf("reason %q, want %q", f.Reason, row.reason)
			}
		})
	}
}

// TestPlans checks what every CLI is asked to do: no command line names a canary or a host, and every canary has its own place and text.
func TestPlans(t *testing.T) {
	for _, c := range CLIs() {
		p := Plan{Harness: c.ID, Protected: []string{"~/.config/x", ".env*"}, Denied: "closed.example", Token: "t0k3n"}
		files, steps := p.script(c)
		if len(steps) != 7 {
			t.Errorf("%s: %d steps", c.ID, len(steps))
		}
		seen := map[string]bool{}
		for _, f := range files {
			if seen[f.Path] || !strings.HasPrefix(f.Path, Home+"/") {
				t.Errorf("%s: %s twice, or outside the home", c.ID, f.Path)
			}
			seen[f.Path] = true
		}
		for _, path := range []string{Home + "/.config/x/halo-canary-t0k3n", Work + "/.envhalot0k3n"} {
			if !seen[path] {
				t.Errorf("%s: no canary %s", c.ID, path)
			}
		}
		for _, s := range steps {
			command, _ := s.call.Args[c.shellArg].(string)
			if s.way != Read && (s.call.Tool != c.shell || !strings.HasPrefix(command, "sh halo-step-")) {
				t.Errorf("%s: call %+v", c.ID, s.call)
			}
		}
	}
	if f := (Plan{Harness: "cursor-cli"}).Run(t.Context(), nil); f.Reason == "" || f.Proven() {
		t.Errorf("cursor-cli: %+v", f)
	}
}
