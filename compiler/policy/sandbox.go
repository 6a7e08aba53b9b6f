package policy

import (
	"crypto/sha256"
	"path"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/source"
)

// Sandbox is a document that joins what an OpenShell sandbox reads at start, a sandbox pack and DefenseClaw's openshell block. A profile names one with
// sandbox.policy.
type Sandbox struct {
	Header
	// OpenShell is what policy.yaml is composed from.
	//
	// It is nil when the document has none.
	OpenShell *OpenShell
	// Pack is a built-in pack (open, balanced, strict) or one of the repo, packs/NAME/pack.yaml.
	//
	// Example: team-web
	Pack source.Str
	// PackDir is where devices keep packs: an absolute path, or one below ~/.
	//
	// Default: /etc/defenseclaw/policies/sandbox
	PackDir source.Str
	// Block is the openshell block of DefenseClaw's config.yaml.
	//
	// It is nil when the document has none.
	Block *pack.Config
	// Places are the places of values of Block.
	Places pack.Positions
	// Resolved is what the block comes to without run options: nil without a block and a pack, and when they cannot be resolved. Digest identifies the document by meaning,
	// the files it names included. Whoever made the repo fills both in before policies are made from it.
	Resolved *pack.Policy
	Digest   [sha256.Size]byte
}

// OpenShell is the policy section of a Sandbox: what policy.yaml is composed from.
type OpenShell struct {
	// Pos is the place of the section.
	Pos diag.Pos
	// Base is the file that the policy begins with; without it, the built-in one.
	//
	// Example: openshell/base.yaml
	Base source.Str
	// Agents are the agents that a policy is composed for, by OpenShell's names: claude, opencode.
	//
	// Example: [claude]
	Agents source.Strs
	// Provider is the model provider: anthropic, openai and so on.
	//
	// Example: anthropic
	Provider source.Str
	// BaseURL is where the provider is reached, when not at its own address.
	//
	// Example: https://ai.acme.example
	BaseURL source.Str
	// Fragments are files that are added, in this order.
	//
	// Example: [openshell/registry.yaml]
	Fragments source.Strs
	// Workspace is the workspace file whose hosts are allowed.
	//
	// Example: .kaiden/workspace.json
	Workspace source.Str
	// Hosts are the hosts of the workspace, when there is no workspace file.
	Hosts source.Strs
	// Egress says whether the hosts that the ring allows become a rule of the policy.
	//
	// Default: profile
	Egress source.Str
	// Ports are the ports of that rule.
	//
	// Default: [443, 80]
	Ports []source.Int
	// Replace lists rules that a later layer may replace.
	Replace source.Strs
	// Permit lists hosts that the policy may allow although the ring's default denies them. A host on deniedDomains can never be permitted.
	Permit source.Strs
}

// SandboxPackDir is where devices keep packs when a Sandbox does not say.
const SandboxPackDir = "/etc/defenseclaw/policies/sandbox"

// WorkspaceFile is the workspace file that a repo may keep outside openshell/.
const WorkspaceFile = ".kaiden/workspace.json"

// RepoFile is a file of the repo that documents name and that is no document itself: below openshell/, or WorkspaceFile.
type RepoFile struct {
	Name string
	// File is the index in Repo.Files.
	File int
}

// repoPath reads the path of a file below openshell/, or of the workspace file.
func repoPath[T any](key string, workspace bool, at func(*T) *source.Str) source.Field[T] {
	spelled := "openshell file"
	if workspace {
		spelled = "workspace file"
	}
	return leaf(key, at, func(d *decoder, n *node) source.Str { return readRepoPath(d, n, workspace) }, form(spelled))
}

func readRepoPath(d *decoder, n *node, workspace bool) source.Str {
	s := d.Text(n)
	if s.V == "" || workspace && s.V == WorkspaceFile {
		return s
	}
	if path.Clean(s.V) != s.V || !strings.HasPrefix(s.V, "openshell/") {
		x := d.Report(codeRepoPath, n, "%q is not a file below openshell/", s.V)
		x.Hint = "move the file there and write its path from the root of the repo: openshell/NAME.yaml"
		d.Diags.Add(*x)
		return source.Str{}
	}
	return s
}

// inference and network are sections of an OpenShell as they are written.
type (
	// The model endpoint that the sandbox may reach, and nothing else of its provider.
	inference OpenShell
	// The hosts of the workspace, where there is no workspace file.
	network OpenShell
)

var inferenceFields = []source.Field[OpenShell]{
	str("provider", func(o *OpenShell) *source.Str { return &o.Provider }),
	str("baseURL", func(o *OpenShell) *source.Str { return &o.BaseURL }),
}

var networkFields = []source.Field[OpenShell]{
	list("hosts", func(o *OpenShell) *source.Strs { return &o.Hosts }),
}

var openshellFields = []source.Field[OpenShell]{
	repoPath("base", false, func(o *OpenShell) *source.Str { return &o.Base }),
	list("agents", func(o *OpenShell) *source.Strs { return &o.Agents }),
	custom("inference", func(o *OpenShell) *inference { return (*inference)(o) }, func() source.Shape { return source.Describe(inferenceFields) },
		func(d *decoder, n *node, o *OpenShell) { source.Map(d, n, inferenceFields, o) }),
	custom("fragments", func(o *OpenShell) *source.Strs { return &o.Fragments }, func() source.Shape { return listOf(form("openshell file")()) }, func(d *decoder, n *node, o *OpenShell) {
		o.Fragments.Pos = source.Seq(d, n, func(_ int, c *node) {
			if s := readRepoPath(d, c, false); s.IsSet() {
				o.Fragments.Items = append(o.Fragments.Items, s)
			}
		})
	}),
	repoPath("workspace", true, func(o *OpenShell) *source.Str { return &o.Workspace }),
	custom("network", func(o *OpenShell) *network { return (*network)(o) }, func() source.Shape { return source.Describe(networkFields) },
		func(d *decoder, n *node, o *OpenShell) { source.Map(d, n, networkFields, o) }),
	enum("egress", func(o *OpenShell) *source.Str { return &o.Egress }, "profile", "none"),
	custom("ports", func(o *OpenShell) *[]source.Int { return &o.Ports }, func() source.Shape { return listOf(source.Shape{Type: source.WholeValue, Min: 1, Max: 65535}) },
		func(d *decoder, n *node, o *OpenShell) {
			source.Seq(d, n, func(_ int, c *node) {
				if p := d.Int(c, 1, 65535); p.IsSet() {
					o.Ports = append(o.Ports, p)
				}
			})
		}),
	list("replace", func(o *OpenShell) *source.Strs { return &o.Replace }),
	list("permit", func(o *OpenShell) *source.Strs { return &o.Permit }),
}

var sandboxMapping = mapping[Sandbox]{
	fields: append(header("Sandbox", func(s *Sandbox) *Header { return &s.Header }),
		custom("policy", func(s *Sandbox) **OpenShell { return &s.OpenShell }, func() source.Shape { return source.Describe(openshellFields) }, func(d *decoder, n *node, s *Sandbox) {
			s.OpenShell = &OpenShell{Pos: d.Pos(n)}
			source.Map(d, n, openshellFields, s.OpenShell)
			if o := s.OpenShell; o.Workspace.IsSet() && o.Hosts.IsSet() {
				x := d.Report(codeTwoSources, n, "workspace and network both list the hosts of the workspace")
				x.Hint = "keep one of the two"
				d.Diags.Add(*x)
			}
		}),
		name("pack", func(s *Sandbox) *source.Str { return &s.Pack }),
		leaf("packDir", func(s *Sandbox) *source.Str { return &s.PackDir }, readFolder, form("device folder")),
		custom("openshell", func(s *Sandbox) **pack.Config { return &s.Block }, pack.ConfigShape, func(d *decoder, n *node, s *Sandbox) {
			var found []diag.Diagnostic
			s.Block, s.Places, found = pack.ParseConfig(n, pack.Source{File: d.File, Path: "openshell", Repo: true, Vetted: true})
			for _, x := range found {
				x.Document = d.Doc
				d.Diags.Add(x)
			}
		}),
	),
	need:  []string{"name"},
	check: checkTwice,
}

// readFolder reads a folder of a device.
func readFolder(d *decoder, n *node) source.Str {
	s := d.Text(n)
	if s.IsSet() && !path.IsAbs(s.V) && !strings.HasPrefix(s.V, "~/") {
		x := d.Report(codeRepoPath, n, "%q is not a folder of a device: it must be absolute or start with ~/", s.V)
		x.Hint = "packDir: " + SandboxPackDir
		d.Diags.Add(*x)
	}
	return s
}

// checkTwice refuses a pack or its folder that is written in both places.
func checkTwice(d *decoder, n *node, s *Sandbox) {
	twice := func(key, inner string) {
		d.Enter(key)
		x := d.Report(codeTwoSources, source.Get(n, key), "%s is written twice: here and as openshell.%s", key, inner)
		d.Leave()
		x.Hint = "remove openshell." + inner
		d.Diags.Add(*x)
	}
	if s.Block != nil {
		if s.Pack.IsSet() && s.Block.Pack != "" {
			twice("pack", "pack")
		}
		if s.PackDir.IsSet() && s.Block.PackDir != "" {
			twice("packDir", "pack_dir")
		}
	}
}
