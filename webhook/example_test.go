package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/storetest"
	"github.com/forbear-go/forbear/webhook"
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

	store := &storetest.Memory{}
	d, err := webhook.New(webhook.Config{
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

// Receive webhooks: check the signature over the body as it came, and
// recognise duplicates by the id.
func ExampleVerify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	seen := map[string]bool{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		id := r.Header.Get("Webhook-Id")
		if err := webhook.Verify(secret, id, r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature"), body, time.Unix(1614265330, 0)); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !seen[id] {
			seen[id] = true
			fmt.Printf("%s: %s\n", id, body)
		}
		w.WriteHeader(http.StatusNoContent)
	}
	for _, signature := range []string{"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,forged"} {
		r := httptest.NewRequest(http.MethodPost, "/hook", http.NoBody)
		r.Body = io.NopCloser(strings.NewReader(`{"test": 2432232314}`))
		r.Header.Set("Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		r.Header.Set("Webhook-Timestamp", "1614265330")
		r.Header.Set("Webhook-Signature", signature)
		w := httptest.NewRecorder()
		handler(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// msg_p5jXN8AQM9LWM0D4loKWxJek: {"test": 2432232314}
	// 204
	// 401
}

// Keep webhooks away from the inside of a network. It is the address that is
// looked at, after names were resolved, whatever its spelling.
func ExampleGuard() {
	guard := webhook.Guard{}
	for _, address := range []string{"https://example.com/hook", "http://169.254.169.254/latest/meta-data", "http://0x7f.1/", "https://user:password@example.com/"} {
		fmt.Println(guard.CheckURL(address))
	}
	// Output:
	// <nil>
	// address not allowed: 169.254.169.254 is not public
	// address not allowed: host "0x7f.1" is a number in disguise
	// invalid url: credentials do not belong there
}

// Deliver the alerts about dead letters as webhooks, too.
func ExampleNewNotifier() {
	store := &storetest.Memory{}
	d, err := webhook.New(webhook.Config{Store: store, Alerts: store, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	n, err := webhook.NewNotifier(ctx, d, webhook.Endpoint{URL: "https://ops.example.com/alerts", Secrets: []string{webhook.NewSecret()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	alerter := deadletter.NewAlerter(store, quiet, n)
	for _, h := range alerter.Health() {
		fmt.Println(h.Name, h.Healthy)
	}
	// Output:
	// log true
	// webhook true
}
