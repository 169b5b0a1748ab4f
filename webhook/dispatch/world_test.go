package dispatch_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// receiver is an endpoint whose responses a test decides. Each takes a given
// time, and it keeps count.
type receiver struct {
	mu       sync.Mutex
	respond  func(n int, r *http.Request) int // of send n, from 0
	takes    time.Duration
	sent     []time.Time
	retries  int // of sent
	inFlight int
	most     int // in flight
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	n := len(r.sent)
	r.sent = append(r.sent, time.Now())
	if req.Header.Get("X-Retry-Attempt") != "0" {
		r.retries++
	}
	r.inFlight++
	r.most = max(r.most, r.inFlight)
	takes := r.takes
	status := r.respond(n, req)
	r.mu.Unlock()
	if takes > 0 {
		time.Sleep(takes)
	}
	r.mu.Lock()
	r.inFlight--
	r.mu.Unlock()
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// since returns how many sends there were from t on.
func (r *receiver) since(t time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.sent {
		if !at.Before(t) {
			n++
		}
	}
	return n
}

func always(status int) func(int, *http.Request) int {
	return func(int, *http.Request) int { return status }
}

var quiet = slog.New(slog.DiscardHandler)

// run runs a dispatcher over a store until the test's bubble ends.
func run(t *testing.T, s *memstore.Store, cfg dispatch.Config, endpoints ...webhook.Endpoint) *dispatch.Dispatcher {
	t.Helper()
	cfg.Store, cfg.Alerts = s, s
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	d, err := dispatch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range endpoints {
		if _, err := d.PutEndpoint(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// accept adds n messages to endpoint "a".
func accept(t *testing.T, d *dispatch.Dispatcher, n int) {
	t.Helper()
	msgs := make([]webhook.Message, n)
	for i := range msgs {
		msgs[i] = webhook.Message{Endpoints: []string{"a"}, Body: []byte(`{}`)}
	}
	if _, err := d.Accept(t.Context(), msgs...); err != nil {
		t.Fatal(err)
	}
}
