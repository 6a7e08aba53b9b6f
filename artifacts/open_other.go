//go:build !unix

package artifacts

// openFlags has nothing to add here: the directory walk has refused links before a file is opened.
const openFlags = 0
