package artifacts

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode"

	"halos.dev/halo/artifacts/sign"
)

// Inspection lists what a release holds. Nothing of it was verified.
type Inspection struct {
	Digest     string       `json:"digest"`
	Org        string       `json:"org"`
	Version    string       `json:"version"`
	Sequence   int64        `json:"sequence"`
	Issued     time.Time    `json:"issued"`
	Expires    *time.Time   `json:"expires"`
	Tool       Tool         `json:"tool"`
	Source     Source       `json:"source"`
	Files      int          `json:"files"`
	Size       int64        `json:"size"`
	Signatures []SignedBy   `json:"signatures"`
	Targets    []TargetSize `json:"targets"`
	Packs      []Pack       `json:"packs"`
	Warnings   int          `json:"warnings"`
	Exceptions []Exception  `json:"exceptions"`
}

// SignedBy names a signature file and the key it claims.
type SignedBy struct {
	File string `json:"file"`
	Key  string `json:"key"`
	// Certificate says that a certificate signed and not a key.
	Certificate bool `json:"certificate,omitempty"`
}

// TargetSize is a target of one operating system with its files.
type TargetSize struct {
	ID    string       `json:"id"`
	OS    string       `json:"os"`
	Files []TargetFile `json:"files"`
}

// ReadManifest reads the manifest of the release at path (see Open), parsed and as bytes, without verifying anything.
func ReadManifest(path string) (*Manifest, []byte, error) {
	fsys, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer fsys.Close()
	return ManifestOf(fsys)
}

// ManifestOf reads the manifest of the release in fsys, parsed and as bytes, without verifying anything.
func ManifestOf(fsys fs.FS) (*Manifest, []byte, error) {
	data, err := readManifest(fsys)
	if err != nil {
		return nil, nil, err
	}
	m, err := ParseManifest(data)
	if err != nil {
		return nil, nil, refuse(CodeManifest, ManifestName, "%v", err)
	}
	return m, data, nil
}

// Inspect reads the release in fsys without verifying it.
func Inspect(fsys fs.FS) (*Inspection, error) {
	m, data, err := ManifestOf(fsys)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Digest: Digest(data), Org: m.Org, Version: m.Version, Sequence: m.Sequence, Issued: m.Issued, Tool: m.Tool, Source: m.Source, Files: len(m.Files),
		Signatures: []SignedBy{}, Packs: append([]Pack{}, m.Packs...), Warnings: len(m.Warnings), Exceptions: append([]Exception{}, m.Exceptions...)}
	if !m.Expires.IsZero() {
		in.Expires = &m.Expires
	}
	for _, f := range m.Files {
		in.Size += f.Size
	}
	for _, t := range m.Targets {
		in.Targets = append(in.Targets, TargetSize{t.ID, t.OS, t.Files})
	}
	files, names, err := signatureFiles(fsys)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sig := SignedBy{File: name}
		if name != DetachedName {
			if b, err := sign.ParseBundle(files[name]); err == nil {
				sig.Key, sig.Certificate = b.KeyID(), b.Certificate
			}
		}
		in.Signatures = append(in.Signatures, sig)
	}
	return in, nil
}

// Text prints an inspection for people.
func (in *Inspection) Text(w io.Writer) error {
	expires := "never"
	if in.Expires != nil {
		expires = in.Expires.Format(time.RFC3339)
	}
	var by []string
	for _, s := range in.Signatures {
		switch {
		case s.Certificate && s.File != provenanceName:
			by = append(by, "with a certificate")
		case s.Key != "" && s.File != provenanceName:
			by = append(by, "by key "+s.Key[:16])
		}
	}
	signed := "no"
	if len(by) > 0 {
		signed = strings.Join(by, ", ") + " (not verified; run halo release verify)"
	}
	commit := plain(in.Source.Commit)
	if commit == "" {
		commit = "none"
	} else if in.Source.Dirty {
		commit += " (dirty)"
	}
	if _, err := fmt.Fprintf(w, "release   %s\norg       %s\nversion   %s, sequence %d\nissued    %s, expires %s\ncommit    %s\nsigned    %s\nfiles     %d, %d bytes\nwarnings  %d\n",
		in.Digest, plain(in.Org), plain(in.Version), in.Sequence, in.Issued.Format(time.RFC3339), expires, commit, signed, in.Files, in.Size, in.Warnings); err != nil {
		return err
	}
	for _, t := range in.Targets {
		fmt.Fprintf(w, "\n%s  %s\n", plain(t.ID), plain(t.OS))
		for _, f := range t.Files {
			if _, err := fmt.Fprintf(w, "  %-12s %s %s\n", plain(f.Harness), plain(f.Mode), plain(f.Dest)); err != nil {
				return err
			}
		}
		if len(t.Files) == 0 {
			fmt.Fprintf(w, "  no files\n")
		}
	}
	return nil
}

// plain makes a text of a release that nobody verified safe for a line of a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
