package pack

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The rules of a decision, in the order in which they are asked.
const (
	RuleInvalid          = "invalid"
	RuleHostInternal     = "host_internal"
	RulePrivateNetwork   = "private_network"
	RulePort             = "port"
	RuleAdminBlock       = "admin_block"
	RuleAdminAllowOnly   = "admin_allow_only"
	RuleBlock            = "block"
	RuleUnblock          = "unblock"
	RuleAllow            = "allow"
	RuleFeed             = "feed"
	RuleNetworkOpen      = "network_open"
	RuleIPLiteral        = "ip_literal"
	RuleNetworkAllowlist = "network_allowlist"
	RuleNetworkDeny      = "network_deny"
)

// Decision answers whether a sandbox may reach a host. Nothing was resolved: the addresses behind a name are checked again when a connection is made.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Step is the step of DefenseClaw's order that decided: 0 when the host is no destination at all, 1 and 2 for the guard, then 3 to 12.
	Step int `json:"step"`
	// Rule is one of the Rule constants; Match is the pattern, or the feed entry's name, that matched, "" for none.
	Rule  string `json:"rule"`
	Match string `json:"match,omitempty"`
	// Unblockable says that a user may unblock the host for this sandbox.
	Unblockable bool `json:"unblockable"`
}

// The lists of an engine.
const (
	listNever = iota
	listPrivate
	listAdminBlock
	listAllowOnly
	listBlock
	listUnblock
	listAllow
	listOperator
	listFeed
	listCount
)

// neverReached opens to nothing: this machine, link-local, cloud metadata, documentation and other reserved ranges (internal/openshell/egress/guard.go, newest
// version, read 2026-11). IPv4-mapped addresses are judged as IPv4 and zoned ones are always refused.
const neverReached = "localhost *.localhost *.localdomain openshell.internal *.openshell.internal host.docker.internal gateway.docker.internal " +
	"host.containers.internal metadata.google.internal " +
	"0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 100.100.100.200 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 " +
	"224.0.0.0/4 240.0.0.0/4 168.63.129.16 " +
	"::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fe80::/10 fec0::/10 ff00::/8 " +
	"fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe"

// privateNetworks are reached only where an operator allowed them.
const privateNetworks = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 " +
	"*.internal *.local *.home.arpa *.lan *.home *.corp *.intranet *.private"

// hits holds, for each list, the number of the most specific pattern that matches, 0 for none.
type hits [listCount]int32

// Engine decides for one resolved policy. It is immutable and safe for concurrent use; a decision about an ASCII host allocates nothing.
type Engine struct {
	profile   string
	ports     []int
	allowOnly bool
	unblock   bool

	// names leads from a host name to the numbers of the exact pattern and the wildcard over it, per list.
	names map[string]int32
	rules []nameRule
	// tree holds all prefixes by address, the wider of two with the same address first.
	tree []prefixRule
	// labels and bits are indexed by pattern number: what a decision shows, and the length of a prefix.
	labels []string
	bits   []uint8
}

type nameRule struct{ exact, wild hits }

type prefixRule struct {
	prefix netip.Prefix
	// outer is the index of the next wider prefix that holds this one, -1 for none.
	outer int32
	lists hits
}

// Rules are the parts of a resolved policy that decide egress; Policy.Rules fills them in.
type Rules struct {
	// Profile is open, balanced or strict.
	Profile string
	Ports   []int
	Feed    bool
	// AdminBlock is openshell.admin.egress_block, widened; AllowOnly is admin.egress_allow_only, empty when it is not set.
	AdminBlock, AllowOnly []Pattern
	Block                 []Pattern
	// Allow is the whole allow list, Operator the part that an operator wrote: everything but the entries of built-in packs.
	Allow, Operator []Pattern
	// Unblocks are what this sandbox's users unblocked; UnblockRefused says that they do not count.
	Unblocks       []Pattern
	UnblockRefused bool
}

// NewEngine compiles rules. It reads them once and keeps no reference to their lists.
func NewEngine(rules Rules) *Engine {
	e := &Engine{profile: rules.Profile, ports: slices.Clone(rules.Ports), allowOnly: len(rules.AllowOnly) > 0, unblock: !rules.UnblockRefused}
	e.names = make(map[string]int32, 512+len(rules.Block)+len(rules.Allow))
	e.labels, e.bits = append(e.labels, ""), append(e.bits, 0)
	prefixes := map[netip.Prefix]hits{}
	add := func(list int, p Pattern, label string) {
		e.labels, e.bits = append(e.labels, label), append(e.bits, uint8(max(0, p.prefix.Bits())))
		number := int32(len(e.labels) - 1)
		if p.prefix.IsValid() {
			h := prefixes[p.prefix]
			if h[list] == 0 {
				h[list] = number
			}
			prefixes[p.prefix] = h
			return
		}
		i, ok := e.names[p.name()]
		if !ok {
			i = int32(len(e.rules))
			e.names[p.name()] = i
			e.rules = append(e.rules, nameRule{})
		}
		slot := &e.rules[i].exact
		if p.Wildcard() {
			slot = &e.rules[i].wild
		}
		if slot[list] == 0 {
			slot[list] = number
		}
	}
	addAll := func(list int, patterns []Pattern) {
		for _, p := range patterns {
			add(list, p, p.text)
		}
	}
	addAll(listNever, mustPatterns(neverReached))
	addAll(listPrivate, mustPatterns(privateNetworks))
	addAll(listAdminBlock, rules.AdminBlock)
	addAll(listAllowOnly, rules.AllowOnly)
	addAll(listBlock, rules.Block)
	addAll(listUnblock, rules.Unblocks)
	addAll(listAllow, rules.Allow)
	addAll(listOperator, rules.Operator)
	if rules.Feed {
		for _, entry := range feedEntries {
			for _, p := range mustPatterns(entry.hosts) {
				add(listFeed, p, entry.name)
			}
		}
	}
	e.plant(prefixes)
	return e
}

// mustPatterns reads a list of this package's own data; a pattern that does not parse would match nothing, which a test rules out.
func mustPatterns(list string) []Pattern {
	var out []Pattern
	for s := range strings.SplitSeq(list, " ") {
		p, _ := ParsePattern(s)
		out = append(out, p)
	}
	return out
}

// plant builds the tree of prefixes: two prefixes are nested or apart, so that all that hold an address are on one chain.
func (e *Engine) plant(prefixes map[netip.Prefix]hits) {
	e.tree = make([]prefixRule, 0, len(prefixes))
	for p, h := range prefixes {
		e.tree = append(e.tree, prefixRule{prefix: p, outer: -1, lists: h})
	}
	slices.SortFunc(e.tree, func(a, b prefixRule) int {
		if c := a.prefix.Addr().Compare(b.prefix.Addr()); c != 0 {
			return c
		}
		return a.prefix.Bits() - b.prefix.Bits()
	})
	for i := 1; i < len(e.tree); i++ {
		outer := int32(i - 1)
		for outer >= 0 && !e.tree[outer].prefix.Contains(e.tree[i].prefix.Addr()) {
			outer = e.tree[outer].outer
		}
		e.tree[i].outer = outer
	}
}

// destination is a host in normal form, without memory of its own on the heap.
type destination struct {
	buf  [253]byte
	n    int
	addr netip.Addr
}

func (d *destination) name() []byte { return d.buf[:d.n] }

// parse reads a host as DefenseClaw does: trimmed, lower case, one trailing dot dropped, brackets dropped, IPv4-mapped addresses as IPv4. It answers false for
// everything that is neither a name nor an address. Unlike patterns, labels may start or end with a dash.
func (d *destination) parse(host string) bool {
	host = strings.TrimSpace(host)
	if strings.IndexByte(host, ':') >= 0 || strings.HasPrefix(host, "[") {
		if inner, ok := strings.CutPrefix(host, "["); ok {
			if host, ok = strings.CutSuffix(inner, "]"); !ok {
				return false
			}
		}
		return d.parseAddr(host)
	}
	s := strings.TrimSuffix(host, ".")
	if s == "" || len(s) > len(d.buf) {
		return false
	}
	start := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			if i == start || i-start > 63 {
				return false
			}
			start = i + 1
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_':
		default:
			return false
		}
		d.buf[i] = c
	}
	if start == len(s) || len(s)-start > 63 {
		return false
	}
	if c := d.buf[start]; c < 'a' || c > 'z' {
		return len(s) == len(host) && d.parseAddr(s)
	}
	d.n = len(s)
	return true
}

func (d *destination) parseAddr(s string) bool {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return false
	}
	if addr.Zone() == "" {
		addr = addr.Unmap()
	}
	d.addr = addr
	return true
}

// look finds the most specific match of every list: exact before wildcard, the longest wildcard, the longest prefix.
func (e *Engine) look(d *destination, h *hits) {
	if d.addr.IsValid() {
		e.lookAddr(d.addr, h)
		return
	}
	name := d.name()
	if i, ok := e.names[string(name)]; ok {
		*h = e.rules[i].exact
	}
	for at := range name {
		if name[at] != '.' {
			continue
		}
		i, ok := e.names[string(name[at+1:])]
		if !ok {
			continue
		}
		for list, number := range &e.rules[i].wild {
			if h[list] == 0 {
				h[list] = number
			}
		}
	}
}

func (e *Engine) lookAddr(addr netip.Addr, h *hits) {
	i, found := slices.BinarySearchFunc(e.tree, addr, func(r prefixRule, a netip.Addr) int { return r.prefix.Addr().Compare(a) })
	// Of the prefixes that start at the address itself, the search finds the first, which is the widest.
	for found && i+1 < len(e.tree) && e.tree[i+1].prefix.Addr() == addr {
		i++
	}
	if !found {
		i--
	}
	for i >= 0 {
		r := &e.tree[i]
		if r.prefix.Contains(addr) {
			for list, number := range &r.lists {
				if h[list] == 0 {
					h[list] = number
				}
			}
		}
		i = int(r.outer)
	}
}

// Decide answers whether the sandbox may reach host on port; port 0 skips the question of the port. Nothing is resolved.
func (e *Engine) Decide(host string, port int) Decision {
	var d destination
	if !d.parse(host) || port < 0 || port > 65535 {
		return Decision{Rule: RuleInvalid}
	}
	if !d.addr.IsValid() && !d.dotted() && string(d.name()) != "localhost" {
		return Decision{Rule: RuleInvalid}
	}
	var h hits
	e.look(&d, &h)
	return e.decide(&d, &h, port)
}

func (d *destination) dotted() bool {
	return slices.Contains(d.name(), '.')
}

func (e *Engine) decide(d *destination, h *hits, port int) Decision {
	isAddr := d.addr.IsValid()
	switch {
	case h[listNever] != 0 || d.addr.Zone() != "":
		return Decision{Step: 1, Rule: RuleHostInternal, Match: e.labels[h[listNever]]}
	case h[listPrivate] != 0 && !e.opened(isAddr, h):
		return Decision{Step: 2, Rule: RulePrivateNetwork, Match: e.labels[h[listPrivate]]}
	case port != 0 && !slices.Contains(e.ports, port):
		return Decision{Step: 3, Rule: RulePort}
	case h[listAdminBlock] != 0:
		return Decision{Step: 4, Rule: RuleAdminBlock, Match: e.labels[h[listAdminBlock]]}
	case e.allowOnly && h[listAllowOnly] == 0:
		return Decision{Step: 5, Rule: RuleAdminAllowOnly}
	case e.profile == "strict":
		return Decision{Step: 12, Rule: RuleNetworkDeny}
	case h[listBlock] != 0:
		return Decision{Step: 6, Rule: RuleBlock, Match: e.labels[h[listBlock]]}
	case e.unblock && h[listUnblock] != 0:
		return Decision{Allowed: true, Step: 7, Rule: RuleUnblock, Match: e.labels[h[listUnblock]]}
	case e.unblock && h[listAllow] != 0 && !e.curatedOnly(h):
		return Decision{Allowed: true, Step: 8, Rule: RuleAllow, Match: e.labels[h[listAllow]]}
	case h[listFeed] != 0:
		return Decision{Step: 9, Rule: RuleFeed, Match: e.labels[h[listFeed]], Unblockable: e.unblock}
	case h[listAllow] != 0 && !e.curatedOnly(h):
		return Decision{Allowed: true, Step: 8, Rule: RuleAllow, Match: e.labels[h[listAllow]]}
	case h[listAllowOnly] != 0:
		return Decision{Allowed: true, Step: 10, Rule: RuleAdminAllowOnly, Match: e.labels[h[listAllowOnly]]}
	case e.profile == "open" && isAddr:
		return Decision{Step: 11, Rule: RuleIPLiteral, Unblockable: e.unblock}
	case e.profile == "open":
		return Decision{Allowed: true, Step: 11, Rule: RuleNetworkOpen}
	}
	return Decision{Step: 12, Rule: RuleNetworkAllowlist, Unblockable: e.unblock}
}

// curatedOnly reports whether the administrator names a host that the allow list holds only as an entry of a built-in pack. Then the administrator's entry
// decides, at step 10: DefenseClaw's newest version asks its curated list after the operators' entries, and a host that both name is reached because the
// administrator says so. The verdict is the same at either step, because no curated host is on the blocklist feed.
func (e *Engine) curatedOnly(h *hits) bool { return h[listAllowOnly] != 0 && h[listOperator] == 0 }

// opened reports whether an operator's entry or the administrator's list opens a private destination. An address needs an entry no wider than the private
// range it lies in, so that 0.0.0.0/0 opens nothing private.
func (e *Engine) opened(isAddr bool, h *hits) bool {
	if !isAddr {
		return h[listOperator] != 0 || h[listAllowOnly] != 0
	}
	least := e.bits[h[listPrivate]]
	return h[listOperator] != 0 && e.bits[h[listOperator]] >= least || h[listAllowOnly] != 0 && e.bits[h[listAllowOnly]] >= least
}

// Dial answers what happens when an allowed name turns out to have these addresses: the guard and the block lists judge every answer, and one bad answer refuses
// the name. It decides about host first; for a host that is refused or that is an address, that is the answer.
func (e *Engine) Dial(host string, port int, answers []netip.Addr) Decision {
	verdict := e.Decide(host, port)
	var d destination
	if !verdict.Allowed || !d.parse(host) || d.addr.IsValid() {
		return verdict
	}
	var named hits
	e.look(&d, &named)
	opens := e.namesIntranet(&named, listOperator) || e.namesIntranet(&named, listAllowOnly)
	admitted := e.unblock && (named[listUnblock] != 0 || named[listOperator] != 0)
	for _, addr := range answers {
		var h hits
		addr = addr.Unmap()
		e.lookAddr(addr, &h)
		switch {
		case h[listNever] != 0 || addr.Zone() != "":
			return Decision{Step: 1, Rule: RuleHostInternal, Match: e.labels[h[listNever]]}
		case h[listPrivate] != 0 && !opens && !e.opened(true, &h):
			return Decision{Step: 2, Rule: RulePrivateNetwork, Match: e.labels[h[listPrivate]]}
		case h[listAdminBlock] != 0:
			return Decision{Step: 4, Rule: RuleAdminBlock, Match: e.labels[h[listAdminBlock]]}
		case h[listBlock] != 0:
			return Decision{Step: 6, Rule: RuleBlock, Match: e.labels[h[listBlock]]}
		case h[listFeed] != 0 && !admitted:
			return Decision{Step: 9, Rule: RuleFeed, Match: e.labels[h[listFeed]], Unblockable: e.unblock}
		}
	}
	return verdict
}

// namesIntranet reports whether the list names the host itself, or covers an intranet name by a wildcard: only these accept a private answer. A wildcard under
// a public domain does not, because whoever owns the domain chooses the answers.
func (e *Engine) namesIntranet(h *hits, list int) bool {
	return h[list] != 0 && (!strings.HasPrefix(e.labels[h[list]], "*.") || h[listPrivate] != 0)
}

// Explain says in words why d was decided, and what could be done, "" when nothing can.
func (e *Engine) Explain(d Decision) (reason, hint string) {
	const organization = "This destination is blocked by your organization's DefenseClaw policy"
	allowHint := "name it in openshell.egress.allow: the exact name, the address or an intranet wildcard"
	if !e.unblock {
		allowHint = "only your administrator can open it"
	}
	switch d.Rule {
	case RuleInvalid:
		return "it is not a host name with a domain or an IP address, or the port is not one of 1 to 65535", "write a full host name or an address, without scheme, port or path"
	case RuleHostInternal:
		return "DefenseClaw never opens this machine, link-local, cloud metadata or reserved addresses to a sandbox", "a service on this machine is reached through a host port"
	case RulePrivateNetwork:
		return "private networks are reached only where the operator allowed them", allowHint
	case RulePort:
		return "the port is not on the list. Allowed ports: " + ports(e.ports) + ".", ""
	case RuleAdminBlock:
		return organization + ".", ""
	case RuleAdminAllowOnly:
		if d.Allowed {
			return "it is on the organization's list of allowed destinations", ""
		}
		return organization + ", which allows only the destinations it lists.", ""
	case RuleBlock:
		return "it is on the block list of the pack or of openshell.egress.block", "only removing the entry opens it"
	case RuleUnblock:
		return "it was unblocked for this sandbox", ""
	case RuleAllow:
		return "it is on the allow list", ""
	case RuleFeed:
		for _, entry := range feedEntries {
			if entry.name == d.Match {
				return fmt.Sprintf("it is on the built-in blocklist (%s)", strings.ReplaceAll(entry.category, "_", " ")), e.unblockHint(d)
			}
		}
		return "it is on the built-in blocklist", e.unblockHint(d)
	case RuleIPLiteral:
		return "the open profile allows names, not addresses", e.unblockHint(d)
	case RuleNetworkOpen:
		return "the open profile allows public names by default", ""
	case RuleNetworkDeny:
		return "the strict profile runs without the egress proxy", ""
	}
	return "the balanced profile only allows its allowlist", e.unblockHint(d)
}

func (e *Engine) unblockHint(d Decision) string {
	if d.Unblockable {
		return "it can be unblocked for this sandbox"
	}
	return "only your administrator can open it"
}
