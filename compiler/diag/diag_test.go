package diag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestPos(t *testing.T) {
	for _, c := range []struct{ file, line, col, wantLine, wantCol int }{
		{0, 1, 1, 1, 1}, {65535, 7, 9, 7, 9}, {3, 1 << 27, 1 << 19, 1 << 27, 1 << 19}, {1, 1 << 40, 1 << 40, maxLine, maxCol}, {1, -5, -5, 0, 0},
	} {
		p := NewPos(c.file, c.line, c.col)
		if p.File() != c.file || p.Line() != c.wantLine || p.Col() != c.wantCol || p.IsValid() != (c.wantLine > 0) {
			t.Errorf("%+v: %d:%d:%d", c, p.File(), p.Line(), p.Col())
		}
	}
	if Pos(0).IsValid() {
		t.Error("the zero place is a place")
	}
	// The order of values is that of file, line and column.
	ordered := []Pos{NewPos(0, 1, 1), NewPos(0, 1, 2), NewPos(0, 2, 1), NewPos(0, 1<<28, 1<<20), NewPos(1, 1, 1), NewPos(65535, 1, 1)}
	if !slices.IsSorted(ordered) {
		t.Error(ordered)
	}
}

func TestDiagnostic(t *testing.T) {
	code := &Code{ID: "HALO9999", Severity: Warning}
	d := New(code, NewPos(0, 1, 1), "a.b", "found %d", 3).WithHint("write %s", "x").WithRelated(NewPos(0, 2, 2), "see %s", "here").WithRelated(0, "nowhere")
	if d.Severity != Warning || d.Message != "found 3" || d.Hint != "write x" || len(d.Related) != 1 || d.Related[0].Message != "see here" {
		t.Errorf("%+v", d)
	}
	// A diagnostic made of another shares nothing with it.
	a, b := d.WithRelated(NewPos(0, 3, 3), "a"), d.WithRelated(NewPos(0, 4, 4), "b")
	if a.Related[1].Message != "a" || b.Related[1].Message != "b" || len(d.Related) != 1 {
		t.Errorf("%+v %+v", a, b)
	}
	for s, want := range map[Severity]string{Error: "error", Warning: "warning", Info: "info"} {
		if s.String() != want {
			t.Errorf("%d is %s", s, s)
		}
	}
}

// TestList holds that the order and number of findings do not depend on who adds them when.
func TestList(t *testing.T) {
	codes := []*Code{{ID: "HALO0001"}, {ID: "HALO0002", Severity: Warning}, {ID: "HALO0003", Severity: Info}}
	var all []Diagnostic
	for i := range 60 {
		d := New(codes[i%3], NewPos(i%4, i%5, i%3), fmt.Sprint("p", i%2), "m%d", i%7)
		if i%6 == 0 {
			d.File = fmt.Sprint("f", i)
		}
		all = append(all, d)
	}
	all = append(all, all...)
	var want string
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var l List
		var wg sync.WaitGroup
		for part := range slices.Chunk(all, 13) {
			wg.Go(func() { l.Add(part...) })
		}
		wg.Wait()
		ds := l.Sorted()
		if !slices.IsSortedFunc(ds, Compare) || len(ds) != 60 || l.Errors() != 20 || l.Warnings() != 20 || l.NoAnswer() || l.Len() != 60 {
			t.Fatalf("%d findings, %d errors, %d warnings", len(ds), l.Errors(), l.Warnings())
		}
		if got := fmt.Sprint(ds); want == "" {
			want = got
		} else if got != want {
			t.Fatal("the order depends on who added what when")
		}
	}
	var l List
	l.Add(New(&Code{ID: "HALO0004", NoAnswer: true}, 0, "", "m"))
	if !l.NoAnswer() {
		t.Error("a finding that makes an answer impossible is lost")
	}
}

func TestNearest(t *testing.T) {
	words := []string{"allowedDomains", "deniedDomains", "presets", "default"}
	for word, want := range map[string]string{
		"allowDomains": "allowedDomains", "AllowedDomains": "allowedDomains", "presset": "presets", "preset": "presets", "defualt": "default", "denied": "deniedDomains", "zzzzz": "", "": "", "x": "",
		"allowedDomain": "allowedDomains", strings.Repeat("a", 100): "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("ab", nil); got != "" {
		t.Error(got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 2}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
