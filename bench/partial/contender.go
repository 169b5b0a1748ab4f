package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
)

// contender is one column of the tables.
type contender struct {
	name string
	// open returns what makes calls to url over rt, with all that the calls
	// share: budget, breaker.
	open func(rt http.RoundTripper, url string) (call, error)
}

const (
	nameForbear   = "forbear"
	nameUnbroken  = "forbear, no breaker"
	nameBefore    = "forbear before"
	nameFailsafe  = "failsafe-go, defaults"
	nameTuned     = "failsafe-go, tuned"
	nameGobreaker = "gobreaker and retry-go"
	nameR4j       = "resilience4j (model)"
	nameEnvoy     = "Envoy's budget (model)"
	nameEnvoy30   = "Envoy's budget over 30 s (model)"
	nameNone      = "one attempt"
)

func contenders() []contender {
	return []contender{
		{nameForbear, openForbear(breaker.Policy{})},
		{nameUnbroken, openForbear(breaker.Policy{Disabled: true})},
		{nameBefore, openBefore},
		{nameFailsafe, openFailsafe},
		{nameTuned, openTunedFailsafe},
		{nameGobreaker, openGobreaker},
		{nameR4j, openResilience4j},
		{nameEnvoy, openEnvoy(0)},
		{nameEnvoy30, openEnvoy(30 * time.Second)},
		{nameNone, func(rt http.RoundTripper, url string) (call, error) { return through(rt, url), nil }},
	}
}

// policy is the default of forbear but for its base, which is 1 s: the runs are
// short.
func policy(b breaker.Policy) forbear.Policy {
	return forbear.Policy{Backoff: forbear.Backoff{Base: 50 * time.Millisecond}, Breaker: b}
}

func openForbear(b breaker.Policy) func(http.RoundTripper, string) (call, error) {
	return func(rt http.RoundTripper, url string) (call, error) {
		r, err := forbear.New("dependency", policy(b), forbear.WithoutLog())
		if err != nil {
			return nil, err
		}
		return through(httpretry.NewTransport(rt, r), url), nil
	}
}

// through is a call over a transport that does by itself what is to be done.
func through(rt http.RoundTripper, url string) call {
	client := &http.Client{Transport: rt}
	return func(ctx context.Context) bool {
		status, err := attempt(ctx, client, url)
		return err == nil && status == http.StatusOK
	}
}

// attempt sends one request and reads its response.
func attempt(ctx context.Context, client *http.Client, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
