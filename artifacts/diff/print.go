package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// conclude sets the verdict, the counts and the sentence of a report.
func (r *Report) conclude() {
	r.Verdict = Same
	worse := func(v Verdict) {
		if v.rank() < r.Verdict.rank() {
			r.Verdict = v
		}
	}
	if len(r.People)+len(r.Presets)+len(r.Packs)+len(r.Pins)+len(r.Exceptions) > 0 {
		r.Verdict = Changed
	}
	tighter := false
	for _, g := range r.Groups {
		switch n := len(g.Targets); g.Verdict {
		case Looser:
			r.Targets.Looser += n
			worse(Looser)
		case Tighter:
			r.Targets.Tighter += n
			tighter = true
		case Changed:
			r.Targets.Changed += n
			worse(Changed)
		case Same:
			r.Targets.Same += n
		}
		if g.Status != "" {
			worse(Changed)
		}
	}
	for _, m := range r.People {
		if m.Verdict == Looser {
			worse(Looser)
		}
	}
	if tighter && r.Verdict != Looser {
		r.Verdict = Tighter
	}
	r.Summary = r.sentence()
}

// sentence says what the change means in one sentence.
func (r *Report) sentence() string {
	total := r.Targets.Looser + r.Targets.Tighter + r.Targets.Changed + r.Targets.Same
	var parts []string
	part := func(n int, one, many string) {
		switch {
		case n == 0:
		case n == total:
			parts = append(parts, fmt.Sprintf("all %d targets %s", n, many))
		case n == 1:
			parts = append(parts, "1 target "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d targets %s", n, many))
		}
	}
	if total == 1 {
		part = func(n int, one, _ string) {
			if n > 0 {
				parts = append(parts, "the one target "+one)
			}
		}
	}
	part(r.Targets.Looser, "gets looser", "get looser")
	part(r.Targets.Tighter, "gets tighter", "get tighter")
	part(r.Targets.Changed, "changes in no direction", "change in no direction")
	part(r.Targets.Same, "stays the same", "stay the same")
	s := sentenceOf(parts)
	if s == "" {
		s = "There is no target"
	}
	if w := r.firstWitness(); w != "" {
		s += ": agents may do more than before, first of all " + w
	} else if r.Verdict == Tighter {
		s += ": nothing is allowed that was not before"
	}
	for _, x := range []struct {
		which string
		n     int
	}{{"old", r.errors[0]}, {"new", r.errors[1]}} {
		if x.n > 0 {
			s += fmt.Sprintf("; the %s policy has %s", x.which, count(x.n, "error"))
		}
	}
	if n := len(r.Warnings.New); n > 0 {
		s += fmt.Sprintf("; %s", count(n, "new warning"))
	}
	gaps := map[string]bool{}
	for _, g := range r.Groups {
		for _, x := range g.Gaps.New {
			gaps[x.Harness+x.Field+x.Message] = true
		}
	}
	if n := len(gaps); n > 0 {
		s += fmt.Sprintf("; %s in what the harnesses hold", count(n, "new gap"))
	}
	return s + "."
}

func sentenceOf(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	s := strings.Join(parts[:len(parts)-1], ", ")
	if s != "" {
		s += " and "
	}
	s += parts[len(parts)-1]
	return strings.ToUpper(s[:1]) + s[1:]
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// firstWitness is the witness for the sentence: a decided one when there is one.
func (r *Report) firstWitness() string {
	first := ""
	for _, g := range r.Groups {
		for _, d := range g.Looser {
			if !d.Undecided {
				return d.Witness
			}
			if first == "" {
				first = d.Witness + " (direction not known)"
			}
		}
	}
	for _, m := range r.People {
		if first == "" && m.Verdict == Looser {
			first = m.Name + ", " + m.Witness
		}
	}
	return first
}

// maxNames is how many names are printed in a line, maxLines how many items of a section.
const (
	maxNames = 8
	maxLines = 50
)

// listed joins names, the first few and how many more.
func listed(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(names)-maxNames)
}

// Item is a line of a printed report: what is said, of which targets, and where it was written.
type Item struct {
	Text string
	// Targets has a target more than once when it is said of several of its groups.
	Targets []string
	Where   []string
}

// Section is a list of items under a title.
type Section struct {
	Title string
	Items []Item
	// More is how many items are left out.
	More int
}

// Heads lists the verdicts with their targets, the worst first; Where says in one text, possibly "", how targets of one side only were compared.
func (r *Report) Heads() []Item {
	var out []Item
	at := map[string]int{}
	for _, g := range r.Groups {
		what := ""
		switch {
		case g.Against != "":
			what = fmt.Sprintf(" (%s; compared with %s)", g.Status, g.Against)
		case g.Status != "":
			what = " (" + g.Status + ")"
		}
		key := string(g.Verdict) + what
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, Item{Text: string(g.Verdict), Where: []string{what}})
		}
		i := at[key]
		out[i].Targets = append(out[i].Targets, g.Targets...)
	}
	for i := range out {
		slices.Sort(out[i].Targets)
	}
	return out
}

// Sections lists everything else, each thing once with all targets it is said of, and at most limit things of a section.
func (r *Report) Sections(limit int) []Section {
	var out []Section
	var at map[string]int
	begin := func(title string) {
		out = append(out, Section{Title: title})
		at = map[string]int{}
	}
	add := func(text, where string, targets []string) {
		s := &out[len(out)-1]
		i, ok := at[text]
		switch {
		case !ok && len(s.Items) == limit:
			s.More++
			return
		case !ok:
			i = len(s.Items)
			at[text] = i
			s.Items = append(s.Items, Item{Text: text})
		}
		x := &s.Items[i]
		x.Targets = append(x.Targets, targets...)
		if where != "" && !slices.Contains(x.Where, where) {
			x.Where = append(x.Where, where)
		}
	}
	groups := func(title string, each func(g *Group)) {
		begin(title)
		for i := range r.Groups {
			each(&r.Groups[i])
		}
	}
	differences := func(of func(g *Group) []Difference) func(g *Group) {
		return func(g *Group) {
			for _, d := range of(g) {
				text := d.Witness
				if d.Undecided {
					text += " (direction not known)"
				}
				add(text, d.where(), g.Targets)
			}
		}
	}
	gaps := func(of func(g *Group) []Gap) func(g *Group) {
		return func(g *Group) {
			for _, x := range of(g) {
				if x.Harness == "" {
					add(x.Message, x.Code+" "+x.Field, g.Targets)
					continue
				}
				add(fmt.Sprintf("%s on %s: %s", x.Harness, strings.Join(x.OS, ", "), strings.TrimPrefix(x.Message, x.Harness+": ")), strings.TrimSpace(x.Code+" "+x.Field), g.Targets)
			}
		}
	}
	groups("looser", differences(func(g *Group) []Difference { return g.Looser }))
	groups("tighter", differences(func(g *Group) []Difference { return g.Tighter }))
	groups("changed", func(g *Group) {
		for _, v := range g.Changed {
			add(v.text(), "", g.Targets)
		}
	})
	groups("files", func(g *Group) {
		for _, l := range g.fileLines() {
			add(l, "", g.Targets)
		}
	})
	groups("new gaps", gaps(func(g *Group) []Gap { return g.Gaps.New }))
	groups("gaps gone", gaps(func(g *Group) []Gap { return g.Gaps.Gone }))

	begin("people")
	for _, m := range r.People {
		add(m.text(), "", nil)
	}
	for _, l := range []struct {
		title string
		list  []ListChange
	}{{"presets", r.Presets}, {"exceptions", r.Exceptions}} {
		begin(l.title)
		for _, x := range l.list {
			add(x.text(), "", nil)
		}
	}
	begin("packs")
	for _, v := range r.Packs {
		add(v.text(), "", nil)
	}
	begin("pins")
	for _, p := range r.Pins {
		add(fmt.Sprintf("%s: %s -> %s", p.Harness, cmp.Or(p.Old, "none"), cmp.Or(p.New, "none")), "", p.Targets)
	}
	for _, l := range []struct {
		title string
		list  []Warning
	}{{"new warnings", r.Warnings.New}, {"warnings gone", r.Warnings.Gone}} {
		begin(l.title)
		for _, w := range l.list {
			at := w.File
			if w.Line > 0 {
				at += ":" + strconv.Itoa(w.Line)
			}
			add(fmt.Sprintf("[%s] %s", w.Code, w.Message), at, nil)
		}
	}
	begin("notes")
	for _, n := range r.Notes {
		add(n, "", nil)
	}
	return slices.DeleteFunc(out, func(s Section) bool { return len(s.Items) == 0 })
}

// who says of which targets something is said.
func (x *Item) who(r *Report) string {
	names := slices.Sorted(slices.Values(x.Targets))
	names = slices.Compact(names)
	all := r.Targets.Looser + r.Targets.Tighter + r.Targets.Changed + r.Targets.Same
	if len(names) == all && all > 1 {
		return "all targets"
	}
	return listed(names)
}

// where says in which setting and place a difference lies.
func (d *Difference) where() string {
	at := d.Field
	if d.Entry != "" && !strings.HasSuffix(d.Witness, d.Entry) {
		at += " " + d.Entry
	}
	for _, p := range slices.Backward(d.Places) {
		at = fmt.Sprintf("%s, %s:%d:%d", at, p.File, p.Line, p.Column)
		if p.Side == "old" {
			at += " before"
		}
		break
	}
	return at
}

func (v *ValueChange) text() string {
	return fmt.Sprintf("%s: %s -> %s", v.Name, cmp.Or(v.Old, "none"), cmp.Or(v.New, "none"))
}

func (l *ListChange) text() string {
	var parts []string
	for _, s := range l.Added {
		parts = append(parts, "+"+s)
	}
	for _, s := range l.Removed {
		parts = append(parts, "-"+s)
	}
	name := l.Name
	if l.Status != "" {
		name += " (" + l.Status + ")"
	}
	return name + ": " + listed(parts)
}

// fileLines lists the files of a group, those of the same name and harness in one line.
func (g *Group) fileLines() []string {
	type change struct{ harness, base, what string }
	oss := map[change][]string{}
	var order []change
	for _, f := range g.Files {
		c := change{f.Harness, path.Base(strings.ReplaceAll(f.Dest, `\`, "/")), f.Change}
		if oss[c] == nil {
			order = append(order, c)
		}
		oss[c] = append(oss[c], f.OS)
	}
	var out []string
	for _, c := range order {
		what := c.what
		if what == "mode" {
			what = "owner or mode changed"
		}
		at := ""
		if names := slices.Compact(oss[c]); names[0] != "" {
			at = " on " + strings.Join(names, ", ")
		}
		out = append(out, fmt.Sprintf("%s %s%s: %s", c.harness, c.base, at, what))
	}
	return out
}

func (m *Move) text() string {
	s := m.Name + ":"
	if len(m.Joined) > 0 {
		s += " +" + listed(m.Joined)
	}
	if len(m.Left) > 0 {
		s += " -" + listed(m.Left)
	}
	if m.Verdict != Same {
		s += " [" + string(m.Verdict) + "]"
	}
	if m.Witness != "" {
		s += " " + m.Witness
	}
	return s
}

// Text prints a report for a terminal: the worst first, the sentence last. Paint may add colour to a verdict; nil adds none.
func (r *Report) Text(w io.Writer, paint func(Verdict) string) error {
	if paint == nil {
		paint = func(v Verdict) string { return string(v) }
	}
	var b bytes.Buffer
	for _, h := range r.Heads() {
		fmt.Fprintf(&b, "%s%*s%s\n", paint(Verdict(h.Text)), 9-len(h.Text), "", plain(listed(h.Targets)+h.Where[0]))
	}
	for _, s := range r.Sections(maxLines) {
		fmt.Fprintf(&b, "\n%s\n", s.Title)
		for _, x := range s.Items {
			fmt.Fprintf(&b, "  %s\n", plain(x.Text))
			if who := x.who(r); who != "" {
				fmt.Fprintf(&b, "      for %s\n", plain(who))
			}
			if len(x.Where) > 0 {
				fmt.Fprintf(&b, "      %s\n", plain(strings.Join(x.Where, "; ")))
			}
		}
		if s.More > 0 {
			fmt.Fprintf(&b, "  and %d more; --output json has all\n", s.More)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", plain(r.Summary))
	_, err := w.Write(b.Bytes())
	return err
}

// Markdown prints a report as the text of a pull request comment. What needs a reviewer is open, the rest folded.
func (r *Report) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### Policy change: %s\n\n%s\n\n| verdict | targets |\n| --- | --- |\n", r.Verdict, inline(r.Summary))
	for _, h := range r.Heads() {
		fmt.Fprintf(&b, "| **%s** | %s |\n", h.Text, cell(listed(h.Targets)+h.Where[0]))
	}
	for _, s := range r.Sections(maxLines) {
		open := s.Title == "looser" || s.Title == "tighter" || s.Title == "changed"
		if open {
			fmt.Fprintf(&b, "\n**%s**\n\n", s.Title)
		} else {
			fmt.Fprintf(&b, "\n<details><summary>%s (%d)</summary>\n\n", s.Title, len(s.Items)+s.More)
		}
		b.WriteString("| what | targets | where |\n| --- | --- | --- |\n")
		for _, x := range s.Items {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(x.Text), inline(x.who(r)), cell(strings.Join(x.Where, "; ")))
		}
		if s.More > 0 {
			fmt.Fprintf(&b, "| and %d more | | |\n", s.More)
		}
		if !open {
			b.WriteString("\n</details>\n")
		}
	}
	fmt.Fprintf(&b, "\n<sub>%s to %s, compared by halo</sub>\n", code(r.Old.Name), code(r.New.Name))
	_, err := w.Write(b.Bytes())
	return err
}

// plain makes a text safe for a line of a terminal.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}

// code makes a text a code span, in which Markdown and HTML mean nothing, and nobody is mentioned.
func code(s string) string {
	if s == "" {
		return ""
	}
	s = plain(s)
	longest, run := 0, 0
	for _, c := range s {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		s = " " + s + " "
	}
	return fence + s + fence
}

// cell makes a text a code span in a table.
func cell(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

// inline makes a text a sentence that Markdown shows as it is.
func inline(s string) string {
	var b strings.Builder
	for _, c := range plain(s) {
		if strings.ContainsRune("\\`*_{}[]<>#|~&@", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
