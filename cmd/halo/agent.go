package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/device"
	"halos.dev/halo/artifacts/sign"
)

// shortestInterval keeps an agent from being a busy loop.
const shortestInterval = 100 * time.Millisecond

func (p *program) agentCommand() *cli.Command {
	return &cli.Command{
		Name: "agent", Usage: "keep the installed release in place",
		Description: "Watches the managed files, and checks all of them at every interval. A file that is missing, changed, replaced or has another owner or mode is put back\n" +
			"from the bytes that were verified when it was installed; the release need not be there any more. Where a newer release lies at --release (default:\n" +
			"where the installed one came from), it is verified and installed; an older one never is. Every restore, failure and change of posture is one JSON\n" +
			"line on standard output. Runs until it is told to stop; whatever fails is tried again at the next check.\n\n" +
			"With --once: exit status 0 when everything is in place and nothing weakens the policy, else 1.",
		Flags: append(trustFlags(),
			&cli.DurationFlag{Name: "interval", Value: time.Minute, Usage: "the `TIME` between full checks"},
			&cli.BoolFlag{Name: "once", Usage: "make one full check and stop"},
			&cli.StringFlag{Name: "release", Usage: "the `RELEASE` (directory or archive) to take when it is newer"},
			rootFlag(), osFlag(), homeFlag()),
		Action: p.agent,
	}
}

func (p *program) agent(c *cli.Context) error {
	if _, err := form(c, "text", "json"); err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	d, err := p.device(c)
	if err != nil {
		return err
	}
	if every := c.Duration("interval"); every < shortestInterval {
		return fmt.Errorf("--interval %s is too short; %s at least", every, shortestInterval)
	}
	if c.IsSet("key") || c.IsSet("trust") {
		if _, err := p.trustOf(c, d.Root); err != nil {
			return err
		}
	}
	if _, err := d.LoadRecord(); err != nil {
		return rejected(err)
	}
	if _, _, err := p.instant(c); err != nil {
		return err
	}
	now := func() time.Time {
		t, _, _ := p.instant(c)
		return t
	}
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	ok := d.Agent(c.Context, device.AgentOptions{
		Interval: c.Duration("interval"), Once: c.Bool("once"), Source: &nextRelease{p, c, d}, Homes: p.homes(c, d), Environ: os.Environ(), Now: now,
		Emit: func(e device.Event) error { return enc.Encode(e) },
	})
	if c.Bool("once") && !ok {
		return no
	}
	return nil
}

// nextRelease looks for a release where the flags, or the installed one, say.
type nextRelease struct {
	p *program
	c *cli.Context
	d device.Device
}

// Next verifies the release when it is not the installed one.
func (n *nextRelease) Next(_ context.Context, r *device.Record) (*artifacts.Verified, *sign.Trust, string, func(), error) {
	dir := n.c.String("release")
	if dir == "" {
		dir = r.Release
	}
	fsys, err := localRelease(dir)
	if err != nil {
		return nil, nil, "", nil, err
	}
	done := func() { fsys.Close() }
	// The installed release is not read through at every check; its files are compared with what was verified anyway.
	if f, err := fsys.Open(artifacts.ManifestName); err == nil {
		data, err := io.ReadAll(io.LimitReader(f, artifacts.MaxManifestSize+1))
		f.Close()
		if err == nil && artifacts.Digest(data) == r.Digest {
			done()
			return nil, nil, "", nil, nil
		}
	}
	trust, err := n.p.keptTrust(n.c, n.d)
	if err == nil {
		var v *artifacts.Verified
		if v, err = n.p.verifyWith(n.c, fsys, trust); err == nil {
			return v, trust, dir, done, nil
		}
	}
	done()
	return nil, nil, "", nil, err
}
