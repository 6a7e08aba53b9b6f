//go:build linux

package real

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"halos.dev/halo/artifacts/device/probe"
)

const secret = "halo-protected-content"

// lane is the run of one CLI: it counts what it has shown.
type lane struct {
	cli    CLI
	prefix string
	files  []File
	shown  atomic.Int32
}

// assert makes one subtest of one statement about the CLI.
func (l *lane) assert(t *testing.T, name string, ok bool, format string, args ...any) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		if !ok {
			t.Fatalf(format, args...)
		}
		l.shown.Add(1)
	})
}

// lanes runs f for each CLI that is installed, two at a time, and says for each how much was shown. HALO_REAL_CLI=1 asks for it,
// HALO_CI_CACHE holds the CLIs.
func lanes(t *testing.T, f func(t *testing.T, l *lane)) {
	t.Helper()
	for _, c := range CLIs() {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			prefix, version, err := c.Prefix(os.Getenv("HALO_CI_CACHE"))
			if err != nil {
				t.Skipf("SKIP: %v", err)
			}
			if version != c.Version {
				t.Errorf("%s is at version %s, this lane describes %s", c.Package, version, c.Version)
			}
			l := &lane{cli: c, prefix: prefix}
			f(t, l)
			t.Logf("%s %s: %d assertions passed", c.ID, version, l.shown.Load())
		})
	}
}

// needCLIs skips, with the reason, where the CLIs are not to be run or cannot be.
func needCLIs(t *testing.T) {
	t.Helper()
	if os.Getenv("HALO_REAL_CLI") != "1" {
		t.Skip("SKIP: the real CLIs are not run; set HALO_REAL_CLI=1, or run \"bash .ci/run real\", which installs them first")
	}
	if why := Why(); why != "" {
		t.Skip("SKIP: the real CLIs cannot be run here: " + why)
	}
}

// build has halo build testdata/policy and returns its target for Linux.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	halo, release := filepath.Join(dir, "halo"), filepath.Join(dir, "release")
	for _, argv := range [][]string{
		{"go", "build", "-o", halo, "../../cmd/halo"},
		{halo, "build", "testdata/policy", "--out", release, "--as-of", "2026-01-02T03:04:05Z", "--quiet"},
	} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return filepath.Join(release, "targets", "ring3-ga", "linux")
}

// try is one tool call of a session and what came of it with each CLI. "yes" means that it did what it wanted, "no" that it did not;
// a "yes" where the policy says no is a gap that halo reports.
type try struct {
	name string
	// tool is "shell" or "read", arg its command or path.
	tool, arg string
	// shows is what the result holds when the call did what it wanted.
	shows string
	// host is asked for by the call, changes is the file that it changes.
	host, changes string
	want          map[string]string
	// alone are the CLIs that refuse it without any policy.
	alone []string
}

// everywhere is the outcome in all CLIs, but those given in pairs.
func everywhere(outcome string, but ...string) map[string]string {
	want := map[string]string{}
	for _, c := range CLIs() {
		want[c.ID] = outcome
	}
	for pair := range slices.Chunk(but, 2) {
		want[pair[0]] = pair[1]
	}
	return want
}

// The commands stand in scripts, so that no CLI can recognise a path or a URL in the command line: what is shown is the sandbox.
func workspace() []File {
	return []File{
		{Path: Work + "/alive", Content: []byte("true && echo alive\n")},
		{Path: Work + "/show", Content: []byte("cat \"$1\" 2>/dev/null || echo refused\n")},
		{Path: Work + "/get", Content: []byte("curl -sS -m 5 \"http://$1/\" 2>/dev/null || echo refused\n")},
		{Path: Work + "/put", Content: []byte("{ echo changed >\"$1\"; } 2>/dev/null || echo refused\n")},
		{Path: Work + "/inside", Content: []byte("as it was\n")},
		{Path: Work + "/.env", Content: []byte(secret)},
		{Path: Work + "/deep/.env.local", Content: []byte(secret)},
		{Path: Home + "/.ssh/id", Content: []byte(secret), Mode: 0o600},
		{Path: Home + "/outside", Content: []byte("as it was\n")},
		{Path: "/opt/build-cache/entry", Content: []byte("as it was\n"), User: true},
	}
}

// protectedDir is put together by the shell, for a CLI that looks for protected paths in the command line.
const protectedDir = `"$HOME/.s""sh/id"`

func probes() []try {
	get := func(host string, want map[string]string) try {
		return try{name: "the shell reaches " + host, tool: "shell", arg: "sh get " + host, shows: probe.HostAck(host), host: host, want: want}
	}
	put := func(name, arg, path string, want map[string]string) try {
		return try{name: "the shell writes " + name, tool: "shell", arg: "sh put " + arg, changes: path, want: want}
	}
	return []try{
		{name: "true runs", tool: "shell", arg: "sh alive", shows: "alive", want: everywhere("yes")},
		{name: "the shell reads a protected directory", tool: "shell", arg: "sh show " + protectedDir, shows: secret,
			want: everywhere("no", "gemini-cli", "yes", "opencode", "yes")},
		{name: "the shell reads a protected glob", tool: "shell", arg: "sh show .env", shows: secret,
			want: everywhere("no", "copilot-cli", "yes", "opencode", "yes")},
		{name: "the shell reads a protected glob further down", tool: "shell", arg: "sh show deep/.env.local", shows: secret,
			want: everywhere("no", "copilot-cli", "yes", "opencode", "yes")},
		{name: "the file tool reads a protected directory", tool: "read", arg: Home + "/.ssh/id", shows: secret, want: everywhere("no"),
			alone: []string{"gemini-cli"}},
		{name: "the file tool reads a protected glob", tool: "read", arg: Work + "/deep/.env.local", shows: secret,
			want: everywhere("no", "copilot-cli", "yes")},
		{name: "the file tool reads the workspace", tool: "read", arg: Work + "/README.md", shows: "A workspace.", want: everywhere("yes")},
		get("github.com", everywhere("yes", "gemini-cli", "no")),
		get("a.b.githubusercontent.com", everywhere("yes", "gemini-cli", "no")),
		get("githubusercontent.com", everywhere("no", "opencode", "yes")),
		get("pastebin.com", everywhere("no", "opencode", "yes")),
		get("unlisted.example", everywhere("no", "opencode", "yes")),
		put("the workspace", "inside", Work+"/inside", everywhere("yes")),
		put("outside the workspace", `"$HOME/out""side"`, Home+"/outside", everywhere("no", "opencode", "yes")),
		put("a writable root", "/opt/build-cache/entry", "/opt/build-cache/entry", everywhere("yes", "copilot-cli", "no", "gemini-cli", "no")),
		put("a protected glob", ".env", Work+"/.env", everywhere("no", "copilot-cli", "yes", "opencode", "yes")),
	}
}

// play runs a session of probes and returns the outcome of each: "yes", "no", or why it is unknown.
func (l *lane) play(t *testing.T, files []File, ps []try) ([]string, Result) {
	t.Helper()
	var script []probe.Call
	run := Run{Run: l.cli.Session(slices.Concat(workspace(), files), nil)}
	for _, p := range ps {
		if p.tool == "read" {
			script = append(script, l.cli.Read(p.arg))
		} else {
			script = append(script, l.cli.Shell(p.arg))
		}
		if p.host != "" {
			run.Hosts = append(run.Hosts, p.host)
		}
		if p.changes != "" {
			run.Watch = append(run.Watch, p.changes)
		}
	}
	run.Script = script
	res, err := Do(t.Context(), l.prefix, run)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]string, len(ps))
	for i, p := range ps {
		if i >= len(res.Results) {
			outcomes[i] = "not played"
			continue
		}
		did := p.shows == "" || strings.Contains(res.Results[i], p.shows)
		did = did && (p.host == "" || slices.Contains(res.Hits, p.host))
		did = did && (p.changes == "" || res.Watched[p.changes] == "changed\n")
		outcomes[i] = "no"
		if did {
			outcomes[i] = "yes"
		}
	}
	return outcomes, res
}

// TestRealCLIs judges rendered files: those of testdata/policy, built by halo itself, or those of the target (RELEASE/targets/RING/linux)
// that HALO_REAL_TARGET names. The policy of that target has to say the same of the places and hosts of the probes, and may leave
// harnesses out.
func TestRealCLIs(t *testing.T) {
	needCLIs(t)
	target := os.Getenv("HALO_REAL_TARGET")
	given := target != ""
	if !given {
		target = build(t)
	}
	if _, err := os.Stat(target); err != nil {
		t.Fatal(err)
	}
	lanes(t, func(t *testing.T, l *lane) {
		files, err := Target(target, l.cli.ID)
		if given && errors.Is(err, fs.ErrNotExist) {
			t.Skipf("SKIP: %s renders nothing for %s", target, l.cli.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.files = files
		verdict, err := l.cli.Check(t.Context(), l.prefix, l.files)
		if err != nil {
			t.Fatal(err)
		}
		l.assert(t, "the files are accepted", !verdict.Fatal, "refused: %s", verdict.Reports)
		l.assert(t, "without a word", verdict.Reports == "", "it says: %s", verdict.Reports)
		l.understood(t, verdict.Effective)

		ps := probes()
		outcomes, res := l.play(t, l.files, ps)
		for i, p := range ps {
			got := "(the session ended before)"
			if i < len(res.Results) {
				got = res.Results[i]
			}
			l.assert(t, p.name+": "+p.want[l.cli.ID], outcomes[i] == p.want[l.cli.ID], "it is %q; the model was told %q; the CLI printed:\n%s", outcomes[i],
				got, tail(res.Output))
		}

		if l.sendsToGateway() {
			l.assert(t, "the model is asked through the gateway", len(res.URLs) > 0 && !slices.ContainsFunc(res.URLs, func(u string) bool {
				return !strings.HasPrefix(u, Gateway+"/")
			}), "it asked %q", res.URLs)
		}

		if given {
			return
		}
		// What is refused must be refused by the policy.
		outcomes, res = l.play(t, nil, ps)
		for i, p := range ps {
			if p.want[l.cli.ID] == "no" && !slices.Contains(p.alone, l.cli.ID) {
				l.assert(t, "without the policy "+p.name, outcomes[i] == "yes", "it is %q; the CLI printed:\n%s", outcomes[i], tail(res.Output))
			}
		}
	})
}

// sendsToGateway says that the files send the CLI to the gateway, whatever the user says.
func (l *lane) sendsToGateway() bool {
	return slices.ContainsFunc(l.files, func(f File) bool { return strings.Contains(string(f.Content), "https://"+Gateway) })
}

// understood compares what the CLI says it understood with the files, where it says so.
func (l *lane) understood(t *testing.T, effective json.RawMessage) {
	t.Helper()
	switch l.cli.ID {
	case "copilot-cli":
		l.allOf(t, "/etc/github-copilot/managed-settings.json", effective)
	case "opencode":
		l.allOf(t, "/etc/opencode/opencode.json", effective)
	case "codex":
		var want struct {
			Profile string `toml:"default_permissions"`
			Network struct {
				Domains map[string]string `toml:"domains"`
			} `toml:"experimental_network"`
		}
		if err := toml.Unmarshal(l.file(t, "/etc/codex/requirements.toml"), &want); err != nil {
			t.Fatal(err)
		}
		var got struct {
			DefaultPermissions string
			Network            struct {
				Enabled, ManagedAllowedDomainsOnly bool
				Domains                            map[string]string
			}
		}
		if err := json.Unmarshal(effective, &got); err != nil {
			t.Fatal(err)
		}
		l.assert(t, "the profile is understood", want.Profile != "" && got.DefaultPermissions == want.Profile, "it understood %s", effective)
		l.assert(t, "the network rules are on", got.Network.Enabled && got.Network.ManagedAllowedDomainsOnly, "it understood %s", effective)
		l.assert(t, "all hosts are understood", len(want.Network.Domains) > 0 && maps.Equal(got.Network.Domains, want.Network.Domains),
			"%v became %v", want.Network.Domains, got.Network.Domains)
	}
}

// allOf compares a JSON document with what the CLI made of it, key by key.
func (l *lane) allOf(t *testing.T, path string, effective json.RawMessage) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal(l.file(t, path), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(effective, &got); err != nil {
		t.Fatal(err)
	}
	hideHeaders(want)
	hideHeaders(got)
	for _, k := range slices.Sorted(maps.Keys(want)) {
		l.assert(t, "all of "+k+" is understood", reflect.DeepEqual(want[k], got[k]), "%v became %v", want[k], got[k])
	}
}

// hideHeaders hides the values of all headers in a document: OpenCode fills in variables of the environment there and then prints
// stars.
func hideHeaders(doc map[string]any) {
	for key, value := range doc {
		m, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if key != "headers" {
			hideHeaders(m)
			continue
		}
		for name := range m {
			m[name] = "hidden"
		}
	}
}

// file is the content of one of the files under judgement.
func (l *lane) file(t *testing.T, path string) []byte {
	t.Helper()
	i := slices.IndexFunc(l.files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("the target has no %s", path)
	}
	return l.files[i].Content
}

// tail is the end of a long text.
func tail(s string) string {
	return s[max(0, len(s)-3000):]
}
