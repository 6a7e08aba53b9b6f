package mdm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"strings"
	"time"
)

// conflictName is the virtual package that every policy package provides and conflicts with, so that a device has one at a time.
const conflictName = "halo-policy"

func (e *export) packageName() string { return conflictName + "-" + e.slug }

// summary is the one-line description of a package.
func (e *export) summary() string {
	return "AI agent policy " + e.Target.ID + " of " + printable(e.manifest.Org)
}

// writeDeb makes a binary package in the format of deb(5). No file is a conffile, although they are below /etc: dpkg would keep a local edit of a conffile, and a
// policy must win.
func writeDeb(e *export) error {
	items := e.of(Package)
	dirs := append([]string{"/etc"}, ownDirs(items)...)
	var files []tarFile
	size := 0
	var sums bytes.Buffer
	for _, d := range dirs {
		files = append(files, tarFile{"." + d + "/", 0o755, nil})
	}
	for _, it := range items {
		files = append(files, tarFile{"." + it.Dest, mode(it.Mode), it.data})
		size += len(it.data)
		// dpkg --verify knows no other digest.
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(it.data), it.Dest[1:])
	}
	data, err := tarball(files, e.issued())
	if err != nil {
		return err
	}
	control := fmt.Appendf(nil, "Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: %s <root@localhost>\nInstalled-Size: %d\nProvides: %[5]s\nConflicts: %[5]s\nReplaces: %[5]s\n"+
		"Section: admin\nPriority: optional\nDescription: %s\n Managed settings of %s,\n made by halo.\n",
		e.packageName(), e.packageVersion(), maintainer(e.manifest.Org), (size+1023)/1024, conflictName, e.summary(), e.release())
	meta, err := tarball([]tarFile{{"./control", 0o644, control}, {"./md5sums", 0o644, sums.Bytes()}}, e.issued())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", meta}, {"data.tar.gz", data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, e.issued().Unix(), 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	name := e.packageName() + "_" + e.packageVersion() + "_all.deb"
	e.Files[name] = b.Bytes()
	e.source(Package, name)
	return nil
}

// maintainer is a name for the Maintainer field, which ends at an angle bracket.
func maintainer(org string) string {
	return strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r == ',' {
			return '-'
		}
		return r
	}, printable(org))
}

type tarFile struct {
	name string
	mode int64
	data []byte // nil for a directory
}

// tarball is a gzipped tar archive of files that belong to root.
func tarball(files []tarFile, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// mode reads a mode of a manifest, which has checked its form.
func mode(s string) int64 {
	var m int64
	for _, c := range s {
		m = m<<3 | int64(c-'0')
	}
	return m
}
