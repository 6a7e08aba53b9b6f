package source

import "halos.dev/halo/compiler/diag"

var (
	codeUnreadable = &diag.Code{ID: "HALO1001", Title: "unreadable file", Since: "0.1.0", NoAnswer: true,
		Text: "A file or directory of the policy repo cannot be opened or read. A policy that is partly unreadable gets no verdict: fix the permissions or the disk and run again."}
	codeLimit = &diag.Code{ID: "HALO1002", Title: "limit exceeded", Since: "0.1.0", NoAnswer: true,
		Text: "Policy repos are read in CI on other people's pull requests, so size, count and depth are bounded: 4 MiB a file, 65,536 files, 256 MiB in all, 64 levels, 1 MiB a value. Split the file or remove what does not belong there."}
	codeFileType = &diag.Code{ID: "HALO1003", Title: "not a regular file", Since: "0.1.0",
		Text: "Only regular files are policy. A symbolic link could pull a file from the build machine into a signed release; a FIFO or device could block the build. Replace it by a regular file. The policy directory itself may be a link."}
	codeFileName = &diag.Code{ID: "HALO1004", Title: "file name is not UTF-8", Since: "0.1.0",
		Text: "File names appear in diagnostics and in the release and must be readable text. Rename the file."}
	codeEncoding = &diag.Code{ID: "HALO1005", Title: "not UTF-8 text", Since: "0.1.0",
		Text: "Policy files are UTF-8 without control characters and without line breaks that only YAML sees (U+0085, U+2028, U+2029, a carriage return alone): behind one, what reads as a comment would be policy. A byte order mark is accepted, and so are Windows line endings. PowerShell 5.1 writes UTF-16 by default: save the file as UTF-8."}
	codeSyntax = &diag.Code{ID: "HALO1006", Title: "not valid YAML", Since: "0.1.0",
		Text:   "The YAML parser cannot read the file. The line is where the parser gave up; the cause is often the line before (an open quote or bracket, a tab, wrong indentation).",
		Before: "allowedDomains: [github.com", After: "allowedDomains: [github.com]"}
	codeStar = &diag.Code{ID: "HALO1007", Title: "wildcard without quotes", Since: "0.1.0",
		Text:   "In YAML a bare * begins an alias. Put host wildcards in quotes.",
		Before: "allowedDomains: [*.example.com]", After: `allowedDomains: ["*.example.com"]`}
	codeNotMapping = &diag.Code{ID: "HALO1008", Title: "document is not a mapping", Since: "0.1.0",
		Text:   "Every policy document is a mapping with apiVersion, kind and name.",
		Before: "- github.com", After: "apiVersion: halos.dev/v1\nkind: Preset\nname: code\nhosts: [github.com]"}
	codeAnchor = &diag.Code{ID: "HALO1009", Title: "anchor, alias or merge key", Since: "0.1.0",
		Text:   "Anchors, aliases and merge keys make a value depend on a place the reviewer does not see. Write the value out; to share policy between profiles use extends.",
		Before: "protectedPaths: &p [\"~/.ssh\"]", After: "protectedPaths: [\"~/.ssh\"]"}
	codeTag = &diag.Code{ID: "HALO1010", Title: "explicit YAML tag", Since: "0.1.0",
		Text:   "A tag such as !!binary changes what a value is without changing how it reads. Write the plain value.",
		Before: "org: !!str acme", After: "org: acme"}
	codeNull = &diag.Code{ID: "HALO1011", Title: "null value", Since: "0.1.0",
		Text:   "A key with nothing behind the colon, a bare ~ and null all mean \"no value\". YAML libraries drop such values and list items in silence, so that a policy protects less than it reads. Remove the key to inherit, write [] for an empty list, and quote a path such as \"~\".",
		Before: "deniedDomains:", After: "deniedDomains: []"}
	codeRepeated = &diag.Code{ID: "HALO1012", Title: "repeated key", Since: "0.1.0",
		Text:   "Most loaders keep the last of two equal keys, so that the first list is gone without a word. Merge the two.",
		Before: "deniedDomains: [pastebin.com]\ndeniedDomains: [transfer.sh]", After: "deniedDomains: [pastebin.com, transfer.sh]"}
	codeKey = &diag.Code{ID: "HALO1013", Title: "key is not a word", Since: "0.1.0",
		Text:   "Keys are plain words; a list, a mapping or null cannot be a key.",
		Before: "env: {[a]: x}", After: "env: {A: x}"}
	codeType = &diag.Code{ID: "HALO1014", Title: "wrong type", Since: "0.1.0",
		Text:   "The value has another type than the key takes. Booleans are true and false (not yes, on or \"true\"), lists are lists even for one item, numbers are not quoted.",
		Before: "deniedDomains: pastebin.com", After: "deniedDomains: [pastebin.com]"}
	codeUnknownKey = &diag.Code{ID: "HALO1015", Title: "unknown key", Since: "0.1.0",
		Text:   "A key that nobody reads looks in force and is not. Names are case-sensitive.",
		Before: "egress: {allowDomains: [ai.acme.example]}", After: "egress: {allowedDomains: [ai.acme.example]}"}
	codeEnum = &diag.Code{ID: "HALO1016", Title: "value is not one of the allowed words", Since: "0.1.0",
		Text:   "The key takes one of a few words, in lower case, exactly.",
		Before: "default: Deny", After: "default: deny"}
	codeMissing = &diag.Code{ID: "HALO1017", Title: "required key is missing", Since: "0.1.0",
		Text:   "The document cannot be used without this key.",
		Before: "apiVersion: halos.dev/v1\nkind: Ring\nname: ga\norder: 3\nmembership: {default: true}", After: "apiVersion: halos.dev/v1\nkind: Ring\nname: ga\norder: 3\nprofile: base\nmembership: {default: true}"}
	codeRange = &diag.Code{ID: "HALO1018", Title: "number out of range", Since: "0.1.0",
		Text:   "The number is outside what the key takes. Infinity and NaN are never accepted.",
		Before: "port: 70000", After: "port: 443"}
	codeLink = &diag.Code{ID: "HALO1020", Severity: diag.Warning, Title: "link that is not followed", Since: "0.1.0",
		Text: "Links inside a policy repo are never followed, so policy behind a linked directory is not in force. Put the files into the repo; a link to something else can live in a directory whose name begins with a dot."}
	codeEmpty = &diag.Code{ID: "HALO1019", Title: "empty text", Since: "0.1.0",
		Text:   "The value is an empty text. Write a value or remove the key or list item.",
		Before: "instructions: \"\"", After: "instructions: Ask before you push."}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{codeUnreadable, codeLimit, codeFileType, codeFileName, codeEncoding, codeSyntax, codeStar, codeNotMapping, codeAnchor, codeTag,
		codeNull, codeRepeated, codeKey, codeType, codeUnknownKey, codeEnum, codeMissing, codeRange, codeEmpty, codeLink}
}
