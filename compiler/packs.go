package compiler

import "halos.dev/halo/compiler/diag"

// readPack checks the bytes of a pack file of the repo.
func readPack(name string, data []byte, file int) []diag.Diagnostic { return nil }
