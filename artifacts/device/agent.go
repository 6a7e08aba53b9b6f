package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// Event is one line of the agent's report.
type Event struct {
	Time time.Time `json:"time"`
	// Event is start, restored (a managed file was put back), failed (something could not be done; the next check tries again), installed (a newer release was taken),
	// posture (what Doctor found; when it changed), watch (files are only checked at intervals) or stop.
	Event   string `json:"event"`
	Harness string `json:"harness,omitempty"`
	Dest    string `json:"dest,omitempty"`
	// Drift is what was wrong with the file.
	Drift   Kind   `json:"drift,omitempty"`
	Message string `json:"message,omitempty"`
	// Version, Sequence and Digest name the release.
	Version  string `json:"version,omitempty"`
	Sequence int64  `json:"sequence,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Target   string `json:"target,omitempty"`
	// OK, Problems and Harnesses are the posture: Problems as Report.Drift.
	OK        *bool     `json:"ok,omitempty"`
	Problems  []string  `json:"problems,omitempty"`
	Harnesses []Posture `json:"harnesses,omitempty"`
}

// Source verifies the release that the agent may take next.
type Source interface {
	// Next returns the release and what it was verified with when it is another one than have, a release digest; else nil. The release is used before done is
	// called.
	Next(ctx context.Context, r *Record) (v *artifacts.Verified, trust *sign.Trust, dir string, done func(), err error)
}

// AgentOptions say how to keep a device.
type AgentOptions struct {
	// Interval is the time between full checks.
	Interval time.Duration
	// Once stops after one full check.
	Once bool
	// Source is where a newer release comes from.
	Source Source
	Homes  []Home
	// Environ is the environment of the process, NAME=value.
	Environ []string
	// Now stamps events and judges expiry. Intervals do not depend on it.
	Now func() time.Time
	// Emit reports an event. Its failure does not stop the agent, which has more to do than to be heard.
	Emit func(Event) error
}

// settle is how long the agent waits after a change before it looks, so that a burst of changes is one check.
const settle = 20 * time.Millisecond

// agent is the state between checks.
type agent struct {
	device Device
	o      AgentOptions
	// failed are the failures of the check before, so that each is reported once and not at every check; now are those of this one.
	failed, now map[string]bool
	posture     *Event
	watcher     *fsnotify.Watcher
	watched     map[string]bool
}

// Agent keeps the installed release in place until ctx is done: it restores managed files that drift, takes a newer release, and reports. It reports whether, after the
// last check, everything is in place and nothing weakens the policy. Nothing that goes wrong on the device stops it: it is reported and tried again.
func (d Device) Agent(ctx context.Context, o AgentOptions) (ok bool) {
	a := &agent{device: d, o: o, failed: map[string]bool{}, watched: map[string]bool{}}
	a.emit(Event{Event: "start"})
	defer func() { a.emit(Event{Event: "stop"}) }()
	var events chan fsnotify.Event
	var watchErrors chan error
	if !o.Once {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			a.emit(Event{Event: "watch", Message: fmt.Sprintf("files are only checked every %s: %v", o.Interval, err)})
		} else {
			defer w.Close()
			a.watcher, events, watchErrors = w, w.Events, w.Errors
		}
	}
	// A ticker counts monotonic time: a clock that jumps changes nothing.
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	a.watch()
	full := true
	for {
		ok = a.check(ctx, full)
		if o.Once {
			return ok
		}
		a.watch()
		full = false
		select {
		case <-ctx.Done():
			return ok
		case <-tick.C:
			full = true
		case <-watchErrors:
			// Changes were lost; look at everything.
			full = true
		case <-events:
			if !a.drain(ctx, events) {
				return ok
			}
		}
	}
}

// drain waits for a burst of changes to end, and no longer than that: a file that is changed without end must still be checked.
func (a *agent) drain(ctx context.Context, events chan fsnotify.Event) bool {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-events:
		case <-timer.C:
			return true
		}
	}
}

func (a *agent) emit(e Event) {
	e.Time = a.o.Now().UTC()
	_ = a.o.Emit(e)
}

// fail reports a failure unless the check before had it too.
func (a *agent) fail(e Event, err error) {
	e.Event, e.Message = "failed", err.Error()
	key := e.Dest + "\x00" + e.Message
	a.now[key] = true
	if !a.failed[key] {
		a.emit(e)
	}
}

// check looks at the managed files and puts back what drifted; a full check also looks for a newer release and at the posture.
func (a *agent) check(ctx context.Context, full bool) (ok bool) {
	a.now = map[string]bool{}
	defer func() {
		if !full {
			// What only a full check tries is not known to work again.
			maps.Copy(a.now, a.failed)
		}
		a.failed = a.now
	}()
	r, err := a.device.LoadRecord()
	switch {
	case err != nil:
		a.fail(Event{}, err)
		return false
	case r == nil:
		a.fail(Event{}, errors.New("nothing is installed; run halo install"))
		return false
	}
	if full {
		r = a.advance(ctx, r)
	}
	ok = a.restore(ctx, r)
	if full {
		ok = a.report() && ok
	}
	return ok
}

// advance installs the release of the source when it is newer.
func (a *agent) advance(ctx context.Context, r *Record) *Record {
	v, trust, dir, done, err := a.o.Source.Next(ctx, r)
	if err != nil {
		a.fail(Event{}, fmt.Errorf("no new release: %w", err))
		return r
	}
	if v == nil {
		return r
	}
	defer done()
	i, err := a.device.Install(ctx, InstallOptions{Release: v, Dir: dir, Ring: r.Ring, Units: r.Units, Trust: trust})
	if err != nil {
		a.fail(Event{Version: v.Manifest.Version, Sequence: v.Manifest.Sequence, Digest: v.Digest}, fmt.Errorf("new release: %w", err))
		if now, err := a.device.LoadRecord(); err == nil && now != nil {
			return now // what was begun is finished by restoring
		}
		return r
	}
	r = i.Record
	a.emit(Event{Event: "installed", Version: r.Version, Sequence: r.Sequence, Digest: r.Digest, Target: r.Target})
	return r
}

// restore puts back every managed file that drifted, and removes what an interrupted installation left.
func (a *agent) restore(ctx context.Context, r *Record) (ok bool) {
	t, err := a.device.open(false)
	if err != nil {
		a.fail(Event{}, err)
		return false
	}
	defer t.close()
	found, unreadable := t.drifts(r)
	ok = true
	for dest, err := range unreadable {
		a.fail(Event{Dest: dest}, err)
		ok = false
	}
	if len(found) == 0 {
		return ok
	}
	unlock, err := t.lock(ctx)
	if err != nil {
		a.fail(Event{}, err)
		return false
	}
	defer unlock()
	// Who held the lock may have installed another release, or removed this one.
	if now, err := t.record(); err != nil || now == nil || now.Digest != r.Digest || len(now.Files) != len(r.Files) {
		return false
	}
	for _, drift := range found {
		i := slices.IndexFunc(r.Files, func(f Installed) bool { return f.Dest == drift.Dest })
		if i < 0 {
			continue
		}
		e := Event{Harness: drift.Harness, Dest: drift.Dest, Drift: drift.Kind}
		if err := t.repair(r.Files[i], drift); err != nil {
			a.fail(e, err)
			ok = false
			continue
		}
		e.Event, e.Message = "restored", drift.Message
		a.emit(e)
	}
	if len(r.Stale) > 0 {
		stale := slices.Clone(r.Stale)
		if err := t.finish(r); err != nil {
			a.fail(Event{}, err)
			return false
		}
		for _, dest := range stale {
			a.emit(Event{Event: "restored", Dest: dest, Message: "removed: the release before had it"})
		}
	}
	return ok
}

// repair writes one managed file again from the bytes that were verified when it was installed.
func (t *tree) repair(f Installed, drift Drift) error {
	data, _, err := t.read(t.device.cached(f.SHA256), fileLimit)
	if err != nil || digest(data) != f.SHA256 {
		return fmt.Errorf("%s: the verified copy is missing or damaged; install the release again", t.device.cached(f.SHA256))
	}
	if drift.Directory {
		dir, name, err := t.file(f.Dest, true)
		if err != nil {
			return shown(err, f.Dest)
		}
		// Only an empty directory goes; what someone put into it is not halo's to remove.
		err = dir.Remove(name)
		dir.Close()
		if err != nil {
			return shown(err, f.Dest)
		}
	}
	return t.put(f.Dest, data, f.Owner, f.mode())
}

// report emits the posture when it changed.
func (a *agent) report() bool {
	r, err := a.device.Doctor(DoctorOptions{Homes: a.o.Homes, Environ: a.o.Environ, Now: a.o.Now()})
	if err != nil {
		a.fail(Event{}, err)
		return false
	}
	e := Event{Event: "posture", Version: r.Version, Sequence: r.Sequence, Digest: r.Digest, Target: r.Target, OK: &r.OK, Problems: r.Drift, Harnesses: r.Harnesses}
	if a.posture == nil || !reflect.DeepEqual(*a.posture, e) {
		a.emit(e)
		a.posture = &e
	}
	return r.OK
}

// watch keeps an eye on the directories of the managed files, or, where one is missing, on the nearest one above it.
func (a *agent) watch() {
	if a.watcher == nil {
		return
	}
	want := map[string]bool{}
	if r, err := a.device.LoadRecord(); err == nil && r != nil {
		for _, f := range r.Files {
			for rel := path.Dir(a.device.rel(f.Dest)); ; rel = path.Dir(rel) {
				dir := filepath.Join(a.device.Root, filepath.FromSlash(rel))
				// Adding a directory again renews the watch of one that was replaced.
				err := a.watcher.Add(dir)
				if err == nil {
					want[dir] = true
				}
				if err == nil || !errors.Is(err, fs.ErrNotExist) || rel == "." {
					break
				}
			}
		}
	}
	for dir := range a.watched {
		if !want[dir] {
			_ = a.watcher.Remove(dir)
		}
	}
	a.watched = want
}
