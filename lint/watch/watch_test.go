package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Every change is followed by a look at the files that sees it, however they are changed.
func TestRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	file := filepath.Join(dir, "a", "b.yaml")
	write := func(name, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	seen := func(name, want string) bool {
		data, err := os.ReadFile(name)
		return err == nil && string(data) == want
	}
	if err := write(file, "0"); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name string
		do   func() error
		done func() bool
	}{
		{"written", func() error { return write(file, "1") }, func() bool { return seen(file, "1") }},
		{"replaced by rename", func() error { return errors.Join(write(file+"~", "2"), os.Rename(file+"~", file)) }, func() bool { return seen(file, "2") }},
		{"removed", func() error { return os.Remove(file) }, func() bool { return !seen(file, "2") }},
		{"a new directory", func() error { return write(filepath.Join(dir, "c", "d", "e.yaml"), "3") }, func() bool { return seen(filepath.Join(dir, "c", "d", "e.yaml"), "3") }},
		{"a change in it", func() error { return write(filepath.Join(dir, "c", "d", "e.yaml"), "4") }, func() bool { return seen(filepath.Join(dir, "c", "d", "e.yaml"), "4") }},
		{"the directory gone", func() error { return os.RemoveAll(dir) }, func() bool { _, err := os.Lstat(dir); return err != nil }},
		{"the directory back", func() error { return write(file, "5") }, func() bool { return seen(file, "5") }},
		{"a change after that", func() error { return write(file, "6") }, func() bool { return seen(file, "6") }},
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at := -1
	err := Run(ctx, dir, func() {
		// A look that comes between a step and what it changes is one too many, not a mistake; one that never comes makes the test time out.
		if at >= 0 && !steps[at].done() {
			return
		}
		if at++; at == len(steps) {
			stop()
			return
		}
		if err := steps[at].do(); err != nil {
			t.Errorf("%s: %v", steps[at].name, err)
			stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if at != len(steps) {
		t.Errorf("ended at step %d of %d", at, len(steps))
	}
}
