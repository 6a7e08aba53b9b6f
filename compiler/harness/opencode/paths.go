package opencode

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/policy"
)

// denied are the patterns of protected paths: folders for external_directory, files for read and edit.
type denied struct {
	folders, files []string
}

// What the program compares patterns with (observed on 1.18.33): external_directory gets the folder of a file and /*; read and edit get the path relative to the git
// root, or outside a repository relative to / without the slash. In a pattern * is any text, slashes included, ? is any character, and everything else is literal.

func protect(t harness.Target, g *gap.List) denied {
	var d denied
	for _, r := range t.Policy.Sandbox.ProtectedPaths.Items {
		p := r.Path
		say := func(grade harness.Grade, why string) {
			g.Add(harness.Gap{Concept: harness.ProtectedPaths, Field: "sandbox.protectedPaths", Entry: p.String(), Grade: grade, Reason: why})
		}
		switch p.Kind() {
		case fspath.Relative:
			files, wider := relative(p)
			if files == nil {
				say(harness.None, "opencode has no pattern for this glob, so the entry was not rendered")
				continue
			}
			if wider {
				say(harness.Overridable, "the pattern of opencode denies more than the entry: its * crosses folders, and a path with folders is denied at any depth")
			}
			d.files = append(d.files, files...)
		default:
			if t.OS == "windows" && p.Kind() == fspath.Absolute {
				say(harness.None, "an absolute path with / names nothing on Windows, so the entry was not rendered")
				continue
			}
			if p.Glob() {
				say(harness.None, "opencode asks about the folder of a file outside the workspace, never about the file, so a glob matches nothing there and was not rendered")
				continue
			}
			for _, s := range fspath.Spellings(p, t.OS) {
				d.folders = append(d.folders, s+"/*")
				// A workspace that contains the place is asked about by its relative name, outside a repository by the absolute name without the first slash.
				d.files = append(d.files, below(strings.TrimPrefix(strings.TrimPrefix(s, "~"), "/"))...)
			}
		}
	}
	slices.Sort(d.folders)
	slices.Sort(d.files)
	d.folders, d.files = slices.Compact(d.folders), slices.Compact(d.files)
	return d
}

// below returns the patterns of a name and everything under it, at any depth.
func below(name string) []string {
	return []string{name, name + "/*", "*/" + name, "*/" + name + "/*"}
}

// relative returns the patterns of a glob below the workspace, nil when there are none, and whether they match more than it does.
func relative(p fspath.Path) (files []string, wider bool) {
	segs := p.Segments()
	for len(segs) > 1 && segs[0] == "**" {
		// At any depth: what follows is matched at the root and below it anyway.
		segs = segs[1:]
	}
	// The workspace may be a folder below the git root, so a path with folders is denied at any depth.
	wider = len(segs) > 1
	out := make([]string, 0, len(segs))
	for i, s := range segs {
		if s == "**" {
			if i == len(segs)-1 {
				continue
			}
			// Zero folders or more: * crosses them, and a pattern of its own for none would multiply.
			return nil, false
		}
		text, w := segment(s)
		wider = wider || w
		out = append(out, text)
	}
	name := strings.Join(out, "/")
	if name == "" || strings.Trim(name, "*/") == "" {
		return nil, false
	}
	if i := strings.IndexByte(name, '*'); i >= 0 && i < len(name)-1 && (i > 0 || len(segs) > 1 || strings.Contains(name[1:], "*")) {
		wider = true
	}
	wider = wider || strings.Contains(name, "?")
	if strings.HasSuffix(name, "*") {
		// The star crosses folders, so what lies below is covered.
		return []string{name, "*/" + name}, wider
	}
	return below(name), wider
}

// segment writes one part of a glob with * and ? only. Classes become any character and alternatives any text, which denies more and is said.
func segment(s string) (text string, wider bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '[', '{':
			wider = true
			end := strings.IndexByte(s[i:], c+2)
			if c == '{' || end < 0 {
				b.WriteByte('*')
			} else {
				b.WriteByte('?')
			}
			if end < 0 {
				return b.String(), true
			}
			i += end
		case ']', '}':
			wider = true
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), wider
}

// roots are the folders of writable roots outside the workspace.
func roots(t harness.Target, g *gap.List) []string {
	var out []string
	for _, r := range t.Policy.Sandbox.WritableRoots.Items {
		if t.OS == "windows" && r.Path.Kind() == fspath.Absolute {
			g.Add(harness.Gap{Concept: harness.WritableRoots, Field: "sandbox.writableRoots", Entry: r.Path.String(), Grade: harness.None, Reason: "an absolute path with / names nothing on Windows, so the entry was not rendered"})
			continue
		}
		for _, s := range fspath.Spellings(r.Path, t.OS) {
			out = append(out, s+"/*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// readOnly reports whether nothing may be written.
func readOnly(t harness.Target) bool { return t.Policy.Mode() == policy.ModeReadOnly }
