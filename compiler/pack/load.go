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

var packSchema = field{id: packRoot, keys: []field{
	{name: "version", kind: kindInt, id: packVersion},
	{name: "name", kind: kindText, id: packName},
	{name: "description", kind: kindText, id: packDescription},
	{name: "network", id: packNetwork, keys: []field{{name: "mode", kind: kindText, id: packNetworkMode}}},
	{name: "approvals", id: packApprovals, keys: []field{{name: "mode", kind: kindText, id: packApprovalsMode}}},
	{name: "egress", id: packEgress, keys: []field{
		{name: "feeds", kind: kindTexts, id: packFeeds},
		{name: "block", kind: kindTexts, id: packBlock},
		{name: "allow", kind: kindTexts, id: packAllow},
		{name: "ports", kind: kindInts, id: packPorts},
		{name: "large_upload_mb", kind: kindInt, id: packLargeUpload},
		{name: "block_large_uploads", kind: kindBool, id: packBlockLarge},
	}},
	{name: "workspace", id: packWorkspace, keys: []field{
		{name: "mode", kind: kindText, id: packWorkspaceMode},
		{name: "masks", kind: kindTexts, id: packMasks},
		{name: "unmask", kind: kindTexts, id: packUnmask},
		{name: "review", kind: kindTexts, id: packReview},
		{name: "max_upload_mb", kind: kindInt, id: packMaxUpload},
	}},
	{name: "harness", id: packHarness, keys: []field{
		{name: "yolo", kind: kindBool, id: packYolo},
		{name: "allowed", kind: kindTexts, id: packAllowed},
	}},
	{name: "mcp", id: packMCP, keys: []field{
		{name: "import", kind: kindBool, id: packImport},
		{name: "host_ports", kind: kindBool, id: packHostPorts},
		{name: "blocked_tools", kind: kindTexts, id: packBlockedTools},
		{name: "project_servers", kind: kindText, id: packProjectServers},
	}},
	{name: "hooks", id: packHooks, keys: []field{
		{name: "fail_mode", kind: kindText, id: packFailMode},
		{name: "on_tamper", kind: kindText, id: packOnTamper},
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
		return nil, syntaxProblem(err)
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

// syntaxProblem takes the line out of a yaml.v3 error ("yaml: line 3: did not find ...").
func syntaxProblem(err error) *problem {
	p := &problem{code: codeSyntax, class: "yaml_invalid"}
	p.reason = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(p.reason, "line "); ok {
		if number, _, ok := strings.Cut(rest, ": "); ok {
			p.line, _ = strconv.Atoi(number)
		}
	}
	if strings.Contains(p.reason, "unknown anchor") {
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
	p.Network = r.word(root, packNetworkMode, packNetwork, "network.mode", networkModes)
	p.Approvals = r.word(root, packApprovalsMode, packApprovals, "approvals.mode", approvalModes)

	p.Egress.Feeds = []string{"builtin"}
	if r.nodes[packFeeds] != nil {
		p.Egress.Feeds = nil
	}
	r.each(packFeeds, "egress.feeds", maxFeeds, func(i int, n *yaml.Node) {
		if v := strings.TrimSpace(n.Value); v != "builtin" {
			r.invalid(n, codeValue, at("egress.feeds", i), "unknown feed %q (want builtin)", v)
		}
		p.Egress.Feeds = []string{"builtin"}
	})
	p.Egress.Block = r.patterns(packBlock, "egress.block", maxList, false)
	p.Egress.Allow = r.patterns(packAllow, "egress.allow", maxList, true)
	if p.Egress.Ports = r.ports(packPorts, "egress.ports", maxShortList); r.nodes[packPorts] == nil {
		p.Egress.Ports = slices.Clone(defaultPorts)
	}
	p.Egress.LargeUploadMB = r.bounded(packLargeUpload, "egress.large_upload_mb", 25, 0, maxMB)
	p.Egress.BlockLargeUploads, _ = r.boolean(packBlockLarge)

	p.Workspace.Mode = r.word(root, packWorkspaceMode, packWorkspace, "workspace.mode", workspaceModes)
	p.Workspace.Masks = r.globs(packMasks, "workspace.masks")
	p.Workspace.Unmask = r.globs(packUnmask, "workspace.unmask")
	p.Workspace.Review = r.globs(packReview, "workspace.review")
	p.Workspace.MaxUploadMB = r.bounded(packMaxUpload, "workspace.max_upload_mb", 500, 1, maxMB)

	p.Harness.Yolo = r.needBool(root, packYolo, packHarness, "harness.yolo")
	p.Harness.Allowed = r.harnesses(packAllowed, "harness.allowed")

	p.MCP.Import = r.needBool(root, packImport, packMCP, "mcp.import")
	p.MCP.HostPorts = r.needBool(root, packHostPorts, packMCP, "mcp.host_ports")
	r.each(packBlockedTools, "mcp.blocked_tools", maxList, func(i int, n *yaml.Node) {
		v := strings.TrimSpace(n.Value)
		if !validTool(v) {
			r.invalid(n, codeValue, at("mcp.blocked_tools", i), "invalid MCP tool name or glob %q", v).hint = "use letters, digits and _ . : * - only"
		}
		p.MCP.BlockedTools = append(p.MCP.BlockedTools, v)
	})
	p.MCP.BlockedTools = union(nil, p.MCP.BlockedTools)
	if p.MCP.ProjectServers = "block"; r.nodes[packProjectServers] != nil {
		p.MCP.ProjectServers = r.word(root, packProjectServers, packMCP, "mcp.project_servers", projectServers)
	}

	p.Hooks.FailMode = r.word(root, packFailMode, packHooks, "hooks.fail_mode", failModes)
	switch {
	case r.nodes[packOnTamper] != nil:
		p.Hooks.OnTamper = r.word(root, packOnTamper, packHooks, "hooks.on_tamper", tamperModes)
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

func (r *reader) word(root *yaml.Node, id, section int, key string, words []string) string {
	v, ok := r.text(id)
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

func (r *reader) bounded(id int, key string, def, least, most int) int {
	v, ok := r.integer(id)
	if !ok {
		return def
	}
	if v < least || v > most {
		r.invalid(r.nodes[id], codeValue, key, "%d must be between %d and %d", v, least, most)
	}
	return v
}

func (r *reader) patterns(id int, key string, limit int, allow bool) []Pattern {
	var out []Pattern
	r.each(id, key, limit, func(i int, n *yaml.Node) {
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

func (r *reader) ports(id int, key string, limit int) []int {
	var out []int
	r.each(id, key, limit, func(i int, n *yaml.Node) {
		if v, _ := number(n); v < 1 || v > 65535 {
			r.invalid(n, codeValue, at(key, i), "port %d must be between 1 and 65535", v)
		} else {
			out = append(out, v)
		}
	})
	return union(nil, out)
}

func (r *reader) globs(id int, key string) []string {
	var out []string
	r.each(id, key, maxList, func(i int, n *yaml.Node) {
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
	r.each(id, key, maxShortList, func(i int, n *yaml.Node) {
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
