// Command stripe is a program of docs/guides/programs.md: it asks for a payment.
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

func main() {
	retryer := forbear.Must(forbear.New("stripe", forbear.Policy{
		Backoff: forbear.Backoff{Base: 200 * time.Millisecond, Cap: 2 * time.Second},
	}))
	settings := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Transport: httpretry.NewTransport(nil, retryer)},
		MaxNetworkRetries: stripe.Int64(0),
	}
	if url := os.Getenv("STRIPE_URL"); url != "" {
		settings.URL = stripe.String(url)
	}
	client := stripe.NewClient(os.Getenv("STRIPE_KEY"), stripe.WithBackends(stripe.NewBackendsWithConfig(settings)))

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
