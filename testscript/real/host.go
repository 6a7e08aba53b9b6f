//go:build linux

package real

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// startHost puts the test host into a network namespace of its own, at the other end of a wire. The returned function gives the host
// names that were asked for, sorted.
func startHost() (func() []string, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=host")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test host: %w", err)
	}
	for _, argv := range [][]string{
		{"link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", fmt.Sprint(cmd.Process.Pid)},
		{"addr", "add", wireIP + "/24", "dev", "wire"},
		{"link", "set", "wire", "up"},
	} {
		if text, err := exec.Command("ip", argv...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w: %s", strings.Join(argv, " "), err, text)
		}
	}
	// The host may set up its end now, and says when it listens.
	if _, err := io.WriteString(in, "\n"); err != nil {
		return nil, err
	}
	ready := make([]byte, 1)
	if _, err := io.ReadFull(out, ready); err != nil {
		return nil, fmt.Errorf("test host: %w", err)
	}
	return func() []string {
		_ = in.Close()
		text, _ := io.ReadAll(out)
		_ = cmd.Wait()
		hits := strings.Fields(string(text))
		slices.Sort(hits)
		return slices.Compact(hits)
	}, nil
}

// serveHost answers every plain HTTP request with its host name until standard input ends, and then prints the names.
func serveHost(out io.Writer) error {
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", hostIP + "/24", "dev", "wire"},
		{"link", "set", "wire", "up"},
	} {
		if text, err := exec.Command("ip", argv...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(argv, " "), err, text)
		}
	}
	l, err := net.Listen("tcp", hostIP+":80")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var hits []string
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			hits = append(hits, r.Host)
			mu.Unlock()
			fmt.Fprintf(w, "%s%s\n", hostAck, r.Host)
		}))
	}()
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	mu.Lock()
	defer mu.Unlock()
	_, err = fmt.Fprintln(out, strings.Join(hits, "\n"))
	return err
}
