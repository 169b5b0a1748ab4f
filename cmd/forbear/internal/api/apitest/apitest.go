// Package apitest runs the delivery API for tests of the commands that call it.
package apitest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
)

// Token is the token that the API demands.
const Token = "a-token-for-the-tests"

// Receiver is what an endpoint may be: its path is the status of its responses. It is
// safe for concurrent use.
type Receiver struct {
	URL string

	mu     sync.Mutex
	bodies []string
}

// Bodies returns what has come.
func (r *Receiver) Bodies() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// Start runs the API and a receiver until the test ends, and returns the API's address.
func Start(t *testing.T) (address string, receiver *Receiver) {
	t.Helper()
	s, err := durable.New(t.Context(), durable.Options{
		Database: filepath.Join(t.TempDir(), "forbear.db"), Token: Token,
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	receiver = &Receiver{}
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		receiver.mu.Lock()
		receiver.bodies = append(receiver.bodies, string(body))
		receiver.mu.Unlock()
		if r.URL.Path != "/ok" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	receiver.URL = sink.URL
	api := httptest.NewServer(s.Handler)
	t.Cleanup(func() {
		api.Close()
		cancel()
		<-done
		_ = s.Close()
		sink.Close()
	})
	return api.URL, receiver
}
