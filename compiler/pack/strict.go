package pack

import (
	"slices"
	"strings"
)

// Looser compares two packs as openshell.admin.locked does: it returns the first key, in DefenseClaw's order, in which next is looser than base, "" when next
// is at least as strict in every setting. mode is the network mode that a run with next would have, "" for next's own; under deny the egress keys do not count.
func Looser(base, next *Pack, mode string) string {
	if mode == "" {
		mode = next.Network
	}
	checks := []struct {
		key    string
		looser bool
	}{
		{"network.mode", rank(networkModes, next.Network) < rank(networkModes, base.Network)},
		{"approvals.mode", rank(approvalModes, next.Approvals) < rank(approvalModes, base.Approvals)},
		{"harness.yolo", next.Harness.Yolo && !base.Harness.Yolo},
		{"harness.allowed", widerHarnesses(base.Harness.Allowed, next.Harness.Allowed)},
		{"workspace.mode", rank(workspaceModes, next.Workspace.Mode) < rank(workspaceModes, base.Workspace.Mode)},
		{"workspace.masks", !subset(base.Workspace.Masks, next.Workspace.Masks)},
		{"workspace.unmask", len(next.Workspace.Masks) > 0 && !subset(next.Workspace.Unmask, base.Workspace.Unmask)},
		{"workspace.review", !subset(base.Workspace.Review, next.Workspace.Review)},
		{"workspace.max_upload_mb", next.Workspace.MaxUploadMB > base.Workspace.MaxUploadMB},
		{"mcp.import", next.MCP.Import && !base.MCP.Import},
		{"mcp.host_ports", next.MCP.HostPorts && !base.MCP.HostPorts},
		{"mcp.blocked_tools", !subset(base.MCP.BlockedTools, next.MCP.BlockedTools)},
		{"mcp.project_servers", next.MCP.ProjectServers == "allow" && base.MCP.ProjectServers == "block"},
		{"hooks.on_tamper", next.Hooks.OnTamper == "alert" && base.Hooks.OnTamper == "stop"},
	}
	for _, c := range checks {
		if c.looser {
			return c.key
		}
	}
	if mode == "deny" {
		return ""
	}
	return looserEgress(base, next)
}

func looserEgress(base, next *Pack) string {
	b, n := &base.Egress, &next.Egress
	switch {
	case !subset(b.Feeds, n.Feeds):
		return "egress.feeds"
	case !allCovered(n.Block, b.Block):
		return "egress.block"
	case !allCovered(append(slices.Clip(b.Allow), curated()...), n.Allow):
		return "egress.allow"
	case !subset(n.Ports, b.Ports):
		return "egress.ports"
	case b.LargeUploadMB > 0 && (n.LargeUploadMB == 0 || n.LargeUploadMB > b.LargeUploadMB):
		return "egress.large_upload_mb"
	case b.BlockLargeUploads && !n.BlockLargeUploads:
		return "egress.block_large_uploads"
	}
	return ""
}

// curated is the curated list: the allow list of the balanced pack.
func curated() []Pattern {
	p, err := Builtin("balanced")
	if err != nil {
		return nil
	}
	return p.Egress.Allow
}

// widerHarnesses reports whether next lets a harness run that base does not; an empty list is any.
func widerHarnesses(base, next []string) bool {
	return len(base) > 0 && (len(next) == 0 || !subset(next, base))
}

func subset[T comparable](part, whole []T) bool {
	for _, v := range part {
		if !slices.Contains(whole, v) {
			return false
		}
	}
	return true
}

// allCovered reports whether every pattern of list is covered by one of cover.
func allCovered(cover, list []Pattern) bool {
	for _, p := range list {
		if !anyCovers(cover, p) {
			return false
		}
	}
	return true
}

// LooserPolicy compares two resolved policies, both resolved without run options: it returns the first setting or administrator's key in which next is looser than
// base, "" when next is at least as strict in every one. It is what a unit's sandbox must pass against its ring's, so it also asks that next limits its users
// as much as base does.
func LooserPolicy(base, next *Policy) string {
	strict := next.Profile == "strict"
	proxy := func(looser bool) bool { return !strict && looser }
	// A base whose default is to allow reaches every public name already.
	open := base.Profile == "open" && len(base.AllowOnly) == 0
	reach := slices.Concat(base.Allow, base.AllowOnly)
	if len(base.AllowOnly) > 0 {
		reach = base.AllowOnly
	}
	opens := func(p Pattern) bool { return !anyCovers(reach, p) && (!open || !publicName(p)) }
	allowCover := base.Allow
	if open {
		allowCover = append(slices.Clip(base.Allow), curated()...)
	}
	a, b := &next.Admin, &base.Admin
	checks := []struct {
		key    string
		looser bool
	}{
		{"profile", rank(profiles, next.Profile) < rank(profiles, base.Profile)},
		{"approvals.mode", rank(approvalModes, next.Approvals) < rank(approvalModes, base.Approvals)},
		{"yolo", next.Yolo && !base.Yolo},
		{"harness.allowed", base.HarnessLimited && (!next.HarnessLimited || !subset(next.HarnessAllowed, base.HarnessAllowed))},
		{"workdir.mode", rank(workspaceModes, next.WorkdirMode) < rank(workspaceModes, base.WorkdirMode)},
		{"workdir.masks", !subset(base.Masks, next.Masks)},
		{"workdir.unmask", len(next.Masks) > 0 && !subset(next.Unmask, base.Unmask)},
		{"workdir.review", !subset(base.Review, next.Review)},
		{"workdir.max_upload_mb", next.MaxUploadMB > base.MaxUploadMB},
		{"egress.feeds", proxy(base.Feed && !next.Feed)},
		{"egress.block", proxy(!allCovered(slices.Concat(next.Block, next.AdminBlock), base.Block))},
		{"egress.admin_block", !allCovered(next.AdminBlock, base.AdminBlock)},
		{"egress.allow", proxy(!allCovered(allowCover, next.Allow))},
		{"egress.allow_only", len(base.AllowOnly) > 0 && len(next.AllowOnly) == 0 || proxy(slices.ContainsFunc(next.AllowOnly, opens))},
		{"egress.ports", proxy(!subset(next.Ports, base.Ports))},
		{"egress.large_upload_mb", proxy(base.LargeUploadMB > 0 && (next.LargeUploadMB == 0 || next.LargeUploadMB > base.LargeUploadMB))},
		{"egress.block_large_uploads", proxy(base.BlockLargeUploads && !next.BlockLargeUploads)},
		{"mcp.import", next.MCPImport && !base.MCPImport},
		{"mcp.host_port_access", next.HostPortAccess && !base.HostPortAccess},
		{"mcp.host_ports", !subset(next.HostPorts, base.HostPorts)},
		{"mcp.blocked_tools", !subset(base.Pack.MCP.BlockedTools, next.Pack.MCP.BlockedTools)},
		{"mcp.project_servers", next.Pack.MCP.ProjectServers == "allow" && base.Pack.MCP.ProjectServers == "block"},
		{"resources.cpu", higher(base.Resources.CPU, next.Resources.CPU, ParseCPU)},
		{"resources.memory", higher(base.Resources.Memory, next.Resources.Memory, ParseMemory)},
		{"learn", next.Learn && !base.Learn},
		{"hooks.on_tamper", next.Pack.Hooks.OnTamper == "alert" && base.Pack.Hooks.OnTamper == "stop"},
		{"admin.required_pack", b.RequiredPack != "" && (a.RequiredPack == "" || next.Pack.Digest != base.Pack.Digest && Looser(base.Pack, next.Pack, "") != "")},
		{"admin.required_pack_digest", b.RequiredPackDigest != "" && a.RequiredPackDigest == ""},
		{"admin.min_profile", rank(profiles, a.MinProfile) < rank(profiles, b.MinProfile)},
		{"admin.allow_yolo", off(b.AllowYolo) && !off(a.AllowYolo)},
		{"admin.allow_mount", off(b.AllowMount) && !off(a.AllowMount)},
		{"admin.allow_host_ports", off(b.AllowHostPorts) && !off(a.AllowHostPorts)},
		{"admin.allow_unblock", off(b.AllowUnblock) && !off(a.AllowUnblock)},
		{"admin.allow_learn_mode", off(b.AllowLearnMode) && !off(a.AllowLearnMode)},
		{"admin.allowed_harnesses", widerHarnesses(b.AllowedHarnesses, a.AllowedHarnesses)},
		{"admin.block_large_uploads", b.BlockLargeUploads && !a.BlockLargeUploads},
		{"admin.require_copy_for", !off(a.AllowMount) && !subset(b.RequireCopyFor, a.RequireCopyFor)},
		{"admin.max_resources.cpu", higher(b.MaxResources.CPU, a.MaxResources.CPU, ParseCPU)},
		{"admin.max_resources.memory", higher(b.MaxResources.Memory, a.MaxResources.Memory, ParseMemory)},
		{"admin.locked", !subset(b.Locked, a.Locked)},
	}
	for _, c := range checks {
		if c.looser {
			return c.key
		}
	}
	return ""
}

// higher reports whether next allows more than base; an empty quantity is no limit.
func higher(base, next string, parse func(string) (int64, error)) bool {
	if base == "" {
		return false
	}
	have, err := parse(base)
	if err != nil || next == "" {
		return err == nil
	}
	want, err := parse(next)
	return err != nil || want > have
}

// publicName reports whether everything that p matches is a public name, which an open profile without feed entries reaches by default.
func publicName(p Pattern) bool {
	if p.prefix.IsValid() {
		return false
	}
	for _, guard := range mustPatterns(privateNetworks) {
		if guard.Covers(p) || p.Wildcard() && strings.HasSuffix(guard.text, p.text[1:]) {
			return false
		}
	}
	return true
}
