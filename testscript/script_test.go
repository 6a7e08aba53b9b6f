// Package testscript runs halo as its users do: the built binary, real files, exit statuses. Each script is one behaviour.
package testscript

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is the directory with the built halo.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "halo-bin-")
	if err != nil {
		panic(err)
	}
	bin = dir
	name := filepath.Join(dir, "halo")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", name, "../cmd/halo").CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestScripts(t *testing.T) { runScripts(t, inProcess(), ".") }

// What halo does with a registry it does with the one that most people run.
func TestDistribution(t *testing.T) {
	runScripts(t, distribution(t), "", "oci.txtar")
}

// runScripts runs the scripts of a directory, or single ones, with a registry in store, in which each keeps to repositories of its own.
func runScripts(t *testing.T, store http.Handler, dir string, files ...string) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	open, closed, lying := serveRegistry(t, store)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		UpdateScripts:       os.Getenv("HALO_UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("REPO", root)
			env.Setenv("HALO_KEY_PASSWORD", "test")
			env.Setenv("HALO_CACHE", "off")
			env.Setenv("REGISTRY", open)
			env.Setenv("CLOSED_REGISTRY", closed)
			env.Setenv("LYING_REGISTRY", lying)
			env.Setenv("DOCKER_CONFIG", filepath.Join(env.WorkDir, "docker"))
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_AUTHOR_DATE", "2026-11-01T12:00:00Z")
			env.Setenv("GIT_COMMITTER_DATE", "2026-11-01T12:00:00Z")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "unix":
				return runtime.GOOS != "windows", nil
			}
			return false, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// status N COMMAND... runs a command and wants that exit status.
			"status": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				if err != nil {
					ts.Fatalf("usage: status N COMMAND...")
				}
				err = ts.Exec(args[1], args[2:]...)
				got := 0
				if err != nil {
					exit, ok := err.(*exec.ExitError)
					if !ok {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
			// append FILE TEXT adds text to the end of a file.
			"append": func(ts *testscript.TestScript, _ bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
				ts.Check(err)
				_, err = f.WriteString(args[1])
				ts.Check(err)
				ts.Check(f.Close())
			},
			// pad FILE SIZE adds a YAML comment that gives a file that many bytes.
			"pad": func(ts *testscript.TestScript, _ bool, args []string) {
				size, err := strconv.Atoi(args[1])
				ts.Check(err)
				data := ts.ReadFile(args[0]) + "#"
				data += strings.Repeat("x", max(0, size-len(data)))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data), 0o644))
			},
			// expand FROM TO copies a file with $NAME replaced by the environment.
			"expand": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o644))
			},
			// mkfifo FILE makes a named pipe.
			"mkfifo": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(ts.Exec("mkfifo", ts.MkAbs(args[0])))
			},
		},
	})
}
