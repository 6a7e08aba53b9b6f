package gen

import (
	"fmt"
	"strings"
)

// Shapes are the kinds of repos with one oversized thing, and the sizes to measure them at.
var Shapes = []struct {
	Name string
	Size int
}{{"hosts", 50_000}, {"units", 2000}, {"chain", 200}, {"globs", 20_000}}

// WriteShape writes a repo below dir that is small but for one thing: a profile with n hosts on each list, n units of which every one has an overlay of its own, a
// chain of n profiles, or a profile with n/10 writable roots and n protected globs.
func WriteShape(dir, shape string, n int) error {
	w := writer{dir: dir, made: map[string]bool{}}
	w.file("halos.yaml", "apiVersion: halos.dev/v1\nkind: Halos\norg: acme\n")
	w.file("gateway.yaml", "apiVersion: halos.dev/v1\nkind: Gateway\nname: main\nbaseURL: https://ai.acme.example\n")
	leaf := "p00000"
	const head = "apiVersion: halos.dev/v1\nkind: Profile\nname: p00000\nharnesses:\n  claude-code: {version: 2.1.332}\n  codex: {version: 0.171.0}\npermissions: {disableBypass: true}\ntelemetry: {enabled: true}\n"
	list := func(b *strings.Builder, key, format string, n int) {
		fmt.Fprintf(b, "  %s:\n", key)
		for i := range n {
			fmt.Fprintf(b, "    - "+format+"\n", i)
		}
	}
	var b strings.Builder
	b.WriteString(head)
	switch shape {
	case "hosts":
		b.WriteString("egress:\n")
		list(&b, "allowedDomains", "host-%06d.acme.example", n)
		b.WriteString("    - ai.acme.example\n")
		list(&b, "deniedDomains", "'*.paste-%06d.example.net'", n)
	case "units":
		b.WriteString("egress: {allowedDomains: [ai.acme.example, docs.acme.example]}\n")
		for i := range n {
			w.file(fmt.Sprintf("units/u%05d.yaml", i), fmt.Sprintf("apiVersion: halos.dev/v1\nkind: Unit\nname: u%05d\nmembership: {groups: [g%05d]}\noverlay:\n  egress: {deniedDomains: [drop-%05d.acme.example]}\n", i, i, i))
		}
	case "chain":
		b.WriteString("egress: {allowedDomains: [ai.acme.example, docs.acme.example]}\n")
		for i := range n - 1 {
			leaf = fmt.Sprintf("p%05d", i+1)
			w.file("profiles/"+leaf+".yaml", fmt.Sprintf("apiVersion: halos.dev/v1\nkind: Profile\nname: %s\nextends: p%05d\negress: {deniedDomains: [drop-%05d.acme.example]}\nsandbox: {protectedPaths: [~/.secret-%05d]}\n", leaf, i, i, i))
		}
	case "globs":
		b.WriteString("egress: {allowedDomains: [ai.acme.example]}\nsandbox:\n  mode: workspace-write\n")
		list(&b, "writableRoots", "/opt/cache/root-%06d", n/10)
		list(&b, "protectedPaths", "/srv/data-%06d/**/*.key", n)
	default:
		return fmt.Errorf("no shape %q", shape)
	}
	w.file("profiles/p00000.yaml", b.String())
	w.file("ring.yaml", "apiVersion: halos.dev/v1\nkind: Ring\nname: ga\norder: 0\nprofile: "+leaf+"\nmembership: {default: true}\n")
	return w.err
}
