package artifacts

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxPath is the longest path in a release, in bytes. Windows takes 32,767 characters with long paths, Linux 4,096 bytes.
const maxPath = 1024

// checkFiles checks the list of files: sorted, safe and distinct on every file system, with proper digests and sizes.
func (m *Manifest) checkFiles() error {
	var paths pathSet
	last := ""
	for i, f := range m.Files {
		if err := checkPath(f.Path); err != nil {
			return fmt.Errorf("files: %q: %w", f.Path, err)
		}
		if i > 0 && last >= f.Path {
			return fmt.Errorf("files: %q is repeated or out of order", f.Path)
		}
		if f.Path == ManifestName || isSignatureName(f.Path) {
			return fmt.Errorf("files: %q is the manifest or a signature, which a manifest cannot list", f.Path)
		}
		if !isHex(f.SHA256, 64) {
			return fmt.Errorf("files: %q: sha256 %q is not 64 lower-case hex digits", f.Path, f.SHA256)
		}
		if !paths.add(f.Path) {
			return fmt.Errorf("files: %q: %s", f.Path, collides)
		}
		last = f.Path
	}
	return nil
}

// collides says why pathSet.add refuses a path.
const collides = "another path differs only in case, or is a file where this needs a directory"

// pathSet finds the paths that a case-insensitive file system does not keep apart. Paths come in byte order: all paths below one directory are then neighbours,
// so that only the names in the directories on the way to the last path have to be kept.
type pathSet struct {
	// levels are the names in each of those directories, as a case-insensitive file system compares them.
	levels []map[string]struct{}
	last   string
	// nodes is how many files and directories there are.
	nodes int
}

// add adds a file and reports whether every file system keeps it and its directories apart from the others.
func (s *pathSet) add(path string) bool {
	start := sharedDirs(s.last, path)
	s.last = path
	rest := path[start:]
	for level := strings.Count(path[:start], "/"); ; level++ {
		if level == len(s.levels) {
			s.levels = append(s.levels, map[string]struct{}{})
		}
		name, below, more := strings.Cut(rest, "/")
		folded := foldCase(name)
		if _, ok := s.levels[level][folded]; ok {
			return false
		}
		s.levels[level][folded] = struct{}{}
		s.nodes++
		if !more {
			return true
		}
		rest = below
		// A new directory has none of the names of the last one at its level. Clearing a map takes as long as it has room.
		if next := level + 1; next < len(s.levels) {
			if len(s.levels[next]) > 8 {
				s.levels[next] = map[string]struct{}{}
			}
			clear(s.levels[next])
		}
	}
}

// sharedDirs returns the offset in b behind the last directory that a and b share.
func sharedDirs(a, b string) int {
	shared := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			shared = i + 1
		}
	}
	return shared
}

// checkPath says why p cannot be the path of a file in a release. A safe path is relative, clean, uses "/", and names the same
// file on Linux, macOS and Windows.
func checkPath(p string) error {
	switch {
	case p == "":
		return errors.New("empty path")
	case len(p) > maxPath:
		return fmt.Errorf("path longer than %d bytes", maxPath)
	case p[0] == '/':
		return errors.New("absolute path")
	case !utf8.ValidString(p):
		return errors.New("path is not UTF-8")
	case !norm.NFC.IsNormalString(p):
		return errors.New("path is not in Unicode form NFC")
	}
	for _, r := range p {
		// unicode.Cf has the bidirectional and zero-width characters that make two names look alike.
		if r < 0x20 || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) || r >= utf8.RuneSelf && (unicode.Is(unicode.Cf, r) || !unicode.IsGraphic(r)) {
			return fmt.Errorf("character %q in a path", r)
		}
	}
	for rest := p; ; {
		name, tail, more := strings.Cut(rest, "/")
		if err := checkName(name); err != nil {
			return err
		}
		if !more {
			return nil
		}
		rest = tail
	}
}

// checkName checks one element of a path.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("empty path element")
	case name == ".", name == "..":
		return fmt.Errorf("path element %q", name)
	case name[len(name)-1] == '.', name[len(name)-1] == ' ':
		return fmt.Errorf("path element %q ends in a dot or space, which Windows drops", name)
	case isDeviceName(name):
		return fmt.Errorf("path element %q is a device on Windows", name)
	}
	return nil
}

// isDeviceName reports whether Windows takes name for a device: the reserved names with any extension (Microsoft, "Naming Files,
// Paths, and Namespaces", 2024-08).
func isDeviceName(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.TrimRight(base, " ")
	switch len(base) {
	case 3:
		return strings.EqualFold(base, "con") || strings.EqualFold(base, "prn") || strings.EqualFold(base, "aux") || strings.EqualFold(base, "nul")
	case 4, 5:
		if !strings.EqualFold(base[:3], "com") && !strings.EqualFold(base[:3], "lpt") {
			return false
		}
		digit := base[3:]
		return len(digit) == 1 && digit >= "0" && digit <= "9" || digit == "¹" || digit == "²" || digit == "³"
	case 6, 7:
		return strings.EqualFold(base, "conin$") || strings.EqualFold(base, "conout$")
	}
	return false
}

// foldCase returns the spelling in which a case-insensitive file system compares names.
func foldCase(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.Map(func(r rune) rune {
		lowest := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			lowest = min(lowest, next)
		}
		return unicode.ToLower(lowest)
	}, s)
}

// isSignatureName reports whether a file of this name may be in a release without being listed.
func isSignatureName(name string) bool {
	return name == DetachedName || name == provenanceName || isBundleName(name)
}

// IsBundleName reports whether a release may have a Sigstore bundle of this name: a signature over its manifest, or its provenance.
func IsBundleName(name string) bool { return name == provenanceName || isBundleName(name) }

// isBundleName reports whether name is manifest.json.sigstore.json or manifest.json.ID.sigstore.json.
func isBundleName(name string) bool {
	return name == BundleName || bundleID(name) != ""
}

// bundleID returns ID of a file name manifest.json.ID.sigstore.json, else "". ID is the short id of the signing key.
func bundleID(name string) string {
	id, ok := strings.CutPrefix(name, ManifestName+".")
	if !ok {
		return ""
	}
	id, ok = strings.CutSuffix(id, ".sigstore.json")
	if !ok || !isHex(id, 16) {
		return ""
	}
	return id
}
