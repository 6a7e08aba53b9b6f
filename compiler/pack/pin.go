package pack

import (
	"strings"

	"halos.dev/halo/compiler/diag"
)

// Evidence says how what this package knows of DefenseClaw is known.
const Evidence = "read in cisco-ai-defense/defenseclaw (2026-11)"

// Pin makes a block ready for release: repo:NAME as the required pack becomes NAME with the digest of the repo's bytes. repo returns the pack at
// packs/NAME/pack.yaml, nil when it does not exist or does not load. c is not changed.
//
// A pinned digest that differs from the repo's pack is an error, a built-in pack pinned by digest a warning.
func Pin(c *Config, where Positions, repo func(name string) *Pack) (*Config, []diag.Diagnostic) {
	out := *c
	admin := &out.Admin
	name, fromRepo := strings.CutPrefix(admin.RequiredPack, "repo:")
	const packKey, digestKey = "admin.required_pack", "admin.required_pack_digest"
	var found []diag.Diagnostic
	switch {
	case IsBuiltin(name) && fromRepo:
		found = append(found, diag.New(codeNoPack, where[packKey], packKey, "repo:%s names a pack that is built into DefenseClaw, not one of the repo", name).WithHint("write %s", name))
	case IsBuiltin(name):
		if admin.RequiredPackDigest != "" {
			found = append(found, diag.New(codePinned, where[digestKey], digestKey, "the built-in pack %s is pinned by digest and changes with every DefenseClaw release", name).WithHint("remove required_pack_digest"))
		}
	case ValidName(name):
		p := repo(name)
		if p == nil {
			if fromRepo {
				found = append(found, diag.New(codeNoPack, where[packKey], packKey, "the repo has no usable pack at packs/%s/%s", name, FileName))
			}
			break
		}
		if want := admin.RequiredPackDigest; want != "" && want != p.Digest {
			found = append(found, diag.New(codeDigest, where[digestKey], digestKey, "the pinned digest is %s, the pack in the repo has %s", want, p.Digest).WithHint("remove required_pack_digest: the release writes it for repo:%s", name))
		}
		if fromRepo {
			admin.RequiredPack, admin.RequiredPackDigest = name, p.Digest
		}
	}
	return &out, found
}
