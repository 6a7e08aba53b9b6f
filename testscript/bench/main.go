// Command bench measures halo against yardsticks that run beside it on the same bytes, and prints a table as text and, with -json, as JSON. Every goal is a
// ratio, because machines differ and drift; processor time decides. It exits with 1 when a ratio is above 1.15 times its goal.
//
//	go run ./testscript/bench [-n 1000,10000] [-runs 5] [-json FILE]
//	go run ./testscript/bench -write DIR -n 1000
//
// The second form writes the repo of that many documents, for other programs to be measured on.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"halos.dev/halo/testscript/bench/gen"
)

// row is one measured goal.
type row struct {
	ID       string  `json:"id"`
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Yard     float64 `json:"yardstick"`
	Ratio    float64 `json:"ratio"`
	Goal     float64 `json:"goal"`
	Unit     string  `json:"unit"`
	Exceeded bool    `json:"exceeded"`
}

// run is what one process used.
type run struct {
	cpu, wall time.Duration
	rss       int64 // KiB
}

func main() {
	sizes := flag.String("n", "1000,10000", "numbers of documents")
	runs := flag.Int("runs", 5, "runs of each command; the median counts")
	out := flag.String("json", "", "also write the table to this file")
	write := flag.String("write", "", "write the repo of -n documents to this directory, and measure nothing")
	flag.Parse()
	if *write != "" {
		n, err := strconv.Atoi(*sizes)
		if err == nil {
			err = gen.Write(*write, gen.Options{Documents: n})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		return
	}
	rows, err := measure(*sizes, *runs)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	bad := false
	fmt.Printf("%s/%s, %d processors, %d runs each, medians\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *runs)
	fmt.Printf("%-4s %-44s %12s %12s %8s %8s\n", "goal", "what", "halo", "yardstick", "ratio", "at most")
	for _, r := range rows {
		mark := ""
		if r.Exceeded {
			mark, bad = "  EXCEEDED", true
		}
		goal := "-"
		if r.Goal > 0 {
			goal = fmt.Sprintf("%.2f", r.Goal)
		}
		fmt.Printf("%-4s %-44s %9.3f %-2s %9.3f %-2s %8.2f %8s%s\n", r.ID, r.What, r.Value, r.Unit, r.Yard, r.Unit, r.Ratio, goal, mark)
	}
	if *out != "" {
		data, err := json.MarshalIndent(rows, "", "  ")
		if err == nil {
			err = os.WriteFile(*out, append(data, '\n'), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
	}
	if bad {
		os.Exit(1)
	}
}

func measure(sizes string, runs int) ([]row, error) {
	dir, err := os.MkdirTemp("", "halo-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// Only what is measured with a cache has one.
	os.Setenv("HALO_CACHE", "off")
	halo, floor, hello := filepath.Join(dir, "halo"), filepath.Join(dir, "floor"), filepath.Join(dir, "hello")
	if err := os.WriteFile(filepath.Join(dir, "hello.go"), []byte("package main\n\nimport (\n\t\"flag\"\n\t\"fmt\"\n)\n\nfunc main() {\n\tflag.Parse()\n\tfmt.Println(\"hello\")\n}\n"), 0o644); err != nil {
		return nil, err
	}
	for _, b := range [][]string{
		{"build", "-tags", "urfave_cli_no_docs", "-trimpath", "-ldflags", "-s -w", "-o", halo, "./cmd/halo"},
		{"build", "-o", floor, "./testscript/bench/floor"},
		{"build", "-o", hello, filepath.Join(dir, "hello.go")},
	} {
		cmd := exec.Command("go", b...)
		// As it is released: the dynamic loader and the C library alone take some milliseconds.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(b, " "), err, msg)
		}
	}
	var rows []row
	add := func(id, what, unit string, value, yard, goal float64) {
		r := row{ID: id, What: what, Value: value, Yard: yard, Goal: goal, Unit: unit}
		if yard > 0 {
			r.Ratio = value / yard
		}
		r.Exceeded = goal > 0 && r.Ratio > 1.15*goal
		rows = append(rows, r)
	}
	info, err := os.Stat(halo)
	if err != nil {
		return nil, err
	}
	add("P13", "stripped binary, yardstick 14 MB", "MB", float64(info.Size())/1e6, 14, 1)

	a, b, err := pair(max(runs, 20), []string{halo, "version"}, []string{hello})
	if err != nil {
		return nil, err
	}
	add("P9", "halo version, yardstick hello world", "ms", ms(a.cpu), ms(b.cpu), 3.0)
	a, b, err = pair(max(runs, 20), []string{halo, "--help"}, []string{hello})
	if err != nil {
		return nil, err
	}
	add("P9", "halo --help, yardstick hello world", "ms", ms(a.cpu), ms(b.cpu), 3.5)

	var ns []int
	lint := map[int]run{}
	for s := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		ns = append(ns, n)
		repo := filepath.Join(dir, "repo-"+s)
		if err := gen.Write(repo, gen.Options{Documents: n}); err != nil {
			return nil, err
		}
		a, b, err := pair(runs, []string{halo, "lint", repo}, []string{floor, "decode", repo})
		if err != nil {
			return nil, err
		}
		lint[n] = a
		add("P1", "lint "+s+", CPU, yardstick decode", "ms", ms(a.cpu), ms(b.cpu), 1.4)
		add("P2", "lint "+s+", wall, yardstick decode", "ms", ms(a.wall), ms(b.wall), 0.85)
		limit := map[int]float64{1000: 24, 10000: 64}[n]
		add("P5", "lint "+s+", peak memory, yardstick the limit", "MiB", float64(a.rss)/1024, limit, 1)

		if n > 100 {
			cached := []string{"env", "HALO_CACHE=" + filepath.Join(dir, "cache"), halo, "lint", repo}
			a, b, err = pair(runs, cached, []string{floor, "read", repo})
			if err != nil {
				return nil, err
			}
			add("P3", "lint "+s+" again, unchanged, yardstick read", "ms", ms(a.cpu), ms(b.cpu), 2.5)
			if a, err = changed(runs, repo, cached); err != nil {
				return nil, err
			}
			add("P4", "lint "+s+", one changed, yardstick P3 + 20 ms", "ms", ms(a.cpu), 2.5*ms(b.cpu)+20, 1)
		}
		broken := filepath.Join(dir, "broken-"+s)
		if err := gen.Write(broken, gen.Options{Documents: n, Broken: true}); err != nil {
			return nil, err
		}
		a, b, err = pair(runs, []string{halo, "lint", broken}, []string{halo, "lint", repo})
		if err != nil {
			return nil, err
		}
		add("P14", "lint "+s+" with an error each, yardstick clean", "ms", ms(a.cpu), ms(b.cpu), 1.5)

		if n == 1000 {
			release := filepath.Join(dir, "release-"+s)
			// Both write where nothing is: a release that is there would be compared and removed by one and overwritten by the other.
			build := []string{halo, "build", repo, "--as-of", "2026-11-30T00:00:00Z", "--out"}
			if _, err := once(append(build, release)); err != nil {
				return nil, err
			}
			a, b, err := pair(runs, append(build, fresh), []string{floor, "emit", release, fresh})
			if err != nil {
				return nil, err
			}
			add("P7", "build "+s+", yardstick lint + emit", "ms", ms(a.cpu), ms(lint[n].cpu)+ms(b.cpu), 1.3)
			a, b, err = pair(runs, []string{halo, "egress", "test", "pastebin.com", "--ring", "r00001", "--policy-dir", repo}, []string{floor, "decode", repo})
			if err != nil {
				return nil, err
			}
			add("P11", "egress test on 1000, yardstick decode", "ms", ms(a.cpu), ms(b.cpu), 0.35)
			changed := filepath.Join(dir, "changed-"+s)
			if err := gen.Write(changed, gen.Options{Documents: n, Changed: true}); err != nil {
				return nil, err
			}
			a, b, err = pair(runs, []string{halo, "diff", repo, changed}, []string{halo, "lint", repo})
			if err != nil {
				return nil, err
			}
			add("diff", "diff of two repos of 1000, yardstick two lints", "ms", ms(a.cpu), 2*ms(b.cpu), 1.3)
			key := filepath.Join(dir, "k")
			os.Setenv("HALO_KEY_PASSWORD", "")
			if msg, err := exec.Command(halo, "keygen", "--out", key).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("keygen: %w\n%s", err, msg)
			}
			if msg, err := exec.Command(halo, "release", "sign", release, "--key", key+".key").CombinedOutput(); err != nil {
				return nil, fmt.Errorf("sign: %w\n%s", err, msg)
			}
			a, b, err = pair(runs, []string{halo, "release", "verify", release, "--key", key + ".pub"}, []string{"sh", "-c", "cd " + release + " && exec sha256sum -c --quiet SHA256SUMS"})
			if err != nil {
				return nil, err
			}
			add("P12", "verify of that release, yardstick sha256sum -c", "ms", ms(a.cpu), ms(b.cpu), 1.5)
		}
	}
	for _, shape := range gen.Shapes {
		var used [2]run
		for i, n := range [2]int{shape.Size / 10, shape.Size} {
			repo := filepath.Join(dir, shape.Name+"-"+strconv.Itoa(n))
			if err := gen.WriteShape(repo, shape.Name, n); err != nil {
				return nil, err
			}
			if used[i], _, err = pair(1, []string{halo, "lint", repo}, nil); err != nil {
				return nil, err
			}
		}
		add("P6", fmt.Sprintf("lint of %d %s against a tenth of them", shape.Size, shape.Name), "x", ms(used[1].cpu)/ms(used[0].cpu), 10, 1.07)
	}
	if len(ns) == 2 {
		lo, hi := lint[ns[0]], lint[ns[1]]
		add("P6", "growth of lint CPU, yardstick growth of documents", "x", ms(hi.cpu)/ms(lo.cpu), float64(ns[1])/float64(ns[0]), 1.07)
	}
	return rows, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// pair runs two commands in turn, one warm-up first, and returns the medians of each. The commands' own exit status does not count: a lint with errors is a
// run like any other.
func pair(n int, a, b []string) (ra, rb run, err error) {
	var as, bs []run
	for i := range n + 1 {
		x, err := once(a)
		if err != nil {
			return run{}, run{}, err
		}
		var y run
		if b != nil {
			if y, err = once(b); err != nil {
				return run{}, run{}, err
			}
		}
		if i > 0 {
			as, bs = append(as, x), append(bs, y)
		}
	}
	return median(as), median(bs), nil
}

// fresh among the arguments of a command stands for a directory that is not there, and is removed after the run.
const fresh = "FRESH"

func once(args []string) (run, error) {
	if i := slices.Index(args, fresh); i >= 0 {
		dir, err := os.MkdirTemp("", "halo-bench-out-")
		if err != nil {
			return run{}, err
		}
		defer os.RemoveAll(dir)
		args = slices.Clone(args)
		args[i] = filepath.Join(dir, "out")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if cmd.ProcessState == nil {
		return run{}, err
	}
	if code := cmd.ProcessState.ExitCode(); code > 1 {
		return run{}, fmt.Errorf("%s: exit status %d", strings.Join(args, " "), code)
	}
	r := run{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall: wall}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rss = u.Maxrss
	}
	return r, nil
}

// changed returns the median of a command when one document of the repo is another each time, which it is not afterwards.
func changed(n int, repo string, cmd []string) (run, error) {
	names, err := filepath.Glob(filepath.Join(repo, "units", "*", "*.yaml"))
	if err != nil || len(names) == 0 {
		return run{}, fmt.Errorf("%s has no units: %v", repo, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return run{}, err
	}
	var rs []run
	for i := range n {
		if err := os.WriteFile(names[0], fmt.Appendf(data[:len(data):len(data)], "# %d\n", i), 0o644); err != nil {
			return run{}, err
		}
		r, err := once(cmd)
		if err != nil {
			return run{}, err
		}
		rs = append(rs, r)
	}
	return median(rs), os.WriteFile(names[0], data, 0o644)
}

// median takes the median of each figure.
func median(rs []run) run {
	pick := func(key func(run) int64) int64 {
		vs := make([]int64, len(rs))
		for i, r := range rs {
			vs[i] = key(r)
		}
		slices.Sort(vs)
		return vs[len(vs)/2]
	}
	return run{
		cpu:  time.Duration(pick(func(r run) int64 { return int64(r.cpu) })),
		wall: time.Duration(pick(func(r run) int64 { return int64(r.wall) })),
		rss:  pick(func(r run) int64 { return r.rss }),
	}
}
