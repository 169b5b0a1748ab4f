package upstream_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/internal/testkit/certtest"
)

// reach returns an Upstream that is closed when the test ends.
func reach(t *testing.T, c upstream.Config) *upstream.Upstream {
	t.Helper()
	u, err := upstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// serveTLS starts a server of TLS, of HTTP/2 too unless the configuration names
// other protocols, and returns its address.
func serveTLS(t *testing.T, config *tls.Config, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS, s.EnableHTTP2 = config, config.NextProtos == nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// raw serves each connection with one function, which owns it.
func raw(t *testing.T, serve func(c net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				defer context.AfterFunc(t.Context(), func() { c.Close() })()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// file puts data into a new file and returns its path.
func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	certtest.Write(t, path, data)
	return path
}

// post sends a request with a body of that size, bounded in time.
func post(t *testing.T, u http.RoundTripper, url string, size int) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	return u.RoundTrip(req)
}

// proto is a handler that says which protocol the request came in.
var proto = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, r.Proto)
})

// readAll returns the body of a response, and closes it.
func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
