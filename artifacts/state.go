package artifacts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// State is what a verifier remembers so that releases only go forward: the newest release that it accepted.
type State struct {
	Org string `json:"org"`
	// Sequence is that of the manifest.
	Sequence int64 `json:"sequence"`
	// Digest is the release digest.
	Digest string `json:"digest"`
	// Trust is the version of the newest trust file that a release was verified with; 0 when there was none.
	Trust int64 `json:"trust,omitempty"`
}

// LoadState reads a state file. A file that does not exist is no state (nil); one that cannot be read or is damaged is an error, never
// an empty state.
func LoadState(path string) (*State, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := new(State)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("read state: %s: not a state file: %w", path, err)
	}
	if _, err := dec.Token(); err != io.EOF || s.Org == "" || s.Sequence < 0 || s.Trust < 0 || !IsDigest(s.Digest) {
		return nil, fmt.Errorf("read state: %s: not a state file with org, sequence and digest", path)
	}
	return s, nil
}

// Accepts says whether a release may follow the state, which is nil when there is none yet. A release of another organization, an
// older trust file, a lower sequence, the same sequence with another digest, sequence 0 after any other release, and the very next
// sequence when previous, the digest that the release names as the one before it (or ""), is not that of the state, are refused with
// a *VerifyError. The release that the state names is always accepted again.
func (s *State) Accepts(next State, previous string) error {
	switch {
	case s == nil:
		return nil
	case s.Org != next.Org:
		return refuse(CodeRollback, ManifestName, "a release of %q; the state file is for %q", next.Org, s.Org)
	case next.Trust < s.Trust:
		return refuse(CodeRollback, ManifestName, "trust file version %d is older than %d, which was used before", next.Trust, s.Trust)
	case next.Digest == s.Digest:
		return nil
	case next.Sequence == 0:
		return refuse(CodeRollback, ManifestName, "sequence 0 is accepted only first; the state is at sequence %d", s.Sequence)
	case next.Sequence < s.Sequence:
		return refuse(CodeRollback, ManifestName, "sequence %d is older than %d, which was accepted before", next.Sequence, s.Sequence)
	case next.Sequence == s.Sequence:
		return refuse(CodeRollback, ManifestName, "another release with sequence %d was accepted before (%s)", s.Sequence, s.Digest)
	case next.Sequence == s.Sequence+1 && previous != "" && previous != s.Digest:
		return refuse(CodeRollback, ManifestName, "follows release %s; the one that was accepted before it is %s", previous, s.Digest)
	}
	return nil
}

// Save writes the state atomically and to disk.
func (s State) Save(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := replaceFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// replaceFile writes a file to disk whole and puts it in the place of path.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".halo-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && runtime.GOOS != "windows" {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
