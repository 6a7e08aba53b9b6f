// Command generate writes the JSON Schemas of the documents of a policy repo. What a document may hold comes from the tables that its reader reads it by,
// the descriptions from the comments in the reader's source.
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// main runs in docs/schema, where go generate starts it.
func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) error {
	want, err := schemas(filepath.Join(dir, "..", ".."))
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if want[filepath.Base(name)] == nil {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		file := filepath.Join(dir, name)
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, want[name]) {
			continue
		}
		if err := os.WriteFile(file, want[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fileName is the file of the schema of a kind.
func fileName(kind string) string { return strings.ToLower(kind) + ".json" }
