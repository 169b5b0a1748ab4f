package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/hashicorp/go-retryablehttp"
)

// post makes one POST and returns the status of its response.
type post func(ctx context.Context, url, body string) (int, error)

// contender is a client. Where it waits between attempts, it waits as little as it
// can.
type contender struct {
	name string
	open func(rt http.RoundTripper) (post, error)
}

// contenders begins with the two that are held against each other.
var contenders = []contender{
	{"net/http", func(rt http.RoundTripper) (post, error) { return through(rt), nil }},
	{"forbear", openForbear},
	{"go-retryablehttp", openRetryable},
	{"failsafehttp", func(rt http.RoundTripper) (post, error) {
		return through(failsafehttp.NewRoundTripper(rt, failsafehttp.NewRetryPolicyBuilder().Build())), nil
	}},
}

// openForbear has the default policy, but no breaker, which a thousand failures
// would open, and a budget that refuses nothing.
func openForbear(rt http.RoundTripper) (post, error) {
	p := forbear.Policy{Backoff: forbear.Backoff{Base: time.Millisecond}}
	p.Breaker.Disabled = true
	r, err := forbear.New("stale", p, forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1<<20, 0)))
	if err != nil {
		return nil, err
	}
	return through(httpretry.NewTransport(rt, r)), nil
}

func openRetryable(rt http.RoundTripper) (post, error) {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: rt}
	client.Logger = nil
	client.RetryWaitMin, client.RetryWaitMax = time.Millisecond, 2*time.Millisecond
	return func(ctx context.Context, url, body string) (int, error) {
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url, []byte(body))
		if err != nil {
			return 0, err
		}
		return finish(client.Do(req))
	}, nil
}

func through(rt http.RoundTripper) post {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context, url, body string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		return finish(client.Do(req))
	}
}
