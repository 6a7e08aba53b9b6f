// Package schema holds the JSON Schemas (2020-12) of the documents of a policy repo, as they are published in this directory. They are generated from what the
// readers take: see generate.
package schema

//go:generate go run ./generate

import (
	"embed"
	"strings"
)

// Repo names the schema of every document of a policy repo, which looks at kind.
const Repo = "repo"

//go:embed *.json
var files embed.FS

// Names lists the schemas: the kinds of documents, pack for a sandbox pack, and Repo, sorted and in lower case.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return names
}

// Get returns the schema of that name in any case, or false.
func Get(name string) ([]byte, bool) {
	data, err := files.ReadFile(strings.ToLower(name) + ".json")
	return data, err == nil
}
