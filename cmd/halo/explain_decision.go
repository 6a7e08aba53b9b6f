package main

import (
	"fmt"
	"io"
	"strings"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

// ruleJSON is a rule that matches a host or a path. Fate says whether it decides.
type ruleJSON struct {
	Field  string      `json:"field"`
	Entry  string      `json:"entry"`
	Host   string      `json:"host,omitempty"`
	Effect string      `json:"effect"`
	Fate   string      `json:"fate"`
	By     string      `json:"by,omitempty"`
	Source sourceJSON  `json:"source"`
	Preset *presetJSON `json:"preset,omitempty"`
}

func (r *ruleJSON) print(w *strings.Builder) {
	entry := firstLine(r.Entry)
	if r.Host != "" {
		entry += " (" + r.Host + ")"
	}
	fate := r.Fate
	if r.By != "" {
		fate += " by " + r.By
	}
	fmt.Fprintf(w, "  %-5s  %s %s  %s  # %s\n", r.Effect, r.Field, entry, fate, r.Source)
	if r.Preset != nil {
		fmt.Fprintf(w, "         %s\n", r.Preset)
	}
}

// explainedJSON is the answer about a host or a path: every rule in effect that matches, the one that decides first, then what layers wrote that is not in effect.
type explainedJSON struct {
	Target   string     `json:"target"`
	Profile  string     `json:"profile"`
	Host     string     `json:"host,omitempty"`
	Path     string     `json:"path,omitempty"`
	Decision string     `json:"decision"`
	Rules    []ruleJSON `json:"rules"`
	Beaten   []ruleJSON `json:"beaten,omitempty"`
	// Egress is the answer of halo egress test.
	Egress    *egressJSON   `json:"egress,omitempty"`
	Harnesses []harnessJSON `json:"harnesses"`
}

const decides = "decides"

// host explains the decision about a host.
func (x *explanation) host(input string) error {
	a, err := x.compiled.Egress(x.target, x.system, input, x.compiled.Renderings(x.target.Policy, x.system))
	if err != nil {
		return err
	}
	a.Lines = x.only(a.Lines)
	egress := egressResult(&a, x.compiled, x.rep)
	out := explainedJSON{Target: x.target.ID, Profile: x.target.Policy.Profile, Host: string(a.Host), Decision: effect(a.Decision.Allow), Rules: []ruleJSON{}, Egress: &egress, Harnesses: egress.Harnesses}
	for i, m := range a.Matches {
		r := ruleJSON{Field: m.Entry.Field, Entry: m.Entry.Name, Effect: effect(m.Allow), Fate: decides, Source: x.source(m.Entry.Pos)}
		switch {
		case i > 0 && m.Allow && !a.Decision.Allow:
			r.Fate = "beaten: a denied host wins"
		case i > 0:
			r.Fate = "says the same"
		}
		if m.Entry.Field == "egress.presets" {
			p := x.preset(m.Entry.Name)
			r.Host, r.Preset = m.Entry.Pattern.String(), &p
		}
		out.Rules = append(out.Rules, r)
	}
	if len(out.Rules) == 0 {
		out.Rules = append(out.Rules, ruleJSON{Field: a.Decision.Field, Entry: a.Decision.Entry, Effect: effect(a.Decision.Allow), Fate: decides, Source: x.source(a.Decision.Pos)})
		if a.Decision.Implied {
			f := effective.Field{Key: a.Decision.Field}
			_, why := x.target.Policy.Unset(f)
			out.Rules[0].Fate = decides + ", and is not written: " + why
		}
	}
	out.Beaten = x.beaten(func(field, value string) (string, bool) {
		switch field {
		case "egress.allowedDomains", "egress.deniedDomains":
			p, problem := host.ParseDenyPattern(value)
			return "", problem == nil && p.Matches(a.Host)
		case "egress.presets":
			hosts, _ := x.compiled.Resolver.Preset(value)
			for _, h := range hosts {
				if h.Matches(a.Host) {
					return h.String(), true
				}
			}
		}
		return "", false
	})
	return x.decision(&out, func(w io.Writer) error { return printEgress(w, &a, false) })
}

// path explains the decision about a path.
func (x *explanation) path(input string) error {
	d, err := x.compiled.Path(x.target.Policy, input)
	if err != nil {
		return err
	}
	covers, err := compiler.PathMatcher(input)
	if err != nil {
		return err
	}
	lines := x.only(x.compiled.PathLines(x.target.Policy, x.system, d))
	out := explainedJSON{Target: x.target.ID, Profile: x.target.Policy.Profile, Path: input, Decision: effect(d.Allow), Rules: []ruleJSON{}, Harnesses: []harnessJSON{}}
	for i, m := range d.Matches {
		r := ruleJSON{Field: "sandbox.protectedPaths", Entry: m.Path.String(), Effect: effect(false), Fate: decides, Source: x.source(m.Pos)}
		if i > 0 {
			r.Fate = "says the same"
		}
		out.Rules = append(out.Rules, r)
	}
	for _, m := range d.Roots {
		r := ruleJSON{Field: "sandbox.writableRoots", Entry: m.Path.String(), Effect: "write", Fate: "opens it for writing", Source: x.source(m.Pos)}
		if mode := x.target.Policy.Mode(); !d.Allow {
			r.Fate = "beaten: a protected path wins"
		} else if mode != policy.ModeWorkspaceWrite {
			r.Fate = "means nothing while the sandbox mode is " + mode
		}
		out.Rules = append(out.Rules, r)
	}
	for _, l := range lines {
		out.Harnesses = append(out.Harnesses, harnessLineJSON(l))
	}
	out.Beaten = x.beaten(func(field, value string) (string, bool) {
		if field != "sandbox.writableRoots" && field != "sandbox.protectedPaths" {
			return "", false
		}
		parse := fspath.ParseProtected
		if field == "sandbox.writableRoots" {
			parse = fspath.ParseRoot
		}
		p, problem := parse(value)
		return "", problem == nil && covers(p)
	})
	return x.decision(&out, func(w io.Writer) error {
		return printDecision(w, d.Allow, input, x.target, d.Rule, lines)
	})
}

// only keeps the lines of the harness that was asked about.
func (x *explanation) only(lines []compiler.HarnessLine) []compiler.HarnessLine {
	if x.rendering == nil {
		return lines
	}
	var out []compiler.HarnessLine
	for _, l := range lines {
		if l.Harness == x.rendering.Harness.ID {
			out = append(out, l)
		}
	}
	return out
}

// beaten lists what layers wrote about a host or path that is not in effect.
func (x *explanation) beaten(matches func(field, value string) (host string, ok bool)) []ruleJSON {
	var out []ruleJSON
	for _, f := range effective.Fields() {
		for _, l := range x.target.Policy.Chain(f).Layers {
			for _, v := range l.Values {
				if v.Fate == effective.InEffect || v.Fate == effective.Repeated {
					continue
				}
				by, ok := matches(f.Key, v.Value.Value)
				if !ok {
					continue
				}
				r := ruleJSON{Field: f.Key, Entry: v.Value.Value, Host: by, Effect: "allow", Fate: v.Fate.String(), Source: x.source(v.Pos)}
				switch f.Key {
				case "egress.deniedDomains", "sandbox.protectedPaths":
					r.Effect = "deny"
				case "sandbox.writableRoots":
					r.Effect = "write"
				}
				if v.By != nil {
					r.By = v.By.ID()
				}
				out = append(out, r)
			}
		}
	}
	return out
}

func (x *explanation) decision(out *explainedJSON, head func(io.Writer) error) error {
	var places []*sourceJSON
	for _, rules := range [2][]ruleJSON{out.Rules, out.Beaten} {
		for i := range rules {
			places = append(places, &rules[i].Source)
			if p := rules[i].Preset; p != nil {
				places = append(places, &p.Source)
			}
		}
	}
	x.commits(places)
	if x.json {
		return report.WriteJSON(x.out, out)
	}
	w := &strings.Builder{}
	if err := head(w); err != nil {
		return err
	}
	if len(out.Rules) > 0 {
		w.WriteString("rules that match\n")
	} else {
		w.WriteString("no rule matches\n")
	}
	for i := range out.Rules {
		out.Rules[i].print(w)
	}
	if len(out.Beaten) > 0 {
		w.WriteString("written, and not in effect\n")
	}
	for i := range out.Beaten {
		out.Beaten[i].print(w)
	}
	_, err := io.WriteString(x.out, w.String())
	return err
}
