package main

// form is the spelling of a text as far as a schema can say it. What else its reader refuses is listed, by code, in the test of this directory's schemas.
type form struct {
	pattern string
	// not refuses what the pattern alone would take; patterns have no look-around, which some validators lack.
	not     string
	format  string
	maximum int
	// message is what an editor says.
	message string
}

const (
	label   = `[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`
	tld     = `[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?`
	foreign = `[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?`
	folder  = `(?:/|~/|[A-Za-z]:[/\\])`
	dns     = `[^\s@/?#%*]`
)

// forms are the spellings by the names that the readers give them.
var forms = map[string]form{
	"text": {pattern: `\S`, message: "a text that is not empty"},
	"name": {pattern: `^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9_-])?$`, not: `^(?:con|nul|aux|prn|com[0-9]|lpt[0-9])(?:\.|$)`,
		message: "a name: a-z, 0-9, dot, underscore and hyphen, at most 63 characters, not ending in a dot, and no Windows device name"},
	"host pattern": {pattern: `^(?:localhost|(?:\*\.)?(?:` + label + `\.)+` + tld + `)$`, maximum: 255,
		message: `a host name in lower case without scheme, port or path, or "*." and a name of at least two labels`},
	"deny pattern": {pattern: `^(?:localhost|\*\.` + tld + `|(?:\*\.)?(?:` + label + `\.)+` + tld + `)$`, maximum: 255,
		message: `a host name in lower case without scheme, port or path, or "*." and a name`},
	"writable root": {pattern: "^(?:/|~/)[^\\\\$%`*?\\[\\]{}]*[^\\\\$%`*?\\[\\]{}/][^\\\\$%`*?\\[\\]{}]*$", not: `\s$|://`,
		message: "one directory: absolute or below ~/, without globs and variables"},
	"protected path": {pattern: "^(?:~/|[^~\\\\$%`])[^\\\\$%`]*$", not: `^\s|\s$|://|^[A-Za-z]:|^/+$|^~/+$`,
		message: "a path that is absolute or below ~/, or a glob below the workspace, without variables and backslashes"},
	"date":     {pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`, format: "date", message: "a date: YYYY-MM-DD"},
	"version":  {pattern: `^(?:(?:0|[1-9][0-9]{0,8})\.){2}(?:0|[1-9][0-9]{0,8})(?:-[0-9A-Za-z.-]+)?$`, message: "one exact version, such as 2.1.332; in quotes when YAML would read a number"},
	"lifetime": {pattern: `^0*[1-9][0-9]*[hdw]$`, maximum: 6, message: "a number of hours, days or weeks: 72h, 90d, 12w"},
	"variable": {pattern: `^[A-Za-z_][A-Za-z0-9_]*$`, message: "the name of an environment variable"},
	"https URL": {pattern: `^https://` + dns + `+(?:[/?#]|$)`, not: "[\\s\\\\\"<>`]",
		message: "an absolute https URL with a host and without user information"},
	"https or http URL": {pattern: `^https?://` + dns + `+(?:[/?#]|$)`, not: "[\\s\\\\\"<>`]",
		message: "an absolute http or https URL with a host and without user information"},
	"openshell file": {pattern: `^openshell/[^/]+(?:/[^/]+)*$`, not: `/\.{1,2}(?:/|$)`, message: "a file below openshell/, from the root of the repo"},
	"workspace file": {pattern: `^(?:openshell/[^/]+(?:/[^/]+)*|\.kaiden/workspace\.json)$`, not: `/\.{1,2}(?:/|$)`,
		message: "a file below openshell/, from the root of the repo, or .kaiden/workspace.json"},
	"device folder": {pattern: `^(?:/|~/)`, message: "a folder of the device: absolute, or below ~/"},

	"pack name":   {pattern: `^\s*[a-z0-9][a-z0-9-]{0,62}\s*$`, not: `^\s*(?:open|balanced|strict)\s*$`, message: "the name of the pack's directory: a-z, 0-9 and hyphen, at most 63 characters, and not open, balanced or strict"},
	"description": {maximum: 1024, message: "at most 1024 characters"},
	"pack pattern": {pattern: `^\s*(?:(?:\*\.)?(?:` + foreign + `\.)*[A-Za-z](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?|\[?[0-9A-Fa-f.:]*[.:][0-9A-Fa-f.:]*\]?(?:/[0-9]{1,3})?)\s*$`,
		message: `a host name, "*." and a name, an address or a prefix`},
	"project glob":   {pattern: `^\s*[^\s/~\\\x00][^\\\x00]*$`, not: `^\s*[A-Za-z]:|(?:^\s*|/)\.\.(?:/|\s*$)`, maximum: 4096, message: "a glob below the project, with forward slashes and without .."},
	"harness name":   {pattern: `^\s*[A-Za-z0-9][A-Za-z0-9._-]{0,127}\s*$`, message: "a harness by DefenseClaw's name, such as claudecode"},
	"tool name":      {pattern: `^\s*[A-Za-z0-9_.:*-]{1,256}\s*$`, message: "the name of an MCP tool, or a glob: letters, digits and _ . : * -"},
	"pack reference": {pattern: `^\s*(?:$|[a-z0-9][a-z0-9-]{0,62}\s*$|` + folder + `)`, message: "a pack by name, or a folder of the device"},
	"required pack":  {pattern: `^\s*(?:$|(?:repo:)?[a-z0-9][a-z0-9-]{0,62}\s*$|` + folder + `)`, message: "a pack by name, repo: and the name of a pack of the repo, or a folder of the device"},
	"pack folder":    {pattern: `^\s*(?:$|` + folder + `)`, message: "a folder of the device: absolute, or below ~/"},
	"cpu":            {pattern: `^\s*(?:0*[1-9][0-9]*m|[0-9]{1,6}(?:\.[0-9]{1,3})?)?\s*$`, not: `^\s*0+(?:\.0*)?\s*$`, message: `CPU cores such as "2" or "1.5", or millicores such as 500m`},
	"memory":         {pattern: `^\s*(?:0*[1-9][0-9]*(?:[KMGT]i|[kKMGT])?)?\s*$`, message: "bytes, such as 512Mi, 8Gi or 2G"},
	"digest":         {pattern: `^(?:sha256:[0-9a-f]{64})?$`, message: "sha256: and 64 hex digits in lower case"},
	"folder pattern": {pattern: `^\s*(?:~\s*$|\*\*\s*$|\*\*/|` + folder + `)`, not: `\x00`, message: "a folder of the device: it begins with /, ~/, **/ or a drive"},
}
