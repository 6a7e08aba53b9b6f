package artifacts

import (
	"fmt"
	"strings"
)

// RootPath returns the path below a target's directory of a file that a device keeps at dest: root/etc/… for a POSIX path, and for a Windows path the drive
// as a folder, root/C/Program Files/….
func RootPath(dest string) string {
	if len(dest) > 2 && dest[1] == ':' && (dest[2] == '\\' || dest[2] == '/') {
		return "root/" + dest[:1] + "/" + strings.TrimLeft(strings.ReplaceAll(dest[2:], `\`, "/"), "/")
	}
	return "root/" + strings.TrimLeft(dest, "/")
}

// checkDest says why a file cannot go where the manifest wants it on a device: the destination is an absolute path in the form of the
// system, and the file is kept in the release at the path that follows from it, so that the rules for paths hold for both.
func checkDest(system string, f TargetFile) error {
	d := f.Dest
	ok := len(d) > 1 && d[0] == '/' && d[1] != '/'
	if system == "windows" {
		letter := len(d) > 3 && (d[0]|0x20) >= 'a' && (d[0]|0x20) <= 'z'
		ok = letter && d[1:3] == `:\` && d[3] != '\\' && !strings.Contains(d, "/")
	}
	if !ok {
		return fmt.Errorf("destination %q is not an absolute path on %s", d, system)
	}
	root := strings.TrimSuffix(f.Path, d) // no new text for each of many files
	if system == "windows" {
		root = strings.TrimSuffix(f.Path, RootPath(d)[len("root"):])
	}
	if root == f.Path || !strings.HasSuffix(root, "/root") {
		return fmt.Errorf("destination %q is not the one that %q stands for", d, f.Path)
	}
	return nil
}
