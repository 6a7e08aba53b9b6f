package device

import (
	"golang.org/x/sys/windows/registry"

	"halos.dev/halo/compiler/policy"
)

// registryPolicies lists the machine-wide policy keys of a harness that have values.
func registryPolicies(id string) []string {
	var out []string
	for _, path := range map[string][]string{
		policy.ClaudeCode: {`SOFTWARE\Policies\ClaudeCode`},
		policy.CopilotCLI: {`SOFTWARE\Policies\GitHubCopilot`},
	}[id] {
		k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
		if err != nil {
			continue
		}
		if names, err := k.ReadValueNames(-1); err == nil && len(names) > 0 {
			out = append(out, `HKLM\`+path)
		}
		k.Close()
	}
	return out
}
