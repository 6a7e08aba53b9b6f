# What conftest and opa can be asked of the documents of a benchmark repo, one file at a time: keys, types, words and the form of host names, as policy.cue does.
package main

import rego.v1

pack if not input.kind

# keys are the keys of a mapping by its place; places with a * stand for every key or item.
keys := {
	"Halos": {"apiVersion", "kind", "org", "lifetime"},
	"Gateway": {"apiVersion", "kind", "name", "baseURL", "engine"},
	"Profile": {"apiVersion", "kind", "name", "extends", "harnesses", "permissions", "sandbox", "egress", "telemetry", "mcp", "hooks", "instructions"},
	"Ring": {"apiVersion", "kind", "name", "order", "profile", "membership", "posture", "versionGate"},
	"Unit": {"apiVersion", "kind", "name", "rings", "membership", "overlay"},
	"pack": {"version", "name", "description", "network", "approvals", "egress", "workspace", "harness", "mcp", "hooks"},
}

kind := object.get(input, "kind", "pack")

deny contains sprintf("%s is no kind", [kind]) if not keys[kind]

deny contains sprintf("%s is no key of %s", [k, kind]) if {
	some k, _ in input
	not k in keys[kind]
}

deny contains "apiVersion is not halos.dev/v1" if {
	not pack
	input.apiVersion != "halos.dev/v1"
}

deny contains sprintf("%v is not a name", [input.name]) if {
	not regex.match(`^[a-z0-9][a-z0-9-]*$`, input.name)
}

deny contains "needs a name" if {
	not kind in {"Halos"}
	not input.name
}

# sections are the mappings that profiles and overlays have.
sections contains input if kind == "Profile"

sections contains input.overlay if kind == "Unit"

sections contains input if pack

deny contains sprintf("egress.%s is no key", [k]) if {
	not pack
	some s in sections
	some k, _ in s.egress
	not k in {"default", "allowedDomains", "deniedDomains", "presets"}
}

deny contains sprintf("sandbox.%s is no key", [k]) if {
	some s in sections
	some k, _ in s.sandbox
	not k in {"mode", "writableRoots", "protectedPaths"}
}

deny contains sprintf("%v is no mode", [s.sandbox.mode]) if {
	some s in sections
	not s.sandbox.mode in {"read-only", "workspace-write", "off"}
}

deny contains sprintf("%v is no default", [s.egress.default]) if {
	some s in sections
	not s.egress["default"] in {"allow", "deny"}
}

hosts contains h if {
	some s in sections
	some list in ["allowedDomains", "deniedDomains", "allow"]
	some h in s.egress[list]
}

deny contains sprintf("%v is no host name", [h]) if {
	some h in hosts
	not regex.match(`^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+$`, h)
}

deny contains sprintf("%s has no exact version", [name]) if {
	some name, pin in input.harnesses
	not regex.match(`^[0-9]+\.[0-9]+\.[0-9]+$`, pin.version)
}

deny contains sprintf("%v is no protocol", [input.telemetry.protocol]) if {
	not input.telemetry.protocol in {"grpc", "http/protobuf", "http/json"}
}

deny contains sprintf("%s is not true or false", [k]) if {
	some k, v in object.union(object.get(input, "permissions", {}), {})
	k != "deny"
	not is_boolean(v)
}

deny contains "order is not a number" if {
	kind == "Ring"
	not is_number(input.order)
}
