package policy

// Sandbox is a document that joins an OpenShell policy, a sandbox pack and the administrator's block.
type Sandbox struct {
	Header
}

func readSandbox(d *decoder, n *node, s *Sandbox) *Sandbox {
	d.Diags.Add(*d.Report(codeKind, n, "kind Sandbox is not supported yet by this version of halo"))
	return s
}
