package dispatch

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forbeartest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// respond is a transport that a test writes as a function.
type respond func(*http.Request) (*http.Response, error)

func (f respond) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// status responds with nothing but a status, at once.
func status(code int) respond {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), ProtoMajor: 1, ProtoMinor: 1}, nil
	}
}

// rig is one lane of a dispatcher whose loop does not run: what its jobs write
// back stays in the dispatcher's channel, where tests read it.
type rig struct {
	*testing.T
	d      *Dispatcher
	to     *receiver
	store  *memstore.Store
	events *forbeartest.Recorder
}

// newRig returns a rig for endpoint "a".
func newRig(t *testing.T, rt http.RoundTripper, e webhook.Endpoint, opts ...forbear.Option) *rig {
	t.Helper()
	s, events := &memstore.Store{}, &forbeartest.Recorder{}
	d, err := New(Config{
		Store: s, Alerts: s, Transport: rt, Logger: slog.New(slog.DiscardHandler), Secrets: LocalSecrets("TEST_", ""),
		Lookup:  func(context.Context, string) error { return nil },
		Options: append(opts, forbear.WithoutLog(), forbear.WithObserver(events.Observer())),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.ID = "a"
	if e.URL == "" {
		e.URL = "https://example.com/"
	}
	if _, err := d.PutEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, d.receiver("a"), s, events}
}

// job returns a job for a delivery that was claimed just now.
func (r *rig) job() *job {
	return &job{to: r.to, delivery: &store.Delivery{
		ID: 7, Fence: 3, Claims: 1, Endpoint: "a", Start: time.Now(), LeaseEnd: time.Now().Add(time.Minute),
		Message: webhook.Message{ID: "m", Endpoints: []string{"a"}, Created: time.Now(), Body: []byte("{}")},
	}}
}

// process does a job and returns its one outcome.
func (r *rig) process(j *job) store.WriteBack {
	r.Helper()
	j.process()
	return r.outcome()
}

// outcome returns the one outcome that was written back.
func (r *rig) outcome() store.WriteBack {
	r.Helper()
	if n := len(r.d.outcomes); n != 1 {
		r.Fatalf("%d outcomes of one job", n)
	}
	return <-r.d.outcomes
}

// chores does what would be stored apart from the workers.
func (r *rig) chores() {
	for len(r.d.chores) > 0 {
		(<-r.d.chores)(r.Context())
	}
	r.d.shareAll(r.Context())
}

// alerts returns the reasons of all alerts.
func (r *rig) alerts() (reasons []string) {
	r.Helper()
	r.chores()
	list, err := r.store.AlertPage(r.Context(), 0, 100)
	if err != nil {
		r.Fatal(err)
	}
	for _, a := range list {
		reasons = append(reasons, a.Reason)
	}
	return reasons
}
