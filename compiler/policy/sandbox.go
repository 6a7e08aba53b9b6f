package policy

import (
	"crypto/sha256"
	"path"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/source"
)

// Sandbox is a document that joins what an OpenShell sandbox reads at start, a sandbox pack and DefenseClaw's openshell block.
type Sandbox struct {
	Header
	// OpenShell is the policy section, nil when the document has none.
	OpenShell *OpenShell
	// Pack names a built-in pack or one of the repo; PackDir is where devices keep packs.
	Pack, PackDir source.Str
	// Block is the openshell section, nil when the document has none. Its places are in Places.
	Block  *pack.Config
	Places pack.Positions
	// Resolved is what the block comes to without run options: nil without a block and a pack, and when they cannot be resolved. Digest identifies the document by meaning,
	// the files it names included. Whoever made the repo fills both in before policies are made from it.
	Resolved *pack.Policy
	Digest   [sha256.Size]byte
}

// OpenShell is the policy section of a Sandbox: what policy.yaml is composed from.
type OpenShell struct {
	Pos    diag.Pos
	Base   source.Str
	Agents source.Strs
	// Provider and BaseURL are the inference section.
	Provider, BaseURL source.Str
	Fragments         source.Strs
	Workspace         source.Str
	// Hosts is network.hosts.
	Hosts           source.Strs
	Egress          source.Str
	Ports           []source.Int
	Replace, Permit source.Strs
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
	return source.Field[T]{Name: key, Read: func(d *decoder, n *node, t *T) { *at(t) = readRepoPath(d, n, workspace) }}
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
	{Name: "inference", Read: func(d *decoder, n *node, o *OpenShell) { source.Map(d, n, inferenceFields, o) }},
	{Name: "fragments", Read: func(d *decoder, n *node, o *OpenShell) {
		o.Fragments.Pos = source.Seq(d, n, func(_ int, c *node) {
			if s := readRepoPath(d, c, false); s.IsSet() {
				o.Fragments.Items = append(o.Fragments.Items, s)
			}
		})
	}},
	repoPath("workspace", true, func(o *OpenShell) *source.Str { return &o.Workspace }),
	{Name: "network", Read: func(d *decoder, n *node, o *OpenShell) { source.Map(d, n, networkFields, o) }},
	enum("egress", func(o *OpenShell) *source.Str { return &o.Egress }, "profile", "none"),
	{Name: "ports", Read: func(d *decoder, n *node, o *OpenShell) {
		source.Seq(d, n, func(_ int, c *node) {
			if p := d.Int(c, 1, 65535); p.IsSet() {
				o.Ports = append(o.Ports, p)
			}
		})
	}},
	list("replace", func(o *OpenShell) *source.Strs { return &o.Replace }),
	list("permit", func(o *OpenShell) *source.Strs { return &o.Permit }),
}

var sandboxDocFields = append(header(func(s *Sandbox) *Header { return &s.Header }),
	source.Field[Sandbox]{Name: "policy", Read: func(d *decoder, n *node, s *Sandbox) {
		s.OpenShell = &OpenShell{Pos: d.Pos(n)}
		source.Map(d, n, openshellFields, s.OpenShell)
		if o := s.OpenShell; o.Workspace.IsSet() && o.Hosts.IsSet() {
			x := d.Report(codeTwoSources, n, "workspace and network both list the hosts of the workspace")
			x.Hint = "keep one of the two"
			d.Diags.Add(*x)
		}
	}},
	name("pack", func(s *Sandbox) *source.Str { return &s.Pack }),
	str("packDir", func(s *Sandbox) *source.Str { return &s.PackDir }),
	source.Field[Sandbox]{Name: "openshell", Read: func(d *decoder, n *node, s *Sandbox) {
		var found []diag.Diagnostic
		s.Block, s.Places, found = pack.ParseConfig(n, pack.Source{File: d.File, Path: "openshell", Repo: true, Vetted: true})
		for _, x := range found {
			x.Document = d.Doc
			d.Diags.Add(x)
		}
	}},
)

func readSandbox(d *decoder, n *node, s *Sandbox) *Sandbox {
	read(d, n, sandboxDocFields, s)
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
	if v := s.PackDir.V; s.PackDir.IsSet() && !path.IsAbs(v) && !strings.HasPrefix(v, "~/") {
		d.Enter("packDir")
		x := d.Report(codeRepoPath, source.Get(n, "packDir"), "%q is not a folder of a device: it must be absolute or start with ~/", v)
		d.Leave()
		x.Hint = "packDir: " + SandboxPackDir
		d.Diags.Add(*x)
	}
	return s
}
