// Package cases runs worked cases of the policy model through the built program: small repos and what halo must say about each. The cases are data.
package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// halo is the built program.
var halo string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "halo-cases-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	halo = filepath.Join(dir, "halo")
	if runtime.GOOS == "windows" {
		halo += ".exe"
	}
	code := 1
	if out, err := exec.Command("go", "build", "-o", halo, "../../cmd/halo").CombinedOutput(); err != nil {
		os.Stderr.Write(out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// words is a text or a list of texts.
type words []string

func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = words{n.Value}
		return nil
	}
	return n.Decode((*[]string)(w))
}

// documents decodes every document of a data file; a key that no field takes is an error.
func documents[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var out []T
	for {
		var doc T
		if err := dec.Decode(&doc); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, doc)
	}
}

// result is one run of the program.
type result struct {
	status         int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
}

// run runs halo with a clean environment and a fixed clock.
func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runCmd(t, env, exec.CommandContext(t.Context(), halo, append([]string{"--as-of", "2026-11-30T12:00:00Z"}, args...)...))
}

// runIn runs halo in a directory.
func runIn(t *testing.T, dir string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), halo, append([]string{"--as-of", "2026-11-30T12:00:00Z"}, args...)...)
	cmd.Dir = dir
	return runCmd(t, nil, cmd)
}

func runCmd(t *testing.T, env []string, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HALO_KEY_PASSWORD=cases", "GIT_CONFIG_GLOBAL=" + os.DevNull}, env...)
	err := cmd.Run()
	r := result{stdout: out.String(), stderr: errs.String()}
	if exit, ok := err.(*exec.ExitError); ok {
		r.status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if r.status < 0 || r.status > 2 || strings.Contains(r.stderr, "goroutine ") {
		t.Fatalf("%v: %v", cmd.Args, r)
	}
	return r
}

type finding struct {
	Code, Severity, File, Document, Path, Message, Hint string
	Line                                                int
	Related                                             []struct{ Line int }
}

// findings reads the diagnostics of a run with --output json, which must be the only thing on standard output.
func findings(t *testing.T, r result) []finding {
	t.Helper()
	var doc struct {
		SchemaVersion int
		Diagnostics   []finding
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("not one JSON document: %v\n%v", err, r)
	}
	if dec.More() {
		t.Fatalf("more than one JSON document\n%v", r)
	}
	return doc.Diagnostics
}

// want describes a finding.
type want struct {
	File    string
	At      words
	Says    words
	Line    int
	Related []int
}

// met reports whether a finding of a severity is as described.
func (w want) met(fs []finding, severity string) bool {
	return slices.ContainsFunc(fs, func(f finding) bool {
		switch {
		case f.Severity != severity:
		case w.File != "" && f.File != w.File:
		case len(w.At) > 0 && !slices.ContainsFunc(w.At, func(at string) bool { return under(f.Path, at) }):
		case len(w.Says) > 0 && !contains(f.Message+" "+f.Hint, w.Says):
		case w.Line > 0 && f.Line != w.Line:
		case slices.ContainsFunc(w.Related, func(line int) bool {
			return !slices.ContainsFunc(f.Related, func(r struct{ Line int }) bool { return r.Line == line })
		}):
		default:
			return true
		}
		return false
	})
}

// under reports whether a key path is at or below another; a path in an overlay counts without its prefix.
func under(path, at string) bool {
	for _, p := range []string{path, strings.TrimPrefix(path, "overlay.")} {
		if rest, ok := strings.CutPrefix(p, at); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// contains reports whether one of the words is in a text; case does not count.
func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(w)) })
}

// write writes a file of a repo.
func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
