//go:build linux

// Package real runs the harness CLIs themselves against policy files, so that what halo renders is judged by the program that
// reads it and not by a description of it.
//
// Every run happens in namespaces of its own: the policy files stand at their system paths there and nowhere else, the network holds
// nothing but loopback and one test host, and a stand-in for the model's API answers with a script of tool calls. Nothing outside is
// changed or reached.
package real

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Places and names inside the lab.
const (
	// Home is the home directory of the user who runs the CLI, Work the git repository in it where the session starts.
	Home = "/home/dev"
	Work = Home + "/work"

	uid = 61001
	gid = 61001

	// prefixDir is where the npm prefix of the CLI is mounted.
	prefixDir = "/opt/cli"
	// modelURL is the model's stand-in.
	modelURL = "http://127.0.0.1:8080"

	// The test host and the lab's own end of the wire to it, both in TEST-NET-3 (RFC 5737): the CLIs refuse hosts that resolve to an
	// address of the machine itself, so loopback cannot show that an allowed host is let through.
	hostIP  = "192.88.99.10"
	wireIP  = "192.88.99.1"
	hostAck = "halo test host: "
)

// File is a file of the lab. A zero Mode is 0644. It and the directories made for it belong to root, unless it is below Home or User is
// set.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	User    bool
}

// Call is one tool call that the model's stand-in asks for.
type Call struct {
	// Tool is the tool's name in the harness, Args its arguments.
	Tool string
	Args map[string]any
}

// Request is one JSON-RPC request to a CLI that is driven over its standard input.
type Request struct {
	Method string
	Params any
}

// Run is one start of a CLI in a lab.
type Run struct {
	// Prefix is the npm prefix that the CLI is installed in.
	Prefix string
	Files  []File
	// Hosts are names that resolve to the test host.
	Hosts []string
	Argv  []string
	Env   []string
	// Script is what the model's stand-in does, one tool call a turn, whatever the CLI answers.
	Script []Call
	// Requests are sent to the CLI's standard input one after the other, each after the answer to the one before.
	Requests []Request
	// Framed says that messages have Content-Length headers; otherwise they are one line each.
	Framed bool
	// Limit ends the run. Zero is two minutes, for a machine with much else to do.
	Limit time.Duration
	// Watch are files whose content after the run is wanted.
	Watch []string
}

// Result is what happened in a lab.
type Result struct {
	Exit     int
	TimedOut bool
	// Output is standard output and standard error together; with Requests, standard error alone.
	Output string
	// Results has, for each call of the script that was answered, what the CLI told the model.
	Results []string
	// Tools are the names of the tools that the CLI offered the model.
	Tools []string
	// Asked counts the requests that the model's stand-in answered.
	Asked int
	// URLs are the requests that arrived at the stand-in, host and path.
	URLs []string
	// Hits are the host names for which a request arrived at the test host.
	Hits []string
	// Answers are the results of Requests; an error of the CLI stands there as {"error":…}.
	Answers []json.RawMessage
	// Notes are the notifications that the CLI sent meanwhile.
	Notes []json.RawMessage
	// Watched is what the watched files that exist hold after the run.
	Watched map[string]string
}

// Why says why a lab cannot be set up here, or is empty.
func Why() string {
	if os.Geteuid() != 0 {
		return "mounting files at their system paths in a private namespace needs root"
	}
	for _, tool := range []string{"ip", "mount", "git", "bwrap"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed"
		}
	}
	return ""
}

// Do sets up a lab, runs the CLI in it and takes the lab down. An error means that there was no run to judge.
func Do(ctx context.Context, run Run) (Result, error) {
	if run.Limit == 0 {
		run.Limit = 2 * time.Minute
	}
	in, err := json.Marshal(run)
	if err != nil {
		return Result{}, fmt.Errorf("encode run: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, run.Limit+20*time.Second)
	defer cancel()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=lab")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &log
	// The process is the first of its PID namespace: when it ends, for whatever reason, everything in the lab ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return Result{}, fmt.Errorf("run lab: %w\n%s", err, log.Bytes())
	}
	var res Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		return Result{}, fmt.Errorf("read what the lab reported: %w\n%s", err, log.Bytes())
	}
	return res, nil
}

// roleEnv tells a copy of the program which part of the lab it is.
const roleEnv = "HALO_REAL_ROLE"

// Inside plays a part of a lab when the program was started as one, and then does not return. A TestMain calls it first.
func Inside() {
	var err error
	switch os.Getenv(roleEnv) {
	case "":
		return
	case "host":
		err = serveHost(os.Stdout)
	case "lab":
		err = inLab(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func inLab(in io.Reader, out io.Writer) error {
	var run Run
	if err := json.NewDecoder(in).Decode(&run); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	if err := setUp(run); err != nil {
		return err
	}
	hits, err := startHost()
	if err != nil {
		return err
	}
	model, err := startModel(run.Script)
	if err != nil {
		return err
	}
	res, err := start(run)
	if err != nil {
		return err
	}
	res.Hits = hits()
	res.Watched = map[string]string{}
	for _, path := range run.Watch {
		if b, err := os.ReadFile(path); err == nil {
			res.Watched[path] = string(b)
		}
	}
	model.report(&res)
	return json.NewEncoder(out).Encode(res)
}

// setUp lays out the file system and the network of a lab.
func setUp(run Run) error {
	steps := [][]string{
		{"mount", "--make-rprivate", "/"},
		{"mount", "-t", "proc", "proc", "/proc"},
		{"ip", "link", "set", "lo", "up"},
		{"mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/opt"},
		{"mkdir", "-p", prefixDir},
		{"mount", "--bind", run.Prefix, prefixDir},
		{"mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/mnt"},
		{"mkdir", "/mnt/etc", "/mnt/work"},
		{"mount", "-t", "overlay", "-o", "lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work", "overlay", "/etc"},
		{"mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/home"},
		{"mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"},
		{"mkdir", "-p", "/dev/net"},
		{"mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/dev/net"},
		{"mknod", "-m", "0666", "/dev/net/tun", "c", "10", "200"},
	}
	for _, argv := range steps {
		if text, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, text)
		}
	}
	hosts := "127.0.0.1 localhost " + Gateway + "\n"
	for _, h := range run.Hosts {
		hosts += hostIP + " " + h + "\n"
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	passwd = fmt.Appendf(passwd, "dev:x:%d:%d::%s:/bin/bash\n", uid, gid, Home)
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		return err
	}
	group = fmt.Appendf(group, "dev:x:%d:\n", gid)
	base := []File{
		{Path: "/etc/group", Content: group},
		{Path: "/etc/hosts", Content: []byte(hosts)},
		{Path: "/etc/resolv.conf", Content: []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")},
		{Path: "/etc/nsswitch.conf", Content: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
		{Path: "/etc/passwd", Content: passwd},
		{Path: Home + "/.gitconfig", Content: []byte("[user]\n\tname = dev\n\temail = dev@acme.example\n")},
		{Path: Work + "/README.md", Content: []byte("A workspace.\n")},
	}
	for _, f := range append(base, run.Files...) {
		if err := f.write(); err != nil {
			return err
		}
	}
	git := exec.Command("git", "-c", "init.defaultBranch=main", "init", "-q", Work)
	asUser(git)
	if text, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, text)
	}
	return nil
}

func (f File) write() error {
	mode := f.Mode
	if mode == 0 {
		mode = 0o644
	}
	id := 0
	if f.User || strings.HasPrefix(f.Path, Home+"/") {
		id = uid
	}
	var made []string
	for dir := filepath.Dir(f.Path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		made = append(made, dir)
	}
	for _, dir := range slices.Backward(made) {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, id, id)); err != nil {
			return err
		}
	}
	// A link there (resolv.conf is one on some systems) leads out of the lab's own /etc.
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(f.Path, f.Content, mode), os.Chmod(f.Path, mode), os.Chown(f.Path, id, id))
}

func asUser(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.Env = []string{
		"HOME=" + Home, "USER=dev", "LOGNAME=dev", "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb", "PWD=" + Work,
		"PATH=" + prefixDir + "/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}, Setpgid: true}
}

// start runs the CLI as the user in the workspace.
func start(run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), run.Limit)
	defer cancel()
	if err := os.Setenv("PATH", prefixDir+"/node_modules/.bin:"+os.Getenv("PATH")); err != nil {
		return Result{}, err
	}
	cmd := exec.CommandContext(ctx, run.Argv[0], run.Argv[1:]...)
	asUser(cmd)
	cmd.Dir = Work
	cmd.Env = append(cmd.Env, "NODE_EXTRA_CA_CERTS="+gatewayCA, "SSL_CERT_FILE="+gatewayCA)
	cmd.Env = append(cmd.Env, run.Env...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 3 * time.Second

	var res Result
	var log syncBuffer
	cmd.Stderr = &log
	var err error
	if len(run.Requests) > 0 {
		err = converse(cmd, run, &res)
	} else {
		cmd.Stdout = &log
		err = cmd.Run()
	}
	res.Output = log.String()
	res.TimedOut = ctx.Err() != nil
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		res.Exit = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay):
	case err != nil:
		return res, fmt.Errorf("start %s: %w", run.Argv[0], err)
	}
	return res, nil
}

// syncBuffer is a buffer that two streams of a process may write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
