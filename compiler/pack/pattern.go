package pack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Pattern is one canonical host pattern: an exact name, a wildcard (*.example.com), an address or a prefix. Two patterns are equal exactly when they
// are spelled equally. The zero Pattern matches nothing.
type Pattern struct {
	text string
	// prefix is set for addresses (as a single-address prefix) and prefixes.
	prefix netip.Prefix
}

// ParsePattern reads a host pattern in any accepted spelling: outer white space and case do not matter, one trailing dot is dropped, IPv4-mapped
// addresses become IPv4, host bits of a prefix are cleared. The errors carry DefenseClaw's texts.
func ParsePattern(s string) (Pattern, error) {
	trimmed := strings.TrimSpace(s)
	switch trimmed {
	case "":
		return Pattern{}, errors.New("egress pattern is empty")
	case "*":
		return Pattern{}, errors.New(`egress pattern "*" matches every host; choose the profile instead (open allows by default, strict turns the web off)`)
	}
	name, wildcard := lowerASCII(trimmed), false
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		name, wildcard = rest, true
	}
	if bare := strings.TrimSuffix(name, "."); validName(bare) {
		if wildcard {
			bare = "*." + bare
		}
		return Pattern{text: bare}, nil
	}
	if !wildcard {
		if p, zoned, short := parsePrefix(name); p.IsValid() {
			return addressPattern(p), nil
		} else if zoned {
			return Pattern{}, fmt.Errorf("egress pattern %q: zoned IPv6 addresses are not destinations", trimmed)
		} else if short {
			return Pattern{}, fmt.Errorf("egress pattern %q: an IPv4-mapped prefix must be at least /96", trimmed)
		}
	}
	return Pattern{}, fmt.Errorf(`egress pattern %q must be a host name, "*.<host>", an IP address or a CIDR prefix`, trimmed)
}

// ParseUnblock reads what a user unblocks: one host name or one address. DefenseClaw refuses wildcards, prefixes and URLs there.
func ParseUnblock(s string) (Pattern, error) {
	p, err := ParsePattern(s)
	switch {
	case err != nil:
		return Pattern{}, err
	case p.Wildcard() || p.prefix.IsValid() && !p.prefix.IsSingleIP():
		return Pattern{}, fmt.Errorf("%q must be one host name or one address", strings.TrimSpace(s))
	}
	return p, nil
}

// parsePrefix reads an address, a bracketed address or a prefix, and says why it could not when that has a text of its own.
func parsePrefix(s string) (p netip.Prefix, zoned, short bool) {
	if strings.Contains(s, "/") {
		host, _, _ := strings.Cut(s, "/")
		if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() != "" {
			return p, true, false
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return netip.Prefix{}, false, false
		}
		if addr := p.Addr(); addr.Is4In6() {
			if p.Bits() < 96 {
				return netip.Prefix{}, false, true
			}
			p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
		}
		return p.Masked(), false, false
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if s, ok = strings.CutSuffix(inner, "]"); !ok {
			return p, false, false
		}
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return p, false, false
	}
	if addr.Zone() != "" {
		return p, true, false
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), false, false
}

func addressPattern(p netip.Prefix) Pattern {
	if p.IsSingleIP() {
		return Pattern{text: p.Addr().String(), prefix: p}
	}
	return Pattern{text: p.String(), prefix: p}
}

// validName is the grammar of a lower-case host name in a pattern, without trailing dot.
func validName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
			continue
		}
		if label := s[start:i]; label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if i < len(s) {
			start = i + 1
		}
	}
	return s[start] >= 'a' && s[start] <= 'z'
}

// lowerASCII folds only A to Z: Unicode folding would turn foreign letters (the Kelvin sign) into ASCII ones and accept names that are refused.
func lowerASCII(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// String returns the canonical spelling.
func (p Pattern) String() string { return p.text }

// MarshalText writes the canonical spelling.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// Wildcard reports whether p is *.NAME.
func (p Pattern) Wildcard() bool { return strings.HasPrefix(p.text, "*.") }

// name returns the name without "*."; it is empty for addresses.
func (p Pattern) name() string {
	if p.prefix.IsValid() {
		return ""
	}
	return strings.TrimPrefix(p.text, "*.")
}

// Matches reports whether p matches a destination, in any spelling of it. A destination that is neither a name nor an address matches nothing.
func (p Pattern) Matches(dest string) bool {
	var d destination
	if !d.parse(dest) || p.text == "" {
		return false
	}
	if d.addr.IsValid() {
		return p.prefix.IsValid() && p.prefix.Contains(d.addr)
	}
	name := string(d.name())
	if p.Wildcard() {
		return strings.HasSuffix(name, p.text[1:])
	}
	return !p.prefix.IsValid() && name == p.text
}

// Covers reports whether every destination that q matches is matched by p too.
func (p Pattern) Covers(q Pattern) bool {
	if p.prefix.IsValid() || q.prefix.IsValid() {
		return p.prefix.IsValid() && q.prefix.IsValid() && p.prefix.Bits() <= q.prefix.Bits() && p.prefix.Contains(q.prefix.Addr())
	}
	if p.Wildcard() {
		return p.text == q.text || strings.HasSuffix(q.text, p.text[1:])
	}
	return p.text == q.text && p.text != ""
}

func anyCovers(list []Pattern, q Pattern) bool {
	return slices.ContainsFunc(list, func(p Pattern) bool { return p.Covers(q) })
}

// Broad reports whether p is too wide for an allow list: a wildcard over a public suffix of the ICANN section, an IPv4 prefix shorter than /8 or an IPv6
// prefix shorter than /16. The suffix list is the one that the pinned golang.org/x/net carries.
//
// A suffix that the list knows only by a rule below it (*.ck) counts as public too: the documentation promises that an allow entry never covers a whole
// top-level domain, although DefenseClaw's own test lets these through.
func (p Pattern) Broad() bool {
	if p.prefix.IsValid() {
		return p.prefix.Addr().Is4() && p.prefix.Bits() < 8 || p.prefix.Addr().Is6() && p.prefix.Bits() < 16
	}
	return p.Wildcard() && (icannSuffix(p.text[2:]) || icannSuffix("zz"+p.text[1:]))
}

func icannSuffix(name string) bool {
	suffix, icann := publicsuffix.PublicSuffix(name)
	return icann && suffix == name
}

// Widen returns what openshell.admin.egress_block makes of p: an exact name brings its subdomains along, everything else stays as it is.
func (p Pattern) Widen() []Pattern {
	if p.prefix.IsValid() || p.Wildcard() {
		return []Pattern{p}
	}
	return []Pattern{p, {text: "*." + p.text}}
}

// widenAll widens a list and drops repetitions, the first kept.
func widenAll(list []Pattern) []Pattern {
	var out []Pattern
	for _, p := range list {
		out = union(out, p.Widen())
	}
	return out
}

// union appends the entries of more that list does not hold yet; list is not changed.
func union[T comparable](list []T, more []T) []T {
	out := slices.Clip(list)
	if len(list)+len(more) > 64 {
		seen := make(map[T]bool, len(list)+len(more))
		for _, v := range list {
			seen[v] = true
		}
		for _, v := range more {
			if !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
		return out
	}
	for _, v := range more {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
