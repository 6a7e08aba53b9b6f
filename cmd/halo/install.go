package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts/device"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/lint/report"
)

func rootFlag() cli.Flag {
	return &cli.StringFlag{Name: "root", Value: device.DefaultRoot(), Usage: "the `DIR` that stands for the root of the device"}
}

func (p *program) installCommand() *cli.Command {
	return &cli.Command{
		Name: "install", Usage: "lay the files of one target on a device",
		Description: "Verifies the release first, then writes each file whole, with owner and mode, into the managed directories of its harness and nowhere else. It goes only\n" +
			"forward, removes what the release before had and this one has not, follows no link, and refuses to replace a file that halo did not install.\n" +
			"What is installed is remembered below ROOT/var/lib/halo (Windows: ProgramData\\halo).",
		Flags: append(trustFlags(),
			&cli.StringFlag{Name: "release", Usage: "the `RELEASE` (directory or archive) to install from"},
			&cli.StringFlag{Name: "ring", Usage: "the `RING` of the device"},
			&cli.StringSliceFlag{Name: "unit", Usage: "a `UNIT` that the device is in; may be repeated"},
			rootFlag(), osFlag(),
			&cli.BoolFlag{Name: "replace-existing", Usage: "replace files in the way that halo did not install"},
			&cli.BoolFlag{Name: "dry-run", Usage: "verify and plan, and write nothing"},
			&cli.BoolFlag{Name: "uninstall", Usage: "remove every file that halo installed"}),
		Action: p.install,
	}
}

// device returns the device that --root and --os name.
func (p *program) device(c *cli.Context) (device.Device, error) {
	system, err := system(c)
	return device.Device{Root: c.String("root"), OS: system, Harnesses: all.Harnesses()}, err
}

func (p *program) install(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	d, err := p.device(c)
	if err != nil {
		return err
	}
	if c.Bool("uninstall") {
		return p.uninstall(c, d, f)
	}
	if c.String("release") == "" || c.String("ring") == "" {
		return errors.New("install needs --release RELEASE and --ring RING")
	}
	trust, err := p.trustOf(c, d.Root)
	if err != nil {
		return err
	}
	dir := c.String("release")
	fsys, err := localRelease(dir)
	if err != nil {
		return rejected(err)
	}
	defer fsys.Close()
	v, err := p.verifyWith(c, fsys, trust)
	if err != nil {
		return err
	}
	done, err := d.Install(c.Context, device.InstallOptions{
		Release: v, Dir: dir, Trust: trust, Ring: c.String("ring"), Units: c.StringSlice("unit"), Replace: c.Bool("replace-existing"), DryRun: c.Bool("dry-run"),
	})
	if err != nil {
		return rejected(err)
	}
	if done.Unowned && !c.Bool("quiet") {
		fmt.Fprintln(p.err, "warning: not root, so the files belong to the user that ran this; owners are neither set nor checked")
	}
	r := done.Record
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			DryRun   bool            `json:"dryRun"`
			Org      string          `json:"org"`
			Version  string          `json:"version"`
			Sequence int64           `json:"sequence"`
			Digest   string          `json:"digest"`
			Target   string          `json:"target"`
			OS       string          `json:"os"`
			Changes  []device.Change `json:"changes"`
		}{c.Bool("dry-run"), r.Org, r.Version, r.Sequence, r.Digest, r.Target, r.OS, append([]device.Change{}, done.Changes...)})
	}
	word := "installed"
	if c.Bool("dry-run") {
		word = "would install"
	}
	fmt.Fprintf(p.out, "%s %s for %s: %s, version %s, sequence %d\n", word, r.Target, r.OS, r.Org, r.Version, r.Sequence)
	return printChanges(p, done.Changes)
}

func (p *program) uninstall(c *cli.Context, d device.Device, f string) error {
	for _, name := range []string{"release", "key", "trust", "ring", "unit", "replace-existing"} {
		if c.IsSet(name) {
			return fmt.Errorf("--uninstall removes what is installed; it takes no --%s", name)
		}
	}
	dests, err := d.Uninstall(c.Context, c.Bool("dry-run"))
	if err != nil {
		return rejected(err)
	}
	changes := make([]device.Change, len(dests))
	for i, dest := range dests {
		changes[i] = device.Change{Action: "remove", Dest: dest}
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			DryRun  bool            `json:"dryRun"`
			Changes []device.Change `json:"changes"`
		}{c.Bool("dry-run"), changes})
	}
	switch {
	case len(dests) == 0:
		fmt.Fprintf(p.out, "nothing is installed below %s\n", d.Root)
	case c.Bool("dry-run"):
		fmt.Fprintf(p.out, "would uninstall %d files\n", len(dests))
	default:
		fmt.Fprintf(p.out, "uninstalled %d files\n", len(dests))
	}
	return printChanges(p, changes)
}

func printChanges(p *program, changes []device.Change) error {
	for _, ch := range changes {
		if _, err := fmt.Fprintf(p.out, "  %-8s %s\n", ch.Action, ch.Dest); err != nil {
			return err
		}
	}
	return nil
}
