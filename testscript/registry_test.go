package testscript

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// inProcess is an OCI registry with the referrers interface.
func inProcess() http.Handler {
	return registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
}

// distribution starts the CNCF registry as Debian packages it (docker-registry), which has no referrers interface, so that the tags of the OCI specification's
// fallback are what is used.
func distribution(t *testing.T) http.Handler {
	path, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("SKIP: docker-registry is not installed: Debian has it as a package, and bash .ci/run installs it")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: '127.0.0.1:0', relativeurls: true}\n", filepath.Join(dir, "store"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "serve", config)
	printed, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var seen strings.Builder
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if _, after, ok := strings.Cut(lines.Text(), "listening on "); ok {
			address, _, _ := strings.Cut(after, `"`)
			go io.Copy(io.Discard, printed)
			return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
		}
	}
	t.Fatalf("docker-registry does not listen:\n%s", seen.String())
	return nil
}

// serveRegistry serves a store on loopback. closed is the same registry for user ci with password secret, and lying too, but what it sends of blobs has one
// byte changed.
func serveRegistry(t *testing.T, store http.Handler) (open, closed, lying string) {
	serve := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	closed = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		store.ServeHTTP(w, r)
	}))
	return serve(store), closed, serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			store.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		store.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		if len(body) > 0 {
			body[len(body)/2] ^= 1
		}
		w.Write(body)
	}))
}
