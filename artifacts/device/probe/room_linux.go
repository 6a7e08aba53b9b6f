package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// uid and gid are those of the user of a room: a number in none of the ranges that systems give to people or services (systemd, "Users, Groups, UIDs and
	// GIDs": 60578 to 61183 is unused), so that the user owns nothing on the device.
	uid = 61001
	gid = 61001

	// outputLimit is how much of what a CLI prints or answers is kept, in bytes.
	outputLimit = 256 << 10
)

// Why says why there can be no room here, or is empty.
func Why() string {
	if os.Geteuid() != 0 {
		return "only root can make the namespaces that the programs run in"
	}
	return ""
}

// role is the name that the first process of a room is started under.
const role = "halo-probe-room"

// Do makes a room, runs the CLI in it and takes the room down. An error means that there was no run to judge. The running program has to call Inside when it
// starts.
func Do(ctx context.Context, run Run) (Result, error) {
	if why := Why(); why != "" {
		return Result{}, errors.New(why)
	}
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
	cmd.Args = []string{role}
	cmd.Env = []string{"PATH=" + systemPath}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &log
	// The process is the first of its PID namespace: when it ends, for whatever reason, everything in the room ends with it. The kernel ends it when the
	// thread that started it does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(log.String()); text != "" {
			return Result{}, errors.New(text)
		}
		return Result{}, fmt.Errorf("run the room: %w", err)
	}
	var res Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		return Result{}, fmt.Errorf("read what the room reported: %w", err)
	}
	return res, nil
}

// Inside plays the first process of a room when the program was started as one, and then does not return. A main function or a TestMain calls it first. talk
// drives a CLI where Run.Talk asks for it; it starts the command and waits for it.
func Inside(talk func(cmd *exec.Cmd, in json.RawMessage) (json.RawMessage, error)) {
	if os.Args[0] != role {
		return
	}
	if err := inRoom(os.Stdin, os.Stdout, talk); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func inRoom(in io.Reader, out io.Writer, talk func(*exec.Cmd, json.RawMessage) (json.RawMessage, error)) error {
	if os.Getpid() != 1 {
		return errors.New("a room is made by halo itself")
	}
	var run Run
	if err := json.NewDecoder(in).Decode(&run); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	gates, err := parseGateways(run.Gateways)
	if err != nil {
		return fmt.Errorf("place the gateway's stand-in: %w", err)
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("set up loopback: %w", err)
	}
	if err := mounts(run); err != nil {
		return err
	}
	if err := files(run, gates.names); err != nil {
		return fmt.Errorf("write the files of the room: %w", err)
	}
	m := &model{script: run.Script, results: map[int]string{}}
	if err := gates.serve(m); err != nil {
		return fmt.Errorf("start the model's stand-in: %w", err)
	}
	hits, err := serveHost(run.Hosts)
	if err != nil {
		return fmt.Errorf("start the test host: %w", err)
	}
	res, err := start(run, talk)
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
	m.report(&res)
	return json.NewEncoder(out).Encode(res)
}

// loopback brings the loopback device up and gives it a second address with a netmask that covers the test host's.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	for _, step := range []struct {
		request uint
		ip      string
	}{{unix.SIOCSIFADDR, loopbackIP}, {unix.SIOCSIFNETMASK, "255.255.255.0"}} {
		r, err := unix.NewIfreq("lo:halo")
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(net.ParseIP(step.ip).To4()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.request, r); err != nil {
			return err
		}
	}
	return nil
}

// mounts makes the file system of a room: the device's own, read-only, with memory over everything that a user could write to, that holds files of users, or
// where services listen. Only /etc shows what the device has there, below a writable layer.
func mounts(run Run) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// The places of programs are looked up before something is mounted over them.
	var programs []int
	for _, dir := range run.Programs {
		how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
		fd, err := unix.Openat2(unix.AT_FDCWD, dir, how)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		defer unix.Close(fd)
		programs = append(programs, fd)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make the device's files read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	memory := func(dir, mode string) error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID, "mode="+mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("mount memory on %s: %w", dir, err)
		}
		return nil
	}
	err := errors.Join(memory("/mnt", "0755"), memory("/home", "0755"), memory("/run", "0755"), memory("/tmp", "1777"), memory("/var/tmp", "1777"), memory("/dev/shm", "1777"))
	for _, dir := range run.Memory {
		err = errors.Join(err, memory(dir, "0755"))
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat("/dev/net"); err == nil {
		// Sandboxes that bring a network of their own along open it; devices let every user.
		if err := memory("/dev/net", "0755"); err != nil {
			return err
		}
		if err := errors.Join(unix.Mknod("/dev/net/tun", unix.S_IFCHR, int(unix.Mkdev(10, 200))), os.Chmod("/dev/net/tun", 0o666)); err != nil {
			return fmt.Errorf("make /dev/net/tun: %w", err)
		}
	}
	for _, dir := range []string{"/mnt/etc", "/mnt/work", ProgramDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work"); err != nil {
		return fmt.Errorf("mount a layer over /etc: %w", err)
	}
	for i, fd := range programs {
		at := filepath.Join(ProgramDir, filepath.Base(run.Programs[i]))
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", run.Programs[i], err)
		}
	}
	return nil
}

// files writes the user, the resolver's files, an empty git repository and the run's own files. gateways are names that resolve to loopback.
func files(run Run, gateways []string) error {
	hosts := "127.0.0.1 localhost\n"
	for _, h := range gateways {
		hosts += "127.0.0.1 " + h + "\n"
	}
	for _, h := range run.Hosts {
		hosts += testIP + " " + h + "\n"
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
		// What makes a directory a git repository.
		{Path: Work + "/.git/HEAD", Content: []byte("ref: refs/heads/main\n")},
		{Path: Work + "/.git/config", Content: []byte("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n")},
		{Path: Work + "/.git/refs/heads/.keep"},
		{Path: Work + "/.git/objects/info/.keep"},
	}
	for _, f := range append(base, run.Files...) {
		if err := f.write(); err != nil {
			return err
		}
	}
	return os.Remove(Work + "/.git/refs/heads/.keep")
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
	// A link there (resolv.conf is one on some systems) leads out of the room's own /etc.
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(f.Path, f.Content, mode), os.Chmod(f.Path, mode), os.Chown(f.Path, id, id))
}

// serveHost starts the test host, which answers every plain HTTP request with its host name, and asks it for every name itself: a name that nobody could reach
// proves nothing. The returned function gives the names that were asked for since, sorted.
func serveHost(names []string) (func() []string, error) {
	l, err := net.Listen("tcp", testIP+":80")
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var hits []string
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if len(hits) < 1000 {
				hits = append(hits, r.Host)
			}
			mu.Unlock()
			fmt.Fprintln(w, HostAck(r.Host))
		}))
	}()
	for _, name := range names {
		c, err := net.DialTimeout("tcp", name+":80", 5*time.Second)
		if err != nil {
			return nil, err
		}
		c.Close()
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(hits)
		return slices.Compact(hits)
	}, nil
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// start runs the CLI as the user in the workspace.
func start(run Run, talk func(*exec.Cmd, json.RawMessage) (json.RawMessage, error)) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), run.Limit)
	defer cancel()
	path := strings.Join(append(slices.Clone(run.Path), systemPath), ":")
	// The program is looked up with the PATH that it gets.
	if err := os.Setenv("PATH", path); err != nil {
		return Result{}, err
	}
	cmd := exec.CommandContext(ctx, run.Argv[0], run.Argv[1:]...)
	cmd.Dir = Work
	cmd.Env = append([]string{
		"HOME=" + Home, "USER=dev", "LOGNAME=dev", "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb", "PWD=" + Work, "PATH=" + path,
		"NODE_EXTRA_CA_CERTS=" + authority, "SSL_CERT_FILE=" + authority,
	}, run.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 3 * time.Second

	var res Result
	var log tail
	cmd.Stderr = &log
	var err error
	if run.Talk != nil && talk != nil {
		res.Talk, err = talk(cmd, run.Talk)
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

// tail keeps the end of what two streams of a process write.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if len(b.buf) > 2*outputLimit {
		b.buf = append(b.buf[:0], b.buf[len(b.buf)-outputLimit:]...)
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf[max(0, len(b.buf)-outputLimit):])
}
