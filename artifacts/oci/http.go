package oci

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// detourError says that a registry wants a request to go where it must not.
type detourError struct{ reason string }

func (e *detourError) Error() string { return e.reason }

// isLoopback reports whether host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// maxRedirects is how often a download may be sent on. Registries send to their storage once.
const maxRedirects = 3

// httpClient returns a client for the registry at host. It keeps answers within bounds, leaves TLS only where that was allowed, and follows a redirect
// only where registries need one: from a blob to where it is stored.
func httpClient(host string, plain bool, retries int) *http.Client {
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// A body that is expanded on the way has no known size.
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
	}
	return &http.Client{
		Transport: &retry.Transport{
			Base: &guard{base, host, plain},
			Policy: func() retry.Policy {
				return &retry.GenericPolicy{
					Retryable: retry.DefaultPredicate, Backoff: retry.DefaultBackoff,
					MinWait: 200 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: retries,
				}
			},
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0]
			switch {
			case first.Method != http.MethodGet && first.Method != http.MethodHead || !strings.Contains(first.URL.Path, "/blobs/"):
				return &detourError{fmt.Sprintf("the registry sends a %s of %s on to %s, which only a download may be", first.Method, first.URL.Path, next.URL.Host)}
			case len(via) > maxRedirects:
				return &detourError{fmt.Sprintf("more than %d redirects", maxRedirects)}
			}
			return nil
		},
	}
}

// guard refuses requests without TLS but to the one host for which that was allowed, or within this machine.
type guard struct {
	base  http.RoundTripper
	host  string
	plain bool
}

// RoundTrip sends a request.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Scheme == "https":
	case r.URL.Scheme != "http" || !g.plain || r.URL.Host != g.host && !(isLoopback(g.host) && isLoopback(r.URL.Host)):
		return nil, &detourError{fmt.Sprintf("the registry sends to %s://%s, which is not protected by TLS", r.URL.Scheme, r.URL.Host)}
	}
	resp, err := g.base.RoundTrip(r)
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return nil, fmt.Errorf("%s does not speak TLS; --plain-http allows HTTP without it", r.URL.Host)
	}
	return resp, err
}
