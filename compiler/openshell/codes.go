package openshell

import "halos.dev/halo/compiler/diag"

var (
	codeParse = &diag.Code{ID: "HALO2201", Title: "policy.yaml does not parse", Since: "0.1.0",
		Text:   "OpenShell reads policy.yaml strictly: unknown and repeated keys, wrong types and a missing version are refused. A policy file inside an image that does not parse is replaced by one that allows no network, with no build error.",
		Before: "endpoints: [{host: a.example.com, port: 443, methods: [GET]}]",
		After:  "endpoints: [{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: read-only}]"}
	codeRepeated = &diag.Code{ID: "HALO2202", Severity: diag.Warning, Title: "repeated slug or map key", Since: "0.1.0",
		Text: "OpenShell keeps the last of two equal slugs and drops the first without a word. Merge the two rules or rename one."}
	codeIdentity = &diag.Code{ID: "HALO2203", Title: "process identity is not allowed", Since: "0.1.0",
		Text:   "OpenShell runs a sandbox as \"sandbox\" or as a numeric id from 1 to 4294967294. Root, 0 and other names are refused.",
		Before: "process: {run_as_user: root}", After: "process: {run_as_user: sandbox}"}
	codePath = &diag.Code{ID: "HALO2204", Title: "filesystem path is not allowed", Since: "0.1.0",
		Text:   "Paths of filesystem_policy are absolute, do not climb, are at most 4096 bytes long and 256 in all; the whole file system cannot be writable.",
		Before: "read_write: [work]", After: "read_write: [/sandbox/work]"}
	codeHost = &diag.Code{ID: "HALO2205", Title: "host pattern is not allowed", Since: "0.1.0",
		Text:   "A wildcard may be a part of the first label or a whole later label, and never covers a top-level domain. The gateway or the supervisor refuses anything else, and a refusal of the supervisor quarantines the sandbox.",
		Before: `host: "*.com"`, After: `host: "*.example.com"`}
	codeEndpoint = &diag.Code{ID: "HALO2206", Title: "endpoint has no usable host or port", Since: "0.1.0",
		Text:   "An endpoint needs a host (or allowed_ips) and a port from 1 to 65535; protocol tcp needs a DNS name.",
		Before: "endpoints: [{host: a.example.com}]", After: "endpoints: [{host: a.example.com, port: 443}]"}
	codeL7 = &diag.Code{ID: "HALO2207", Title: "endpoint keys contradict each other", Since: "0.1.0",
		Text:   "An inspected protocol needs access or rules, not both; tcp takes neither; deny_rules need something to deny from; json-rpc and mcp take no presets. The former protocols grpc and ssh are gone.",
		Before: "{host: a.example.com, port: 443, protocol: rest}", After: "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: read-only}"}
	codeL7Rule = &diag.Code{ID: "HALO2208", Title: "rule that the supervisor refuses", Since: "0.1.0",
		Text: "The gateway accepts the policy, the supervisor in the sandbox does not, and the sandbox then has no network at all."}
	codeSigning = &diag.Code{ID: "HALO2209", Title: "credential signing is incomplete", Since: "0.1.0",
		Text:   "credential_signing is sigv4, sigv4:body or sigv4:no_body, needs signing_service, and excludes request_body_credential_rewrite.",
		Before: "credential_signing: sigv4", After: "credential_signing: sigv4\nsigning_service: bedrock"}
	codeMiddleware = &diag.Code{ID: "HALO2210", Title: "middleware is not allowed", Since: "0.1.0",
		Text: "A middleware has a name, an order of its own, a selector with at least one host, and may not be in the way of an endpoint that skips TLS."}
	codeAmbiguity = &diag.Code{ID: "HALO2211", Title: "endpoints overlap and disagree", Since: "0.1.0",
		Text: "Two endpoints that can name the same host and port must agree on how the connection is handled, whatever their binaries; the gateway refuses the policy otherwise."}
	codeGateway = &diag.Code{ID: "HALO2212", Title: "slug is reserved by the gateway", Since: "0.1.0",
		Text: "Slugs that start with _provider_ belong to the rules that the gateway adds for attached providers."}
	codeNoEffect = &diag.Code{ID: "HALO2213", Severity: diag.Warning, Title: "key has no effect", Since: "0.1.0",
		Text:   "OpenShell accepts the value, warns and goes on as if it were not there.",
		Before: "tls: terminate", After: "(leave tls out)"}
	codeAudit = &diag.Code{ID: "HALO2220", Severity: diag.Warning, Title: "violations are only logged", Since: "0.1.0",
		Text:   "Only the exact text enforce blocks. Left out, or anything else, means audit: the request passes and a line is logged.",
		Before: "protocol: rest\naccess: read-only", After: "protocol: rest\nenforcement: enforce\naccess: read-only"}
	codeDead = &diag.Code{ID: "HALO2221", Severity: diag.Warning, Title: "keys that nobody reads", Since: "0.1.0",
		Text:   "Without protocol nothing is inspected: access, rules, enforcement and path are accepted and limit nothing. What access and rules name is even allowed on a connection that another endpoint has inspected.",
		Before: "{host: a.example.com, port: 443, access: read-only}", After: "{host: a.example.com, port: 443, protocol: rest, enforcement: enforce, access: read-only}"}
	codeNothing = &diag.Code{ID: "HALO2222", Severity: diag.Warning, Title: "rule that matches nothing", Since: "0.1.0",
		Text:   "In a rest or websocket rule a missing path or method matches nothing: an allow rule then allows nothing, a deny rule denies nothing. A rule without binaries matches no process.",
		Before: "allow: {method: GET}", After: "allow: {method: GET, path: \"**\"}"}
	codePattern = &diag.Code{ID: "HALO2223", Severity: diag.Warning, Title: "pattern that poisons the policy", Since: "0.1.0",
		Text: "OpenShell accepts a pattern that does not compile and then fails to evaluate: a bad host pattern denies every request of the sandbox, a bad binary pattern nearly every one."}
	codeValue = &diag.Code{ID: "HALO2224", Severity: diag.Warning, Title: "value that OpenShell reads as something else", Since: "0.1.0",
		Text: "OpenShell takes any text here and treats what it does not know as the default. Write one of the values it knows, in lower case."}
	codeName = &diag.Code{ID: "HALO2225", Severity: diag.Warning, Title: "host is not a name that can be reached", Since: "0.1.0",
		Text:   "OpenShell compares hosts as text, so a scheme, port, user or final dot makes the endpoint unreachable; loopback and metadata names are never reachable.",
		Before: "host: https://a.example.com", After: "host: a.example.com"}
	codeAllowedIPs = &diag.Code{ID: "HALO2226", Severity: diag.Warning, Title: "allowed_ips entry is not usable", Since: "0.1.0",
		Text: "allowed_ips is not read when the policy loads; one bad entry denies each connection to the endpoint."}
	codeBothPorts = &diag.Code{ID: "HALO2227", Severity: diag.Warning, Title: "both port and ports", Since: "0.1.0",
		Text:   "ports wins and port is dropped without a word.",
		Before: "port: 443\nports: [8443]", After: "ports: [443, 8443]"}
	codeMiss = &diag.Code{ID: "HALO2228", Severity: diag.Warning, Title: "deny rule with a hole", Since: "0.1.0",
		Text: "A dot is a boundary in tool and method patterns, so a single star misses every name with a dot. Prefer allow rules with exact names."}
	codeSlug = &diag.Code{ID: "HALO2240", Title: "slug is taken", Since: "0.1.0",
		Text:   "Sources are merged slug by slug and upstream lets a later one replace an earlier one in silence. halo wants the replacement to be said.",
		Before: "fragments: [openshell/claude.yaml]", After: "fragments: [openshell/claude.yaml]\nreplace: [claude_code]"}
	codeReplace = &diag.Code{ID: "HALO2241", Severity: diag.Warning, Title: "replace names a slug that is not replaced", Since: "0.1.0",
		Text: "The entry has no effect. Remove it, so that a later conflict is seen."}
	codeAgent = &diag.Code{ID: "HALO2242", Title: "agent or inference provider does not fit", Since: "0.1.0",
		Text: "OpenShell's agents are claude and opencode, and each takes only some inference providers."}
	codeBaseURL = &diag.Code{ID: "HALO2243", Title: "inference base URL is not usable", Since: "0.1.0",
		Text:   "The base URL is http or https with a plain host. Upstream falls back to the provider's default hosts when it cannot read the URL.",
		Before: "baseURL: proxy.example.com:8443", After: "baseURL: https://proxy.example.com:8443"}
	codeWorkspace = &diag.Code{ID: "HALO2244", Title: "workspace.json is not valid", Since: "0.1.0",
		Text: "The file has a fixed schema and unknown keys are refused."}
	codeWorkspaceHost = &diag.Code{ID: "HALO2245", Title: "workspace host is not valid", Since: "0.1.0",
		Text:   "A workspace host is a host name with an optional port. One bad entry fails the whole build.",
		Before: "hosts: [\"registry example\"]", After: "hosts: [\"registry.example.com:8443\"]"}
	codeWorkspaceDrop = &diag.Code{ID: "HALO2246", Severity: diag.Warning, Title: "part of a workspace host is dropped", Since: "0.1.0",
		Text:   "Only host and port are taken from a workspace entry, and every scheme means port 443 unless another port is written out.",
		Before: "http://registry.example.com/v2", After: "registry.example.com:80"}
	codeSection = &diag.Code{ID: "HALO2247", Severity: diag.Warning, Title: "section of a fragment is not used", Since: "0.1.0",
		Text: "filesystem_policy, landlock, process and network_middlewares come from the base only. Move the section to the base, or remove it."}
	codeNoAgent = &diag.Code{ID: "HALO2248", Severity: diag.Warning, Title: "inference provider without an agent", Since: "0.1.0",
		Text: "The hosts of an inference provider are for the executable of the agent. Without an agent nothing is added, as with the image builder."}
	codeDenied = &diag.Code{ID: "HALO2250", Title: "sandbox policy allows what egress denies", Since: "0.1.0",
		Text: "A sandbox may not reach a host that the profile's egress policy denies. A host that is only denied by default can be named under permit; a host on deniedDomains cannot."}
	codePermit = &diag.Code{ID: "HALO2251", Title: "permit names a denied host", Since: "0.1.0",
		Text: "deniedDomains holds everywhere: a host on it can never be permitted."}
	codeRemoved = &diag.Code{ID: "HALO2252", Severity: diag.Warning, Title: "built-in host removed", Since: "0.1.0",
		Text: "A host of a built-in source is denied by the profile's egress policy and was left out. Allow it in the profile, or name it under permit."}
	codeGap = &diag.Code{ID: "HALO2253", Severity: diag.Warning, Title: "OpenShell cannot hold the egress policy exactly", Since: "0.1.0",
		Text: "What the profile says about a host has no exact form in policy.yaml. The written policy is never looser; the finding says where it is stricter or how the denial is held."}
	codeReadBack = &diag.Code{ID: "HALO2254", Title: "policy.yaml does not read back", Since: "0.1.0",
		Text: "After writing, halo reads policy.yaml again and compares. A difference is a fault of halo: please report it with the policy."}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{codeParse, codeRepeated, codeIdentity, codePath, codeHost, codeEndpoint, codeL7, codeL7Rule, codeSigning, codeMiddleware,
		codeAmbiguity, codeGateway, codeNoEffect, codeAudit, codeDead, codeNothing, codePattern, codeValue, codeName, codeAllowedIPs, codeBothPorts,
		codeMiss, codeSlug, codeReplace, codeAgent, codeBaseURL, codeWorkspace, codeWorkspaceHost, codeWorkspaceDrop, codeSection, codeNoAgent, codeDenied,
		codePermit, codeRemoved, codeGap, codeReadBack}
}
