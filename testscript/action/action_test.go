// Package action runs the script of action.yml as GitHub's runner would: inputs as variables, an event file, and files for outputs and the summary.
package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// bin is the directory with the built halo, root the repo.
var bin, root string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "halo-action-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	root, _ = filepath.Abs("../..")
	code := 1
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "halo"), "../../cmd/halo").CombinedOutput(); err != nil {
		os.Stderr.Write(out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// gh stands for GitHub's client: it notes its arguments and the body, answers with the id of a comment, and fails when told to.
const gh = `#!/bin/sh
printf '%s\n' "$*" >>"$FAKE_GH/calls"
for a; do case $a in body=@*) cp "${a#body=@}" "$FAKE_GH/body" ;; esac; done
[ ! -e "$FAKE_GH/fail" ] || exit 1
case $* in *--jq*) cat "$FAKE_GH/id" 2>/dev/null ;; esac
exit 0
`

// runner is a fake runner: a workspace, inputs and an event.
type runner struct {
	t      *testing.T
	dir    string
	inputs map[string]string
	env    map[string]string
	event  any
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	for _, tool := range []string{"bash", "jq", "git"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS == "windows" {
			t.Skipf("the script of the action needs %s on a system with a POSIX shell", tool)
		}
	}
	r := &runner{t: t, dir: t.TempDir(), env: map[string]string{}, event: map[string]any{},
		inputs: map[string]string{"command": "lint", "policy-dir": ".", "fail-on": "error", "comment": "true"}}
	for _, d := range []string{"workspace", "temp", "gh"} {
		if err := os.Mkdir(filepath.Join(r.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.put("gh/gh", gh)
	if err := os.Chmod(filepath.Join(r.dir, "gh", "gh"), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *runner) put(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runner) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	return string(data)
}

func (r *runner) git(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = filepath.Join(r.dir, "workspace")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@acme.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@acme.example",
		"GIT_AUTHOR_DATE=2026-11-01T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-01T12:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// result is what a run left.
type result struct {
	status       int
	log, summary string
	outputs      map[string]string
	calls, body  string
}

func (r *runner) run() result {
	r.t.Helper()
	event, err := json.Marshal(r.event)
	if err != nil {
		r.t.Fatal(err)
	}
	r.put("event.json", string(event))
	r.put("output", "")
	r.put("summary", "")
	cmd := exec.CommandContext(r.t.Context(), "bash", filepath.Join(root, ".github", "action", "run.sh"))
	cmd.Env = []string{"PATH=" + filepath.Join(r.dir, "gh") + ":" + bin + ":" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "FAKE_GH=" + filepath.Join(r.dir, "gh"),
		"GITHUB_WORKSPACE=" + filepath.Join(r.dir, "workspace"), "RUNNER_TEMP=" + filepath.Join(r.dir, "temp"), "GITHUB_EVENT_PATH=" + filepath.Join(r.dir, "event.json"),
		"GITHUB_OUTPUT=" + filepath.Join(r.dir, "output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(r.dir, "summary"), "GITHUB_REPOSITORY=acme/policy", "GITHUB_RUN_NUMBER=7"}
	for _, name := range []string{"command", "policy-dir", "ring", "unit", "against", "fail-on", "expect", "sarif-file", "version", "sequence", "comment"} {
		cmd.Env = append(cmd.Env, variable(name)+"="+r.inputs[name])
	}
	for k, v := range r.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	out := result{}
	if err := cmd.Run(); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			r.t.Fatal(err)
		}
		out.status = exit.ExitCode()
	}
	out.log, out.summary, out.calls, out.body = log.String(), r.read("summary"), r.read("gh/calls"), r.read("gh/body")
	out.outputs = outputs(r.t, r.read("output"))
	if left, _ := filepath.Glob(filepath.Join(r.dir, "temp", "halo.*")); len(left) > 0 {
		r.t.Errorf("the script left %v", left)
	}
	return out
}

func variable(input string) string {
	return "INPUT_" + strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
}

// outputs reads the file of outputs as the runner does.
func outputs(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		name, end, ok := strings.Cut(lines[i], "<<")
		if !ok {
			continue
		}
		last := slices.Index(lines[i+1:], end)
		if last < 0 {
			t.Fatalf("output %s has no end:\n%s", name, text)
		}
		out[name] = strings.Join(lines[i+1:i+1+last], "\n")
		i += 1 + last
	}
	return out
}

// policy is a small policy; hosts are allowed beside the gateway.
func (r *runner) policy(dir, hosts string) {
	r.put("workspace/"+dir+"/halos.yaml", "org: acme\nlifetime: 90d\n")
	r.put("workspace/"+dir+"/policy.yaml", `apiVersion: halos.dev/v1
kind: Profile
name: base
harnesses: {claude-code: {version: 2.1.332}}
permissions: {disableBypass: true, sandboxRequired: true}
egress:
  allowedDomains: [ai.acme.example`+hosts+`]
---
{apiVersion: halos.dev/v1, kind: Gateway, name: main, baseURL: 'https://ai.acme.example'}
---
{apiVersion: halos.dev/v1, kind: Ring, name: ga, order: 0, profile: base, membership: {default: true}}
`)
}

// pull makes the checkout of a pull request that changes the allowed hosts: a merge of its branch into main.
func (r *runner) pull(dir, before, after string) {
	r.policy(dir, before)
	r.git("init", "-q", "-b", "main")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "one")
	r.git("checkout", "-q", "-b", "change")
	r.policy(dir, after)
	r.git("commit", "-q", "--allow-empty", "-a", "-m", "two")
	r.git("checkout", "-q", "main")
	r.git("merge", "-q", "--no-ff", "-m", "merge", "change")
	r.request("acme/policy")
}

func (r *runner) request(from string) {
	r.event = map[string]any{"pull_request": map[string]any{"number": 12, "base": map[string]any{"sha": strings.Repeat("1", 40)}, "head": map[string]any{"repo": map[string]any{"full_name": from}}}}
}

func (r result) check(t *testing.T, status int, says ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("exit status %d, want %d", r.status, status)
	}
	for _, s := range says {
		if !strings.Contains(r.log+r.summary, s) {
			t.Errorf("neither log nor summary says %q", s)
		}
	}
	if t.Failed() {
		t.Logf("log:\n%s\nsummary:\n%s\noutputs: %v\ngh: %s", r.log, r.summary, r.outputs, r.calls)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy("policy", "")
	r.inputs["policy-dir"], r.inputs["sarif-file"] = "policy", "out/halo.sarif"
	got := r.run()
	got.check(t, 0, "### Policy: 0 errors,")
	if got.outputs["errors"] != "0" || got.outputs["warnings"] == "" || got.outputs["warnings"] == "0" {
		t.Errorf("outputs %v", got.outputs)
	}
	if !strings.Contains(r.read("workspace/out/halo.sarif"), `"version": "2.1.0"`) {
		t.Error("no SARIF")
	}
	r.inputs["fail-on"] = "error, warning"
	r.run().check(t, 1)
	r.inputs["command"] = "validate"
	r.run().check(t, 1)

	r.inputs["fail-on"] = ""
	r.put("workspace/policy/more.yaml", "apiVersion: halos.dev/v1\nkind: Profile\nname: `a|b`\n")
	got = r.run()
	got.check(t, 1, "::error file=policy/more.yaml,line=3,")
	if got.outputs["errors"] == "0" || strings.Contains(strings.ReplaceAll(got.summary, `\|`, ""), "a|b") {
		t.Errorf("outputs %v, summary\n%s", got.outputs, got.summary)
	}
}

func TestPullRequest(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.pull("policy", "", ", uploads.example")
	r.inputs["command"], r.inputs["policy-dir"] = "check", "policy"
	got := r.run()
	got.check(t, 0, "### Policy change: LOOSER", "host uploads.example: deny -> allow", "::warning file=policy/policy.yaml,line=7,col=37,title=looser::host uploads.example: deny -> allow for ga")
	if got.outputs["looser"] != "true" || !strings.Contains(got.outputs["summary"], "uploads.example") {
		t.Errorf("outputs %v", got.outputs)
	}
	if !strings.Contains(got.calls, "--method POST repos/acme/policy/issues/12/comments") || !strings.HasPrefix(got.body, "<!-- halo diff ") || !strings.Contains(got.body, "LOOSER") {
		t.Errorf("gh: %s\n%s", got.calls, got.body)
	}
	// The same comment again.
	r.put("gh/id", "345\n678\n")
	got = r.run()
	if !strings.Contains(got.calls, "--method PATCH repos/acme/policy/issues/comments/345") {
		t.Errorf("gh: %s", got.calls)
	}
	r.inputs["fail-on"] = "looser"
	r.run().check(t, 1, "::error title=halo::the policy got looser")
	// A comment that cannot be written, no client, a fork, and none wanted: the summary has it.
	r.inputs["fail-on"] = "error"
	r.put("gh/fail", "")
	r.run().check(t, 0, "::warning title=halo::the comments of the pull request cannot be read", "### Policy change: LOOSER")
	os.Remove(filepath.Join(r.dir, "gh", "fail"))
	r.put("gh/calls", "")
	r.request("stranger/policy")
	got = r.run()
	got.check(t, 0, "comes from a fork", "### Policy change: LOOSER")
	r.request("acme/policy")
	r.inputs["comment"] = "false"
	r.run().check(t, 0, "### Policy change: LOOSER")
	if calls := r.read("gh/calls"); calls != "" {
		t.Errorf("gh: %s", calls)
	}
}

func TestNoChange(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.pull(".", "", "")
	r.inputs["command"] = "diff"
	got := r.run()
	got.check(t, 0, "The one target stays the same")
	if got.outputs["looser"] != "false" || strings.Contains(got.calls, "--method") {
		t.Errorf("outputs %v, gh: %s", got.outputs, got.calls)
	}
}

// TestNothingToCompare holds that a comparison that cannot be made is said aloud, and fails when it was asked for.
func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy("policy", "")
	r.git("init", "-q", "-b", "main")
	r.git("commit", "-q", "--allow-empty", "-m", "one")
	r.inputs["policy-dir"] = "policy"
	for against, why := range map[string]string{
		"HEAD": "revision HEAD has no policy in policy", "nothing": "revision nothing is not in the clone", "": "there is no revision to compare with", "--upload-pack=x": "is not in the clone",
	} {
		r.inputs["command"], r.inputs["against"] = "check", against
		got := r.run()
		got.check(t, 0, "::warning title=halo::nothing was compared: ", why)
		if _, ok := got.outputs["looser"]; ok {
			t.Errorf("outputs %v", got.outputs)
		}
		r.inputs["command"] = "diff"
		r.run().check(t, 2, "::error title=halo::", why)
	}
	r.event = map[string]any{"before": strings.Repeat("0", 40)}
	r.inputs["command"], r.inputs["against"] = "check", ""
	r.run().check(t, 0, "there is no revision to compare with")
}

// TestOldErrors holds that a change which mends a broken policy passes.
func TestOldErrors(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.pull(".", ", 'not a host'", "")
	r.inputs["command"] = "check"
	r.run().check(t, 0, "::warning title=halo::the policy of HEAD^1 has errors")
	r.inputs["command"] = "diff"
	r.run().check(t, 1)
}

func TestPolicyTests(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy(".", "")
	r.inputs["command"] = "test"
	r.run().check(t, 2, "there is no policy test")
	r.put("workspace/tests.yaml", "apiVersion: halos.dev/v1\nkind: PolicyTest\nname: t\ntests: [{host: x.example, ring: ga, expect: allow}]\n")
	r.run().check(t, 1, "::error title=halo::policy tests failed: 0 passed, 1 failed", "### Policy tests")
	r.inputs["command"], r.inputs["against"] = "check", "none"
	r.run().check(t, 1, "0 passed, 1 failed")
}

func TestEgress(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy(".", "")
	r.inputs["command"], r.inputs["ring"], r.inputs["expect"] = "egress-test", "ga", "ALLOW ai.acme.example\nDENY pastebin.com\n"
	r.run().check(t, 0, "### Egress")
	r.inputs["expect"] = "ALLOW pastebin.com"
	r.run().check(t, 1, "::error title=halo::a host is decided otherwise than expected")
	r.inputs["unit"] = "none, other"
	r.run().check(t, 2)
	r.inputs["expect"] = ""
	r.run().check(t, 2, "egress-test needs expect")
}

func TestBuild(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy(".", "")
	r.git("init", "-q", "-b", "main")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "one")
	r.inputs["command"] = "build"
	r.env["GITHUB_REF_TYPE"], r.env["GITHUB_REF_NAME"] = "tag", "v1.2.3"
	got := r.run()
	got.check(t, 0, "### Release", got.outputs["digest"])
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "halo"), "release", "inspect", got.outputs["bundle"], "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var release struct {
		Digest, Version string
		Sequence        int
	}
	if err := json.Unmarshal(out, &release); err != nil {
		t.Fatal(err)
	}
	if release.Digest != got.outputs["digest"] || release.Version != "1.2.3" || release.Sequence != 7 {
		t.Errorf("the archive has %+v, the outputs are %v", release, got.outputs)
	}
	r.put("workspace/broken.yaml", "kind: [")
	got = r.run()
	got.check(t, 1, "::error title=halo::the policy does not build")
	if got.outputs["digest"] != "" {
		t.Errorf("outputs %v", got.outputs)
	}
}

// TestHostileInputs holds that no input is run, and that bad ones are refused.
func TestHostileInputs(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.policy(".", "")
	for name, values := range map[string][]string{
		"command": {"", "rm", "lint; touch pwned", "$(touch pwned)"}, "policy-dir": {"missing", "$(touch pwned)", "-x"}, "fail-on": {"never", "$(touch pwned)"}, "comment": {"maybe"},
	} {
		for _, v := range values {
			before := r.inputs[name]
			r.inputs[name] = v
			if got := r.run(); got.status != 2 || !strings.Contains(got.log, "::error title=halo::") {
				t.Errorf("%s %q: exit status %d\n%s", name, v, got.status, got.log)
			}
			r.inputs[name] = before
		}
	}
	r.inputs["command"] = "egress-test"
	r.inputs["ring"], r.inputs["unit"], r.inputs["expect"] = "$(touch pwned)", "`touch pwned`\n* ; touch pwned", "$(touch pwned)"
	r.run().check(t, 2)
	r.inputs["command"], r.inputs["version"], r.inputs["sequence"] = "build", "$(touch pwned)", "1; touch pwned"
	r.run().check(t, 2)
	if _, err := os.Stat(filepath.Join(r.dir, "workspace", "pwned")); err == nil {
		t.Error("an input was run")
	}
}

// TestMetadata holds action.yml and its script to each other.
func TestMetadata(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs  map[string]struct{ Description string }
		Outputs map[string]struct{ Description, Value string }
		Runs    struct {
			Using string
			Steps []struct {
				Uses, Run, Shell string
				Env              map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(data, &action); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, ".github", "action", "run.sh"))
	if err != nil {
		t.Fatal(err)
	}
	last := action.Runs.Steps[len(action.Runs.Steps)-1]
	for name := range action.Inputs {
		want, key := "${{ inputs."+name+" }}", variable(name)
		if name == "token" {
			key = "GH_TOKEN"
		} else if !strings.Contains(string(script), key) {
			t.Errorf("the script does not read %s", key)
		}
		if last.Env[key] != want {
			t.Errorf("%s is %q, want %q", key, last.Env[key], want)
		}
	}
	for _, name := range []string{"command", "policy-dir", "ring", "unit", "against", "fail-on", "expect", "sarif-file"} {
		if _, ok := action.Inputs[name]; !ok {
			t.Errorf("no input %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*output ([a-z]+) ["$]`).FindAllStringSubmatch(string(script), -1) {
		if _, ok := action.Outputs[m[1]]; !ok {
			t.Errorf("action.yml has no output %s", m[1])
		}
	}
	for name := range action.Outputs {
		if !strings.Contains(string(script), "output "+name+" ") {
			t.Errorf("the script sets no output %s", name)
		}
	}
	for _, s := range action.Runs.Steps {
		if s.Run != "" && (s.Shell == "" || strings.Contains(s.Run, "${{")) {
			t.Errorf("step %q needs a shell and no expression", s.Run)
		}
	}
}
