package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

const key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"

// service is a handler under test, counting its runs, and the server in front.
type service struct {
	t     *testing.T
	runs  atomic.Int64
	store idempotency.Store
	url   string
	do    func(w http.ResponseWriter, r *http.Request, n int64)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func byHeader(r *http.Request) (string, error) {
	if p := r.Header.Get("X-Principal"); p != "" {
		return p, nil
	}
	return "", errors.New("nobody")
}

func serve(t *testing.T, o idempotency.Options, do func(w http.ResponseWriter, r *http.Request, n int64)) *service {
	t.Helper()
	return serveOn(t, &memstore.Idempotency{}, o, do)
}

func serveOn(t *testing.T, store idempotency.Store, o idempotency.Options, do func(w http.ResponseWriter, r *http.Request, n int64)) *service {
	t.Helper()
	s := &service{t: t, store: store, do: do}
	if o.Scope == nil {
		o.Scope = byHeader
	}
	o.Logger = quiet()
	h, err := idempotency.Handler(store, o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.runs.Add(1)
		if s.do == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"n":%d}`, n)
			return
		}
		s.do(w, r, n)
	}))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(quiet().Handler(), slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

func (r reply) problem() string {
	var p struct{ Type string }
	if r.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(r.body), &p) != nil {
		return ""
	}
	return strings.TrimPrefix(p.Type, idempotency.ProblemBase)
}

type edit func(*http.Request)

func with(name, value string) edit { return func(r *http.Request) { r.Header.Set(name, value) } }

// send posts the usual request, changed by edits.
func (s *service) send(edits ...edit) reply {
	s.t.Helper()
	r, err := s.try(s.t.Context(), edits...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *service) try(ctx context.Context, edits ...edit) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/pay", strings.NewReader(`{"amount":1}`))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("X-Principal", "t1")
	req.Header.Set("Idempotency-Key", key)
	for _, e := range edits {
		e(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func (s *service) want(r reply, status int, problem string, replayed bool, runs int64) {
	s.t.Helper()
	if r.status != status || r.problem() != problem || r.replayed() != replayed || s.runs.Load() != runs {
		s.t.Fatalf("got %d, problem %q, replayed %v, %d runs; want %d, %q, %v, %d; body %.200s", r.status, r.problem(), r.replayed(), s.runs.Load(), status, problem, replayed, runs, r.body)
	}
}

// begun waits for a run.
func (s *service) begun() {
	for s.runs.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func body(text string) edit {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

func TestReplay(t *testing.T) {
	s := serve(t, idempotency.Options{}, nil)
	first := s.send()
	s.want(first, 201, "", false, 1)
	again := s.send(with("Traceparent", "00-other"), with("X-Retry-Attempt", "1"), with("Authorization", "Bearer refreshed"))
	s.want(again, 201, "", true, 1)
	if again.body != first.body || again.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %q %v, want %q", again.body, again.header, first.body)
	}
	s.want(s.send(with("X-Principal", "t2")), 201, "", false, 2)
	s.want(s.send(with("Idempotency-Key", `"`+key+`"; a=1`)), 201, "", true, 2)
}

func TestOtherRequestUnderTheKey(t *testing.T) {
	s := serve(t, idempotency.Options{}, nil)
	s.want(s.send(), 201, "", false, 1)
	for name, e := range map[string]edit{
		"body":  body(`{"amount":2}`),
		"path":  func(r *http.Request) { r.URL.Path = "/refund" },
		"query": func(r *http.Request) { r.URL.RawQuery = "mode=b" },
		"media": with("Content-Type", "text/plain"),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.want(s.send(e), 422, "key-reused", false, 1)
		})
	}
}

func TestBadKeys(t *testing.T) {
	s := serve(t, idempotency.Options{}, nil)
	for name, tt := range map[string]struct {
		edit    edit
		problem string
	}{
		"missing":    {func(r *http.Request) { r.Header.Del("Idempotency-Key") }, "key-missing"},
		"empty":      {with("Idempotency-Key", ""), "key-invalid"},
		"blank":      {with("Idempotency-Key", "   "), "key-invalid"},
		"empty text": {with("Idempotency-Key", `""`), "key-invalid"},
		"unclosed":   {with("Idempotency-Key", `"abc`), "key-invalid"},
		"list":       {with("Idempotency-Key", "a,b"), "key-invalid"},
		"two lines":  {func(r *http.Request) { r.Header.Add("Idempotency-Key", "b") }, "key-invalid"},
		"65":         {with("Idempotency-Key", strings.Repeat("k", 65)), "key-invalid"},
		"space":      {with("Idempotency-Key", "a b"), "key-invalid"},
		"no ASCII":   {with("Idempotency-Key", "kä"), "key-invalid"},
		"PATCH":      {func(r *http.Request) { r.Method = http.MethodPatch; r.Header.Del("Idempotency-Key") }, "key-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			r := s.send(tt.edit)
			s.want(r, 400, tt.problem, false, 0)
			if k := "abc"; strings.Contains(r.body, k) {
				t.Errorf("an invalid key is repeated: %s", r.body)
			}
		})
	}
	s.t = t
	s.want(s.send(func(r *http.Request) { r.Method = http.MethodPut; r.Header.Del("Idempotency-Key") }), 201, "", false, 1)
	s.want(s.send(func(r *http.Request) { r.Header.Del("X-Principal") }), 401, "unauthenticated", false, 1)
	s.want(s.send(with("Idempotency-Key", strings.Repeat("k", 64))), 201, "", false, 2)
}

func TestStatusRules(t *testing.T) {
	release := map[int]bool{401: true, 403: true, 408: true, 409: true, 421: true, 425: true, 429: true}
	for status := 200; status < 600; status++ {
		want := idempotency.Keep
		if release[status] || status >= 500 {
			want = idempotency.Retry
		}
		if got := idempotency.DefaultDisposition(status); got != want {
			t.Errorf("%d: got %v, want %v", status, got, want)
		}
	}
	for _, status := range []int{402, 422, 404, 303} {
		s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, _ *http.Request, _ int64) { w.WriteHeader(status) })
		s.send()
		s.want(s.send(), status, "", true, 1)
	}
	for _, status := range []int{429, 500, 503} {
		s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, _ *http.Request, n int64) {
			if n == 1 {
				w.WriteHeader(status)
				return
			}
			w.WriteHeader(201)
		})
		s.want(s.send(), status, "", false, 1)
		s.want(s.send(), 201, "", false, 2)
		s.want(s.send(), 201, "", true, 2)
	}
}

func TestMarks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mark    func(context.Context)
		status  int
		panics  bool
		again   int
		problem string
		replay  bool
		runs    int64
	}{
		{"final 500", idempotency.MarkFinal, 500, false, 500, "", true, 1},
		{"unknown 502", idempotency.MarkUnknown, 502, false, 409, "outcome-unknown", false, 1},
		{"unknown 201", idempotency.MarkUnknown, 201, false, 409, "outcome-unknown", false, 1},
		{"undone 404", idempotency.MarkUndone, 404, false, 404, "", false, 2},
		{"panic", func(context.Context) {}, 0, true, 0, "", false, 2},
		{"panic after the point of no return", idempotency.MarkFinal, 0, true, 409, "outcome-unknown", false, 1},
		{"panic, unknown", idempotency.MarkUnknown, 0, true, 409, "outcome-unknown", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, r *http.Request, _ int64) {
				tt.mark(r.Context())
				if tt.panics {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(tt.status)
			})
			_, _ = s.try(t.Context())
			if tt.again == 0 {
				_, _ = s.try(t.Context())
				if s.runs.Load() != tt.runs {
					t.Fatalf("%d runs, want %d", s.runs.Load(), tt.runs)
				}
				return
			}
			s.want(s.send(), tt.again, tt.problem, tt.replay, tt.runs)
		})
	}
}

func TestDuplicateWaitsAndGetsTheAnswer(t *testing.T) {
	gate := make(chan struct{})
	s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, _ *http.Request, n int64) {
		<-gate
		w.WriteHeader(201)
		fmt.Fprint(w, n)
	})
	var wg sync.WaitGroup
	var fresh, replayed atomic.Int64
	for range 12 {
		wg.Go(func() {
			r, err := s.try(t.Context())
			if err != nil || r.status != 201 || r.body != "1" {
				t.Errorf("got %+v, %v", r, err)
			}
			if r.replayed() {
				replayed.Add(1)
			} else {
				fresh.Add(1)
			}
		})
	}
	s.begun()
	time.Sleep(100 * time.Millisecond)                         // the others have come, most likely
	s.want(s.send(body("other")), 422, "key-reused", false, 1) // at once
	close(gate)
	wg.Wait()
	if s.runs.Load() != 1 || fresh.Load() != 1 || replayed.Load() != 11 {
		t.Errorf("%d runs, %d fresh, %d replayed", s.runs.Load(), fresh.Load(), replayed.Load())
	}
}

func TestDuplicateWaitsOnlySoLong(t *testing.T) {
	gate := make(chan struct{})
	started := make(chan struct{})
	s := serve(t, idempotency.Options{Wait: 50 * time.Millisecond, MaxWaiters: 1}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		close(started)
		<-gate
		w.WriteHeader(201)
	})
	done := make(chan reply)
	go func() { r, _ := s.try(t.Context()); done <- r }()
	<-started
	r := s.send()
	s.want(r, 409, "in-progress", false, 1)
	if n, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || n < 1 {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	close(gate)
	s.want(<-done, 201, "", false, 1)
}

func TestClientLeavesAndComesBack(t *testing.T) {
	canceled := make(chan bool, 1)
	left := make(chan struct{})
	s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, r *http.Request, _ int64) {
		<-left
		time.Sleep(50 * time.Millisecond)
		canceled <- r.Context().Err() != nil
		w.WriteHeader(201)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { s.begun(); cancel(); close(left) }()
	if _, err := s.try(ctx); err == nil {
		t.Fatal("the first attempt got an answer")
	}
	s.want(s.send(), 201, "", true, 1)
	if <-canceled {
		t.Error("the run was canceled with its client")
	}
}

func TestCredentialsAreNotStored(t *testing.T) {
	s := serve(t, idempotency.Options{KeepHeaders: []string{"X-Kept", "Set-Cookie"}}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		h := w.Header()
		h.Set("Set-Cookie", "session=secret")
		h.Set("Location", "/pay/1")
		h.Set("X-Kept", "yes")
		h.Set("X-Request-Id", "one")
		h.Set("Connection", "X-Kept-Not")
		w.WriteHeader(201)
	})
	if r := s.send(); r.header.Get("Set-Cookie") == "" || r.header.Get("X-Request-Id") == "" {
		t.Fatalf("the first answer lacks headers: %v", r.header)
	}
	r := s.send()
	s.want(r, 201, "", true, 1)
	if r.header.Get("Location") != "/pay/1" || r.header.Get("X-Kept") != "yes" {
		t.Errorf("lost headers: %v", r.header)
	}
	for _, name := range []string{"Set-Cookie", "X-Request-Id"} {
		if r.header.Get(name) != "" {
			t.Errorf("%s was replayed", name)
		}
	}
}

func TestLargeResponseLeavesATombstone(t *testing.T) {
	s := serve(t, idempotency.Options{MaxResponse: 1000}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("Location", "/pay/7")
		w.WriteHeader(201)
		for range 100 {
			_, _ = w.Write(make([]byte, 100))
		}
	})
	if r := s.send(); r.status != 201 || len(r.body) != 10_000 {
		t.Fatalf("got %d with %d bytes", r.status, len(r.body))
	}
	r := s.send()
	s.want(r, 409, "not-replayable", false, 1)
	if !strings.Contains(r.body, `"original_status":201`) || !strings.Contains(r.body, `"location":"/pay/7"`) {
		t.Errorf("got %s", r.body)
	}
}

func TestLargeErrorIsReleased(t *testing.T) {
	s := serve(t, idempotency.Options{MaxResponse: 1000}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.WriteHeader(500)
		_, _ = w.Write(make([]byte, 5000))
	})
	s.send()
	s.want(s.send(), 500, "", false, 2)
}

func TestStreamGoesOutAtOnce(t *testing.T) {
	gate := make(chan struct{})
	s := serve(t, idempotency.Options{Stream: true}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		<-gate
		fmt.Fprint(w, "second")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Principal", "t1")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req) // returns before the handler does
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	again := func() reply {
		return s.send(func(r *http.Request) { r.URL.Path = ""; r.Body = http.NoBody; r.ContentLength = 0 })
	}
	s.want(again(), 409, "not-replayable", false, 1)
	close(gate)
	if b, _ := io.ReadAll(resp.Body); string(b) != "firstsecond" {
		t.Errorf("got %q", b)
	}
}

func TestLargeRequest(t *testing.T) {
	s := serve(t, idempotency.Options{MaxRequest: 10}, nil)
	s.want(s.send(body("12345678901")), 413, "request-too-large", false, 0)
	s.want(s.send(body("1234567890")), 201, "", false, 1)
}

func TestOptionsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		store idempotency.Store
		opts  idempotency.Options
		ok    bool
	}{
		"good":        {&memstore.Idempotency{}, idempotency.Options{Scope: byHeader}, true},
		"no store":    {nil, idempotency.Options{Scope: byHeader}, false},
		"no scope":    {&memstore.Idempotency{}, idempotency.Options{}, false},
		"under 24 h":  {&memstore.Idempotency{}, idempotency.Options{Scope: byHeader, Retention: 23 * time.Hour}, false},
		"24 h":        {&memstore.Idempotency{}, idempotency.Options{Scope: byHeader, Retention: 24 * time.Hour}, true},
		"forgetful":   {&memstore.Idempotency{}, idempotency.Options{Scope: byHeader, Production: true}, false},
		"transaction": {&memstore.Idempotency{}, idempotency.Options{Scope: byHeader, Transaction: true}, false},
	} {
		if _, err := idempotency.Handler(tt.store, tt.opts, http.NotFoundHandler()); (err == nil) != tt.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
