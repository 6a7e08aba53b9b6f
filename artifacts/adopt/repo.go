package adopt

import (
	"maps"
	"strings"

	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/host"
)

// own are the files of a new repo that belong to its example policy.
var own = [...]string{"gateway.yaml", "packs/", "profiles/", "sandboxes/", "tests/", "units/"}

// Repo puts the imported documents, whose profile is named base, in the place of the example policy of a new repo, with a test of what they say.
func (r *Result) Repo(files map[string][]byte) map[string][]byte {
	out := maps.Clone(files)
	maps.DeleteFunc(out, func(path string, _ []byte) bool {
		for _, p := range own {
			if path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) {
				return true
			}
		}
		return false
	})
	out["profiles/base.yaml"] = r.Profile
	maps.Copy(out, r.Extra)
	if test := r.test(); test != "" {
		out["tests/imported.yaml"] = []byte(test)
	}
	return out
}

// maxTests bounds the expectations of a kind.
const maxTests = 5

// test writes down what the imported files say of a few hosts and paths.
func (r *Result) test() string {
	var b strings.Builder
	line := func(n int, key, value, expect string) {
		if n < maxTests {
			b.WriteString("  - {" + key + ": " + draft.Quote(value) + ", ring: everybody, expect: " + expect + "}\n")
		}
	}
	for i, h := range r.Allowed {
		line(i, "host", h, "allow")
	}
	for i, h := range r.Denied {
		p, _ := host.ParseDenyPattern(h)
		line(i, "host", string(p.Example()), "deny")
	}
	n := 0
	for _, p := range r.Protected {
		if strings.HasPrefix(p, "~/") && !strings.ContainsAny(p, "*?[]{}") {
			line(n, "path", p+"/file", "deny")
			n++
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "# What the imported files say, so that it stays true. halo test runs it.\napiVersion: halos.dev/v1\nkind: PolicyTest\nname: imported\ntests:\n" + b.String()
}
