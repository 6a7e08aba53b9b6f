package pack

import (
	"slices"
	"strconv"
	"strings"
)

// Print writes a pack in a canonical form: all keys, in the order of the format's documentation, every value explicit. Loading it gives the same pack but for
// path and digest.
func Print(p *Pack) []byte {
	var w writer
	w.number(0, "version", 1)
	w.text(0, "name", p.Name)
	w.text(0, "description", p.Description)
	w.section(0, "network")
	w.text(1, "mode", p.Network)
	w.section(0, "approvals")
	w.text(1, "mode", p.Approvals)
	w.section(0, "egress")
	w.texts(1, "feeds", p.Egress.Feeds)
	w.texts(1, "block", spellings(p.Egress.Block))
	w.texts(1, "allow", spellings(p.Egress.Allow))
	w.numbers(1, "ports", p.Egress.Ports)
	w.number(1, "large_upload_mb", p.Egress.LargeUploadMB)
	w.boolean(1, "block_large_uploads", p.Egress.BlockLargeUploads)
	w.section(0, "workspace")
	w.text(1, "mode", p.Workspace.Mode)
	w.texts(1, "masks", p.Workspace.Masks)
	w.texts(1, "unmask", p.Workspace.Unmask)
	w.texts(1, "review", p.Workspace.Review)
	w.number(1, "max_upload_mb", p.Workspace.MaxUploadMB)
	w.section(0, "harness")
	w.boolean(1, "yolo", p.Harness.Yolo)
	w.texts(1, "allowed", p.Harness.Allowed)
	w.section(0, "mcp")
	w.boolean(1, "import", p.MCP.Import)
	w.boolean(1, "host_ports", p.MCP.HostPorts)
	w.texts(1, "blocked_tools", p.MCP.BlockedTools)
	w.text(1, "project_servers", p.MCP.ProjectServers)
	w.section(0, "hooks")
	w.text(1, "fail_mode", p.Hooks.FailMode)
	w.text(1, "on_tamper", p.Hooks.OnTamper)
	return w
}

// PrintConfig writes DefenseClaw's config.yaml with this openshell block: the keys that are set, in a fixed order, so that equal configurations give equal bytes.
func PrintConfig(c *Config) []byte {
	var w writer
	w.section(0, "openshell")
	w.setText(1, "pack", c.Pack)
	w.setText(1, "pack_dir", c.PackDir)
	w.setText(1, "profile", c.Profile)
	w.setBool(1, "yolo", c.Yolo)
	w.block(1, "workdir", func(w *writer) {
		w.setText(2, "mode", c.Workdir.Mode)
		w.setTexts(2, "masks", c.Workdir.Masks)
		w.setTexts(2, "unmask", c.Workdir.Unmask)
		w.setNumber(2, "max_upload_mb", c.Workdir.MaxUploadMB)
		w.setNumber(2, "git_depth", c.Workdir.GitDepth)
		w.setText(2, "on_exit", c.Workdir.OnExit)
	})
	w.block(1, "egress", func(w *writer) {
		w.setText(2, "feed", c.Egress.Feed)
		w.setTexts(2, "block", spellings(c.Egress.Block))
		w.setTexts(2, "allow", spellings(c.Egress.Allow))
		w.setNumbers(2, "ports", c.Egress.Ports)
		w.setNumber(2, "large_upload_mb", c.Egress.LargeUploadMB)
		w.setBool(2, "block_large_uploads", c.Egress.BlockLargeUploads)
	})
	w.block(1, "mcp", func(w *writer) {
		w.setBool(2, "import", c.MCP.Import)
		w.setNumbers(2, "host_ports", c.MCP.HostPorts)
	})
	w.block(1, "resources", func(w *writer) {
		w.setQuantity(2, "cpu", c.Resources.CPU)
		w.setQuantity(2, "memory", c.Resources.Memory)
	})
	a := &c.Admin
	w.block(1, "admin", func(w *writer) {
		w.setText(2, "required_pack", a.RequiredPack)
		w.setText(2, "required_pack_digest", a.RequiredPackDigest)
		w.setText(2, "min_profile", a.MinProfile)
		w.setBool(2, "allow_yolo", a.AllowYolo)
		w.setBool(2, "allow_mount", a.AllowMount)
		w.setBool(2, "allow_host_ports", a.AllowHostPorts)
		w.setBool(2, "allow_unblock", a.AllowUnblock)
		w.setBool(2, "allow_learn_mode", a.AllowLearnMode)
		w.setTexts(2, "allowed_harnesses", a.AllowedHarnesses)
		w.setTexts(2, "egress_block", spellings(a.EgressBlock))
		w.setTexts(2, "egress_allow_only", spellings(a.EgressAllowOnly))
		if a.BlockLargeUploads {
			w.boolean(2, "block_large_uploads", true)
		}
		w.setTexts(2, "require_copy_for", a.RequireCopyFor)
		w.block(2, "max_resources", func(w *writer) {
			w.setQuantity(3, "cpu", a.MaxResources.CPU)
			w.setQuantity(3, "memory", a.MaxResources.Memory)
		})
		w.setTexts(2, "locked", a.Locked)
	})
	if len(w) == len("openshell:\n") {
		return []byte("openshell: {}\n")
	}
	return w
}

func spellings(list []Pattern) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.text
	}
	return out
}

// writer is block-style YAML in the making.
type writer []byte

func (w *writer) line(indent int, key, value string) {
	for range indent {
		*w = append(*w, "  "...)
	}
	*w = append(append(*w, key...), ':')
	if value != "" {
		*w = append(append(*w, ' '), value...)
	}
	*w = append(*w, '\n')
}

func (w *writer) section(indent int, key string) { w.line(indent, key, "") }

func (w *writer) text(indent int, key, value string) { w.line(indent, key, scalar(value)) }

func (w *writer) number(indent int, key string, value int) { w.line(indent, key, strconv.Itoa(value)) }

func (w *writer) boolean(indent int, key string, value bool) {
	w.line(indent, key, strconv.FormatBool(value))
}

func (w *writer) items(indent int, key string, values []string) {
	if len(values) == 0 {
		w.line(indent, key, "[]")
		return
	}
	w.section(indent, key)
	for _, v := range values {
		for range indent + 1 {
			*w = append(*w, "  "...)
		}
		*w = append(append(append(*w, "- "...), v...), '\n')
	}
}

func (w *writer) texts(indent int, key string, values []string) {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = scalar(v)
	}
	w.items(indent, key, quoted)
}

func (w *writer) numbers(indent int, key string, values []int) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = strconv.Itoa(v)
	}
	w.items(indent, key, texts)
}

// block writes a section only when something is in it.
func (w *writer) block(indent int, key string, body func(*writer)) {
	var inner writer
	if body(&inner); len(inner) > 0 {
		w.section(indent, key)
		*w = append(*w, inner...)
	}
}

func (w *writer) setText(indent int, key, value string) {
	if value != "" {
		w.text(indent, key, value)
	}
}

func (w *writer) setQuantity(indent int, key, value string) {
	if value != "" {
		w.line(indent, key, strconv.Quote(value))
	}
}

func (w *writer) setTexts(indent int, key string, values []string) {
	if len(values) > 0 {
		w.texts(indent, key, values)
	}
}

func (w *writer) setNumber(indent int, key string, value int) {
	if value != 0 {
		w.number(indent, key, value)
	}
}

func (w *writer) setNumbers(indent int, key string, values []int) {
	if len(values) > 0 {
		w.numbers(indent, key, values)
	}
}

func (w *writer) setBool(indent int, key string, value *bool) {
	if value != nil {
		w.boolean(indent, key, *value)
	}
}

// notPlain are the words that some YAML reader takes for a boolean or null.
var notPlain = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// scalar writes a text so that every YAML version reads it as that text: plain when it is a simple word, else in double quotes and ASCII. The escapes of
// strconv.QuoteToASCII are all YAML escapes.
func scalar(s string) string {
	plain := s != "" && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z') && !slices.Contains(notPlain, strings.ToLower(s))
	for i := 0; plain && i < len(s); i++ {
		plain = alnum(s[i]) || strings.IndexByte("-._/", s[i]) >= 0
	}
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}
