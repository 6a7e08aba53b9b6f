package main

import (
	"github.com/urfave/cli/v2"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
)

func (p *program) buildCommand() *cli.Command   { return &cli.Command{Name: "build"} }
func (p *program) releaseCommand() *cli.Command { return &cli.Command{Name: "release"} }
func (p *program) keygenCommand() *cli.Command  { return &cli.Command{Name: "keygen"} }
func codes() []*diag.Code                       { return compiler.Codes() }
