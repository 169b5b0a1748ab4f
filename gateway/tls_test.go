package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// serveOn runs a gateway, whose dependency says which protocol it got, on a listener
// of TLS or, without settings, in clear. It returns the address without a scheme.
func serveOn(t *testing.T, c *gateway.TLS, h http.Handler) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var config *tls.Config
	if c != nil {
		c.Logger = slog.New(slog.DiscardHandler)
		if config, err = c.Config(); err != nil {
			t.Fatal(err)
		}
	}
	l = gateway.Listener(l, config, slog.New(slog.DiscardHandler))
	srv := gateway.NewServer(h)
	srv.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return l.Addr().String()
}

// echoProto is a gateway in front of a dependency; the response has the protocol that
// the gateway got in its body.
var echoProto = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, r.Proto)
})

// pairIn writes a certificate and its key into a folder and returns the settings.
func pairIn(t *testing.T, dir string, leaf certtest.Leaf) gateway.TLS {
	t.Helper()
	c := gateway.TLS{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	certtest.Write(t, c.Cert, leaf.Cert)
	certtest.Write(t, c.Key, leaf.Key)
	return c
}

// caller returns a client that speaks what it is told to.
func caller(t *testing.T, c *tls.Config, set func(*http.Protocols)) *http.Client {
	t.Helper()
	var p http.Protocols
	set(&p)
	tr := &http.Transport{Protocols: &p, TLSClientConfig: c}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func http2(p *http.Protocols) { p.SetHTTP2(true); p.SetUnencryptedHTTP2(true) }

func TestListenerSpeaksBoth(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	settings := pairIn(t, t.TempDir(), ca.Issue("127.0.0.1", nil))
	secure, clear := "https://"+serveOn(t, &settings, echoProto), "http://"+serveOn(t, nil, echoProto)
	for _, url := range []string{secure, clear} {
		for want, set := range map[string]func(*http.Protocols){"HTTP/1.1": http1, "HTTP/2.0": http2} {
			resp, err := caller(t, &tls.Config{RootCAs: ca.Pool()}, set).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != want || resp.Proto != want {
				t.Errorf("%s: the gateway got %s, the caller %s; want %s", url, body, resp.Proto, want)
			}
		}
	}
	// In clear to a port of TLS: the caller is told.
	resp, err := http.Get("http" + strings.TrimPrefix(secure, "https"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(body), "HTTPS server") {
		t.Errorf("got %s: %s", resp.Status, body)
	}
}

// TestListenerDemandsCertificates: who has none, or one of another authority, is
// refused; and so is one whose authority was taken off, even by a ticket of before.
func TestListenerDemandsCertificates(t *testing.T) {
	ca, mine, stranger := certtest.NewCA(t, "ca"), certtest.NewCA(t, "mine"), certtest.NewCA(t, "stranger")
	dir := t.TempDir()
	settings := pairIn(t, dir, ca.Issue("127.0.0.1", nil))
	settings.ClientCA = filepath.Join(dir, "clients.pem")
	certtest.Write(t, settings.ClientCA, mine.PEM)
	url := "https://" + serveOn(t, &settings, echoProto)
	with := func(leaf *certtest.Leaf, cache tls.ClientSessionCache) *tls.Config {
		c := &tls.Config{RootCAs: ca.Pool(), ClientSessionCache: cache}
		if leaf != nil {
			c.Certificates = []tls.Certificate{leaf.TLS(t)}
		}
		return c
	}
	ours, theirs := mine.Issue("caller", nil), stranger.Issue("caller", nil)
	past := mine.Issue("caller", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	get := func(c *tls.Config) (resumed bool, err error) {
		resp, err := caller(t, c, http2).Get(url)
		if err != nil {
			return false, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.TLS.DidResume, nil
	}
	for name, leaf := range map[string]*certtest.Leaf{"none": nil, "another authority": &theirs, "expired": &past} {
		if _, err := get(with(leaf, nil)); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	cache := tls.NewLRUClientSessionCache(1)
	if _, err := get(with(&ours, cache)); err != nil {
		t.Fatal(err)
	}
	if resumed, err := get(with(&ours, cache)); err != nil || !resumed {
		t.Errorf("resumed %v, %v; want a session that is resumed", resumed, err)
	}
	certtest.Write(t, settings.ClientCA, stranger.PEM)
	time.Sleep(1100 * time.Millisecond) // the files are looked at once a second
	if resumed, err := get(with(&ours, cache)); err == nil {
		t.Errorf("let in by an authority that is gone, resumed %v", resumed)
	}
	if _, err := get(with(&theirs, nil)); err != nil {
		t.Errorf("the new authority: %v", err)
	}
}

func TestListenerMinVersion(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	for least, refused := range map[uint16]uint16{0: tls.VersionTLS11, tls.VersionTLS12: tls.VersionTLS11, tls.VersionTLS13: tls.VersionTLS12} {
		settings := pairIn(t, t.TempDir(), ca.Issue("127.0.0.1", nil))
		settings.MinVersion = least
		address := serveOn(t, &settings, echoProto)
		for version, good := range map[uint16]bool{refused: false, refused + 1: true} {
			c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.Pool(), MinVersion: version, MaxVersion: version})
			if (err == nil) != good {
				t.Errorf("at least %s: %s got %v", tls.VersionName(least), tls.VersionName(version), err)
			}
			if err == nil {
				c.Close()
			}
		}
	}
}

func TestFaultyTLS(t *testing.T) {
	for want, c := range map[string]gateway.TLS{
		"no certificate":     {},
		"no such file":       {Cert: "none", Key: "none"},
		"belong together":    {Cert: "none"},
		"min_version of TLS": {Cert: "none", Key: "none", MinVersion: tls.VersionTLS10},
	} {
		if _, err := c.Config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
}

// TestListenerRotatesUnderLoad: the gateway's certificate changes while callers come
// and go, and none of them fails.
func TestListenerRotatesUnderLoad(t *testing.T) {
	ca, dir := certtest.NewCA(t, "ca"), t.TempDir()
	settings := pairIn(t, dir, ca.Issue("127.0.0.1", nil))
	url := "https://" + serveOn(t, &settings, echoProto)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var requests atomic.Int64
	var serials sync.Map
	for i := range 6 {
		load.Go(func() {
			set := http1
			if i%2 == 0 {
				set = http2
			}
			for n := 0; ctx.Err() == nil; n++ {
				client := caller(t, &tls.Config{RootCAs: ca.Pool()}, set)
				for range 5 {
					resp, err := client.Get(url)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					serials.Store(resp.TLS.PeerCertificates[0].SerialNumber.String(), true)
					requests.Add(1)
				}
				client.CloseIdleConnections()
			}
		})
	}
	seen := func() (n int) { serials.Range(func(any, any) bool { n++; return true }); return n }
	for n := range 3 {
		if n > 0 {
			pairIn(t, dir, ca.Issue("127.0.0.1", nil))
		}
		for end := time.Now().Add(time.Minute); seen() <= n && time.Now().Before(end) && !t.Failed(); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	stop()
	load.Wait()
	if seen() < 3 {
		t.Errorf("%d certificates were seen, want 3", seen())
	}
	t.Logf("%d requests, %d certificates", requests.Load(), seen())
}

// TestErrorsNameTheCause: a caller of the gateway learns what is wrong with the
// connection to the dependency, and no name or address of it.
func TestErrorsNameTheCause(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	t.Cleanup(secure.Close)
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, secure.URL), Retryer: retryer(t, quick)})
	got := readProblem(t, call(t, http.MethodGet, address+"/a", nil, nil))
	if !strings.Contains(got.Detail, "the server's certificate is signed by an unknown authority") || strings.Contains(got.Detail, "127.0.0.1") {
		t.Errorf("detail %q", got.Detail)
	}
}
