package httpretry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

func TestCallersRequestIsLeftAlone(t *testing.T) {
	s := &script{steps: []step{status(503), status(503), status(200)}}
	req := newRequest(t, http.MethodPost, "http://payments.test/v1?x=1", "payload", "")
	req.Header.Set("X-Custom", "kept")
	// What a handler that passes its own request on would copy.
	req.Header.Set(httpretry.HeaderAttempt, "7")
	before, ctx, url, body := req.Header.Clone(), req.Context(), *req.URL, req.Body
	p := fast
	p.Keys = forbear.KeyGenerate
	resp, err := over(t, s, p).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := s.attempts(); got != "0 1 2" {
		t.Errorf("X-Retry-Attempt %q, want 0 1 2", got)
	}
	if !equalHeaders(req.Header, before) || req.Context() != ctx || *req.URL != url || req.Body != body {
		t.Errorf("the caller's request was changed: %v, was %v", req.Header, before)
	}
	for _, r := range s.requests() {
		if r.header.Get("X-Custom") != "kept" || r.body != "payload" {
			t.Errorf("sent %v %q", r.header, r.body)
		}
	}
}

func equalHeaders(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if !slices.Equal(v, b[k]) {
			return false
		}
	}
	return true
}

func TestWithoutAttemptHeaderNoneIsSent(t *testing.T) {
	for _, opts := range [][]httpretry.Option{
		{httpretry.WithoutAttemptHeader()},
		bare(),
	} {
		s := &script{steps: []step{status(503), status(200)}}
		req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
		req.Header.Set(httpretry.HeaderAttempt, "7")
		resp, err := over(t, s, fast, opts...).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := s.attempts(); got != " " {
			t.Errorf("X-Retry-Attempt %q on two attempts, want none", got)
		}
		if req.Header.Get(httpretry.HeaderAttempt) != "7" {
			t.Error("the caller's header was changed")
		}
	}
}

func TestLastResponseIsHandedOverUnread(t *testing.T) {
	for _, tc := range []struct {
		name     string
		answer   step
		status   int
		reason   forbear.Reason
		rule     string
		attempts int
	}{
		{"exhausted", status(503, "X-Detail: 17"), 503, reason.Exhausted, "R-2", 4},
		{"terminal", status(404, "X-Detail: 17"), 404, reason.Terminal, "R-4", 1},
		{"nobody lists it", status(425, "X-Detail: 17"), 425, reason.Terminal, "R-4", 1},
		{"401 without a refresher", status(401, "X-Detail: 17"), 401, reason.Unauthorized, "R-4", 1},
		{"409", status(409, "X-Detail: 17"), 409, reason.Terminal, "R-4", 1},
		{"x-should-retry: false", status(503, "X-Detail: 17", "x-should-retry: false"), 503, reason.ServerStop, "R-7", 1},
		{"Stripe's own spelling of it", status(503, "X-Detail: 17", "Stripe-Should-Retry: false"), 503, reason.ServerStop, "R-7", 1},
		{"overloaded, says Envoy", status(503, "X-Detail: 17", "x-envoy-overloaded: true"), 503, reason.ServerStop, "R-7", 1},
		{"exhausted below", status(503, "X-Detail: 17", httpretry.HeaderExhausted+": exhausted"), 503, reason.ExhaustedBelow, "R-7", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &script{steps: []step{tc.answer}}
			client := &http.Client{Transport: over(t, s, fast)}
			resp, err := client.Do(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status || resp.Header.Get("X-Detail") != "17" {
				t.Errorf("got %d %v", resp.StatusCode, resp.Header)
			}
			if got := readAll(t, resp.Body); got != http.StatusText(tc.status) {
				t.Errorf("body %q", got)
			}
			_ = resp.Body.Close()
			e, ok := httpretry.Outcome(resp)
			if !ok {
				t.Fatal("no outcome")
			}
			if e.Reason != tc.reason || e.Reason.Rule() != tc.rule || e.Attempts != tc.attempts || len(s.requests()) != tc.attempts {
				t.Errorf("got %v (%s) after %d attempts, %d requests; want %v (%s) after %d",
					e.Reason, e.Reason.Rule(), e.Attempts, len(s.requests()), tc.reason, tc.rule, tc.attempts)
			}
			if got := resp.Request.Header.Get(httpretry.HeaderAttempt); got != strconv.Itoa(tc.attempts-1) {
				t.Errorf("the response is said to answer attempt %q", got)
			}
			if code, ok := errors.AsType[httpretry.StatusError](e); !ok || int(code) != tc.status {
				t.Errorf("the outcome unwraps to %v", e.Unwrap())
			}
		})
	}
}

// A transport below that breaks its contract is an unknown failure.
func TestNeitherResponseNorError(t *testing.T) {
	s := &script{steps: []step{func(*http.Request) (*http.Response, error) { return nil, nil }}}
	resp, err := over(t, s, fast).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
	if e, ok := errors.AsType[*forbear.Error](err); resp != nil || !ok || e.Reason != reason.Unknown || len(s.requests()) != 1 {
		t.Errorf("%d requests, got %v, %v", len(s.requests()), resp, err)
	}
}

func TestSuccessHasNoOutcome(t *testing.T) {
	resp, err := over(t, &script{steps: []step{status(503), status(200)}}, fast).
		RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if e, ok := httpretry.Outcome(resp); ok {
		t.Errorf("a success has the outcome %v", e)
	}
	for _, resp := range []*http.Response{nil, {}, {Request: newRequest(t, http.MethodGet, "http://payments.test/", "", "")}} {
		if _, ok := httpretry.Outcome(resp); ok {
			t.Error("an outcome from nowhere")
		}
	}
}

// TestRetryAfterIsAFloor: the waits that were made, by the bubble's clock.
func TestRetryAfterIsAFloor(t *testing.T) {
	for _, tc := range []struct {
		name      string
		header    string
		draw      float64
		low, high time.Duration
	}{
		{"seconds, no spread drawn", "Retry-After: 20", 0, 20 * time.Second, 20 * time.Second},
		{"seconds, spread of 10 %", "Retry-After: 10", 0.999999, 10999 * time.Millisecond, 11 * time.Second},
		{"below the backoff", "Retry-After: 0", 0.5, 500 * time.Millisecond, 500 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{status(503, tc.header), status(200)}}
				r := quiet(t, forbear.Policy{}, forbear.WithRand(func() float64 { return tc.draw }))
				start := time.Now()
				resp, err := httpretry.NewTransport(s, r).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if took := time.Since(start); resp.StatusCode != 200 || took < tc.low || took > tc.high {
					t.Errorf("status %d after %v, want 200 after %v to %v", resp.StatusCode, took, tc.low, tc.high)
				}
			})
		})
	}
}

func TestRetryAfterBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name, header string
		deadline     time.Duration
	}{
		{"the policy's total", "Retry-After: 31", 0},
		{"the caller's deadline", "Retry-After: 3", 2 * time.Second},
		{"a number beyond bounds", "Retry-After: 99999999999999999999", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{status(429, tc.header)}}
				req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
				if tc.deadline > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
					defer cancel()
					req = req.WithContext(ctx)
				}
				start := time.Now()
				resp, err := over(t, s, forbear.Policy{}).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				e, _ := httpretry.Outcome(resp)
				if e.Reason != reason.HintTooLong || e.RetryAfter < 3*time.Second || time.Since(start) != 0 {
					t.Errorf("%v after %v (%v)", e, time.Since(start), e.RetryAfter)
				}
				if resp.StatusCode != 429 || len(s.requests()) != 1 {
					t.Errorf("status %d, %d requests", resp.StatusCode, len(s.requests()))
				}
			})
		})
	}
}

func inProgress(problem string) step {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := status(409, "Content-Type: application/problem+json", "Retry-After: 2")(req)
		resp.Body = io.NopCloser(strings.NewReader(problem))
		resp.ContentLength = int64(len(problem))
		return resp, err
	}
}

func TestInProgressIsRetriedWithTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{inProgress(`{"type":"urn:forbear:problem:in-progress"}`), status(201)}}
		start := time.Now()
		resp, err := over(t, s, forbear.Policy{}).
			RoundTrip(newRequest(t, http.MethodPost, "http://payments.test/", "payload", key))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		sent := s.requests()
		if resp.StatusCode != 201 || len(sent) != 2 || time.Since(start) < 2*time.Second {
			t.Fatalf("status %d, %d requests, %v", resp.StatusCode, len(sent), time.Since(start))
		}
		if sent[0].header.Get(httpretry.HeaderKey) != key || sent[1].header.Get(httpretry.HeaderKey) != key {
			t.Error("the key changed")
		}
	})
}

func TestOtherConflictsAreHandedOverReadable(t *testing.T) {
	long := `{"type":"mismatch","detail":"` + strings.Repeat("x", 40<<10) + `"}`
	for _, tc := range []struct {
		name, problem, key string
	}{
		{"another problem", `{"type":"urn:forbear:problem:key-mismatch"}`, key},
		{"no key of ours", `{"type":"urn:forbear:problem:in-progress"}`, ""},
		{"no JSON", `in-progress`, key},
		{"nothing", ``, key},
		{"a type that only contains the word", `{"type":"not-in-progress"}`, key},
		{"a long one", long, key},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &script{steps: []step{inProgress(tc.problem)}}
			resp, err := over(t, s, fast).RoundTrip(newRequest(t, http.MethodPut, "http://payments.test/", "payload", tc.key))
			if err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, resp.Body); got != tc.problem {
				t.Errorf("the body has %d bytes, want %d", len(got), len(tc.problem))
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if e, _ := httpretry.Outcome(resp); len(s.requests()) != 1 || e.Reason != reason.Terminal {
				t.Errorf("%d requests: %v", len(s.requests()), e)
			}
		})
	}
}

func TestBudgetRefusalHandsOverTheResponse(t *testing.T) {
	p := fast
	p.Strict = true // no floor: a single call has earned no retry
	s := &script{steps: []step{status(503)}}
	resp, err := over(t, s, p).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e, _ := httpretry.Outcome(resp)
	if resp.StatusCode != 503 || len(s.requests()) != 1 || !errors.Is(e, forbear.ErrBudgetExhausted) {
		t.Errorf("status %d after %d requests: %v", resp.StatusCode, len(s.requests()), e)
	}
	if got := readAll(t, resp.Body); got != "Service Unavailable" {
		t.Errorf("body %q", got)
	}
}

func TestWithRetryerChoosesForEachRequest(t *testing.T) {
	search, other := quiet(t, forbear.Policy{Disabled: true}), quiet(t, fast)
	s := &script{steps: []step{status(503)}}
	choose := httpretry.WithRetryer(func(req *http.Request) *forbear.Retryer {
		if req.URL.Host == "search.test" {
			return search
		}
		return nil
	})
	for _, tc := range []struct {
		url      string
		fallback *forbear.Retryer
		requests int
		err      bool
	}{
		{"http://search.test/", other, 1, false},
		{"http://payments.test/", other, 4, false},
		{"http://payments.test/", nil, 0, true},
	} {
		s.sent = nil
		body := &countedBody{Reader: strings.NewReader("x")}
		req := newRequest(t, http.MethodPut, tc.url, "", "")
		req.Body = body
		resp, err := httpretry.NewTransport(s, tc.fallback, choose).RoundTrip(req)
		if (err != nil) != tc.err || len(s.requests()) != tc.requests {
			t.Errorf("%s: %d requests, %v; want %d", tc.url, len(s.requests()), err, tc.requests)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		if body.closes() != 1 {
			t.Errorf("%s: the body was closed %d times", tc.url, body.closes())
		}
	}
}

// TestCanceledWhileWaiting: both the caller's end and the failure before it are
// in the error.
func TestCanceledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		s := &script{steps: []step{status(503, "Retry-After: 20")}}
		start := time.Now()
		resp, err := over(t, s, forbear.Policy{}).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", "").WithContext(ctx))
		if resp != nil || !errors.Is(err, forbear.ErrCanceled) || !errors.Is(err, gone) {
			t.Errorf("got %v, %v", resp, err)
		}
		if code, ok := errors.AsType[httpretry.StatusError](err); !ok || code != 503 {
			t.Errorf("the failure before is not in %v", err)
		}
		if time.Since(start) != time.Second || len(s.requests()) != 1 {
			t.Errorf("%v, %d requests", time.Since(start), len(s.requests()))
		}
	})
}

func TestCanceledDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := &script{steps: []step{hang}}
		_, err := over(t, s, forbear.Policy{}).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", "").WithContext(ctx))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, forbear.ErrCanceled) || len(s.requests()) != 1 {
			t.Errorf("%d requests: %v", len(s.requests()), err)
		}
	})
}

// hang answers nothing until the attempt ends.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// TestTotalIsHard: neither hanging attempts nor endless trickles of a body that
// nobody wants carry a call beyond its total.
func TestTotalIsHard(t *testing.T) {
	trickle := func(req *http.Request) (*http.Response, error) {
		resp, err := status(503)(req)
		resp.Body, resp.ContentLength = &trickling{ctx: req.Context()}, 1<<20
		return resp, err
	}
	for name, answer := range map[string]step{"hanging": hang, "trickling": trickle, "slow 503": after(4*time.Second, status(503))} {
		for _, draw := range []float64{0, 0.5, 0.999999} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := forbear.Policy{MaxRetries: 5, Total: 10 * time.Second, PerAttempt: 5 * time.Second}
					r := quiet(t, p, forbear.WithRand(func() float64 { return draw }), forbear.WithBudget(budget.NewTokenBucket(100, 0)))
					start := time.Now()
					resp, err := httpretry.NewTransport(&script{steps: []step{answer}}, r).
						RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
					if took := time.Since(start); took > 10*time.Second {
						t.Errorf("took %v, want at most 10s", took)
					}
					if err == nil {
						_ = resp.Body.Close()
					} else if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
						t.Errorf("got %v, want a timeout and nothing that says canceled", err)
					}
				})
			})
		}
	}
}

// after delays an answer.
func after(d time.Duration, next step) step {
	return func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next(req)
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

// trickling is a body that gives a byte each 100 ms until its request ends.
type trickling struct{ ctx context.Context }

func (b *trickling) Read(p []byte) (int, error) {
	select {
	case <-time.After(100 * time.Millisecond):
		p[0] = '.'
		return 1, nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func (b *trickling) Close() error { return nil }

// TestUnwantedBodiesDoNotHoldUp: a body that nobody will see is read for a
// moment only, and that moment is part of the wait.
func TestUnwantedBodiesDoNotHoldUp(t *testing.T) {
	for _, opts := range [][]httpretry.Option{nil, bare()} {
		for _, tc := range []struct {
			draw float64
			took time.Duration
		}{{0, 250 * time.Millisecond}, {0.5, 500 * time.Millisecond}} {
			synctest.Test(t, func(t *testing.T) {
				stuck, feed := io.Pipe()
				t.Cleanup(func() { _ = feed.Close() })
				s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
					resp, err := status(503)(req)
					context.AfterFunc(req.Context(), func() { _ = stuck.CloseWithError(req.Context().Err()) })
					resp.Body, resp.ContentLength = stuck, 100
					return resp, err
				}, status(200)}}
				r := quiet(t, forbear.Policy{}, forbear.WithRand(func() float64 { return tc.draw }))
				start := time.Now()
				resp, err := httpretry.NewTransport(s, r, opts...).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
			})
		}
	}
}

// TestEveryUnwantedBodyHasItsMoment: the bound of one body is not used up, nor
// taken over, by the bodies of the attempts before it.
func TestEveryUnwantedBodyHasItsMoment(t *testing.T) {
	const moment = 250 * time.Millisecond
	for name, opts := range map[string][]httpretry.Option{"default": nil, "bare": bare()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stuck []*io.PipeReader
				hold := func(req *http.Request) (*http.Response, error) {
					r, w := io.Pipe()
					t.Cleanup(func() { _ = w.Close() })
					context.AfterFunc(req.Context(), func() { _ = r.CloseWithError(req.Context().Err()) })
					stuck = append(stuck, r)
					resp, err := status(503)(req)
					resp.Body, resp.ContentLength = r, 100
					return resp, err
				}
				s := &script{steps: []step{status(503), hold, hold, status(503), hold, status(200)}}
				r := quiet(t, forbear.Policy{MaxRetries: 5}, forbear.WithRand(func() float64 { return 0 }),
					forbear.WithBudget(budget.NewTokenBucket(10, 0)))
				start := time.Now()
				resp, err := httpretry.NewTransport(s, r, opts...).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // a timer that was forgotten would go off
				if got := readAll(t, resp.Body); got != "OK" {
					t.Errorf("the last body reads %q", got)
				}
				_ = resp.Body.Close()
				if took, want := time.Since(start), 3*moment+time.Second; took != want || len(stuck) != 3 {
					t.Errorf("took %v for %d stuck bodies, want %v for 3", took, len(stuck), want)
				}
			})
		})
	}
}

func TestCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s := &script{steps: []step{hang}}
		start := time.Now()
		_, err := over(t, s, forbear.Policy{}).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", "").WithContext(ctx))
		if !errors.Is(err, forbear.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if len(s.requests()) != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("%d requests in %v", len(s.requests()), time.Since(start))
		}
		// It was over before it began.
		body := &countedBody{Reader: strings.NewReader("x")}
		req := newRequest(t, http.MethodPut, "http://payments.test/", "", "").WithContext(ctx)
		req.Body = body
		if _, err := over(t, s, forbear.Policy{}).RoundTrip(req); !errors.Is(err, forbear.ErrDeadline) {
			t.Errorf("got %v", err)
		}
		if len(s.requests()) != 1 || body.closes() != 1 {
			t.Errorf("%d requests, the body was closed %d times", len(s.requests()), body.closes())
		}
	})
}

// An attempt that times out says so, in every way that callers ask.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := forbear.Policy{Disabled: true, PerAttempt: time.Second}
		client := &http.Client{Transport: over(t, &script{steps: []step{hang}}, p)}
		_, err := client.Get("http://payments.test/")
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		var netErr interface {
			error
			Timeout() bool
		}
		if !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Errorf("%v does not say that it is a timeout, as an error of http.Client's does", err)
		}
	})
}

type closer struct {
	http.RoundTripper
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

func TestCloseIdleConnectionsReachesTheTransportBelow(t *testing.T) {
	below := &closer{RoundTripper: &script{steps: []step{status(200)}}}
	client := &http.Client{Transport: httpretry.NewTransport(below, quiet(t, fast))}
	client.CloseIdleConnections()
	if below.closed != 1 {
		t.Errorf("called %d times", below.closed)
	}
	// One that has none is left alone.
	(&http.Client{Transport: over(t, &script{}, fast)}).CloseIdleConnections()
}

func TestConcurrentUse(t *testing.T) {
	s, n := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpretry.HeaderAttempt) == "0" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	p := fast
	p.Breaker.Disabled, p.Keys = true, forbear.KeyGenerate
	r := quiet(t, p, forbear.WithBudget(budget.NewTokenBucket(1<<20, 0)))
	base := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: httpretry.NewTransport(base, r)}
	t.Cleanup(client.CloseIdleConnections)
	const goroutines, calls = 64, 8
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range calls {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("payload"))
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					req.GetBody = nil // replayed from the buffer
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				data, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || string(data) != "payload" {
					t.Errorf("%q, %v", data, err)
				}
			}
		})
	}
	wg.Wait()
	if got := n.Load(); got != 2*goroutines*calls {
		t.Errorf("%d requests, want %d", got, 2*goroutines*calls)
	}
}

// TestKeyFromTheContext: a key named by the caller's context goes out with the
// request, so that what makes the retry safe is really on the wire.
func TestKeyFromTheContext(t *testing.T) {
	var keys []string
	s, n := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get(httpretry.HeaderKey))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	req := newRequest(t, http.MethodPost, s.URL, "x", "")
	req = req.WithContext(forbear.WithIdempotencyKey(req.Context(), key))
	if _, _, err := send(t, req, fast); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 4 {
		t.Errorf("%d requests, want 4", n.Load())
	}
	for i, got := range keys {
		if got != key {
			t.Errorf("attempt %d carried key %q, want %q", i+1, got, key)
		}
	}
	if req.Header.Get(httpretry.HeaderKey) != "" {
		t.Error("the caller's request was changed")
	}
}
