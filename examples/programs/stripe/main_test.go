package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stripe/stripe-go/v85"

	"github.com/forbear-go/forbear/examples/programs/internal/flaky"
	"github.com/forbear-go/forbear/internal/testkit/guide"
)

// TestStripe: the payment is asked for three times, with one key.
func TestStripe(t *testing.T) {
	server := flaky.New(t, httptest.NewServer, func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id": "pi_1", "object": "payment_intent", "status": "requires_payment_method"}`)
		})
	t.Setenv("STRIPE_URL", server.URL)
	t.Setenv("STRIPE_KEY", "sk_test_1")
	guide.Check(t, "sdks#Stripe", main)

	sent := server.Attempts(t, "POST /v1/payment_intents")
	if string(sent.Body) != "amount=1000&currency=usd" || sent.Header.Get("Idempotency-Key") == "" {
		t.Errorf("received %q with the key %q", sent.Body, sent.Header.Get("Idempotency-Key"))
	}
	if server.Operations() != 1 {
		t.Errorf("%d operations, want one", server.Operations())
	}
}

// TestOnlyForbearRetries: to a server that stays down a call is sent four times,
// and not once more by the SDK.
func TestOnlyForbearRetries(t *testing.T) {
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := newClient("sk_test_1", server.URL).V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{})
	if err == nil || sent.Load() != 4 {
		t.Errorf("%v after %d attempts, want a failure after 4", err, sent.Load())
	}
}
