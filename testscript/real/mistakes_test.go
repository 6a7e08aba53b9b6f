//go:build linux

package real

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// mistake is one row of testdata/mistakes.yaml, which explains its fields.
type mistake struct {
	Harness, Name                   string
	Files                           map[string]string
	Mode                            os.FileMode
	Says, Mentions, Session, Prints string
	Probes                          map[string]string
}

func readMistakes(t *testing.T) []mistake {
	t.Helper()
	f, err := os.Open("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ms []mistake
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&ms); err != nil {
		t.Fatal(err)
	}
	return ms
}

// TestMistakesTable keeps the table in order where no CLI is run.
func TestMistakesTable(t *testing.T) {
	var ids, names []string
	for _, c := range CLIs() {
		ids = append(ids, c.ID)
	}
	for _, p := range probes() {
		names = append(names, p.name)
	}
	seen := map[string]bool{}
	for _, m := range readMistakes(t) {
		key := m.Harness + ": " + m.Name
		if seen[key] {
			t.Errorf("%s stands there twice", key)
		}
		seen[key] = true
		if !slices.Contains(ids, m.Harness) {
			t.Errorf("%s: no such harness", key)
		}
		if !slices.Contains([]string{"", "silent", "reported", "fatal"}, m.Says) || !slices.Contains([]string{"", "none"}, m.Session) {
			t.Errorf("%s: unknown word in says or session", key)
		}
		if m.Says == "" && m.Session == "" && m.Prints == "" && len(m.Probes) == 0 || len(m.Files) == 0 {
			t.Errorf("%s shows nothing", key)
		}
		for name, want := range m.Probes {
			if !slices.Contains(names, name) || want != "yes" && want != "no" {
				t.Errorf("%s: no probe %q with the outcome %q", key, name, want)
			}
		}
	}
}

func TestRealMistakes(t *testing.T) {
	needCLIs(t)
	mistakes := readMistakes(t)
	lanes(t, func(t *testing.T, l *lane) {
		for _, m := range mistakes {
			if m.Harness == l.cli.ID {
				t.Run(m.Name, func(t *testing.T) { l.show(t, m) })
			}
		}
	})
}

// show proves one row.
func (l *lane) show(t *testing.T, m mistake) {
	var files []File
	for _, path := range slices.Sorted(maps.Keys(m.Files)) {
		files = append(files, File{Path: path, Content: []byte(m.Files[path]), Mode: m.Mode})
	}
	if m.Says != "" {
		v, err := l.cli.Check(t.Context(), l.prefix, files)
		if err != nil {
			t.Fatal(err)
		}
		said := "silent"
		switch {
		case v.Fatal:
			said = "fatal"
		case v.Reports != "":
			said = "reported"
		}
		l.assert(t, "it is "+m.Says, said == m.Says, "it is %s: %s", said, v.Reports)
		if m.Mentions != "" {
			l.assert(t, "it mentions "+m.Mentions, strings.Contains(v.Reports, m.Mentions), "it says: %s", v.Reports)
		}
	}
	if m.Session == "" && m.Prints == "" && len(m.Probes) == 0 {
		return
	}
	ps := slices.DeleteFunc(probes(), func(p try) bool { return m.Probes[p.name] == "" && p.name != "true runs" })
	outcomes, res := l.play(t, files, ps)
	if m.Session == "none" {
		l.assert(t, "no session starts", res.Exit != 0 && len(res.Results) == 0, "exit status %d, %d tool calls answered; the CLI printed:\n%s", res.Exit,
			len(res.Results), tail(res.Output))
		return
	}
	if m.Prints != "" {
		l.assert(t, "a session prints "+m.Prints, strings.Contains(res.Output, m.Prints), "it printed:\n%s", tail(res.Output))
	}
	for i, p := range ps {
		if want := m.Probes[p.name]; want != "" {
			l.assert(t, p.name+": "+want, outcomes[i] == want, "it is %q; the model was told %q; the CLI printed:\n%s", outcomes[i], res.Results, tail(res.Output))
		}
	}
}
