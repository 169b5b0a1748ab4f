package faulttable

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/httpretry"
)

// pause is a part of a fault: a peer or a caller that takes its time.
func pause(d time.Duration) { <-time.NewTimer(d).C }

func count(n int) string { return strconv.Itoa(n) }

func chunkOf(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// warm fills the pool with n idle connections and begins the counting anew.
func (c *caller) warm(n int) {
	bodies := make([]io.ReadCloser, n)
	for i := range bodies {
		req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, "http://"+host+warming, nil)
		if err != nil {
			c.Fatal(err)
		}
		resp, err := c.base.RoundTrip(req)
		if err != nil {
			c.Fatal(err)
		}
		bodies[i] = resp.Body // keep it busy, so that the next one dials
	}
	for _, body := range bodies {
		if _, err := io.Copy(io.Discard, body); err != nil {
			c.Fatal(err)
		}
		_ = body.Close()
	}
	c.site.forget()
	c.dials.Store(0)
}

// leftovers waits until no connection and no request body is open any more, and
// says what is. Requests that are still on their way have then been counted.
func (c *caller) leftovers() string {
	for end := time.Now().Add(10 * time.Second); ; pause(time.Millisecond) {
		c.base.CloseIdleConnections()
		left := ""
		if c.site.open(c.dialed.Load()) {
			left = "connection left open"
		}
		for _, b := range c.bodies {
			if !b.closed.Load() {
				left = "request body left open"
			}
		}
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

// closable is a request body that remembers that it was closed.
type closable struct {
	io.ReadCloser
	closed atomic.Bool
}

func (b *closable) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// certificate gives the site one for a name, which ends that many days from now,
// and which the client trusts.
func certificate(name string, days int) func(*caller) {
	return func(c *caller) {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			c.Fatal(err)
		}
		end := time.Now().Add(time.Duration(days) * 24 * time.Hour)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: end.Add(-48 * time.Hour), NotAfter: end,
			IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
		if err != nil {
			c.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			c.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(leaf)
		c.base.TLSClientConfig.RootCAs = roots
		c.site.config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	}
}

// roundTripper is a transport that is none of net/http's own.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// replaced is the one case that changes the process: it runs by itself.
var replaced = fault{
	name: "http.DefaultTransport replaced", serve: ok, why: "programs and tests replace it",
	use: func(c *caller) (r response) {
		original := http.DefaultTransport
		defer func() { http.DefaultTransport = original }()
		defer func() {
			if trouble := recover(); trouble != nil {
				r = response{trouble: trouble}
			}
		}()
		http.DefaultTransport = roundTripper(c.base.RoundTrip)
		if c.plain {
			c.client = &http.Client{}
		} else {
			c.client = &http.Client{Transport: httpretry.NewTransport(nil, c.retryer(c.T))}
		}
		return c.once()
	},
}
