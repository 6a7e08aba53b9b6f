// Package cache remembers the findings of a run together with everything that the run saw of the policy repo. A later run that would see the same has the same
// findings, and needs only to look: it reads and hashes, and decodes, resolves and renders nothing. A build remembers the release that it wrote, too. Where something
// changed, a check decodes only the files that did, and renders only the policies that are new.
//
// An entry is only ever a shortcut. It is used when the same program asks the same question and every file, directory and missing file that was looked at is what it
// was; anything else, a damaged entry too, means that the work is done again. A directory that others can write is not used. What signs never asks the cache.
package cache

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/tape"
	"halos.dev/halo/lint/report"
)

// few is the number of files up to which a repo is not worth an entry: its work takes less than finding out that it was done.
const few = 100

// limit is how many bytes the entries of a directory may have in all; the oldest go first.
const limit = 256 << 20

// suffix ends the name of an entry, and begin is how one begins: the name and version of the format.
const (
	suffix = ".halo-run"
	begin  = "halo run 3\n"
)

// Store is a directory with entries.
type Store struct {
	// Dir is made when the first entry is written.
	Dir string
	// Program is the file of the running program (see Running); entries of another program are not used.
	Program string
	// Codes are all codes that exist.
	Codes []*diag.Code
}

// Question is what a run is asked, beside the files of the repo.
type Question struct {
	// Dir is the path of the repo. An entry for another path is not looked for, though its answer would be the same.
	Dir string
	// Advise says whether the advisory rules run.
	Advise bool
	// Build is everything else that a build is asked; "" for a check.
	Build string
	// Day is the instant at which expiry is judged. Everything that expires does so at the end of a day, so only the day counts.
	Day time.Time
}

// Instant returns the first instant of the day of t in UTC: what a run must be given as the time when its findings are to be remembered.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

func (q Question) key() string {
	return fmt.Sprintf("%s\n%t\n%s\n%s\n", q.Dir, q.Advise, Instant(q.Day).Format(time.DateOnly), q.Build)
}

// The two entries of a question: what a run saw and found, and what it made on the way.
const (
	runs = "run"
	made = "parts"
)

func (s *Store) path(q Question, what string) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%x%s", sha256.Sum256(fmt.Appendf(nil, "%s\n%t\n%s\n%s", what, q.Advise, q.Dir, q.Build)), suffix))
}

// errUnsafe says why a directory is not used.
var errUnsafe = errors.New("others can write it")

// Check reports why the directory cannot be used; one that does not exist yet can.
func (s *Store) Check() error {
	info, err := os.Lstat(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("not a directory")
	case !ours(info):
		return errUnsafe
	}
	return nil
}

// Find returns the findings of an earlier run that would see through rec what it saw, or nil, and the note that was saved with them. Without findings, the run that is
// recorded next is spared what the earlier one made of the files that are still the same.
func (s *Store) Find(ctx context.Context, q Question, rec *Recorder, workers int) (rep *report.Report, note string) {
	if s.Check() != nil {
		return nil, ""
	}
	id, err := s.program()
	if err != nil {
		return nil, ""
	}
	var program, key, trace string
	t := load(s.path(q, runs))
	for _, part := range []*string{&program, &key, &note, &trace} {
		t.Str(part)
	}
	if program != id {
		return nil, ""
	}
	if rec.Look(ctx, trace, workers) && key == q.key() {
		rep = &report.Report{}
		if findings(t, rep, s.Codes); t.Done() {
			return rep, note
		}
	}
	t = load(s.path(q, made))
	if t.Str(&program); program == id {
		earlier := newParts()
		if earlier.tape(t); t.Done() {
			rec.follow(earlier)
		}
	}
	return nil, ""
}

// load returns a tape with what an entry holds. One of no entry, or of a damaged one, has nothing to read.
func load(name string) *tape.Tape {
	body, err := read(name)
	if err != nil {
		body = ""
	}
	return tape.Reader(body)
}

// read reads an entry: a regular file of ours that is whole. What it holds is not copied, since it is large.
func read(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || !ours(info) || info.Size() > limit {
		return "", errUnsafe
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var head [len(begin) + sha256.Size]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return "", err
	}
	var body strings.Builder
	body.Grow(int(info.Size()))
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(&body, h), f); err != nil {
		return "", err
	}
	if want := h.Sum([]byte(begin)); !bytes.Equal(head[:], want) {
		return "", errors.New("damaged")
	}
	return body.String(), nil
}

// program identifies the running program by its bytes: a version would not do, since it stays the same while halo is worked on.
func (s *Store) program() (string, error) {
	f, err := os.Open(s.Program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return string(h.Sum(nil)), nil
}

// Save remembers the findings of a run that saw what rec recorded, with a note. A repo with few files is not worth it, and files that changed during the run are not remembered.
func (s *Store) Save(q Question, rec *Recorder, rep *report.Report, note string) error {
	if len(rep.Files) <= few {
		return nil
	}
	trace, ok := rec.Trace()
	if !ok {
		return nil
	}
	id, err := s.program()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	// The findings are few, the trace is most of it.
	t := tape.Writer(make([]byte, 0, len(trace)+64<<10))
	key := q.key()
	for _, part := range []*string{&id, &key, &note, &trace} {
		t.Str(part)
	}
	findings(t, rep, s.Codes)
	if err := replace(s.path(q, runs), t); err != nil {
		return err
	}
	if p := rec.parts(); 100*p.fresh > len(p.documents)+len(p.plans) {
		t := tape.Writer(make([]byte, 0, p.size()))
		t.Str(&id)
		p.tape(t)
		if err := replace(s.path(q, made), t); err != nil {
			return err
		}
	}
	return s.evict(limit)
}

// replace writes an entry whole and puts it in the place of path.
func replace(path string, t *tape.Tape) error {
	body, ok := t.Text()
	if !ok {
		return errors.New("a finding has a code that does not exist")
	}
	sum := sha256.Sum256(body)
	f, err := os.CreateTemp(filepath.Dir(path), "*"+suffix+".tmp")
	if err != nil {
		return err
	}
	for _, p := range [][]byte{[]byte(begin), sum[:], body} {
		if err == nil {
			_, err = f.Write(p)
		}
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

// evict removes the oldest entries until the rest is within the limit, and what killed runs left.
func (s *Store) evict(limit int64) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	var ours []fs.FileInfo
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) && !strings.HasSuffix(e.Name(), suffix+".tmp") {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			ours = append(ours, info)
		}
	}
	slices.SortFunc(ours, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	var total int64
	for _, info := range ours {
		if total += info.Size(); total > limit {
			if err := os.Remove(filepath.Join(s.Dir, info.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Running returns the name of the file of the running program. Where the system has a name for what runs, rather than for what lies now where it was started, it
// is that.
func Running() (string, error) {
	const linux = "/proc/self/exe"
	if _, err := os.Stat(linux); err == nil {
		return linux, nil
	}
	return os.Executable()
}

// Locate returns the directory for entries that HALO_CACHE and the system name: setting is the value of the variable, "" for none, "off" for no cache, else a
// directory. It returns "" for no cache.
func Locate(setting string) string {
	switch setting {
	case "off":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "halo")
	}
	return setting
}

// ours reports whether only the user who runs the program can write a file or directory. Windows keeps a user's cache to the user.
func ours(info fs.FileInfo) bool {
	if runtime.GOOS == "windows" {
		return true
	}
	uid, ok := pack.FileUID(info)
	return ok && uid == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}
