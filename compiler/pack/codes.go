package pack

import "halos.dev/halo/compiler/diag"

var (
	codeSyntax = &diag.Code{ID: "HALO2001", Title: "sandbox pack is not valid YAML", Since: "0.1.0",
		Text: "A pack is one UTF-8 YAML document. DefenseClaw refuses a pack it cannot parse, and every sandbox that needs the pack stops; nothing falls back to another pack."}
	codeTooLarge = &diag.Code{ID: "HALO2002", Title: "sandbox pack is too large", Since: "0.1.0", NoAnswer: true,
		Text: "A pack has at most 65536 bytes, comments included. DefenseClaw refuses a larger one. Move explanations out of the file or split the lists between pack and openshell keys."}
	codeDocuments = &diag.Code{ID: "HALO2003", Title: "sandbox pack is not exactly one document", Since: "0.1.0",
		Text:   "A pack file holds exactly one YAML document. An empty file and a second document, even an empty one after a trailing ---, are refused.",
		Before: "version: 1\n---\nversion: 1", After: "version: 1"}
	codeAnchor = &diag.Code{ID: "HALO2004", Title: "anchor, alias or merge key in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "Anchors, aliases and merge keys make a value depend on a place the reviewer does not see; DefenseClaw refuses them. Write the value out.",
		Before: "masks: &m [.env]\nreview: *m", After: "masks: [.env]\nreview: [.env]"}
	codeTag = &diag.Code{ID: "HALO2005", Title: "explicit YAML tag in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "A tag such as !!str changes what a value is without changing how it reads. Write the plain value, with quotes for text.",
		Before: "name: !!str 42", After: `name: "42"`}
	codeNull = &diag.Code{ID: "HALO2006", Title: "null value in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "A key with nothing behind the colon, a bare ~ and null all mean no value. DefenseClaw refuses them in a pack, also for optional keys. Remove the key or write a value; an empty list is [].",
		Before: "egress:", After: "egress: {}"}
	codeType = &diag.Code{ID: "HALO2007", Title: "wrong type in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "Types are exact: booleans are true and false (not yes, on or \"true\"), numbers are not quoted, text that reads like a number, date or boolean is quoted, lists are lists even for one entry.",
		Before: `yolo: "true"`, After: "yolo: true"}
	codeKey = &diag.Code{ID: "HALO2008", Title: "key is not text", Since: "0.1.0",
		Text: "Keys are plain words. A number, a boolean, null or a list cannot be a key."}
	codeRepeated = &diag.Code{ID: "HALO2009", Title: "repeated key in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "Most loaders keep the last of two equal keys, so that the first is gone without a word. DefenseClaw refuses the file. Merge the two.",
		Before: "harness: {yolo: false}\nharness: {yolo: true}", After: "harness: {yolo: false}"}
	codeUnknown = &diag.Code{ID: "HALO2010", Title: "unknown key in a sandbox pack or openshell block", Since: "0.1.0",
		Text:   "A device refuses a pack with a key that its DefenseClaw does not know, and every sandbox there stops. Keys of newer DefenseClaw versions are refused here for the same reason.",
		Before: "hooks: {fail_mode: closed, timeout: 5}", After: "hooks: {fail_mode: closed}"}
	codeMissing = &diag.Code{ID: "HALO2011", Title: "required key is missing", Since: "0.1.0",
		Text: "version, name, network.mode, approvals.mode, workspace.mode, harness.yolo, mcp.import, mcp.host_ports and hooks.fail_mode are required in every pack. They are never defaulted, so that a pack says what it does."}
	codeValue = &diag.Code{ID: "HALO2012", Title: "value is not allowed", Since: "0.1.0",
		Text:   "The key takes one of a few words, a number within bounds, or text of a certain form.",
		Before: "workspace: {mode: overlay}", After: "workspace: {mode: copy}"}
	codePattern = &diag.Code{ID: "HALO2013", Title: "not a host pattern", Since: "0.1.0",
		Text:   "Egress lists hold exact host names, *.NAME, IP addresses and CIDR prefixes. No scheme, port, path or other wildcard; names that resolvers read as addresses (127.1) are refused; internationalised names are written in punycode.",
		Before: "allow: [\"https://docs.example.com/\"]", After: "allow: [docs.example.com]"}
	codeBroad = &diag.Code{ID: "HALO2014", Title: "allow entry is too broad", Since: "0.1.0",
		Text:   "An allow entry may not cover a whole public suffix (*.com, *.co.uk), an IPv4 range wider than /8 or an IPv6 range wider than /16. DefenseClaw refuses it in a pack and ignores it in openshell.egress.allow. To allow by default, choose the open profile.",
		Before: "allow: [\"*.co.uk\"]", After: "allow: [\"*.example.co.uk\"]"}
	codeGlob = &diag.Code{ID: "HALO2015", Title: "not a project glob or folder pattern", Since: "0.1.0",
		Text:   "masks, unmask and review are relative to the project, with forward slashes and without .. segments; require_copy_for names absolute folders of the device.",
		Before: "masks: [/etc/passwd]", After: "masks: [\"secrets/**\"]"}
	codeLong = &diag.Code{ID: "HALO2016", Title: "list is too long", Since: "0.1.0",
		Text: "DefenseClaw bounds every list of a pack, counted before repetitions are dropped: 1024 entries, 64 for ports and harnesses, 16 for feeds."}
	codeName = &diag.Code{ID: "HALO2017", Title: "pack name does not fit its place", Since: "0.1.0",
		Text:   "open, balanced and strict always mean the packs built into DefenseClaw. A pack that is found by name has the name of its directory.",
		Before: "packs/team-web/pack.yaml: name: web", After: "packs/team-web/pack.yaml: name: team-web"}
	codeHarness = &diag.Code{ID: "HALO2018", Severity: diag.Warning, Title: "harness name that DefenseClaw does not know", Since: "0.1.0",
		Text:   "DefenseClaw accepts any name in a harness list; one that it does not know never matches, so the list allows less than it reads. Its names are claudecode, codex, opencode, copilot, kiro, hermes, openhands, omnigent, antigravity, amp, cursor and devin.",
		Before: "allowed: [copilot-cli]", After: "allowed: [copilot]"}
	codeVocabulary = &diag.Code{ID: "HALO2019", Title: "harness id of the wrong vocabulary", Since: "0.1.0",
		Text:   "The openshell block speaks DefenseClaw's language: an id of halo, such as copilot-cli, would be accepted there and never match.",
		Before: "allowed_harnesses: [copilot-cli]", After: "allowed_harnesses: [copilot]"}
	codeDigest = &diag.Code{ID: "HALO2020", Title: "required pack digest does not match", Since: "0.1.0",
		Text: "The pinned digest is not that of the bytes that the release ships, so no sandbox would start. Remove required_pack_digest: the release writes the digest of the pack it carries."}
	codePinned = &diag.Code{ID: "HALO2021", Severity: diag.Warning, Title: "built-in pack is pinned by digest", Since: "0.1.0",
		Text: "The built-in packs change with DefenseClaw. A pinned digest stops every sandbox after an upgrade. Pin a pack of your own, or leave the digest out."}
	codeNoPack = &diag.Code{ID: "HALO2022", Title: "pack does not exist in the repo", Since: "0.1.0",
		Text:   "repo:NAME names packs/NAME/pack.yaml of the policy repo.",
		Before: "required_pack: repo:gone", After: "required_pack: repo:team-web"}
	codeIgnored = &diag.Code{ID: "HALO2023", Severity: diag.Warning, Title: "openshell allow entry is ignored", Since: "0.1.0",
		Text:   "DefenseClaw ignores entries of openshell.egress.allow that cover every host or a whole top-level domain, and reports them on every run.",
		Before: "allow: [\"*.com\"]", After: "allow: [\"*.example.com\"]"}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{codeSyntax, codeTooLarge, codeDocuments, codeAnchor, codeTag, codeNull, codeType, codeKey, codeRepeated, codeUnknown, codeMissing,
		codeValue, codePattern, codeBroad, codeGlob, codeLong, codeName, codeHarness, codeVocabulary, codeDigest, codePinned, codeNoPack, codeIgnored}
}
