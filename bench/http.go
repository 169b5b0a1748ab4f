package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/hashicorp/go-retryablehttp"
)

const (
	target = "http://stub.invalid/v1/orders/4711"
	paid   = `{"id":4711,"state":"paid"}`
	busy   = `{"error":"busy"}`
)

var payload = bytes.Repeat([]byte("a"), 1024)

// stub is a server in memory: it responds with 503 the given number of times, then
// 200, and begins anew. It reads and closes bodies as a RoundTripper must.
type stub struct {
	failures, calls int
}

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	status, text := http.StatusOK, paid
	if s.calls++; s.calls <= s.failures {
		status, text = http.StatusServiceUnavailable, busy
	} else {
		s.calls = 0
	}
	return &http.Response{
		StatusCode:    status,
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(text)),
		ContentLength: int64(len(text)),
		Request:       req,
	}, nil
}

// requests returns the peers around one HTTP request that gets a 503 the given
// number of times and then 200.
func requests(method string, failures int) []Peer {
	ctx := requestContext()
	through := func(wrap func(http.RoundTripper) http.RoundTripper) func() func() error {
		return func() func() error {
			client := &http.Client{Transport: wrap(&stub{failures: failures})}
			return func() error {
				req, err := newRequest(ctx, method)
				if err != nil {
					return err
				}
				return finish(client.Do(req))
			}
		}
	}
	return []Peer{
		{Name: "net/http, loop by hand", Context: true, New: func() func() error {
			client := &http.Client{Transport: &stub{failures: failures}}
			return func() error { return byHand(ctx, client, method) }
		}},
		{Name: "forbear", Module: modForbear, Context: true, New: through(func(rt http.RoundTripper) http.RoundTripper {
			return httpretry.NewTransport(rt, forbearHTTP(watching))
		})},
		{Name: "go-retryablehttp", Module: modRetryable, Context: true, New: func() func() error {
			client := retryable(&stub{failures: failures})
			return func() error {
				var body any
				if method == http.MethodPut {
					body = payload
				}
				req, err := retryablehttp.NewRequestWithContext(ctx, method, target, body)
				if err != nil {
					return err
				}
				return finish(client.Do(req))
			}
		}},
		{Name: "go-retryablehttp as transport", Module: modRetryable, Context: true, New: through(func(rt http.RoundTripper) http.RoundTripper {
			return &retryablehttp.RoundTripper{Client: retryable(rt)}
		})},
		{Name: "failsafehttp", Module: modFailsafe, Context: true, New: through(func(rt http.RoundTripper) http.RoundTripper {
			return failsafehttp.NewRoundTripper(rt, failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(2).Build())
		})},
		{Name: "aws, standard mode", Module: modAWS, Context: true, New: func() func() error {
			return awsHTTP(ctx, &http.Client{Transport: &stub{failures: failures}}, method)
		}},
	}
}

// forbearHTTP has the standard's policy, but for waits of at most 2 ns and a
// budget that never refuses. HTTP has no hint that would drop the wait.
func forbearHTTP(b breaker.Policy) *forbear.Retryer {
	return forbear.Must(forbear.New("bench", forbear.Policy{Backoff: forbear.Backoff{Base: 1}, Breaker: b},
		forbear.WithoutLog(), forbear.WithBudget(generous())))
}

func retryable(rt http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{Transport: rt},
		RetryMax:   2,
		CheckRetry: retryablehttp.DefaultRetryPolicy,
		Backoff:    func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
	}
}

func newRequest(ctx context.Context, method string) (*http.Request, error) {
	if method == http.MethodPut {
		return http.NewRequestWithContext(ctx, method, target, bytes.NewReader(payload))
	}
	return http.NewRequestWithContext(ctx, method, target, nil)
}

// finish reads a good response to its end, as callers do.
func finish(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// byHand is the loop that people write: a new request for each attempt.
func byHand(ctx context.Context, client *http.Client, method string) error {
	for attempt := 1; ; attempt++ {
		req, err := newRequest(ctx, method)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil && resp.StatusCode == http.StatusServiceUnavailable && attempt < 3 {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			continue
		}
		return finish(resp, err)
	}
}
