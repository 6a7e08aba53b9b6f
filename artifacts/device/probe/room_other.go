//go:build !linux

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
)

// Why says why there can be no room here, or is empty.
func Why() string { return runtime.GOOS + " has no namespaces to run the programs in" }

// Do fails: there can be no room here.
func Do(context.Context, Run) (Result, error) { return Result{}, errors.New(Why()) }

// Inside returns: there can be no room here.
func Inside(func(*exec.Cmd, json.RawMessage) (json.RawMessage, error)) {}
