package httpretry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// The response is one to the caller's own request, whose context goes on after the
// attempt has ended with the body.
func TestResponseBelongsToTheCallersRequest(t *testing.T) {
	for _, code := range []int{200, 204, 404, 503} {
		s := &script{steps: []step{status(code)}}
		req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
		resp, err := over(t, s, forbear.Policy{Disabled: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.Request == nil || resp.Request.URL != req.URL || resp.Request.Context().Err() != nil {
			t.Errorf("%d: the request of the response is %v, its context ended by %v", code, resp.Request.URL, resp.Request.Context().Err())
		}
		if code == 200 && resp.Request != req {
			t.Errorf("%d: the request of the response is another one", code)
		}
	}
}

// An upgraded connection leaves nothing of its attempt behind when it is closed: no
// context, and no place in the bulkhead.
func TestUpgradesLeaveNothing(t *testing.T) {
	var attempt context.Context
	up := func(req *http.Request) (*http.Response, error) {
		attempt = req.Context()
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{}, Body: struct {
			io.Reader
			io.Writer
			io.Closer
		}{strings.NewReader("hello"), io.Discard, io.NopCloser(nil)}, Request: req}, nil
	}
	p := fast
	p.MaxConcurrent = 1
	r := quiet(t, p)
	req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := httpretry.NewTransport(&script{steps: []step{up}}, r).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := resp.Body.(io.ReadWriteCloser); !ok || attempt.Err() != nil || r.Bulkhead().Available() != 0 {
		t.Errorf("before the end: body %T, context %v, %d places free", resp.Body, attempt.Err(), r.Bulkhead().Available())
	}
	_ = resp.Body.Close()
	if attempt.Err() == nil || r.Bulkhead().Available() != 1 {
		t.Errorf("after it: context %v, %d places free", attempt.Err(), r.Bulkhead().Available())
	}
}

// A place in the bulkhead is held until the body has ended, and is given back once,
// however a call ends.
func TestPlaceIsHeldUntilTheBodyEnds(t *testing.T) {
	full := forbear.Policy{Disabled: true, MaxConcurrent: 2}
	for _, code := range []int{200, 204, 404, 503} {
		for _, opts := range [][]httpretry.Option{nil, bare()} {
			r := quiet(t, full)
			rt := httpretry.NewTransport(&script{steps: []step{status(code)}}, r, opts...)
			resp, err := rt.RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
			if err != nil {
				t.Fatal(err)
			}
			if free := r.Bulkhead().Available(); free != 1 {
				t.Errorf("%d: %d places free while the body is open, want 1", code, free)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			_ = resp.Body.Close()
			if free := r.Bulkhead().Available(); free != 2 {
				t.Errorf("%d: %d places free after it, want 2", code, free)
			}
		}
	}
	for name, next := range map[string]step{
		"error": fail(errors.New("gone")),
		"no body": func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		},
		"panic": func(*http.Request) (*http.Response, error) { panic("odd") },
	} {
		r := quiet(t, full)
		func() {
			defer func() { _ = recover() }()
			_, _ = httpretry.NewTransport(&script{steps: []step{next}}, r).
				RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
		}()
		if free := r.Bulkhead().Available(); free != 2 {
			t.Errorf("%s: %d places free, want 2", name, free)
		}
	}
}

// Who leaves during a wait is told so in every way there is: by the context's own
// cause, and by the older channel.
func TestLeavingDuringAWait(t *testing.T) {
	cause := errors.New("shutting down")
	for _, how := range []string{"cause", "channel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				gone := make(chan struct{})
				req := newRequest(t, http.MethodGet, "http://payments.test/", "", "").WithContext(ctx)
				//lint:ignore SA1019 net/http obeys it, too
				req.Cancel = gone
				time.AfterFunc(time.Second, func() {
					if how == "cause" {
						cancel(cause)
					} else {
						close(gone)
					}
				})
				began := time.Now()
				s := &script{steps: []step{status(503, "Retry-After: 5")}}
				_, err := over(t, s, forbear.Policy{}).RoundTrip(req)
				if !errors.Is(err, forbear.ErrCanceled) || !errors.Is(err, context.Canceled) || !errors.Is(err, httpretry.StatusError(503)) {
					t.Errorf("got %v", err)
				}
				if how == "cause" && !errors.Is(err, cause) {
					t.Errorf("%v does not hold the cause", err)
				}
				if time.Since(began) != time.Second {
					t.Errorf("left after %v", time.Since(began))
				}
			})
		})
	}
}

// The outcome survives a wrapper that gives the response its own request, as tracing
// does, and one that wraps the body.
func TestOutcomeSurvivesWrappers(t *testing.T) {
	for _, body := range []string{"text", ""} {
		for _, wraps := range []string{"request", "body"} {
			s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
				resp, err := status(503)(req)
				if body == "" {
					resp.Body, resp.ContentLength = http.NoBody, 0
				}
				return resp, err
			}}}
			req := newRequest(t, http.MethodGet, "http://payments.test/", "", "")
			resp, err := over(t, s, forbear.Policy{Disabled: true}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if wraps == "request" {
				resp.Request = req
			} else {
				resp.Body = struct{ io.ReadCloser }{resp.Body}
			}
			if e, ok := httpretry.Outcome(resp); !ok || e.Reason != reason.Disabled {
				t.Errorf("%q, another %s: got %v, %v", body, wraps, e, ok)
			}
		}
	}
}

// When the breaker opens while a retry waits, the caller gets the last response: its
// status, its headers, and its body as far as it was kept.
func TestBreakerOpeningHandsOverTheLastResponse(t *testing.T) {
	long := strings.Repeat("long ", 2000)
	for _, tc := range []struct {
		body, want string
		err        bool
	}{{"please wait", "please wait", false}, {"", "", false}, {long, long[:4096], true}} {
		t.Run(fmt.Sprintf("%d bytes", len(tc.body)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := quiet(t, forbear.Policy{})
				s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
					resp, err := status(503, "Retry-After: 5", "X-Who: me")(req)
					resp.Body = io.NopCloser(strings.NewReader(tc.body))
					return resp, err
				}}}
				time.AfterFunc(time.Second, func() { r.Breaker().Force(breaker.Open, "test", time.Now()) })
				resp, err := httpretry.NewTransport(s, r).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if string(got) != tc.want || (err != nil) != tc.err || resp.StatusCode != 503 || resp.Header.Get("X-Who") != "me" {
					t.Errorf("got %d %v, a body of %d bytes, %v", resp.StatusCode, resp.Header, len(got), err)
				}
				if e, ok := httpretry.Outcome(resp); !ok || e.Reason != reason.BreakerOpen {
					t.Errorf("outcome %v", e)
				}
			})
		})
	}
}

// Cookies of responses that were retried reach the jar, and those of the last win.
func TestCookiesReachTheJar(t *testing.T) {
	s := &script{steps: []step{
		status(503, "Set-Cookie: lane=a", "Set-Cookie: seen=1"), status(503), status(200, "Set-Cookie: lane=b"),
	}}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: over(t, s, fast)}
	resp, err := client.Get("http://payments.test/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	var have []string
	for _, c := range jar.Cookies(resp.Request.URL) {
		have = append(have, c.String())
	}
	if got := strings.Join(have, " "); got != "lane=b seen=1" {
		t.Errorf("the jar holds %q", got)
	}
}

// What is said to be safe to repeat needs no key: in the policy, or of one call.
func TestIdempotentWritesNeedNoKey(t *testing.T) {
	said := fast
	said.Idempotent = true
	for _, tc := range []struct {
		policy forbear.Policy
		ctx    func(context.Context) context.Context
		sends  int
	}{
		{fast, func(ctx context.Context) context.Context { return ctx }, 1},
		{said, func(ctx context.Context) context.Context { return ctx }, 2},
		{fast, forbear.Idempotent, 2},
	} {
		s := &script{steps: []step{status(503), status(200)}}
		req := newRequest(t, http.MethodPost, "http://queue.test/", "receive", "")
		resp, err := over(t, s, tc.policy).RoundTrip(req.WithContext(tc.ctx(t.Context())))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := s.requests(); len(got) != tc.sends || got[len(got)-1].body != "receive" || got[0].header.Get(httpretry.HeaderKey) != "" {
			t.Errorf("sent %v, want it %d times", got, tc.sends)
		}
	}
}

// A response that is handed over after all has its own cookies once, and says what of
// its body was let go.
func TestLastResponseIsHandedOverOnce(t *testing.T) {
	var r *forbear.Retryer
	p := fast
	r = quiet(t, p, forbear.WithObserver(&forbear.Observer{
		RetryScheduled: func(context.Context, forbear.RetryScheduled) { r.Breaker().Force(breaker.Open, "test", time.Now()) },
	}))
	long := func(req *http.Request) (*http.Response, error) {
		resp, err := status(503, "Set-Cookie: a=1")(req)
		resp.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", 10000)))
		return resp, err
	}
	resp, err := httpretry.NewTransport(&script{steps: []step{long}}, r).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header["Set-Cookie"]; len(got) != 1 {
		t.Errorf("cookies %q", got)
	}
	_, err = io.ReadAll(resp.Body)
	if err == nil || !strings.Contains(err.Error(), "was discarded") {
		t.Errorf("reading the body that was discarded: %v", err)
	}
}

// An upgraded connection can be half-closed, as net/http's can.
func TestUpgradesCanBeHalfClosed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, _ := w.(http.Hijacker).Hijack()
		defer c.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
	}))
	defer s.Close()
	for _, rt := range []http.RoundTripper{http.DefaultTransport, httpretry.NewTransport(nil, quiet(t, fast))} {
		req := newRequest(t, http.MethodGet, s.URL, "", "")
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := resp.Body.(interface{ CloseWrite() error })
		_ = resp.Body.Close()
		if !ok {
			t.Errorf("%T: cannot be half-closed", rt)
		}
	}
}
