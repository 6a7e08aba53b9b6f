//go:build linux

package real

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"time"
)

// Gateway is the host name of the organization's model gateway in the policies that are judged here. In a lab the model's stand-in
// answers for it too, over TLS, so that a session goes on where the policy sends it.
const Gateway = "ai.acme.example"

// gatewayCA is where the certificate of the authority stands that vouches for that stand-in; the CLI is told to trust it.
const gatewayCA = "/etc/halo-lab-gateway.pem"

// serveGateway starts the gateway on loopback.
func serveGateway(h http.Handler) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return err
	}
	// Some TLS libraries do not take a CA's own certificate for a server's.
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: Gateway}, DNSNames: []string{Gateway},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	if err != nil {
		return err
	}
	ca := File{Path: gatewayCA, Content: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})}
	if err := ca.write(); err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, h) }()
	return nil
}
