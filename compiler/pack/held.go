package pack

import "strings"

// Where a setting is held on a device.
const (
	// HeldByPolicy is the policy.yaml that DefenseClaw writes for OpenShell, HeldByProxy its egress proxy; HeldByDefenseClaw is the rest of DefenseClaw.
	HeldByPolicy      = "policy.yaml"
	HeldByProxy       = "egress proxy"
	HeldByDefenseClaw = "defenseclaw"
)

// HeldBy says what holds the setting of a key: OpenShell's policy.yaml, the egress proxy in front of it, or DefenseClaw itself (internal/openshell/policy of
// github.com/cisco-ai-defense/defenseclaw, read 2026-11). Open and balanced give the same policy.yaml, one rule to the proxy; strict gives none.
func HeldBy(key string) string {
	switch key {
	case "profile", "network.mode", "workdir.mode", "mcp.host_ports":
		return HeldByPolicy
	}
	if strings.HasPrefix(key, "egress.") {
		return HeldByProxy
	}
	return HeldByDefenseClaw
}
