// Package egress decides whether a host may be reached: a denied entry denies, else an allowed entry or preset allows, else the default. It is the one
// place that decides it; validation, queries, tests and renderers all ask here.
package egress

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/host"
)

// Entry is one pattern of a host list and where it comes from.
type Entry struct {
	Pattern host.Pattern
	// Field is egress.allowedDomains, egress.presets or egress.deniedDomains; Name is the entry as it reads there: the pattern, or the preset's name.
	Field, Name string
	Pos         diag.Pos
}

// Rules are the lists of an effective policy, in list order. Default is "allow", "deny" or "" when it was not written.
type Rules struct {
	Allowed, Denied []Entry
	Default         string
	DefaultPos      diag.Pos
}

// Policy is a compiled set of rules. It is immutable.
type Policy struct {
	rules          Rules
	allow, deny    *host.Set
	open, implied  bool
	defaultOutcome Decision
}

// Decision is the answer for one host and the rule that gave it.
type Decision struct {
	Allow bool
	// Field and Entry name the rule; for the default they are egress.default and its value.
	Field, Entry string
	Pattern      host.Pattern
	// Implied is set when the default decided and was not written.
	Implied bool
	Pos     diag.Pos
}

// Rule returns the rule as it is printed: egress.deniedDomains pastebin.com.
func (d Decision) Rule() string { return d.Field + " " + d.Entry }

// Match is one entry that matches a host, whether or not it decided.
type Match struct {
	Entry Entry
	Allow bool
}

// Compile prepares rules for many decisions. An unset default means deny when anything is allowed, otherwise allow.
func Compile(r Rules) *Policy {
	p := &Policy{rules: r, allow: set(r.Allowed), deny: set(r.Denied)}
	switch r.Default {
	case "allow":
		p.open = true
	case "deny":
	default:
		p.implied = true
		p.open = len(r.Allowed) == 0
	}
	p.defaultOutcome = Decision{Allow: p.open, Field: "egress.default", Entry: "deny", Implied: p.implied, Pos: r.DefaultPos}
	if p.open {
		p.defaultOutcome.Entry = "allow"
	}
	return p
}

func set(es []Entry) *host.Set {
	ps := make([]host.Pattern, len(es))
	for i, e := range es {
		ps[i] = e.Pattern
	}
	return host.NewSet(ps)
}

// Decide answers for a host. It does not allocate.
func (p *Policy) Decide(n host.Name) Decision {
	if i, ok := p.deny.Match(n); ok {
		return decision(&p.rules.Denied[i], false)
	}
	if i, ok := p.allow.Match(n); ok {
		return decision(&p.rules.Allowed[i], true)
	}
	return p.defaultOutcome
}

func decision(e *Entry, allow bool) Decision {
	return Decision{Allow: allow, Field: e.Field, Entry: e.Name, Pattern: e.Pattern, Pos: e.Pos}
}

// Matches lists every entry that matches a host, denied entries first, each list in its order.
func (p *Policy) Matches(n host.Name) []Match {
	var out []Match
	for _, i := range p.deny.MatchAll(n) {
		out = append(out, Match{p.rules.Denied[i], false})
	}
	for _, i := range p.allow.MatchAll(n) {
		out = append(out, Match{p.rules.Allowed[i], true})
	}
	return out
}

// Rules returns the rules that the policy was compiled from. The caller must not change the lists.
func (p *Policy) Rules() Rules { return p.rules }

// Default returns what happens to a host on no list, and whether that was implied rather than written.
func (p *Policy) Default() (allow, implied bool) { return p.open, p.implied }

// Allowed returns the allowed entries, presets expanded, in list order. The caller must not change them.
func (p *Policy) Allowed() []Entry { return p.rules.Allowed }

// Denied returns the denied entries in list order. The caller must not change them.
func (p *Policy) Denied() []Entry { return p.rules.Denied }

// AllowSet returns the allowed patterns; indexes are those of Allowed.
func (p *Policy) AllowSet() *host.Set { return p.allow }

// DenySet returns the denied patterns; indexes are those of Denied.
func (p *Policy) DenySet() *host.Set { return p.deny }

// AllowedHosts returns the allowed patterns as text, presets expanded, in list order.
func (p *Policy) AllowedHosts() []string { return texts(p.rules.Allowed) }

// DeniedHosts returns the denied patterns as text, in list order.
func (p *Policy) DeniedHosts() []string { return texts(p.rules.Denied) }

func texts(es []Entry) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.Pattern.String()
	}
	return out
}
