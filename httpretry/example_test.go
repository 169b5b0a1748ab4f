package httpretry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// An http.Client that retries: a payment with an idempotency key, which all
// attempts share, against a server that is busy for a moment.
func ExampleNewTransport() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s %s, key %.8s, X-Retry-Attempt %s\n", r.Method, body, r.Header.Get("Idempotency-Key"), r.Header.Get("X-Retry-Attempt"))
		if requests < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	policy := forbear.Policy{Backoff: forbear.Backoff{Base: 10 * time.Millisecond}}
	payments, err := forbear.New("payments", policy, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: httpretry.NewTransport(nil, payments)}

	req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"amount":100}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Idempotency-Key", "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2")
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// POST {"amount":100}, key 7c4a8d09, X-Retry-Attempt 0
	// POST {"amount":100}, key 7c4a8d09, X-Retry-Attempt 1
	// POST {"amount":100}, key 7c4a8d09, X-Retry-Attempt 2
	// 200 OK
}

// When the retrying stops, the response comes as the server sent it, and
// Outcome says why: here, because the server's wait is longer than a call may
// take. Nothing is waited for.
func ExampleOutcome() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "100")
		http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
	}))
	defer server.Close()

	payments := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog()))
	client := &http.Client{Transport: httpretry.NewTransport(nil, payments)}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s: %s", resp.Status, body)
	if why, ok := httpretry.Outcome(resp); ok {
		fmt.Println(why.Reason, why.Reason.Rule(), why.Attempts, why.RetryAfter)
	}
	// Output:
	// 503 Service Unavailable: down for maintenance
	// after_exceeds_deadline R-5 1 1m40s
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"120", "Fri, 20 Nov 2026 12:00:30 GMT", "0", "120s", "99999999999999999999"} {
		wait, ok := httpretry.ParseRetryAfter(http.Header{"Retry-After": {value}}, now)
		fmt.Println(min(wait, 24*time.Hour), ok)
	}
	// Output:
	// 2m0s true
	// 30s true
	// 0s true
	// 0s false
	// 24h0m0s true
}

// One client for all dependencies of a service, each with a policy and a budget
// of its own.
func ExampleWithRetryer() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	set, err := forbear.NewSet("checkout", forbear.Policy{
		Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond},
	}, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := set.Configure("search", forbear.Policy{Disabled: true}); err != nil {
		fmt.Println(err)
		return
	}
	dependencies := map[string]string{"/search": "search", "/pay": "payments"}
	client := &http.Client{Transport: httpretry.NewTransport(nil, nil,
		httpretry.WithRetryer(func(req *http.Request) *forbear.Retryer {
			return set.Retryer(dependencies[req.URL.Path]) // or by req.URL.Host
		}))}

	for _, path := range []string{"/search", "/pay"} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		why, _ := httpretry.Outcome(resp)
		fmt.Println(why.Dependency, why.Attempts, why.Reason)
	}
	// Output:
	// search 1 disabled
	// payments 4 exhausted
}
