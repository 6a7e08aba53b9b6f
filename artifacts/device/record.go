package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// Record is what a device remembers of its installation: StateDir/installed.json. It is written before the first managed file changes, so that whoever comes next
// after a crash knows what is wanted.
type Record struct {
	SchemaVersion int `json:"schemaVersion"`
	// Org, Sequence and Digest name the newest release that was accepted: a device only goes forward.
	Org      string `json:"org"`
	Sequence int64  `json:"sequence"`
	Digest   string `json:"digest"`
	// Trust is the version of the trust file that the release was verified with; 0 for keys.
	Trust   int64  `json:"trust,omitempty"`
	Version string `json:"version"`
	// Expires is zero when the release never does.
	Expires time.Time `json:"expires,omitzero"`
	Target  string    `json:"target"`
	Ring    string    `json:"ring"`
	Units   []string  `json:"units"`
	OS      string    `json:"os"`
	// Release is the directory that the release was installed from.
	Release string `json:"release"`
	// Default, Allowed and Denied are the resolved egress policy: hosts are counted with presets expanded.
	Default string `json:"egressDefault,omitempty"`
	Allowed int    `json:"egressAllowed"`
	Denied  int    `json:"egressDenied"`
	// Files are the managed files.
	Files []Installed `json:"files"`
	// Stale are destinations of an earlier release that are still to be removed.
	Stale []string `json:"stale,omitempty"`
}

// Installed is one managed file.
type Installed struct {
	Dest    string `json:"dest"`
	Harness string `json:"harness"`
	// Owner is empty when the file was installed without the right to set it.
	Owner  string `json:"owner,omitempty"`
	Mode   string `json:"mode"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

func (f Installed) mode() fs.FileMode {
	n, _ := strconv.ParseUint(f.Mode, 8, 32)
	return fs.FileMode(n)
}

const (
	recordName = "installed.json"
	recordSize = 8 << 20
	// fileLimit is the largest managed file, in bytes.
	fileLimit = 64 << 20
)

// state is what a release must follow, nil before the first one.
func (r *Record) state() *artifacts.State {
	if r == nil {
		return nil
	}
	return &artifacts.State{Org: r.Org, Sequence: r.Sequence, Digest: r.Digest, Trust: r.Trust}
}

// inState returns a path in the state directory.
func (d Device) inState(name string) string {
	if d.OS == "windows" {
		return d.StateDir() + `\` + name
	}
	return d.StateDir() + "/" + name
}

// LoadRecord reads the record of a device; nil when nothing is installed. A damaged record is a *Refusal with CodeState.
func (d Device) LoadRecord() (*Record, error) {
	t, err := d.open(false)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.record()
}

func (t *tree) record() (*Record, error) {
	dest := t.device.inState(recordName)
	data, _, err := t.read(dest, recordSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if _, ok := errors.AsType[*badFile](err); ok {
			return nil, refuse(CodeState, dest, "%v", err)
		}
		return nil, shown(err, dest)
	}
	r := new(Record)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, refuse(CodeState, dest, "not a record of an installation: %v", err)
	}
	_, err = dec.Token()
	if err != io.EOF || r.SchemaVersion != 1 || r.Org == "" || r.Sequence < 0 || !artifacts.IsDigest(r.Digest) || r.OS != t.device.OS {
		return nil, refuse(CodeState, dest, "not a record of an installation on %s", t.device.OS)
	}
	for _, f := range r.Files {
		if t.device.managedDir(f.Harness, f.Dest) == "" {
			return nil, refuse(CodeState, dest, "names %q, which is in no managed directory of %s", f.Dest, f.Harness)
		}
	}
	for _, s := range r.Stale {
		if !t.managedDest(s) {
			return nil, refuse(CodeState, dest, "names %q, which is in no managed directory", s)
		}
	}
	return r, nil
}

func (t *tree) managedDest(dest string) bool {
	for _, h := range t.device.Harnesses {
		if t.device.managedDir(h.ID, dest) != "" {
			return true
		}
	}
	return false
}

func (t *tree) save(r *Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := t.put(t.device.inState(recordName), append(data, '\n'), rootOwner, 0o644); err != nil {
		return fmt.Errorf("write install state: %w", err)
	}
	return nil
}

// keysName is where the keys are kept when a release was verified with keys and not with a trust file.
const (
	keysName  = "halo-keys.json"
	trustSize = 1 << 20
)

// keep stores what the next release is to be verified with.
func (t *tree) keep(trust *sign.Trust) error {
	name, other := sign.TrustName, keysName
	var data []byte
	var err error
	if trust.Version > 0 {
		data, err = trust.Encode()
	} else {
		name, other = other, name
		var keys []string
		for _, k := range trust.Keys {
			pem, err := k.PEM()
			if err != nil {
				return err
			}
			keys = append(keys, string(pem))
		}
		data, err = json.MarshalIndent(keys, "", "  ")
	}
	if err != nil {
		return err
	}
	if err := t.put(t.device.inState(name), data, rootOwner, 0o644); err != nil {
		return fmt.Errorf("write install state: %w", err)
	}
	return t.remove(t.device.inState(other))
}

// KeptTrust returns what the installed release was verified with; nil when nothing is installed.
func (d Device) KeptTrust() (*sign.Trust, error) {
	t, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer t.close()
	dest := d.inState(sign.TrustName)
	data, _, err := t.read(dest, trustSize)
	if err == nil {
		trust, err := sign.ParseTrust(data)
		if err != nil {
			return nil, refuse(CodeState, dest, "%v", err)
		}
		return trust, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		dest = d.inState(keysName)
		data, _, err = t.read(dest, trustSize)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, shown(err, dest)
	}
	var pems []string
	if err := json.Unmarshal(data, &pems); err != nil {
		return nil, refuse(CodeState, dest, "not a list of keys: %v", err)
	}
	trust := sign.TrustKeys()
	for _, pem := range pems {
		k, err := sign.ParsePublicKey([]byte(pem))
		if err != nil {
			return nil, refuse(CodeState, dest, "%v", err)
		}
		trust.Keys = append(trust.Keys, k)
	}
	return trust, nil
}

// rootOwner stands for the owner of files that belong to the administrator.
const rootOwner = "root:root"

// cached is where the bytes of an installed file are kept, to restore it from when the release is out of reach.
func (d Device) cached(sha256 string) string { return d.inState("files/" + sha256) }
