package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Origin is where a policy came from.
type Origin struct {
	// Commit is the commit of HEAD, "" without git; Time its commit time.
	Commit string
	Time   time.Time
	// Dirty is set when a file read as policy differs from the commit.
	Dirty bool
	// Reason says why there is no commit, such as "not a git repository"; "" when there is one.
	Reason string
}

// GitOrigin asks git about a policy directory. files are the paths read as policy, relative to it with "/"; a YAML file that the
// commit has and the directory lacks counts as a difference too. Without git, outside a repository and before the first commit
// there is no commit, which is no error: Reason says why.
func GitOrigin(ctx context.Context, dir string, files []string) (Origin, error) {
	head, err := git(ctx, dir, "show", "-s", "--format=%H %ct", "HEAD")
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Origin{}, ctx.Err()
	case errors.As(err, &failed):
		return Origin{Reason: noCommit(string(failed.Stderr))}, nil
	case err != nil:
		return Origin{Reason: "git cannot be run"}, nil
	}
	commit, seconds, ok := strings.Cut(strings.TrimSpace(head), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if !ok || err != nil || !isHex(commit, 40) && !isHex(commit, 64) {
		return Origin{}, fmt.Errorf("git show answered %q, not a commit and its time", head)
	}
	o := Origin{Commit: commit, Time: time.Unix(unix, 0).UTC()}
	prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
	if err != nil {
		return Origin{}, gitError(err)
	}
	prefix = strings.TrimSuffix(prefix, "\n")
	read := make(map[string]bool, len(files))
	for _, f := range files {
		// Every directory above a file too: git names an ignored or foreign directory as a whole.
		for f = prefix + f; f != "" && !read[f]; f = f[:max(0, strings.LastIndexByte(f, '/'))] {
			read[f] = true
		}
	}
	differs := func(name string, gone bool) bool {
		return read[strings.TrimSuffix(name, "/")] || gone && isPolicyName(name)
	}
	// -z keeps odd names whole; ignored files count, because they are read as policy all the same.
	status, err := git(ctx, dir, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames", "--", ".")
	if err != nil {
		return Origin{}, gitError(err)
	}
	for entry := range strings.SplitSeq(status, "\x00") {
		if len(entry) > 3 && differs(entry[3:], strings.Contains(entry[:2], "D")) {
			o.Dirty = true
		}
	}
	if o.Dirty {
		return o, nil
	}
	// Files that git was told not to look at (assume-unchanged, skip-worktree) are unknown to status, so they count as different.
	index, err := git(ctx, dir, "ls-files", "-v", "-z", "--full-name", "--", ".")
	if err != nil {
		return Origin{}, gitError(err)
	}
	for entry := range strings.SplitSeq(index, "\x00") {
		if len(entry) > 2 && (entry[0] == 'S' || entry[0] >= 'a' && entry[0] <= 'z') && differs(entry[2:], true) {
			o.Dirty = true
		}
	}
	return o, nil
}

// noCommit turns the first line that git printed into a reason.
func noCommit(stderr string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	switch {
	case strings.Contains(line, "not a git repository"):
		return "not a git repository"
	case strings.Contains(line, "'HEAD'"):
		return "no commit yet"
	}
	return "git says: " + strings.TrimPrefix(line, "fatal: ")
}

func gitError(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("git: %w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	return fmt.Errorf("git: %w", err)
}

func isPolicyName(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// git runs git in dir and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := GitCommand(ctx, dir, args...).Output()
	return string(out), err
}

// GitCommand is git in dir, ready to run. Variables that would point it to another repository, index or configuration are dropped, and so is the language; a
// monitor program or a signature check that the repository's configuration names is not run, nothing is asked on a terminal, nothing is fetched, and no object is replaced by another.
func GitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"}, args...)...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "GIT_CONFIG_GLOBAL", name == "GIT_CONFIG_SYSTEM", name == "GIT_CONFIG_NOSYSTEM":
			cmd.Env = append(cmd.Env, kv)
		case !strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "LANG"):
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1")
	return cmd
}

// SourceTime returns the instant that a release records: asOf when given, else epoch (the value of SOURCE_DATE_EPOCH), else the
// commit time when nothing read as policy differs from the commit, else the start of 1970; known is false in the last case, which
// deserves the warning CodeNoTime. The clock is never asked.
func SourceTime(asOf time.Time, epoch string, o Origin) (t time.Time, known bool, err error) {
	switch {
	case !asOf.IsZero():
		return asOf.UTC().Truncate(time.Second), true, nil
	case epoch != "":
		n, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || n < 0 || n > 253402300799 || epoch[0] == '+' {
			return time.Time{}, false, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not seconds since 1970", epoch)
		}
		return time.Unix(n, 0).UTC(), true, nil
	case o.Commit != "" && !o.Dirty:
		return o.Time, true, nil
	}
	return time.Unix(0, 0).UTC(), false, nil
}
