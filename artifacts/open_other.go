//go:build !unix

package artifacts

import "os"

// openFlags has nothing to add here: the directory walk has refused links before a file is opened.
const openFlags = 0

// createFile writes a file that is not there yet. Modes are for other systems.
func createFile(path string, data []byte, _ bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	// A full disk may show only here.
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
