package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "halos.yaml")
	const good = "apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n"
	steps := []struct {
		text, want string
	}{
		{good, "no Gateway document"},
		{good + "orgs: b\n", "unknown key"},
		{"", "is empty"},
		{good + "org: b\n", "halos.yaml:4:1"},
	}
	read, write := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &program{args: []string{"halo", "lint", "--watch", dir}, in: strings.NewReader(""), out: io.Discard, err: write, getenv: func(string) string { return "" },
		lookupEnv: func(string) (string, bool) { return "", false }, now: func() time.Time { return time.Unix(1.8e9, 0) }}
	if err := os.WriteFile(file, []byte(steps[0].text), 0o644); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		status := run(ctx, p)
		write.Close()
		ended <- status
	}()
	said, at := "", 0
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		said += lines.Text() + "\n"
		if lines.Text() != "watching "+dir || at == len(steps) {
			continue
		}
		// A file that is being written may be seen empty; the look after that sees the whole.
		if strings.Contains(said, steps[at].want) {
			if at++; at == len(steps) {
				stop()
			} else if err := os.WriteFile(file, []byte(steps[at].text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		said = ""
	}
	if at != len(steps) {
		t.Fatalf("ended at step %d of %d, having said\n%s", at, len(steps), said)
	}
	if status := <-ended; status != 1 {
		t.Errorf("exit status %d, want that of the last check, 1", status)
	}
}
