package doctest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/credential/oauth"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/health/probe"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/pace"
)

// The lines of these guides that are not in a program of their own.

func Example_timeouts() {
	reports, err := forbear.New("reports", forbear.Policy{
		PerAttempt: 10 * time.Second,
		MaxRetries: 1,
	})
	base := &http.Transport{HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second}}
	fmt.Println(reports.Policy().Total, err, httpretry.NewTransport(base, reports) != nil)
	// Output: 30s <nil> true
}

func Example_retryAfter() {
	policy := forbear.Policy{WaitHeaders: map[string]string{"X-Come-Back": "seconds"}}
	_, err := forbear.New("payments", policy)
	fmt.Println(err)
	// Output: <nil>
}

func Example_stopping() {
	var policy forbear.Policy
	policy.Budget = budget.Policy{MinRetries: 6}
	policy.MaxConcurrent = breaker.BulkheadSize(100, 250*time.Millisecond, 2) // calls/s at peak, p99, headroom
	retryer, err := forbear.New("payments", policy)
	client := &http.Client{Transport: httpretry.NewTransport(nil, retryer, httpretry.WithPacer(&pace.Pacer{}))}
	fmt.Println(policy.MaxConcurrent, err, client != nil)
	// Output: 50 <nil> true
}

func Example_circuitBreaker() {
	policy := forbear.Policy{Breaker: breaker.Policy{
		FailureRate: 0.7,              // 0.25 to 1; 1 never opens
		OpenFor:     10 * time.Second, // the longest time that it stays open
		SlowCall:    2 * time.Second,  // default: PerAttempt
	}}
	payments := forbear.Must(forbear.New("payments", policy, forbear.WithoutLog()))
	if payments.Breaker().State() == breaker.Open {
		fmt.Println("payments is down; next probe in", payments.Breaker().Wait(time.Now()))
	}
	payments.Breaker().Force(breaker.Open, "jane: maintenance", time.Now())
	payments.Breaker().Release()
	fmt.Println(payments.Breaker().State())
	// Output: open
}

func Example_healthGate() {
	err := func() error {
		var policy forbear.Policy
		policy.Health = health.Policy{MinSuccess: 0.5}
		p, err := probe.Start(probe.Config{URL: "https://payments.internal/health/ready"})
		if err != nil {
			return err
		}
		defer p.Close()
		payments, err := forbear.New("payments", policy, forbear.WithHealthGate(p.Healthy))
		_ = payments
		return err
	}()
	fmt.Println(err)
	// Output: <nil>
}

func Example_oneLayer() {
	mux := http.NewServeMux()
	server := &http.Server{Handler: httpretry.Inbound(mux), ReadHeaderTimeout: 5 * time.Second}
	payments, err := forbear.New("payments", forbear.Policy{Owner: "checkout"}, forbear.WithService("checkout"))
	fmt.Println(payments.Policy().Owner, err, server.Handler != nil)
	// Output: checkout <nil> true
}

func Example_credentials() {
	payments := forbear.Must(forbear.New("payments", forbear.Policy{}))
	tokens := credential.New(&oauth.ClientCredentials{
		URL:    "https://auth.internal/token",
		ID:     "checkout",
		Secret: oauth.Value(os.Getenv("PAYMENTS_SECRET")),
		Scopes: []string{"pay"},
	})
	client := &http.Client{Transport: httpretry.NewTransport(nil, payments, httpretry.WithCredentials(tokens))}
	fmt.Println(client != nil)
	// Output: true
}

func Example_credentialsSource() {
	var vault fakeVault
	tokens := credential.New(credential.SourceFunc(func(ctx context.Context) (credential.Token, error) {
		secret, err := vault.Read(ctx, "payments")
		return credential.Token{Value: "Bearer " + secret}, err
	}))
	token, err := tokens.Token(context.Background())
	fmt.Println(token, err)
	// Output: [redacted] <nil>
}

type fakeVault struct{}

func (fakeVault) Read(context.Context, string) (string, error) { return "t1", nil }
