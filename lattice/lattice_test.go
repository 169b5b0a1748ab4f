package lattice_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/lattice"
	"github.com/forbear-go/forbear/reason"
)

// apiError has the shape that the SDKs' errors are documented to have.
type apiError struct {
	err        error
	StatusCode int
	Header     http.Header
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %v", e.StatusCode, e.err) }
func (e *apiError) Unwrap() error { return e.err }

// tooManyRequests embeds it, as the typed errors do.
type tooManyRequests struct{ *apiError }

func (e *tooManyRequests) Unwrap() error { return e.apiError }

// sdk is a stand-in for a fern-generated SDK: it stamps its headers, retries by
// itself where it gets a response that it finds retryable, and returns every
// error at once.
type sdk struct {
	client interface {
		Do(*http.Request) (*http.Response, error)
	}
	url         string
	token       string
	maxAttempts int
	slept       time.Duration
}

func (s *sdk) get(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Fern-Language", "Go")
		req.Header.Set("X-Fern-SDK-Name", "lattice-sdk")
		req.Header.Set("X-Fern-SDK-Version", "v4")
		if s.token != "" {
			req.Header.Set("Authorization", s.token)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			return err
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil
		}
		e := &apiError{errors.New(string(body)), resp.StatusCode, resp.Header}
		retry := resp.StatusCode == 408 || resp.StatusCode == 429 || resp.StatusCode >= 500
		if retry {
			s.slept += time.Second // after the last attempt too
		}
		if retry && attempt < s.maxAttempts {
			continue
		}
		if resp.StatusCode == 429 {
			return &tooManyRequests{e}
		}
		return e
	}
}

func retryer(t testing.TB, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p := lattice.Policy()
	p.Breaker.Disabled = true
	opts = append([]forbear.Option{forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1000, 1))}, opts...)
	r, err := forbear.New("lattice", p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// upstream answers with its statuses in turn, the last one repeating.
type upstream struct {
	statuses []int
	requests []*http.Request
}

func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	u.requests = append(u.requests, req)
	if tr := httptrace.ContextClientTrace(req.Context()); tr != nil && tr.WroteHeaders != nil {
		tr.WroteHeaders()
	}
	rec := httptest.NewRecorder()
	rec.WriteHeader(u.statuses[min(len(u.requests), len(u.statuses))-1])
	_, _ = io.WriteString(rec, "busy")
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

// TestUnderTheSDK is the adapter's promise: one layer retries, the SDK neither
// sleeps nor sends again, whatever its own settings.
func TestUnderTheSDK(t *testing.T) {
	for _, tc := range []struct {
		name     string
		statuses []int
		requests int
		status   int // of the error; 0: none
		stop     bool
	}{
		{"recovers", []int{503, 503, 200}, 3, 0, false},
		{"never recovers", []int{503}, 4, 503, true},
		{"eventually visible", []int{404, 200}, 2, 0, false},
		{"never visible", []int{404}, 4, 404, false},
		{"concurrent write", []int{409, 200}, 2, 0, false},
		{"malformed", []int{400}, 1, 400, false},
		{"too large", []int{413}, 1, 413, false},
		{"not listed", []int{422}, 1, 422, false},
		{"unauthorized", []int{401}, 1, 401, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upstream{statuses: tc.statuses}
				client := lattice.NewClient(retryer(t), lattice.Options{Transport: u})
				s := &sdk{client: client, url: "http://lattice.test/api", token: "Bearer t", maxAttempts: 2}
				err := s.get(t.Context())
				if len(u.requests) != tc.requests || s.slept != 0 {
					t.Errorf("%d requests, the SDK slept %v; want %d, 0", len(u.requests), s.slept, tc.requests)
				}
				stop, stopped := errors.AsType[*lattice.StopError](err)
				if stopped != tc.stop || tc.stop && (stop.StatusCode != tc.status || stop.Attempts != tc.requests || string(stop.Body) != "busy") {
					t.Errorf("%v; want a stop: %v", err, tc.stop)
				}
				if tc.stop && !errors.Is(err, forbear.ErrExhausted) {
					t.Errorf("%v does not unwrap to the reason", err)
				}
				if status, _, ok := lattice.Fields(err); ok != (tc.status != 0) || status != tc.status {
					t.Errorf("status %d of %v, want %d", status, err, tc.status)
				}
			})
		})
	}
}

func TestNothingGoesOutWithoutAuthorization(t *testing.T) {
	u := &upstream{statuses: []int{200}}
	client := lattice.NewClient(retryer(t), lattice.Options{Transport: u})
	s := &sdk{client: client, url: "http://lattice.test/api", maxAttempts: 2}
	if err := s.get(t.Context()); !errors.Is(err, lattice.ErrNoAuthorization) || len(u.requests) != 0 {
		t.Errorf("%d requests, %v; want none and ErrNoAuthorization", len(u.requests), err)
	}
	s.url = "http://lattice.test" + lattice.TokenPath
	if err := s.get(t.Context()); err != nil || len(u.requests) != 1 {
		t.Errorf("the token endpoint: %d requests, %v; want 1", len(u.requests), err)
	}
}

// TestRedirectToAnotherHost loses the Authorization in net/http; it must not go
// out without.
func TestRedirectToAnotherHost(t *testing.T) {
	sent := 0
	next := roundTripper(func(req *http.Request) (*http.Response, error) {
		sent++
		return &http.Response{
			StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"http://elsewhere.test/"}},
			Body: http.NoBody, Request: req,
		}, nil
	})
	client := lattice.NewClient(retryer(t), lattice.Options{Transport: next})
	s := &sdk{client: client, url: "http://lattice.test/api", token: "Bearer t", maxAttempts: 2}
	if err := s.get(t.Context()); !errors.Is(err, lattice.ErrNoAuthorization) || sent != 1 {
		t.Errorf("%d requests, %v; want 1 and ErrNoAuthorization", sent, err)
	}
}

// TestTokens refreshes once after a 401, under the SDK.
func TestTokens(t *testing.T) {
	var fetches atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_secret") != "s3cret" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":"t%d","expires_in":3600,"token_type":"Bearer"}`, fetches.Add(1))
	}))
	defer endpoint.Close()
	var seen []string
	next := roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.Header.Get("Authorization"))
		status := http.StatusOK
		if len(seen) == 1 {
			status = http.StatusUnauthorized
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	source := lattice.ClientCredentials(endpoint.URL, "id", "s3cret")
	client := lattice.NewClient(retryer(t), lattice.Options{Transport: next, Credentials: credential.New(source)})
	s := &sdk{client: client, url: "http://lattice.test/api", maxAttempts: 2}
	if err := s.get(t.Context()); err != nil || strings.Join(seen, " ") != "Bearer t1 Bearer t2" {
		t.Errorf("tokens %q, %v; want one refresh", seen, err)
	}
	wrong := lattice.ClientCredentials(endpoint.URL+"?a=query", "id", "wr0ng")
	_, err := wrong.Token(t.Context())
	if !errors.Is(err, credential.ErrRevoked) || strings.Contains(err.Error(), "wr0ng") || strings.Contains(err.Error(), "query") {
		t.Errorf("%v; want ErrRevoked without secrets", err)
	}
}

// TestUtility retries above an SDK whose own retries are off.
func TestUtility(t *testing.T) {
	for _, tc := range []struct {
		name     string
		statuses []int
		extract  lattice.Extract
		requests int
		reason   forbear.Reason
	}{
		{"recovers", []int{503, 429, 200}, nil, 3, 0},
		{"by the caller's extractor", []int{404, 200}, func(err error) (int, http.Header, bool) {
			e, ok := errors.AsType[*apiError](err)
			if !ok {
				return 0, nil, false
			}
			return e.StatusCode, e.Header, true
		}, 2, 0},
		{"final", []int{403}, nil, 1, reason.Terminal},
		{"never", []int{500}, nil, 4, reason.Exhausted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upstream{statuses: tc.statuses}
				s := &sdk{client: &http.Client{Transport: u}, url: "http://lattice.test/", token: "Bearer t", maxAttempts: 1}
				var log bytes.Buffer
				utility := lattice.NewUtility(retryer(t), tc.extract, slog.New(slog.NewTextHandler(&log, nil)))
				err := utility.Do(t.Context(), s.get)
				var reason forbear.Reason
				if e, ok := errors.AsType[*forbear.Error](err); ok {
					reason = e.Reason
				}
				if len(u.requests) != tc.requests || reason != tc.reason || log.Len() > 0 {
					t.Errorf("%d requests, %v, log %q; want %d, %v", len(u.requests), err, &log, tc.requests, tc.reason)
				}
			})
		})
	}
}

// TestUtilityWarnsOfLayers is the guide's arithmetic: Go's default of two
// attempts under three of the utility's is six requests.
func TestUtilityWarnsOfLayers(t *testing.T) {
	attempts, requests, warned := playLayers(t, 3, 6)
	if attempts != 3 || requests != 6 || !warned {
		t.Errorf("%d attempts, %d requests, warned %v; want 3, 6, true", attempts, requests, warned)
	}
	if _, _, warned := playLayers(t, 3, 3); warned {
		t.Error("warned of a single layer")
	}
}

// playLayers lets a utility make attempts, and the SDK below share out the
// requests over them.
func playLayers(t *testing.T, attempts, requests int) (made, sent int64, warned bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		u := &upstream{statuses: []int{503}}
		utility := lattice.NewUtility(retryer(t), nil, slog.New(slog.NewTextHandler(&log, nil)))
		n := 0
		ctx := forbear.WithMaxRetries(t.Context(), attempts-1)
		_ = utility.Do(ctx, func(ctx context.Context) error {
			share := requests / attempts
			if n < requests%attempts {
				share++
			}
			n++
			s := &sdk{client: &http.Client{Transport: u}, url: "http://lattice.test/", token: "Bearer t", maxAttempts: share}
			return s.get(ctx)
		})
		made, sent = utility.Sends()
		warned = strings.Contains(log.String(), "level=WARN")
	})
	return made, sent, warned
}

func TestFieldsOfBrokenErrors(t *testing.T) {
	for _, err := range []error{nil, errors.New("plain"), &tooManyRequests{}, (*apiError)(nil), fmt.Errorf("wrapped: %w", io.EOF)} {
		if status, _, ok := lattice.Fields(err); ok {
			t.Errorf("%T: status %d", err, status)
		}
	}
	if status, _, ok := lattice.Fields(fmt.Errorf("call: %w", &tooManyRequests{&apiError{StatusCode: 429}})); !ok || status != 429 {
		t.Errorf("status %d, %v; want 429", status, ok)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestPostWithoutKeyIsSentOnce: the SDKs replay a POST, the client does not, and
// keeps them from it.
func TestPostWithoutKeyIsSentOnce(t *testing.T) {
	for key, want := range map[string]int{"": 1, "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2": 4} {
		synctest.Test(t, func(t *testing.T) {
			u := &upstream{statuses: []int{503}}
			client := lattice.NewClient(retryer(t), lattice.Options{Transport: u})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://lattice.test/tasks", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer t")
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			_, err = client.Do(req)
			if stop, ok := errors.AsType[*lattice.StopError](err); !ok || len(u.requests) != want || stop.Attempts != want {
				t.Errorf("key %q: %d requests, %v; want %d", key, len(u.requests), err, want)
			}
			for _, r := range u.requests {
				if r.Header.Get("Authorization") != "Bearer t" || r.Header.Get("Idempotency-Key") != key {
					t.Errorf("a request went out with other headers: %v", r.Header)
				}
			}
		})
	}
}
