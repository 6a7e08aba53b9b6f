// Command floor does the least that a compiler of policy repos could do, as a yardstick: start, read and hash the files, decode them into YAML nodes and
// drop those, or write files with their digests and a manifest.
package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"gopkg.in/yaml.v3"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] == "start" {
		fmt.Println("hello")
		return nil
	}
	switch args[0] {
	case "read":
		return each(args[1], func(_ string, data []byte) error {
			sha256.Sum256(data)
			return nil
		})
	case "decode":
		return each(args[1], func(_ string, data []byte) error {
			var n yaml.Node
			return yaml.Unmarshal(data, &n)
		})
	case "keep":
		var all []*yaml.Node
		err := each(args[1], func(_ string, data []byte) error {
			n := new(yaml.Node)
			all = append(all, n)
			return yaml.Unmarshal(data, n)
		})
		fmt.Println(len(all))
		return err
	case "emit":
		return emit(args[1], args[2])
	}
	return fmt.Errorf("unknown mode %q", args[0])
}

func each(dir string, do func(name string, data []byte) error) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".yaml") {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return do(p, data)
	})
}

// emit writes the files of a release again with their digests and a manifest, from memory.
func emit(from, to string) error {
	debug.SetGCPercent(400)
	type file struct {
		name string
		data []byte
	}
	var files []file
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		files = append(files, file{rel, data})
		return err
	})
	if err != nil {
		return err
	}
	var manifest strings.Builder
	for _, f := range files {
		name := filepath.Join(to, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&manifest, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return os.WriteFile(filepath.Join(to, "floor.sums"), []byte(manifest.String()), 0o644)
}
