package host

import (
	"slices"
	"strings"
)

// registryLabels are the second levels under which country registries sell names (co.uk, com.au), sorted. Every such level of the public suffix list
// (publicsuffix.org, as of 2026-02-06) with one of these labels is meant; the few country codes without it are resold in the same way.
var registryLabels = []string{"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "govt", "mil", "ne", "net", "nom", "or", "org"}

// tenantSuffixes are the customer domains of hosting, tunnel and callback services, sorted: a selection by traffic from the private part of the public
// suffix list (publicsuffix.org, as of 2026-02-06), and services it does not list, by their own documentation (read 2026-11-30). The full list would
// bring net/http into everything that reads a host.
var tenantSuffixes = []string{
	"amazonaws.com", "appspot.com", "azure-api.net", "azurecontainerapps.io", "azureedge.net", "azurefd.net", "azurestaticapps.net", "azurewebsites.net",
	"b-cdn.net", "backblazeb2.com", "base44.app", "bitbucket.io", "blob.core.windows.net", "blogspot.com", "burpcollaborator.net", "carrd.co",
	"cloudapp.azure.com", "cloudapp.net", "cloudflarestorage.com", "cloudfront.net", "cloudfunctions.net", "codesandbox.io", "core.windows.net", "csb.app",
	"ddns.net", "deno.dev", "deno.net", "digitaloceanspaces.com", "duckdns.org", "edgekey.net", "edgesuite.net", "elasticbeanstalk.com", "elb.amazonaws.com",
	"fastly.net", "file.core.windows.net", "firebaseapp.com", "firebaseio.com", "firebasestorage.app", "fly.dev", "framer.app", "framer.website",
	"gateway.dev", "gitbook.io", "github.dev", "github.io", "githubpreview.dev", "githubusercontent.com", "gitlab.io", "gitpod.io", "glitch.me",
	"googleapis.com", "googleusercontent.com", "gradio.live", "herokuapp.com", "hf.space", "lhr.life", "linodeobjects.com", "loca.lt", "localhost.run",
	"lovable.app", "modal.run", "myshopify.com", "netlify.app", "ngrok-free.app", "ngrok-free.dev", "ngrok.app", "ngrok.dev", "ngrok.io", "nip.io", "no-ip.org",
	"notion.site", "now.sh", "oast.fun", "oast.live", "oast.me", "oast.online", "oast.pro", "oast.site", "oastify.com", "on.aws", "ondigitalocean.app",
	"onrender.com", "pages.dev", "pipedream.net", "pythonanywhere.com", "queue.core.windows.net", "r.appspot.com", "r2.cloudflarestorage.com", "r2.dev",
	"railway.app", "readthedocs.io", "repl.co", "replit.app", "replit.dev", "run.app", "s3.amazonaws.com", "serveo.net", "sharepoint.com", "sslip.io",
	"stackblitz.io", "storage.googleapis.com", "streamlit.app", "supabase.co", "surge.sh", "translate.goog", "trycloudflare.com", "ts.net", "tumblr.com",
	"up.railway.app", "val.run", "vercel.app", "vercel.dev", "vusercontent.net", "web.app", "web.core.windows.net", "webcontainer.io", "webflow.io",
	"webhook.site", "weebly.com", "wixsite.com", "wordpress.com", "workers.dev",
}

// regionSuffixes are customer domains with a region or shard in the place of the star.
var regionSuffixes = []string{
	"*.azurecontainerapps.io", "*.azurestaticapps.net", "*.cloudapp.azure.com", "*.compute.amazonaws.com", "*.digitaloceanspaces.com", "*.elasticbeanstalk.com",
	"*.elb.amazonaws.com", "*.linodeobjects.com", "*.r.appspot.com", "*.run.app", "*.web.core.windows.net", "elb.*.amazonaws.com",
	"execute-api.*.amazonaws.com", "lambda-url.*.on.aws", "s3.*.amazonaws.com",
}

// SharedSuffix reports whether strangers can register names directly under a suffix, and calls the suffix public (a registry's) or multi-tenant (a
// hosting service's).
func SharedSuffix(suffix string) (kind string, ok bool) {
	if first, tld, found := strings.Cut(suffix, "."); found && len(tld) == 2 {
		if _, ok := slices.BinarySearch(registryLabels, first); ok {
			return "public", true
		}
	}
	if _, ok := slices.BinarySearch(tenantSuffixes, suffix); ok || slices.ContainsFunc(regionSuffixes, func(r string) bool { return inRegion(r, suffix) }) {
		return "multi-tenant", true
	}
	return "", false
}

// inRegion reports whether suffix is the pattern with one label in the place of its star.
func inRegion(pattern, suffix string) bool {
	before, after, _ := strings.Cut(pattern, "*")
	if len(suffix) <= len(before)+len(after) || !strings.HasPrefix(suffix, before) || !strings.HasSuffix(suffix, after) {
		return false
	}
	return !strings.Contains(suffix[len(before):len(suffix)-len(after)], ".")
}
