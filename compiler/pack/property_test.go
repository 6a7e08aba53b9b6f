package pack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// The universe of the property tests: hosts and the patterns around them, chosen so that every relation between patterns occurs.
var (
	universeHosts = strings.Fields("example.org a.example.org b.a.example.org example.net x.example.net pypi.org github.com raw.githubusercontent.com webhook.site x.webhook.site " +
		"pastebin.com wiki.corp a.wiki.corp db.lan x.home.arpa home.arpa localhost metadata.google.internal 10.1.2.3 10.200.0.1 172.16.5.5 172.40.0.1 192.168.1.1 100.64.1.1 100.1.1.1 " +
		"93.184.216.34 8.8.8.8 8.8.4.4 169.254.169.254 198.51.100.7 2606:4700::1111 2001:db8::1 fd00::1 fc12::1 ::1 ::ffff:10.1.2.3 intranet *.example.org")
	universePatterns = strings.Fields("example.org *.example.org a.example.org *.a.example.org example.net *.net pypi.org github.com *.githubusercontent.com webhook.site *.webhook.site " +
		"*.site pastebin.com wiki.corp *.corp *.wiki.corp db.lan *.lan *.home.arpa *.arpa 10.0.0.0/8 10.1.0.0/16 10.1.2.3 172.0.0.0/8 172.16.0.0/12 172.16.5.0/24 192.168.0.0/16 100.0.0.0/8 " +
		"100.64.0.0/10 0.0.0.0/0 8.0.0.0/8 8.8.8.0/24 8.8.8.8 93.184.216.34 2606:4700::/32 2000::/16 fd00::/16 fc00::/7 ::/0 198.51.100.0/24 localhost metadata.google.internal")
	universePorts = []int{0, 22, 80, 443, 8443}
)

func pick[T any](r *rand.Rand, list []T, most int) []T {
	var out []T
	for range r.IntN(most + 1) {
		out = append(out, list[r.IntN(len(list))])
	}
	return out
}

func pickPatterns(t testing.TB, r *rand.Rand, most int, allow bool) []Pattern {
	var out []Pattern
	for _, s := range pick(r, universePatterns, most) {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		if !allow || !p.Broad() {
			out = append(out, p)
		}
	}
	return union(nil, out)
}

func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func maybe(r *rand.Rand) *bool {
	switch r.IntN(4) {
	case 0:
		return new(bool)
	case 1:
		v := true
		return &v
	}
	return nil
}

var (
	someGlobs = []string{".env", "*.pem", "secrets/**", "a b", "ключ", "[x", "true", "1.0", "- x", "#x", "ab: c", "x\ty"}
	someTools = []string{"fs.write", "fs.*", "*", "a:b", "no"}
)

func randomPack(t testing.TB, r *rand.Rand) *Pack {
	p := &Pack{Name: one(r, []string{"team", "a", "0", "on", "null"}), Description: one(r, []string{"", "x", "ünï: #c", "yes", "\"q\""}), Network: one(r, networkModes), Approvals: one(r, approvalModes)}
	p.Egress = Egress{Block: pickPatterns(t, r, 4, false), Allow: pickPatterns(t, r, 4, true), Ports: union(nil, pick(r, []int{80, 443, 8443}, 3)), LargeUploadMB: r.IntN(3) * 10, BlockLargeUploads: r.IntN(2) == 0}
	if r.IntN(3) > 0 {
		p.Egress.Feeds = []string{"builtin"}
	}
	if len(p.Egress.Ports) == 0 && p.Network != "deny" {
		p.Egress.Ports = []int{443}
	}
	globs := func() []string { return union(nil, pick(r, someGlobs, 3)) }
	p.Workspace = Workspace{Mode: one(r, workspaceModes), Masks: globs(), Unmask: globs(), Review: globs(), MaxUploadMB: 1 + r.IntN(3)}
	p.Harness = Harness{Yolo: r.IntN(2) == 0, Allowed: union(nil, pick(r, []string{"codex", "claudecode", "no"}, 2))}
	p.MCP = MCP{Import: r.IntN(2) == 0, HostPorts: r.IntN(2) == 0, BlockedTools: union(nil, pick(r, someTools, 2)), ProjectServers: one(r, projectServers)}
	p.Hooks = Hooks{FailMode: "closed", OnTamper: one(r, tamperModes)}
	return p
}

func randomConfig(t testing.TB, r *rand.Rand) *Config {
	c := &Config{Pack: one(r, []string{"", "team", "open", "balanced", "strict"}), PackDir: one(r, []string{"", "/etc/packs", "~/packs"}), Profile: one(r, append(profiles, "", "")), Yolo: maybe(r)}
	globs := func() []string { return union(nil, pick(r, someGlobs, 2)) }
	c.Workdir = Workdir{Mode: one(r, append(workspaceModes, "", "")), Masks: globs(), Unmask: globs(), MaxUploadMB: r.IntN(3), GitDepth: r.IntN(3), OnExit: one(r, append(exitModes, ""))}
	c.Egress = UserEgress{Feed: one(r, append(feedModes, "", "")), Block: pickPatterns(t, r, 3, false), Allow: pickPatterns(t, r, 3, true), Ports: union(nil, pick(r, []int{80, 443, 8443}, 2)),
		LargeUploadMB: r.IntN(2) * 30, BlockLargeUploads: maybe(r)}
	c.MCP = UserMCP{Import: maybe(r), HostPorts: union(nil, pick(r, []int{3000, 5432}, 2))}
	quantity := func(list ...string) string { return one(r, list) }
	c.Resources = Resources{quantity("", "2", "500m"), quantity("", "2G", "512Mi")}
	a := &c.Admin
	a.RequiredPack = one(r, []string{"", "", "", "team", "strict"})
	a.MinProfile = one(r, append(profiles, "", ""))
	a.AllowYolo, a.AllowMount, a.AllowHostPorts, a.AllowUnblock, a.AllowLearnMode = maybe(r), maybe(r), maybe(r), maybe(r), maybe(r)
	a.AllowedHarnesses = union(nil, pick(r, []string{"codex", "claudecode"}, 2))
	a.EgressBlock, a.BlockLargeUploads = pickPatterns(t, r, 2, false), r.IntN(4) == 0
	if r.IntN(3) == 0 {
		a.EgressAllowOnly = pickPatterns(t, r, 4, false)
	}
	a.RequireCopyFor = pick(r, []string{"/src", "~/x", "**/secret"}, 1)
	a.MaxResources = Resources{quantity("", "1", "4"), quantity("", "1Gi", "8Gi")}
	a.Locked = union(nil, pick(r, lockKeys, 3))
	return c
}

func seeds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestPackPrintsBack(t *testing.T) {
	for seed := range seeds(1000) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		want := randomPack(t, r)
		text := Print(want)
		have, err := Load("x", text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		have.Path, have.Digest = "", ""
		if !reflect.DeepEqual(have, want) {
			t.Fatalf("seed %d:\n%+v\nprints back as\n%+v\n%s", seed, want, have, text)
		}
	}
}

func TestConfigPrintsBack(t *testing.T) {
	for seed := range seeds(1000) {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		want := randomConfig(t, r)
		text := PrintConfig(want)
		have := readConfig(t, text)
		if !reflect.DeepEqual(have, want) {
			t.Fatalf("seed %d:\n%+v\nprints back as\n%+v\n%s", seed, want, have, text)
		}
		if again := PrintConfig(have); string(again) != string(text) {
			t.Fatalf("seed %d: not the same bytes:\n%s\n%s", seed, text, again)
		}
	}
}

// readConfig reads what PrintConfig wrote.
func readConfig(t testing.TB, text []byte) *Config {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if root := doc.Content[0]; len(root.Content) != 2 || root.Content[0].Value != "openshell" {
		t.Fatalf("not one openshell block:\n%s", text)
	}
	c, _, found := ParseConfig(doc.Content[0].Content[1], Source{Path: "openshell"})
	for _, d := range found {
		if d.Severity == 0 {
			t.Fatalf("%s: %s\n%s", d.Path, d.Message, text)
		}
	}
	return c
}

func randomRules(t testing.TB, r *rand.Rand) Rules {
	rules := Rules{Profile: one(r, profiles), Ports: []int{80, 443}, Feed: r.IntN(2) == 0, AdminBlock: widenAll(pickPatterns(t, r, 2, false)), Block: pickPatterns(t, r, 3, false),
		Operator: pickPatterns(t, r, 4, true), UnblockRefused: r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		rules.AllowOnly = pickPatterns(t, r, 5, false)
	}
	if r.IntN(2) == 0 {
		rules.Allow = curated()
	}
	rules.Allow = union(rules.Allow, rules.Operator)
	for _, p := range pickPatterns(t, r, 3, false) {
		if !p.Wildcard() && (!p.prefix.IsValid() || p.prefix.IsSingleIP()) {
			rules.Unblocks = append(rules.Unblocks, p)
		}
	}
	return rules
}

// reference decides by looking at every pattern, step by step as DefenseClaw's documentation lists them.
func reference(rules *Rules, host string, port int) Decision {
	best := func(list []Pattern) string {
		found, score := "", -1
		for _, p := range list {
			if !p.Matches(host) {
				continue
			}
			s := len(p.text)
			switch {
			case p.prefix.IsValid():
				s = p.prefix.Bits()
			case !p.Wildcard():
				s = 1000
			}
			if s > score {
				found, score = p.text, s
			}
		}
		return found
	}
	hit := func(list []Pattern) bool { return best(list) != "" }
	var d destination
	ok := d.parse(host)
	isAddr := d.addr.IsValid()
	if !ok || !isAddr && !d.dotted() && string(d.name()) != "localhost" {
		return Decision{Rule: RuleInvalid}
	}
	private := mustPatterns(privateNetworks)
	opened := func(list []Pattern) bool {
		for _, p := range list {
			if !p.Matches(host) {
				continue
			}
			if !isAddr {
				return true
			}
			for _, n := range private {
				if n.Matches(host) && n.Covers(p) {
					return true
				}
			}
		}
		return false
	}
	var feed []Pattern
	entry := ""
	if rules.Feed {
		for _, e := range feedEntries {
			patterns := mustPatterns(e.hosts)
			feed = append(feed, patterns...)
			if entry == "" && hit(patterns) {
				entry = e.name
			}
		}
	}
	open := !rules.UnblockRefused
	curatedOnly := hit(rules.AllowOnly) && !hit(rules.Operator)
	allowed := hit(rules.Allow) && !curatedOnly
	steps := []struct {
		when bool
		then Decision
	}{
		{hit(mustPatterns(neverReached)), Decision{Step: 1, Rule: RuleHostInternal, Match: best(mustPatterns(neverReached))}},
		{hit(private) && !opened(rules.Operator) && !opened(rules.AllowOnly), Decision{Step: 2, Rule: RulePrivateNetwork, Match: best(private)}},
		{port != 0 && !slices.Contains(rules.Ports, port), Decision{Step: 3, Rule: RulePort}},
		{hit(rules.AdminBlock), Decision{Step: 4, Rule: RuleAdminBlock, Match: best(rules.AdminBlock)}},
		{len(rules.AllowOnly) > 0 && !hit(rules.AllowOnly), Decision{Step: 5, Rule: RuleAdminAllowOnly}},
		{rules.Profile == "strict", Decision{Step: 12, Rule: RuleNetworkDeny}},
		{hit(rules.Block), Decision{Step: 6, Rule: RuleBlock, Match: best(rules.Block)}},
		{open && hit(rules.Unblocks), Decision{Allowed: true, Step: 7, Rule: RuleUnblock, Match: best(rules.Unblocks)}},
		{open && allowed, Decision{Allowed: true, Step: 8, Rule: RuleAllow, Match: best(rules.Allow)}},
		{hit(feed), Decision{Step: 9, Rule: RuleFeed, Match: entry, Unblockable: open}},
		{allowed, Decision{Allowed: true, Step: 8, Rule: RuleAllow, Match: best(rules.Allow)}},
		{hit(rules.AllowOnly), Decision{Allowed: true, Step: 10, Rule: RuleAdminAllowOnly, Match: best(rules.AllowOnly)}},
		{rules.Profile == "open" && isAddr, Decision{Step: 11, Rule: RuleIPLiteral, Unblockable: open}},
		{rules.Profile == "open", Decision{Allowed: true, Step: 11, Rule: RuleNetworkOpen}},
		{true, Decision{Step: 12, Rule: RuleNetworkAllowlist, Unblockable: open}},
	}
	return steps[slices.IndexFunc(steps, func(s struct {
		when bool
		then Decision
	}) bool {
		return s.when
	})].then
}

// TestEngineEqualsReference compares the compiled engine with a reader of every pattern, and holds that deny wins.
func TestEngineEqualsReference(t *testing.T) {
	for seed := range seeds(60) {
		rules := randomRules(t, rand.New(rand.NewPCG(uint64(seed), 3)))
		e := NewEngine(rules)
		for _, host := range universeHosts {
			for _, port := range universePorts {
				have, want := e.Decide(host, port), reference(&rules, host, port)
				if have != want {
					t.Fatalf("seed %d: %s:%d is %+v, want %+v\n%+v", seed, host, port, have, want, rules)
				}
				denied := slices.ContainsFunc(slices.Concat(rules.Block, rules.AdminBlock), func(p Pattern) bool { return p.Matches(host) })
				if have.Allowed && (denied || rules.Profile == "strict" || port != 0 && !slices.Contains(rules.Ports, port)) {
					t.Fatalf("seed %d: %s:%d is allowed: %+v\n%+v", seed, host, port, have, rules)
				}
				if have.Allowed && have.Unblockable || have.Unblockable && rules.UnblockRefused {
					t.Fatalf("seed %d: %s:%d is %+v", seed, host, port, have)
				}
			}
		}
	}
}

// TestDialNeverAllowsMore holds that what a name resolves to can only take away.
func TestDialNeverAllowsMore(t *testing.T) {
	var answers []netip.Addr
	for _, h := range universeHosts {
		if a, err := netip.ParseAddr(h); err == nil {
			answers = append(answers, a)
		}
	}
	for seed := range seeds(40) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		e := NewEngine(randomRules(t, r))
		for _, host := range universeHosts {
			some := pick(r, answers, 3)
			name, dial := e.Decide(host, 443), e.Dial(host, 443, some)
			if dial.Allowed && !name.Allowed {
				t.Fatalf("seed %d: %s is %+v and %+v when it resolves to %v", seed, host, name, dial, some)
			}
			if more := e.Dial(host, 443, append(some, answers[0])); more.Allowed && !dial.Allowed {
				t.Fatalf("seed %d: another answer allows %s", seed, host)
			}
		}
	}
}

func TestLooserIsAPreorder(t *testing.T) {
	strict := 0
	for seed := range seeds(400) {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		base := randomPack(t, r)
		chain := []*Pack{base, tighter(t, r, base)}
		chain = append(chain, tighter(t, r, chain[1]), randomPack(t, r))
		for _, a := range chain {
			if key := Looser(a, a, ""); key != "" {
				t.Fatalf("seed %d: a pack is looser than itself in %s", seed, key)
			}
			for _, b := range chain {
				for _, c := range chain {
					if Looser(a, b, "") == "" && Looser(b, c, "") == "" {
						strict++
						if key := Looser(a, c, ""); key != "" {
							t.Fatalf("seed %d: not transitive in %s\n%+v\n%+v\n%+v", seed, key, a, b, c)
						}
					}
				}
			}
		}
	}
	if strict < seeds(400)*8 {
		t.Fatalf("only %d chains", strict)
	}
}

// tighter changes a few settings of a pack to stricter ones.
func tighter(t testing.TB, r *rand.Rand, base *Pack) *Pack {
	p := *base
	for range 3 {
		switch r.IntN(8) {
		case 0:
			p.Egress.Allow = p.Egress.Allow[:r.IntN(len(p.Egress.Allow)+1)]
		case 1:
			p.Egress.Block = union(p.Egress.Block, pickPatterns(t, r, 2, false))
		case 2:
			p.Workspace.Mode = "copy"
		case 3:
			p.Workspace.Review = union(p.Workspace.Review, []string{"Makefile"})
		case 4:
			p.Harness.Yolo = false
		case 5:
			p.Egress.Feeds = []string{"builtin"}
		case 6:
			p.Network = one(r, networkModes[rank(networkModes, p.Network):])
			if p.Network != "open" {
				p.Hooks.OnTamper = "stop"
			}
		case 7:
			p.Workspace.Unmask = p.Workspace.Unmask[:r.IntN(len(p.Workspace.Unmask)+1)]
		}
	}
	return &p
}

// resolveRandom resolves a random configuration over a random pack.
func resolveRandom(t testing.TB, c *Config, team *Pack, run Run) (*Policy, error) {
	team.Digest = fmt.Sprintf("%+v", *team)
	return Resolve(Input{Config: c, Run: run, Find: func(ref string) (*Pack, error) {
		if ref == "team" {
			return team, nil
		}
		return Builtin(ref)
	}})
}

// TestStricterPolicyReachesNoMore holds the comparison of sandboxes: a policy that is at least as strict opens no host of the universe, and the comparison is a
// preorder.
func TestStricterPolicyReachesNoMore(t *testing.T) {
	pairs := 0
	var everyHost []Pattern
	for _, h := range universeHosts {
		if p, err := ParseUnblock(h); err == nil {
			everyHost = append(everyHost, p)
		}
	}
	for seed := range seeds(120) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		team := randomPack(t, r)
		team.Name = "team"
		base := randomConfig(t, r)
		configs := []*Config{base, randomConfig(t, r)}
		for range 3 {
			configs = append(configs, tighterConfig(t, r, configs[len(configs)-1-r.IntN(2)]))
		}
		var policies []*Policy
		var engines, unblocked []*Engine
		for _, c := range configs {
			p, err := resolveRandom(t, c, team, Run{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			policies, engines, unblocked = append(policies, p), append(engines, p.Engine(nil)), append(unblocked, p.Engine(everyHost))
		}
		for i, a := range policies {
			if key := LooserPolicy(a, a); key != "" {
				t.Fatalf("seed %d: a policy is looser than itself in %s", seed, key)
			}
			for j, b := range policies {
				if LooserPolicy(a, b) != "" || i == j {
					continue
				}
				pairs++
				for _, host := range universeHosts {
					for _, port := range universePorts {
						was, is := engines[i].Decide(host, port), engines[j].Decide(host, port)
						if is.Allowed && !was.Allowed {
							t.Fatalf("seed %d: %s:%d is %+v, was %+v\n%s\n%s", seed, host, port, is, was, PrintConfig(configs[i]), PrintConfig(configs[j]))
						}
						if unblocked[j].Decide(host, port).Allowed && !unblocked[i].Decide(host, port).Allowed {
							t.Fatalf("seed %d: %s:%d can be unblocked and could not\n%s\n%s", seed, host, port, PrintConfig(configs[i]), PrintConfig(configs[j]))
						}
					}
				}
				for k, c := range policies {
					if LooserPolicy(b, c) == "" && LooserPolicy(a, c) != "" {
						t.Fatalf("seed %d: %d, %d, %d are not transitive: %s", seed, i, j, k, LooserPolicy(a, c))
					}
				}
			}
		}
	}
	if pairs < seeds(120)/4 {
		t.Fatalf("only %d pairs were compared", pairs)
	}
}

// tighterConfig changes a few keys of a configuration, mostly to stricter values.
func tighterConfig(t testing.TB, r *rand.Rand, base *Config) *Config {
	c := *base
	for range 2 {
		switch r.IntN(9) {
		case 0:
			c.Egress.Block = union(c.Egress.Block, pickPatterns(t, r, 2, false))
		case 1:
			c.Admin.EgressBlock = union(c.Admin.EgressBlock, pickPatterns(t, r, 2, false))
		case 2:
			c.Egress.Allow = c.Egress.Allow[:r.IntN(len(c.Egress.Allow)+1)]
		case 3:
			c.Egress.Allow = union(c.Egress.Allow, pickPatterns(t, r, 1, true))
		case 4:
			c.Admin.EgressAllowOnly = union(c.Admin.EgressAllowOnly, pickPatterns(t, r, 2, false))
		case 5:
			c.Profile = one(r, profiles)
		case 6:
			c.Admin.MinProfile = one(r, profiles)
		case 7:
			c.Admin.AllowUnblock = new(bool)
		case 8:
			c.Egress.Feed = "builtin"
		}
	}
	return &c
}

// TestLimitsOnlyTighten holds the administrator's layer: with any block, no run reaches a host that it does not reach without the block.
func TestLimitsOnlyTighten(t *testing.T) {
	for seed := range seeds(150) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		team := randomPack(t, r)
		team.Name = "team"
		limited := randomConfig(t, r)
		// A required pack brings its own entries, and a raised profile the curated list: only the other limits are compared.
		limited.Admin.RequiredPack, limited.Admin.Locked = "", nil
		free := *limited
		free.Admin = Admin{}
		run := Run{Profile: one(r, append(profiles, "")), Pack: one(r, []string{"", "team", "strict"})}
		a, err := resolveRandom(t, &free, team, run)
		if err != nil {
			t.Fatal(err)
		}
		b, err := resolveRandom(t, limited, team, run)
		if err != nil {
			t.Fatal(err)
		}
		if rank(profiles, b.Profile) < rank(profiles, a.Profile) || rank(approvalModes, b.Approvals) < rank(approvalModes, a.Approvals) || b.Yolo && !a.Yolo || a.WorkdirMode == "copy" && b.WorkdirMode != "copy" ||
			a.Feed && !b.Feed || a.BlockLargeUploads && a.LargeUploadMB > 0 && !b.BlockLargeUploads || b.Learn && !a.Learn {
			t.Fatalf("seed %d: limits loosen\n%+v\n%+v", seed, a.Settings, b.Settings)
		}
		ea, eb := a.Engine(nil), b.Engine(nil)
		for _, host := range universeHosts {
			was, is := ea.Decide(host, 443), eb.Decide(host, 443)
			named := slices.ContainsFunc(limited.Admin.EgressAllowOnly, func(p Pattern) bool { return p.Matches(host) })
			if is.Allowed && !was.Allowed && !named && !(a.Profile != b.Profile && is.Rule == RuleAllow) {
				t.Fatalf("seed %d: %s is %+v with limits, %+v without\n%s", seed, host, is, was, PrintConfig(limited))
			}
		}
	}
}

// TestSettingsAreComplete holds that every key is explained once, in order, whatever the layers say.
func TestSettingsAreComplete(t *testing.T) {
	for seed := range seeds(500) {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		team := randomPack(t, r)
		p, err := resolveRandom(t, randomConfig(t, r), team, Run{Harness: one(r, []string{"", "codex"}), Copy: r.IntN(2) == 0, Safe: r.IntN(2) == 0, NoMCP: r.IntN(2) == 0, Unmask: pick(r, []string{".env", "x"}, 2),
			HostPorts: pick(r, []int{3000, 18970}, 2), CPU: one(r, []string{"", "3"}), Memory: one(r, []string{"", "3Gi"}), Learn: r.IntN(2) == 0, Yolo: maybe(r)})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, s := range p.Settings {
			keys = append(keys, s.Key)
			if s.Value == "" || s.Source == "" || s.Origin == "" || s.Requested == s.Value && s.Key != "pack" {
				t.Fatalf("seed %d: %+v", seed, s)
			}
		}
		want := slices.DeleteFunc(slices.Clone(explainOrder), func(k string) bool { return k == "harness" && p.Harness == "" })
		if !slices.Equal(keys, want) {
			t.Fatalf("seed %d: %v", seed, keys)
		}
	}
}

// TestData holds the data that this package carries.
func TestData(t *testing.T) {
	seen, patterns := map[string]bool{}, 0
	for _, e := range feedEntries {
		for _, s := range strings.Split(e.hosts, " ") {
			p, err := ParsePattern(s)
			if err != nil || p.String() != s || seen[s] {
				t.Errorf("feed pattern %q of %s: %v, there twice: %v", s, e.name, err, seen[s])
			}
			seen[s] = true
			patterns++
		}
	}
	if len(feedEntries) != 57 || patterns != 225 {
		t.Errorf("%d entries with %d patterns", len(feedEntries), patterns)
	}
	for _, p := range curated() {
		for _, e := range feedEntries {
			for _, q := range mustPatterns(e.hosts) {
				if p.Covers(q) || q.Covers(p) {
					t.Errorf("curated %s meets %s of the feed", p, q)
				}
			}
		}
	}
	if len(curated()) != 49 {
		t.Errorf("%d curated patterns", len(curated()))
	}
	for _, list := range []string{neverReached, privateNetworks} {
		for s := range strings.SplitSeq(list, " ") {
			if p, err := ParsePattern(s); err != nil || p.String() != s {
				t.Errorf("%q is %q: %v", s, p, err)
			}
		}
	}
	loosest := ""
	for _, name := range BuiltinNames() {
		data, err := BuiltinBytes(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Builtin(name)
		if err != nil || p.Name != name || p.Profile() != name || p.Digest != Digest(data) || !p.BuiltIn {
			t.Errorf("%s: %+v %v", name, p, err)
		}
		if loosest != "" {
			q, _ := Builtin(loosest)
			if key := Looser(q, p, ""); key != "" {
				t.Errorf("%s is looser than %s in %s", name, loosest, key)
			}
		}
		loosest = name
	}
}
