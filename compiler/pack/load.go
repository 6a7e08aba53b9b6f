package pack

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

// The keys of a pack, in the order in which values are checked.
const (
	packRoot = iota
	packVersion
	packName
	packDescription
	packNetwork
	packNetworkMode
	packApprovals
	packApprovalsMode
	packEgress
	packFeeds
	packBlock
	packAllow
	packPorts
	packLargeUpload
	packBlockLarge
	packWorkspace
	packWorkspaceMode
	packMasks
	packUnmask
	packReview
	packMaxUpload
	packHarness
	packYolo
	packAllowed
	packMCP
	packImport
	packHostPorts
	packBlockedTools
	packProjectServers
	packHooks
	packFailMode
	packOnTamper
	packCount
)

// packSchema follows docs-site/content/docs/setup/sandbox-policy.mdx.
var packSchema = field{id: packRoot, keys: []field{
	// The version of the pack format.
	{name: "version", kind: kindInt, id: packVersion, need: true, min: 1, max: 1},
	// What policies call the pack: the name of its directory.
	//
	// Example: team-web
	{name: "name", kind: kindText, id: packName, need: true, form: "pack name"},
	// What the pack is for.
	{name: "description", kind: kindText, id: packDescription, form: "description"},
	// Which hosts a sandbox reaches.
	{name: "network", id: packNetwork, need: true, keys: []field{
		// What happens to hosts on no list: open allows them, allowlist blocks them until somebody unblocks one, deny turns the web off.
		{name: "mode", kind: kindText, id: packNetworkMode, need: true, words: networkModes},
	}},
	// What a sandbox asks its user about.
	{name: "approvals", id: packApprovals, need: true, keys: []field{
		// How a request for a blocked host is answered: auto approves it, triage approves it on an open network and asks otherwise, manual asks.
		{name: "mode", kind: kindText, id: packApprovalsMode, need: true, words: approvalModes},
	}},
	// The lists of hosts, and the limits of what leaves a sandbox.
	{name: "egress", id: packEgress, keys: []field{
		// Lists of dangerous hosts to refuse. builtin is the one that DefenseClaw ships.
		//
		// Default: [builtin]
		{name: "feeds", kind: kindTexts, id: packFeeds, most: maxFeeds, words: []string{"builtin"}},
		// Hosts that are refused: names, "*." and a name, addresses, prefixes.
		{name: "block", kind: kindTexts, id: packBlock, most: maxList, form: "pack pattern"},
		// Hosts that are allowed, spelled as in block. Whole top-level domains are refused.
		//
		// Example: [docs.acme.example, "*.git.acme.example"]
		{name: "allow", kind: kindTexts, id: packAllow, most: maxList, form: "pack pattern"},
		// The ports that may be reached.
		//
		// Default: [80, 443]
		{name: "ports", kind: kindInts, id: packPorts, most: maxShortList, min: 1, max: 65535},
		// From which size, in megabytes, an upload is reported; 0 reports none.
		//
		// Default: 25
		{name: "large_upload_mb", kind: kindInt, id: packLargeUpload, max: maxMB},
		// Refuses such uploads.
		{name: "block_large_uploads", kind: kindBool, id: packBlockLarge},
	}},
	// What a sandbox sees of the project.
	{name: "workspace", id: packWorkspace, need: true, keys: []field{
		// Whether the sandbox works on the project itself or on a copy.
		{name: "mode", kind: kindText, id: packWorkspaceMode, need: true, words: workspaceModes},
		// Files that the sandbox does not see: globs below the project.
		//
		// Example: [.env*, "secrets/**"]
		{name: "masks", kind: kindTexts, id: packMasks, most: maxList, form: "project glob"},
		// Files that it sees nevertheless.
		{name: "unmask", kind: kindTexts, id: packUnmask, most: maxList, form: "project glob"},
		// Files whose changes a user reviews, added to those that DefenseClaw always asks about.
		{name: "review", kind: kindTexts, id: packReview, most: maxList, form: "project glob"},
		// The largest project that is copied, in megabytes.
		//
		// Default: 500
		{name: "max_upload_mb", kind: kindInt, id: packMaxUpload, min: 1, max: maxMB},
	}},
	// What runs in a sandbox.
	{name: "harness", id: packHarness, need: true, keys: []field{
		// Lets a harness act without asking, because the sandbox holds it.
		{name: "yolo", kind: kindBool, id: packYolo, need: true},
		// The harnesses that may run, by DefenseClaw's names; without it, any.
		//
		// Example: [claudecode, codex]
		{name: "allowed", kind: kindTexts, id: packAllowed, most: maxShortList, form: "harness name"},
	}},
	// Which MCP servers and tools a sandbox has.
	{name: "mcp", id: packMCP, need: true, keys: []field{
		// Takes over the user's servers.
		{name: "import", kind: kindBool, id: packImport, need: true},
		// Lets a sandbox reach servers on the host.
		{name: "host_ports", kind: kindBool, id: packHostPorts, need: true},
		// Tools that are refused, by name or glob.
		{name: "blocked_tools", kind: kindTexts, id: packBlockedTools, most: maxList, form: "tool name"},
		// Whether servers that a project configures run.
		//
		// Default: block
		{name: "project_servers", kind: kindText, id: packProjectServers, words: projectServers},
	}},
	// What happens when the guard around a harness fails.
	{name: "hooks", id: packHooks, need: true, keys: []field{
		// What a failing hook does to the action it judges: it stops it.
		{name: "fail_mode", kind: kindText, id: packFailMode, need: true, words: failModes},
		// What happens when somebody changes the hooks. Without it: alert in an open pack, else stop.
		{name: "on_tamper", kind: kindText, id: packOnTamper, words: tamperModes},
	}},
}}

// Limits of a pack's values.
const (
	maxList        = 1024
	maxShortList   = 64
	maxFeeds       = 16
	maxMB          = 1048576
	maxDescription = 1024
)

// Load reads one pack. path only names the pack in errors. The error is an *Error with the first offending key: bytes and syntax come first, then the
// structure in document order, then values in the order of the format's documentation.
func Load(path string, data []byte) (*Pack, error) {
	p, problems := read(path, data, "")
	if err := firstError(path, problems); err != nil {
		return nil, err
	}
	return p, nil
}

// firstError is nil, not a typed nil, when nothing but warnings was found.
func firstError(path string, problems []problem) error {
	for _, f := range problems {
		if f.code.Severity == diag.Error {
			return &Error{Path: path, Key: f.key, Reason: f.reason, Class: f.class, Hint: f.hint, Line: f.line, Column: f.column, Structural: f.structural}
		}
	}
	return nil
}

// Read is Load and Check in one pass over the bytes: the pack, nil when it does not load, and everything that is wrong or doubtful about it.
//
// name is relative to the policy repo and file its index. A file at packs/NAME/pack.yaml is found by name on a device, so the pack's name must be NAME.
func Read(name string, data []byte, file int) (*Pack, []diag.Diagnostic) {
	p, problems := read(name, data, repoName(name))
	out := diagnostics(problems, file)
	if firstError(name, problems) != nil {
		return nil, out
	}
	return p, out
}

// Check reports everything that is wrong with a pack file in one run; Load's error is among it. See Read for name and file.
func Check(name string, data []byte, file int) []diag.Diagnostic {
	_, out := Read(name, data, file)
	return out
}

// repoName is the name that a pack at this place of a policy repo must have, "" for any.
func repoName(file string) string {
	dir, base := path.Split(file)
	parent, name := path.Split(strings.TrimSuffix(dir, "/"))
	if base == FileName && parent == "packs/" {
		return name
	}
	return ""
}

// builtinName stands for the place of a built-in pack, the only one where a built-in name is right.
const builtinName = "builtin:"

// read reads a pack in the three passes of DefenseClaw's loader. mustName is the name that its place demands, "" for none.
func read(file string, data []byte, mustName string) (*Pack, []problem) {
	root, p := document(data)
	if p != nil {
		return nil, []problem{*p}
	}
	r := newReader(&packSchema, packCount)
	r.newer = newerKeys
	r.value(root, "", &packSchema)
	if r.nodes[packRoot] == nil {
		return nil, r.problems
	}
	out := r.pack(root)
	out.Path, out.Digest = file, Digest(data)
	if n := r.nodes[packName]; n != nil && ValidName(out.Name) && mustName != builtinName {
		switch {
		case slices.Contains(profiles, out.Name):
			p := r.invalid(n, codeName, "name", "%q is a built-in pack name; custom packs need their own name", out.Name)
			p.class = "reserved_name"
		case mustName != "" && out.Name != mustName:
			p := r.invalid(n, codeName, "name", "%q does not match the pack directory %q", out.Name, mustName)
			p.class, p.hint = "name_mismatch", "rename the directory or the pack"
		}
	}
	return out, r.problems
}

// document decodes the one YAML document of a pack. What is wrong with the bytes has no key. The yaml package reads untrusted input here, so a panic in it becomes
// an error.
func document(data []byte) (root *yaml.Node, bad *problem) {
	defer func() {
		if r := recover(); r != nil {
			root, bad = nil, &problem{code: codeSyntax, class: "yaml_invalid", reason: "the YAML decoder failed on this file"}
		}
	}()
	if len(data) > MaxBytes {
		return nil, &problem{code: codeTooLarge, class: "too_large", reason: "pack exceeds 65536 bytes", detail: ", it has " + strconv.Itoa(len(data))}
	}
	if line := invalidUTF8(data); line > 0 {
		return nil, &problem{code: codeSyntax, class: "yaml_invalid", reason: "the file is not UTF-8 text", line: line, hint: "save the file as UTF-8; a UTF-16 file starts with the bytes FF FE or FE FF"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &problem{code: codeDocuments, class: "yaml_empty", reason: "the file contains no YAML document"}
	case err != nil:
		return nil, syntaxProblem(data, err)
	}
	root = doc.Content[0]
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		p := &problem{code: codeDocuments, class: "yaml_documents", reason: "the file must contain exactly one YAML document", hint: "remove the second document and its --- line"}
		if err == nil {
			p.line, p.column = more.Line, more.Column
		}
		return nil, p
	}
	return root, nil
}

// invalidUTF8 returns the line of the first byte that is not UTF-8, 0 when there is none.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	line := 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 {
			break
		}
		if c == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

func syntaxProblem(data []byte, err error) *problem {
	line, reason := source.SyntaxError(data, err)
	p := &problem{code: codeSyntax, class: "yaml_invalid", line: line, reason: "line " + strconv.Itoa(line) + ": " + reason}
	if strings.Contains(reason, "unknown anchor") {
		// An error without a line.
		p.line, p.reason = 0, reason
		p.detail, p.hint = ", anchors and aliases are not allowed", `put quotes around a value that begins with *, such as "*.example.com"`
	}
	return p
}

// pack reads the values in the order of the format's documentation, which is the order in which DefenseClaw names the first bad one.
func (r *reader) pack(root *yaml.Node) *Pack {
	p := &Pack{}
	if v, ok := r.integer(packVersion); !ok {
		r.missing(root, packVersion, packRoot, "version", "is required")
	} else if v != 1 {
		r.invalid(r.nodes[packVersion], codeValue, "version", "%d is not supported (want 1)", v).class = "unsupported_version"
	}
	if v, ok := r.text(packName); !ok {
		r.missing(root, packName, packRoot, "name", "is required")
	} else if p.Name = v; !ValidName(v) {
		r.invalid(r.nodes[packName], codeValue, "name", "%q must be lowercase letters, digits and dashes (at most 63)", v)
	}
	if p.Description, _ = r.text(packDescription); len(p.Description) > maxDescription {
		r.invalid(r.nodes[packDescription], codeValue, "description", "is longer than 1024 characters")
	}
	p.Network = r.word(root, packNetworkMode, packNetwork, "network.mode")
	p.Approvals = r.word(root, packApprovalsMode, packApprovals, "approvals.mode")

	p.Egress.Feeds = []string{"builtin"}
	if r.nodes[packFeeds] != nil {
		p.Egress.Feeds = nil
	}
	r.each(packFeeds, "egress.feeds", func(i int, n *yaml.Node) {
		if v := strings.TrimSpace(n.Value); v != "builtin" {
			r.invalid(n, codeValue, at("egress.feeds", i), "unknown feed %q (want builtin)", v)
		}
		p.Egress.Feeds = []string{"builtin"}
	})
	p.Egress.Block = r.patterns(packBlock, "egress.block", false)
	p.Egress.Allow = r.patterns(packAllow, "egress.allow", true)
	if p.Egress.Ports = r.ports(packPorts, "egress.ports"); r.nodes[packPorts] == nil {
		p.Egress.Ports = slices.Clone(defaultPorts)
	}
	p.Egress.LargeUploadMB = r.bounded(packLargeUpload, "egress.large_upload_mb", 25)
	p.Egress.BlockLargeUploads, _ = r.boolean(packBlockLarge)

	p.Workspace.Mode = r.word(root, packWorkspaceMode, packWorkspace, "workspace.mode")
	p.Workspace.Masks = r.globs(packMasks, "workspace.masks")
	p.Workspace.Unmask = r.globs(packUnmask, "workspace.unmask")
	p.Workspace.Review = r.globs(packReview, "workspace.review")
	p.Workspace.MaxUploadMB = r.bounded(packMaxUpload, "workspace.max_upload_mb", 500)

	p.Harness.Yolo = r.needBool(root, packYolo, packHarness, "harness.yolo")
	p.Harness.Allowed = r.harnesses(packAllowed, "harness.allowed")

	p.MCP.Import = r.needBool(root, packImport, packMCP, "mcp.import")
	p.MCP.HostPorts = r.needBool(root, packHostPorts, packMCP, "mcp.host_ports")
	r.each(packBlockedTools, "mcp.blocked_tools", func(i int, n *yaml.Node) {
		v := strings.TrimSpace(n.Value)
		if !validTool(v) {
			r.invalid(n, codeValue, at("mcp.blocked_tools", i), "invalid MCP tool name or glob %q", v).hint = "use letters, digits and _ . : * - only"
		}
		p.MCP.BlockedTools = append(p.MCP.BlockedTools, v)
	})
	p.MCP.BlockedTools = union(nil, p.MCP.BlockedTools)
	if p.MCP.ProjectServers = "block"; r.nodes[packProjectServers] != nil {
		p.MCP.ProjectServers = r.word(root, packProjectServers, packMCP, "mcp.project_servers")
	}

	p.Hooks.FailMode = r.word(root, packFailMode, packHooks, "hooks.fail_mode")
	switch {
	case r.nodes[packOnTamper] != nil:
		p.Hooks.OnTamper = r.word(root, packOnTamper, packHooks, "hooks.on_tamper")
	case p.Network == "open":
		p.Hooks.OnTamper = "alert"
	default:
		p.Hooks.OnTamper = "stop"
	}

	if n := r.nodes[packPorts]; n != nil && len(n.Content) == 0 && p.Network != "deny" {
		r.invalid(n, codeValue, "egress.ports", "must list at least one port unless network.mode is deny")
	}
	return p
}

// missing reports a required key at its section, unless the key or the section was reported already.
func (r *reader) missing(root *yaml.Node, id, section int, key, reason string) {
	if r.bad[id] {
		return
	}
	where, p := root, problem{code: codeMissing, key: key, class: "missing_field", reason: reason}
	if k := r.keys[section]; k != nil {
		where = k
	}
	r.add(where, p)
}

func (r *reader) word(root *yaml.Node, id, section int, key string) string {
	v, ok := r.text(id)
	words := r.fields[id].words
	switch {
	case !ok:
		r.missing(root, id, section, key, "is required (one of "+strings.Join(words, ", ")+")")
	case !slices.Contains(words, v):
		r.words(r.nodes[id], key, v, words)
	}
	return v
}

func (r *reader) needBool(root *yaml.Node, id, section int, key string) bool {
	v, ok := r.boolean(id)
	if !ok {
		r.missing(root, id, section, key, "is required (true or false)")
	}
	return v
}

func (r *reader) bounded(id int, key string, def int) int {
	v, ok := r.integer(id)
	if !ok {
		return def
	}
	if f := r.fields[id]; v < f.min || v > f.max {
		r.invalid(r.nodes[id], codeValue, key, "%d must be between %d and %d", v, f.min, f.max)
	}
	return v
}

func (r *reader) patterns(id int, key string, allow bool) []Pattern {
	var out []Pattern
	r.each(id, key, func(i int, n *yaml.Node) {
		p, err := ParsePattern(n.Value)
		switch {
		case err != nil:
			r.invalid(n, codePattern, at(key, i), "%s", err).hint = patternHint(n.Value)
		case allow && p.Broad():
			r.invalid(n, codeBroad, at(key, i), "%q covers every host or a whole top-level domain; list the destinations to allow", strings.TrimSpace(n.Value))
		default:
			out = append(out, p)
		}
	})
	return union(nil, out)
}

// patternHint takes scheme, port and path off what was meant as a host.
func patternHint(s string) string {
	s = lowerASCII(strings.TrimSpace(s))
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	s, _, _ = strings.Cut(s, "/")
	if host, port, ok := strings.Cut(s, ":"); ok && strings.Trim(port, "0123456789") == "" {
		s = host
	}
	if p, err := ParsePattern(strings.TrimLeft(s, ".")); err == nil {
		return "write " + p.String()
	}
	return `write a host name, "*.NAME", an address or a prefix`
}

func (r *reader) ports(id int, key string) []int {
	var out []int
	r.each(id, key, func(i int, n *yaml.Node) {
		if v, _ := number(n); v < r.fields[id].min || v > r.fields[id].max {
			r.invalid(n, codeValue, at(key, i), "port %d must be between 1 and 65535", v)
		} else {
			out = append(out, v)
		}
	})
	return union(nil, out)
}

func (r *reader) globs(id int, key string) []string {
	var out []string
	r.each(id, key, func(i int, n *yaml.Node) {
		if v, err := ParseGlob(n.Value); err != nil {
			r.invalid(n, codeGlob, at(key, i), "%s", err)
		} else {
			out = append(out, v)
		}
	})
	return union(nil, out)
}

func (r *reader) harnesses(id int, key string) []string {
	var out []string
	r.each(id, key, func(i int, n *yaml.Node) {
		v := NormalHarness(n.Value)
		switch {
		case !validHarness(v):
			r.invalid(n, codeValue, at(key, i), "invalid harness name %q", strings.TrimSpace(n.Value))
			return
		case !slices.Contains(defenseclawIDs, v):
			r.invalid(n, codeHarness, at(key, i), "%q is not a harness that DefenseClaw knows and never matches", v).hint = harnessHint(v)
		}
		out = append(out, v)
	})
	return union(nil, out)
}

// harnessHint names DefenseClaw's id for a harness of halo, or the nearest one.
func harnessHint(name string) string {
	if id, ok := foreignHarness[name]; ok {
		if id == "" {
			return "DefenseClaw has no id for this harness"
		}
		return "DefenseClaw calls it " + id
	}
	if near := diag.Nearest(name, defenseclawIDs); near != "" {
		return "did you mean " + near + "?"
	}
	return "DefenseClaw knows " + strings.Join(defenseclawIDs, ", ")
}
