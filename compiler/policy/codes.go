package policy

import "halos.dev/halo/compiler/diag"

var (
	codeHeader = &diag.Code{ID: "HALO1101", Title: "document without apiVersion, kind or name", Since: "0.1.0",
		Text:   "Every document of a policy repo says what it is. A file that declares no kind is an error and not skipped, because a typo would otherwise remove policy in silence. Files that are not policy belong under packs/, openshell/ or a directory whose name begins with a dot.",
		Before: "egress: {default: deny}", After: "apiVersion: halos.dev/v1\nkind: Profile\nname: base\negress: {default: deny}"}
	codeAPIVersion = &diag.Code{ID: "HALO1102", Title: "unknown apiVersion", Since: "0.1.0",
		Text:   "Documents are of apiVersion halos.dev/v1.",
		Before: "apiVersion: halos.dev/v2", After: "apiVersion: halos.dev/v1"}
	codeOldVersion = &diag.Code{ID: "HALO1103", Severity: diag.Warning, Title: "old apiVersion", Since: "0.1.0",
		Text:   "halos.dev/v1alpha1 means the same as halos.dev/v1 and will be refused one day. Write halos.dev/v1.",
		Before: "apiVersion: halos.dev/v1alpha1", After: "apiVersion: halos.dev/v1"}
	codeKind = &diag.Code{ID: "HALO1104", Title: "kind that cannot be used", Since: "0.1.0",
		Text:   "The kind is unknown, or this version of halo does not support it. A document that is not understood is never skipped.",
		Before: "kind: Policy", After: "kind: Profile"}
	codeDuplicate = &diag.Code{ID: "HALO1105", Title: "two documents of one kind and name", Since: "0.1.0",
		Text:   "Names are unique within a kind, and a repo has at most one Gateway. File names and folders carry no meaning. Names that differ only in case cannot occur: names are lower case.",
		Before: "kind: Profile\nname: base\n---\nkind: Profile\nname: base", After: "kind: Profile\nname: base\n---\nkind: Profile\nname: engineering\nextends: base"}
	codeRoot = &diag.Code{ID: "HALO1106", Title: "no usable halos.yaml", Since: "0.1.0", NoAnswer: true,
		Text:   "A policy repo has a file halos.yaml at its root with the name of the organization. Without it there is nothing to check, and nothing to check is not a pass.",
		Before: "", After: "apiVersion: halos.dev/v1\nkind: Halos\norg: acme"}
	codeOneRoot = &diag.Code{ID: "HALO1107", Title: "halos.yaml is not one Halos document", Since: "0.1.0",
		Text:   "halos.yaml holds exactly one document, of kind Halos, and no other file holds one.",
		Before: "apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n---\napiVersion: halos.dev/v1\nkind: Halos\norg: acme", After: "apiVersion: halos.dev/v1\nkind: Halos\norg: acme"}
	codeName = &diag.Code{ID: "HALO1108", Title: "not a name", Since: "0.1.0",
		Text:   "Names become path segments, headers and tags in the release, on every operating system. They match [a-z0-9][a-z0-9._-]{0,62}, do not end in a dot, and are not Windows device names such as con or com1.",
		Before: "name: Team A", After: "name: team-a"}
	codeDate = &diag.Code{ID: "HALO1109", Title: "not a date", Since: "0.1.0",
		Text:   "Dates are YYYY-MM-DD; a date ends at midnight UTC.",
		Before: "expires: 1 March 2027", After: "expires: 2027-03-01"}
	codeVersion = &diag.Code{ID: "HALO1110", Title: "not an exact version", Since: "0.1.0",
		Text:   "What a harness file may hold depends on the version that reads it, so every harness is pinned to one exact semantic version.",
		Before: `version: ">=2.1"`, After: "version: 2.1.332"}
	codeURL = &diag.Code{ID: "HALO1111", Title: "not an absolute URL", Since: "0.1.0",
		Text:   "The value must be an absolute URL with a host; several harnesses drop a value without a scheme in silence.",
		Before: "baseURL: ai.acme.example", After: "baseURL: https://ai.acme.example"}
	codeHarness = &diag.Code{ID: "HALO1112", Title: "unknown harness", Since: "0.1.0",
		Text:   "Harness ids are claude-code, codex, copilot-cli, gemini-cli, opencode and cursor-cli.",
		Before: "harnesses: {claude: {version: 2.1.332}}", After: "harnesses: {claude-code: {version: 2.1.332}}"}
	codeServer = &diag.Code{ID: "HALO1113", Title: "MCP server without exactly one of url and command", Since: "0.1.0",
		Text:   "An MCP server is reached over https or started as a command, not both and not neither.",
		Before: "servers:\n  - {name: docs, url: https://docs.acme.example/mcp, command: [docs-server]}", After: "servers:\n  - {name: docs, url: https://docs.acme.example/mcp}"}
	codeTest = &diag.Code{ID: "HALO1114", Title: "policy test that asks nothing", Since: "0.1.0",
		Text:   "A policy test asks about one host or one path: a host that halo egress test takes, or a path without a glob that is absolute, below ~/ or below the workspace.",
		Before: "tests:\n  - {host: github.com, path: ~/.ssh, expect: deny}", After: "tests:\n  - {host: github.com, expect: allow}\n  - {path: ~/.ssh, expect: deny}"}
	codeException = &diag.Code{ID: "HALO1115", Title: "exception without exactly one of unit and ring", Since: "0.1.0",
		Text:   "An exception permits one loosening of one unit or one ring.",
		Before: "kind: Exception\nname: trial\nunit: payments\nring: ring0", After: "kind: Exception\nname: trial\nunit: payments"}
	codeLifetime = &diag.Code{ID: "HALO1116", Title: "not a lifetime", Since: "0.1.0",
		Text:   "The lifetime of a release is a number of days, weeks or hours: 90d.",
		Before: "lifetime: 3 months", After: "lifetime: 90d"}
	codePercent = &diag.Code{ID: "HALO1117", Title: "not a percentage", Since: "0.1.0",
		Text:   "A percentage lies between 0 and 100 with at most two decimals.",
		Before: "membership: {percent: 120}", After: "membership: {percent: 12.5}"}
	codeSimple = &diag.Code{ID: "HALO1118", Title: "simple mode without a key it needs", Since: "0.1.0",
		Text: "The root keys tools, provider, models, gateway, gatewayEngine, telemetry, team, safety, rollout and egress of halos.yaml make a Gateway, a Profile named default and Rings. They need tools to make anything " +
			"of; models are reached through a gateway, one of them has the alias default, and the region or project in which they run is never guessed. In a repo that writes its own documents, such a key " +
			"belongs into a document.",
		Before: "org: acme\nsafety: strict", After: "org: acme\ntools: {claude-code: 2.1.332}\nsafety: strict"}
	codeNoProvider = &diag.Code{ID: "HALO1119", Title: "model of no provider", Since: "0.1.0",
		Text:   "In simple mode a model is the id that its provider knows it by, with the provider before a slash where it is not the one that the key provider names.",
		Before: "provider: multi\nmodels: {default: gpt-5}", After: "provider: multi\nmodels: {default: openai/gpt-5}"}
	codeBeside = &diag.Code{ID: "HALO1120", Severity: diag.Warning, Title: "ring beside simple mode", Since: "0.1.0",
		Text:   "The root keys of simple mode hold in the profile default and in those that extend it. A ring of another profile gets nothing of them, though halos.yaml reads as if it did.",
		Before: "kind: Ring\nname: ring2-early\nprofile: research", After: "kind: Profile\nname: research\nextends: default"}
	codeAlias = &diag.Code{ID: "HALO1121", Title: "model alias of no model", Since: "0.1.0",
		Text:   "An alias stands for one model of an upstream, or for several in targets.",
		Before: "models:\n  sonnet: {targets: []}", After: "models:\n  sonnet: {upstream: anthropic, model: claude-sonnet-4-5}"}
	codeCredential = &diag.Code{ID: "HALO1122", Title: "credential that names no one place", Since: "0.1.0", Secret: true,
		Text:   "A policy repo says where a credential is, in an environment variable or in a file, and never what it is. The finding does not repeat the value, which may be the secret itself.",
		Before: "credential: {env: sk-…}", After: "credential: {env: ANTHROPIC_API_KEY}"}
	codeUserInfo = &diag.Code{ID: "HALO1123", Title: "URL with user information", Since: "0.1.0", Secret: true,
		Text:   "A user name or a password in a URL is a credential, and policy is read by everybody who reads the repo or the files of a device. The finding does not repeat it.",
		Before: "baseURL: https://halo:…@ai.acme.example", After: "baseURL: https://ai.acme.example"}
	codeHost = &diag.Code{ID: "HALO1203", Title: "not a host name", Since: "0.1.0",
		Text:   "Host lists hold lower-case host names, without scheme, port or path, or *. and a name for every subdomain at any depth. Harnesses ignore other spellings in silence, each in its own way.",
		Before: `allowedDomains: ["https://GitHub.com/acme"]`, After: "allowedDomains: [github.com]"}
	codeModes = &diag.Code{ID: "HALO1301", Title: "two spellings of the sandbox mode disagree", Since: "0.1.0",
		Text:   "sandbox.mode and permissions.sandbox are one setting with two spellings. In one document they must agree; keep one.",
		Before: "sandbox: {mode: read-only}\npermissions: {sandbox: workspace-write}", After: "sandbox: {mode: read-only}"}
	codeRootPath = &diag.Code{ID: "HALO1302", Title: "writable root that cannot be used", Since: "0.1.0",
		Text:   "A writable root is an absolute path or begins with ~/, names no glob, and does not reach a home directory, a system directory or the place of a managed setting. An agent that can write its own settings has no policy.",
		Before: "writableRoots: [/usr/local/share/acme]", After: "writableRoots: [/opt/build-cache]"}
	codeProtected = &diag.Code{ID: "HALO1303", Title: "protected path that cannot be used", Since: "0.1.0",
		Text:   "A protected path is absolute, begins with ~/, or is a glob relative to the workspace. Variables, other users' homes and backslashes protect nothing on any harness.",
		Before: `protectedPaths: ["$HOME/.ssh"]`, After: `protectedPaths: ["~/.ssh"]`}
	codeRepoPath = &diag.Code{ID: "HALO2101", Title: "path that a Sandbox document cannot use", Since: "0.1.0",
		Text:   "Files that a Sandbox document names lie below openshell/ in the repo (the workspace file may also be .kaiden/workspace.json) and are written with their path from the root, without . or .. elements. packDir is a folder of the device: absolute, or beginning with ~/.",
		Before: "base: ../base.yaml", After: "base: openshell/base.yaml"}
	codeTwoSources = &diag.Code{ID: "HALO2102", Title: "one thing written twice in a Sandbox document", Since: "0.1.0",
		Text: "Two keys say the same thing, and a reader of one would miss the other: pack and openshell.pack, packDir and openshell.pack_dir, policy.workspace and policy.network."}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{codeHeader, codeAPIVersion, codeOldVersion, codeKind, codeDuplicate, codeRoot, codeOneRoot, codeName, codeDate, codeVersion, codeURL,
		codeHarness, codeServer, codeTest, codeException, codeLifetime, codePercent, codeSimple, codeNoProvider, codeBeside, codeAlias, codeCredential, codeUserInfo, codeHost, codeModes, codeRootPath, codeProtected, codeRepoPath, codeTwoSources}
}
