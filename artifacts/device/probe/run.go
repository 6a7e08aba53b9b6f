// Package probe runs the harness CLIs themselves, so that what their managed files hold is seen and not only read.
//
// A CLI runs in a room: namespaces of its own, in which it finds the device's programs and managed files as they are and read-only, the home directory and the
// project of a user that exists only there, no network but loopback, no socket of a service, and none of the variables that halo was started with. A stand-in
// for the API of its model, served by halo on loopback, asks for tool calls one at a time; what the CLI answers is the finding. Everything that is written
// lies in memory of the room, and when the room's first process ends, for whatever reason, the kernel ends every other one and drops it all.
//
// Rooms need Linux (5.12 or newer) and root.
package probe

import (
	"encoding/json"
	"io/fs"
	"time"
)

// Places and names inside a room.
const (
	// Home is the home directory of the user who runs the CLI, Work the git repository in it where the session starts.
	Home = "/home/dev"
	Work = Home + "/work"

	// ProgramDir is where the directories of Run.Programs are mounted, each under the last element of its path.
	ProgramDir = "/mnt/cli"

	// modelURL is the model's stand-in.
	modelURL = "http://127.0.0.1:8080"

	// testIP is the test host's address, which the loopback device answers for because its netmask covers it; loopbackIP is the device's own. The CLIs refuse
	// names that resolve to an address of the machine, or to a private one, so only an address that is neither can show that policy refused a name (Claude
	// Code 2.1.332, Codex 0.171.0). The range is that of the 6to4 relays (RFC 7526), which nobody uses.
	testIP     = "192.88.99.10"
	loopbackIP = "192.88.99.1"
	hostAck    = "halo test host: "

	// authority is where the certificate stands that vouches for the stand-ins of gateways; the CLI is told to trust it.
	authority = "/etc/halo-probe-authority.pem"
)

// HostAck is what the test host answers to a request for a name.
func HostAck(name string) string { return hostAck + name }

// File is a file of a room. A zero Mode is 0644. It and the directories made for it belong to root, unless it is below Home or User is set. Its directory has to
// be one that the room keeps in memory: below /etc, /home, /tmp, /mnt or one of Run.Memory.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	User    bool
}

// Call is one tool call that the model's stand-in asks for.
type Call struct {
	// Tool is the tool's name in the harness, Args its arguments.
	Tool string
	Args map[string]any
}

// Run is one start of a CLI in a room.
type Run struct {
	// Programs are directories that are mounted below ProgramDir: programs in places that the room hides. They are reached through no link.
	Programs []string
	// Path are directories to look for programs in before those of the system.
	Path []string
	// Memory are further directories that are empty and writable in the room.
	Memory []string
	Files  []File
	// Hosts are names that resolve to the test host.
	Hosts []string
	// Gateways are URLs that the model's stand-in answers for too, over TLS for https, so that a session goes on where the policy sends it.
	Gateways []string
	Argv     []string
	Env      []string
	// Script is what the model's stand-in does, one tool call a turn, whatever the CLI answers.
	Script []Call
	// Talk is for the function that Inside was given: it drives the CLI over its standard input in place of a session.
	Talk json.RawMessage `json:",omitempty"`
	// Limit ends the run. Zero is two minutes, for a machine with much else to do.
	Limit time.Duration
	// Watch are files whose content after the run is wanted.
	Watch []string
}

// Result is what happened in a room.
type Result struct {
	Exit     int
	TimedOut bool
	// Output is the end of standard output and standard error together; with Talk, of standard error alone.
	Output string
	// Results has, for each call of the script that was answered, what the CLI told the model.
	Results []string
	// Tools are the names of the tools that the CLI offered the model.
	Tools []string
	// Asked counts the requests that the model's stand-in answered.
	Asked int
	// URLs are the requests that arrived at the stand-in, host and path.
	URLs []string
	// Hits are the host names for which a request arrived at the test host.
	Hits []string
	// Talk is what the function that Inside was given found out.
	Talk json.RawMessage `json:",omitempty"`
	// Watched is what the watched files that exist hold after the run.
	Watched map[string]string
}
