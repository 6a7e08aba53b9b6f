package openshell

import "slices"

// The built-in sources are those of openkaiden/openshell-image-builder, commit 8b192b1 (2026-07-01): src/policy, src/agent, src/inference. It writes
// tls: terminate, which OpenShell reads as nothing; what halo writes has no tls but skip.

// BuiltinBase returns the base policy: what every sandbox gets.
func BuiltinBase() *Policy {
	return &Policy{
		Version: 1,
		Filesystem: &Filesystem{
			IncludeWorkdir: true,
			ReadOnly:       []string{"/usr", "/lib", "/proc", "/dev/urandom", "/app", "/etc", "/var/log"},
			ReadWrite:      []string{"/sandbox", "/tmp", "/dev/null"},
		},
		Landlock: &Landlock{Compatibility: "best_effort"},
		Process:  &Process{RunAsUser: "sandbox", RunAsGroup: "sandbox"},
		Rules: []Rule{
			{Slug: "github_rest_api", Name: "github-rest-api", Binaries: binaries("/usr/bin/gh"),
				Endpoints: []Endpoint{inspect("api.github.com", "read-only")}},
			{Slug: "github_ssh_over_https", Name: "github-ssh-over-https", Binaries: binaries("/usr/bin/git"),
				Endpoints: []Endpoint{{Host: "github.com", Port: 443, Protocol: "rest", Enforcement: "enforce", Rules: []L7Rule{
					{Method: "GET", Path: "/**/info/refs*"},
					{Method: "POST", Path: "/**/git-upload-pack"},
				}}}},
		},
	}
}

func plain(host string) Endpoint { return Endpoint{Host: host, Port: 443} }

func inspect(host, access string) Endpoint {
	return Endpoint{Host: host, Port: 443, Protocol: "rest", Enforcement: "enforce", Access: access}
}

func binaries(paths ...string) []Binary {
	bs := make([]Binary, len(paths))
	for i, p := range paths {
		bs[i].Path = p
	}
	return bs
}

// agent is one of the agents that OpenShell images hold.
type agent struct {
	id, binary string
	slug, name string
	endpoints  func() []Endpoint
	providers  []string
}

func agents() []agent {
	return []agent{
		{"claude", "/sandbox/.local/bin/claude", "claude_code", "claude-code", func() []Endpoint {
			return []Endpoint{plain("raw.githubusercontent.com"), plain("platform.claude.com"), inspect("api.github.com", "read-only")}
		}, []string{"anthropic", "vertexai"}},
		{"opencode", "/sandbox/.local/bin/opencode", "opencode", "opencode", func() []Endpoint {
			return []Endpoint{inspect("models.dev", "full"), inspect("opencode.ai", "full"), inspect("registry.npmjs.org", "read-only"), inspect("api.github.com", "read-only")}
		}, []string{"anthropic", "ollama", "openai", "vertexai"}},
	}
}

// Agents returns the ids of OpenShell's agents.
func Agents() []string {
	var ids []string
	for _, a := range agents() {
		ids = append(ids, a.id)
	}
	return ids
}

// AgentBinary returns the executable of an agent in an OpenShell image, "" for an unknown id. It is a symbolic link there, whose target
// OpenShell adds by itself.
func AgentBinary(id string) string {
	if a, ok := findAgent(id); ok {
		return a.binary
	}
	return ""
}

func findAgent(id string) (agent, bool) {
	all := agents()
	i := slices.IndexFunc(all, func(a agent) bool { return a.id == id })
	if i < 0 {
		return agent{}, false
	}
	return all[i], true
}

// provider is an inference provider. A base URL replaces all of its hosts by one inspected endpoint.
type provider struct {
	id        string
	endpoints func() []Endpoint
	baseURL   bool // takes one
	localhost bool // localhost in it means the machine the sandbox runs on
}

// localMachine is the name under which a sandbox reaches the machine it runs on.
const localMachine = "host.openshell.internal"

func providers() []provider {
	return []provider{
		{"anthropic", func() []Endpoint {
			return []Endpoint{inspect("api.anthropic.com", "full"), plain("statsig.anthropic.com")}
		}, true, false},
		{"ollama", func() []Endpoint {
			e := inspect(localMachine, "full")
			e.Port = 11434
			return []Endpoint{e}
		}, true, true},
		{"openai", func() []Endpoint { return []Endpoint{inspect("api.openai.com", "full")} }, true, true},
		{"vertexai", func() []Endpoint {
			return []Endpoint{plain("oauth2.googleapis.com"), plain("aiplatform.googleapis.com"), plain("*-aiplatform.googleapis.com")}
		}, false, false},
	}
}

// Providers returns the ids of the inference providers that an agent takes, of all providers for the agent "".
func Providers(agentID string) []string {
	if a, ok := findAgent(agentID); ok {
		return slices.Clone(a.providers)
	}
	var ids []string
	for _, p := range providers() {
		ids = append(ids, p.id)
	}
	return ids
}

// WorkspaceBinaries returns the executables that workspace hosts are for, besides the agent.
func WorkspaceBinaries() []string {
	return []string{"/bin/**", "/usr/bin/**", "/usr/local/bin/**", "/sandbox/.local/bin/**"}
}
