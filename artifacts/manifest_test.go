package artifacts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
)

// fullPlan is a plan that uses every field.
func fullPlan() *Plan {
	pack := []byte("name: team-web\n")
	p := &Plan{Manifest: Manifest{
		Org: "acme", Version: "1.2.3", Sequence: 42, Previous: Digest([]byte("before")),
		Issued:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		AsOf:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Expires: time.Date(2026, 4, 2, 3, 4, 5, 0, time.UTC),
		Tool:    Tool{"halo", "0.1.0"},
		Source:  Source{Commit: strings.Repeat("a", 40), Dirty: true, Digest: Digest([]byte("source"))},
		Targets: []Target{
			{ID: "ga", Ring: "ga", Units: []string{}, Profile: "base", OS: "linux", Files: []TargetFile{
				{Path: "targets/ga/linux/claude-code/root/etc/claude-code/managed-settings.json", Harness: "claude-code", Dest: "/etc/claude-code/managed-settings.json", Owner: "root", Mode: "0644"},
			}},
			{ID: "ga", Ring: "ga", Units: []string{}, Profile: "base", OS: "darwin", Files: []TargetFile{}},
			{ID: "ga+payments", Ring: "ga", Units: []string{"payments"}, Profile: "base", OS: "windows", Files: []TargetFile{
				{Path: "targets/ga+payments/windows/claude-code/root/C/Program Files/ClaudeCode/managed-settings.json", Harness: "claude-code", Dest: `C:\Program Files\ClaudeCode\managed-settings.json`, Mode: "0644"},
			}},
		},
		Sandboxes:  []Sandbox{{Name: "engineering", Target: "ga", Agent: "claude", Path: "targets/ga/openshell/claude/policy.yaml", Pack: "team-web", PackDigest: Digest(pack)}},
		Packs:      []Pack{{Name: "team-web", Digest: Digest(pack), Path: "packs/team-web/pack.yaml"}},
		Presets:    map[string][]string{"go": {"proxy.golang.org", "sum.golang.org"}, "none": {}},
		Egress:     map[string]Egress{"ga": {Default: "deny", Allowed: []string{"*.example"}, Denied: []string{}}, "ga+payments": {Default: "allow", Allowed: []string{}, Denied: []string{}}},
		Warnings:   []Warning{{Code: "HALO1701", Target: "ga", Harness: "codex", OS: "linux", Field: "egress", Message: "a <b> & \"c\"\u2028\\ \x01 é"}, {Code: "HALO1901", Message: "no source time"}},
		Exceptions: []Exception{{Name: "build", Scope: "unit payments", Field: "egress.allowedDomains", Witness: "up.example", Owner: "sec", Reason: "release day", Ticket: "SEC-1", Expires: "2026-06-30"}},
	}}
	settings := []byte("{}\n")
	p.Add("targets/ga/linux/claude-code/root/etc/claude-code/managed-settings.json", settings)
	p.Add("targets/ga+payments/windows/claude-code/root/C/Program Files/ClaudeCode/managed-settings.json", settings)
	p.Add("targets/ga/openshell/claude/policy.yaml", []byte("version: 1\n"))
	p.Add("packs/team-web/pack.yaml", pack)
	p.Add("coverage.json", []byte("{}\n"))
	p.Add("COVERAGE.md", []byte("# Coverage\n"))
	p.Add("README.md", nil)
	return p
}

func seal(t testing.TB, p *Plan) *Release {
	t.Helper()
	r, err := p.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManifestIsCanonical(t *testing.T) {
	for name, p := range map[string]*Plan{"full": fullPlan(), "small": smallPlan()} {
		data := seal(t, p).Bytes
		want, err := jcs.Transform(data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, want) {
			t.Errorf("%s: not what RFC 8785 asks for\n got %s\nwant %s", name, data, want)
		}
		if data[len(data)-1] != '}' {
			t.Error("ends in a line end")
		}
	}
}

// smallPlan has no optional field and nothing in its lists.
func smallPlan() *Plan {
	epoch := time.Unix(0, 0).UTC()
	return &Plan{Manifest: Manifest{Org: "acme", Version: "0.0.0-dev", Issued: epoch, AsOf: epoch, Tool: Tool{"halo", "0.1.0"}, Source: Source{Digest: Digest(nil)}}}
}

func TestManifestRoundTrip(t *testing.T) {
	for _, p := range []*Plan{fullPlan(), smallPlan()} {
		r := seal(t, p)
		m, err := ParseManifest(r.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again, r.Bytes) {
			t.Errorf("parse and encode changed the bytes (%v)", err)
		}
		// The tags of the Go types say the same names: an independent decoder sees the same values.
		var other Manifest
		dec := json.NewDecoder(bytes.NewReader(r.Bytes))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&other); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*m, other) {
			t.Errorf("encoding/json reads\n%+v, ParseManifest\n%+v", other, *m)
		}
		// No optional member is written empty, no list is null.
		for _, bad := range []string{"null", `:""`, `"previous":"",`} {
			if strings.Contains(string(r.Bytes), bad) {
				t.Errorf("manifest has %s: %s", bad, r.Bytes)
			}
		}
	}
}

func TestSealDependsOnContentAlone(t *testing.T) {
	want := seal(t, fullPlan()).Bytes
	for seed := range uint64(20) {
		p := fullPlan()
		rnd := rand.New(rand.NewPCG(seed, 1))
		rnd.Shuffle(len(p.files), func(i, j int) { p.files[i], p.files[j] = p.files[j], p.files[i] })
		rnd.Shuffle(len(p.Manifest.Targets), func(i, j int) {
			p.Manifest.Targets[i], p.Manifest.Targets[j] = p.Manifest.Targets[j], p.Manifest.Targets[i]
		})
		p.Manifest.Issued = p.Manifest.Issued.In(time.FixedZone("x", 3600))
		before := slices.Clone(p.files)
		if got := seal(t, p).Bytes; !bytes.Equal(got, want) {
			t.Fatalf("seed %d: other bytes", seed)
		}
		for i := range before {
			if before[i].path != p.files[i].path {
				t.Fatal("Seal changed the plan")
			}
		}
	}
}

func TestSealRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Plan)
		want   string
	}{
		{"same path twice", func(p *Plan) { p.Add("README.md", nil) }, "repeated"},
		{"case", func(p *Plan) { p.Add("readme.MD", nil) }, "only in case"},
		{"file and directory", func(p *Plan) { p.Add("packs", nil) }, "needs a directory"},
		{"outside", func(p *Plan) { p.Add("../x", nil) }, `".."`},
		{"the manifest", func(p *Plan) { p.Add(ManifestName, nil) }, "cannot list"},
		{"a signature", func(p *Plan) { p.Add(BundleName, nil) }, "cannot list"},
		{"the sums", func(p *Plan) { p.Add(SumsName, nil) }, "made by the release"},
		{"no org", func(p *Plan) { p.Manifest.Org = "" }, `"org" is empty`},
		{"no time", func(p *Plan) { p.Manifest.Issued = time.Time{} }, "issued"},
		{"parts of a second", func(p *Plan) { p.Manifest.AsOf = p.Manifest.AsOf.Add(1) }, "whole second"},
		{"sequence", func(p *Plan) { p.Manifest.Sequence = 1 << 53 }, "2^53-1"},
		{"negative sequence", func(p *Plan) { p.Manifest.Sequence = -1 }, "2^53-1"},
		{"previous", func(p *Plan) { p.Manifest.Previous = "sha256:x" }, "not a digest"},
		{"not UTF-8", func(p *Plan) { p.Manifest.Warnings[0].Message = "\xff" }, "UTF-8"},
		{"not UTF-8 in a path", func(p *Plan) { p.Add("a\xff", nil) }, "UTF-8"},
		{"target twice", func(p *Plan) { p.Manifest.Targets = append(p.Manifest.Targets, p.Manifest.Targets[0]) }, "repeated"},
		{"target file", func(p *Plan) { p.Manifest.Targets[0].Files[0].Path = "none" }, "not among files"},
		{"mode", func(p *Plan) { p.Manifest.Targets[0].Files[0].Mode = "4755" }, "not of the form 0644"},
		{"sandbox path", func(p *Plan) { p.Manifest.Sandboxes[0].Path = "none" }, "not among files"},
		{"sandbox digest", func(p *Plan) { p.Manifest.Sandboxes[0].PackDigest = "x" }, "not a digest"},
		{"pack path", func(p *Plan) { p.Manifest.Packs[0].Path = "none" }, "not among files"},
		{"pack digest", func(p *Plan) { p.Manifest.Packs[0].Digest = Digest(nil) }, "not that of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := fullPlan()
			tt.change(p)
			if _, err := p.Seal(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseManifestRefuses(t *testing.T) {
	good := string(seal(t, fullPlan()).Bytes)
	for _, tt := range []struct{ name, old, new, want string }{
		{"unknown member", `"org":`, `"notes":"x","org":`, `key "notes" is unknown`},
		{"unknown member at the end", `"version":"1.2.3",`, `"version":"1.2.3","w":"x",`, `"warnings" is wanted`},
		{"unknown nested member", `"size":`, `"origin":"x","size":`, `key "origin" is unknown`},
		{"repeated member", `"org":"acme",`, `"org":"acme","org":"acme",`, `key "org" is unknown, repeated`},
		{"missing member", `"org":"acme",`, ``, `"org" is wanted`},
		{"missing list", `"exceptions":`, `"exception":`, `"exceptions" is wanted`},
		{"upper case", `"org":`, `"Org":`, `"org" is wanted`},
		{"white space", `"org":`, `"org": `, "string in canonical form"},
		{"null", `"dirty":true`, `"dirty":null`, "true or false"},
		{"escape that is not needed", `"acme"`, `"acm\u0065"`, "canonical form"},
		{"upper-case escape", `\u0001`, `\U0001`, "canonical form"},
		{"escaped letter", `"acme"`, `"\acme"`, "canonical form"},
		{"escaped control character", `\u0001`, "\\\x00", "canonical form"},
		{"long form of a short escape", `\"c`, `\u0022c`, "canonical form"},
		{"escape of a letter", `\u0001`, `\u0041`, "canonical form"},
		{"upper-case digit of an escape", `\u0001`, `\u000F`, "canonical form"},
		{"escape that is cut", `\u0001 é"`, `\u00"`, "canonical form"},
		{"escaped slash", `/etc/claude-code/`, `\/etc/claude-code/`, "canonical form"},
		{"leading zero", `"sequence":42`, `"sequence":042`, "canonical form"},
		{"fraction", `"sequence":42`, `"sequence":42.0`, `"source" is wanted`},
		{"exponent", `"sequence":42`, `"sequence":4e1`, `"source" is wanted`},
		{"negative", `"sequence":42`, `"sequence":-42`, "not an integer"},
		{"large", `"sequence":42`, `"sequence":9007199254740992`, "2^53-1"},
		{"huge", `"sequence":42`, `"sequence":99999999999999999999999`, "2^53-1"},
		{"number as text", `"sequence":42`, `"sequence":"42"`, "not an integer"},
		{"other schema", `"schemaVersion":1`, `"schemaVersion":2`, "schemaVersion 2"},
		{"empty optional", `"version":"1.2.3"`, `"version":""`, `"version" is empty`},
		{"time zone", `2026-01-02T03:04:05Z`, `2026-01-02T04:04:05+01:00`, "not an instant"},
		{"parts of a second", `2026-01-02T03:04:05Z`, `2026-01-02T03:04:05.5Z`, "not an instant"},
		{"time zero", `2026-01-02T03:04:05Z`, `0001-01-01T00:00:00Z`, "not an instant"},
		{"upper-case digest", `"sha256":"`, `"sha256":"A`, "hex digits"},
		{"unsorted keys", `"ga":{"allowed":["*.example"]`, `"zz":{"allowed":["*.example"]`, "out of order"},
		{"repeated keys", `"ga+payments":{"allowed"`, `"ga":{"allowed"`, "out of order"},
		{"unsafe path", `"path":"README.md","sha256"`, `"path":"../README.md","sha256"`, `".."`},
		{"backslash", `"path":"README.md","sha256"`, `"path":"READ\\ME.md","sha256"`, "character"},
		{"unsorted paths", `"path":"README.md","sha256"`, `"path":"AREADME.md","sha256"`, "out of order"},
		{"relative destination", `"dest":"/etc/`, `"dest":"etc/`, "not an absolute path on linux"},
		{"destination in another form", `"dest":"C:\\Program`, `"dest":"/Program`, "not an absolute path on windows"},
		{"destination on another drive", `"dest":"C:\\`, `"dest":"D:\\`, "is not the one that"},
		{"destination elsewhere", `"dest":"/etc/claude-code/`, `"dest":"/etc/claude-code/../../home/`, "is not the one that"},
		{"raw control character", `"acme"`, "\"ac\tme\"", "canonical form"},
		{"not UTF-8", `"acme"`, "\"ac\xffme\"", "canonical form"},
		{"byte order mark", `{"asOf"`, "\ufeff{\"asOf\"", "canonical"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(good, tt.old, tt.new, 1)
			if data == good {
				t.Fatalf("the manifest has no %q", tt.old)
			}
			if _, err := ParseManifest([]byte(data)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	for _, tail := range []string{"\n", " ", "{}", "x", "\x00"} {
		if _, err := ParseManifest([]byte(good + tail)); err == nil || !strings.Contains(err.Error(), "more bytes") {
			t.Errorf("with %q behind it: %v", tail, err)
		}
	}
	for i := range good {
		if _, err := ParseManifest([]byte(good[:i])); err == nil {
			t.Fatalf("the first %d bytes parse", i)
		}
	}
	if _, err := ParseManifest(make([]byte, MaxManifestSize+1)); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("size cap: %v", err)
	}
	if _, err := ParseManifest(nil); err == nil {
		t.Error("an empty manifest parses")
	}
}

// RFC 8785 sorts keys by UTF-16 code units, which differs from byte order above U+D800.
func TestCompareUTF16(t *testing.T) {
	keys := []string{"", "a", "aa", "b", "é", "\u2028", "\U0001F600", "\uE000", "\uFFFD"}
	for i, a := range keys {
		for j, b := range keys {
			if got := compareUTF16(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q compare as %d", a, b, got)
			}
		}
	}
	p := smallPlan()
	p.Manifest.Presets = map[string][]string{}
	for _, k := range keys {
		p.Manifest.Presets[k] = []string{k}
	}
	data := seal(t, p).Bytes
	if want, err := jcs.Transform(data); err != nil || !bytes.Equal(data, want) {
		t.Errorf("got %s\nwant %s (%v)", data, want, err)
	}
	if _, err := ParseManifest(data); err != nil {
		t.Error(err)
	}
}

func TestCheckPath(t *testing.T) {
	for _, ok := range []string{"a", "a/b", "root/C/Program Files/x.json", "targets/ga+pay/linux/x", ".claude/settings.json", "a..b", "console", "com10", "coma", "nul1", "é/ü", "a-b/c_d~"} {
		if err := checkPath(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/./b", "a/../b", "a/..", `a\b`, "C:/a", "a:b", "a*", "a?", `a"`, "a<", "a>", "a|", "a\x00", "a\n", "a\x7f",
		"a.", "a /b", "a./b", "con", "CON", "Con.txt", "a/nul", "aux.x.y", "com1", "LPT9", "com¹", "lpt³.txt", "conin$", "CONOUT$", "nul .txt",
		"e\u0301", "a\u202eb", "a\u200bb", "a\u00adb", "a\xff", strings.Repeat("a", maxPath+1),
	} {
		if err := checkPath(bad); err == nil {
			t.Errorf("%q is taken for a safe path", bad)
		}
	}
}

func TestCaseCollisions(t *testing.T) {
	for _, tt := range []struct {
		paths []string
		ok    bool
	}{
		{[]string{"a", "b"}, true},
		{[]string{"a-b/x", "a/x", "a/y", "ab/x"}, true},
		{[]string{"A", "a"}, false},
		{[]string{"A/x", "a/y"}, false},
		{[]string{"d/A/x", "d/B/x", "d/a/z"}, false},
		{[]string{"a", "a/b"}, false},
		{[]string{"A", "a/b"}, false},
		{[]string{"É", "é"}, false},
		{[]string{"k", "\u212a"}, false},
		{[]string{"ς", "σ"}, false},
	} {
		m := &Manifest{}
		for _, p := range slices.Sorted(slices.Values(tt.paths)) {
			m.Files = append(m.Files, File{p, strings.Repeat("0", 64), 0})
		}
		if err := m.checkFiles(); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.paths, err)
		}
	}
}

// Whatever strings a manifest has, its bytes are canonical and mean the same when read back.
func TestStringsSurvive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab\"\\/\b\t\n\f\r\x00\x1f\x7f<>&éß\u2028\u2029\ufeff\uffff\U0001F600")
	for range 2000 {
		s := make([]rune, 1+rnd.IntN(8))
		for i := range s {
			s[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		p := smallPlan()
		p.Manifest.Org = string(s)
		data := seal(t, p).Bytes
		if want, err := jcs.Transform(data); err != nil || !bytes.Equal(data, want) {
			t.Fatalf("%q: %v\n got %s\nwant %s", string(s), err, data, want)
		}
		m, err := ParseManifest(data)
		if err != nil || m.Org != string(s) {
			t.Fatalf("%q came back as %q (%v)", string(s), m.Org, err)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(seal(f, fullPlan()).Bytes)
	f.Add(seal(f, smallPlan()).Bytes)
	f.Add([]byte(`{"asOf":"1970-01-01T00:00:00Z","egress":{"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("what parses does not encode: %v", err)
		}
		if !bytes.Equal(again, data) {
			t.Fatalf("two spellings of one manifest\n%s\n%s", data, again)
		}
		if want, err := jcs.Transform(data); err != nil || !bytes.Equal(want, data) {
			t.Fatalf("accepted and not canonical (%v): %s", err, data)
		}
		for _, file := range m.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains(fmt.Sprintf("/%s/", file.Path), "/../") {
				t.Fatalf("unsafe path %q", file.Path)
			}
		}
	})
}
