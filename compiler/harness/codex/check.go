package codex

import "halos.dev/halo/compiler/harness"

func check(t harness.Target, files []harness.File) []harness.Finding { return nil }
