package mdm

import (
	"embed"
	"encoding/base64"
	"fmt"
	"strings"
)

// templates are the scripts; @NAME@ stands for what an export fills in.
//
//go:embed scripts
var templates embed.FS

// The scripts by what they do.
const (
	auditScript       = "audit.sh"
	installScript     = "install.sh"
	removeScript      = "remove.sh"
	detectScript      = "detect.ps1"
	detectWin32Script = "win32.ps1"
	putScript         = "put.ps1"
	deleteScript      = "delete.ps1"
)

// fill joins the head and a script and fills in values; a value is never searched for further names.
func fill(head, name string, values ...string) []byte {
	var b strings.Builder
	for _, n := range []string{head, name} {
		// Both names are among the embedded files.
		data, _ := templates.ReadFile("scripts/" + n)
		b.Write(data)
	}
	return []byte(strings.NewReplacer(values...).Replace(b.String()))
}

// shQuote is s as one word of a POSIX shell.
func shQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shell is a script for the files of the script channel. result is how an audit prints what it found.
func (e *export) shell(name, result string) []byte {
	items := e.of(Script)
	var files, dirs, empty, content strings.Builder
	for _, it := range items {
		fmt.Fprintf(&files, "%s %s %s\n", it.SHA256, it.Mode, it.Dest)
		fmt.Fprintf(&content, "put %s %s %s <<'HALO-END'\n%sHALO-END\n", it.SHA256, it.Mode, shQuote(it.Dest), wrapped(it.data))
	}
	for _, d := range ownDirs(items) {
		dirs.WriteString(d + "\n")
	}
	for _, it := range e.of(Profile) {
		empty.WriteString(it.Dest + "\n")
	}
	return fill("head.sh", name, "@TARGET@", printable(e.Target.ID), "@RELEASE@", e.release(), "@FILES@", shQuote(files.String()), "@DIRECTORIES@",
		shQuote(dirs.String()), "@EMPTY@", shQuote(empty.String()), "@CONTENT@", content.String(), "@RESULT@", result)
}

// wrapped is data in base64, in lines as mail has them.
func wrapped(data []byte) string {
	s := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\n")
		s = s[76:]
	}
	if s != "" {
		b.WriteString(s + "\n")
	}
	return b.String()
}

// psQuote is s as a PowerShell expression. Windows PowerShell reads a script without a byte order mark in the code page of the system, so everything but ASCII is
// written in base64.
func psQuote(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('" + base64.StdEncoding.EncodeToString([]byte(s)) + "'))"
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// powershell is a script for the files of the script channel.
func (e *export) powershell(name string) []byte {
	items := e.of(Script)
	var files, dirs strings.Builder
	for i, it := range items {
		fmt.Fprintf(&files, "    @{ Path = %s; Sha256 = '%s'", psQuote(it.Dest), it.SHA256)
		if name == putScript {
			fmt.Fprintf(&files, "; Content = '%s'", base64.StdEncoding.EncodeToString(it.data))
		}
		files.WriteString(" }")
		if i < len(items)-1 {
			files.WriteByte(',')
		}
		files.WriteByte('\n')
	}
	own := ownDirs(items)
	for i, d := range own {
		dirs.WriteString("    " + psQuote(d))
		if i < len(own)-1 {
			dirs.WriteByte(',')
		}
		dirs.WriteByte('\n')
	}
	return fill("head.ps1", name, "@TARGET@", printable(e.Target.ID), "@RELEASE@", e.release(), "@FILES@", files.String(), "@DIRECTORIES@", dirs.String())
}
