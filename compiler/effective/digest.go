package effective

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Digest identifies what a policy means to a renderer: policies of equal digest render to equal files. Places and document names do not count, but for
// the profile name, which some harnesses show.
func (p *Policy) Digest() [sha256.Size]byte {
	w := writer{buf: make([]byte, 0, 4096)}
	w.str(p.Profile)
	for _, h := range p.Harnesses {
		w.str(h.Harness.V)
		w.str(h.Version.V)
		w.str(h.Model.V)
		if len(h.Overrides) > 0 {
			// Override values are plain data that encoding/json writes with sorted keys.
			b, _ := json.Marshal(h.Overrides)
			w.str(string(b))
		}
	}
	w.str(p.Models.Default.V)
	w.strs(p.Models.Allowed)
	w.bool(p.Models.Enforce)
	w.str(p.Permissions.Mode.V)
	w.strs(p.Permissions.Allow)
	w.strs(p.Permissions.Ask)
	w.strs(p.Permissions.Deny)
	w.bool(p.Permissions.DisableBypass)
	w.bool(p.Permissions.SandboxRequired)
	w.str(p.Sandbox.Mode.V)
	w.paths(p.Sandbox.WritableRoots)
	w.paths(p.Sandbox.ProtectedPaths)
	w.str(p.Sandbox.Policy.V)
	if p.Box != nil {
		w.str(string(p.Box.Digest[:]))
	}
	w.str(p.Egress.Default.V)
	w.entries(p.Hosts.Allowed())
	w.entries(p.Hosts.Denied())
	w.mark(p.Egress.Written())
	w.bool(p.MCP.ManagedOnly)
	w.mark(p.MCP.ServersPos.IsValid())
	for _, s := range p.MCP.Servers {
		w.str(s.Name.V)
		w.str(s.URL.V)
		w.strs(s.Command)
		w.pairs(s.Headers)
	}
	w.strs(p.MCP.Denied)
	w.bool(p.Hooks.ManagedOnly)
	for _, h := range p.Hooks.Items {
		w.str(h.Event.V)
		w.str(h.Matcher.V)
		w.str(h.Command.V)
	}
	w.bool(p.Telemetry.Enabled)
	w.str(p.Telemetry.OTLPEndpoint.V)
	w.str(p.Telemetry.Protocol.V)
	w.bool(p.Telemetry.LogPrompts)
	w.pairs(p.Telemetry.Attributes)
	w.str(p.Instructions.V)
	w.pairs(p.Env)
	return sha256.Sum256(w.buf)
}

// overlayDigest identifies what an overlay says, so that units with equal overlays share one policy. It is written to w, which is empty.
func overlayDigest(b *policy.Body, w *writer) [sha256.Size]byte {
	w.strs(b.Permissions.Deny)
	w.bool(b.Permissions.SandboxRequired)
	w.str(b.Sandbox.Mode.V)
	w.paths(b.Sandbox.WritableRoots)
	w.paths(b.Sandbox.ProtectedPaths)
	w.str(b.Sandbox.Policy.V)
	w.str(b.Egress.Default.V)
	w.hosts(b.Egress.AllowedDomains)
	w.strs(b.Egress.Presets)
	w.hosts(b.Egress.DeniedDomains)
	w.strs(b.MCP.Denied)
	return sha256.Sum256(w.buf)
}

// writer writes values so that no two different sequences of values give the same bytes.
type writer struct{ buf []byte }

func (w *writer) num(n int) { w.buf = binary.AppendUvarint(w.buf, uint64(n)) }

func (w *writer) str(s string) {
	w.num(len(s))
	w.buf = append(w.buf, s...)
}

func (w *writer) mark(b bool) {
	if b {
		w.buf = append(w.buf, 1)
		return
	}
	w.buf = append(w.buf, 0)
}

func (w *writer) bool(b source.Bool) {
	w.mark(b.IsSet())
	w.mark(b.V)
}

func (w *writer) strs(l source.Strs) {
	w.mark(l.IsSet())
	w.num(len(l.Items))
	for _, s := range l.Items {
		w.str(s.V)
	}
}

func (w *writer) pairs(ps []source.Pair) {
	w.num(len(ps))
	for _, p := range ps {
		w.str(p.Key.V)
		w.str(p.Value.V)
	}
}

func (w *writer) paths(l policy.FilePaths) {
	w.mark(l.IsSet())
	w.num(len(l.Items))
	for _, p := range l.Items {
		w.str(p.Path.String())
	}
}

func (w *writer) hosts(l policy.Hosts) {
	w.mark(l.IsSet())
	w.num(len(l.Items))
	for _, h := range l.Items {
		w.str(h.Pattern.String())
	}
}

func (w *writer) entries(es []egress.Entry) {
	w.num(len(es))
	for _, e := range es {
		w.str(e.Field)
		w.str(e.Name)
		w.str(e.Pattern.String())
	}
}
