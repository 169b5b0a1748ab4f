package durable

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook"
)

// The trace of who submitted a message is stored with it and reaches the receiver
// with each delivery, retries included; whether it came through the API or through
// the outbox. The same message from another span is a duplicate.
func TestDeliveriesCarryTheTrace(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent := func(span int) string { return fmt.Sprintf("00-%s-%016x-01", trace, span) }
	databases(t, func(t *testing.T, name string) {
		var mu sync.Mutex
		seen := map[string][]string{}
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("Webhook-Id")
			seen[id] = append(seen[id], fmt.Sprintf("%q %q %s", r.Header.Values("Traceparent"), r.Header.Values("Tracestate"), r.Header.Get("X-Correlation-Id")))
			if len(seen[id]) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(receiver.Close)
		svc, stop := start(t, Options{Database: name})
		defer stop()
		put(t, svc, webhook.Endpoint{ID: "a", URL: receiver.URL})
		for span, want := range []int{202, 200} { // from one span, and again from another
			code, body := call(t, svc, "POST", "/v1/messages", `{"id":"api","endpoint":"a","payload":{}}`,
				"Traceparent", parent(1+span), "Tracestate", "a=1")
			if code != want {
				t.Errorf("from span %d: %d %v, want %d", 1+span, code, body, want)
			}
		}
		tx, err := outside(t, name).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := edge.WithTraceContext(t.Context(), edge.ParseTraceContext(parent(3), ""))
		if _, err := (webhook.Outbox{SQLite: !svc.postgres()}).Insert(ctx, tx, webhook.Message{ID: "outbox", Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		want := map[string][]string{
			"api":    slices.Repeat([]string{fmt.Sprintf(`[%q] ["a=1"] %s`, parent(1), trace)}, 2),
			"outbox": slices.Repeat([]string{fmt.Sprintf(`[%q] [] %s`, parent(3), trace)}, 2),
		}
		for range 1000 {
			mu.Lock()
			done := len(seen["api"]) >= 2 && len(seen["outbox"]) >= 2
			mu.Unlock()
			if done {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		for id, list := range want {
			if !slices.Equal(seen[id], list) {
				t.Errorf("%s: the receiver saw %q, want %q", id, seen[id], list)
			}
		}
	})
}
