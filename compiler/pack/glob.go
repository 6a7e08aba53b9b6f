package pack

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ParseGlob reads a project glob (masks, unmask, review): it is trimmed and must stay inside the project. The wildcards themselves are not checked; a
// glob with an unclosed bracket is accepted and matches nothing, as in DefenseClaw.
func ParseGlob(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", errors.New("project glob is empty")
	case len(s) > 4096:
		return "", errors.New("project glob is longer than 4096 bytes")
	case strings.Contains(s, "\x00"):
		return "", errors.New("project glob contains a NUL byte")
	case s[0] == '/' || s[0] == '~' || strings.Contains(s, `\`) || hasDrive(s):
		return "", fmt.Errorf("%q must be a project-relative glob with forward slashes", s)
	case slices.Contains(strings.Split(s, "/"), ".."):
		return "", fmt.Errorf(`%q must not contain ".."`, s)
	}
	return s, nil
}

func hasDrive(s string) bool {
	return len(s) >= 2 && s[1] == ':' && s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z'
}

func segments(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "/"), func(seg string) bool { return seg == "" || seg == "." })
}

func matchSegment(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// ParseCopyPattern reads an entry of admin.require_copy_for: a glob over absolute folders of the device.
func ParseCopyPattern(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", errors.New("folder pattern is empty")
	case strings.Contains(s, "\x00"):
		return "", errors.New("folder pattern contains a NUL byte")
	case !absoluteFolder(s) && s != "~" && !strings.HasPrefix(s, "~/") && s != "**" && !strings.HasPrefix(s, "**/"):
		return "", fmt.Errorf(`%q must start with "/", "~/", "**/" or a drive such as "C:/"; a relative pattern never matches`, s)
	}
	for _, seg := range strings.Split(driveSlashes(s), "/") {
		if _, err := path.Match(seg, ""); err != nil {
			return "", fmt.Errorf("%q is not a well-formed pattern: %q", s, seg)
		}
	}
	return s, nil
}

// absoluteFolder reports whether s is an absolute path of a Unix or Windows device.
func absoluteFolder(s string) bool {
	return strings.HasPrefix(s, "/") || len(s) >= 3 && hasDrive(s) && (s[2] == '/' || s[2] == '\\')
}

// driveSlashes gives Windows paths forward slashes. In other paths a backslash is an escape and stays.
func driveSlashes(s string) string {
	if hasDrive(s) {
		return strings.ReplaceAll(s, `\`, "/")
	}
	return s
}

// CopyCovers reports whether an entry of admin.require_copy_for covers a project folder: the pattern matches the folder or one of its parents, or could
// match something below it, so that mounting a parent is covered. home is the home directory of the device, "" when it is not known: then a
// pattern with ~ covers nothing. Links are not followed.
func CopyCovers(pattern, folder, home string) bool {
	if pattern == "~" || strings.HasPrefix(pattern, "~/") {
		if home == "" {
			return false
		}
		pattern = driveSlashes(home) + pattern[1:]
	}
	want, have := cleanFolder(pattern), cleanFolder(folder)
	for i, seg := range want {
		if seg == "**" || i == len(have) {
			return true
		}
		if !matchSegment(seg, have[i]) {
			return false
		}
	}
	return true
}

func cleanFolder(s string) []string {
	return segments(path.Clean(strings.ToLower(driveSlashes(s))))
}
