package pack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The layers that a setting can come from.
const (
	FromDefault = "default"
	FromPack    = "pack"
	FromUser    = "user"
	FromFlag    = "flag"
	FromAdmin   = "admin"
)

// Setting is one effective setting and who decided it. Value and Requested are texts as DefenseClaw shows them: lists joined by ", ", (none), (any), (unlimited).
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Source is one of the From constants, Origin the pack, key or option.
	Source string `json:"source"`
	Origin string `json:"origin"`
	// Requested is what would have held without the limit that replaced it, "" when nothing was replaced.
	Requested string `json:"requested,omitempty"`
}

// Violation is a limit that users are told about, because it replaced a choice of theirs.
type Violation struct {
	Key string `json:"key"`
	// Source is who asked, Attempted what for; Enforced is what holds; Constraint is the key that decided.
	Source     string `json:"source"`
	Attempted  string `json:"attempted"`
	Enforced   string `json:"enforced"`
	Constraint string `json:"constraint"`
	Message    string `json:"message"`
	Detail     string `json:"detail,omitempty"`
	// Fatal means that no sandbox starts.
	Fatal bool `json:"fatal"`
}

// String returns the line that users see.
func (v Violation) String() string {
	if v.Detail == "" {
		return v.Message
	}
	return v.Message + " (" + v.Detail + ")"
}

// Run holds the options of one run. Zero values are options not given.
type Run struct {
	Pack      string
	Profile   string
	Copy      bool
	Safe      bool
	Unmask    []string
	HostPorts []int
	NoMCP     bool
	CPU       string
	Memory    string
	Harness   string
	// Project is the absolute project folder on the device and Home its home directory, both "" when not known.
	Project string
	Home    string
	// Yolo and Learn can only be given through DefenseClaw's API.
	Yolo  *bool
	Learn bool
}

// Input is what Resolve puts together. Find loads a pack by its reference; Finder.Find and, for tests and repos, any function will do.
type Input struct {
	Config *Config
	Run    Run
	Find   func(ref string) (*Pack, error)
}

// Policy is a resolved sandbox policy.
type Policy struct {
	// Settings are in the order of DefenseClaw's explanation; harness is there only when one was asked for.
	Settings   []Setting
	Violations []Violation

	Pack           *Pack
	Profile        string
	Approvals      string
	Yolo           bool
	Harness        string
	HarnessAllowed []string
	// HarnessLimited tells an empty HarnessAllowed that allows none from one that allows any.
	HarnessLimited    bool
	WorkdirMode       string
	Masks             []string
	Unmask            []string
	Review            []string
	MaxUploadMB       int
	Feed              bool
	Block             []Pattern
	AdminBlock        []Pattern
	Allow             []Pattern
	Operator          []Pattern
	AllowOnly         []Pattern
	Ports             []int
	LargeUploadMB     int
	BlockLargeUploads bool
	MCPImport         bool
	HostPortAccess    bool
	HostPorts         []int
	Resources         Resources
	Learn             bool
	// Admin is the administrator's block that was applied.
	Admin Admin
}

// Setting returns the setting of a key.
func (p *Policy) Setting(key string) (Setting, bool) {
	for _, s := range p.Settings {
		if s.Key == key {
			return s, true
		}
	}
	return Setting{}, false
}

// Fatal reports whether the policy stops the sandbox from starting.
func (p *Policy) Fatal() bool {
	return slices.ContainsFunc(p.Violations, func(v Violation) bool { return v.Fatal })
}

// Rules returns the parts of the policy that decide egress, with these unblocks.
func (p *Policy) Rules(unblocks []Pattern) Rules {
	return Rules{Profile: p.Profile, Ports: p.Ports, Feed: p.Feed, AdminBlock: p.AdminBlock, AllowOnly: p.AllowOnly, Block: p.Block, Allow: p.Allow, Operator: p.Operator,
		Unblocks: unblocks, UnblockRefused: off(p.Admin.AllowUnblock)}
}

// Engine compiles the policy's egress decision.
func (p *Policy) Engine(unblocks []Pattern) *Engine { return NewEngine(p.Rules(unblocks)) }

// Literal texts of DefenseClaw (docs-site/content/docs/setup/sandbox-policy.mdx and internal/openshell/packs, read 2026-11).
const (
	blockedBy    = "blocked by your organization's DefenseClaw policy: "
	fromDefaults = "defenseclaw default"
	none         = "(none)"
	anyHarness   = "(any)"
	unlimited    = "(unlimited)"
	adminKey     = "openshell.admin."
)

// reservedPorts are DefenseClaw's own listeners at their default ports. The guardrail proxy, a local model router and Prometheus listeners have no fixed port
// and are not known here.
var reservedPorts = []struct {
	port int
	what string
}{
	{18970, "the DefenseClaw API"}, {18971, "the sandbox ingress"}, {18972, "the egress proxy"}, {17670, "the OpenShell gateway"}, {18789, "the OpenClaw gateway"},
}

type resolver struct {
	cfg      *Config
	run      Run
	find     func(string) (*Pack, error)
	required *Pack
	pack     *Pack
	// packChosen says that a user selected the pack, so that limits on its values are worth telling.
	packChosen bool
	out        *Policy
	violations []Violation
}

// Resolve puts the four layers together: the pack, the user's keys, the run's options and the administrator's limits, which only tighten. A pack that does not
// load, a wrong digest and malformed run options are errors; nothing falls back to another pack.
func Resolve(in Input) (*Policy, error) {
	cfg := in.Config
	if cfg == nil {
		cfg = &Config{}
	}
	r := &resolver{cfg: cfg, run: in.Run, find: in.Find, out: &Policy{Admin: cfg.Admin}}
	if err := r.checkRun(); err != nil {
		return nil, err
	}
	packSetting, err := r.choosePack()
	if err != nil {
		return nil, err
	}
	r.put(packSetting)
	r.profile()
	r.approvals()
	r.yolo()
	r.harness()
	r.workdir()
	r.mcpImport()
	r.hostPorts()
	r.egress()
	r.mcpRest()
	r.resources()
	r.learn()
	r.put(Setting{Key: "hooks.fail_mode", Value: r.pack.Hooks.FailMode, Source: FromPack, Origin: r.packOrigin()})
	r.put(Setting{Key: "hooks.on_tamper", Value: r.pack.Hooks.OnTamper, Source: FromPack, Origin: r.packOrigin()})
	slices.SortStableFunc(r.out.Settings, func(a, b Setting) int { return slices.Index(explainOrder, a.Key) - slices.Index(explainOrder, b.Key) })
	r.out.Violations = r.violations
	return r.out, nil
}

// explainOrder is the order in which DefenseClaw explains the settings.
var explainOrder = []string{
	"pack", "profile", "network.mode", "approvals.mode", "yolo", "harness", "harness.allowed",
	"workdir.mode", "workdir.masks", "workdir.unmask", "workdir.review", "workdir.max_upload_mb", "workdir.git_depth", "workdir.on_exit",
	"egress.feeds", "egress.block", "egress.admin_block", "egress.allow", "egress.allow_only", "egress.ports", "egress.large_upload_mb", "egress.block_large_uploads",
	"mcp.import", "mcp.host_port_access", "mcp.host_ports", "mcp.blocked_tools", "mcp.project_servers",
	"resources.cpu", "resources.memory", "learn", "hooks.fail_mode", "hooks.on_tamper",
}

// checkRun refuses malformed run options and brings the others to their normal form.
func (r *resolver) checkRun() error {
	run := &r.run
	if run.Profile != "" && !slices.Contains(profiles, run.Profile) {
		return fmt.Errorf("sandbox policy: --profile %q must be one of %s", run.Profile, strings.Join(profiles, ", "))
	}
	unmask := make([]string, 0, len(run.Unmask))
	for _, g := range run.Unmask {
		v, err := ParseGlob(g)
		if err != nil {
			return fmt.Errorf("sandbox policy: --unmask: %w", err)
		}
		unmask = append(unmask, v)
	}
	run.Unmask = union(nil, unmask)
	for _, p := range run.HostPorts {
		if p < 1 || p > 65535 {
			return fmt.Errorf("sandbox policy: --host-port %d must be between 1 and 65535", p)
		}
	}
	run.HostPorts = union(nil, run.HostPorts)
	run.CPU, run.Memory = strings.TrimSpace(run.CPU), strings.TrimSpace(run.Memory)
	if run.CPU != "" {
		if _, err := ParseCPU(run.CPU); err != nil {
			return fmt.Errorf("sandbox policy: --cpu %w", err)
		}
	}
	if run.Memory != "" {
		if _, err := ParseMemory(run.Memory); err != nil {
			return fmt.Errorf("sandbox policy: --memory %w", err)
		}
	}
	if run.Harness != "" {
		name := NormalHarness(run.Harness)
		if !validHarness(name) {
			return fmt.Errorf("sandbox policy: invalid harness name %q", run.Harness)
		}
		run.Harness = name
	}
	if run.Project != "" && !absoluteFolder(run.Project) {
		return fmt.Errorf("sandbox policy: the project folder %q must be an absolute path", run.Project)
	}
	return nil
}

func (r *resolver) load(ref, layer string) (*Pack, error) {
	if r.find == nil {
		return nil, fmt.Errorf("sandbox policy: %s: %w", layer, errors.New("packs cannot be loaded here"))
	}
	p, err := r.find(ref)
	if err != nil {
		return nil, fmt.Errorf("sandbox policy: %s: %w", layer, err)
	}
	return p, nil
}

// asked returns what the layers above the administrator name as the pack.
func (r *resolver) asked() (ref, source, origin string) {
	switch {
	case strings.TrimSpace(r.run.Pack) != "":
		return strings.TrimSpace(r.run.Pack), FromFlag, "--pack"
	case r.cfg.Pack != "":
		return r.cfg.Pack, FromUser, "openshell.pack"
	}
	return "open", FromDefault, "default pack"
}

// choosePack loads the pack that holds, after the locks have dropped the run's options that they refuse.
func (r *resolver) choosePack() (Setting, error) {
	admin := &r.cfg.Admin
	if ref := admin.RequiredPack; ref != "" {
		p, err := r.load(ref, adminKey+"required_pack")
		if err != nil {
			return Setting{}, err
		}
		if want := admin.RequiredPackDigest; want != "" && p.Digest != want {
			return Setting{}, fmt.Errorf("sandbox policy: openshell.admin.required_pack %s has digest %s, not the pinned openshell.admin.required_pack_digest %s", p.Name, p.Digest, want)
		}
		r.required = p
	}
	if len(admin.Locked) > 0 {
		if err := r.locks(); err != nil {
			return Setting{}, err
		}
	}
	ref, source, origin := r.asked()
	if r.required == nil {
		layer := origin
		if source == FromFlag {
			layer += " " + ref
		}
		p, err := r.load(ref, layer)
		if err != nil {
			return Setting{}, err
		}
		r.pack, r.packChosen = p, source != FromDefault
		r.out.Pack = p
		return Setting{Key: "pack", Value: p.Name, Source: source, Origin: origin}, nil
	}
	r.pack, r.out.Pack = r.required, r.required
	if source != FromDefault && ref != admin.RequiredPack {
		if p, err := r.find(ref); err != nil || p.Digest != r.required.Digest {
			r.violate(Violation{Key: "pack", Source: source, Attempted: ref, Enforced: r.required.Name, Constraint: adminKey + "required_pack", Message: blockedBy + "pack",
				Detail: "every sandbox uses the pack " + r.required.Name})
		}
	}
	return Setting{Key: "pack", Value: r.required.Name, Source: FromAdmin, Origin: adminKey + "required_pack", Requested: ref}, nil
}

func (r *resolver) put(s Setting) { r.out.Settings = append(r.out.Settings, s) }

func (r *resolver) violate(v Violation) { r.violations = append(r.violations, v) }

func (r *resolver) packOrigin() string { return "pack " + r.pack.Name }

func (r *resolver) fromPack(key, value string) Setting {
	return Setting{Key: key, Value: value, Source: FromPack, Origin: r.packOrigin()}
}

// set makes a layer the source of a setting.
func (s *Setting) set(value, source, origin string) {
	s.Value, s.Source, s.Origin = value, source, origin
}

// chosen reports whether a value is somebody's choice: a user key, a run option, or a value of a pack that a user selected.
func (r *resolver) chosen(s *Setting) bool {
	return s.Source == FromUser || s.Source == FromFlag || s.Source == FromPack && r.packChosen
}

// clamp replaces a setting by what the administrator's key demands, and tells whoever chose the value.
func (r *resolver) clamp(s *Setting, value, key, detail string) {
	origin := adminKey + key
	if r.chosen(s) {
		r.violate(Violation{Key: s.Key, Source: s.Source, Attempted: s.Value, Enforced: value, Constraint: origin, Message: blockedBy + s.Key, Detail: detail})
	}
	if s.Requested == "" {
		s.Requested = s.Value
	}
	s.set(value, FromAdmin, origin)
}

func (r *resolver) profile() {
	s := r.fromPack("profile", r.pack.Profile())
	if r.cfg.Profile != "" {
		s.set(r.cfg.Profile, FromUser, "openshell.profile")
	}
	if r.run.Profile != "" {
		s.set(r.run.Profile, FromFlag, "--profile")
	}
	admin := &r.cfg.Admin
	floor, key := admin.MinProfile, "min_profile"
	if len(admin.EgressAllowOnly) > 0 && rank(profiles, floor) < rank(profiles, "balanced") {
		floor, key = "balanced", "egress_allow_only"
	}
	if r.required != nil && rank(profiles, floor) < rank(profiles, r.required.Profile()) {
		floor, key = r.required.Profile(), "required_pack"
	}
	if rank(profiles, s.Value) < rank(profiles, floor) {
		r.clamp(&s, floor, key, "the profile is at least "+floor)
	}
	r.out.Profile = s.Value
	r.put(s)
	r.put(Setting{Key: "network.mode", Value: modeOf(s.Value), Source: s.Source, Origin: "profile " + s.Value})
}

func (r *resolver) approvals() {
	s := r.fromPack("approvals.mode", r.pack.Approvals)
	// The modes are paired: balanced asks at least for triage, strict for manual.
	if least := rank(profiles, r.out.Profile); rank(approvalModes, s.Value) < least {
		profile := r.out.Settings[len(r.out.Settings)-1]
		s.set(approvalModes[least], profile.Source, profile.Origin)
	}
	r.out.Approvals = s.Value
	r.put(s)
}

func (r *resolver) yolo() {
	s := r.fromPack("yolo", strconv.FormatBool(r.pack.Harness.Yolo))
	if v := r.cfg.Yolo; v != nil {
		s.set(strconv.FormatBool(*v), FromUser, "openshell.yolo")
	}
	if v := r.run.Yolo; v != nil {
		s.set(strconv.FormatBool(*v), FromFlag, "--yolo")
	}
	if r.run.Safe {
		s.set("false", FromFlag, "--safe")
	}
	const detail = "skip-permissions mode is disabled; the harness keeps its permission prompts"
	switch {
	case s.Value == "true" && off(r.cfg.Admin.AllowYolo):
		r.clamp(&s, "false", "allow_yolo", detail)
	case s.Value == "true" && r.required != nil && !r.required.Harness.Yolo:
		r.clamp(&s, "false", "required_pack", detail)
	}
	r.out.Yolo = s.Value == "true"
	r.put(s)
}

func (r *resolver) harness() {
	own, admin := r.pack.Harness.Allowed, r.cfg.Admin.AllowedHarnesses
	s := r.fromPack("harness.allowed", anyHarness)
	allowed := own
	switch {
	case len(own) > 0 && len(admin) > 0:
		allowed = slices.DeleteFunc(slices.Clone(own), func(name string) bool { return !slices.Contains(admin, name) })
		s.set(list(allowed), FromAdmin, r.packOrigin()+" ∩ "+adminKey+"allowed_harnesses")
	case len(admin) > 0:
		allowed = admin
		s.set(list(admin), FromAdmin, adminKey+"allowed_harnesses")
	case len(own) > 0:
		s.Value = list(own)
	}
	r.out.HarnessAllowed, r.out.HarnessLimited = allowed, len(own)+len(admin) > 0
	r.put(s)

	name := r.run.Harness
	if name == "" {
		return
	}
	h := Setting{Key: "harness", Value: name, Source: FromFlag, Origin: "sandbox run"}
	refused := Violation{Key: "harness", Source: FromFlag, Attempted: name, Enforced: list(allowed), Fatal: true}
	switch {
	case len(admin) > 0 && !slices.Contains(admin, name):
		h = Setting{Key: "harness", Value: "(refused: " + name + ")", Source: FromAdmin, Origin: adminKey + "allowed_harnesses", Requested: name}
		refused.Constraint, refused.Message, refused.Detail = h.Origin, blockedBy+"harness", "allowed harnesses: "+list(admin)
		r.violate(refused)
	case len(own) > 0 && !slices.Contains(own, name):
		h = Setting{Key: "harness", Value: "(refused: " + name + ")", Source: FromPack, Origin: r.packOrigin(), Requested: name}
		refused.Constraint, refused.Message, refused.Detail = h.Origin, r.notByPack("harness"), "allowed harnesses: "+list(own)
		r.violate(refused)
	}
	r.out.Harness = name
	r.put(h)
}

func (r *resolver) notByPack(key string) string {
	return "not allowed by the " + r.pack.Name + " sandbox pack: " + key
}

func (r *resolver) workdir() {
	cfg, admin := &r.cfg.Workdir, &r.cfg.Admin
	s := r.fromPack("workdir.mode", r.pack.Workspace.Mode)
	if cfg.Mode != "" {
		s.set(cfg.Mode, FromUser, "openshell.workdir.mode")
	}
	if r.run.Copy {
		s.set("copy", FromFlag, "--copy")
	}
	const detail = "the sandbox works on a copy of the project"
	if s.Value == "mount" {
		switch {
		case off(admin.AllowMount):
			r.clamp(&s, "copy", "allow_mount", detail)
		case r.required != nil && r.required.Workspace.Mode == "copy":
			r.clamp(&s, "copy", "required_pack", detail)
		case len(admin.RequireCopyFor) > 0 && r.copyRequired():
			r.clamp(&s, "copy", "require_copy_for", detail)
		}
	}
	r.out.WorkdirMode = s.Value
	r.put(s)

	own := &r.pack.Workspace
	r.out.Masks = union(own.Masks, cfg.Masks)
	r.put(r.merged("workdir.masks", list(r.out.Masks), len(cfg.Masks) > 0, true))

	r.out.Unmask = union(union(own.Unmask, cfg.Unmask), r.run.Unmask)
	s = r.merged("workdir.unmask", list(r.out.Unmask), len(cfg.Unmask) > 0, len(own.Unmask) > 0)
	if len(r.run.Unmask) > 0 {
		s.Source, s.Origin = FromFlag, "--unmask"
	}
	r.put(s)

	r.out.Review = union(own.Review, reviewFloor)
	s = r.fromPack("workdir.review", list(r.out.Review))
	s.Origin += " + defenseclaw review floor"
	r.put(s)

	r.out.MaxUploadMB = own.MaxUploadMB
	s = r.fromPack("workdir.max_upload_mb", strconv.Itoa(own.MaxUploadMB))
	if cfg.MaxUploadMB > 0 {
		r.out.MaxUploadMB = cfg.MaxUploadMB
		s.set(strconv.Itoa(cfg.MaxUploadMB), FromUser, "openshell.workdir.max_upload_mb")
	}
	r.put(s)

	s = Setting{Key: "workdir.git_depth", Value: "200", Source: FromDefault, Origin: fromDefaults}
	if cfg.GitDepth > 0 {
		s.set(strconv.Itoa(cfg.GitDepth), FromUser, "openshell.workdir.git_depth")
	}
	r.put(s)
	s = Setting{Key: "workdir.on_exit", Value: "ask", Source: FromDefault, Origin: fromDefaults}
	if cfg.OnExit != "" {
		s.set(cfg.OnExit, FromUser, "openshell.workdir.on_exit")
	}
	r.put(s)
}

// copyRequired reports whether the project folder must be copied; a folder that is not known is.
func (r *resolver) copyRequired() bool {
	return r.run.Project == "" || slices.ContainsFunc(r.cfg.Admin.RequireCopyFor, func(p string) bool { return CopyCovers(p, r.run.Project, r.run.Home) })
}

// merged is the setting of a list that adds the user's entries to the pack's.
func (r *resolver) merged(key, value string, user, withPack bool) Setting {
	s := r.fromPack(key, value)
	switch {
	case user && withPack:
		s.Source, s.Origin = FromUser, s.Origin+" + openshell."+key
	case user:
		s.Source, s.Origin = FromUser, "openshell."+key
	}
	return s
}

func (r *resolver) mcpImport() {
	s := r.fromPack("mcp.import", strconv.FormatBool(r.pack.MCP.Import))
	if v := r.cfg.MCP.Import; v != nil {
		s.set(strconv.FormatBool(*v), FromUser, "openshell.mcp.import")
	}
	if r.run.NoMCP {
		s.set("false", FromFlag, "--no-mcp")
	}
	if s.Value == "true" && r.required != nil && !r.required.MCP.Import {
		r.clamp(&s, "false", "required_pack", "MCP servers of the host are left behind")
	}
	r.out.MCPImport = s.Value == "true"
	r.put(s)
}

func (r *resolver) hostPorts() {
	access := r.fromPack("mcp.host_port_access", strconv.FormatBool(r.pack.MCP.HostPorts))
	refused := off(r.cfg.Admin.AllowHostPorts)
	if refused && r.pack.MCP.HostPorts {
		access.Requested = access.Value
		access.set("false", FromAdmin, adminKey+"allow_host_ports")
	}
	r.out.HostPortAccess = access.Value == "true"
	r.put(access)

	asked := union(r.cfg.MCP.HostPorts, r.run.HostPorts)
	s := Setting{Key: "mcp.host_ports", Value: ports(asked), Source: FromDefault, Origin: fromDefaults}
	switch user, flag := len(r.cfg.MCP.HostPorts) > 0, len(r.run.HostPorts) > 0; {
	case user && flag:
		s.Source, s.Origin = FromFlag, "openshell.mcp.host_ports + --host-port"
	case flag:
		s.Source, s.Origin = FromFlag, "--host-port"
	case user:
		s.Source, s.Origin = FromUser, "openshell.mcp.host_ports"
	}
	var open []int
	for _, port := range asked {
		v := Violation{Key: s.Key, Source: FromFlag, Attempted: strconv.Itoa(port), Enforced: none}
		if slices.Contains(r.cfg.MCP.HostPorts, port) {
			v.Source = FromUser
		}
		by := FromDefault
		switch what := reserved(port); {
		case what != "":
			v.Constraint, v.Message = fromDefaults, fmt.Sprintf("DefenseClaw never opens %s (port %d) to a sandbox", what, port)
		case refused:
			by, v.Constraint, v.Message = FromAdmin, adminKey+"allow_host_ports", blockedBy+s.Key
		case !r.pack.MCP.HostPorts:
			by, v.Constraint, v.Message = FromPack, r.packOrigin(), r.notByPack(s.Key)
		default:
			open = append(open, port)
			continue
		}
		if s.Requested == "" {
			s.Requested = s.Value
		}
		s.Source, s.Origin = by, v.Constraint
		r.violate(v)
	}
	s.Value, r.out.HostPorts = ports(open), open
	r.put(s)
}

func reserved(port int) string {
	for _, p := range reservedPorts {
		if p.port == port {
			return p.what
		}
	}
	return ""
}

func (r *resolver) egress() {
	r.feeds()
	cfg, admin, own := &r.cfg.Egress, &r.cfg.Admin, &r.pack.Egress

	r.out.Block = union(own.Block, cfg.Block)
	r.put(r.merged("egress.block", patterns(r.out.Block), len(cfg.Block) > 0, true))
	r.out.AdminBlock = widenAll(admin.EgressBlock)
	r.put(adminList("egress.admin_block", "egress_block", r.out.AdminBlock))
	r.allow()
	r.out.AllowOnly = admin.EgressAllowOnly
	r.put(adminList("egress.allow_only", "egress_allow_only", r.out.AllowOnly))
	r.ports()
	r.uploads()
}

func adminList(key, from string, value []Pattern) Setting {
	if len(value) == 0 {
		return Setting{Key: key, Value: none, Source: FromDefault, Origin: fromDefaults}
	}
	return Setting{Key: key, Value: patterns(value), Source: FromAdmin, Origin: adminKey + from}
}

func (r *resolver) feeds() {
	s := r.fromPack("egress.feeds", list(r.pack.Egress.Feeds))
	switch r.cfg.Egress.Feed {
	case "none":
		s.set(none, FromUser, "openshell.egress.feed")
	case "builtin":
		s.set("builtin", FromUser, "openshell.egress.feed")
	}
	if s.Value == none {
		const detail = "the built-in blocklist stays on"
		switch {
		case off(r.cfg.Admin.AllowUnblock):
			r.clamp(&s, "builtin", "allow_unblock", detail)
		case r.required != nil && len(r.required.Egress.Feeds) > 0:
			r.clamp(&s, "builtin", "required_pack", detail)
		}
	}
	r.out.Feed = s.Value == "builtin"
	r.put(s)
}

// allow builds the allow list: the pack's entries, the curated list where the profile but not the pack is balanced, and the user's entries.
func (r *resolver) allow() {
	own, user := r.pack.Egress.Allow, []Pattern(nil)
	for _, p := range r.cfg.Egress.Allow {
		if p.Broad() {
			r.violate(Violation{Key: "egress.allow", Source: FromUser, Attempted: p.text, Enforced: none, Constraint: "openshell.egress.allow",
				Message: "DefenseClaw ignores allow entries that cover every host or a whole top-level domain: egress.allow"})
			continue
		}
		user = append(user, p)
	}
	custom := !r.pack.BuiltIn
	var added []Pattern
	s := r.fromPack("egress.allow", "")
	if r.out.Profile == "balanced" && r.pack.Network != "allowlist" {
		added = curated()
		s.Origin += " + the curated allowlist of pack balanced"
	}
	all := union(union(own, added), user)
	if len(user) > 0 {
		s.Source, s.Origin = FromUser, s.Origin+" + openshell.egress.allow"
	}
	s.Value = patterns(all)

	if off(r.cfg.Admin.AllowUnblock) {
		var dropped []Pattern
		source := FromUser
		if custom && r.required == nil && len(own) > 0 {
			dropped, own = own, nil
			if len(user) == 0 {
				source = FromPack
			}
		}
		dropped, user = slices.Concat(dropped, user), nil
		all = union(own, added)
		// An entry that a built-in list has too is still there.
		if dropped = slices.DeleteFunc(union(nil, dropped), func(p Pattern) bool { return slices.Contains(all, p) }); len(dropped) > 0 {
			s.Requested = s.Value
			s.set(patterns(all), FromAdmin, adminKey+"allow_unblock")
			r.violate(Violation{Key: s.Key, Source: source, Attempted: patterns(dropped), Enforced: s.Value, Constraint: s.Origin, Message: blockedBy + s.Key,
				Detail: "allow entries of users and of packs that they chose do not count"})
		}
	}
	r.out.Allow = all
	if custom {
		r.out.Operator = union(own, user)
	} else {
		r.out.Operator = user
	}
	r.put(s)
}

func (r *resolver) ports() {
	own, proxy := r.pack.Egress.Ports, r.out.Profile != "strict"
	s := r.fromPack("egress.ports", ports(own))
	value := own
	if len(own) == 0 && proxy {
		value = defaultPorts
		s.set(ports(value), FromDefault, fmt.Sprintf("%s (pack %s lists no ports)", fromDefaults, r.pack.Name))
	}
	if user := r.cfg.Egress.Ports; len(user) > 0 {
		limit := value
		value = user
		s.set(ports(user), FromUser, "openshell.egress.ports")
		if r.required != nil && !subset(user, limit) {
			value = slices.DeleteFunc(slices.Clone(user), func(p int) bool { return !slices.Contains(limit, p) })
			if len(value) == 0 {
				value = limit
			}
			r.clamp(&s, ports(value), "required_pack", "only ports of the required pack")
		}
	}
	r.out.Ports = slices.Clone(value)
	r.put(s)
}

func (r *resolver) uploads() {
	own, cfg, admin := &r.pack.Egress, &r.cfg.Egress, &r.cfg.Admin
	size := r.fromPack("egress.large_upload_mb", strconv.Itoa(own.LargeUploadMB))
	threshold := own.LargeUploadMB
	if cfg.LargeUploadMB > 0 {
		threshold = cfg.LargeUploadMB
		size.set(strconv.Itoa(threshold), FromUser, "openshell.egress.large_upload_mb")
	}
	block := r.fromPack("egress.block_large_uploads", strconv.FormatBool(own.BlockLargeUploads))
	if v := cfg.BlockLargeUploads; v != nil && *v {
		block.set("true", FromUser, "openshell.egress.block_large_uploads")
	}
	switch {
	case admin.BlockLargeUploads:
		most := 25
		if r.required != nil {
			most = max(most, r.required.Egress.LargeUploadMB)
		}
		if threshold == 0 || threshold > most {
			threshold = most
			r.clamp(&size, strconv.Itoa(most), "block_large_uploads", fmt.Sprintf("uploads of more than %d MB are cut off", most))
		}
		if block.Value == "false" {
			block.Requested = "false"
		}
		block.set("true", FromAdmin, adminKey+"block_large_uploads")
	case block.Value == "true" && threshold == 0:
		if r.chosen(&block) {
			r.violate(Violation{Key: block.Key, Source: block.Source, Attempted: "true", Enforced: "false", Constraint: size.Key,
				Message: "a block of large uploads needs a threshold above 0: " + block.Key, Detail: size.Key + " is 0"})
		}
		block.Requested = "true"
		block.set("false", size.Source, size.Origin)
	}
	r.out.LargeUploadMB, r.out.BlockLargeUploads = threshold, block.Value == "true"
	r.put(size)
	r.put(block)
}

func (r *resolver) mcpRest() {
	r.put(r.fromPack("mcp.blocked_tools", list(r.pack.MCP.BlockedTools)))
	r.put(r.fromPack("mcp.project_servers", r.pack.MCP.ProjectServers))
}

func (r *resolver) resources() {
	cfg, admin := &r.cfg.Resources, &r.cfg.Admin.MaxResources
	r.out.Resources.CPU = r.resource("cpu", cfg.CPU, r.run.CPU, admin.CPU, ParseCPU)
	r.out.Resources.Memory = r.resource("memory", cfg.Memory, r.run.Memory, admin.Memory, ParseMemory)
}

// resource returns the effective quantity, "" for no limit.
func (r *resolver) resource(name, user, flag, ceiling string, parse func(string) (int64, error)) string {
	s := Setting{Key: "resources." + name, Value: unlimited, Source: FromDefault, Origin: fromDefaults}
	if user != "" {
		s.set(user, FromUser, "openshell.resources."+name)
	}
	if flag != "" {
		s.set(flag, FromFlag, "--"+name)
	}
	if ceiling != "" && (s.Value == unlimited || higher(ceiling, s.Value, parse)) {
		r.clamp(&s, ceiling, "max_resources", "at most "+ceiling)
	}
	r.put(s)
	if s.Value == unlimited {
		return ""
	}
	return s.Value
}

func (r *resolver) learn() {
	s := Setting{Key: "learn", Value: "false", Source: FromDefault, Origin: fromDefaults}
	if r.run.Learn {
		s.set("true", FromFlag, "--learn")
		if off(r.cfg.Admin.AllowLearnMode) {
			r.clamp(&s, "false", "allow_learn_mode", "learn mode is refused")
		}
	}
	r.out.Learn = s.Value == "true"
	r.put(s)
}

func list(values []string) string {
	if len(values) == 0 {
		return none
	}
	return strings.Join(values, ", ")
}

func ports(values []int) string {
	texts := make([]string, len(values))
	for i, p := range values {
		texts[i] = strconv.Itoa(p)
	}
	return list(texts)
}

func patterns(values []Pattern) string {
	texts := make([]string, len(values))
	for i, p := range values {
		texts[i] = p.text
	}
	return list(texts)
}
