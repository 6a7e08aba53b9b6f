package keyless

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Root is a trusted root: the authorities and logs whose word counts. It is trusted because it was put where it is.
type Root struct {
	authorities, timestampers []authority
	logs, certificateLogs     []log
}

// authority issues certificates.
type authority struct {
	chain []*x509.Certificate // the root last
	valid window
}

// log is a transparency log.
type log struct {
	id    []byte
	key   crypto.PublicKey
	valid window
}

// window is a time span; a zero end is open.
type window struct{ start, end time.Time }

func (w window) contains(t time.Time) bool {
	return !t.Before(w.start) && (w.end.IsZero() || !t.After(w.end))
}

// The form of a trusted root, versions 0.1 and 0.2.
type (
	rootJSON struct {
		MediaType       string          `json:"mediaType"`
		Logs            []logJSON       `json:"tlogs"`
		Authorities     []authorityJSON `json:"certificateAuthorities"`
		CertificateLogs []logJSON       `json:"ctlogs"`
		Timestampers    []authorityJSON `json:"timestampAuthorities"`
	}
	logJSON struct {
		URL  string `json:"baseUrl"`
		Hash string `json:"hashAlgorithm"`
		Key  struct {
			Raw     []byte     `json:"rawBytes"`
			Details string     `json:"keyDetails"`
			Valid   windowJSON `json:"validFor"`
		} `json:"publicKey"`
		ID           idJSON `json:"logId"`
		CheckpointID idJSON `json:"checkpointKeyId"`
		Operator     string `json:"operator"`
	}
	idJSON struct {
		Key []byte `json:"keyId"`
	}
	authorityJSON struct {
		Subject struct {
			Organization string `json:"organization"`
			CommonName   string `json:"commonName"`
		} `json:"subject"`
		URI   string `json:"uri"`
		Chain struct {
			Certificates []rawJSON `json:"certificates"`
		} `json:"certChain"`
		Valid    windowJSON `json:"validFor"`
		Operator string     `json:"operator"`
	}
	windowJSON struct {
		Start time.Time  `json:"start"`
		End   *time.Time `json:"end"`
	}
)

func (w windowJSON) window() window {
	if w.End == nil {
		return window{start: w.Start}
	}
	return window{w.Start, *w.End}
}

// ParseRoot reads a trusted root as cosign and sigstore-go write it.
func ParseRoot(data []byte) (*Root, error) {
	var doc rootJSON
	if err := decode(data, "a trusted root", &doc); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(doc.MediaType, "application/vnd.dev.sigstore.trustedroot") {
		return nil, fmt.Errorf("media type %q, not that of a trusted root", doc.MediaType)
	}
	r := new(Root)
	var err error
	if r.authorities, err = authorities(doc.Authorities); err != nil {
		return nil, fmt.Errorf("certificateAuthorities: %w", err)
	}
	if r.timestampers, err = authorities(doc.Timestampers); err != nil {
		return nil, fmt.Errorf("timestampAuthorities: %w", err)
	}
	if r.logs, err = logs(doc.Logs); err != nil {
		return nil, fmt.Errorf("tlogs: %w", err)
	}
	if r.certificateLogs, err = logs(doc.CertificateLogs); err != nil {
		return nil, fmt.Errorf("ctlogs: %w", err)
	}
	if len(r.authorities) == 0 {
		return nil, errors.New("no certificate authority, so no signature can verify")
	}
	return r, nil
}

func authorities(docs []authorityJSON) ([]authority, error) {
	var out []authority
	for _, doc := range docs {
		a := authority{valid: doc.Valid.window()}
		for _, c := range doc.Chain.Certificates {
			cert, err := x509.ParseCertificate(c.Raw)
			if err != nil {
				return nil, fmt.Errorf("a certificate cannot be read: %w", err)
			}
			a.chain = append(a.chain, cert)
		}
		if len(a.chain) == 0 {
			return nil, errors.New("an authority without certificates")
		}
		out = append(out, a)
	}
	return out, nil
}

func logs(docs []logJSON) ([]log, error) {
	var out []log
	for _, doc := range docs {
		key, err := x509.ParsePKIXPublicKey(doc.Key.Raw)
		if err != nil {
			return nil, fmt.Errorf("the key of a log cannot be read: %w", err)
		}
		id := doc.ID.Key
		if len(id) == 0 {
			sum := sha256.Sum256(doc.Key.Raw)
			id = sum[:]
		}
		out = append(out, log{id, key, doc.Key.Valid.window()})
	}
	return out, nil
}

// chain finds the authority that issued leaf, valid at t for use, and returns the certificate right above the leaf.
func (r *Root) chain(among []authority, leaf *x509.Certificate, t time.Time, use x509.ExtKeyUsage) (issuer *x509.Certificate, err error) {
	err = errors.New("the trusted root lists none for that time")
	for _, a := range among {
		if !a.valid.contains(t) {
			continue
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AddCert(a.chain[len(a.chain)-1])
		for _, c := range a.chain[:len(a.chain)-1] {
			between.AddCert(c)
		}
		chains, chainErr := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: t, KeyUsages: []x509.ExtKeyUsage{use}})
		if chainErr != nil {
			err = chainErr
			continue
		}
		return chains[0][min(1, len(chains[0])-1)], nil
	}
	return nil, err
}

// find returns the log with an id, when it was in use at t; the zero time asks for no time.
func find(among []log, id []byte, t time.Time) (crypto.PublicKey, error) {
	for _, l := range among {
		if bytes.Equal(l.id, id) && (t.IsZero() || l.valid.contains(t)) {
			return l.key, nil
		}
	}
	return nil, fmt.Errorf("by a log that the trusted root does not list for that time (%x)", id)
}
