package pack

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/pack/packtest"
)

// FuzzLoad holds that no pack file crashes, that Check and Load agree, that an error is one line, and that what loads prints back.
func FuzzLoad(f *testing.F) {
	file := packtest.Load(f, "testdata/packs-cases.yaml")
	for _, c := range file.Cases {
		if c.Area == "load" {
			f.Add(c.Input.Bytes(f, file.Fixtures))
		}
	}
	for _, name := range BuiltinNames() {
		data, err := BuiltinBytes(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"&a a: *a", "? [a]\n: b", "<<: {a: 1}", "!!map {}", "version: 0x1", "\xef\xbb\xbfversion: 1", "\xff\xfev", "a: {a: {a: {a: [[[[", "%YAML 1.1\n---\nversion: 1", "--- \n--- ", "\"\\u001b\": 1", "version: 1_0\nname: ~"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Load("packs/x/pack.yaml", data)
		errors := slices.DeleteFunc(Check("elsewhere.yaml", data, 0), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
		if (err == nil) != (len(errors) == 0) {
			t.Fatalf("Load says %v, Check %v", err, errors)
		}
		if err != nil {
			e := err.(*Error)
			if strings.ContainsAny(e.Error(), "\n\x1b") || e.Class == "" || e.Reason == "" {
				t.Fatalf("%+v", e)
			}
			if !slices.ContainsFunc(errors, func(d diag.Diagnostic) bool { return d.Path == e.Key && strings.HasPrefix(d.Message, e.Reason) }) {
				t.Fatalf("Check lacks %v: %v", e, errors)
			}
			return
		}
		text := Print(p)
		back, err := Load("x", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		back.Path, back.Digest = p.Path, p.Digest
		if !reflect.DeepEqual(back, p) {
			t.Fatalf("not the same pack:\n%+v\n%+v", p, back)
		}
		if key := Looser(p, back, ""); key != "" {
			t.Fatalf("looser than itself in %s", key)
		}
	})
}

// FuzzConfig holds that no openshell block crashes, and that a usable one prints back to the same bytes and resolves.
func FuzzConfig(f *testing.F) {
	file := packtest.Load(f, "testdata/packs-cases.yaml")
	for _, c := range file.Cases {
		if c.Input.Config.Kind == 0 {
			continue
		}
		text, err := yaml.Marshal(&c.Input.Config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var doc yaml.Node
		if len(data) > MaxBytes || yaml.Unmarshal(data, &doc) != nil || doc.Kind == 0 {
			return
		}
		c, _, found := ParseConfig(doc.Content[0], Source{Path: "openshell"})
		if slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
			return
		}
		text := PrintConfig(c)
		if again := PrintConfig(readConfig(t, text)); string(again) != string(text) {
			t.Fatalf("not the same bytes:\n%s\n%s", text, again)
		}
		p, err := Resolve(Input{Config: c, Find: func(string) (*Pack, error) { return Builtin("balanced") }})
		if err != nil {
			if c.Admin.RequiredPackDigest == "" {
				t.Fatal(err)
			}
			return
		}
		p.Engine(nil).Decide("example.org", 443)
		if key := LooserPolicy(p, p); key != "" {
			t.Fatalf("looser than itself in %s", key)
		}
	})
}

// FuzzPattern holds that a pattern's spelling is a fixed point, that it covers and matches itself, and that the engine agrees with it.
func FuzzPattern(f *testing.F) {
	for _, s := range universePatterns {
		f.Add(s, "a.example.org")
	}
	for _, s := range []string{" *.Example.COM. ", "[2001:DB8::1]", "::ffff:10.0.0.0/104", "fe80::1%eth0", "127.1", "a..b", "-a.x", "*.", "\u212aelvin.example", "xn--p1ai", "10.1.2.3/8", "a.b/24", "_x._tcp.a"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, s, host string) {
		p, err := ParsePattern(s)
		if err != nil {
			return
		}
		if q, err := ParsePattern(p.String()); err != nil || q != p {
			t.Fatalf("%q is %q, which is %q %v", s, p, q, err)
		}
		if !p.Covers(p) || !allCovered(p.Widen(), []Pattern{p}) {
			t.Fatalf("%q does not cover itself", p)
		}
		if !p.Wildcard() && (!p.prefix.IsValid() || p.prefix.IsSingleIP()) && !p.Matches(p.String()) {
			t.Fatalf("%q does not match itself", p)
		}
		d := NewEngine(Rules{Profile: "balanced", Allow: []Pattern{p}, Operator: []Pattern{p}}).Decide(host, 0)
		if d.Step > 2 && d.Allowed != p.Matches(host) {
			t.Fatalf("%q and %q: %+v", p, host, d)
		}
	})
}

// FuzzTexts holds the small grammars: what is accepted is accepted again, and matching does not crash or hang.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{".env", "**/a/*/[x", "a/../b", "C:/x", "~/x", "/src/*", "**", "1.5", "500m", "8Gi", "9223372036854775807", "0.000", "*[*[*[", "a\\", "é?"} {
		f.Add(s, "a/b.pem")
	}
	f.Fuzz(func(t *testing.T, s, name string) {
		if g, err := ParseGlob(s); err == nil {
			if again, err := ParseGlob(g); err != nil || again != g {
				t.Fatalf("%q is %q: %v", g, again, err)
			}
		}
		if p, err := ParseCopyPattern(s); err == nil {
			if again, err := ParseCopyPattern(p); err != nil || again != p {
				t.Fatalf("%q is %q: %v", p, again, err)
			}
			CopyCovers(p, name, "/home/u")
		}
		for _, parse := range []func(string) (int64, error){ParseCPU, ParseMemory} {
			if v, err := parse(s); err == nil && v <= 0 {
				t.Fatalf("%q is %d", s, v)
			}
		}
		if !validHarness(NormalHarness(s)) && slices.Contains(defenseclawIDs, NormalHarness(s)) {
			t.Fatalf("%q", s)
		}
	})
}
