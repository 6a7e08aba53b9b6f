package compiler

import (
	"fmt"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
)

// Outcome is what came of one policy test.
type Outcome struct {
	Document string
	Test     policy.Test
	Target   string
	// Answer is allow or deny, Rule the rule that decided.
	Answer, Rule string
}

// Passed reports whether the answer and, where the test names one, the rule are the expected ones. A rule may be given without its entry.
func (o *Outcome) Passed() bool {
	if o.Answer != o.Test.Expect.V {
		return false
	}
	want := o.Test.Rule.V
	return want == "" || o.Rule == want || strings.HasPrefix(o.Rule, want+" ")
}

// Name describes the test in a few words.
func (o *Outcome) Name() string {
	what := o.Test.Host.V
	if o.Test.Path.IsSet() {
		what = o.Test.Path.V
	}
	return fmt.Sprintf("%s %s for %s", o.Test.Expect.V, what, o.Target)
}

// Failure says what is wrong with a failed test.
func (o *Outcome) Failure() string {
	if o.Answer != o.Test.Expect.V {
		return fmt.Sprintf("expected %s, got %s by %s", o.Test.Expect.V, o.Answer, o.Rule)
	}
	return fmt.Sprintf("expected rule %s, got %s", o.Test.Rule.V, o.Rule)
}

// RunTests runs every policy test. A test without a ring runs for the default ring. The error names a test that cannot be asked.
func (c *Compiled) RunTests() ([]Outcome, error) {
	var out []Outcome
	targets := map[string]effective.Target{}
	for _, doc := range c.Repo.Tests {
		for i, t := range doc.Tests {
			var units []string
			for _, u := range t.Units.Items {
				units = append(units, u.V)
			}
			key := t.Ring.V + "\x00" + strings.Join(units, "\x00")
			target, ok := targets[key]
			if !ok {
				var err error
				if target, err = c.Resolve(Who{t.Ring.V, units}); err != nil {
					return nil, fmt.Errorf("%s tests[%d]: %w", doc.ID(), i, err)
				}
				targets[key] = target
			}
			o := Outcome{Document: doc.ID(), Test: t, Target: target.ID}
			if t.Sandbox.IsSet() {
				e, err := c.SandboxEngine(t.Sandbox.V)
				if err != nil {
					return nil, fmt.Errorf("%s tests[%d]: %w", doc.ID(), i, err)
				}
				if box := target.Policy.Box; t.Ring.IsSet() && (box == nil || box.Name.V != t.Sandbox.V) {
					return nil, fmt.Errorf("%s tests[%d]: target %s does not get sandbox %s", doc.ID(), i, target.ID, t.Sandbox.V)
				}
				d := e.Decide(t.Host.V, int(t.Port.V))
				o.Target, o.Answer, o.Rule = "sandbox "+t.Sandbox.V, answer(d.Allowed), d.Rule
			} else if t.Path.IsSet() {
				d, err := c.Path(target.Policy, t.Path.V)
				if err != nil {
					return nil, fmt.Errorf("%s tests[%d]: %w", doc.ID(), i, err)
				}
				o.Answer, o.Rule = answer(d.Allow), d.Rule
			} else {
				e, err := c.Egress(target, t.OS.V, t.Host.V, nil)
				if err != nil {
					return nil, fmt.Errorf("%s tests[%d]: %w", doc.ID(), i, err)
				}
				o.Answer, o.Rule = answer(e.Decision.Allow), e.Decision.Rule()
			}
			out = append(out, o)
		}
	}
	return out, nil
}

func answer(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}
