package simple

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
)

// Document is a document that simple mode makes, with what a document of the repo lays over it.
type Document struct {
	Kind, Name string
	// File is the file of the document that lies over it, "" when there is none.
	File string
	// YAML is the whole document. Every value says in a comment where it comes from.
	YAML string
}

// Documents returns what simple mode makes of a repo: the Gateway, the Profile, the Rings by their order. It is empty for a repo that is not in simple mode.
func Documents(repo *policy.Repo) ([]Document, error) {
	out := make([]Document, 0, len(repo.Made))
	for _, h := range repo.Made {
		text, err := print(node(repo, h, origin(repo, h)))
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", h.ID(), err)
		}
		d := Document{Kind: h.Kind, Name: h.Name.V, YAML: string(text)}
		if f := repo.Files.Name(h.Pos); f != policy.RootFile {
			d.File = f
		}
		out = append(out, d)
	}
	return out, nil
}

// node is the whole document of a header.
func node(repo *policy.Repo, h *policy.Header, n note) *yaml.Node {
	switch h.Kind {
	case "Gateway":
		return gateway(repo.Gateway, n)
	case "Profile":
		p := repo.Profile(h.Name.V)
		body := p.Body
		if p.Base != nil {
			body = effective.Merge(&p.Base.Body, &p.Body)
		}
		return profile(p, &body, n)
	}
	return ring(repo.Ring(h.Name.V), n)
}

// origin says of every value of a document which key of halos.yaml or which line of another file it comes from.
func origin(repo *policy.Repo, h *policy.Header) note {
	s := repo.Root.Simple
	return func(field string, pos diag.Pos) string {
		place := fmt.Sprintf("%s:%d:%d", repo.Files.Name(pos), pos.Line(), pos.Col())
		if repo.Files.Name(pos) != policy.RootFile {
			return place
		}
		key := s.Key(pos)
		section, _, _ := strings.Cut(field, ".")
		switch {
		case h.Kind == "Ring" && !s.Rollout.IsSet() && field != "membership.users" && field != "membership.groups":
			return "rollout: standard, by default"
		case h.Kind == "Profile" && !s.Safety.IsSet() && strings.HasPrefix(key, "tools") && section != "harnesses":
			return "safety: standard, by default"
		}
		return strings.TrimSpace(place + " " + key)
	}
}
