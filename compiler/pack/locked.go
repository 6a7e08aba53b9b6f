package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// packKeys are the settings that a pack decides, in the order in which a lock on them refuses a run's pack.
var packKeys = []string{"pack", "profile", "yolo", "workdir.mode", "workdir.unmask", "mcp.import", "mcp.host_ports"}

// locks drops the run's options that openshell.admin.locked refuses. The run continues with the configured value: the required pack, else openshell.pack, else open,
// and the user's keys.
func (r *resolver) locks() error {
	locked := func(key string) bool { return slices.Contains(r.cfg.Admin.Locked, key) }
	base := r.required
	if base == nil {
		ref, layer := r.cfg.Pack, "openshell.pack"
		if ref == "" {
			ref, layer = "open", "default pack"
		}
		var err error
		if base, err = r.load(ref, layer); err != nil {
			return err
		}
	}
	profile := r.cfg.Profile
	if profile == "" {
		profile = base.Profile()
	}
	yolo := base.Harness.Yolo
	if r.cfg.Yolo != nil {
		yolo = *r.cfg.Yolo
	}
	unmask := union(base.Workspace.Unmask, r.cfg.Workdir.Unmask)

	run := &r.run
	if locked("profile") && run.Profile != "" && rank(profiles, run.Profile) < rank(profiles, profile) {
		r.drop("profile", "--profile "+run.Profile, profile, "the configured profile is "+profile)
		run.Profile = ""
	}
	// Before the pack is judged: an option that is dropped leaves the setting to the pack.
	if locked("yolo") && !yolo && run.Yolo != nil && *run.Yolo {
		r.drop("yolo", "--yolo", "false", "the harness keeps its permission prompts")
		run.Yolo = nil
	}
	if r.required == nil && strings.TrimSpace(run.Pack) != "" {
		if err := r.lockPack(base, profile, unmask, locked); err != nil {
			return err
		}
	}
	if locked("workdir.unmask") {
		run.Unmask = slices.DeleteFunc(run.Unmask, func(g string) bool {
			refused := !slices.Contains(unmask, g)
			if refused {
				r.drop("workdir.unmask", "--unmask "+g, list(unmask), fmt.Sprintf("%q is not unmasked by the pack or by openshell.workdir.unmask", g))
			}
			return refused
		})
	}
	if locked("mcp.host_ports") {
		run.HostPorts = slices.DeleteFunc(run.HostPorts, func(p int) bool {
			refused := !slices.Contains(r.cfg.MCP.HostPorts, p)
			if refused {
				r.drop("mcp.host_ports", "--host-port "+strconv.Itoa(p), ports(r.cfg.MCP.HostPorts), fmt.Sprintf("port %d is not in openshell.mcp.host_ports", p))
			}
			return refused
		})
	}
	if locked("resources") {
		if higher(r.cfg.Resources.CPU, run.CPU, ParseCPU) && run.CPU != "" {
			r.drop("resources", "--cpu "+run.CPU, r.cfg.Resources.CPU, "openshell.resources.cpu is "+r.cfg.Resources.CPU)
			run.CPU = ""
		}
		if higher(r.cfg.Resources.Memory, run.Memory, ParseMemory) && run.Memory != "" {
			r.drop("resources", "--memory "+run.Memory, r.cfg.Resources.Memory, "openshell.resources.memory is "+r.cfg.Resources.Memory)
			run.Memory = ""
		}
	}
	return nil
}

// drop reports a run option that a lock refuses.
func (r *resolver) drop(key, attempted, enforced, why string) {
	r.violate(Violation{Key: key, Source: FromFlag, Attempted: attempted, Enforced: enforced, Constraint: adminKey + "locked", Message: blockedBy + key,
		Detail: fmt.Sprintf("your organization locked %s; %s; the run uses the configured value", key, why)})
}

// lockPack compares a run's pack with the configured one under every lock on a setting that the pack would decide.
func (r *resolver) lockPack(base *Pack, profile string, unmask []string, locked func(string) bool) error {
	first := slices.IndexFunc(packKeys, locked)
	if first < 0 {
		return nil
	}
	run, ref := &r.run, strings.TrimSpace(r.run.Pack)
	next, err := r.load(ref, "--pack "+ref)
	if err != nil {
		r.drop(packKeys[first], "--pack "+ref, base.Name, "the pack cannot be loaded for the comparison")
		run.Pack = ""
		return nil
	}
	if next.Digest == base.Digest {
		return nil
	}
	refused := func(key, why string) bool {
		if !locked(key) || why == "" {
			return false
		}
		r.drop(key, "--pack "+ref, base.Name, why)
		run.Pack = ""
		return true
	}
	mode := next.Network
	if p := cmp.Or(run.Profile, r.cfg.Profile); p != "" {
		mode = modeOf(p)
	}
	looser := ""
	if key := Looser(base, next, mode); key != "" {
		looser = fmt.Sprintf("the pack %s is looser than %s in %s", next.Name, base.Name, key)
	}
	why := func(cond bool, what string) string {
		if cond {
			return fmt.Sprintf("the pack %s %s", next.Name, what)
		}
		return ""
	}
	masks := union(next.Workspace.Masks, r.cfg.Workdir.Masks)
	_ = refused("pack", looser) ||
		refused("profile", why(run.Profile == "" && r.cfg.Profile == "" && rank(profiles, next.Profile()) < rank(profiles, profile), "has a looser profile")) ||
		refused("yolo", why(r.cfg.Yolo == nil && !run.Safe && run.Yolo == nil && next.Harness.Yolo && !base.Harness.Yolo, "skips permission prompts")) ||
		refused("workdir.mode", why(r.cfg.Workdir.Mode == "" && !run.Copy && next.Workspace.Mode == "mount" && base.Workspace.Mode == "copy", "mounts the project")) ||
		refused("workdir.unmask", why(!subset(base.Workspace.Masks, masks) || !subset(next.Workspace.Unmask, unmask), "shows files that the configuration masks")) ||
		refused("mcp.import", why(r.cfg.MCP.Import == nil && !run.NoMCP && next.MCP.Import && !base.MCP.Import, "imports MCP servers")) ||
		refused("mcp.host_ports", why(next.MCP.HostPorts && !base.MCP.HostPorts, "opens host ports"))
	return nil
}
