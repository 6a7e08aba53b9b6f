package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/docs/schema"
)

func (p *program) schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of a kind of document", ArgsUsage: "[KIND]",
		Description: "KIND is " + strings.Join(schema.Names(), ", ") + ", in any case. halos is halos.yaml, pack a packs/NAME/pack.yaml, and " + schema.Repo +
			" (the default)\nany document of a policy repo. The schemas are JSON Schema 2020-12, for editors; what a schema cannot say, halo lint does.",
		Action: func(c *cli.Context) error {
			if _, err := form(c, "text", "json"); err != nil {
				return err
			}
			kind, err := oneArg(c, "kind")
			if err != nil {
				return err
			}
			if kind == "" {
				kind = schema.Repo
			}
			data, ok := schema.Get(kind)
			if !ok {
				return noSchema(kind)
			}
			_, err = p.out.Write(data)
			return err
		},
	}
}

func noSchema(kind string) error {
	names := schema.Names()
	if near := diag.Nearest(strings.ToLower(kind), names); near != "" {
		return fmt.Errorf("there is no kind %q; did you mean %s?", kind, near)
	}
	return fmt.Errorf("there is no kind %q; kinds are %s", kind, strings.Join(names, ", "))
}
