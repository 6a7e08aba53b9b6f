package compiler

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack"
)

// readPack checks the bytes of a pack file of the repo.
func readPack(name string, data []byte, file int) []diag.Diagnostic { return pack.Check(name, data, file) }
