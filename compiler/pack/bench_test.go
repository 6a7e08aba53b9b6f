package pack

import (
	"fmt"
	"testing"
)

// bigEngine is the builtin feed with 1,000 allow and 1,000 block entries.
func bigEngine(tb testing.TB) *Engine {
	rules := Rules{Profile: "balanced", Ports: []int{80, 443}, Feed: true}
	add := func(list *[]Pattern, format string, i int) {
		p, err := ParsePattern(fmt.Sprintf(format, i))
		if err != nil {
			tb.Fatal(err)
		}
		*list = append(*list, p)
	}
	for i := range 500 {
		add(&rules.Allow, "host-%d.allowed.example", i)
		add(&rules.Allow, "*.team-%d.allowed.example", i)
		add(&rules.Block, "*.bad-%d.example", i)
		add(&rules.Block, "8.%d.0.0/20", i%256)
	}
	rules.Operator = rules.Allow
	return NewEngine(rules)
}

var benchHosts = []string{"a.b.team-499.allowed.example", "x.bad-250.example", "webhook.site", "8.200.1.2", "2606:4700::1111", "Not.On.Any.List.Example.", "10.0.0.5"}

func BenchmarkDecide(b *testing.B) {
	e := bigEngine(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e.Decide(benchHosts[i%len(benchHosts)], 443)
	}
}

func BenchmarkLoadAndResolve(b *testing.B) {
	data, err := BuiltinBytes("balanced")
	if err != nil {
		b.Fatal(err)
	}
	config := &Config{Pack: "team", Profile: "balanced", Admin: Admin{MinProfile: "balanced", Locked: lockKeys}}
	for b.Loop() {
		p, err := Resolve(Input{Config: config, Find: func(string) (*Pack, error) {
			p, problems := read("team", data, builtinName)
			return p, firstError("team", problems)
		}})
		if err != nil {
			b.Fatal(err)
		}
		p.Engine(nil)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	e := bigEngine(t)
	for _, host := range benchHosts {
		if n := testing.AllocsPerRun(100, func() { e.Decide(host, 443) }); n != 0 {
			t.Errorf("%s: %v allocations", host, n)
		}
	}
}
