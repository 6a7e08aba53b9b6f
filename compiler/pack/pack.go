// Package pack reads, compares and resolves DefenseClaw sandbox packs and answers whether a sandbox may reach a host.
//
// A sandbox policy has four layers: a pack, the user's openshell keys, the options of one run, and the administrator's limits.
//
//   - Load, Check and Read read one pack file; Builtin and BuiltinBytes give the packs of DefenseClaw; Digest is what pins a pack.
//   - Finder.Find and Finder.List find packs by name, directory or path on a device, or in anything that looks like one.
//   - ParseConfig reads an openshell block with positions, Pin makes it ready for release, PrintConfig writes config.yaml and Print a pack.
//   - Resolve puts the layers together, with the options of a Run; Policy.Settings and Policy.Violations tell the origin of every setting.
//   - Policy.Engine compiles the egress decision, Engine.Decide answers for one HOST:PORT, Engine.Explain says it in words.
//   - Looser and LooserPolicy compare two packs and two resolved policies and name the first looser setting.
//
// Nothing here asks the network: names are never resolved.
//
// The format and the texts are those of github.com/cisco-ai-defense/defenseclaw (docs-site/content/docs/setup/sandbox-policy.mdx and
// internal/openshell, read 2026-11), so that a pack that loads here loads on a device and an error reads the same on both.
package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// MaxBytes is the largest pack file that loads, comments included.
const MaxBytes = 65536

// FileName is the name of the file in a pack directory.
const FileName = "pack.yaml"

// Pack is one sandbox pack, normalised: hosts are canonical, lists have no repetitions, defaults are filled in. A Pack is never changed after it was loaded.
type Pack struct {
	// Path is where the pack came from, builtin:NAME for a built-in one.
	Path string
	// Digest is "sha256:" and the hex SHA-256 of the exact file bytes; BuiltIn tells the packs that DefenseClaw ships.
	Digest  string
	BuiltIn bool

	Name        string
	Description string
	// Network is open, allowlist or deny; Approvals is auto, triage or manual.
	Network   string
	Approvals string
	Egress    Egress
	Workspace Workspace
	Harness   Harness
	MCP       MCP
	Hooks     Hooks
}

// Egress is the egress section of a pack. Sizes are in MB; LargeUploadMB 0 means that large uploads are not reported.
type Egress struct {
	Feeds             []string
	Block             []Pattern
	Allow             []Pattern
	Ports             []int
	LargeUploadMB     int
	BlockLargeUploads bool
}

// Workspace is the workspace section of a pack: Mode is mount or copy, the lists are project globs.
type Workspace struct {
	Mode        string
	Masks       []string
	Unmask      []string
	Review      []string
	MaxUploadMB int
}

// Harness is the harness section of a pack. Allowed holds normalised DefenseClaw harness names; empty means any.
type Harness struct {
	Yolo    bool
	Allowed []string
}

// MCP is the mcp section of a pack: ProjectServers is block or allow.
type MCP struct {
	Import         bool
	HostPorts      bool
	BlockedTools   []string
	ProjectServers string
}

// Hooks is the hooks section of a pack: FailMode is always closed, OnTamper is stop or alert.
type Hooks struct {
	FailMode string
	OnTamper string
}

// Profile returns the profile that the pack's network mode selects: open, balanced or strict.
func (p *Pack) Profile() string { return profileOf(p.Network) }

// Digest returns the pack digest of data: "sha256:" and the lower-case hex SHA-256 of exactly these bytes, what sha256sum prints.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ValidDigest reports whether s is a digest as a configuration pins it.
func ValidDigest(s string) bool {
	hexa, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(hexa) != 64 {
		return false
	}
	for i := range len(hexa) {
		if c := hexa[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidName reports whether s can name a pack: lower-case letters, digits and dashes, at most 63, not starting with a dash.
func ValidName(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// The words of a pack, weakest first where they have an order.
var (
	networkModes    = []string{"open", "allowlist", "deny"}
	profiles        = []string{"open", "balanced", "strict"}
	approvalModes   = []string{"auto", "triage", "manual"}
	workspaceModes  = []string{"mount", "copy"}
	projectServers  = []string{"block", "allow"}
	failModes       = []string{"closed"}
	tamperModes     = []string{"stop", "alert"}
	exitModes       = []string{"ask", "keep", "undo"}
	feedModes       = []string{"builtin", "none"}
	defaultPorts    = []int{80, 443}
	newerKeys       = []string{"extends", "observe", "hooks.on_silence", "hooks.silence_after"}
	defenseclawIDs  = []string{"claudecode", "codex", "opencode", "copilot", "kiro", "hermes", "openhands", "omnigent", "antigravity", "amp", "cursor", "devin"}
	foreignHarness  = map[string]string{"copilot-cli": "copilot", "cursor-cli": "cursor", "gemini-cli": "", "gemini": "", "claude": "claudecode"}
	harnessSpelling = map[string]string{"claude-code": "claudecode", "claude_code": "claudecode", "open-hands": "openhands", "open_hands": "openhands"}
)

func profileOf(mode string) string { return profiles[max(0, slices.Index(networkModes, mode))] }

func modeOf(profile string) string { return networkModes[max(0, slices.Index(profiles, profile))] }

func rank(words []string, word string) int { return slices.Index(words, word) }

// NormalHarness returns DefenseClaw's spelling of a harness name: trimmed, lower case, claude-code as claudecode and open-hands as openhands. Nothing
// else is folded (internal/config normalizeConnectorKey).
func NormalHarness(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if folded, ok := harnessSpelling[name]; ok {
		return folded
	}
	return name
}

// ForeignHarness returns what to write instead of a harness id of another vocabulary, halo's own among them, which DefenseClaw would accept and never match. It is
// "" for every other name.
func ForeignHarness(name string) string {
	if name = NormalHarness(name); name == "" {
		return ""
	}
	if _, foreign := foreignHarness[name]; foreign {
		return harnessHint(name)
	}
	return ""
}

// validHarness is the grammar of a harness name: a letter or digit, then letters, digits, dot, underscore and dash, at most 128 in all.
func validHarness(s string) bool {
	if s == "" || len(s) > 128 || !alnum(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func validTool(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && !strings.ContainsRune("_.:*-", rune(c)) {
			return false
		}
	}
	return true
}

func alnum(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
