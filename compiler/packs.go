package compiler

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
)

// packSize is the most bytes a pack may have; the runtime's own loader refuses a larger one.
const packSize = 64 << 10

// readPack checks the shape of a pack file of the repo: strict YAML, one document, known keys, right types.
func readPack(name string, data []byte, file int) []diag.Diagnostic {
	var out diag.List
	if len(data) > packSize {
		out.Add(diag.New(codePackSize, diag.NewPos(file, 1, 1), "", "the pack has %d bytes, more than the limit of %d", len(data), packSize))
		return out.Sorted()
	}
	var in source.Interner
	documents := 0
	source.Decode(file, name, data, source.DefaultLimits, &out, func(doc *source.Document, diags *diag.List) {
		if documents++; documents > 1 {
			diags.Add(diag.New(codePackDocuments, diag.NewPos(file, doc.Root.Line, doc.Root.Column), "", "the pack holds a second document; a pack is one document"))
			return
		}
		d := &source.Decoder{File: file, Doc: "Pack", Diags: diags, In: &in}
		var none struct{}
		source.Map(d, doc.Root, packFields, &none)
		for _, key := range []string{"version", "name", "network", "approvals", "workspace", "harness", "mcp", "hooks"} {
			if source.Get(doc.Root, key) == nil {
				d.Require(doc.Root, key, false)
			}
		}
	})
	if documents == 0 && out.Errors() == 0 {
		out.Add(diag.New(codePackDocuments, diag.NewPos(file, 1, 1), "", "the pack is empty"))
	}
	if out.Len() == 0 {
		return nil
	}
	return out.Sorted()
}

type field = source.Field[struct{}]

func section(name string, fields ...field) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, into *struct{}) { source.Map(d, n, fields, into) }}
}

func text(name string) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, _ *struct{}) { d.String(n) }}
}

func flag(name string) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, _ *struct{}) { d.Bool(n) }}
}

func texts(name string) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, _ *struct{}) { d.Strings(n) }}
}

func number(name string, lo, hi int64) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, _ *struct{}) { d.Int(n, lo, hi) }}
}

func word(name string, words ...string) field {
	return field{Name: name, Read: func(d *source.Decoder, n *source.Node, _ *struct{}) { d.Enum(n, words...) }}
}

const newerPack = "newer versions of DefenseClaw know this key; the loader of the devices' version refuses it, and every sandbox there would stop"

// packFields is the shape of a sandbox pack (DefenseClaw's sandbox pack documentation, read 2026-11-30).
var packFields = []field{
	number("version", 1, 1), text("name"), text("description"),
	section("network", word("mode", "open", "allowlist", "deny")),
	section("approvals", word("mode", "auto", "triage", "manual")),
	section("egress", texts("feeds"), texts("block"), texts("allow"),
		field{Name: "ports", Read: func(d *source.Decoder, n *source.Node, _ *struct{}) {
			source.Seq(d, n, func(_ int, c *source.Node) { d.Int(c, 1, 65535) })
		}},
		number("large_upload_mb", 0, 1<<20), flag("block_large_uploads")),
	section("workspace", word("mode", "mount", "copy"), texts("masks"), texts("unmask"), texts("review"), number("max_upload_mb", 1, 1<<20)),
	section("harness", flag("yolo"), texts("allowed")),
	section("mcp", flag("import"), flag("host_ports"), texts("blocked_tools"), word("project_servers", "block", "allow")),
	section("hooks", word("fail_mode", "closed"), word("on_tamper", "stop", "alert"),
		field{Name: "on_silence", Hint: newerPack}, field{Name: "silence_after", Hint: newerPack}),
	{Name: "extends", Hint: newerPack},
}
