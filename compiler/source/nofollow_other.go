//go:build !unix

package source

import "os"

// open opens a file for reading. Where links need rights to be made, the type of the directory entry has to do.
func open(name string) (*os.File, error) { return os.Open(name) }
