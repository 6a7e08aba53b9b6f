package oci

import (
	"os"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func removeFile(path string) error { return os.Remove(path) }

func replaceFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }

func readFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}

func digestOf(p *Pushed) digest.Digest { return digest.Digest(p.Digest) }

// sizeOf returns the size of the manifest at ref.
func sizeOf(t testing.TB, ref Reference) int64 {
	t.Helper()
	d, err := Options{}.repository(ref).Resolve(t.Context(), ref.ref.Reference)
	if err != nil {
		t.Fatal(err)
	}
	return d.Size
}

// fetched returns the manifest at ref.
func fetched(t testing.TB, ref Reference) *ocispec.Manifest {
	t.Helper()
	repo := Options{}.repository(ref)
	d, err := repo.Resolve(t.Context(), ref.ref.Reference)
	if err != nil {
		t.Fatal(err)
	}
	m, err := (&fetcher{ref, repo}).manifest(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
