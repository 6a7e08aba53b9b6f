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

// configSchema follows that page and internal/config.
var configSchema = field{id: cfgRoot, keys: []field{
	// The pack that sandboxes begin with: a name, or a folder of the device.
	//
	// Example: team-web
	{name: "pack", kind: kindText, id: cfgPack, form: "pack reference"},
	// Where devices keep packs: an absolute path, or one below ~/.
	{name: "pack_dir", kind: kindText, id: cfgPackDir, form: "pack folder"},
	// The network profile, instead of the pack's.
	{name: "profile", kind: kindText, id: cfgProfile, words: profiles, blank: true},
	// Lets a harness act without asking, instead of the pack's choice.
	{name: "yolo", kind: kindBool, id: cfgYolo},
	// What a sandbox sees of the project.
	{name: "workdir", id: cfgWorkdir, keys: []field{
		// Whether the sandbox works on the project itself or on a copy.
		{name: "mode", kind: kindText, id: cfgMode, words: workspaceModes, blank: true},
		// More files that the sandbox does not see: globs below the project.
		{name: "masks", kind: kindTexts, id: cfgMasks, most: maxList, form: "project glob"},
		// Files that it sees nevertheless.
		{name: "unmask", kind: kindTexts, id: cfgUnmask, most: maxList, form: "project glob"},
		// The largest project that is copied, in megabytes; 0 is the pack's.
		{name: "max_upload_mb", kind: kindInt, id: cfgMaxUpload, max: maxMB},
		// How many commits of the history are copied; 0 is DefenseClaw's default, 200.
		{name: "git_depth", kind: kindInt, id: cfgGitDepth, max: maxMB},
		// What happens to the changes in a copy at the end.
		//
		// Default: ask
		{name: "on_exit", kind: kindText, id: cfgOnExit, words: exitModes, blank: true},
	}},
	// The lists of hosts, added to those of the pack.
	{name: "egress", id: cfgEgress, keys: []field{
		// Whether the list of dangerous hosts that DefenseClaw ships is used.
		{name: "feed", kind: kindText, id: cfgFeed, words: feedModes, blank: true},
		// More hosts that are refused.
		{name: "block", kind: kindTexts, id: cfgBlock, form: "pack pattern"},
		// More hosts that are allowed.
		//
		// Example: [artifacts.acme.example]
		{name: "allow", kind: kindTexts, id: cfgAllow, form: "pack pattern"},
		// The ports that may be reached, instead of the pack's.
		{name: "ports", kind: kindInts, id: cfgPorts, min: 1, max: 65535},
		// From which size, in megabytes, an upload is reported; 0 is the pack's.
		{name: "large_upload_mb", kind: kindInt, id: cfgLargeUpload, max: maxMB},
		// Refuses such uploads.
		{name: "block_large_uploads", kind: kindBool, id: cfgBlockLarge},
	}},
	// Which MCP servers a sandbox has.
	{name: "mcp", id: cfgMCP, keys: []field{
		// Takes over the user's servers.
		{name: "import", kind: kindBool, id: cfgImport},
		// Ports of the host that a sandbox may reach.
		{name: "host_ports", kind: kindInts, id: cfgHostPorts, min: 1, max: 65535},
	}},
	// What a sandbox may use of the machine.
	{name: "resources", id: cfgResources, keys: []field{
		// Cores, or millicores with an m.
		//
		// Example: "1.5"
		{name: "cpu", kind: kindText, id: cfgCPU, form: "cpu"},
		// Bytes, with a unit such as Gi.
		//
		// Example: 8Gi
		{name: "memory", kind: kindText, id: cfgMemory, form: "memory"},
	}},
	// The administrator's limits, which users cannot go beyond.
	{name: "admin", id: cfgAdmin, keys: []field{
		// The only pack that may be used. repo:NAME is packs/NAME/pack.yaml of the policy repo.
		//
		// Example: "repo:team-web"
		{name: "required_pack", kind: kindText, id: cfgRequiredPack, form: "required pack"},
		// The digest that this pack must have. A release writes it for a pack of the repo.
		{name: "required_pack_digest", kind: kindText, id: cfgRequiredDigest, form: "digest"},
		// The loosest network profile that users may choose.
		{name: "min_profile", kind: kindText, id: cfgMinProfile, words: profiles, blank: true},
		// false takes away yolo.
		{name: "allow_yolo", kind: kindBool, null: true, id: cfgAllowYolo},
		// false makes every sandbox work on a copy.
		{name: "allow_mount", kind: kindBool, null: true, id: cfgAllowMount},
		// false keeps sandboxes from the ports of the host.
		{name: "allow_host_ports", kind: kindBool, null: true, id: cfgAllowHostPorts},
		// false keeps users from unblocking hosts.
		{name: "allow_unblock", kind: kindBool, null: true, id: cfgAllowUnblock},
		// false refuses learn mode.
		{name: "allow_learn_mode", kind: kindBool, null: true, id: cfgAllowLearn},
		// The harnesses that may run, by DefenseClaw's names; without it, any.
		//
		// Example: [claudecode, codex]
		{name: "allowed_harnesses", kind: kindTexts, id: cfgHarnesses, form: "harness name"},
		// Hosts that nobody can allow.
		{name: "egress_block", kind: kindTexts, id: cfgAdminBlock, form: "pack pattern"},
		// The only hosts that may be allowed.
		{name: "egress_allow_only", kind: kindTexts, id: cfgAllowOnly, form: "pack pattern"},
		// Refuses large uploads in every sandbox.
		{name: "block_large_uploads", kind: kindBool, id: cfgAdminLarge},
		// Folders whose projects are only worked on as a copy.
		//
		// Example: [/srv/**, ~/work]
		{name: "require_copy_for", kind: kindTexts, id: cfgCopyFor, form: "folder pattern"},
		// The most that a sandbox may use of the machine.
		{name: "max_resources", id: cfgMax, keys: []field{
			// Cores, or millicores with an m.
			{name: "cpu", kind: kindText, id: cfgMaxCPU, form: "cpu"},
			// Bytes, with a unit such as Gi.
			{name: "memory", kind: kindText, id: cfgMaxMemory, form: "memory"},
		}},
		// Settings that users cannot change.
		{name: "locked", kind: kindTexts, id: cfgLocked, words: lockKeys},
	}},
}}

// lockKeys are the settings that openshell.admin.locked can name.
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
	c.Profile = r.choice(cfgProfile, "profile")
	c.Yolo = r.pointer(cfgYolo)
	c.Workdir = Workdir{
		Mode:        r.choice(cfgMode, "workdir.mode"),
		Masks:       r.globs(cfgMasks, r.key("workdir.masks")),
		Unmask:      r.globs(cfgUnmask, r.key("workdir.unmask")),
		MaxUploadMB: r.bounded(cfgMaxUpload, r.key("workdir.max_upload_mb"), 0),
		GitDepth:    r.bounded(cfgGitDepth, r.key("workdir.git_depth"), 0),
		OnExit:      r.choice(cfgOnExit, "workdir.on_exit"),
	}
	c.Egress = UserEgress{
		Feed:              r.choice(cfgFeed, "egress.feed"),
		Block:             r.firstBad(cfgBlock, "egress.block"),
		Allow:             r.firstBad(cfgAllow, "egress.allow"),
		Ports:             r.ports(cfgPorts, r.key("egress.ports")),
		LargeUploadMB:     r.bounded(cfgLargeUpload, r.key("egress.large_upload_mb"), 0),
		BlockLargeUploads: r.pointer(cfgBlockLarge),
	}
	r.each(cfgAllow, "", func(i int, n *yaml.Node) {
		if p, err := ParsePattern(n.Value); err == nil && p.Broad() {
			r.invalid(n, codeIgnored, at(r.key("egress.allow"), i), "%q covers every host or a whole top-level domain, and DefenseClaw ignores it", p.text).hint = "list the destinations to allow, or choose profile: open"
		}
	})
	c.MCP = UserMCP{Import: r.pointer(cfgImport), HostPorts: r.ports(cfgHostPorts, r.key("mcp.host_ports"))}
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
		if a.MinProfile = n.Value; !slices.Contains(r.fields[cfgMinProfile].words, n.Value) {
			r.words(n, r.key("admin.min_profile"), n.Value, r.fields[cfgMinProfile].words)
		}
	}
	a.AllowYolo, a.AllowMount, a.AllowHostPorts = r.pointer(cfgAllowYolo), r.pointer(cfgAllowMount), r.pointer(cfgAllowHostPorts)
	a.AllowUnblock, a.AllowLearnMode = r.pointer(cfgAllowUnblock), r.pointer(cfgAllowLearn)
	a.AllowedHarnesses = r.adminHarnesses()
	a.EgressBlock = r.firstBad(cfgAdminBlock, "admin.egress_block")
	a.EgressAllowOnly = r.firstBad(cfgAllowOnly, "admin.egress_allow_only")
	a.BlockLargeUploads, _ = r.boolean(cfgAdminLarge)
	r.each(cfgCopyFor, "", func(i int, n *yaml.Node) {
		if v, err := ParseCopyPattern(n.Value); err != nil {
			r.invalid(n, codeGlob, at(r.key("admin.require_copy_for"), i), "%s", err)
		} else {
			a.RequireCopyFor = append(a.RequireCopyFor, v)
		}
	})
	a.MaxResources = Resources{r.quantity(cfgMaxCPU, "admin.max_resources.cpu", ParseCPU), r.quantity(cfgMaxMemory, "admin.max_resources.memory", ParseMemory)}
	r.each(cfgLocked, "", func(i int, n *yaml.Node) {
		if v := strings.TrimSpace(n.Value); !slices.Contains(r.fields[cfgLocked].words, v) {
			r.words(n, at(r.key("admin.locked"), i), v, r.fields[cfgLocked].words)
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
func (r *reader) choice(id int, key string) string {
	v, ok := r.text(id)
	words := r.fields[id].words
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
	out := r.patterns(id, r.key(key), false)
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
	r.each(cfgHarnesses, "", func(i int, n *yaml.Node) {
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
