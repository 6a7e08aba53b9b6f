package policy

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

const root = "org: acme\n"

// load loads files given as NAME=TEXT; halos.yaml is added when it is missing.
func load(t testing.TB, files ...string) (*Repo, []diag.Diagnostic) {
	t.Helper()
	m := fstest.MapFS{RootFile: {Data: []byte(root)}}
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return loadFS(t, m, nil)
}

func loadFS(t testing.TB, fsys fs.FS, q *Question) (*Repo, []diag.Diagnostic) {
	t.Helper()
	var diags diag.List
	r := Load(t.Context(), fsys, Options{Question: q}, &diags)
	return r, diags.Sorted()
}

// lines prints findings as "FILE:LINE:COL CODE PATH: MESSAGE (HINT)".
func lines(r *Repo, ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		name := r.Files.Name(d.Pos)
		if name == "" {
			name = d.File
		}
		out = append(out, fmt.Sprintf("%s:%d:%d %s %s: %s (%s)", name, d.Pos.Line(), d.Pos.Col(), d.Code.ID, d.Path, d.Message, d.Hint))
	}
	return strings.Join(out, "\n")
}

func doc(kind, rest string) string {
	return "apiVersion: halos.dev/v1\nkind: " + kind + "\nname: x\n" + rest
}

// TestEveryKey loads one document of every kind with every key, and looks for a field of the model that is still empty.
func TestEveryKey(t *testing.T) {
	r, ds := loadFS(t, os.DirFS("testdata/everything"), nil)
	if len(ds) > 0 {
		t.Fatal(lines(r, ds))
	}
	empty := map[string]bool{}
	full := func(doc any) {
		walk(reflect.ValueOf(doc).Elem(), reflect.TypeOf(doc).Elem().Name(), func(path string, isSet bool) {
			if isSet {
				empty[path] = false
			} else if _, seen := empty[path]; !seen {
				empty[path] = true
			}
		})
	}
	full(r.Root)
	full(r.Gateway)
	for _, d := range r.Presets {
		full(d)
	}
	for _, d := range r.Profiles {
		full(d)
	}
	for _, d := range r.Rings {
		full(d)
	}
	for _, d := range r.Units {
		full(d)
	}
	for _, d := range r.Tests {
		full(d)
	}
	for _, d := range r.Exceptions {
		full(d)
	}
	for path, is := range empty {
		// An overlay takes part of a body, and a unit's membership part of a ring's.
		if is && !strings.HasPrefix(path, "Unit.Overlay.") && !strings.HasPrefix(path, "Unit.Membership.") {
			t.Errorf("no key fills %s", path)
		}
	}
	for _, path := range []string{"Profile.Body.Egress.DeniedDomains", "Ring.Membership.OptIn", "Unit.Overlay.Sandbox.Policy", "Gateway.Upstreams.CredentialFile", "Halos.Identity.AdminGroups", "PolicyTest.Tests.Port"} {
		if is, seen := empty[path]; !seen || is {
			t.Errorf("the test does not see %s", path)
		}
	}
	if got := r.Profile("everything"); got.Sandbox.ModeField != "permissions.sandbox" || len(got.Harnesses[0].OverrideKeys) != 2 || got.Harnesses[0].OverrideKeys[1].Key.V != "attribution.commit" {
		t.Errorf("%+v", got.Harnesses)
	}
	if r.Gateway.Host != "ai.acme.example" || r.Ring("ring0").Membership.Percent.V != 1250 || r.Root.Lifetime.V != 90*86400 || r.Exceptions[0].Expires.Unix != 1801440000 {
		t.Errorf("%v %v %v %v", r.Gateway.Host, r.Ring("ring0").Membership.Percent, r.Root.Lifetime, r.Exceptions[0].Expires)
	}
	for _, h := range r.Documents {
		if h.Bad {
			t.Errorf("%s is marked", h.ID())
		}
		if got := r.DocumentAt(h.Pos + 1<<20); got != h {
			t.Errorf("the line below the first of %s is in %v", h.ID(), got)
		}
	}
}

// walk calls leaf for every value that a key fills.
func walk(v reflect.Value, path string, leaf func(path string, isSet bool)) {
	if s, ok := v.Interface().(interface{ IsSet() bool }); ok && v.Type() != reflect.TypeFor[Date]() {
		leaf(path, s.IsSet())
		return
	}
	switch v.Interface().(type) {
	case Date:
		leaf(path, v.Interface().(Date).IsSet())
		return
	case diag.Pos, Header, host.Pattern, fspath.Path, bool:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, leaf)
		}
	case reflect.Slice:
		leaf(path, v.Len() > 0)
		for i := range v.Len() {
			walk(v.Index(i), path, leaf)
		}
	case reflect.Map, reflect.String:
		leaf(path, v.Len() > 0)
	}
}

// TestRefused has a finding for everything the shape of a document can have wrong.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ files, want string }{
		// The root document.
		{"halos.yaml=org: ''", "halos.yaml:1:6 HALO1019 org: the text is empty ()"},
		{"halos.yaml=apiVersion: halos.dev/v1", "halos.yaml:1:1 HALO1017 org: required key \"org\" is missing ()"},
		{"halos.yaml=kind: Profile\norg: a", "halos.yaml:1:7 HALO1107 : halos.yaml is of kind Profile, want Halos ()"},
		{"halos.yaml=org: a\n---\norg: b\n---\norg: c", "halos.yaml:3:1 HALO1107 : halos.yaml holds 3 documents, want exactly one ()"},
		// Simple mode: its keys are read as strictly as documents.
		{"halos.yaml=org: a\nsafety: strict", "halos.yaml:2:9 HALO1118 tools: simple mode needs tools: the harnesses, each at one version (write tools: {claude-code: 2.1.332}; in a repo of documents, write the key into a Profile)"},
		{"halos.yaml=org: a\nsaftey: strict", "halos.yaml:2:1 HALO1015 saftey: unknown key \"saftey\" (did you mean \"safety\"?)"},
		{simple("safety: Strict"), "halos.yaml:3:9 HALO1016 safety: \"Strict\" is not one of standard, strict, relaxed (write strict)"},
		{simple("rollout: slow"), "halos.yaml:3:10 HALO1016 rollout: \"slow\" is not one of standard, fast, careful ()"},
		{simple("rollout: [fast]"), "halos.yaml:3:10 HALO1014 rollout: found a list, want one of standard, fast, careful ()"},
		{"halos.yaml=org: a\ntools: {claude: 2.1.332}", "halos.yaml:2:9 HALO1112 tools.claude: \"claude\" is not a harness id; known are claude-code, codex, copilot-cli, cursor-cli, gemini-cli, opencode (write claude-code)"},
		{"halos.yaml=org: a\ntools: {codex: 1.2}", "halos.yaml:2:16 HALO1110 tools.codex: 1.2 is not an exact version (write all three numbers, in quotes when YAML would read a number: \"1.20.0\")"},
		{"halos.yaml=org: a\ntools: {codex: {version: 0.138.0, overrides: {a: b}}}", "halos.yaml:2:35 HALO1015 tools.codex.overrides: key \"overrides\" is not supported here (write a document: kind: Profile, name: default, harnesses: {…})"},
		{simple("egress: {allow: [GitHub.com]}"), "halos.yaml:3:18 HALO1203 egress.allow[0]: \"GitHub.com\" is not in lower case (write github.com)"},
		{simple("egress: {deniedDomains: [a.example]}"), "halos.yaml:3:10 HALO1015 egress.deniedDomains: key \"deniedDomains\" is not supported here (in halos.yaml the lists are allow and deny; everything else is for a document: kind: Profile, name: default, egress: {…})"},
		{simple("gateway: ai.acme.example"), "halos.yaml:3:10 HALO1111 gateway: \"ai.acme.example\" is not an absolute https or http URL with a host ()"},
		{simple("telemetry: otel.acme.example:4318"), "halos.yaml:3:12 HALO1111 telemetry: \"otel.acme.example:4318\" is not an absolute https or http URL with a host ()"},
		{simple("gatewayEngine: kong"), "halos.yaml:3:16 HALO1118 gatewayEngine: models and their provider are reached through a gateway, and there is none (write gateway: https:// and the host of your model gateway)"},
		{simple("provider: anthropic"), "halos.yaml:3:11 HALO1118 provider: models and their provider are reached through a gateway, and there is none (write gateway: https:// and the host of your model gateway)"},
		{routed("provider: azure-openai"), "halos.yaml:4:11 HALO1016 provider: \"azure-openai\" is not one of anthropic, bedrock, vertex, openai, gemini, multi ()"},
		{routed("provider: {region: eu-west-1}"), "halos.yaml:4:11 HALO1017 provider.name: required key \"name\" is missing ()"},
		{routed("provider: bedrock"), "halos.yaml:4:11 HALO1118 provider: provider bedrock needs a region, which halo does not choose for you (write provider: {name: bedrock, region: …})"},
		{routed("provider: {name: vertex, region: global}"), "halos.yaml:4:18 HALO1118 provider: provider vertex needs a project, which halo does not choose for you (write provider: {name: vertex, project: …})"},
		{routed("provider: multi"), "halos.yaml:4:11 HALO1118 provider: several providers serve nothing without models (write models: {default: anthropic/ID})"},
		{routed("models: {default: claude}"), "halos.yaml:4:19 HALO1119 models.default: the model claude names no provider (write provider: and its name, or the model as PROVIDER/claude)"},
		{routed("models: {default: anthropic/}"), "halos.yaml:4:19 HALO1119 models.default: the provider anthropic is named and no model (write anthropic/ and the id of a model)"},
		{routed("provider: openai\nmodels: {fast: a}"), "halos.yaml:5:10 HALO1118 models: there is no alias default, the model that harnesses start on (write models: {default: ID})"},
		{routed("provider: openai\nmodels: {default: []}"), "halos.yaml:5:19 HALO1118 models.default: the alias default has no model (write models.default: and the id of a model)"},
		{routed("provider: openai\nmodels: {default: [a, vertex/b]}"), "halos.yaml:5:23 HALO1118 models.default: provider vertex needs a project, which halo does not choose for you (write provider: {name: openai, project: …})\n" +
			"halos.yaml:5:23 HALO1118 models.default: provider vertex needs a region, which halo does not choose for you (write provider: {name: openai, region: …})"},
		{"halos.yaml=org: a\nselfService: {}", "halos.yaml:2:1 HALO1015 selfService: key \"selfService\" is not supported here (this version of halo does not support it; see docs/guides/scope.md)"},
		{"halos.yaml=org: a\nlifetime: 90", "halos.yaml:2:11 HALO1014 lifetime: found the number 90, want a text (put it in quotes: \"90\")"},
		{"halos.yaml=org: a\nlifetime: 0d", "halos.yaml:2:11 HALO1116 lifetime: \"0d\" is not a lifetime (write a number of days, weeks or hours: 90d, 12w, 72h)"},
		{"halos.yaml=org: a\nlifetime: -1d", "halos.yaml:2:11 HALO1116 lifetime: \"-1d\" is not a lifetime (write a number of days, weeks or hours: 90d, 12w, 72h)"},
		{"halos.yaml=org: a\nacknowledge: [{code: HALO1701}]", "halos.yaml:2:15 HALO1017 acknowledge[0].path: required key \"path\" is missing ()\nhalos.yaml:2:15 HALO1017 acknowledge[0].until: required key \"until\" is missing ()\nhalos.yaml:2:15 HALO1017 acknowledge[0].why: required key \"why\" is missing ()"},
		{"x.yaml=apiVersion: halos.dev/v1\nkind: Halos\norg: b", "x.yaml:2:7 HALO1107 kind: kind Halos belongs in halos.yaml at the root of the repo, and nowhere else ()"},
		// Headers.
		{"x.yaml=name: x", "x.yaml:1:1 HALO1101 : document 1 declares no kind; kinds are Exception, Gateway, PolicyTest, Preset, Profile, Ring, Sandbox, Unit ()"},
		{"x.yaml=kind: [Profile]", "x.yaml:1:7 HALO1101 : kind is not a word; kinds are Exception, Gateway, PolicyTest, Preset, Profile, Ring, Sandbox, Unit ()"},
		{"x.yaml=kind: profile", "x.yaml:1:7 HALO1104 kind: unknown kind \"profile\"; kinds are Exception, Gateway, PolicyTest, Preset, Profile, Ring, Sandbox, Unit (did you mean Profile?)"},
		{"x.yaml=kind: Toggle", "x.yaml:1:7 HALO1104 kind: kind Toggle is not supported by halo (this version of halo does not support it; see docs/guides/scope.md)"},
		{"x.yaml=kind: Profile\nname: x", "x.yaml:1:1 HALO1101 apiVersion: apiVersion is missing (write apiVersion: halos.dev/v1)"},
		{"x.yaml=apiVersion: v1\nkind: Profile\nname: x", "x.yaml:1:13 HALO1102 apiVersion: unknown apiVersion \"v1\" (write apiVersion: halos.dev/v1)"},
		{"x.yaml=apiVersion: halos.dev/v1alpha1\nkind: Profile\nname: x", "x.yaml:1:13 HALO1103 apiVersion: apiVersion halos.dev/v1alpha1 is old; write halos.dev/v1 ()"},
		{"x.yaml=apiVersion: halos.dev/v1\nkind: Profile", "x.yaml:1:1 HALO1017 name: required key \"name\" is missing ()"},
		{"x.yaml=apiVersion: [x]\nkind: Profile\nname: x", "x.yaml:1:13 HALO1014 apiVersion: found a list, want a text ()"},
		{"x.yaml=" + "apiVersion: halos.dev/v1alpha1\nkind: Profile\nname: x\n---\napiVersion: halos.dev/v1alpha1\nkind: Profile\nname: y", "x.yaml:1:13 HALO1103 apiVersion: apiVersion halos.dev/v1alpha1 is old; write halos.dev/v1 ()"},
		// Two of one name.
		{"x.yaml=" + doc("Profile", "") + "---\n" + doc("Profile", ""), "x.yaml:7:7 HALO1105 name: there are two documents Profile/x ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\n") + "---\n" + doc("Gateway", "baseURL: https://b.example\n"), "x.yaml:6:1 HALO1105 : a repo has at most one Gateway ()"},
		{"x.yaml=apiVersion: halos.dev/v1\nkind: Preset\nname: vcs\nhosts: [a.example]", "x.yaml:3:7 HALO1105 name: preset \"vcs\" is built in; give your own preset another name ()"},
		// Keys, with the nearest known one.
		{"x.yaml=" + doc("Profile", "egress: {allowDomains: []}"), "x.yaml:4:10 HALO1015 egress.allowDomains: unknown key \"allowDomains\" (did you mean \"allowedDomains\"?)"},
		{"x.yaml=" + doc("Profile", "Egress: {}"), "x.yaml:4:1 HALO1015 Egress: unknown key \"Egress\" (did you mean \"egress\"?)"},
		{"x.yaml=" + doc("Profile", "sandbox: {pack: web}"), "x.yaml:4:11 HALO1015 sandbox.pack: key \"pack\" is not supported here (name a Sandbox document with sandbox.policy, and the pack in that document)"},
		{"x.yaml=" + doc("Ring", "order: 1\nprofile: p\negress: {}"), "x.yaml:6:1 HALO1015 egress: key \"egress\" is not supported here (a ring has no policy of its own: write a child profile with the extra hosts and point the ring at it)"},
		{"x.yaml=" + doc("Unit", "overlay: {hooks: {}}"), "x.yaml:4:11 HALO1015 overlay.hooks: key \"hooks\" is not supported here (" + overlayHint + ")"},
		{"x.yaml=" + doc("Unit", "overlay: {permissions: {allow: []}}"), "x.yaml:4:25 HALO1015 overlay.permissions.allow: unknown key \"allow\" (known keys here: deny, sandbox, sandboxRequired)"},
		{"x.yaml=" + doc("Unit", "overlay: {mcp: {servers: []}}"), "x.yaml:4:17 HALO1015 overlay.mcp.servers: unknown key \"servers\" (known keys here: denied)"},
		{"x.yaml=" + doc("Unit", "overlay: {}\nmembership: {percent: 5}"), "x.yaml:5:14 HALO1015 membership.percent: unknown key \"percent\" (known keys here: groups, users)"},
		{"x.yaml=" + doc("Unit", ""), "x.yaml:1:1 HALO1017 overlay: required key \"overlay\" is missing ()"},
		// Enumerated words.
		{"x.yaml=" + doc("Profile", "egress: {default: Deny}"), "x.yaml:4:19 HALO1016 egress.default: \"Deny\" is not one of allow, deny (write deny)"},
		{"x.yaml=" + doc("Profile", "sandbox: {mode: workspace_write}"), "x.yaml:4:17 HALO1016 sandbox.mode: \"workspace_write\" is not one of off, workspace-write, read-only (write workspace-write)"},
		{"x.yaml=" + doc("Profile", "permissions: {mode: yolo}"), "x.yaml:4:21 HALO1016 permissions.mode: \"yolo\" is not one of default, acceptEdits, plan, auto, bypassPermissions ()"},
		{"x.yaml=" + doc("Profile", "hooks: {items: [{event: pretooluse, command: x}]}"), "x.yaml:4:25 HALO1016 hooks.items[0].event: \"pretooluse\" is not one of PreToolUse, PostToolUse, SessionStart, Stop, UserPromptSubmit (write PreToolUse)"},
		{"x.yaml=" + doc("Profile", "telemetry: {protocol: http}"), "x.yaml:4:23 HALO1016 telemetry.protocol: \"http\" is not one of grpc, http/protobuf (write http/protobuf)"},
		{"x.yaml=" + doc("Ring", "order: 1\nprofile: p\nposture: Enforce"), "x.yaml:6:10 HALO1016 posture: \"Enforce\" is not one of off, warn, enforce (write enforce)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nengine: Kong"), "x.yaml:5:9 HALO1016 engine: \"Kong\" is not one of halo-proxy, kong, external (write kong)"},
		{"x.yaml=" + doc("Profile", "require: [{concept: egres, harness: codex, grade: enforced}]"), "x.yaml:4:21 HALO1016 require[0].concept: \"egres\" is not one of " + strings.Join(Concepts, ", ") + " (write egress)"},
		{"x.yaml=" + doc("Profile", "require: [{concept: egress, harness: codex, grade: none}]"), "x.yaml:4:52 HALO1016 require[0].grade: \"none\" is not one of enforced, overridable, default ()"},
		// Two spellings of one setting.
		{"x.yaml=" + doc("Profile", "permissions: {sandbox: read-only}\nsandbox: {mode: workspace-write}"), "x.yaml:5:17 HALO1301 sandbox.mode: sandbox.mode is workspace-write but permissions.sandbox is read-only: they are two spellings of one setting (keep one of the two)"},
		// Harnesses and versions.
		{"x.yaml=" + doc("Profile", "harnesses: {claude: 2.1.332}"), "x.yaml:4:13 HALO1112 harnesses.claude: \"claude\" is not a harness id; known are claude-code, codex, copilot-cli, cursor-cli, gemini-cli, opencode (write claude-code)"},
		{"x.yaml=" + doc("Profile", "harnesses: {cursor-agent: 2.1.332}"), "x.yaml:4:13 HALO1112 harnesses.cursor-agent: \"cursor-agent\" is not a harness id; known are claude-code, codex, copilot-cli, cursor-cli, gemini-cli, opencode (write cursor-cli)"},
		{"x.yaml=" + doc("Profile", "harnesses: {codex: 1.2}"), "x.yaml:4:20 HALO1110 harnesses.codex: 1.2 is not an exact version (write all three numbers, in quotes when YAML would read a number: \"1.20.0\")"},
		{"x.yaml=" + doc("Profile", "harnesses: {codex: {version: v1.2.3}}"), "x.yaml:4:30 HALO1110 harnesses.codex.version: \"v1.2.3\" is not an exact version (pin one version such as 2.1.332; ranges, prefixes and a leading v are not accepted)"},
		// MCP servers, tests and exceptions have exactly one of two keys.
		{"x.yaml=" + doc("Profile", "mcp: {servers: [{name: a}]}"), "x.yaml:4:17 HALO1113 mcp.servers[0]: an MCP server needs exactly one of url (https) and command ()"},
		{"x.yaml=" + doc("Profile", "mcp: {servers: [{name: a, url: https://a.example, command: [b]}]}"), "x.yaml:4:17 HALO1113 mcp.servers[0]: an MCP server needs exactly one of url (https) and command ()"},
		{"x.yaml=" + doc("Profile", "mcp: {servers: [{name: a, command: []}]}"), "x.yaml:4:17 HALO1113 mcp.servers[0]: an MCP server needs exactly one of url (https) and command ()"},
		{"x.yaml=" + doc("PolicyTest", "tests: [{expect: allow}]"), "x.yaml:4:9 HALO1114 tests[0]: a policy test needs exactly one of host and path ()"},
		{"x.yaml=" + doc("PolicyTest", "tests: [{host: a.example, path: /x, expect: allow}]"), "x.yaml:4:9 HALO1114 tests[0]: a policy test needs exactly one of host and path ()"},
		{"x.yaml=" + doc("PolicyTest", "tests: [{host: a.example}]"), "x.yaml:4:9 HALO1017 tests[0].expect: required key \"expect\" is missing ()"},
		{"x.yaml=" + doc("Exception", "field: f\nowner: o\nreason: r\nexpires: 2027-01-01"), "x.yaml:1:1 HALO1115 : an exception names exactly one of unit and ring ()"},
		{"x.yaml=" + doc("Exception", "unit: u\nring: r\nfield: f\nowner: o\nreason: r\nexpires: 2027-01-01"), "x.yaml:1:1 HALO1115 : an exception names exactly one of unit and ring ()"},
		{"x.yaml=" + doc("Exception", "unit: u\nfield: f\nowner: o\nreason: r\nexpires: 2027-02-30"), "x.yaml:8:10 HALO1109 expires: \"2027-02-30\" is not a date (write YYYY-MM-DD)"},
		// A gateway leads somewhere, and holds no secret.
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nprotocols: {claude: gemini}"), "x.yaml:5:13 HALO1112 protocols.claude: \"claude\" is not a harness id; known are claude-code, codex, copilot-cli, cursor-cli, gemini-cli, opencode (write claude-code)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {Big: {upstream: u, model: m}}"), "x.yaml:5:10 HALO1108 models.Big: \"Big\" is not a name: it has upper case letters (names match [a-z0-9][a-z0-9._-]{0,62}, do not end in a dot and are not Windows device names)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nupstreams: {a/b: {}}"), "x.yaml:5:13 HALO1108 upstreams.a/b: \"a/b\" is not a name: it has characters other than a-z, 0-9, dot, underscore and hyphen (names match [a-z0-9][a-z0-9._-]{0,62}, do not end in a dot and are not Windows device names)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {a: {upstream: u}}"), "x.yaml:5:13 HALO1017 models.a.model: required key \"model\" is missing ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {a: {model: m}}"), ""},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {a: {upstream: u, targets: [{upstream: u, model: m}]}}"), "x.yaml:5:14 HALO1015 models.a.upstream: key \"upstream\" is not supported here (with targets, each target has an upstream and a model)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {a: {targets: []}}"), "x.yaml:5:23 HALO1121 models.a: the alias leads to no model: targets is empty ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nmodels: {a: {targets: [{upstream: u}]}}"), "x.yaml:5:24 HALO1017 models.a.targets[0].model: required key \"model\" is missing ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nupstreams: {u: {credential: {}}}"), "x.yaml:5:29 HALO1122 upstreams.u.credential: a credential is in exactly one of env, the name of a variable, and file, the path of a file ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nupstreams: {u: {credential: {env: A, file: b}}}"), "x.yaml:5:29 HALO1122 upstreams.u.credential: a credential is in exactly one of env, the name of a variable, and file, the path of a file ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nupstreams: {u: {credential: {env: sk-0123456789}}}"), "x.yaml:5:35 HALO1122 upstreams.u.credential.env: env is not the name of a variable: letters, digits and underscores (write the name of the variable that holds the credential, never the credential)"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://u:p@a.example"), "x.yaml:4:10 HALO1123 baseURL: the URL has user information, which is a credential ()"},
		{"x.yaml=" + doc("Gateway", "baseURL: https://a.example\nupstreams: {u: {credential: sk-0123456789}}"), "x.yaml:5:29 HALO1122 upstreams.u.credential: a credential is written as a mapping: {env: NAME} or {file: PATH} ()"},
		// An empty entry denies, protects or allows nothing.
		{"x.yaml=" + doc("Profile", "permissions: {deny: [Read, '']}"), "x.yaml:4:28 HALO1019 permissions.deny[1]: the text is empty ()"},
		{"x.yaml=" + doc("Profile", "mcp: {servers: [{name: a, command: [b, '']}]}"), "x.yaml:4:40 HALO1019 mcp.servers[0].command[1]: the text is empty ()"},
		{"x.yaml=" + doc("PolicyTest", "tests: [{host: '*.x.example', expect: allow}]"), "x.yaml:4:16 HALO1114 tests[0]: \"*.x.example\" is not a host or URL: it has a wildcard; ask about one host ()"},
		{"x.yaml=" + doc("PolicyTest", "tests: [{path: '~bob/x', expect: deny}]"), "x.yaml:4:16 HALO1114 tests[0]: path \"~bob/x\" names another user's home; write an absolute path or one in the home (~/) ()"},
		// Hosts and paths keep their index.
		{"x.yaml=" + doc("Profile", "egress: {allowedDomains: [a.example, GitHub.com]}"), "x.yaml:4:38 HALO1203 egress.allowedDomains[1]: \"GitHub.com\" is not in lower case (write github.com)"},
		{"x.yaml=" + doc("Profile", "egress: {deniedDomains: ['*']}"), "x.yaml:4:26 HALO1203 egress.deniedDomains[0]: \"*\" is not a host name: for every host write egress.default: allow or deny (remove the entry and set egress.default)"},
		{"x.yaml=" + doc("Preset", "hosts: ['*.com']"), "x.yaml:4:9 HALO1203 hosts[0]: \"*.com\" covers a whole top-level domain, which is too broad for an allow list (name the domains you mean)"},
		{"x.yaml=" + doc("Profile", "sandbox: {writableRoots: [/opt/x, build]}"), "x.yaml:4:35 HALO1302 sandbox.writableRoots[1]: \"build\" is relative: a writable root is an absolute path or begins with ~/ (the workspace is writable already) (name a directory of its own, such as /opt/build-cache or ~/.cache/acme)"},
		{"x.yaml=" + doc("Unit", "overlay: {sandbox: {protectedPaths: [/]}}"), "x.yaml:4:38 HALO1303 overlay.sandbox.protectedPaths[0]: \"/\" is the root of the file system: nothing could run (name what is to be protected)"},
	} {
		r, ds := load(t, c.files)
		if got := lines(r, ds); got != c.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", c.files, got, c.want)
		}
		for _, d := range ds {
			if d.Severity == diag.Error && d.Code != codeOneRoot && d.Code != codeDuplicate && d.Code != codeKind && d.Code != codeHeader {
				if h := r.DocumentAt(d.Pos); h != nil && !h.Bad {
					t.Errorf("%s: %s is not marked", c.files, h.ID())
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"a", "0", "ring0-harness-team", "0.60.0", "a_b.c-d", strings.Repeat("a", 63), "console", "com", "com10", "xcon", "lpt", "nulx"} {
		if why := badName(s); why != "" {
			t.Errorf("%q: %s", s, why)
		}
	}
	for _, s := range []string{"", "-a", ".a", "_a", "A", "aB", "a b", "a/b", "a:b", "a\n", "é", "aé", "a.", "a..", strings.Repeat("a", 64), "con", "con.x", "nul", "aux", "prn.tar.gz", "com1", "com9.x", "lpt0", "a\x00", "..", "a\\b", "a@b"} {
		if badName(s) == "" {
			t.Errorf("%q is a name", s)
		}
	}
}

func TestVersions(t *testing.T) {
	for s, want := range map[string]bool{
		"2.1.332": true, "0.0.0": true, "1.2.3-beta.1": true, "1.2.3-x-y": true, "10.20.300": true,
		"": false, "1": false, "1.2": false, "1.2.3.4": false, "v1.2.3": false, "1.2.x": false, "^1.2.3": false, ">=1.2.3": false, "1.2.3 ": false, "01.2.3": false, "1.02.3": false, "1.2.3-": false, "1.2.3+b": false,
		"1..3": false, "-1.2.3": false, "1.2.3-a_b": false, "latest": false, "1.2.1234567890": false, "1.2.3-é": false, "１.2.3": false,
	} {
		if exactVersion(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestURLs(t *testing.T) {
	for s, want := range map[string]bool{
		"https://ai.acme.example": true, "https://ai.acme.example:8443/v1?x=1": true, "https://10.1.2.3/": true, "https://[::1]:443/": true, "https://localhost": true,
		"http://ai.acme.example": false, "ai.acme.example": false, "https://": false, "https:///x": false, "https://:443": false, "https://?x": false, "https:// a.example": false, "https://a b.example": false,
		"https://user:pw@a.example": false, "https://a@b@c.example": false, "https://a.example:port": false, "https://*.acme.example": false, "https://a..example": false, `https://a.example\b`: false,
		"HTTPS://a.example": false, "https://a%2eexample": false, "https://a.example:": true, "javascript://a.example": false, "https://a.example/\"x": false,
	} {
		if got := validURL(s, []string{"https"}); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
	for url, want := range map[string]host.Name{"https://AI.acme.example.:8443/x": "ai.acme.example", "http://localhost:8080": "", "http://x.localhost": "", "http://127.0.0.1:1": "", "http://[::1]": "", "https://10.1.2.3": "10.1.2.3"} {
		if got := gatewayHost(url); got != want {
			t.Errorf("the host of %s is %q, want %q", url, got, want)
		}
	}
}

func TestNumbersAndDates(t *testing.T) {
	for text, want := range map[string]int64{"12.5": 1250, "0": 0, "100": 10000, "0.01": 1, "33.33": 3333, "1e1": 1000} {
		r, ds := load(t, "x.yaml="+doc("Ring", "order: 1\nprofile: p\nmembership: {percent: "+text+"}"))
		if len(ds) > 0 || r.Rings[0].Membership.Percent.V != want {
			t.Errorf("%s: %v, %s", text, r.Rings[0].Membership.Percent, lines(r, ds))
		}
	}
	for _, text := range []string{".nan", ".inf", "-.inf", "-1", "100.01", "33.333", "'5'", "5%", "1e400", "true", "[5]"} {
		if r, ds := load(t, "x.yaml="+doc("Ring", "order: 1\nprofile: p\nmembership: {percent: "+text+"}")); len(ds) != 1 || r.Rings[0].Membership.Percent.IsSet() {
			t.Errorf("%s: %s", text, lines(r, ds))
		}
	}
	for text, want := range map[string]int64{"90d": 90 * 86400, "12w": 12 * 7 * 86400, "72h": 72 * 3600, "99999h": 99999 * 3600} {
		r, ds := load(t, "halos.yaml=org: a\nlifetime: "+text)
		if len(ds) > 0 || r.Root.Lifetime.V != want {
			t.Errorf("%s: %v, %s", text, r.Root.Lifetime, lines(r, ds))
		}
	}
	for _, text := range []string{"0d", "90", "d", "90m", "1.5d", "+1d", "999999d", "90 d", "''"} {
		if r, ds := load(t, "halos.yaml=org: a\nlifetime: "+text); len(ds) != 1 || r.Root.Lifetime.IsSet() {
			t.Errorf("%s: %s", text, lines(r, ds))
		}
	}
	// A date ends at midnight UTC.
	r, ds := load(t, "x.yaml="+doc("Preset", "hosts: [a.example]\nreviewed: 1970-01-01"))
	if len(ds) > 0 || r.Presets[0].Reviewed.Unix != 86400 {
		t.Errorf("%v, %s", r.Presets[0].Reviewed, lines(r, ds))
	}
	for _, text := range []string{"2027-1-1", "2027-02-29", "01.02.2027", "2027-01-01T00:00:00Z", "''", "20270101"} {
		if r, ds := load(t, "x.yaml="+doc("Preset", "hosts: [a.example]\nreviewed: "+text)); len(ds) != 1 || r.Presets[0].Reviewed.IsSet() {
			t.Errorf("%s: %s", text, lines(r, ds))
		}
	}
}

func TestNoRoot(t *testing.T) {
	for _, m := range []fstest.MapFS{{}, {"x/halos.yaml": {Data: []byte(root)}}, {"halos.yml": {Data: []byte(root)}}, {"halos.yaml/x": {Data: []byte(root)}}} {
		var diags diag.List
		Load(t.Context(), m, Options{}, &diags)
		if !diags.NoAnswer() || diags.Errors() != 1 || diags.Sorted()[0].Code != codeRoot {
			t.Errorf("%v", diags.Sorted())
		}
	}
}

// TestPacks holds that packs are read by name and nothing else of their directory, and that a pack behind a link is refused by name.
func TestPacks(t *testing.T) {
	m := fstest.MapFS{RootFile: {Data: []byte(root)}, "packs/web/pack.yaml": {Data: []byte("a: [\n")}, "packs/web/notes.yaml": {Data: []byte("b: [\n")}, "packs/.old/pack.yaml": {Data: []byte("c: [\n")},
		"packs/x.yaml": {Data: []byte("d: [\n")}, "openshell/base.yaml": {Data: []byte("e: [\n")}, "packs/linked": {Data: []byte("../../elsewhere"), Mode: fs.ModeSymlink}}
	var got []string
	var diags diag.List
	r := Load(t.Context(), m, Options{ReadPack: func(name string, data []byte, _ int) []diag.Diagnostic {
		got = append(got, name+" "+string(data))
		return nil
	}}, &diags)
	if len(got) != 1 || got[0] != "packs/web/pack.yaml a: [\n" || len(r.Packs) != 1 || r.Packs[0].Name != "web" {
		t.Errorf("%q, %+v", got, r.Packs)
	}
	if got := lines(r, diags.Sorted()); !strings.HasPrefix(got, "packs/linked:0:0 HALO1003") || strings.Contains(got, "\n") {
		t.Error(got)
	}
	for file, want := range map[string]string{"packs/a/pack.yaml": "a", "pack.yaml": "", "packs/pack.yaml": "", "packs/a/b/pack.yaml": "", "x/packs/a/pack.yaml": "", "packs/a/pack.yml": ""} {
		if got := PackName(file); got != want {
			t.Errorf("%s is the pack %q, want %q", file, got, want)
		}
	}
}

func TestReleasesAreNoPolicy(t *testing.T) {
	m := fstest.MapFS{RootFile: {Data: []byte(root)}, "dist/x.yaml": {Data: []byte("a: [\n")}}
	for _, f := range []string{"manifest.json", "SHA256SUMS", "coverage.json"} {
		if _, ds := loadFS(t, m, nil); len(ds) != 1 {
			t.Errorf("without %s: %v", f, ds)
		}
		m["dist/"+f] = &fstest.MapFile{}
	}
	if _, ds := loadFS(t, m, nil); len(ds) > 0 {
		t.Errorf("%v", ds)
	}
}

// TestQuestion holds that reading less for a question loses nothing that the question needs.
func TestQuestion(t *testing.T) {
	profile, unit, tests := doc("Profile", ""), doc("Unit", "overlay: {}\n"), doc("PolicyTest", "tests: []\n")
	for _, c := range []struct {
		text        string
		units       []string
		read, whole bool
	}{
		{tests, nil, false, true},
		{unit, nil, false, true},
		{unit, []string{"x"}, true, true},
		{profile, nil, true, true},
		{tests + "---\n" + profile, nil, true, true},
		{profile + "---\n" + tests, nil, true, true},
		{tests + "---\n" + unit, nil, false, true},
		{strings.ReplaceAll(tests, "\n", "\r\n"), nil, false, true},
		// Written in an unusual way: read rather than guessed.
		{"# kind: PolicyTest\n" + profile, nil, true, true},
		{strings.Replace(tests, "kind", "\"kind\"", 1), nil, true, true},
		{strings.Replace(tests, "PolicyTest", "'PolicyTest'", 1), nil, true, true},
		{"{apiVersion: halos.dev/v1, kind: PolicyTest, name: x, tests: []}", nil, true, true},
		{tests + "---\n" + strings.Replace(profile, "kind", "\"\\x6bind\"", 1), nil, true, true},
		{tests + "---\napiVersion: halos.dev/v1\n? kind\n: Profile\nname: y\n", nil, true, true},
		{tests + "---\napiVersion: halos.dev/v1\nkind:  Profile\nname: y\n", nil, true, true},
		{tests + "---\napiVersion: halos.dev/v1\nkind:\tProfile\nname: y\n", nil, true, true},
		{tests + "---\napiVersion: halos.dev/v1\nkind:\n  Profile\nname: y\n", nil, true, true},
	} {
		m := fstest.MapFS{RootFile: {Data: []byte(root)}, "x.yaml": {Data: []byte(c.text)}}
		r, _ := loadFS(t, m, &Question{Units: c.units})
		if got := len(r.Documents) > 1; got != c.read {
			t.Errorf("%q is read: %v", c.text, got)
		}
		if r, ds := loadFS(t, m, nil); len(ds) > 0 || len(r.Documents) < 2 {
			t.Errorf("%q: %s", c.text, lines(r, ds))
		}
	}
}

// A question about one ring decodes the profiles that the ring leads to, and all of them when something is not plain.
func TestQuestionAlone(t *testing.T) {
	named := func(kind, name, rest string) string {
		return strings.Replace(doc(kind, rest), "name: x", "name: "+name, 1)
	}
	ring := func(name, rest string) string { return named("Ring", name, "order: 1\n"+rest) }
	profile := func(name, rest string) string { return named("Profile", name, rest) }
	base := map[string]string{
		RootFile: root,
		"a.yaml": ring("a", "profile: one\n"), "b.yaml": ring("b", "profile: other\nmembership: {default: true}\n"),
		"one.yaml": profile("one", "extends: two\n"), "two.yaml": profile("two", ""), "other.yaml": profile("other", ""), "broken.yaml": profile("broken", "nothing: of this\n"),
	}
	for _, c := range []struct {
		name, ring, file, text, profiles, left string
	}{
		{"plain", "a", "", "", "one two", "broken other"},
		{"default ring", "", "", "", "other", "broken one two"},
		{"no such ring", "c", "", "", "broken one other two", ""},
		{"two default rings", "", "a.yaml", ring("a", "profile: one\nmembership: {default: true}\n"), "broken one other two", ""},
		{"two rings of one name", "a", "c.yaml", ring("a", "profile: other\n"), "broken one other two", ""},
		{"simple mode", "a", RootFile, root + "tools: {claude-code: 2.1.332}\n", "broken default one other two", ""},
		{"missing parent", "a", "two.yaml", profile("three", ""), "broken one other three", ""},
		{"cycle", "a", "two.yaml", profile("two", "extends: one\n"), "one two", "broken other"},
		{"itself", "a", "one.yaml", profile("one", "extends: one\n"), "one", "broken other two"},
		{"two of one name", "a", "x.yaml", profile("two", ""), "one two", "broken other"},
		{"quoted", "a", "other.yaml", profile("\"other\"", ""), "one other two", "broken"},
		{"name of another level", "a", "two.yaml", "apiVersion: halos.dev/v1\nkind: Profile\n\"name\": two\nx: \"y\nname: other\n\"\n", "broken one other two", ""},
		{"two documents", "a", "other.yaml", profile("other", "") + "---\n" + profile("more", ""), "more one other two", "broken"},
		{"two kinds", "a", "other.yaml", profile("other", "") + "---\n" + doc("PolicyTest", "tests: []\n"), "one other two", "broken"},
		{"CRLF", "a", "other.yaml", strings.ReplaceAll(profile("other", ""), "\n", "\r\n"), "one two", "broken other"},
		{"not YAML", "a", "other.yaml", profile("other", "x: [\n"), "one two", "broken other"},
		{"not YAML and needed", "a", "two.yaml", profile("two", "x: [\n"), "broken one other", ""},
	} {
		m := fstest.MapFS{}
		for name, text := range base {
			m[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if c.file != "" {
			m[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		}
		r, _ := loadFS(t, m, &Question{Alone: true, Ring: c.ring})
		var names []string
		for _, p := range r.Profiles {
			names = append(names, p.Name.V)
		}
		if got, left := strings.Join(names, " "), strings.Join(r.Left, " "); got != c.profiles || left != c.left {
			t.Errorf("%s: profiles %s, left %s; want %s, left %s", c.name, got, left, c.profiles, c.left)
		}
		for i, f := range r.Files {
			if at, ok := r.Files.Index(f.Name); !ok || at != i {
				t.Errorf("%s: %s is file %d, not %d", c.name, f.Name, at, i)
			}
		}
		for _, p := range r.Profiles {
			if p.Name.V != SimpleName && !strings.Contains(string(m[r.Files.Name(p.Pos)].Data), p.Name.V) {
				t.Errorf("%s: profile %s is said to be in %s", c.name, p.Name.V, r.Files.Name(p.Pos))
			}
		}
	}
}

func TestPresets(t *testing.T) {
	if !slices.IsSortedFunc(Builtin, func(a, b BuiltinPreset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("built-in presets are not in order")
	}
	counts := map[string]int{"package-registries": 9, "vcs": 6, "model-providers": 5}
	for _, b := range Builtin {
		ps, ok := BuiltinPatterns(b.Name)
		if !ok || len(ps) != len(b.Hosts) || len(ps) != counts[b.Name] || b.Sources == "" {
			t.Errorf("%s: %v", b.Name, ps)
		}
		for i, p := range ps {
			if p.String() != b.Hosts[i] {
				t.Errorf("%s: %q is no pattern", b.Name, b.Hosts[i])
			}
		}
	}
	if _, ok := BuiltinPatterns("npm"); ok || len(Builtin) != len(counts) {
		t.Error("there is a preset that nobody knows")
	}
}

func TestWordLists(t *testing.T) {
	for name, l := range map[string][]string{"harnesses": Harnesses, "systems": OSes, "kinds": Kinds} {
		if !slices.IsSorted(l) {
			t.Errorf("the %s are not in order", name)
		}
	}
	for _, kind := range Kinds {
		if len(Shape(kind).Need) == 0 {
			t.Errorf("kind %s requires no key, not even a name", kind)
		}
	}
}

func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile("testdata/everything/policy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for d := range strings.SplitSeq(string(data), "---\n") {
		f.Add([]byte(root), []byte(d))
	}
	halos, err := os.ReadFile("testdata/everything/halos.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(halos, data)
	f.Add([]byte("org: a\n---\n"), []byte(doc("Profile", "harnesses: {codex: {overrides: {a: {b: [c, {d: 1.5}]}, e: ~}}}")))
	f.Fuzz(func(t *testing.T, halos, text []byte) {
		m := fstest.MapFS{RootFile: {Data: halos}, "x.yaml": {Data: text}}
		lim := source.DefaultLimits
		lim.Items = 2000
		var diags diag.List
		r := Load(t.Context(), m, Options{Limits: lim, Workers: 1}, &diags)
		for _, d := range diags.Sorted() {
			if !d.Pos.IsValid() && d.File == "" || d.Message == "" || d.Code == nil {
				t.Errorf("a finding without a place or a message: %+v", d)
			}
		}
		for _, h := range r.Documents {
			if h.Name.V != "" && badName(h.Name.V) != "" {
				t.Errorf("%q is a name", h.Name.V)
			}
			if got := r.DocumentAt(h.Pos); got == nil || got.Pos != h.Pos {
				t.Errorf("%s is not found at its own place", h.ID())
			}
		}
		if diags.Errors() == 0 && r.Root == nil {
			t.Error("no root document and no error")
		}
		for _, p := range r.Profiles {
			for _, pin := range p.Harnesses {
				if pin.Version.IsSet() && !exactVersion(pin.Version.V) {
					t.Errorf("%q is a version", pin.Version.V)
				}
			}
			for _, h := range append(p.Egress.AllowedDomains.Items, p.Egress.DeniedDomains.Items...) {
				if h.Pattern.String() == "" || !h.Pos.IsValid() {
					t.Errorf("an empty pattern, or one without a place: %+v", h)
				}
			}
		}
	})
}
