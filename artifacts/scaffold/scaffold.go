// Package scaffold holds a small working policy repo and writes it out for a new organization.
package scaffold

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/docs/schema"
)

//go:embed all:repo
var repo embed.FS

// reviewAfter is how long the acknowledgements of a new repo hold before somebody must look at them again.
const reviewAfter = 365 * 24 * time.Hour

// schemas is the directory of the repo with the schemas that its editor settings name. Policy is never read from it.
const schemas = ".halo/schema/"

// Files returns the files of the repo of an organization by path. version is the Claude Code version to pin; acknowledgements hold for a year from now.
func Files(org, version string, now time.Time) (map[string][]byte, error) {
	fill := strings.NewReplacer("ORG", org, "VERSION", version, "UNTIL", now.Add(reviewAfter).UTC().Format(time.DateOnly))
	out := map[string][]byte{}
	for _, name := range []string{schema.Repo, "pack"} {
		data, ok := schema.Get(name)
		if !ok {
			return nil, fmt.Errorf("there is no schema %s", name)
		}
		out[schemas+name+".json"] = data
	}
	err := fs.WalkDir(repo, "repo", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := repo.ReadFile(path)
		if err != nil {
			return err
		}
		out[strings.TrimPrefix(path, "repo/")] = []byte(fill.Replace(string(data)))
		return nil
	})
	return out, err
}

// Write writes files to a directory that does not exist or is empty, whole or not at all, and returns their paths, sorted. A directory that exists stays the same
// directory, so that a shell may stand in it. An *artifacts.OutError says why a directory cannot be used.
func Write(ctx context.Context, dir string, files map[string][]byte) ([]string, error) {
	refused := func(reason string) error {
		return &artifacts.OutError{Path: dir, Reason: reason}
	}
	empty := func(fs.FS) (string, error) { return "the directory is not empty", nil }
	paths := slices.Sorted(maps.Keys(files))
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return paths, artifacts.WriteDir(ctx, dir, "repo", nil, files, empty)
	case err != nil:
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, refused(err.Error())
	case len(entries) > 0:
		return nil, refused("the directory is not empty: it holds " + entries[0].Name())
	}
	temp := filepath.Join(dir, ".halo-init")
	defer os.RemoveAll(temp)
	if err := artifacts.WriteDir(ctx, temp, "repo", nil, files, empty); err != nil {
		return nil, err
	}
	made, err := os.ReadDir(temp)
	if err != nil {
		return nil, fmt.Errorf("write repo: %w", err)
	}
	// halos.yaml makes a directory a policy repo and comes last.
	slices.SortStableFunc(made, func(a, b fs.DirEntry) int {
		last := func(e fs.DirEntry) int {
			if e.Name() == "halos.yaml" {
				return 1
			}
			return 0
		}
		return last(a) - last(b)
	})
	for i, e := range made {
		if err := os.Rename(filepath.Join(temp, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			for _, undo := range made[:i] {
				os.RemoveAll(filepath.Join(dir, undo.Name()))
			}
			return nil, fmt.Errorf("write repo: %w", err)
		}
	}
	return paths, nil
}
