package schema

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/pack/packtest"
)

// collect finds the policy documents of the project: in its examples and test data, inside scripts and case files, and in testdata/cases.yaml.
func collect(t testing.TB) []document {
	t.Helper()
	top := filepath.Join("..", "..")
	var docs []document
	add := func(where, name, text string) { docs = append(docs, placed(where, name, text)...) }
	for _, dir := range []string{"examples", "testdata", "artifacts/scaffold/repo", "compiler/policy/testdata", "testscript/cases/testdata/fixture"} {
		err := filepath.WalkDir(filepath.Join(top, filepath.FromSlash(dir)), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && strings.HasPrefix(d.Name(), ".") || d.Name() == "github" {
				return fs.SkipDir
			}
			if filepath.Ext(file) != ".yaml" {
				return nil
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text := string(data)
			if strings.HasPrefix(dir, "artifacts/scaffold") {
				text = strings.NewReplacer("ORG", "acme", "VERSION", "2.1.332", "UNTIL", "2027-01-31").Replace(text)
			}
			rel, err := filepath.Rel(top, file)
			add(filepath.ToSlash(rel), filepath.ToSlash(rel), text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	scripts, err := filepath.Glob(filepath.Join(top, "testscript", "*.txtar"))
	if err != nil || len(scripts) < 10 {
		t.Fatalf("there are %d scripts (%v)", len(scripts), err)
	}
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			add(filepath.Base(script)+" "+f.Name, f.Name, string(f.Data))
		}
	}
	for _, name := range []string{"packs-cases.yaml", "more-cases.yaml"} {
		file := packtest.Load(t, filepath.Join(top, "compiler", "pack", "testdata", name))
		for _, c := range file.Cases {
			if c.Area == "load" {
				docs = append(docs, document{name + " " + c.ID, packs, string(c.Input.Bytes(t, file.Fixtures))})
			}
			if c.Input.Config.Kind == yaml.MappingNode {
				docs = append(docs, document{name + " " + c.ID, "", headed("Sandbox", map[string]any{"openshell": &c.Input.Config})})
			}
		}
	}
	for _, name := range []string{"policy.yaml", "user.yaml"} {
		cases(t, filepath.Join(top, "testscript", "cases", "testdata", name), &docs)
	}
	cases(t, filepath.Join("testdata", "cases.yaml"), &docs)
	return append(docs, long()...)
}

// long makes the documents that are too long to be written down.
func long() []document {
	label := strings.Repeat("a", 50) + "."
	host := func(n int) string { return strings.Repeat(label, 4) + strings.Repeat("b", n-206) + ".c" }
	return []document{
		{"deep", "", headed("Profile", map[string]any{"harnesses": map[string]any{"codex": map[string]any{"version": "1.2.3", "overrides": deep(70)}}})},
		{"253 characters", "", headed("Preset", map[string]any{"hosts": []string{host(253)}})},
		{"254 characters", "", headed("Preset", map[string]any{"hosts": []string{host(254)}})},
		{"255 characters with a wildcard", "", headed("Preset", map[string]any{"hosts": []string{"*." + host(253)}})},
		{"256 characters with a wildcard", "", headed("Preset", map[string]any{"hosts": []string{"*." + host(254)}})},
		{"1024 characters, 2048 bytes", packs, "description: " + strings.Repeat("é", 1024) + "\n" + smallPack},
		{"1025 characters", packs, "description: " + strings.Repeat("e", 1025) + "\n" + smallPack},
		{"tagged", packs, "description: !!str x\n" + smallPack},
	}
}

const smallPack = "version: 1\nname: x\nnetwork: {mode: open}\napprovals: {mode: auto}\nworkspace: {mode: copy}\nharness: {yolo: false}\n" +
	"mcp: {import: false, host_ports: false}\nhooks: {fail_mode: closed}\n"

func deep(n int) map[string]any {
	if n == 0 {
		return nil
	}
	return map[string]any{"a": deep(n - 1)}
}

// placed splits a file of a repo into its documents. What is no policy has none.
func placed(where, name, text string) []document {
	dir, base := path.Split(name)
	switch {
	case base == packs && strings.Contains("/"+dir, "/packs/"):
		return []document{{where, name, text}}
	case base == packs:
		return []document{{where, packs, text}}
	case path.Ext(base) != ".yaml" && path.Ext(base) != ".yml", strings.Contains("/"+name, "/openshell/"), strings.Contains("/"+name, "/."), strings.Contains(name, "policy.yaml") && !strings.Contains(text, "kind:"):
		return nil
	case base == root:
		return []document{{where, root, text}}
	}
	var docs []document
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		if strings.TrimSpace(strings.TrimLeft(part, "-")) != "" {
			docs = append(docs, document{where, "", strings.TrimPrefix(part, "\n")})
		}
	}
	return docs
}

// headed writes a document of a kind with these keys.
func headed(kind string, keys map[string]any) string {
	doc := map[string]any{"apiVersion": "halos.dev/v1", "kind": kind, "name": "x"}
	for k, v := range keys {
		doc[k] = v
	}
	data, err := yaml.Marshal(doc)
	if err != nil {
		return ""
	}
	return string(data)
}

// cases finds documents in a file of cases, whatever its form: texts that stand at the name of a YAML file, and what stands at the keys that hold parts of
// documents there.
func cases(t testing.TB, name string, docs *[]document) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	before := len(*docs)
	for {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			break
		}
		find(filepath.Base(name), &n, docs)
	}
	if len(*docs) == before {
		t.Fatalf("%s has no documents", name)
	}
}

func find(where string, n *yaml.Node, docs *[]document) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i].Value, n.Content[i+1]
			if k == "id" {
				where += " " + v.Value
			}
			switch {
			case v.Kind == yaml.ScalarNode && v.Tag == "!!str" && path.Ext(k) == ".yaml":
				*docs = append(*docs, placed(where, k, v.Value)...)
			case v.Kind == yaml.MappingNode && (k == "profile" || k == "base"):
				*docs = append(*docs, document{where, "", headed("Profile", parts(v))})
				many(where, n, v, docs)
			case v.Kind == yaml.MappingNode && k == "overlay":
				*docs = append(*docs, document{where, "", headed("Unit", map[string]any{"overlay": v})})
			case v.Kind == yaml.SequenceNode && k == "chain":
				for _, c := range v.Content {
					*docs = append(*docs, document{where, "", headed("Profile", parts(c))})
				}
			}
		}
	}
	for _, c := range n.Content {
		find(where, c, docs)
	}
}

func parts(n *yaml.Node) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = n.Content[i+1]
	}
	return out
}

// many adds a document for each of values at the list that at names.
func many(where string, row, profile *yaml.Node, docs *[]document) {
	var at string
	var values *yaml.Node
	for i := 0; i+1 < len(row.Content); i += 2 {
		switch row.Content[i].Value {
		case "at":
			at = row.Content[i+1].Value
		case "values":
			values = row.Content[i+1]
		}
	}
	section, key, ok := strings.Cut(at, ".")
	if !ok || values == nil {
		return
	}
	for _, v := range values.Content {
		doc := parts(profile)
		keys := map[string]any{}
		if n, ok := doc[section].(*yaml.Node); ok {
			keys = parts(n)
		}
		keys[key] = []any{v}
		doc[section] = keys
		*docs = append(*docs, document{where + " " + v.Value, "", headed("Profile", doc)})
	}
}
