package main

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/mdm"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func (p *program) mdmCommand() *cli.Command {
	var names []string
	for _, f := range mdm.Formats() {
		names = append(names, f.Name)
	}
	return &cli.Command{
		Name: "mdm", Usage: "packages for device management",
		Subcommands: []*cli.Command{{
			Name: "export", Usage: "write what a device management system takes, from a verified release",
			Description: "Verifies the release first; one that does not verify writes nothing. Exports one target (--ring, --unit) or all of them, for the systems that the\n" +
				"format serves or for --os alone. The directory has a README.md that says what goes over which channel and how to remove it, and install.json with\n" +
				"place, owner, mode, digest, detection and removal of each document. Without --ring each target has its own directory; without --os, where a format\n" +
				"serves several systems, each system has. The same release gives the same bytes.",
			Flags: append(trustFlags(),
				&cli.StringFlag{Name: "release", Usage: "the `RELEASE` (directory or archive) to export from"},
				&cli.StringFlag{Name: "for", Usage: "the `FORMAT`: " + strings.Join(names, ", ")},
				&cli.StringFlag{Name: "ring", Usage: "the `RING`; without it every target of the release"},
				&cli.StringSliceFlag{Name: "unit", Usage: "a `UNIT` of the device, with --ring; may be repeated"},
				&cli.StringFlag{Name: "os", Usage: "the `OS`: " + strings.Join(policy.OSes, ", ")},
				&cli.StringFlag{Name: "out", Usage: "the `DIR` to write; an earlier export in it is replaced"}),
			Action: p.mdmExport,
		}},
	}
}

func (p *program) mdmExport(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	if c.String("release") == "" || c.String("for") == "" || c.String("out") == "" {
		return errors.New("mdm export needs --release RELEASE, --for FORMAT and --out DIR")
	}
	format, err := mdmFormat(c.String("for"))
	if err != nil {
		return err
	}
	oses := format.OSes
	if os := c.String("os"); os != "" {
		if !slices.Contains(policy.OSes, os) {
			return fmt.Errorf("--os %s is not one of %s", os, strings.Join(policy.OSes, ", "))
		}
		if !slices.Contains(format.OSes, os) {
			return fmt.Errorf("--for %s serves %s, not %s", format.Name, strings.Join(format.OSes, " and "), os)
		}
		oses = []string{os}
	}
	if len(c.StringSlice("unit")) > 0 && c.String("ring") == "" {
		return errors.New("--unit needs --ring")
	}
	fsys, err := localRelease(c.String("release"))
	if err != nil {
		return rejected(err)
	}
	defer fsys.Close()
	v, err := p.openRelease(c, fsys, string(filepath.Separator))
	if err != nil {
		return err
	}
	targets, err := mdmTargets(v.Manifest, c.String("ring"), c.StringSlice("unit"))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	var out []mdmExport
	for _, t := range targets {
		if !slices.Contains(oses, t.OS) {
			continue
		}
		dir := ""
		if c.String("ring") == "" {
			dir = t.ID
		}
		if len(oses) > 1 {
			dir = path.Join(dir, t.OS)
		}
		e, err := mdm.Make(v, format, t)
		if empty, ok := errors.AsType[*mdm.EmptyError](err); ok && c.String("ring") == "" {
			out = append(out, mdmExport{Target: t.ID, OS: t.OS, Files: []mdmFile{}, Findings: mdm.Records([]mdm.Finding{{Code: mdm.CodeNothing, Message: empty.Error()}})})
			continue
		}
		if err != nil {
			return rejected(err)
		}
		for name, data := range e.Files {
			files[path.Join(dir, name)] = data
		}
		x := mdmExport{Target: t.ID, OS: t.OS, Directory: dir, Files: []mdmFile{}, Findings: mdm.Records(e.Findings)}
		for _, it := range e.Items {
			x.Files = append(x.Files, mdmFile{it.Harness, it.Dest, string(it.Channel), it.Domain, path.Join(dir, it.Source)})
		}
		out = append(out, x)
	}
	if len(files) == 0 {
		return fmt.Errorf("the release has no target with files for %s", strings.Join(oses, " or "))
	}
	files[mdm.SumsName] = mdm.Sums(files)
	if err := artifacts.WriteDir(c.Context, c.String("out"), "export", mdm.CodeNotExport, files, mdm.Ours); err != nil {
		return diskError(err)
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Out     string      `json:"out"`
			Digest  string      `json:"digest"`
			Format  string      `json:"format"`
			Exports []mdmExport `json:"exports"`
			Files   []string    `json:"files"`
		}{c.String("out"), v.Digest, format.Name, out, slices.Sorted(maps.Keys(files))})
	}
	return p.mdmText(c, out, len(files))
}

// mdmExport is one target in the output of the command.
type mdmExport struct {
	Target    string              `json:"target"`
	OS        string              `json:"os"`
	Directory string              `json:"directory"`
	Files     []mdmFile           `json:"files"`
	Findings  []mdm.FindingRecord `json:"findings"`
}

type mdmFile struct {
	Harness string `json:"harness"`
	Path    string `json:"path"`
	Channel string `json:"channel"`
	Domain  string `json:"domain,omitempty"`
	Source  string `json:"source"`
}

func (p *program) mdmText(c *cli.Context, exports []mdmExport, files int) error {
	for _, e := range exports {
		for _, w := range e.Findings {
			if c.Bool("quiet") {
				break
			}
			fmt.Fprintf(p.err, "%s[%s] %s/%s: %s\n", w.Severity, w.Code, e.Target, e.OS, w.Message)
		}
		for _, f := range e.Files {
			channel := f.Channel
			if f.Domain != "" {
				channel += " " + f.Domain
			}
			if _, err := fmt.Fprintf(p.out, "%s/%s %s %s -> %s\n", e.Target, e.OS, f.Harness, f.Path, channel); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(p.out, "%s: %d files\n", c.String("out"), files)
	return err
}

func mdmFormat(name string) (mdm.Format, error) {
	var names []string
	for _, f := range mdm.Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	err := fmt.Errorf("--for %s is not one of %s", name, strings.Join(names, ", "))
	if near := diag.Nearest(name, names); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return mdm.Format{}, err
}

// mdmTargets picks the targets of a release: all of them, or those of one ring and unit set on every system.
func mdmTargets(m *artifacts.Manifest, ring string, units []string) ([]artifacts.Target, error) {
	if ring == "" {
		return m.Targets, nil
	}
	units = slices.Compact(slices.Sorted(slices.Values(units)))
	id := strings.Join(append([]string{ring}, units...), "+")
	var out []artifacts.Target
	var rings, known []string
	for _, t := range m.Targets {
		if t.ID == id {
			out = append(out, t)
		}
		if !slices.Contains(rings, t.Ring) {
			rings = append(rings, t.Ring)
		}
		for _, u := range t.Units {
			if !slices.Contains(known, u) {
				known = append(known, u)
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if !slices.Contains(rings, ring) {
		return nil, missing("ring", ring, rings)
	}
	for _, u := range units {
		if !slices.Contains(known, u) {
			return nil, missing("unit", u, known)
		}
	}
	return nil, fmt.Errorf("%s is not a target of the release; add the set to combinations in %s: [%s]", id, policy.RootFile, strings.Join(units, ", "))
}

func missing(what, name string, known []string) error {
	err := fmt.Errorf("the release has no %s %s; it has %s", what, name, strings.Join(known, ", "))
	if near := diag.Nearest(name, known); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return err
}
