package codex

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

var update = flag.Bool("update", false, "write the golden files")

// load makes the effective policy of a profile body, from real documents.
func load(t testing.TB, body string) *effective.Policy {
	t.Helper()
	var diags diag.List
	fsys := fstest.MapFS{
		"halos.yaml":   {Data: []byte("apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n")},
		"profile.yaml": {Data: []byte("apiVersion: halos.dev/v1\nkind: Profile\nname: engineering\n" + body)},
	}
	repo := policy.Load(t.Context(), fsys, policy.Options{}, &diags)
	if diags.Errors() > 0 {
		t.Fatalf("the policy has errors: %v", diags.Sorted())
	}
	return effective.NewResolver(repo).Profile("engineering")
}

func target(t testing.TB, body, os, version string) harness.Target {
	t.Helper()
	v, ok := harness.ParseVersion(version)
	if !ok {
		t.Fatalf("bad version %s", version)
	}
	return harness.Target{Policy: load(t, body), OS: os, Version: v, Org: "acme"}
}

const newest = "0.171.0"

// worked is the policy of the vendor-neutral example that all harnesses are measured with.
const worked = `
permissions: {sandbox: workspace-write, disableBypass: true}
sandbox:
  writableRoots: [/opt/build-cache]
  protectedPaths: ["~/.ssh", "~/.aws", ".env*"]
egress:
  allowedDomains: [ai.acme.example, otel.internal.acme.example]
  presets: [vcs]
  deniedDomains: [pastebin.com, transfer.sh]
`

// everything sets every field that a profile has.
const everything = `
harnesses:
  codex:
    version: 0.171.0
    model: sonnet
    overrides: {model_reasoning_effort: high, tui: {animations: false, theme: dark}}
models: {default: opus, allowed: [sonnet, opus], enforce: true}
permissions:
  mode: acceptEdits
  allow: ["Bash(git status:*)", "WebFetch(domain:ai.acme.example)", "WebFetch(domain:evil.example)", "Edit(//opt/build-cache/**)", "Edit(//srv/**)"]
  ask: ["Bash(git push:*)", "Edit(~/notes/**)"]
  deny: ["Bash(git push --force:*)", "Bash(npm run build)", "Read(//etc/shadow)", "Read(~/vault/**)", "Read(src/x)", "WebSearch", "mcp__github__delete_repo"]
  disableBypass: true
  sandboxRequired: true
sandbox:
  mode: workspace-write
  writableRoots: [/opt/build-cache, /tmp/acme-build, "~/.cache/acme"]
  protectedPaths: ["~/.ssh", "~/.config/*/credentials", /srv/secrets, "/*/x", ".env*", "secrets/{a,b}"]
egress:
  default: deny
  allowedDomains: [ai.acme.example, "*.corp.example"]
  presets: [vcs, package-registries]
  deniedDomains: [pastebin.com, "*.pastebin.com", old.corp.example]
mcp:
  managedOnly: true
  servers:
    - {name: docs, url: "https://mcp.acme.example/docs", headers: {X-Team: "${TEAM}"}}
    - {name: build, command: [/opt/acme/mcp, --stdio]}
  denied: [shady, "old.server"]
hooks:
  managedOnly: true
  items:
    - {event: PreToolUse, matcher: Bash, command: /opt/acme/guard}
    - {event: PreToolUse, command: /opt/acme/log}
    - {event: PostToolUse, matcher: "Edit|Write", command: /opt/acme/format}
    - {event: Stop, command: "/opt/acme/stop --quiet"}
telemetry:
  enabled: true
  otlpEndpoint: https://otel.acme.example:4318
  protocol: http/protobuf
  logPrompts: false
  attributes: {team: "dev tools", org: acme}
instructions: |
  Ask before you delete.
env: {ACME_PROXY_ZONE: "eu"}
`

const minimal = "permissions: {sandbox: \"off\"}\n"

const readOnly = "sandbox: {mode: read-only}\negress: {default: deny}\n"

const openDefault = "sandbox: {mode: workspace-write}\negress: {deniedDomains: [pastebin.com]}\n"

func print(files []harness.File, gaps []harness.Gap) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "==> %s %s %04o\n%s", f.Dest, f.Owner, f.Mode, f.Content)
	}
	for _, g := range gaps {
		fmt.Fprintf(&b, "gap %s %s [%s] %s: %s", g.Grade, g.Concept, g.Field, g.Entry, g.Reason)
		if g.Remedy != "" {
			fmt.Fprintf(&b, " | %s", g.Remedy)
		}
		if len(g.Bypass) > 0 {
			fmt.Fprintf(&b, " | bypass %s", strings.Join(g.Bypass, ", "))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for name, body := range map[string]string{"worked": worked, "everything": everything, "minimal": minimal, "read-only": readOnly, "open-default": openDefault} {
		for _, os := range policy.OSes {
			t.Run(name+"/"+os, func(t *testing.T) { golden(t, name+"."+os, target(t, body, os, newest)) })
		}
	}
	for _, version := range []string{"0.77.0", "0.99.0", "0.117.0", "0.120.0", "0.137.0", "0.138.0", "0.150.1", "0.160.1"} {
		t.Run("everything/"+version, func(t *testing.T) { golden(t, "everything.linux-"+version, target(t, everything, "linux", version)) })
	}
}

func golden(t *testing.T, name string, at harness.Target) {
	t.Helper()
	at.Models = map[string]string{"sonnet": "acme-sonnet", "opus": "acme-opus"}
	if name[0] == 'e' {
		at.GatewayURL = "https://ai.acme.example"
	}
	files, gaps := render(at)
	got := print(files, gaps)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the rendering differs from %s; run go test -update and read the difference\n%s", path, got)
	}
	for _, f := range check(at, files) {
		t.Errorf("the strict reader refuses what was rendered: %s%s %s", f.Dest, f.Pointer, f.Message)
	}
	again, moreGaps := render(at)
	if !bytes.Equal(print(again, moreGaps), got) {
		t.Error("rendering twice gave different results")
	}
}

var _ = json.Valid
var _ = rand.N[int]
var _ = slices.Sort[[]int]
var _ = fspath.Covers
var _ = host.ParseName
var _ jsonschema.Compiler
