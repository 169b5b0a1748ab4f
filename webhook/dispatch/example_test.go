package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// Deliver a message to an endpoint that fails the first time. The store is one
// in memory here; sqlstore's keep what they have accepted.
func ExampleDispatcher() {
	delivered, attempts := make(chan struct{}), 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts++
		fmt.Printf("attempt %d of %s\n", attempts, r.Header.Get("Webhook-Id"))
		if attempts == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		close(delivered)
	}))
	defer receiver.Close()

	store := &memstore.Store{}
	d, err := dispatch.New(dispatch.Config{
		Store: store, Alerts: store, Logger: quiet,
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, // for this example
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()

	if _, err := d.PutEndpoint(ctx, webhook.Endpoint{ID: "acme", URL: receiver.URL, Secrets: []string{webhook.NewSecret()}}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := d.Accept(ctx, webhook.Message{ID: "order-4711", Endpoints: []string{"acme"}, Body: []byte(`{"order":4711}`)}); err != nil {
		fmt.Println(err) // nothing was promised: send it again
		return
	}
	<-delivered
	cancel()
	fmt.Println(<-done)
	// Output:
	// attempt 1 of order-4711
	// attempt 2 of order-4711
	// <nil>
}

// Deliver the alerts about dead letters as webhooks, too.
func ExampleNewNotifier() {
	store := &memstore.Store{}
	d, err := dispatch.New(dispatch.Config{Store: store, Alerts: store, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	n, err := dispatch.NewNotifier(ctx, d, webhook.Endpoint{URL: "https://ops.example.com/alerts", Secrets: []string{webhook.NewSecret()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	alerter := queue.NewAlerter(store, quiet, n)
	for _, h := range alerter.Health() {
		fmt.Println(h.Name, h.Healthy)
	}
	// Output:
	// log true
	// webhook true
}
