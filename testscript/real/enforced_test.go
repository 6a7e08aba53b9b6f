//go:build linux

package real

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/harness/rendertest"
)

// attack is one row of testdata/enforced.yaml, which explains its fields.
type attack struct {
	Harness, Name string
	Concepts      []harness.Concept
	Policy        string
	Files         map[string]string
	User          string
	Argv          []string
	Shell         []string
	Reaches       []string
	Stops, Keeps  []string
}

func readAttacks(t *testing.T) []attack {
	t.Helper()
	f, err := os.Open("testdata/enforced.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var as []attack
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&as); err != nil {
		t.Fatal(err)
	}
	return as
}

// TestEnforcedTable wants an attack for whatever the table of a harness calls enforced and seen on Linux: that a setting is read is no proof that it holds.
func TestEnforcedTable(t *testing.T) {
	attacks := readAttacks(t)
	for _, h := range all.Harnesses() {
		if !slices.ContainsFunc(attacks, func(a attack) bool { return a.Harness == h.ID }) {
			continue
		}
		for _, c := range h.Capabilities {
			if row := h.Capability(c.Concept, "linux", h.Known); row.Grade == harness.Enforced && row.Verified && !slices.ContainsFunc(attacks, func(a attack) bool {
				return a.Harness == h.ID && slices.Contains(a.Concepts, c.Concept)
			}) {
				t.Errorf("%s calls %s enforced and seen, and no attack tries to undo it", h.ID, c.Concept)
			}
		}
	}
}

// TestRealEnforced has users try to undo what halo calls enforced.
func TestRealEnforced(t *testing.T) {
	needCLIs(t)
	attacks := readAttacks(t)
	lanes(t, func(t *testing.T, l *lane) {
		for _, a := range attacks {
			if a.Harness == l.cli.ID {
				t.Run(a.Name, func(t *testing.T) { l.attack(t, a) })
			}
		}
	})
}

// attack runs a session with the files of the row's policy and one without: what it stops is seen in the second and not in the first, and what it keeps in the first.
func (l *lane) attack(t *testing.T, a attack) {
	hs := all.Harnesses()
	h := hs[slices.IndexFunc(hs, func(h *harness.Harness) bool { return h.ID == a.Harness })]
	tg := rendertest.Target(t, a.Harness, l.cli.Version, "linux", a.Policy)
	tg.GatewayURL = "https://" + Gateway
	rendered, _ := h.Render(tg)
	var files []File
	for _, f := range rendered {
		files = append(files, File{Path: f.Dest, Content: f.Content})
	}
	with, said := l.seen(t, a, files)
	for _, want := range a.Keeps {
		l.assert(t, "keeps "+want, slices.ContainsFunc(with, contains(want)), "seen: %q\n%s", with, said)
	}
	for _, no := range a.Stops {
		l.assert(t, "stops "+no, !slices.ContainsFunc(with, contains(no)), "seen: %q\n%s", with, said)
	}
	if len(a.Stops) == 0 {
		return
	}
	without, said := l.seen(t, a, nil)
	for _, want := range a.Stops {
		l.assert(t, "without the policy "+want, slices.ContainsFunc(without, contains(want)), "seen: %q\n%s", without, said)
	}
}

func contains(part string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, part) }
}

// seen is what was observed of a session, one sentence each.
func (l *lane) seen(t *testing.T, a attack, managed []File) (seen []string, output string) {
	files := slices.Concat(workspace(), managed)
	for path, content := range a.Files {
		f := File{Path: path, Content: []byte(content)}
		if strings.HasPrefix(content, "#!") {
			f.Mode = 0o755
		}
		files = append(files, f)
	}
	run := Run{Run: l.cli.Session(files, nil)}
	run.Hosts = append(run.Hosts, a.Reaches...)
	if a.User != "" {
		own := run.Files[0]
		own.Content = []byte(strings.ReplaceAll(a.User, "@base@", string(own.Content)))
		run.Files = append(slices.Clone(run.Files), own)
	}
	if a.Argv != nil {
		run.Argv = a.Argv
	}
	for _, c := range a.Shell {
		run.Script = append(run.Script, l.cli.Shell(c))
	}
	run.Watch = []string{Home + "/managed", Home + "/users", Home + "/session", Home + "/outside"}
	run.Gateways = []string{"http://collector.acme.example:4318", "http://other.example:4319", "http://localhost:1234"}
	res, err := Do(t.Context(), l.prefix, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		seen = append(seen, "tool "+tool)
	}
	for _, u := range res.URLs {
		seen = append(seen, "asked "+u)
	}
	for _, h := range res.Hits {
		seen = append(seen, "reached "+h)
	}
	for i, r := range res.Results {
		seen = append(seen, fmt.Sprintf("call %d: %s", i, r))
	}
	for path, text := range res.Watched {
		for line := range strings.Lines(text) {
			seen = append(seen, "wrote "+path+": "+strings.TrimSpace(line))
		}
	}
	for line := range strings.Lines(res.Output) {
		seen = append(seen, "said "+strings.TrimSpace(line))
	}
	slices.Sort(seen)
	return slices.Compact(seen), tail(res.Output)
}
