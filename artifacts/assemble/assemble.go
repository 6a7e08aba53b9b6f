// Package assemble makes the plan of a release from a compiled policy repo: every file with its path, and what the manifest says of it.
package assemble

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Identity is what a release says of itself beside its content.
type Identity struct {
	Version  string
	Sequence int64
	// Previous is the digest of the release before, or "".
	Previous string
	// Issued is the instant that the release records, from SourceTime.
	Issued time.Time
	Origin artifacts.Origin
	Tool   artifacts.Tool
}

// Plan makes the release of a compiled repo: every file with its place, and a manifest that is complete but for the list of files.
func Plan(ctx context.Context, c *compiler.Compiled, id Identity) (*artifacts.Plan, error) {
	b := &artifacts.Plan{}
	m := &b.Manifest
	*m = artifacts.Manifest{SchemaVersion: artifacts.SchemaVersion, Org: c.Repo.Root.Org.V, Version: id.Version, Sequence: id.Sequence, Previous: id.Previous, Issued: id.Issued, AsOf: id.Issued,
		Tool: id.Tool, Source: artifacts.Source{Commit: id.Origin.Commit, Dirty: id.Origin.Dirty, Digest: sourceDigest(c.Repo.Files)}, Presets: map[string][]string{}, Egress: map[string]artifacts.Egress{}}
	if l := c.Repo.Root.Lifetime; l.IsSet() {
		m.Expires = id.Issued.Add(time.Duration(l.V) * time.Second)
	}
	rings := map[string]effective.Target{}
	for _, t := range c.Targets {
		if len(t.Units) == 0 {
			rings[t.Ring.Name.V] = t
		}
	}
	for _, t := range c.Targets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		plan := c.Plan(t)
		if plan == nil {
			return nil, fmt.Errorf("target %s has no files: its policy has errors", t.ID)
		}
		units := []string{}
		for _, u := range t.Units {
			units = append(units, u.Name.V)
		}
		for _, os := range policy.OSes {
			mt := artifacts.Target{ID: t.ID, Ring: t.Ring.Name.V, Units: units, Profile: t.Policy.Profile, OS: os, Files: []artifacts.TargetFile{}}
			for _, r := range plan.Renderings {
				if r.OS != os {
					continue
				}
				for _, f := range r.Files {
					path := "targets/" + t.ID + "/" + os + "/" + r.Harness.ID + "/" + artifacts.RootPath(f.Dest)
					b.Add(path, f.Content)
					mt.Files = append(mt.Files, artifacts.TargetFile{Path: path, Harness: r.Harness.ID, Dest: f.Dest, Owner: f.Owner, Mode: fmt.Sprintf("%04o", f.Mode)})
				}
				ring := c.Plan(rings[t.Ring.Name.V])
				for _, g := range r.Gaps {
					// What a ring lacks its units lack too; listing it once keeps the manifest of a large organization readable.
					if len(t.Units) > 0 && ring.Lacks(g) {
						continue
					}
					field := g.Field
					if g.Entry != "" {
						field += " " + g.Entry
					}
					m.Warnings = append(m.Warnings, artifacts.Warning{Code: compiler.GapCode(g).ID, Target: t.ID, Harness: r.Harness.ID, OS: os, Field: field, Message: g.Reason})
				}
			}
			slices.SortFunc(mt.Files, func(x, y artifacts.TargetFile) int { return strings.Compare(x.Path, y.Path) })
			m.Targets = append(m.Targets, mt)
		}
		sandbox(b, t.ID, plan)
		m.Egress[t.ID] = resolved(t.Policy.Hosts)
		for _, name := range t.Policy.Egress.Presets.Items {
			if _, done := m.Presets[name.V]; done {
				continue
			}
			ps, _ := c.Resolver.Preset(name.V)
			hosts := []string{}
			for _, p := range ps {
				hosts = append(hosts, p.String())
			}
			m.Presets[name.V] = hosts
		}
	}
	slices.SortStableFunc(m.Targets, func(x, y artifacts.Target) int { return strings.Compare(x.ID+"\x00"+x.OS, y.ID+"\x00"+y.OS) })
	slices.SortStableFunc(m.Warnings, func(x, y artifacts.Warning) int {
		return slices.Compare([]string{x.Target, x.OS, x.Harness, x.Code, x.Field, x.Message}, []string{y.Target, y.OS, y.Harness, y.Code, y.Field, y.Message})
	})
	m.Warnings = slices.Compact(m.Warnings)
	slices.SortFunc(m.Sandboxes, func(x, y artifacts.Sandbox) int {
		return slices.Compare([]string{x.Target, x.Agent, x.Path}, []string{y.Target, y.Agent, y.Path})
	})
	slices.SortFunc(m.Packs, func(x, y artifacts.Pack) int { return strings.Compare(x.Name, y.Name) })
	exceptions(m, c)
	return b, documents(b, c)
}

// sandbox adds what the Sandbox document of a target comes to: a policy.yaml for each agent, DefenseClaw's config.yaml and the packs.
func sandbox(b *artifacts.Plan, target string, plan *compiler.Plan) {
	s, m := plan.Sandbox, &b.Manifest
	if s == nil {
		return
	}
	name := s.Doc.Name.V
	for _, f := range plan.OpenShell {
		path := "targets/" + target + "/openshell/" + f.Agent + "/policy.yaml"
		b.Add(path, f.Content)
		m.Sandboxes = append(m.Sandboxes, artifacts.Sandbox{Name: name, Target: target, Agent: f.Agent, Path: path})
		for _, g := range f.Gaps {
			w := artifacts.Warning{Code: g.Finding.Code.ID, Target: target, Field: "sandbox.policy " + name, Message: g.Finding.Message}
			if !slices.Contains(m.Warnings, w) {
				m.Warnings = append(m.Warnings, w)
			}
		}
	}
	if s.Config != nil {
		path := "targets/" + target + "/defenseclaw/config.yaml"
		b.Add(path, pack.PrintConfig(s.Config))
		entry := artifacts.Sandbox{Name: name, Target: target, Path: path, Pack: s.Config.Pack}
		if s.Config.Admin.RequiredPack != "" {
			entry.Pack = s.Config.Admin.RequiredPack
		}
		for _, p := range s.Packs {
			if p.Name == entry.Pack {
				entry.PackDigest = p.Digest
			}
		}
		m.Sandboxes = append(m.Sandboxes, entry)
	}
	for _, p := range s.Packs {
		x := artifacts.Pack{Name: p.Name, Digest: p.Digest, Path: "packs/" + p.Name + "/" + pack.FileName}
		if !slices.Contains(m.Packs, x) {
			m.Packs = append(m.Packs, x)
			b.Add(x.Path, p.Data)
		}
	}
}

// resolved lists what egress comes to, presets expanded.
func resolved(p *egress.Policy) artifacts.Egress {
	e := artifacts.Egress{Default: "deny", Allowed: p.AllowedHosts(), Denied: p.DeniedHosts()}
	if open, _ := p.Default(); open {
		e.Default = "allow"
	}
	return e
}

func exceptions(m *artifacts.Manifest, c *compiler.Compiled) {
	for _, p := range c.Permits {
		e := p.Exception
		scope := "ring " + e.Ring.V
		if e.Unit.IsSet() {
			scope = "unit " + e.Unit.V
		}
		x := artifacts.Exception{Name: e.Name.V, Scope: scope, Field: e.Field.V, Witness: p.Loosening.Witness, Owner: e.Owner.V, Reason: e.Reason.V, Ticket: e.Ticket.V, Expires: e.Expires.V}
		if !slices.Contains(m.Exceptions, x) {
			m.Exceptions = append(m.Exceptions, x)
		}
	}
	slices.SortFunc(m.Exceptions, func(x, y artifacts.Exception) int {
		return strings.Compare(x.Name+"\x00"+x.Witness, y.Name+"\x00"+y.Witness)
	})
}

// documents adds the files for people: coverage and a README.
func documents(b *artifacts.Plan, c *compiler.Compiled) error {
	var md, js bytes.Buffer
	js.WriteString("{\n  \"schemaVersion\": 1,\n  \"rings\": [")
	var last *coverage.Matrix
	var members []byte
	for _, t := range c.Targets {
		if len(t.Units) > 0 {
			continue
		}
		matrix := c.Coverage(t.Policy)
		if last == nil || !reflect.DeepEqual(matrix, last) { // most rings of an organization reach the same
			var err error
			if members, err = ringMembers(matrix); err != nil {
				return err
			}
		}
		if last != nil {
			md.WriteString("\n")
			js.WriteByte(',')
		}
		last = matrix
		fmt.Fprintf(&js, "\n    {\n      \"ring\": %q,%s", t.ID, members)
		if err := matrix.Markdown(&md, "Coverage of ring "+t.ID); err != nil {
			return err
		}
	}
	js.WriteString("\n  ]\n}\n")
	b.Add("coverage.json", js.Bytes())
	b.Add("COVERAGE.md", md.Bytes())
	b.Add("README.md", readme(&b.Manifest))
	return nil
}

// ringMembers is what coverage.json says of a ring after its name.
func ringMembers(matrix *coverage.Matrix) ([]byte, error) {
	var js bytes.Buffer
	enc := json.NewEncoder(&js)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	err := enc.Encode(matrix)
	return bytes.TrimSuffix(bytes.TrimPrefix(js.Bytes(), []byte("{")), []byte("\n")), err
}

// readme tells a person who finds the directory what it is. It must not carry time, commit or version: only the manifest does.
func readme(m *artifacts.Manifest) []byte {
	var s strings.Builder
	fmt.Fprintf(&s, "# Agent policy of %s\n\nA release of `halo`. `manifest.json` names every file with its digest; verify it with the organization's public key before use:\n\n", m.Org)
	s.WriteString("    halo release verify . --key ORG.pub\n\n")
	s.WriteString("| target | system | files |\n| --- | --- | --- |\n")
	for _, t := range m.Targets {
		fmt.Fprintf(&s, "| %s | %s | %d |\n", t.ID, t.OS, len(t.Files))
	}
	s.WriteString("\nA target is a ring, or a ring with units, joined by `+`. The files of a target lie below `targets/TARGET/SYSTEM/HARNESS/root/` at the paths that a device\n" +
		"keeps them at. `COVERAGE.md` says how far each harness holds the policy, and what it cannot hold.\n")
	return []byte(s.String())
}

// sourceDigest identifies the bytes read as policy: names and digests in the order of names.
func sourceDigest(files source.Files) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%x  %s\n", f.Digest, f.Name)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
