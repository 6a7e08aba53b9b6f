package pack

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
)

// Config is the openshell: block of DefenseClaw's config.yaml: the user's keys and the administrator's block. Zero values are unset.
type Config struct {
	// Pack is a pack reference, PackDir the directory of custom packs: absolute or starting with ~/.
	Pack    string
	PackDir string
	// Profile is open, balanced or strict.
	Profile   string
	Yolo      *bool
	Workdir   Workdir
	Egress    UserEgress
	MCP       UserMCP
	Resources Resources
	Admin     Admin
}

// Workdir holds openshell.workdir. MaxUploadMB and GitDepth are unset at 0; OnExit is ask, keep or undo.
type Workdir struct {
	Mode        string
	Masks       []string
	Unmask      []string
	MaxUploadMB int
	GitDepth    int
	OnExit      string
}

// UserEgress holds openshell.egress. Feed is builtin or none.
type UserEgress struct {
	Feed              string
	Block             []Pattern
	Allow             []Pattern
	Ports             []int
	LargeUploadMB     int
	BlockLargeUploads *bool
}

// UserMCP holds openshell.mcp. HostPorts are ports of the host, unlike the pack's switch of that name.
type UserMCP struct {
	Import    *bool
	HostPorts []int
}

// Resources are quantities in the spelling of ParseCPU and ParseMemory.
type Resources struct {
	CPU    string
	Memory string
}

// Admin is openshell.admin, the administrator's limits. The switches act only when they are false.
type Admin struct {
	// RequiredPack is a pack reference; in a Sandbox document repo:NAME is a pack of the policy repo, which Pin replaces.
	RequiredPack       string
	RequiredPackDigest string
	MinProfile         string
	AllowYolo          *bool
	AllowMount         *bool
	AllowHostPorts     *bool
	AllowUnblock       *bool
	AllowLearnMode     *bool
	AllowedHarnesses   []string
	EgressBlock        []Pattern
	EgressAllowOnly    []Pattern
	BlockLargeUploads  bool
	RequireCopyFor     []string
	MaxResources       Resources
	Locked             []string
}

// Configured reports whether the administrator limits anything.
func (a *Admin) Configured() bool {
	return a.RequiredPack != "" || a.MinProfile != "" || off(a.AllowYolo) || off(a.AllowMount) || off(a.AllowHostPorts) || off(a.AllowUnblock) || off(a.AllowLearnMode) ||
		len(a.AllowedHarnesses) > 0 || len(a.EgressBlock) > 0 || len(a.EgressAllowOnly) > 0 || a.BlockLargeUploads || len(a.RequireCopyFor) > 0 ||
		a.MaxResources != Resources{} || len(a.Locked) > 0
}

// Binding says how far the admin block binds in a deployment mode of DefenseClaw: authoritative where the administrator owns config.yaml
// (managed_enterprise), else advisory, because the user can edit it away.
func Binding(deploymentMode string) string {
	if deploymentMode == "managed_enterprise" {
		return "authoritative"
	}
	return "advisory"
}

func off(b *bool) bool { return b != nil && !*b }

// The keys of an openshell block.
const (
	cfgRoot = iota
	cfgPack
	cfgPackDir
	cfgProfile
	cfgYolo
	cfgWorkdir
	cfgMode
	cfgMasks
	cfgUnmask
	cfgMaxUpload
	cfgGitDepth
	cfgOnExit
	cfgEgress
	cfgFeed
	cfgBlock
	cfgAllow
	cfgPorts
	cfgLargeUpload
	cfgBlockLarge
	cfgMCP
	cfgImport
	cfgHostPorts
	cfgResources
	cfgCPU
	cfgMemory
	cfgAdmin
	cfgRequiredPack
	cfgRequiredDigest
	cfgMinProfile
	cfgAllowYolo
	cfgAllowMount
	cfgAllowHostPorts
	cfgAllowUnblock
	cfgAllowLearn
	cfgHarnesses
	cfgAdminBlock
	cfgAllowOnly
	cfgAdminLarge
	cfgCopyFor
	cfgMax
	cfgMaxCPU
	cfgMaxMemory
	cfgLocked
	cfgCount
)

var configSchema = field{id: cfgRoot, keys: []field{
	{name: "pack", kind: kindText, id: cfgPack},
	{name: "pack_dir", kind: kindText, id: cfgPackDir},
	{name: "profile", kind: kindText, id: cfgProfile},
	{name: "yolo", kind: kindBool, id: cfgYolo},
	{name: "workdir", id: cfgWorkdir, keys: []field{
		{name: "mode", kind: kindText, id: cfgMode},
		{name: "masks", kind: kindTexts, id: cfgMasks},
		{name: "unmask", kind: kindTexts, id: cfgUnmask},
		{name: "max_upload_mb", kind: kindInt, id: cfgMaxUpload},
		{name: "git_depth", kind: kindInt, id: cfgGitDepth},
		{name: "on_exit", kind: kindText, id: cfgOnExit},
	}},
	{name: "egress", id: cfgEgress, keys: []field{
		{name: "feed", kind: kindText, id: cfgFeed},
		{name: "block", kind: kindTexts, id: cfgBlock},
		{name: "allow", kind: kindTexts, id: cfgAllow},
		{name: "ports", kind: kindInts, id: cfgPorts},
		{name: "large_upload_mb", kind: kindInt, id: cfgLargeUpload},
		{name: "block_large_uploads", kind: kindBool, id: cfgBlockLarge},
	}},
	{name: "mcp", id: cfgMCP, keys: []field{
		{name: "import", kind: kindBool, id: cfgImport},
		{name: "host_ports", kind: kindInts, id: cfgHostPorts},
	}},
	{name: "resources", id: cfgResources, keys: []field{
		{name: "cpu", kind: kindText, id: cfgCPU},
		{name: "memory", kind: kindText, id: cfgMemory},
	}},
	{name: "admin", id: cfgAdmin, keys: []field{
		{name: "required_pack", kind: kindText, id: cfgRequiredPack},
		{name: "required_pack_digest", kind: kindText, id: cfgRequiredDigest},
		{name: "min_profile", kind: kindText, id: cfgMinProfile},
		{name: "allow_yolo", kind: kindBool, null: true, id: cfgAllowYolo},
		{name: "allow_mount", kind: kindBool, null: true, id: cfgAllowMount},
		{name: "allow_host_ports", kind: kindBool, null: true, id: cfgAllowHostPorts},
		{name: "allow_unblock", kind: kindBool, null: true, id: cfgAllowUnblock},
		{name: "allow_learn_mode", kind: kindBool, null: true, id: cfgAllowLearn},
		{name: "allowed_harnesses", kind: kindTexts, id: cfgHarnesses},
		{name: "egress_block", kind: kindTexts, id: cfgAdminBlock},
		{name: "egress_allow_only", kind: kindTexts, id: cfgAllowOnly},
		{name: "block_large_uploads", kind: kindBool, id: cfgAdminLarge},
		{name: "require_copy_for", kind: kindTexts, id: cfgCopyFor},
		{name: "max_resources", id: cfgMax, keys: []field{
			{name: "cpu", kind: kindText, id: cfgMaxCPU},
			{name: "memory", kind: kindText, id: cfgMaxMemory},
		}},
		{name: "locked", kind: kindTexts, id: cfgLocked},
	}},
}}

// LockKeys are the settings that openshell.admin.locked can name.
func LockKeys() []string { return slices.Clone(lockKeys) }

var lockKeys = []string{"pack", "profile", "yolo", "workdir.mode", "workdir.unmask", "mcp.import", "mcp.host_ports", "resources"}

// Source says where an openshell block stands.
type Source struct {
	// File is the index of the file and Path the key path of the block in it.
	File int
	Path string
	// Repo allows repo:NAME as admin.required_pack.
	Repo bool
	// Vetted says that the reader of the document has reported anchors, tags, null values and repeated keys already.
	Vetted bool
}

// Positions are the places of the values of a block by their key path inside it (admin.required_pack).
type Positions map[string]diag.Pos

// ParseConfig reads an openshell block strictly. It reports all problems at once; the Config holds everything that was usable. The positions are those of the keys that later
// checks speak of: pack, admin.required_pack and admin.required_pack_digest.
func ParseConfig(n *yaml.Node, src Source) (*Config, Positions, []diag.Diagnostic) {
	r := newReader(&configSchema, cfgCount)
	r.prefix, r.vetted = src.Path, src.Vetted
	r.value(n, src.Path, &configSchema)
	c := r.config(src)
	where := Positions{}
	for key, id := range map[string]int{"": cfgRoot, "pack": cfgPack, "admin.required_pack": cfgRequiredPack, "admin.required_pack_digest": cfgRequiredDigest} {
		if n := r.nodes[id]; n != nil {
			where[key] = diag.NewPos(src.File, n.Line, n.Column)
		}
	}
	return c, where, r.diagnostics(src.File)
}

func (r *reader) key(name string) string { return join(r.prefix, name) }

func (r *reader) config(src Source) *Config {
	c := &Config{}
	c.Pack = r.reference(cfgPack, "pack", false)
	if c.PackDir, _ = r.text(cfgPackDir); c.PackDir != "" && !absoluteFolder(c.PackDir) && !strings.HasPrefix(c.PackDir, "~/") {
		r.invalid(r.nodes[cfgPackDir], codeValue, r.key("pack_dir"), `%q must be absolute or start with "~/"`, c.PackDir)
	}
	c.Profile = r.choice(cfgProfile, "profile", profiles)
	c.Yolo = r.pointer(cfgYolo)
	c.Workdir = Workdir{
		Mode:        r.choice(cfgMode, "workdir.mode", workspaceModes),
		Masks:       r.globs(cfgMasks, r.key("workdir.masks")),
		Unmask:      r.globs(cfgUnmask, r.key("workdir.unmask")),
		MaxUploadMB: r.bounded(cfgMaxUpload, r.key("workdir.max_upload_mb"), 0, 0, maxMB),
		GitDepth:    r.bounded(cfgGitDepth, r.key("workdir.git_depth"), 0, 0, maxMB),
		OnExit:      r.choice(cfgOnExit, "workdir.on_exit", exitModes),
	}
	c.Egress = UserEgress{
		Feed:              r.choice(cfgFeed, "egress.feed", feedModes),
		Block:             r.firstBad(cfgBlock, "egress.block"),
		Allow:             r.firstBad(cfgAllow, "egress.allow"),
		Ports:             r.ports(cfgPorts, r.key("egress.ports"), 0),
		LargeUploadMB:     r.bounded(cfgLargeUpload, r.key("egress.large_upload_mb"), 0, 0, maxMB),
		BlockLargeUploads: r.pointer(cfgBlockLarge),
	}
	r.each(cfgAllow, "", 0, func(i int, n *yaml.Node) {
		if p, err := ParsePattern(n.Value); err == nil && p.Broad() {
			r.invalid(n, codeIgnored, at(r.key("egress.allow"), i), "%q covers every host or a whole top-level domain, and DefenseClaw ignores it", p.text).hint = "list the destinations to allow, or choose profile: open"
		}
	})
	c.MCP = UserMCP{Import: r.pointer(cfgImport), HostPorts: r.ports(cfgHostPorts, r.key("mcp.host_ports"), 0)}
	c.Resources = Resources{r.quantity(cfgCPU, "resources.cpu", ParseCPU), r.quantity(cfgMemory, "resources.memory", ParseMemory)}
	a := &c.Admin
	a.RequiredPack = r.reference(cfgRequiredPack, "admin.required_pack", src.Repo)
	if n := r.nodes[cfgRequiredDigest]; n != nil && n.Value != "" {
		a.RequiredPackDigest = n.Value
		switch {
		case !ValidDigest(n.Value):
			r.invalid(n, codeValue, r.key("admin.required_pack_digest"), `%q must be "sha256:" and 64 lower-case hex digits`, n.Value)
		case a.RequiredPack == "" && !r.bad[cfgRequiredPack]:
			r.invalid(n, codeValue, r.key("admin.required_pack_digest"), "needs admin.required_pack: a digest alone pins nothing")
		}
	}
	if n := r.nodes[cfgMinProfile]; n != nil && n.Value != "" {
		if a.MinProfile = n.Value; !slices.Contains(profiles, n.Value) {
			r.words(n, r.key("admin.min_profile"), n.Value, profiles)
		}
	}
	a.AllowYolo, a.AllowMount, a.AllowHostPorts = r.pointer(cfgAllowYolo), r.pointer(cfgAllowMount), r.pointer(cfgAllowHostPorts)
	a.AllowUnblock, a.AllowLearnMode = r.pointer(cfgAllowUnblock), r.pointer(cfgAllowLearn)
	a.AllowedHarnesses = r.adminHarnesses()
	a.EgressBlock = r.firstBad(cfgAdminBlock, "admin.egress_block")
	a.EgressAllowOnly = r.firstBad(cfgAllowOnly, "admin.egress_allow_only")
	a.BlockLargeUploads, _ = r.boolean(cfgAdminLarge)
	r.each(cfgCopyFor, "", 0, func(i int, n *yaml.Node) {
		if v, err := ParseCopyPattern(n.Value); err != nil {
			r.invalid(n, codeGlob, at(r.key("admin.require_copy_for"), i), "%s", err)
		} else {
			a.RequireCopyFor = append(a.RequireCopyFor, v)
		}
	})
	a.MaxResources = Resources{r.quantity(cfgMaxCPU, "admin.max_resources.cpu", ParseCPU), r.quantity(cfgMaxMemory, "admin.max_resources.memory", ParseMemory)}
	r.each(cfgLocked, "", 0, func(i int, n *yaml.Node) {
		if v := strings.TrimSpace(n.Value); !slices.Contains(lockKeys, v) {
			r.words(n, at(r.key("admin.locked"), i), v, lockKeys)
		} else {
			a.Locked = append(a.Locked, v)
		}
	})
	a.Locked = union(nil, a.Locked)
	return c
}

func (r *reader) pointer(id int) *bool {
	if v, ok := r.boolean(id); ok {
		return &v
	}
	return nil
}

// choice reads one of a few words; the empty text is unset.
func (r *reader) choice(id int, key string, words []string) string {
	v, ok := r.text(id)
	if ok && v != "" && !slices.Contains(words, v) {
		r.words(r.nodes[id], r.key(key), v, words)
		return ""
	}
	return v
}

func (r *reader) reference(id int, key string, repo bool) string {
	v, ok := r.text(id)
	if name, isRepo := strings.CutPrefix(v, "repo:"); repo && isRepo && ValidName(name) {
		return v
	}
	if ok && !ValidReference(v) {
		r.invalid(r.nodes[id], codeValue, r.key(key), `%q must be a pack name, an absolute path or a path that starts with "~/"`, v)
	}
	return v
}

// firstBad reads patterns. DefenseClaw names the first bad entry of such a list; the others are related places of the same finding.
func (r *reader) firstBad(id int, key string) []Pattern {
	before := len(r.problems)
	out := r.patterns(id, r.key(key), 0, false)
	r.fold(before)
	return out
}

// fold makes all errors after the first of r.problems[from:] related places of it.
func (r *reader) fold(from int) {
	first := -1
	kept := r.problems[:from]
	for _, p := range r.problems[from:] {
		switch {
		case p.code.Severity != diag.Error:
			kept = append(kept, p)
		case first < 0:
			first = len(kept)
			kept = append(kept, p)
		default:
			kept[first].related = append(kept[first].related, place{p.line, p.column, p.key + ": " + p.reason})
		}
	}
	r.problems = kept
}

func (r *reader) quantity(id int, key string, parse func(string) (int64, error)) string {
	v, ok := r.text(id)
	if !ok || v == "" {
		return ""
	}
	if _, err := parse(v); err != nil {
		r.invalid(r.nodes[id], codeValue, r.key(key), "%s", err)
		return ""
	}
	return v
}

func (r *reader) adminHarnesses() []string {
	var out []string
	key, before := r.key("admin.allowed_harnesses"), len(r.problems)
	r.each(cfgHarnesses, "", 0, func(i int, n *yaml.Node) {
		v := NormalHarness(n.Value)
		_, foreign := foreignHarness[v]
		switch {
		case !validHarness(v):
			r.invalid(n, codeValue, at(key, i), "invalid harness name %q", strings.TrimSpace(n.Value))
			return
		case foreign:
			r.invalid(n, codeVocabulary, at(key, i), "%q is not a harness name of DefenseClaw and would never match", v).hint = harnessHint(v)
		case !slices.Contains(defenseclawIDs, v):
			r.invalid(n, codeHarness, at(key, i), "%q is not a harness that DefenseClaw knows and never matches", v).hint = harnessHint(v)
		}
		out = append(out, v)
	})
	r.fold(before)
	return union(nil, out)
}
