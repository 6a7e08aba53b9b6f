// Package artifacts is a release on disk: its manifest, writing it atomically, reading and verifying it.
//
// A release is a directory with manifest.json, which lists every other file with size and SHA-256, and signatures over
// manifest.json. The package takes plain data; it knows nothing of policies or harnesses.
package artifacts

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"halos.dev/halo/artifacts/sign"
)

// workers is how many goroutines hash and write. More than two do not pay on the disks this was measured on.
const workers = 2

// Plan collects what goes into a release.
type Plan struct {
	// Manifest is the metadata; SchemaVersion and Files are filled in by Seal.
	Manifest Manifest
	files    []content
}

// content is one file with its bytes, or with what reads them when they are written.
type content struct {
	path string
	data []byte
	read func() ([]byte, error)
}

// Add adds a file. The bytes are not copied and must not change afterwards; adding the same slice under several paths hashes it
// once. The path is checked by Seal.
func (p *Plan) Add(path string, data []byte) {
	p.files = append(p.files, content{path: path, data: data})
}

// Release is a release in memory, complete and ready to be signed and written.
type Release struct {
	// Manifest is the parsed form of Bytes.
	Manifest *Manifest
	// Bytes is manifest.json.
	Bytes []byte

	files      []content // sorted by path
	signatures []content
}

// Seal hashes the files, adds SHA256SUMS and makes the manifest. Targets are sorted by id and system; everything else keeps its order. The
// result depends on the plan alone, not on the order of Add calls.
func (p *Plan) Seal() (*Release, error) {
	m := p.Manifest
	m.SchemaVersion = SchemaVersion
	m.Targets = slices.SortedFunc(slices.Values(m.Targets), compareTargets)
	byPath := func(a, b content) int { return strings.Compare(a.path, b.path) }
	files := slices.SortedFunc(slices.Values(p.files), byPath)
	m.Files = hashAll(files)

	var text bytes.Buffer
	m.writeSums(&text)
	sums := content{path: SumsName, data: text.Bytes()}
	sum := sha256.Sum256(sums.data)
	i, found := slices.BinarySearchFunc(files, sums, byPath)
	if found {
		return nil, fmt.Errorf("plan: %s is made by the release itself", SumsName)
	}
	files = slices.Insert(files, i, sums)
	m.Files = slices.Insert(m.Files, i, File{SumsName, hex.EncodeToString(sum[:]), int64(len(sums.data))})

	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return &Release{Manifest: &m, Bytes: data, files: files}, nil
}

// hashAll returns the manifest entries of files, hashing each distinct slice once.
func hashAll(files []content) []File {
	type slice struct {
		first *byte
		n     int
	}
	entries := make([]File, len(files))
	owner := make(map[slice]int, len(files))
	same := make([]int, len(files)) // index of the file whose bytes these are
	for i, f := range files {
		same[i] = i
		if len(f.data) == 0 {
			continue
		}
		key := slice{&f.data[0], len(f.data)}
		if j, ok := owner[key]; ok {
			same[i] = j
		} else {
			owner[key] = i
		}
	}
	each(len(files), 32, func(_, i int) {
		if same[i] == i {
			sum := sha256.Sum256(files[i].data)
			entries[i].SHA256 = hex.EncodeToString(sum[:])
		}
	})
	for i, f := range files {
		entries[i] = File{f.path, entries[same[i]].SHA256, int64(len(f.data))}
	}
	return entries
}

// writeSums writes SHA256SUMS: one line for each payload file, as sha256sum -c reads it. Paths need no escape, since a safe path has
// neither backslash nor line end. w never fails.
func (m *Manifest) writeSums(w io.Writer) {
	b := bufio.NewWriterSize(w, 32<<10)
	for _, f := range m.Files {
		if f.Path != SumsName {
			b.WriteString(f.SHA256)
			b.WriteString("  ")
			b.WriteString(f.Path)
			b.WriteByte('\n')
		}
	}
	b.Flush()
}

// Digest returns the release digest: "sha256:" and the SHA-256 of manifest.json in hex.
func (r *Release) Digest() string { return Digest(r.Bytes) }

// Sign signs the manifest; Write then adds the signature in both forms. The first signer gets manifest.json.sigstore.json and
// manifest.json.sig, each further one manifest.json.ID.sigstore.json.
func (r *Release) Sign(signer crypto.Signer) (*sign.Signature, error) {
	s, err := sign.Sign(signer, r.Bytes)
	if err != nil {
		return nil, err
	}
	if len(r.signatures) == 0 {
		r.signatures = []content{{path: DetachedName, data: s.Detached}, {path: BundleName, data: s.Bundle}}
	} else {
		r.signatures = append(r.signatures, content{path: keyBundleName(s.Key), data: s.Bundle})
	}
	return s, nil
}

func keyBundleName(k sign.PublicKey) string {
	return ManifestName + "." + k.ShortID() + ".sigstore.json"
}

// all returns every file of the release in the order in which it is written: sorted, the manifest and its signatures last.
func (r *Release) all() []content {
	signatures := slices.SortedFunc(slices.Values(r.signatures), func(a, b content) int { return cmp.Compare(a.path, b.path) })
	return slices.Concat(r.files, signatures, []content{{path: ManifestName, data: r.Bytes}})
}

// each calls do(worker, i) for 0 <= i < n from a few goroutines, which take batch indexes at a time. Results belong into slot i, so that
// their order does not depend on timing.
func each(n, batch int, do func(worker, i int)) {
	if n <= batch {
		for i := range n {
			do(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				end := int(next.Add(int64(batch)))
				for i := end - batch; i < min(end, n); i++ {
					do(w, i)
				}
				if end >= n {
					return
				}
			}
		})
	}
	wg.Wait()
}
