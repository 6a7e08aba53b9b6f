//go:build linux

package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// gateways are the places that the model's stand-in answers at.
type gateways struct {
	// names are the host names, ports the ports of loopback; the value says whether it speaks TLS.
	names []string
	ports map[string]bool
}

func parseGateways(urls []string) (*gateways, error) {
	own := strings.TrimPrefix(modelURL, "http://127.0.0.1:")
	g := &gateways{ports: map[string]bool{own: false}}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		port, secure := u.Port(), u.Scheme == "https"
		if port == "" {
			port = map[bool]string{true: "443", false: "80"}[secure]
		}
		if was, ok := g.ports[port]; ok && was != secure {
			return nil, fmt.Errorf("port %s of %s is wanted with and without TLS", port, u.Hostname())
		}
		g.ports[port] = secure
		g.names = append(g.names, u.Hostname())
	}
	slices.Sort(g.names)
	g.names = slices.Compact(g.names)
	return g, nil
}

// serve starts the stand-ins on loopback and writes the certificate of their authority.
func (g *gateways) serve(h http.Handler) error {
	config, err := g.authority()
	if err != nil {
		return err
	}
	for port, secure := range g.ports {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err
		}
		if secure {
			l = tls.NewListener(l, config)
		}
		go func() { _ = http.Serve(l, h) }()
	}
	return nil
}

func (g *gateways) authority() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "halo probe"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	// Some TLS libraries do not take a CA's own certificate for a server's.
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "halo probe gateway"}, DNSNames: g.names,
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca := File{Path: authority, Content: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})}
	if err := ca.write(); err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}
