//go:build !windows

package device

// registryPolicies lists nothing: only Windows has a registry.
func registryPolicies(string) []string { return nil }
