package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/internal/guide"
)

// TestStripe: the payment is asked for three times, with one key.
func TestStripe(t *testing.T) {
	server := flaky.New(t, func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id": "pi_1", "object": "payment_intent", "status": "requires_payment_method"}`)
		})
	t.Setenv("STRIPE_URL", server.URL)
	t.Setenv("STRIPE_KEY", "sk_test_1")
	guide.Check(t, "programs#Stripe", main)

	sent := server.Attempts(t, "POST /v1/payment_intents")[0]
	if string(sent.Body) != "amount=1000&currency=usd" || sent.Header.Get("Idempotency-Key") == "" {
		t.Errorf("received %q with the key %q", sent.Body, sent.Header.Get("Idempotency-Key"))
	}
	if server.Operations() != 1 {
		t.Errorf("%d operations, want one", server.Operations())
	}
}
