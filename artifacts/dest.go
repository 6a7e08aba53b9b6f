package artifacts

import "strings"

// RootPath returns the path below a target's directory of a file that a device keeps at dest: root/etc/… for a POSIX path, and for a Windows path the drive
// as a folder, root/C/Program Files/….
func RootPath(dest string) string {
	if len(dest) > 2 && dest[1] == ':' && (dest[2] == '\\' || dest[2] == '/') {
		return "root/" + dest[:1] + "/" + strings.TrimLeft(strings.ReplaceAll(dest[2:], `\`, "/"), "/")
	}
	return "root/" + strings.TrimLeft(dest, "/")
}
