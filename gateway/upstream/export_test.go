package upstream

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// NewTrusting is New for a server of a test, whose certificate is trusted.
func NewTrusting(t *testing.T, c Config, srv *httptest.Server) *Upstream {
	t.Helper()
	if srv.TLS == nil {
		u, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return newSingle(c, newAging(func() *pool {
		transport := newTransport(c)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		return newPool(transport)
	}, c.MaxAge))
}

// LookAgain makes the next request look the name up.
func LookAgain(u *Upstream) {
	l := u.lookup
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Time{}
}

// AwaitLook waits for the look under way.
func AwaitLook(u *Upstream) {
	l := u.lookup
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

// NewLookup returns the refresh of a lookup.
func NewLookup(name string, r Resolver) func(context.Context) error {
	return newLookup(Config{DNS: name, Resolver: r, Logger: slog.New(slog.DiscardHandler)}, func([]string) {}).refresh
}
