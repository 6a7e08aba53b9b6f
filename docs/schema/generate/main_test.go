package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent wants the published schemas to be what the readers take now.
func TestCurrent(t *testing.T) {
	want, err := schemas(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if have, err := os.ReadFile(filepath.Join("..", name)); err != nil || !bytes.Equal(have, text) {
			t.Errorf("docs/schema/%s is not what the reader takes; run go generate ./docs/schema (%v)", name, err)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "*.json"))
	if err != nil || len(files) != len(want) {
		t.Errorf("there are %d schemas, want %d (%v); run go generate ./docs/schema", len(files), len(want), err)
	}
}

// TestForms wants every form to be used.
func TestForms(t *testing.T) {
	want, err := schemas(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name := range forms {
		used := false
		for _, text := range want {
			used = used || bytes.Contains(text, []byte(ref(name).Ref+`"`))
		}
		if !used {
			t.Errorf("no key has the form %q", name)
		}
	}
}
