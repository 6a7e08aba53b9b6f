package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// LineCommit is the commit that last changed a line.
type LineCommit struct {
	// Commit is the full name, "" when there is none to name; Time its commit time.
	Commit string
	Time   time.Time
	// Shallow is set when the clone ends at the commit, so that an older one may have written the line.
	Shallow bool
	// Reason says why there is no commit: no git, a file or line that was not committed.
	Reason string
}

// Blame asks git who last changed lines of a file. file is relative to dir with "/", data are its bytes on disk, lines count from 1. A line of a file that differs from the last
// commit is answered for when it is before the first difference or after the last one. It is never an error that git cannot tell: every line has a commit or a reason.
func Blame(ctx context.Context, dir, file string, data []byte, lines []int) map[int]LineCommit {
	out := make(map[int]LineCommit, len(lines))
	all := func(reason string) map[int]LineCommit {
		for _, n := range lines {
			out[n] = LineCommit{Reason: reason}
		}
		return out
	}
	head, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD")
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && len(failed.Stderr) == 0:
		return all("no commit yet")
	case errors.As(err, &failed):
		return all(noCommit(string(failed.Stderr)))
	case err != nil:
		return all("git cannot be run")
	}
	head = strings.TrimSpace(head)
	blob, err := GitCommand(ctx, dir, "cat-file", "blob", head+":./"+file).Output()
	if err != nil {
		return all("the file is not in the last commit")
	}
	committed := matching(data, blob)
	args := []string{"blame", "--porcelain", "--no-textconv", "--ignore-revs-file="}
	at := map[int][]int{}
	for _, n := range lines {
		m := committed(n)
		if m == 0 {
			out[n] = LineCommit{Reason: "not committed, or beside a change that is not"}
			continue
		}
		if len(at[m]) == 0 {
			args = append(args, fmt.Sprintf("-L%d,%d", m, m))
		}
		at[m] = append(at[m], n)
	}
	if len(at) == 0 {
		return out
	}
	text, err := git(ctx, dir, append(args, head, "--", file)...)
	if err != nil {
		reason := "git blame does not answer"
		if errors.As(err, &failed) {
			reason = noCommit(string(failed.Stderr))
		}
		for _, ns := range at {
			for _, n := range ns {
				out[n] = LineCommit{Reason: reason}
			}
		}
		return out
	}
	shallow, _ := git(ctx, dir, "rev-parse", "--is-shallow-repository")
	for m, c := range porcelain(text, strings.TrimSpace(shallow) == "true") {
		for _, n := range at[m] {
			out[n] = c
		}
	}
	for _, n := range lines {
		if _, ok := out[n]; !ok {
			out[n] = LineCommit{Reason: "git blame does not answer"}
		}
	}
	return out
}

// matching returns the line of the committed file that a line on disk is, 0 when it lies between the first and the last difference. Line endings do not count.
func matching(disk, committed []byte) func(n int) int {
	split := func(b []byte) [][]byte {
		return bytes.Split(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"))
	}
	a, b := split(disk), split(committed)
	short := min(len(a), len(b))
	before := 0
	for before < short && bytes.Equal(a[before], b[before]) {
		before++
	}
	after := 0
	for after < short-before && bytes.Equal(a[len(a)-1-after], b[len(b)-1-after]) {
		after++
	}
	return func(n int) int {
		switch {
		case n <= before:
			return n
		case n > len(a)-after && n <= len(a):
			return n - len(a) + len(b)
		}
		return 0
	}
}

// porcelain reads the answer of git blame --porcelain: the commit of each line by its number.
func porcelain(text string, shallow bool) map[int]LineCommit {
	commits := map[string]*LineCommit{}
	lines := map[int]string{}
	var now *LineCommit
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(l, "\t") {
			now = nil
			continue
		}
		f := strings.Fields(l)
		switch {
		case now == nil && len(f) >= 3 && (isHex(f[0], 40) || isHex(f[0], 64)):
			if now = commits[f[0]]; now == nil {
				now = &LineCommit{Commit: f[0]}
				commits[f[0]] = now
			}
			if n, err := strconv.Atoi(f[2]); err == nil {
				lines[n] = f[0]
			}
		case now == nil:
		case len(f) == 2 && f[0] == "committer-time":
			if s, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				now.Time = time.Unix(s, 0).UTC()
			}
		case l == "boundary":
			now.Shallow = shallow
		}
	}
	out := make(map[int]LineCommit, len(lines))
	for n, id := range lines {
		out[n] = *commits[id]
	}
	return out
}
