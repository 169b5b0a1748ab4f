package dispatch_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// tlsSink is a receiver over TLS that demands a certificate of its clients' authority.
type tlsSink struct {
	*httptest.Server
	clients atomic.Pointer[x509.CertPool]
	mu      sync.Mutex
	seen    map[string]string // who has sent what, by id
}

func newTLSSink(t *testing.T, own certtest.Leaf, clients *certtest.CA, http2 bool, version uint16) *tlsSink {
	t.Helper()
	s := &tlsSink{seen: map[string]string{}}
	s.clients.Store(clients.Pool())
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[r.Header.Get("Webhook-Id")] = r.TLS.PeerCertificates[0].Subject.CommonName + " " + string(body)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = http2
	s.TLS = &tls.Config{Certificates: []tls.Certificate{own.TLS(t)}, MaxVersion: version}
	s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.TLS.Clone()
		c.GetConfigForClient = nil
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, s.clients.Load()
		return c, nil
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *tlsSink) has(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id]
}

// secretFiles writes files into a new folder.
func secretFiles(t *testing.T, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range files {
		certtest.Write(t, filepath.Join(dir, name), data)
	}
	return dir
}

var thisMachine = webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func awaited(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// An endpoint's certificate is verified by its own authorities, and ours is shown; a
// refusal, by either side, is a dead letter after one attempt.
func TestEndpointTLS(t *testing.T) {
	servers, clients, strangers := certtest.NewCA(t, "servers"), certtest.NewCA(t, "clients"), certtest.NewCA(t, "strangers")
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
	client, stranger := clients.Issue("forbear", nil), strangers.Issue("forbear", nil)
	dir := secretFiles(t, map[string][]byte{
		"ca": servers.PEM, "other": strangers.PEM, "cert": client.Cert, "key": client.Key, "both": append(client.Cert, client.Key...),
		"stranger": append(stranger.Cert, stranger.Key...),
	})
	own := webhook.TLS{CA: "file:ca", Cert: "file:cert", Key: "file:key"}
	for _, tt := range []struct {
		name    string
		server  certtest.Leaf
		http2   bool
		version uint16
		conf    webhook.TLS
		dead    bool
	}{
		{"HTTP/1.1", servers.Issue("127.0.0.1", nil), false, 0, own, false},
		{"HTTP/2", servers.Issue("127.0.0.1", nil), true, 0, own, false},
		{"TLS 1.2", servers.Issue("127.0.0.1", nil), true, tls.VersionTLS12, own, false},
		{"one file", servers.Issue("127.0.0.1", nil), true, 0, webhook.TLS{CA: "file:ca", Cert: "file:both", Key: "file:both"}, false},
		{"another name", servers.Issue("hooks.example", nil), true, 0, webhook.TLS{CA: "file:ca", Cert: "file:cert", Key: "file:key", ServerName: "hooks.example"}, false},
		{"not that name", servers.Issue("hooks.example", nil), true, 0, own, true},
		{"unknown authority", servers.Issue("127.0.0.1", nil), true, 0, webhook.TLS{CA: "file:other", Cert: "file:cert", Key: "file:key"}, true},
		{"the system's authorities", servers.Issue("127.0.0.1", nil), true, 0, webhook.TLS{Cert: "file:cert", Key: "file:key"}, true},
		{"expired", servers.Issue("127.0.0.1", expired), true, 0, own, true},
		{"none shown", servers.Issue("127.0.0.1", nil), true, 0, webhook.TLS{CA: "file:ca"}, true},
		{"none shown, TLS 1.2", servers.Issue("127.0.0.1", nil), false, tls.VersionTLS12, webhook.TLS{CA: "file:ca"}, true},
		{"a stranger's shown", servers.Issue("127.0.0.1", nil), true, 0, webhook.TLS{CA: "file:ca", Cert: "file:stranger", Key: "file:stranger"}, true},
		{"a stranger's shown, HTTP/1.1", servers.Issue("127.0.0.1", nil), false, 0, webhook.TLS{CA: "file:ca", Cert: "file:stranger", Key: "file:stranger"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink := newTLSSink(t, tt.server, clients, tt.http2, tt.version)
			s := &memstore.Store{}
			d := run(t, s, dispatch.Config{Guard: thisMachine, Secrets: dispatch.LocalSecrets("", dir)}, webhook.Endpoint{ID: "a", URL: sink.URL, TLS: &tt.conf})
			body := strings.Repeat("x", 200<<10) // more than a socket takes at once
			if _, err := d.Accept(t.Context(), webhook.Message{ID: "m", Endpoints: []string{"a"}, Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
			if !tt.dead {
				awaited(t, "the message", func() bool { return sink.has("m") == "forbear "+body })
				return
			}
			var letters []deadletter.Letter
			awaited(t, "the letter", func() bool {
				letters, _ = s.List(t.Context(), queue.Filter{})
				return len(letters) > 0
			})
			if l := letters[0]; !strings.HasPrefix(l.ErrorType, "tls_") || l.Attempts != 1 || sink.has("m") != "" {
				t.Errorf("the letter: %s after %d attempts, %s", l.ErrorType, l.Attempts, l.Description)
			}
		})
	}
}

// Files that change are used within a second or so; half a rotation changes nothing; and
// what vanishes or expires holds the endpoint, so that nothing is lost and nothing goes out
// without.
func TestEndpointTLSRotates(t *testing.T) {
	servers, first, second := certtest.NewCA(t, "servers"), certtest.NewCA(t, "first"), certtest.NewCA(t, "second")
	one, two := first.Issue("one", nil), second.Issue("two", nil)
	dir := secretFiles(t, map[string][]byte{"ca": servers.PEM, "cert": one.Cert, "key": one.Key})
	sink := newTLSSink(t, servers.Issue("127.0.0.1", nil), first, true, 0)
	s := &memstore.Store{}
	d := run(t, s, dispatch.Config{Guard: thisMachine, Secrets: dispatch.LocalSecrets("", dir)}, webhook.Endpoint{ID: "a", URL: sink.URL, TLS: &webhook.TLS{CA: "file:ca", Cert: "file:cert", Key: "file:key"}})
	arrives := func(id, by string) {
		t.Helper()
		if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		awaited(t, id, func() bool { return sink.has(id) == by+" x" })
	}
	arrives("before", "one")
	certtest.Write(t, filepath.Join(dir, "cert"), two.Cert)
	time.Sleep(1100 * time.Millisecond)
	arrives("half-way", "one")
	certtest.Write(t, filepath.Join(dir, "key"), two.Key)
	sink.clients.Store(second.Pool())
	time.Sleep(1100 * time.Millisecond)
	arrives("after", "two")
	held := func(id, why string) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond)
		if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		awaited(t, "a hold", func() bool { return strings.Contains(d.Held()["a"], why) })
	}
	goesOn := func(id string) {
		t.Helper()
		if out, err := d.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !out.OK {
			t.Errorf("the test: %+v, %v", out, err)
		}
		awaited(t, id, func() bool { return sink.has(id) == "two x" })
	}
	if err := os.Remove(filepath.Join(dir, "ca")); err != nil {
		t.Fatal(err)
	}
	held("vanished", "file:ca")
	certtest.Write(t, filepath.Join(dir, "ca"), servers.PEM)
	goesOn("vanished")
	short := second.Issue("short", func(c *x509.Certificate) { c.NotAfter = time.Now() })
	certtest.Write(t, filepath.Join(dir, "cert"), short.Cert)
	certtest.Write(t, filepath.Join(dir, "key"), short.Key)
	held("expired", "file:cert: the certificate expired at ")
	certtest.Write(t, filepath.Join(dir, "cert"), two.Cert)
	certtest.Write(t, filepath.Join(dir, "key"), two.Key)
	goesOn("expired")
	if list, err := s.List(t.Context(), queue.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("%d letters, %v", len(list), err)
	}
}

// What could not work is refused when it is written, and no error shows what was put in
// the place of a reference.
func TestEndpointTLSIsChecked(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	leaf, other := ca.Issue("forbear", nil), ca.Issue("other", nil)
	old := ca.Issue("old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	dir := secretFiles(t, map[string][]byte{
		"ca": ca.PEM, "cert": leaf.Cert, "key": leaf.Key, "other": other.Key, "old": append(old.Cert, old.Key...), "text": []byte("no PEM"),
	})
	d := run(t, &memstore.Store{}, dispatch.Config{Guard: thisMachine, Secrets: dispatch.LocalSecrets("", dir)})
	for _, tt := range []struct {
		name, url string
		conf      webhook.TLS
		want      string
	}{
		{"all of it", "https://example.com/", webhook.TLS{CA: "file:ca", Cert: "file:cert", Key: "file:key", ServerName: "a.example"}, ""},
		{"in clear", "http://example.com/", webhook.TLS{CA: "file:ca"}, "the url must be https"},
		{"nothing", "https://example.com/", webhook.TLS{}, "it is empty"},
		{"half", "https://example.com/", webhook.TLS{Cert: "file:cert"}, "want both cert and key"},
		{"inline", "https://example.com/", webhook.TLS{CA: string(ca.PEM), Cert: "planted", Key: "planted"}, "tls.ca: want a reference"},
		{"no file", "https://example.com/", webhook.TLS{CA: "file:none"}, "file:none"},
		{"no PEM", "https://example.com/", webhook.TLS{CA: "file:text"}, "file:text: it has no PEM certificate"},
		{"another's key", "https://example.com/", webhook.TLS{Cert: "file:cert", Key: "file:other"}, "file:cert and file:other: not a certificate with its key"},
		{"expired", "https://example.com/", webhook.TLS{Cert: "file:old", Key: "file:old"}, "file:old: the certificate expired"},
		{"a name of many", "https://example.com/", webhook.TLS{ServerName: "*.example"}, "server_name"},
	} {
		_, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: tt.url, TLS: &tt.conf})
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || !errors.Is(err, webhook.ErrInvalid) || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case strings.Contains(err.Error(), "planted") || strings.Contains(err.Error(), "BEGIN"):
			t.Errorf("%s: the error shows it: %v", tt.name, err)
		}
	}
}
