package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is the authority that a client is told to trust, and the certificates of the servers.
type pki struct {
	file                                  string // of the authority, PEM
	good, h2, expired, wrongName, foreign *tls.Config
}

func newPKI(dir string) (*pki, error) {
	ours, text, err := newAuthority("forbear probe")
	if err != nil {
		return nil, err
	}
	theirs, _, err := newAuthority("an authority that no one trusts")
	if err != nil {
		return nil, err
	}
	p := &pki{file: filepath.Join(dir, "ca.pem")}
	day := 24 * time.Hour
	for _, c := range []struct {
		into    **tls.Config
		by      *authority
		names   []string
		ips     []net.IP
		expires time.Duration
	}{
		{&p.good, ours, []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, day},
		{&p.expired, ours, []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, -day},
		{&p.wrongName, ours, []string{"elsewhere.example"}, nil, day},
		{&p.foreign, theirs, []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, day},
	} {
		cert, err := c.by.issue(c.names, c.ips, time.Now().Add(c.expires))
		if err != nil {
			return nil, err
		}
		*c.into = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	}
	p.h2 = p.good.Clone()
	p.h2.NextProtos = []string{"h2", "http/1.1"}
	return p, os.WriteFile(p.file, text, 0o644)
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-72 * time.Hour), NotAfter: time.Now().Add(72 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func (a *authority) issue(names []string, ips []net.IP, expires time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IPAddresses: ips, NotBefore: expires.Add(-48 * time.Hour), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, err
}
