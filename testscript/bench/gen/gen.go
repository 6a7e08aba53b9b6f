// Package gen writes synthetic policy repos for benchmarks: a pure function of its arguments.
package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Options say what a repo looks like.
type Options struct {
	// Documents is the number of policy documents, packs included.
	Documents int
	// Broken puts one error into every profile, ring, unit and pack.
	Broken bool
	// Changed makes every profile differ from the one written without it: a host and a preset, allowed and denied.
	Changed bool
}

// chain is the number of profiles that extend each other.
const chain = 4

// overlays is the number of different overlays that units share; one unit in a hundred has one of its own.
const overlays = 3

// Write writes a repo below dir: 8 % profiles in chains of four, 4 % rings, 48 % units that each name one ring, 40 % packs, one gateway; a document has about
// 1.4 KB.
func Write(dir string, o Options) error {
	n := o.Documents
	profiles, rings, units := max(1, n*8/100), max(1, n*4/100), n*48/100
	packs := max(0, n-profiles-rings-units-1)
	w := writer{dir: dir, broken: o.Broken, changed: o.Changed, made: map[string]bool{}}
	w.file("halos.yaml", "apiVersion: halos.dev/v1\nkind: Halos\norg: acme\nlifetime: 90d\n")
	w.file("gateway.yaml", "apiVersion: halos.dev/v1\nkind: Gateway\nname: main\nbaseURL: https://ai.acme.example\nengine: external\n")
	for i := range profiles {
		w.file(fmt.Sprintf("profiles/%02d/p%05d.yaml", i%50, i), w.profile(i))
	}
	for i := range rings {
		w.file(fmt.Sprintf("rings/%02d/r%05d.yaml", i%50, i), w.ring(i, profiles))
	}
	for i := range units {
		w.file(fmt.Sprintf("units/%02d/u%05d.yaml", i%50, i), w.unit(i, rings))
	}
	for i := range packs {
		w.file(fmt.Sprintf("packs/pack-%05d/pack.yaml", i), w.pack(i))
	}
	return w.err
}

type writer struct {
	dir     string
	broken  bool
	changed bool
	made    map[string]bool
	err     error
}

func (w *writer) file(name, text string) {
	if w.err != nil {
		return
	}
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if parent := filepath.Dir(path); !w.made[parent] {
		if w.err = os.MkdirAll(parent, 0o755); w.err != nil {
			return
		}
		w.made[parent] = true
	}
	w.err = os.WriteFile(path, []byte(text), 0o644)
}

// wrong is a line with an error when errors are wanted.
func (w *writer) wrong(indent string) string {
	if w.broken {
		return indent + "notAKey: true\n"
	}
	return ""
}

func (w *writer) profile(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Profile %d of the synthetic organization.\napiVersion: halos.dev/v1\nkind: Profile\nname: p%05d\n", i, i)
	if at := i % chain; at > 0 {
		// A child restates the allow list of its root without its last hosts and adds to what is denied.
		fmt.Fprintf(&b, "extends: p%05d\n", i-1)
		b.WriteString("egress:\n  allowedDomains:\n    - ai.acme.example\n    - otel.internal.acme.example\n")
		root := i - at
		for h := range 12 - at {
			fmt.Fprintf(&b, "    - service-%02d.team-%04d.acme.example\n", h, root/chain%25)
		}
		if w.changed {
			b.WriteString("    - added.acme.example\n")
		}
		b.WriteString("  deniedDomains:\n")
		for h := range 6 {
			fmt.Fprintf(&b, "    - paste-%d-%d.example.net\n", at, h)
		}
		b.WriteString("sandbox:\n  protectedPaths:\n")
		for h := range 6 {
			fmt.Fprintf(&b, "    - ~/.secret-%d-%d\n", at, h)
		}
		b.WriteString("instructions: |\n  Work inside the repository. Ask before you add a dependency, and say which policy stopped you\n  when a command is refused. Do not retry a refused command under another name.\n")
		b.WriteString(w.wrong(""))
		return b.String()
	}
	b.WriteString("harnesses:\n  claude-code: {version: 2.1.332}\n  codex: {version: 0.171.0}\n")
	b.WriteString("permissions:\n  disableBypass: true\n  sandboxRequired: true\n  deny: [\"Bash(git push --force:*)\", \"Bash(curl:*)\"]\n")
	b.WriteString("sandbox:\n  mode: workspace-write\n  writableRoots: [/opt/build-cache]\n  protectedPaths: [\"~/.ssh\", \"~/.aws\", \".env*\"]\n")
	b.WriteString("egress:\n  allowedDomains:\n    - ai.acme.example\n    - otel.internal.acme.example\n")
	for h := range 12 {
		fmt.Fprintf(&b, "    - service-%02d.team-%04d.acme.example\n", h, i/chain%25)
	}
	if w.changed {
		b.WriteString("  presets: [vcs]\n  deniedDomains: [pastebin.com, transfer.sh, drop.example.net]\n")
	} else {
		b.WriteString("  presets: [vcs, package-registries]\n  deniedDomains: [pastebin.com, transfer.sh]\n")
	}
	b.WriteString("telemetry:\n  enabled: true\n  otlpEndpoint: https://otel.internal.acme.example:4318\n  protocol: http/protobuf\n")
	b.WriteString("mcp:\n  managedOnly: true\nhooks:\n  managedOnly: true\n")
	b.WriteString("instructions: |\n  Work inside the repository. Ask before you add a dependency, and say which policy stopped you\n  when a command is refused. Do not retry a refused command under another name.\n")
	b.WriteString(w.wrong(""))
	return b.String()
}

func (w *writer) ring(i, profiles int) string {
	var b strings.Builder
	leaf := min((i%8)*chain+chain-1, profiles-1)
	fmt.Fprintf(&b, "# Ring %d of the synthetic organization.\napiVersion: halos.dev/v1\nkind: Ring\nname: r%05d\norder: %d\nprofile: p%05d\nmembership:\n", i, i, i, leaf)
	if i == 0 {
		b.WriteString("  default: true\n")
	}
	b.WriteString("  groups:\n")
	for g := range 24 {
		fmt.Fprintf(&b, "    - engineering-department-%05d-%02d@acme.example\n", i, g)
	}
	b.WriteString("posture: warn\nversionGate: warn\n")
	b.WriteString(w.wrong(""))
	return b.String()
}

func (w *writer) unit(i, rings int) string {
	var b strings.Builder
	kind := i % overlays
	fmt.Fprintf(&b, "# Unit %d of the synthetic organization.\napiVersion: halos.dev/v1\nkind: Unit\nname: u%05d\nrings: [r%05d]\nmembership:\n  groups:\n", i, i, i%rings)
	for g := range 10 {
		fmt.Fprintf(&b, "    - business-unit-%05d-%02d@acme.example\n", i, g)
	}
	b.WriteString("overlay:\n  egress:\n    deniedDomains:\n")
	for h := range 12 {
		fmt.Fprintf(&b, "      - files-%02d.share-%d.example.org\n", h, kind)
	}
	if i%100 == 99 {
		fmt.Fprintf(&b, "      - only.unit-%05d.example.org\n", i)
	}
	b.WriteString("  sandbox:\n    protectedPaths:\n")
	for h := range 8 {
		fmt.Fprintf(&b, "      - ~/.unit-%d/keys-%02d\n", kind, h)
	}
	b.WriteString(w.wrong("  "))
	return b.String()
}

func (w *writer) pack(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Sandbox pack %d of the synthetic organization.\nversion: 1\nname: pack-%05d\ndescription: Web limited to our registries; harness prompts kept.\n", i, i)
	b.WriteString("network:\n  mode: allowlist\napprovals:\n  mode: triage\negress:\n  allow:\n")
	for h := range 12 {
		fmt.Fprintf(&b, "    - registry-%02d.team-%04d.acme.example\n", h, i%1000)
	}
	b.WriteString("  ports: [443]\n  large_upload_mb: 10\nworkspace:\n  mode: mount\n  masks:\n    - .env\n    - \"*.pem\"\n    - \"*.key\"\n  unmask:\n    - .env.example\n  review:\n    - package.json\n    - go.mod\n")
	b.WriteString("harness:\n  yolo: false\nmcp:\n  import: true\n  host_ports: false\nhooks:\n  fail_mode: closed\n  on_tamper: stop\n")
	b.WriteString(w.wrong(""))
	return b.String()
}
