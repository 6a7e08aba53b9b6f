package pack

// feedEntry is one entry of the built-in blocklist feed. A decision names the entry, not the pattern. Exact patterns do not cover subdomains and wildcards do
// not cover the name itself, which leaves the gaps that the feed has (www.rentry.co, ngrok.com).
type feedEntry struct {
	name     string
	category string
	// hosts are separated by single spaces.
	hosts string
}

// feedEntries are the built-in blocklist feed, defenseclaw-blocklist 2026.09.26.1: github.com/cisco-ai-defense/defenseclaw, policies/sandbox/egress/blocklist.yaml. It
// changes with DefenseClaw releases.
var feedEntries = []feedEntry{
	{"Pastebin", "paste_site", "pastebin.com *.pastebin.com"},
	{"paste.ee", "paste_site", "paste.ee *.paste.ee"},
	{"Rentry", "paste_site", "rentry.co rentry.org"},
	{"dpaste", "paste_site", "dpaste.org dpaste.com"},
	{"Command-line pastebins", "paste_site", "paste.rs ix.io sprunge.us termbin.com clbin.com paste.c-net.org p.ip.fi vpaste.net paste.sh"},
	{"Hastebin and Ghostbin", "paste_site", "hastebin.com hastebin.skyra.pw ghostbin.com ghostbin.co"},
	{"PrivateBin and ZeroBin public instances", "paste_site", "privatebin.net 0bin.net"},
	{"General paste sites", "paste_site", "controlc.com justpaste.it pastes.io paste.gg pastie.io paste2.org pastelink.net snippet.host katb.in bpa.st bpaste.net paste.mozilla.org paste.debian.net"},
	{"transfer.sh", "file_drop", "transfer.sh *.transfer.sh"},
	{"file.io", "file_drop", "file.io *.file.io"},
	{"Catbox and Litterbox", "file_drop", "catbox.moe *.catbox.moe"},
	{"Uguu", "file_drop", "uguu.se *.uguu.se"},
	{"Gofile", "file_drop", "gofile.io *.gofile.io"},
	{"WeTransfer", "file_drop", "wetransfer.com *.wetransfer.com we.tl"},
	{"Sendspace", "file_drop", "sendspace.com *.sendspace.com"},
	{"Filebin", "file_drop", "filebin.net *.filebin.net"},
	{"Pixeldrain", "file_drop", "pixeldrain.com *.pixeldrain.com"},
	{"ufile.io", "file_drop", "ufile.io *.ufile.io"},
	{"KrakenFiles", "file_drop", "krakenfiles.com *.krakenfiles.com"},
	{"Command-line file drops", "file_drop", "0x0.st x0.at temp.sh bashupload.com oshi.at keep.sh qu.ax tmp.ninja"},
	{"General file drops", "file_drop", "tmpfiles.org filetransfer.io easyupload.io tempsend.com send.vis.ee upload.ee fileditch.com anonymfile.com anonfiles.com bayfiles.com buzzheavier.com"},
	{"Webhook.site", "webhook_catcher", "webhook.site *.webhook.site"},
	{"RequestBin and Pipedream request bins", "webhook_catcher", "requestbin.net *.requestbin.net *.m.pipedream.net *.x.pipedream.net"},
	{"Hookbin", "webhook_catcher", "hookbin.com *.hookbin.com"},
	{"Beeceptor", "webhook_catcher", "*.beeceptor.com"},
	{"RequestCatcher", "webhook_catcher", "requestcatcher.com *.requestcatcher.com"},
	{"Postbin", "webhook_catcher", "postb.in *.postb.in"},
	{"Post Test Server", "webhook_catcher", "ptsv2.com ptsv3.com"},
	{"Webhook.cool", "webhook_catcher", "webhook.cool *.webhook.cool"},
	{"General request inspectors", "webhook_catcher", "typedwebhook.tools webhook-test.com putsreq.com requestinspector.com mockbin.org smee.io"},
	{"Interactsh", "webhook_catcher", "interact.sh *.interact.sh *.oast.fun *.oast.live *.oast.site *.oast.online *.oast.pro *.oast.me"},
	{"Burp Collaborator", "webhook_catcher", "*.burpcollaborator.net *.oastify.com"},
	{"DNS and HTTP interaction loggers", "webhook_catcher", "dnslog.cn *.dnslog.cn ceye.io *.ceye.io requestrepo.com *.requestrepo.com"},
	{"ngrok", "tunnel", "ngrok.io *.ngrok.io ngrok.app *.ngrok.app ngrok.dev *.ngrok.dev ngrok-free.app *.ngrok-free.app ngrok-free.dev *.ngrok-free.dev ngrok.pizza *.ngrok.pizza ngrok-agent.com *.ngrok-agent.com *.ngrok.com"},
	{"Cloudflare Tunnel", "tunnel", "trycloudflare.com *.trycloudflare.com argotunnel.com *.argotunnel.com *.cfargotunnel.com"},
	{"localtunnel", "tunnel", "loca.lt *.loca.lt localtunnel.me *.localtunnel.me"},
	{"Serveo", "tunnel", "serveo.net *.serveo.net *.serveousercontent.com"},
	{"localhost.run", "tunnel", "localhost.run *.localhost.run lhr.life *.lhr.life lhr.rocks *.lhr.rocks"},
	{"Pinggy", "tunnel", "pinggy.io *.pinggy.io pinggy.link *.pinggy.link *.pinggy.online"},
	{"Tunnelmole", "tunnel", "tunnelmole.net *.tunnelmole.net *.tunnelmole.com"},
	{"zrok", "tunnel", "zrok.io *.zrok.io"},
	{"PageKite", "tunnel", "pagekite.net *.pagekite.net *.pagekite.me"},
	{"Expose", "tunnel", "sharedwithexpose.com *.sharedwithexpose.com"},
	{"LocalXpose", "tunnel", "loclx.io *.loclx.io"},
	{"Localtonet", "tunnel", "localtonet.com *.localtonet.com *.localto.net"},
	{"Tailscale Funnel", "tunnel", "*.ts.net"},
	{"Microsoft Dev Tunnels", "tunnel", "*.devtunnels.ms *.tunnels.api.visualstudio.com"},
	{"Gradio share links", "tunnel", "*.gradio.live"},
	{"Packetriot", "tunnel", "pktriot.net *.pktriot.net"},
	{"portmap.io", "tunnel", "portmap.io *.portmap.io *.portmap.host"},
	{"playit.gg", "tunnel", "playit.gg *.playit.gg"},
	{"Small tunnel services", "tunnel", "bore.pub srv.us *.srv.us *.loophole.site jprq.io *.jprq.io"},
	{"Tor, I2P and exit-node names", "anonymizer", "*.onion *.i2p *.exit"},
	{"Tor2web gateways", "anonymizer", "*.onion.ws *.onion.pet *.onion.ly *.onion.to *.onion.link *.onion.sh *.onion.city tor2web.org *.tor2web.org *.tor2web.io"},
	{"Tor Project distribution and bridges", "anonymizer", "torproject.org *.torproject.org"},
	{"Web proxies", "anonymizer", "hidester.com *.hidester.com proxysite.com *.proxysite.com croxyproxy.com *.croxyproxy.com croxyproxy.rocks *.croxyproxy.rocks kproxy.com *.kproxy.com 4everproxy.com *.4everproxy.com proxyium.com *.proxyium.com blockaway.net *.blockaway.net hide.me *.hide.me anonymouse.org"},
	{"Open proxy lists", "anonymizer", "proxyscrape.com *.proxyscrape.com free-proxy-list.net spys.one"},
}
