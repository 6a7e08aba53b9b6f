package testscript

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// startRegistry starts an OCI registry on loopback for all scripts, which keep to repositories of their own. closed is the same registry for user ci with
// password secret, and lying too, but what it sends of blobs has one byte changed.
func startRegistry(t *testing.T) (open, closed, lying string) {
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
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
