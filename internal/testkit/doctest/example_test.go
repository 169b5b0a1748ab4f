package doctest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// send is some operation of a program.
func send(context.Context) error { return nil }

// The program of the README.
func Example() {
	ctx := context.Background()
	payments := forbear.Must(forbear.New("payments", forbear.Policy{}))
	client := &http.Client{Transport: httpretry.NewTransport(nil, payments)} // every request of it
	err := payments.Do(ctx, send)                                            // or any function
	fmt.Println(client.Transport != nil, err)
	// Output: true <nil>
}

// The first program of the HTTP guide.
func Example_httpClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	url, ctx := server.URL, context.Background()
	retryer, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	client := &http.Client{Transport: httpretry.NewTransport(nil, retryer)}

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		return // the network failed: a *forbear.Error that unwraps to the original
	}
	defer resp.Body.Close()
	if why, ok := httpretry.Outcome(resp); ok {
		fmt.Println(resp.StatusCode, why.Reason, why.Reason.Rule(), why.Attempts, why.RetryAfter)
	}
	// Output: 503 after_exceeds_deadline R-5 1 1m40s
}

// The other lines of the HTTP guide.
func Example_httpOptions() {
	ctx := context.Background()
	retryer := forbear.Must(forbear.New("payments", forbear.Policy{}))
	policy := forbear.Policy{Keys: forbear.KeyGenerate}
	ctx = forbear.WithMaxRetries(ctx, 0)
	ctx = forbear.WithCorrelationID(ctx, "order-4711")
	set, err := forbear.NewSet("checkout", forbear.Policy{})
	if err != nil {
		return
	}
	err = set.Configure("search", forbear.Policy{Total: 2 * time.Second, MaxRetries: 1})
	if err != nil {
		return
	}
	transport := httpretry.NewTransport(nil, nil, httpretry.WithRetryer(func(req *http.Request) *forbear.Retryer {
		return set.Retryer(known(req.URL.Host))
	}))
	_, _, _, _ = ctx, retryer, policy, transport
	// Output:
}

func known(host string) string { return host }
