package diff

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/pack"
)

// Side is one of the two things compared.
type Side struct {
	Name Name
	// Judged says that whoever compares tells readers how far a release can be trusted, so that no note does.
	Judged bool
	// compiled is set for a policy, manifest for a release.
	compiled *compiler.Compiled
	manifest *artifacts.Manifest
	from     artifacts.FS

	targets    []*target
	byID       map[string]*target
	presets    map[string][]string
	packs      map[string]string
	exceptions map[string][]string
	warnings   []Warning
	gateway    string
	// errors counts the errors of a policy.
	errors int
}

// target is a target of a side.
type target struct {
	side     *Side
	id, ring string
	units    []string
	policy   *effective.Policy
	hosts    *egress.Policy
	content  *content
	// pins are the versions by harness.
	pins map[string]string
}

// content is what is rendered for a target. Targets share it.
type content struct {
	files []file
	lacks []lack
	// plan is what a policy comes to, nil in a release.
	plan *compiler.Plan
	// harnesses are those that are managed.
	harnesses map[string]bool
}

// file is a rendered file: its bytes, or its digest and where to read them.
type file struct {
	harness, os, dest, attributes string
	data                          []byte
	// policy is the parsed policy.yaml of an OpenShell agent.
	policy *openshell.Policy
	sum    string
	from   fs.FS
	path   string
}

// lack is a gap of one harness on one system.
type lack struct{ harness, os, code, field, message string }

// respelled is the gap with one spelling for the sandbox mode, which has two.
func (l lack) respelled() lack {
	if l.field == "permissions.sandbox" {
		l.field = "sandbox.mode"
	}
	l.message = strings.ReplaceAll(l.message, `"permissions.sandbox"`, `"sandbox.mode"`)
	return l
}

// Policy makes a side of a compiled policy whose files were kept. Diags are its findings; what errors touch is not known, and so counts as looser.
func Policy(name Name, c *compiler.Compiled, diags []diag.Diagnostic) *Side {
	s := &Side{Name: name, compiled: c, byID: map[string]*target{}, presets: map[string][]string{}, packs: map[string]string{}, exceptions: map[string][]string{}}
	if g := c.Repo.Gateway; g != nil {
		s.gateway = g.BaseURL.V
	}
	contents := map[*compiler.Plan]*content{}
	for i := range c.Targets {
		t := &c.Targets[i]
		out := &target{side: s, id: t.ID, ring: t.Ring.Name.V, policy: t.Policy, hosts: t.Policy.Hosts, pins: map[string]string{}}
		for _, u := range t.Units {
			out.units = append(out.units, u.Name.V)
		}
		for _, p := range t.Policy.Harnesses {
			out.pins[p.Harness.V] = p.Version.V
		}
		plan := c.Plan(*t)
		if contents[plan] == nil {
			contents[plan] = s.planned(plan)
		}
		out.content = contents[plan]
		s.add(out)
		for _, name := range t.Policy.Egress.Presets.Items {
			if s.presets[name.V] == nil {
				ps, _ := c.Resolver.Preset(name.V)
				for _, p := range ps {
					s.presets[name.V] = append(s.presets[name.V], p.String())
				}
			}
		}
	}
	for _, p := range c.Permits {
		s.exceptions[p.Exception.Name.V] = append(s.exceptions[p.Exception.Name.V], p.Loosening.Witness)
	}
	gaps := map[*diag.Code]bool{}
	for g := harness.None; g <= harness.Enforced; g++ {
		gaps[compiler.GapCode(harness.Gap{Grade: g})] = true
	}
	sandboxGaps := map[string]bool{}
	for _, c := range contents {
		for _, l := range c.lacks {
			if l.harness == "" {
				sandboxGaps[l.code+l.message] = true
			}
		}
	}
	for _, d := range diags {
		if d.Severity == diag.Error {
			s.errors++
		}
		if d.Severity != diag.Warning || gaps[d.Code] || sandboxGaps[d.Code.ID+d.Message] {
			continue
		}
		file := c.Repo.Files.Name(d.Pos)
		if file == "" {
			file = d.File
		}
		at := d.Document
		if at == "" {
			at = file
		}
		s.warnings = append(s.warnings, Warning{Code: d.Code.ID, File: file, Line: d.Pos.Line(), Message: d.Message,
			key: strings.Join([]string{d.Code.ID, at, unindexed(d.Path), d.Message}, "\x00")})
	}
	return s
}

// planned lists what a plan comes to.
func (s *Side) planned(p *compiler.Plan) *content {
	c := &content{harnesses: map[string]bool{}, plan: p}
	if p == nil {
		return c
	}
	for _, r := range p.Renderings {
		c.harnesses[r.Harness.ID] = true
		for _, f := range r.Files {
			c.files = append(c.files, file{harness: r.Harness.ID, os: r.OS, dest: f.Dest, attributes: fmt.Sprintf("%s %04o", f.Owner, f.Mode), data: f.Content})
		}
		for _, g := range r.Gaps {
			c.lacks = append(c.lacks, lack{r.Harness.ID, r.OS, compiler.GapCode(g).ID, strings.TrimSpace(g.Field + " " + g.Entry), g.Reason})
		}
	}
	for i := range p.OpenShell {
		f := &p.OpenShell[i]
		c.files = append(c.files, file{harness: openshellOf(f.Agent), dest: "policy.yaml", data: f.Content, policy: f.Policy})
		c.harnesses[openshellOf(f.Agent)] = true
		for _, g := range f.Gaps {
			c.lacks = append(c.lacks, lack{code: g.Finding.Code.ID, field: "sandbox.policy " + p.Sandbox.Doc.Name.V, message: g.Finding.Message})
		}
	}
	if p.Sandbox != nil && p.Sandbox.Config != nil {
		c.files = append(c.files, file{harness: defenseclaw, dest: "config.yaml", data: pack.PrintConfig(p.Sandbox.Config)})
		c.harnesses[defenseclaw] = true
		used := cmp.Or(p.Sandbox.Config.Admin.RequiredPack, p.Sandbox.Config.Pack)
		for _, x := range p.Sandbox.Packs {
			s.packs[x.Name] = x.Digest
			if x.Name == used {
				c.files = append(c.files, file{harness: defenseclaw, dest: packPath(x.Name), data: x.Data})
			}
		}
	}
	return c
}

// packPath is the place of a pack in a release.
func packPath(name string) string { return "packs/" + name + "/" + pack.FileName }

// What reads the files of a sandbox, beside the harnesses.
const defenseclaw = "defenseclaw"

func openshellOf(agent string) string { return "openshell " + agent }

// unindexed takes the indexes out of a key path, because an entry that moves within its list is the same entry.
func unindexed(path string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(path, "[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		if _, path, ok = strings.Cut(rest, "]"); !ok {
			return b.String()
		}
	}
}

// Release reads a release, a directory or an archive, without verifying it. Its files are read when they are compared; Close ends that.
func Release(dir string) (*Side, error) {
	fsys, err := artifacts.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", dir, err)
	}
	s, err := ReleaseIn(dir, fsys)
	if err != nil {
		fsys.Close()
		return nil, err
	}
	return s, nil
}

// ReleaseIn is Release for files that are open already, under the given name. Unless it fails, closing the side closes them.
func ReleaseIn(name string, fsys artifacts.FS) (*Side, error) {
	m, data, err := artifacts.ManifestOf(fsys)
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", name, err)
	}
	s, err := release(name, fsys, m, artifacts.Digest(data))
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", name, err)
	}
	return s, nil
}

// Close closes the files of a release.
func (s *Side) Close() error {
	if s == nil || s.from == nil {
		return nil
	}
	return s.from.Close()
}

func release(name string, fsys artifacts.FS, m *artifacts.Manifest, digest string) (*Side, error) {
	s := &Side{Name: Name{Kind: "release", Name: name, Digest: digest, Commit: m.Source.Commit}, manifest: m, from: fsys, byID: map[string]*target{},
		presets: m.Presets, packs: map[string]string{}, exceptions: map[string][]string{}}
	pins, err := releasePins(fsys, m)
	if err != nil {
		return nil, fmt.Errorf("coverage.json: %w", err)
	}
	gaps := map[string][]lack{}
	for _, w := range m.Warnings {
		if w.Target == "" {
			s.warnings = append(s.warnings, Warning{Code: w.Code, Message: w.Message, key: w.Code + "\x00" + w.Message})
			continue
		}
		gaps[w.Target] = append(gaps[w.Target], lack{w.Harness, w.OS, w.Code, w.Field, w.Message})
	}
	for _, t := range m.Targets {
		out := s.byID[t.ID]
		if out == nil {
			hosts, err := hostsOf(m.Egress[t.ID])
			if err != nil {
				return nil, fmt.Errorf("egress of %s: %w", t.ID, err)
			}
			out = &target{side: s, id: t.ID, ring: t.Ring, units: t.Units, hosts: hosts, pins: pins[t.Ring], content: &content{harnesses: map[string]bool{}}}
			out.content.lacks = gaps[t.ID]
			if t.ID != t.Ring {
				// A release lists what the harnesses of a ring lack once, for the ring; what a sandbox lacks it lists for each target.
				ring := slices.DeleteFunc(slices.Clone(gaps[t.Ring]), func(l lack) bool { return l.harness == "" })
				out.content.lacks = slices.Concat(gaps[t.ID], ring)
			}
			s.add(out)
		}
		for _, f := range t.Files {
			listed, _ := m.File(f.Path)
			out.content.harnesses[f.Harness] = true
			out.content.files = append(out.content.files, file{harness: f.Harness, os: t.OS, dest: f.Dest, attributes: f.Owner + " " + f.Mode, sum: listed.SHA256, from: fsys, path: f.Path})
		}
	}
	for _, x := range m.Sandboxes {
		t := s.byID[x.Target]
		if t == nil || x.Path == "" {
			continue
		}
		listed, _ := m.File(x.Path)
		f := file{harness: defenseclaw, dest: "config.yaml", sum: listed.SHA256, from: fsys, path: x.Path}
		if x.Agent != "" {
			f.harness, f.dest = openshellOf(x.Agent), "policy.yaml"
		}
		t.content.files = append(t.content.files, f)
		t.content.harnesses[f.harness] = true
		if listed, ok := m.File(packPath(x.Pack)); ok && x.PackDigest != "" {
			t.content.files = append(t.content.files, file{harness: defenseclaw, dest: listed.Path, sum: listed.SHA256, from: fsys, path: listed.Path})
		}
	}
	for _, p := range m.Packs {
		s.packs[p.Name] = p.Digest
	}
	for _, e := range m.Exceptions {
		s.exceptions[e.Name] = append(s.exceptions[e.Name], e.Witness)
	}
	return s, nil
}

// releasePins reads the versions that each ring is pinned to from the release's coverage.
func releasePins(fsys fs.FS, m *artifacts.Manifest) (map[string]map[string]string, error) {
	f, ok := m.File("coverage.json")
	if !ok {
		return nil, nil
	}
	data, err := (&file{from: fsys, path: f.Path, sum: f.SHA256}).read()
	if err != nil {
		return nil, err
	}
	var doc struct {
		Rings []struct {
			Ring      string
			Harnesses []struct{ Harness, Version string }
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, r := range doc.Rings {
		out[r.Ring] = map[string]string{}
		for _, h := range r.Harnesses {
			out[r.Ring][h.Harness] = h.Version
		}
	}
	return out, nil
}

// hostsOf compiles the egress rules that a release records.
func hostsOf(e artifacts.Egress) (*egress.Policy, error) {
	if e.Default != "allow" && e.Default != "deny" {
		return nil, fmt.Errorf("default %q is neither allow nor deny", e.Default)
	}
	entries := func(list []string, field string, parse func(string) (host.Pattern, *host.Problem)) ([]egress.Entry, error) {
		var out []egress.Entry
		for _, s := range list {
			p, problem := parse(s)
			if problem != nil {
				return nil, fmt.Errorf("%q is not a host pattern", s)
			}
			out = append(out, egress.Entry{Pattern: p, Field: field, Name: s})
		}
		return out, nil
	}
	allowed, err := entries(e.Allowed, "egress.allowedDomains", host.ParsePattern)
	if err != nil {
		return nil, err
	}
	denied, err := entries(e.Denied, "egress.deniedDomains", host.ParseDenyPattern)
	if err != nil {
		return nil, err
	}
	return egress.Compile(egress.Rules{Allowed: allowed, Denied: denied, Default: e.Default}), nil
}

func (s *Side) add(t *target) {
	s.targets = append(s.targets, t)
	s.byID[t.id] = t
}

func (s *Side) target(id string) *target { return s.byID[id] }

// stands returns the target of s that the people of t, a target of the other side that s lacks, had before or have now: the ring with those of the units that
// apply there, else the ring alone, and for a ring that s lacks the same of the ring of everybody else. Nil means that nothing says so: there is
// no such ring, or s has errors, so that t may be missing because of them.
func (s *Side) stands(t *target) *target {
	if s.errors > 0 {
		return nil
	}
	ring := t.ring
	if s.target(ring) == nil {
		if ring = s.defaultRing(); ring == "" {
			return nil
		}
	}
	var units []string
	for _, u := range t.units {
		if s.target(effective.TargetID(ring, []string{u})) != nil {
			units = append(units, u)
		}
	}
	if at := s.target(effective.TargetID(ring, units)); at != nil {
		return at
	}
	return s.target(ring)
}

func (s *Side) defaultRing() string {
	if s.compiled == nil {
		return ""
	}
	if r := s.compiled.Repo.DefaultRing(); r != nil {
		return r.Name.V
	}
	return ""
}

func (s *Side) place(side string, p diag.Pos) Place {
	if s.compiled == nil || !p.IsValid() {
		return Place{}
	}
	return Place{side, s.compiled.Repo.Files.Name(p), p.Line(), p.Col()}
}

// egressOnly is what a release knows of a target's policy.
func (t *target) egressOnly() *effective.Policy { return &effective.Policy{Hosts: t.hosts} }

func (f *file) digest() string {
	if f.sum == "" {
		sum := sha256.Sum256(f.data)
		f.sum = hex.EncodeToString(sum[:])
	}
	return f.sum
}

func (f *file) equal(g *file) bool {
	if f.from == nil && g.from == nil {
		return bytes.Equal(f.data, g.data)
	}
	return f.digest() == g.digest()
}

// read returns the bytes of a file, which must be those that the manifest names.
func (f *file) read() ([]byte, error) {
	if f.from == nil {
		return f.data, nil
	}
	data, err := fs.ReadFile(f.from, f.path)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.sum {
		return nil, fmt.Errorf("%s is not the file that the manifest names", f.path)
	}
	return data, nil
}
