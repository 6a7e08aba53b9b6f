//go:build linux

// Package real runs the harness CLIs themselves against policy files, so that what halo renders is judged by the program that
// reads it and not by a description of it.
//
// Every run happens in a room of halo's own probe (artifacts/device/probe): the policy files stand at their system paths there and
// nowhere else, the network holds nothing but loopback, and a stand-in for the model's API answers with a script of tool calls. Nothing
// outside is changed or reached.
package real

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"halos.dev/halo/artifacts/device/probe"
)

// Places in a room.
const (
	Home = probe.Home
	Work = probe.Work
)

// Gateway is the host name of the organization's model gateway in the policies that are judged here. The model's stand-in answers for
// it too, over TLS, so that a session goes on where the policy sends it.
const Gateway = "ai.acme.example"

// File is a file of a room.
type File = probe.File

// Request is one JSON-RPC request to a CLI that is driven over its standard input.
type Request struct {
	Method string
	Params any
}

// Run is one start of a CLI in a room.
type Run struct {
	probe.Run
	// Requests are sent to the CLI's standard input one after the other, each after the answer to the one before.
	Requests []Request
	// Framed says that messages have Content-Length headers; otherwise they are one line each.
	Framed bool
}

// Result is what happened in a room.
type Result struct {
	probe.Result
	conversation
}

// conversation is what came of Requests.
type conversation struct {
	// Answers are the results of Requests; an error of the CLI stands there as {"error":…}.
	Answers []json.RawMessage
	// Notes are the notifications that the CLI sent meanwhile.
	Notes []json.RawMessage
}

// script is what the room is told about a conversation.
type script struct {
	Requests []Request
	Framed   bool
}

// Do runs the CLI of an npm prefix in a room. An error means that there was no run to judge.
func Do(ctx context.Context, prefix string, run Run) (Result, error) {
	if run.Limit == 0 {
		run.Limit = 4 * time.Minute // for a machine with much else to do
	}
	run.Programs = []string{filepath.Join(prefix, "node_modules")}
	run.Path = []string{probe.ProgramDir + "/node_modules/.bin"}
	// A writable root of the policy lies there.
	run.Memory = []string{"/opt"}
	run.Gateways = append(run.Gateways, "https://"+Gateway)
	if len(run.Requests) > 0 {
		talk, err := json.Marshal(script{run.Requests, run.Framed})
		if err != nil {
			return Result{}, fmt.Errorf("encode requests: %w", err)
		}
		run.Talk = talk
	}
	res, err := probe.Do(ctx, run.Run)
	if err != nil {
		return Result{}, err
	}
	all := Result{Result: res}
	if res.Talk != nil {
		if err := json.Unmarshal(res.Talk, &all.conversation); err != nil {
			return Result{}, fmt.Errorf("read answers: %w", err)
		}
	}
	return all, nil
}

// talk has the conversation of a script with a CLI, inside a room.
func talk(cmd *exec.Cmd, in json.RawMessage) (json.RawMessage, error) {
	var s script
	if err := json.Unmarshal(in, &s); err != nil {
		return nil, err
	}
	var c conversation
	err := converse(cmd, s, &c)
	out, failed := json.Marshal(c)
	if failed != nil {
		return nil, failed
	}
	return out, err
}

// Why says why there can be no room here, or is empty.
func Why() string {
	if why := probe.Why(); why != "" {
		return why
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		return "bwrap is not installed"
	}
	return ""
}
