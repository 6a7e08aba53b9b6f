package host

import "slices"

// sharedSuffixes are suffixes under which strangers register names of their own, sorted: registries' second levels and the customer domains of hosting
// services. A selection by traffic from the public suffix list (publicsuffix.org, read 2026-11-30); the full list would triple the size of the program.
var sharedSuffixes = []string{
	"amazonaws.com", "appspot.com", "azureedge.net", "azurefd.net", "azurestaticapps.net", "azurewebsites.net", "b-cdn.net", "bitbucket.io",
	"blob.core.windows.net", "blogspot.com", "cloudapp.azure.com", "cloudapp.net", "cloudfront.net", "cloudfunctions.net", "co.in", "co.jp", "co.kr",
	"co.nz", "co.uk", "co.za", "codesandbox.io", "com.ar", "com.au", "com.br", "com.cn", "com.hk", "com.mx", "com.sg", "com.tr", "com.tw", "deno.dev",
	"edgekey.net", "edgesuite.net", "elasticbeanstalk.com", "fastly.net", "firebaseapp.com", "fly.dev", "gitbook.io", "github.dev", "github.io",
	"gitlab.io", "gitpod.io", "glitch.me", "googleapis.com", "googleusercontent.com", "gov.uk", "herokuapp.com", "hf.space", "loca.lt", "lovable.app",
	"myshopify.com", "ne.jp", "net.au", "netlify.app", "ngrok-free.app", "ngrok.app", "ngrok.dev", "ngrok.io", "notion.site", "onrender.com", "or.jp",
	"org.au", "org.uk", "pages.dev", "pythonanywhere.com", "r2.dev", "railway.app", "readthedocs.io", "repl.co", "replit.app", "replit.dev", "run.app",
	"s3.amazonaws.com", "sharepoint.com", "stackblitz.io", "streamlit.app", "supabase.co", "surge.sh", "translate.goog", "trycloudflare.com",
	"vercel.app", "web.app", "webflow.io", "wixsite.com", "workers.dev",
}

// SharedSuffix reports whether strangers can register names directly under a suffix, and calls the suffix public (a registry's) or multi-tenant (a
// hosting service's).
func SharedSuffix(suffix string) (kind string, ok bool) {
	if _, ok := slices.BinarySearch(sharedSuffixes, suffix); !ok {
		return "", false
	}
	if len(suffix) <= 6 && suffix[len(suffix)-3] == '.' {
		return "public", true
	}
	return "multi-tenant", true
}
