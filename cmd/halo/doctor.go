package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts/device"
	"halos.dev/halo/artifacts/device/probe"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/lint/report"
)

func homeFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "home", Usage: "look only into this home `DIR`; may be repeated (default: every home of the device)"}
}

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "say whether the policy holds on a device",
		Description: "Checks the managed files (place, owner, mode, digest), other sources that would outrank them, and the settings and variables of users that weaken\n" +
			"them, with what to do about each. It changes nothing, runs no other program, follows no link of a user and prints no content of their files.\n" +
			"With --release it also compares with that release; without an installation of halo, --release and --ring say what should be there.\n\n" +
			"With --probe (Linux, as root) it also runs each installed harness that has managed files, and says whether they held: a stand-in for its model, which halo\n" +
			"serves on loopback, asks for one tool call at a time, to read a canary below a protected path and to reach a denied host. The program runs as a user who\n" +
			"owns nothing, in namespaces of its own: the device's files read-only, a home, a project and canaries in memory that are gone with it, no network but\n" +
			"loopback, none of the variables and sockets of this session. Files of users are not there to be read, and nothing is sent anywhere.\n\n" +
			"Exit status 0 when nothing drifted and nothing weakens the policy, else 1; a probe that got a canary or a denied host, or that found nothing out about an\n" +
			"installed program, is 1.",
		Flags: append(trustFlags(),
			&cli.StringFlag{Name: "release", Usage: "a `RELEASE` (directory or archive) to compare with"},
			&cli.StringFlag{Name: "ring", Usage: "the `RING` of a device on which halo installed nothing"},
			&cli.StringSliceFlag{Name: "unit", Usage: "a `UNIT` of a device on which halo installed nothing; may be repeated"},
			&cli.BoolFlag{Name: "probe", Usage: "run the installed programs against canaries"},
			&cli.DurationFlag{Name: "probe-limit", Value: 3 * time.Minute, Usage: "end a program that is probed after this `TIME`"},
			rootFlag(), osFlag(), homeFlag()),
		Action: p.doctor,
	}
}

func (p *program) doctor(c *cli.Context) error {
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
	if c.Bool("probe") {
		if !d.Live() {
			return errors.New("--probe runs the programs of this machine, which read its own managed files: it does not go with --root or --os of another")
		}
		if why := probe.Why(); why != "" {
			return fmt.Errorf("--probe cannot be used: %s", why)
		}
		if c.Duration("probe-limit") < time.Second {
			return errors.New("--probe-limit wants a second or more")
		}
	}
	now, _, err := p.instant(c)
	if err != nil {
		return err
	}
	o := device.DoctorOptions{Ring: c.String("ring"), Units: c.StringSlice("unit"), Homes: p.homes(c, d), Environ: os.Environ(), Now: now}
	if dir := c.String("release"); dir != "" {
		trust, err := p.keptTrust(c, d)
		if err != nil {
			return err
		}
		fsys, err := localRelease(dir)
		if err != nil {
			return rejected(err)
		}
		defer fsys.Close()
		if o.Release, err = p.verifyWith(c, fsys, trust); err != nil {
			return err
		}
	}
	if c.Bool("probe") {
		o.Token = strings.ToLower(rand.Text())
		o.Probe = func(plan probe.Plan) probe.Finding {
			plan.Limit = c.Duration("probe-limit")
			return plan.Run(c.Context, probe.Do)
		}
	}
	r, err := d.Doctor(o)
	if err == nil {
		err = c.Context.Err()
	}
	if err != nil {
		return rejected(err)
	}
	if f == "json" {
		err = report.WriteJSON(p.out, struct {
			SchemaVersion int `json:"schemaVersion"`
			*device.Report
		}{1, r})
	} else {
		err = r.Text(p.out)
	}
	if err == nil && !r.OK {
		return no
	}
	return err
}

// homes returns the directories of --home; without them a user looks into the own home only, and root (nil) into every one of the device.
func (p *program) homes(c *cli.Context, d device.Device) []device.Home {
	var homes []device.Home
	dirs := c.StringSlice("home")
	if own, err := os.UserHomeDir(); err == nil && len(dirs) == 0 && d.Live() && os.Geteuid() > 0 {
		dirs = []string{own}
	}
	for _, dir := range dirs {
		h := device.Home{Dir: dir, Name: dir}
		if len(dirs) == 1 {
			h.Name = "~"
		}
		homes = append(homes, h)
	}
	return homes
}

// keptTrust finds out whose signatures count on a device: the flags and HALO_TRUST, else what the device kept when it installed, else its trust file.
func (p *program) keptTrust(c *cli.Context, d device.Device) (*sign.Trust, error) {
	if !c.IsSet("key") && !c.IsSet("trust") && p.getenv("HALO_TRUST") == "" {
		if trust, err := d.KeptTrust(); trust != nil || err != nil {
			return trust, err
		}
	}
	return p.trustOf(c, d.Root)
}
