package upstream_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// failure returns what becomes of a request that must fail.
func failure(t *testing.T, u *upstream.Upstream, url string, size int) forbear.Failure {
	t.Helper()
	resp, err := post(t, u, url, size)
	if err == nil {
		t.Fatalf("%s: %s %s, want an error", url, resp.Proto, resp.Status)
	}
	f, _ := edge.ClassifyNet(err)
	f.Err = err
	return f
}

// TestOurCertificateIsRefused: a server that wants a client certificate refuses ours
// after the handshake of TLS 1.3. Whatever the body and the protocol, that is known
// for what it is, and never a connection that broke.
func TestOurCertificateIsRefused(t *testing.T) {
	race.TooSlow(t, "TestRotationUnderLoad has many requests at once")
	ca, stranger := certtest.NewCA(t, "ca"), certtest.NewCA(t, "stranger")
	server := ca.Issue("127.0.0.1", nil).TLS(t)
	trusted := file(t, "ca.pem", ca.PEM)
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
	var reached atomic.Int64
	url := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(), MinVersion: tls.VersionTLS13,
	}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	pair := func(l certtest.Leaf) upstream.TLS {
		return upstream.TLS{CA: trusted, Cert: file(t, "crt", l.Cert), Key: file(t, "key", l.Key)}
	}
	for _, tt := range []struct {
		name string
		tls  upstream.TLS
		want string
	}{
		{"none", upstream.TLS{CA: trusted}, "the server wants a client certificate"},
		{"of another authority", pair(stranger.Issue("client", nil)), "the server does not trust the authority that signed our client certificate"},
		{"expired", pair(ca.Issue("client", past)), "our client certificate has expired"},
	} {
		for _, mode := range []upstream.HTTP2{upstream.HTTP2Off, upstream.HTTP2Auto, upstream.HTTP2Only} {
			for _, size := range []int{0, 100 << 10, 4 << 20} {
				t.Run(fmt.Sprint(tt.name, mode, size), func(t *testing.T) {
					for range 10 {
						u := reach(t, upstream.Config{TLS: tt.tls, HTTP2: mode, Logger: slog.New(slog.DiscardHandler)})
						f := failure(t, u, url, size)
						if f.Class != forbear.ClassCertificate || f.Type != "tls_certificate" || f.Explain() != tt.want || !f.Unsent {
							t.Fatalf("got %v %q (%s), want a certificate error: %s; %v", f.Class, f.Type, f.Explain(), tt.want, f.Err)
						}
					}
				})
			}
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	for _, mode := range []upstream.HTTP2{upstream.HTTP2Off, upstream.HTTP2Auto, upstream.HTTP2Only} {
		u := reach(t, upstream.Config{TLS: pair(ca.Issue("client", nil)), HTTP2: mode})
		for range 3 {
			resp, err := post(t, u, url, 100)
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp)
		}
	}
	if n := reached.Load(); n != 9 {
		t.Errorf("%d requests with a good certificate reached the server, want 9", n)
	}
}

// TestServerWithoutTickets: a server that sends nothing after the handshake of its
// own costs a moment, and no request.
func TestServerWithoutTickets(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	url := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.Issue("127.0.0.1", nil).TLS(t)}, ClientAuth: tls.RequestClientCert,
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: []string{"http/1.1"},
	}, proto)
	resp, err := post(t, reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM)}}), url, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, resp); got != "HTTP/1.1" {
		t.Errorf("got %q", got)
	}
}

// TestErrorsSayWhich: each way in which a connection cannot be made, over real
// sockets, with the label and the words under which it is known.
func TestErrorsSayWhich(t *testing.T) {
	ca, other := certtest.NewCA(t, "ca"), certtest.NewCA(t, "other")
	good := ca.Issue("127.0.0.1", nil).TLS(t)
	secure := func(c *tls.Config) string {
		if c.Certificates == nil {
			c.Certificates = []tls.Certificate{good}
		}
		return serveTLS(t, c, proto)
	}
	certificate := func(name string, edit func(*x509.Certificate)) string {
		return secure(&tls.Config{Certificates: []tls.Certificate{ca.Issue(name, edit).TLS(t)}})
	}
	hello := func(first string, hold bool) string {
		return raw(t, func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 18))
			_, _ = io.WriteString(c, first)
			if hold {
				_, _ = io.Copy(io.Discard, c)
			}
		})
	}
	plain := httptest.NewServer(proto)
	t.Cleanup(plain.Close)
	trust := upstream.TLS{CA: file(t, "ca", ca.PEM)}
	const settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"
	yesterday, tomorrow := time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	for _, tt := range []struct {
		name   string
		config upstream.Config
		url    string
		class  forbear.Class
		label  string
		words  string
	}{
		{
			"unknown authority",
			upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", other.PEM)}},
			certificate("127.0.0.1", nil),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is signed by an unknown authority",
		},
		{
			"system's authorities",
			upstream.Config{},
			certificate("127.0.0.1", nil),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is signed by an unknown authority",
		},
		{
			"expired",
			upstream.Config{TLS: trust},
			certificate("127.0.0.1", func(c *x509.Certificate) { c.NotBefore, c.NotAfter = yesterday.Add(-time.Hour), yesterday }),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate has expired (" + yesterday.UTC().Format(time.DateOnly) + ")",
		},
		{
			"not yet valid",
			upstream.Config{TLS: trust},
			certificate("127.0.0.1", func(c *x509.Certificate) { c.NotBefore = tomorrow }),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is not yet valid (" + tomorrow.UTC().Format(time.DateOnly) + ")",
		},
		{
			"another name",
			upstream.Config{TLS: trust},
			certificate("elsewhere.test", nil),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is for another name",
		},
		{
			"another name by server_name",
			upstream.Config{TLS: upstream.TLS{CA: trust.CA, ServerName: "b.test"}},
			certificate("a.test", nil),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is for another name",
		},
		{
			"not for servers",
			upstream.Config{TLS: trust},
			certificate("127.0.0.1", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			forbear.ClassCertificate, "tls_certificate", "the server's certificate is not valid for this use",
		},
		{
			"client certificate wanted, TLS 1.2",
			upstream.Config{TLS: trust},
			secure(&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}),
			forbear.ClassTerminal, "tls_alert", "the server refused the handshake: it may want a client certificate or other ciphers",
		},
		{
			"TLS too old",
			upstream.Config{TLS: upstream.TLS{CA: trust.CA, MinVersion: tls.VersionTLS13}},
			secure(&tls.Config{MaxVersion: tls.VersionTLS12}),
			forbear.ClassTerminal, "tls_alert", "the server refused this version of TLS",
		},
		{
			"no HTTP/2 in the handshake",
			upstream.Config{TLS: trust, HTTP2: upstream.HTTP2Only},
			secure(&tls.Config{NextProtos: []string{"http/1.1"}}),
			forbear.ClassTerminal, "tls_alert", "the server does not speak this version of HTTP",
		},
		{
			"TLS to a server without",
			upstream.Config{},
			"https" + strings.TrimPrefix(plain.URL, "http"),
			forbear.ClassTerminal, "tls_record", "the server does not speak TLS",
		},
		{
			"not HTTP",
			upstream.Config{},
			"http://" + hello("SSH-2.0-OpenSSH_9.6\r\n\r\n", true),
			forbear.ClassTransient, "malformed_response", "the server's response is not HTTP",
		},
		{
			"HTTP/2 wanted",
			upstream.Config{},
			"http://" + hello(settings, false),
			forbear.ClassTerminal, "http2_wanted", "the server wants HTTP/2",
		},
		{
			"HTTP/2 wanted, by a server that waits",
			upstream.Config{},
			"http://" + hello(settings, true),
			forbear.ClassTerminal, "http2_wanted", "the server wants HTTP/2",
		},
		{
			"HTTP/1 wanted",
			upstream.Config{HTTP2: upstream.HTTP2Only},
			plain.URL,
			forbear.ClassTerminal, "http1_wanted", "the server wants HTTP/1.1",
		},
		{
			"HTTP/1 wanted, and hung up",
			upstream.Config{HTTP2: upstream.HTTP2Only},
			"http://" + hello("HTTP/1.1 505 x\r\n\r\n", false),
			forbear.ClassTerminal, "http1_wanted", "the server wants HTTP/1.1",
		},
		{
			"HTTP/1 wanted, and waits",
			upstream.Config{HTTP2: upstream.HTTP2Only},
			"http://" + hello("HTTP/1.1 505 x\r\n\r\n", true),
			forbear.ClassTerminal, "http1_wanted", "the server wants HTTP/1.1",
		},
		{
			"HTTP/2 to something else",
			upstream.Config{HTTP2: upstream.HTTP2Only},
			"http://" + hello("SSH-2.0-OpenSSH_9.6\r\n", true),
			forbear.ClassTerminal, "not_http", "the server does not speak HTTP",
		},
		{
			"TLS wanted",
			upstream.Config{},
			"http://" + hello("\x15\x03\x01\x00\x02\x02\x46", false),
			forbear.ClassTerminal, "tls_wanted", "the server wants TLS",
		},
		{
			"TLS wanted, HTTP/2",
			upstream.Config{HTTP2: upstream.HTTP2Only},
			"http://" + hello("\x15\x03\x01\x00\x02\x02\x46", false),
			forbear.ClassTerminal, "tls_wanted", "the server wants TLS",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 20 { // what net/http reports must not be a matter of luck
				u := reach(t, tt.config)
				f := failure(t, u, tt.url, 0)
				if f.Class != tt.class || f.Type != tt.label || f.Explain() != tt.words {
					t.Fatalf("got %v %q (%s), want %v %q (%s): %v", f.Class, f.Type, f.Explain(), tt.class, tt.label, tt.words, f.Err)
				}
			}
		})
	}
}

// TestHTTP2WithoutALPN: a server that agrees on nothing is not spoken to in HTTP/1
// when HTTP/2 is all that will do.
func TestHTTP2WithoutALPN(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	good := ca.Issue("127.0.0.1", nil).TLS(t)
	address := raw(t, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{good}})
		if req, err := http.ReadRequest(bufio.NewReader(s)); err == nil {
			t.Errorf("the server got %s", req.Proto)
		}
	})
	u := reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM)}, HTTP2: upstream.HTTP2Only})
	if f := failure(t, u, "https://"+address, 0); f.Class != forbear.ClassTerminal || f.Type != "http1_wanted" {
		t.Errorf("got %v %q: %v", f.Class, f.Type, f.Err)
	}
}

func TestServerNameIsAskedForAndVerified(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	url := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.Issue("payments.test", nil).TLS(t)}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName)
	}))
	u := reach(t, upstream.Config{TLS: upstream.TLS{CA: file(t, "ca", ca.PEM), ServerName: "payments.test"}})
	resp, err := post(t, u, url, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, resp); got != "payments.test" {
		t.Errorf("asked for %q", got)
	}
}

func TestFaultyTLS(t *testing.T) {
	for want, c := range map[string]upstream.TLS{
		"no such file":       {CA: filepath.Join(t.TempDir(), "none")},
		"belong together":    {Cert: "a"},
		"min_version of TLS": {MinVersion: tls.VersionTLS10},
	} {
		if _, err := upstream.New(upstream.Config{TLS: c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
}
