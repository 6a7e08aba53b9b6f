package lint

import (
	"strconv"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

var exfiltration = Rule{
	Code: &diag.Code{ID: "HALO2301", Severity: diag.Warning, Title: "host that anybody can upload to", Since: "0.1.0",
		Text: "Anybody can store text or files at this host, or receive requests there, without an account of the organization. An allowed agent can carry data out " +
			"through it. Take it off the list, or allow the one host name that is yours.",
		Before: "allowedDomains: [webhook.site]", After: "deniedDomains: [webhook.site, \"*.webhook.site\"]"},
	Find: func(p *Pass) { allowedHosts(p, uploadHosts, "anybody can upload to") },
}

// uploadHosts are paste sites, file drops, request collectors and tunnels in common use. Collected 2026-11-30 from the services' own pages.
var uploadHosts = []string{
	"0x0.st", "anonfiles.com", "bashupload.com", "beeceptor.com", "burpcollaborator.net", "catbox.moe", "controlc.com", "dpaste.com", "dpaste.org",
	"file.io", "filebin.net", "gist.github.com", "gofile.io", "hastebin.com", "hookb.in", "ix.io", "justpaste.it", "localhost.run", "mega.nz",
	"ngrok-free.app", "ngrok.io", "oshi.at", "paste.ee", "paste.rs", "pastebin.com", "pipedream.net", "pixeldrain.com", "privatebin.net", "ptpb.pw",
	"rentry.co", "requestbin.com", "requestcatcher.com", "sendspace.com", "serveo.net", "sprunge.us", "temp.sh", "termbin.com", "tmpfiles.org",
	"transfer.sh", "trycloudflare.com", "uguu.se", "webhook.site", "wetransfer.com", "zippyshare.com",
}

// allowedHosts reports entries that documents write on an allow list and that reach one of the hosts.
func allowedHosts(p *Pass, hosts []string, what string) {
	patterns := make([]host.Pattern, 0, 2*len(hosts))
	for _, h := range hosts {
		for _, s := range []string{h, "*." + h} {
			if pattern, problem := host.ParseDenyPattern(s); problem == nil {
				patterns = append(patterns, pattern)
			}
		}
	}
	set := host.NewSet(patterns)
	report := func(l policy.Hosts, path string) {
		for i, h := range l.Items {
			reached, ok := set.Covers(h.Pattern)
			if !ok && h.Pattern.Wildcard() {
				// A wildcard above a host reaches it as well.
				for j, q := range patterns {
					if h.Pattern.Covers(q) {
						reached, ok = j, true
						break
					}
				}
			}
			if ok {
				p.Report(h.Pos, path+"["+strconv.Itoa(i)+"]", "%s reaches %s, which %s", h.Pattern, patterns[reached].Suffix(), what)
			}
		}
	}
	for _, doc := range p.Repo.Layers() {
		report(doc.Egress.AllowedDomains, "egress.allowedDomains")
	}
	for _, doc := range p.Repo.Units {
		report(doc.Overlay.Egress.AllowedDomains, "overlay.egress.allowedDomains")
	}
	for _, doc := range p.Repo.Presets {
		report(policy.Hosts{Items: doc.Hosts}, "hosts")
	}
}
