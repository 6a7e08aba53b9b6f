package check

import "halos.dev/halo/compiler/diag"

var (
	codePreset = &diag.Code{ID: "HALO1202", Title: "unknown preset", Since: "0.1.0",
		Text:   "The preset is neither built in nor a Preset document of this repo. An unknown preset would allow nothing, and the list would read as if it did.",
		Before: "presets: [npm]", After: "presets: [package-registries]"}
	codeDefaultAllow = &diag.Code{ID: "HALO1204", Title: "allow list beside default: allow", Since: "0.1.0",
		Text:   "With egress.default: allow every host is allowed, so that an allow list or a preset limits nothing and only reads as if it did. Remove the list, or set the default to deny.",
		Before: "egress: {default: allow, allowedDomains: [ai.acme.example]}", After: "egress: {default: deny, allowedDomains: [ai.acme.example]}"}
	codeGateway = &diag.Code{ID: "HALO1205", Title: "policy that denies its own gateway", Since: "0.1.0",
		Text:   "The policy denies the host of the model gateway, so no harness could work. Allow it by name or by a wildcard over its domain, and do not deny it.",
		Before: "egress: {allowedDomains: [github.com]}", After: "egress: {allowedDomains: [ai.acme.example, github.com]}"}
	codeFlip = &diag.Code{ID: "HALO1206", Title: "emptied list flips the default", Since: "0.1.0",
		Text:   "With egress.default unset, the default is deny while anything is allowed and allow otherwise. A child that empties the inherited lists would silently open every host. Say what you mean with egress.default.",
		Before: "egress: {allowedDomains: [], presets: []}", After: "egress: {allowedDomains: [], presets: [], default: deny}"}
	codeOpenByEmptiness = &diag.Code{ID: "HALO1207", Severity: diag.Warning, Title: "empty allow list and default allow", Since: "0.1.0",
		Text:   "The lists are written but empty and egress.default is unset, so that every host is allowed. If that is meant, write egress.default: allow.",
		Before: "egress: {allowedDomains: []}", After: "egress: {default: allow}"}
	codeSwallowed = &diag.Code{ID: "HALO1208", Severity: diag.Warning, Title: "allowed entry that is denied", Since: "0.1.0",
		Text:   "A denied entry covers this allowed entry. Deny wins, so the entry never allows anything. Remove one of the two.",
		Before: "allowedDomains: [gist.github.com]\ndeniedDomains: [\"*.github.com\"]", After: "allowedDomains: []\ndeniedDomains: [\"*.github.com\"]"}
	codeCovered = &diag.Code{ID: "HALO1209", Severity: diag.Warning, Title: "entry that another covers", Since: "0.1.0",
		Text:   "The entry is repeated, or another entry of the same list covers it. It changes nothing; remove it so that the list reads as it works.",
		Before: "allowedDomains: [\"*.acme.example\", docs.acme.example]", After: "allowedDomains: [\"*.acme.example\"]"}
	codeApexOnly = &diag.Code{ID: "HALO1210", Severity: diag.Warning, Title: "denied name with open subdomains", Since: "0.1.0",
		Text:   "Hosts on no list are allowed here, so that denying one name leaves all its subdomains open. Deny the wildcard too.",
		Before: "deniedDomains: [pastebin.com]", After: "deniedDomains: [pastebin.com, \"*.pastebin.com\"]"}
	codeSharedSuffix = &diag.Code{ID: "HALO1211", Severity: diag.Warning, Title: "wildcard over a shared suffix", Since: "0.1.0",
		Text:   "Anybody can register a name under this suffix, so the wildcard allows hosts of strangers. Name the hosts you mean.",
		Before: `allowedDomains: ["*.github.io"]`, After: "allowedDomains: [acme.github.io]"}
	codeEndpointDenied = &diag.Code{ID: "HALO1212", Severity: diag.Warning, Title: "endpoint of the policy is denied", Since: "0.1.0",
		Text:   "The policy names this host as its telemetry endpoint or as an MCP server and denies it at the same time. Sandboxed programs cannot reach it.",
		Before: "egress: {deniedDomains: [\"*.acme.example\"]}\ntelemetry: {enabled: true, otlpEndpoint: \"https://otel.acme.example\"}", After: "egress: {deniedDomains: [files.acme.example]}\ntelemetry: {enabled: true, otlpEndpoint: \"https://otel.acme.example\"}"}

	codeReadOnlyRoots = &diag.Code{ID: "HALO1304", Title: "writable root in read-only mode", Since: "0.1.0",
		Text:   "Read-only mode has no writable root. Remove the roots or use workspace-write.",
		Before: "sandbox: {mode: read-only, writableRoots: [/opt/build-cache]}", After: "sandbox: {mode: workspace-write, writableRoots: [/opt/build-cache]}"}
	codeOff = &diag.Code{ID: "HALO1305", Title: "sandbox off beside what only a sandbox holds", Since: "0.1.0",
		Text:   "With the sandbox off, egress rules, protected paths and writable roots have nothing that holds them. Use workspace-write, or remove them.",
		Before: "sandbox: {mode: \"off\", protectedPaths: [\"~/.ssh\"]}", After: "sandbox: {mode: workspace-write, protectedPaths: [\"~/.ssh\"]}"}
	codeConflict = &diag.Code{ID: "HALO1306", Title: "writable root at a protected path", Since: "0.1.0",
		Text:   "A writable root contains, is, or lies inside a protected path. Case does not count, and /Users/NAME, /home/NAME and /root are the home.",
		Before: "writableRoots: [~/work]\nprotectedPaths: [~/work/secrets]", After: "writableRoots: [~/work/build]\nprotectedPaths: [~/work/secrets]"}
	codeConfigRoot = &diag.Code{ID: "HALO1307", Severity: diag.Warning, Title: "writable root at configuration", Since: "0.1.0",
		Text:   "An agent that can write there can change how agents, shells or the session start. Choose another directory, or protect the file.",
		Before: "writableRoots: [~/.config]", After: "writableRoots: [~/.cache/acme]"}
	codeRequiredOff = &diag.Code{ID: "HALO1308", Title: "sandbox required and off", Since: "0.1.0",
		Text:   "permissions.sandboxRequired makes a harness refuse to run without its sandbox, and the mode is off.",
		Before: "sandbox: {mode: \"off\"}\npermissions: {sandboxRequired: true}", After: "sandbox: {mode: workspace-write}\npermissions: {sandboxRequired: true}"}
	codeUnionEmpty = &diag.Code{ID: "HALO1309", Severity: diag.Warning, Title: "empty list that drops nothing", Since: "0.1.0",
		Text:   "This list only ever grows along extends: [] does not drop what the parent has. Remove the key.",
		Before: "extends: base\negress: {deniedDomains: []}", After: "extends: base"}

	codeExtends = &diag.Code{ID: "HALO1401", Title: "extends that does not resolve", Since: "0.1.0",
		Text:   "A profile extends one existing profile, and the chain ends.",
		Before: "name: engineering\nextends: bsae", After: "name: engineering\nextends: base"}
	codeNoRing = &diag.Code{ID: "HALO1402", Title: "no ring", Since: "0.1.0",
		Text:  "A repo without a ring builds nothing, and nothing to check is not a pass.",
		After: "apiVersion: halos.dev/v1\nkind: Ring\nname: ga\norder: 3\nprofile: base\nmembership: {default: true}"}
	codeRing = &diag.Code{ID: "HALO1403", Title: "rings that do not fit together", Since: "0.1.0",
		Text:   "Ring orders are unique, exactly one ring is the default and has no percentage, percentages sum to at most 100, and a user is listed in one ring.",
		Before: "kind: Ring\nname: ring0\norder: 3\n---\nkind: Ring\nname: ga\norder: 3", After: "kind: Ring\nname: ring0\norder: 0\n---\nkind: Ring\nname: ga\norder: 3"}
	codeRingProfile = &diag.Code{ID: "HALO1404", Title: "ring whose profile cannot be built", Since: "0.1.0",
		Text:   "A ring names an existing profile that enables at least one harness and pins each to an exact version.",
		Before: "kind: Profile\nname: base\nharnesses: {}", After: "kind: Profile\nname: base\nharnesses: {claude-code: {version: 2.1.332}}"}
	codeUnit = &diag.Code{ID: "HALO1405", Title: "unit that refers to nothing", Since: "0.1.0",
		Text:   "The rings and the parent of a unit exist, the chain of parents ends, and at most 64 units apply at once.",
		Before: "kind: Unit\nname: payments\nrings: [ring9]", After: "kind: Unit\nname: payments\nrings: [ring3-ga]"}
	codeReference = &diag.Code{ID: "HALO1406", Title: "reference to nothing", Since: "0.1.0",
		Text:   "The document named here does not exist in the repo.",
		Before: "sandbox: {policy: enginering}", After: "sandbox: {policy: engineering}"}
	codeRelease = &diag.Code{ID: "HALO1407", Title: "not a release digest", Since: "0.1.0",
		Text:   "A ring pins a release by its digest: sha256: and 64 hexadecimal digits.",
		Before: "release: \"1.4.0\"", After: "release: sha256:5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"}

	codeBypass = &diag.Code{ID: "HALO1501", Title: "permission bypass", Since: "0.1.0",
		Text:   "No release may contain a permission bypass by any route: not as a mode, not in env, not in overrides.",
		Before: "permissions: {mode: bypassPermissions}", After: "permissions: {mode: default, disableBypass: true}"}
	codeDisableBypass = &diag.Code{ID: "HALO1502", Title: "ring without the bypass lock", Since: "0.1.0",
		Text:   "Every profile that a ring uses sets permissions.disableBypass, or a user can switch all permissions off with a flag.",
		Before: "permissions: {mode: default}", After: "permissions: {mode: default, disableBypass: true}"}
	codeAuto = &diag.Code{ID: "HALO1503", Severity: diag.Warning, Title: "auto mode on the default ring", Since: "0.1.0",
		Text:   "In permission mode auto a classifier answers in place of a person. Try it in an early ring first.",
		Before: "permissions: {mode: auto}", After: "permissions: {mode: default}"}
	codeLogPrompts = &diag.Code{ID: "HALO1504", Severity: diag.Warning, Title: "prompts logged on the default ring", Since: "0.1.0",
		Text:   "telemetry.logPrompts sends what people type to the collector. On the default ring that is everybody.",
		Before: "telemetry: {enabled: true, logPrompts: true}", After: "telemetry: {enabled: true}"}
	codeTelemetry = &diag.Code{ID: "HALO1505", Severity: diag.Warning, Title: "ring without telemetry", Since: "0.1.0",
		Text:   "Without telemetry nobody sees whether the policy works. Set telemetry.enabled and an endpoint.",
		Before: "telemetry: {enabled: false}", After: "telemetry: {enabled: true, otlpEndpoint: \"https://otel.acme.example:4318\"}"}
	codeHooks = &diag.Code{ID: "HALO1506", Title: "hooks on the default ring without managedOnly", Since: "0.1.0",
		Text:   "A default ring that ships hooks sets hooks.managedOnly, so that users' hooks cannot shadow them.",
		Before: "hooks:\n  items:\n    - {event: PreToolUse, command: /opt/acme/audit}", After: "hooks:\n  managedOnly: true\n  items:\n    - {event: PreToolUse, command: /opt/acme/audit}"}
	codeRequiredEgress = &diag.Code{ID: "HALO1507", Title: "sandbox required and nothing allowed", Since: "0.1.0",
		Text:   "The ring requires a sandbox and allows no host, so that no sandboxed command could reach anything. Allow the hosts the work needs.",
		Before: "permissions: {sandboxRequired: true}\negress: {default: deny}", After: "permissions: {sandboxRequired: true}\negress: {allowedDomains: [ai.acme.example]}"}
	codeOverride = &diag.Code{ID: "HALO1508", Title: "override that is not allowed", Since: "0.1.0",
		Text:   "Overrides are merged into the rendered file after rendering, so only keys that cannot weaken the policy are accepted; keys that run commands are never among them.",
		Before: "harnesses: {claude-code: {version: 2.1.332, overrides: {apiKeyHelper: /opt/key}}}", After: "harnesses: {claude-code: {version: 2.1.332, overrides: {cleanupPeriodDays: 30}}}"}
	codeEnv = &diag.Code{ID: "HALO1509", Title: "reserved environment variable", Since: "0.1.0",
		Text:   "Variables with this prefix change how a harness, its sandbox or the loader works. Use the field of the profile that holds the concept.",
		Before: "env: {LD_PRELOAD: /opt/x.so}", After: "env: {ACME_TEAM: payments}"}
	codeProxyEnv = &diag.Code{ID: "HALO1510", Severity: diag.Warning, Title: "proxy in the environment", Since: "0.1.0",
		Text:   "A proxy variable can lead traffic around the sandbox's own proxy.",
		Before: "env: {HTTPS_PROXY: \"http://proxy.acme.example:3128\"}", After: "env: {ACME_TEAM: payments}"}
	codeSecret = &diag.Code{ID: "HALO1511", Title: "literal secret", Since: "0.1.0", Secret: true,
		Text:   "Policy is readable by everyone who reads the repo or a device's files. Refer to a variable instead.",
		Before: "headers: {Authorization: Bearer abc123}", After: `headers: {Authorization: "Bearer ${MCP_TOKEN}"}`}
	codeNoGateway = &diag.Code{ID: "HALO1512", Severity: diag.Warning, Title: "no gateway", Since: "0.1.0",
		Text:  "Without a Gateway document model traffic is not routed, and egress rules are not checked against the gateway's host.",
		After: "apiVersion: halos.dev/v1\nkind: Gateway\nname: main\nbaseURL: https://ai.acme.example"}
	codeModel = &diag.Code{ID: "HALO1513", Title: "model that the gateway does not serve", Since: "0.1.0",
		Text:   "The alias is not among the models of the Gateway, or its upstream does not speak the wire protocol of the harness.",
		Before: "models: {default: fastest}", After: "models: {default: fast}"}

	codeEnvName = &diag.Code{ID: "HALO1514", Title: "not the name of a variable", Since: "0.1.0",
		Text:   "The name of an environment variable is not empty and holds no = and no blank; a program would never see this one.",
		Before: `env: {"GOFLAGS=-mod": readonly}`, After: `env: {GOFLAGS: -mod=readonly}`}
	codeSameServer = &diag.Code{ID: "HALO1515", Title: "two MCP servers of one name", Since: "0.1.0",
		Text:   "Harnesses know an MCP server by its name, so that one of the two would be gone in silence.",
		Before: "servers:\n  - {name: docs, url: https://a.acme.example/mcp}\n  - {name: docs, url: https://b.acme.example/mcp}", After: "servers:\n  - {name: docs, url: https://a.acme.example/mcp}\n  - {name: docs-b, url: https://b.acme.example/mcp}"}

	codeLoosens = &diag.Code{ID: "HALO1601", Title: "overlay that loosens", Since: "0.1.0",
		Text:   "A unit's overlay may shorten the allow list and lengthen the lists that deny or protect. Everything else is a loosening and stops the build. Put the wider policy in a profile of its own ring, or permit this one thing with an Exception document that has an owner and an end.",
		Before: "kind: Unit\nname: payments\noverlay: {egress: {allowedDomains: [uploads.example]}}", After: "kind: Unit\nname: payments\noverlay: {egress: {deniedDomains: [gist.github.com]}}"}
	codeWidens = &diag.Code{ID: "HALO1602", Severity: diag.Warning, Title: "profile wider than its parent", Since: "0.1.0",
		Text:   "The profile allows something that the profile it extends does not. That is legal and should be on purpose.",
		Before: "extends: base\negress: {allowedDomains: [ai.acme.example, uploads.example]}", After: "extends: base\negress: {allowedDomains: [ai.acme.example]}"}
	codeExpired = &diag.Code{ID: "HALO1603", Title: "expired exception", Since: "0.1.0",
		Text:   "The exception is past its end. Remove it, or renew it with a new date and the owner's consent.",
		Before: "expires: 2020-01-31", After: "expires: 2027-01-31"}
	codeExpires = &diag.Code{ID: "HALO1604", Severity: diag.Warning, Title: "exception about to expire", Since: "0.1.0",
		Text: "The exception ends within 14 days; after that the build stops."}
	codeUnused = &diag.Code{ID: "HALO1605", Severity: diag.Warning, Title: "exception that permits nothing", Since: "0.1.0",
		Text: "Nothing in the policy needs this exception. Remove it: it would excuse a later mistake in silence."}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{codePreset, codeDefaultAllow, codeGateway, codeFlip, codeOpenByEmptiness, codeSwallowed, codeCovered, codeApexOnly, codeSharedSuffix,
		codeEndpointDenied, codeReadOnlyRoots, codeOff, codeConflict, codeConfigRoot, codeRequiredOff, codeUnionEmpty, codeExtends, codeNoRing, codeRing,
		codeRingProfile, codeUnit, codeReference, codeRelease, codeBypass, codeDisableBypass, codeAuto, codeLogPrompts, codeTelemetry, codeHooks,
		codeRequiredEgress, codeOverride, codeEnv, codeProxyEnv, codeSecret, codeNoGateway, codeModel, codeEnvName, codeSameServer, codeLoosens, codeWidens, codeExpired, codeExpires, codeUnused}
}
