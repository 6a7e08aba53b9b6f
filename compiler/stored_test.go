package compiler

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"reflect"
	"sync"
	"testing"
	"testing/fstest"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

// memory keeps plans, and no document.
type memory struct {
	mu          sync.Mutex
	plans       map[[sha256.Size]byte]string
	asked, made int
}

func (m *memory) Document(string) (f source.File, text string, ok bool) { return f, "", false }
func (m *memory) KeepDocument(string, []byte)                           {}

func (m *memory) Plan(of [sha256.Size]byte) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	text, ok := m.plans[of]
	return text, ok
}

func (m *memory) KeepPlan(of [sha256.Size]byte, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	m.plans[of] = string(text)
}

// What was found for a policy is found again without rendering, and only while everything that it depends on is the same.
func TestPlansAreKept(t *testing.T) {
	repo := fstest.MapFS{}
	examples := acme(t)
	err := fs.WalkDir(examples, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(examples, name)
		repo[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{plans: map[[sha256.Size]byte]string{}}
	plain := func(m Memory) (*Compiled, []diag.Diagnostic) {
		var diags diag.List
		c := Compile(t.Context(), Input{FS: repo, Now: now, Memory: m}, &diags)
		if diags.Errors() > 0 {
			t.Fatal(diags.Sorted())
		}
		return c, diags.Sorted()
	}
	check := func(what string, again bool) {
		t.Helper()
		want, findings := plain(nil)
		m.asked, m.made = 0, 0
		got, found := plain(m)
		if !reflect.DeepEqual(found, findings) {
			for i := range min(len(found), len(findings)) {
				if !reflect.DeepEqual(found[i], findings[i]) {
					t.Fatalf("%s: of %d findings, the first that differs is\n%+v\nwant, of %d,\n%+v", what, len(found), found[i], len(findings), findings[i])
				}
			}
			t.Fatalf("%s: %d findings, want %d", what, len(found), len(findings))
		}
		if m.asked == 0 || again && m.made > 0 || !again && m.made != m.asked {
			t.Errorf("%s: %d plans were asked for and %d made", what, m.asked, m.made)
		}
		for i, target := range got.Targets {
			for j, r := range got.Plan(target).Renderings {
				if gaps := want.Plan(want.Targets[i]).Renderings[j].Gaps; !reflect.DeepEqual(r.Gaps, gaps) {
					t.Fatalf("%s: %s: %s on %s has the gaps\n%v\nwant\n%v", what, target.ID, r.Harness.ID, r.OS, r.Gaps, gaps)
				}
			}
		}
	}
	check("first", false)
	check("again", true)
	// The organization, its gateway and its models stand in rendered files.
	for _, edit := range [][3]string{{"halos.yaml", "org: acme", "org: other"}, {"gateway.yaml", "https://ai.acme", "https://models.acme"}} {
		data := bytes.Replace(repo[edit[0]].Data, []byte(edit[1]), []byte(edit[2]), 1)
		if bytes.Equal(data, repo[edit[0]].Data) {
			t.Fatalf("%s has no %q", edit[0], edit[1])
		}
		repo[edit[0]] = &fstest.MapFile{Data: data}
		if edit[0] == "gateway.yaml" {
			for _, f := range repo {
				f.Data = bytes.ReplaceAll(f.Data, []byte("ai.acme.example"), []byte("models.acme.example"))
			}
		}
		check("another "+edit[0], false)
	}
	for of, text := range m.plans {
		m.plans[of] = text[:len(text)-1]
	}
	check("damaged", false)
}
