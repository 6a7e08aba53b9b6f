package probe

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Inside(nil)
	os.Exit(m.Run())
}

// fake installs testdata/fake and returns a plan that runs it, and a Do that has it in a mode.
func fake(t *testing.T, mode string) (Plan, func(context.Context, Run) (Result, error)) {
	t.Helper()
	if why := Why(); why != "" {
		t.Skip("SKIP: no room can be made here: " + why)
	}
	for _, tool := range []string{"curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("SKIP: the fake program needs " + tool)
		}
	}
	text, err := os.ReadFile("testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "programs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fake"), text, 0o755); err != nil {
		t.Fatal(err)
	}
	p := Plan{Harness: "claude-code", Program: ProgramDir + "/programs/fake", Programs: []string{dir}, Protected: []string{"~/.secret", ".hidden*"}, Denied: "closed.example",
		Allowed: "open.example", Gateways: []string{"https://gateway.example"}, Token: "t0k3n", Limit: time.Minute}
	return p, func(ctx context.Context, run Run) (Result, error) {
		run.Files = append(run.Files, File{Path: "/etc/fake-mode", Content: []byte(mode)})
		return Do(ctx, run)
	}
}

// TestRoom runs a program that holds and programs that do not, in real rooms.
func TestRoom(t *testing.T) {
	rows := []struct {
		mode string
		// want are the outcomes in the order of the tries: a command and the file tool for each protected path, then the request.
		want           string
		proven, closed bool
		reason         string
		limit          time.Duration
	}{
		{mode: "hold", want: "held held held held held", proven: true},
		{mode: "leak", want: "leaked leaked leaked leaked leaked"},
		{mode: "tool", want: "held leaked held leaked held", closed: true},
		{mode: "crash", want: "unknown unknown unknown unknown unknown", reason: `it ended with status 3 before it answered a tool call: "cannot start: no such sandbox"`},
		{mode: "hang", want: "unknown unknown unknown unknown unknown", reason: "it was ended after 2s, with 0 of 8 tool calls answered", limit: 2 * time.Second},
	}
	for _, row := range rows {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			p, do := fake(t, row.mode)
			if row.limit > 0 {
				p.Limit = row.limit
			}
			f := p.Run(t.Context(), do)
			var got []string
			for _, try := range f.Tries {
				got = append(got, string(try.Outcome))
			}
			if s := strings.Join(got, " "); s != row.want || f.Proven() != row.proven || f.Closed != row.closed {
				t.Errorf("got %s, proven %v, closed %v, want %s, %v, %v: %s", s, f.Proven(), f.Closed, row.want, row.proven, row.closed, f.Reason)
			}
			if !strings.Contains(f.Reason, row.reason) || (f.Reason == "") != (row.reason == "") {
				t.Errorf("reason %q, want %q", f.Reason, row.reason)
			}
		})
	}
}

// TestRoomAbsent names the program that is not there.
func TestRoomAbsent(t *testing.T) {
	p, do := fake(t, "hold")
	p.Program += "-not"
	if f := p.Run(t.Context(), do); !strings.Contains(f.Reason, "no such file") || f.Proven() {
		t.Errorf("got %+v", f)
	}
	p.Programs = []string{"/nonexistent"}
	if f := p.Run(t.Context(), do); !strings.Contains(f.Reason, "open /nonexistent") || f.Proven() {
		t.Errorf("got %+v", f)
	}
}

// TestRoomClosed holds a room to what it promises: nothing of the caller in it, nothing of it left.
func TestRoomClosed(t *testing.T) {
	t.Setenv("HALO_SECRET", "1")
	p, _ := fake(t, "snoop")
	var res Result
	f := p.Run(t.Context(), func(ctx context.Context, run Run) (Result, error) {
		run.Files = append(run.Files, File{Path: "/etc/fake-mode", Content: []byte("snoop")})
		run.Watch = []string{Home + "/snooped"}
		var err error
		res, err = Do(ctx, run)
		return res, err
	})
	if f.Reason != "" {
		t.Fatal(f.Reason)
	}
	lines := strings.Split(strings.TrimSpace(res.Watched[Home+"/snooped"]), "\n")
	if len(lines) < 8 || lines[0] != "0" || lines[1] != "dev" || lines[len(lines)-2] != "61001" || lines[len(lines)-1] != "0" {
		t.Errorf("the program found %q", lines)
	}
	for _, path := range []string{"/usr/left", "/var/left", "/etc/left", "/run/left"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, path) }) {
			t.Errorf("%s could be written", path)
		}
	}
	for _, path := range []string{"/usr/left", "/var/left", "/etc/left", "/run/left", "/tmp/left", "/var/tmp/left", "/dev/shm/left", "/etc/fake-mode", Home, ProgramDir, authority} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}

// TestRoomInterrupted ends a room with everything in it.
func TestRoomInterrupted(t *testing.T) {
	p, do := fake(t, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	began := time.Now()
	f := p.Run(ctx, do)
	if f.Reason == "" || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %+v", time.Since(began), f)
	}
	// The fake's children slept for a time that nothing else here does.
	found, err := exec.Command("pgrep", "-f", "^sleep 600$").Output()
	if err == nil && len(found) > 0 {
		t.Errorf("processes are left: %s", found)
	}
}
