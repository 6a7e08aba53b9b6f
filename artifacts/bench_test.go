package artifacts

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// benchPlan is as large as the speed goals ask: 7,200 files of about 1.4 KB, most of them shared by several targets.
func benchPlan() *Plan {
	p := smallPlan()
	for i := range 1200 {
		data := bytes.Repeat(fmt.Appendf(nil, "%06d\n", i), 200)
		for _, os := range []string{"darwin", "linux", "windows"} {
			for _, harness := range []string{"claude-code", "codex"} {
				t := fmt.Sprintf("targets/ring%02d+unit%04d/%s/%s/root/etc/%s/managed-settings.json", i%40, i, os, harness, harness)
				p.Add(t, data)
				p.Manifest.Targets = append(p.Manifest.Targets, Target{ID: fmt.Sprintf("ring%02d+unit%04d", i%40, i), Ring: fmt.Sprintf("ring%02d", i%40),
					Units: []string{fmt.Sprintf("unit%04d", i)}, Profile: "base", OS: os + harness, Files: []TargetFile{{Path: t, Harness: harness, Dest: "/etc/" + harness + "/managed-settings.json", Owner: "root", Mode: "0644"}}})
			}
		}
	}
	return p
}

func BenchmarkSeal(b *testing.B) {
	p := benchPlan()
	b.ReportAllocs()
	for b.Loop() {
		seal(b, p)
	}
}

func BenchmarkParseManifest(b *testing.B) {
	data := seal(b, benchPlan()).Bytes
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseManifest(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	r := seal(b, benchPlan())
	out := filepath.Join(b.TempDir(), "out")
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Write(context.Background(), out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	out, opts := signed(b, benchPlan())
	b.ReportAllocs()
	for b.Loop() {
		if err := verify(out, opts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSha256sum is the yardstick of BenchmarkVerify.
func BenchmarkSha256sum(b *testing.B) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		b.Skip("SKIPPED: no sha256sum here")
	}
	out, _ := signed(b, benchPlan())
	for b.Loop() {
		cmd := exec.CommandContext(context.Background(), "sha256sum", "--check", "--quiet", SumsName)
		cmd.Dir = out
		if msg, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, msg)
		}
	}
}
