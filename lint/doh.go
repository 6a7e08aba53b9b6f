package lint

import "halos.dev/halo/compiler/diag"

var dnsOverHTTPS = Rule{
	Code: &diag.Code{ID: "HALO2302", Severity: diag.Warning, Title: "DNS over HTTPS", Since: "0.1.0",
		Text: "The host answers DNS queries over HTTPS. An agent that can reach it can resolve any name past the organization's resolver and carry data out in names. Builds and " +
			"package managers do not need it.",
		Before: "allowedDomains: [dns.google]", After: "deniedDomains: [dns.google]"},
	Find: func(p *Pass) { allowedHosts(p, resolverHosts, "answers DNS over HTTPS") },
}

// resolverHosts are public DNS-over-HTTPS resolvers, from their operators' documentation, read 2026-11-30.
var resolverHosts = []string{
	"chrome.cloudflare-dns.com", "cloudflare-dns.com", "dns.adguard-dns.com", "dns.alidns.com", "dns.controld.com", "dns.google", "dns.nextdns.io",
	"dns.quad9.net", "dns.sb", "dns10.quad9.net", "dns11.quad9.net", "doh.cleanbrowsing.org", "doh.dns.apple.com", "doh.libredns.gr", "doh.mullvad.net",
	"doh.opendns.com", "doh.pub", "freedns.controld.com", "mozilla.cloudflare-dns.com", "one.one.one.one", "security.cloudflare-dns.com",
	"unfiltered.adguard-dns.com",
}
