// Command stripe is a program of docs/guides/sdks.md: it asks for a payment.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// newClient returns a client of Stripe. url is "" for Stripe itself.
func newClient(key, url string) *stripe.Client {
	retryer := forbear.Must(forbear.New("stripe", forbear.Policy{
		Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
	}))
	settings := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Transport: httpretry.NewTransport(nil, retryer)},
		MaxNetworkRetries: stripe.Int64(0), // one layer retries
	}
	if url != "" {
		settings.URL = &url
	}
	return stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(settings)))
}

func main() {
	client := newClient(os.Getenv("STRIPE_KEY"), os.Getenv("STRIPE_URL"))

	// The SDK sends an Idempotency-Key with each write, and all attempts share it.
	intent, err := client.V1PaymentIntents.Create(context.Background(), &stripe.PaymentIntentCreateParams{
		Amount:   stripe.Int64(1000),
		Currency: stripe.String(stripe.CurrencyUSD),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(intent.ID, intent.Status)
}
