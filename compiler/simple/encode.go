// Package simple shows and writes out the documents that simple mode makes of the root keys of halos.yaml.
package simple

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// note says where a value of a document comes from, "" for nothing to say. field is its key path.
type note func(field string, pos diag.Pos) string

// block is a mapping that is being written, at a key path.
type block struct {
	node *yaml.Node
	path string
	note note
}

func mapping(n note) block { return block{&yaml.Node{Kind: yaml.MappingNode}, "", n} }

func (b block) at(key string) string {
	if b.path == "" {
		return key
	}
	return b.path + "." + key
}

func (b block) add(key string, v *yaml.Node) {
	b.node.Content = append(b.node.Content, text(key), v)
}

// within writes a mapping below a key; one without keys is left out.
func (b block) within(key string, write func(block)) {
	in := block{&yaml.Node{Kind: yaml.MappingNode}, b.at(key), b.note}
	if write(in); len(in.node.Content) > 0 {
		b.add(key, in.node)
	}
}

// entry writes a mapping below a key, if only as {}.
func (b block) entry(key string, write func(block)) {
	in := block{&yaml.Node{Kind: yaml.MappingNode}, b.at(key), b.note}
	write(in)
	b.add(key, in.node)
}

// items writes a list of mappings.
func (b block) items(key string, n int, write func(b block, i int)) {
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range n {
		in := block{&yaml.Node{Kind: yaml.MappingNode}, b.at(key), b.note}
		write(in, i)
		seq.Content = append(seq.Content, in.node)
	}
	b.add(key, seq)
}

// scalar writes a value that was written at pos, and nothing for one that was not.
func (b block) scalar(key string, v *yaml.Node, pos diag.Pos) {
	if !pos.IsValid() {
		return
	}
	b.comment(v, b.at(key), pos)
	b.add(key, v)
}

func (b block) comment(v *yaml.Node, field string, pos diag.Pos) {
	if s := b.note(field, pos); s != "" {
		v.LineComment = "# " + s
	}
}

func (b block) str(key string, s source.Str) { b.scalar(key, text(s.V), s.Pos) }
func (b block) bool(key string, v source.Bool) {
	b.scalar(key, plain("!!bool", strconv.FormatBool(v.V)), v.Pos)
}
func (b block) int(key string, i source.Int) {
	b.scalar(key, plain("!!int", strconv.FormatInt(i.V, 10)), i.Pos)
}

// item is an entry of a list with its place.
type item struct {
	node *yaml.Node
	pos  diag.Pos
}

// list writes a list that was written at pos. One whose entries all come from one place stands on one line.
func (b block) list(key string, items []item, pos diag.Pos) {
	if !pos.IsValid() {
		return
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	common := len(items) == 0 || b.note(b.at(key), items[0].pos) == b.note(b.at(key), pos)
	for _, i := range items {
		seq.Content = append(seq.Content, i.node)
		common = common && i.node.Kind == yaml.ScalarNode && b.note(b.at(key), i.pos) == b.note(b.at(key), items[0].pos)
	}
	if common {
		seq.Style = yaml.FlowStyle
		b.comment(seq, b.at(key), pos)
	} else {
		for i, c := range seq.Content {
			if c.Kind == yaml.ScalarNode {
				b.comment(c, b.at(key), items[i].pos)
			}
		}
	}
	b.add(key, seq)
}

func (b block) strs(key string, l source.Strs) {
	b.list(key, each(l.Items, func(s source.Str) item { return item{text(s.V), s.Pos} }), l.Pos)
}

func (b block) hosts(key string, l policy.Hosts) {
	b.list(key, each(l.Items, func(h policy.Host) item { return item{text(h.Pattern.String()), h.Pos} }), l.Pos)
}

func (b block) paths(key string, l policy.FilePaths) {
	b.list(key, each(l.Items, func(p policy.FilePath) item { return item{text(p.Path.String()), p.Pos} }), l.Pos)
}

func (b block) pairs(key string, ps []source.Pair) {
	b.within(key, func(b block) {
		for _, p := range ps {
			b.str(p.Key.V, p.Value)
		}
	})
}

func each[T any](of []T, to func(T) item) []item {
	out := make([]item, len(of))
	for i, x := range of {
		out[i] = to(x)
	}
	return out
}

// text is a text, in the style in which it is read back.
func text(s string) *yaml.Node {
	n := plain("!!str", s)
	// A block of lines is for people; whatever a reader of blocks could take otherwise stands in quotes.
	if strings.ContainsAny(s, "\r\t") || strings.Contains(s, " \n") || strings.Contains(s, "\n\n\n") || strings.TrimSpace(s) != strings.TrimSuffix(s, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func plain(tag, s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s} }

// value is the node of plain data as source.Decoder.Value returns it.
func value(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, text(k), value(v[k]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, x := range v {
			n.Content = append(n.Content, value(x))
		}
		return n
	case bool:
		return plain("!!bool", strconv.FormatBool(v))
	case int64:
		return plain("!!int", strconv.FormatInt(v, 10))
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return plain("!!float", s)
	case string:
		return text(v)
	}
	return text("")
}

// head begins a document.
func head(h *policy.Header, n note) block {
	b := mapping(n)
	b.add("apiVersion", text(string(policy.V1)))
	b.add("kind", text(h.Kind))
	b.add("name", text(h.Name.V))
	return b
}

func gateway(g *policy.Gateway, n note) *yaml.Node {
	b := head(&g.Header, n)
	b.str("baseURL", g.BaseURL)
	b.str("engine", g.Engine)
	b.pairs("protocols", g.Protocols)
	b.within("auth", func(b block) {
		b.str("helperCommand", g.Auth.HelperCommand)
		b.int("ttlSeconds", g.Auth.TTLSeconds)
		b.str("identityHeader", g.Auth.IdentityHeader)
	})
	b.within("models", func(b block) {
		for _, m := range g.Models {
			b.entry(m.Alias.V, func(b block) {
				switch len(m.Targets) {
				case 0:
				case 1:
					b.target(m.Targets[0])
				default:
					b.items("targets", len(m.Targets), func(b block, i int) { b.target(m.Targets[i]) })
				}
			})
		}
	})
	b.within("upstreams", func(b block) {
		for _, u := range g.Upstreams {
			b.entry(u.Name.V, func(b block) {
				b.str("url", u.URL)
				b.str("kind", u.Kind)
				b.str("project", u.Project)
				b.str("region", u.Region)
				b.str("apiVersion", u.APIVersion)
				b.within("credential", func(b block) {
					b.str("env", u.CredentialEnv)
					b.str("file", u.CredentialFile)
					b.str("scheme", u.AuthForm)
				})
				b.strs("serves", u.Serves)
			})
		}
	})
	return b.node
}

func (b block) target(t policy.ModelTarget) {
	b.str("upstream", t.Upstream)
	b.str("model", t.Model)
	b.int("weight", t.Weight)
	b.int("priority", t.Priority)
	b.int("timeoutSeconds", t.TimeoutSeconds)
}

func ring(g *policy.Ring, n note) *yaml.Node {
	b := head(&g.Header, n)
	b.int("order", g.Order)
	b.str("profile", g.Profile)
	b.str("release", g.Release)
	b.within("membership", func(b block) {
		m := &g.Membership
		b.strs("users", m.Users)
		b.strs("groups", m.Groups)
		b.scalar("percent", hundredths(m.Percent.V), m.Percent.Pos)
		b.bool("default", m.Default)
		b.bool("optIn", m.OptIn)
	})
	b.str("posture", g.Posture)
	b.str("versionGate", g.VersionGate)
	return b.node
}

func hundredths(v int64) *yaml.Node {
	if v%100 == 0 {
		return plain("!!int", strconv.FormatInt(v/100, 10))
	}
	return plain("!!float", strconv.FormatFloat(float64(v)/100, 'f', -1, 64))
}

// profile writes a profile with the body that it comes to.
func profile(p *policy.Profile, body *policy.Body, n note) *yaml.Node {
	b := head(&p.Header, n)
	b.str("extends", p.Extends)
	b.within("harnesses", func(b block) {
		for _, h := range body.Harnesses {
			if !h.Model.IsSet() && !h.OverridesPos.IsValid() && h.Version.IsSet() {
				b.str(h.Harness.V, h.Version)
				continue
			}
			b.entry(h.Harness.V, func(b block) {
				b.str("version", h.Version)
				b.str("model", h.Model)
				b.scalar("overrides", value(h.Overrides), h.OverridesPos)
			})
		}
	})
	b.within("models", func(b block) {
		b.str("default", body.Models.Default)
		b.strs("allowed", body.Models.Allowed)
		b.bool("enforce", body.Models.Enforce)
	})
	b.within("permissions", func(b block) {
		x := &body.Permissions
		b.str("mode", x.Mode)
		b.strs("allow", x.Allow)
		b.strs("ask", x.Ask)
		b.strs("deny", x.Deny)
		b.bool("disableBypass", x.DisableBypass)
		if body.Sandbox.ModeField == "permissions.sandbox" {
			b.str("sandbox", body.Sandbox.Mode)
		}
		b.bool("sandboxRequired", x.SandboxRequired)
	})
	b.within("sandbox", func(b block) {
		x := &body.Sandbox
		if x.ModeField != "permissions.sandbox" {
			b.str("mode", x.Mode)
		}
		b.paths("writableRoots", x.WritableRoots)
		b.paths("protectedPaths", x.ProtectedPaths)
		b.str("policy", x.Policy)
	})
	b.within("egress", func(b block) {
		x := &body.Egress
		b.str("default", x.Default)
		b.hosts("allowedDomains", x.AllowedDomains)
		b.strs("presets", x.Presets)
		b.hosts("deniedDomains", x.DeniedDomains)
	})
	b.within("mcp", func(b block) {
		x := &body.MCP
		b.bool("managedOnly", x.ManagedOnly)
		if x.ServersPos.IsValid() {
			b.items("servers", len(x.Servers), func(b block, i int) {
				s := &x.Servers[i]
				b.str("name", s.Name)
				b.str("url", s.URL)
				b.strs("command", s.Command)
				b.pairs("headers", s.Headers)
			})
		}
		b.strs("denied", x.Denied)
	})
	b.within("hooks", func(b block) {
		x := &body.Hooks
		b.bool("managedOnly", x.ManagedOnly)
		if x.Pos.IsValid() {
			b.items("items", len(x.Items), func(b block, i int) {
				b.str("event", x.Items[i].Event)
				b.str("matcher", x.Items[i].Matcher)
				b.str("command", x.Items[i].Command)
			})
		}
	})
	b.within("telemetry", func(b block) {
		x := &body.Telemetry
		b.bool("enabled", x.Enabled)
		b.str("otlpEndpoint", x.OTLPEndpoint)
		b.str("protocol", x.Protocol)
		b.bool("logPrompts", x.LogPrompts)
		b.pairs("attributes", x.Attributes)
	})
	b.str("instructions", body.Instructions)
	b.pairs("env", body.Env)
	if len(body.Require) > 0 {
		b.items("require", len(body.Require), func(b block, i int) {
			r := &body.Require[i]
			b.str("concept", r.Concept)
			b.str("harness", r.Harness)
			b.strs("os", r.OS)
			b.str("grade", r.Grade)
		})
	}
	return b.node
}

// print writes documents, one after the other.
func print(docs ...*yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for _, d := range docs {
		if err := enc.Encode(d); err != nil {
			return nil, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
