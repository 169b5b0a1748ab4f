package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

var quiet = slog.New(slog.DiscardHandler)

// roundTrip is a scripted receiver.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// guarded lets a test look at what its receiver has noted: both hold the lock.
func guarded(mu *sync.Mutex, f roundTrip) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		return f(r)
	}
}

func answer(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("")), ProtoMajor: 1, ProtoMinor: 1}
}

// start runs a service on an SQLite file; the returned stop ends it.
func start(t *testing.T, o Options) (s *Service, stop func()) {
	t.Helper()
	if o.Database == "" {
		o.Database = filepath.Join(t.TempDir(), "forbear.db")
	}
	if o.Logger == nil {
		o.Logger = quiet
	}
	if o.Allow == nil {
		o.Allow = thisMachine
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return s, stop
}

func put(t *testing.T, s *Service, e webhook.Endpoint) {
	t.Helper()
	if _, err := s.Dispatcher.PutEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, s *Service, m webhook.Message) string {
	t.Helper()
	if m.Body == nil {
		m.Body = []byte(`{}`)
	}
	a, err := s.Dispatcher.Accept(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return a[0].ID
}

// R-3's whole table in virtual time: each attempt within its range, the dead
// letter and its alert at the end.
func TestWholeSchedule(t *testing.T) {
	race.TooSlow(t, "TestAttemptCountSurvivesRestart has such retries, too")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Time
		var ids []string
		tr := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Now())
			ids = append(ids, r.Header.Get("Webhook-Id")+" "+r.Header.Get("Idempotency-Key"))
			return answer(503), nil
		})
		s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
		e := webhook.Endpoint{ID: "a", URL: "https://example.com/hook"}
		e.Policy.MaxAttempts = 8
		put(t, s, e)
		began := time.Now()
		id := send(t, s, webhook.Message{Endpoints: []string{"a"}})
		time.Sleep(6 * time.Hour) // the whole table is 5 h 18 min at most
		mu.Lock()
		defer mu.Unlock()
		steps := []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}
		if len(sent) != len(steps) {
			t.Fatalf("%d attempts, want %d", len(sent), len(steps))
		}
		previous := began
		for i, at := range sent {
			low, high := time.Duration(0), steps[i]+200*time.Millisecond
			if i > 0 {
				low = steps[i-1]
			}
			if wait := at.Sub(previous); wait < low || wait > high {
				t.Errorf("attempt %d came %v after the one before, want %v to %v", i+1, wait, low, high)
			}
			if ids[i] != id+" "+id {
				t.Errorf("attempt %d carries %q, want the same id and key each time", i+1, ids[i])
			}
			previous = at
		}
		letters, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{})
		if err != nil || len(letters) != 1 {
			t.Fatalf("got %d letters, %v", len(letters), err)
		}
		l := letters[0]
		if l.Reason != "exhausted" || l.Attempts != 8 || l.MaxAttempts != 8 || len(l.History) != 8 || l.ErrorType != "http_503" || l.EventID != id {
			t.Errorf("the letter is %+v", l)
		}
		alerts, err := s.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
		if err != nil || len(alerts) != 1 || !alerts[0].Done || alerts[0].Reason != "exhausted" {
			t.Errorf("alerts are %+v, %v", alerts, err)
		}
		stop()
	})
}

// The attempt count survives a restart between any two attempts.
func TestAttemptCountSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		var retryHeaders []string
		tr := guarded(&mu, func(r *http.Request) (*http.Response, error) {
			n++
			retryHeaders = append(retryHeaders, r.Header.Get("X-Retry-Attempt"))
			return answer(500), nil
		})
		o := Options{Transport: tr, Database: filepath.Join(t.TempDir(), "forbear.db"), Poll: time.Minute}
		s, stop := start(t, o)
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		send(t, s, webhook.Message{ID: "m", Endpoints: []string{"a"}})
		for range 6 {
			time.Sleep(2 * time.Second)
			stop()
			s, stop = start(t, o)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if n != 5 || fmt.Sprint(retryHeaders) != "[0 1 2 3 4]" {
			t.Errorf("%d attempts numbered %v, want 5 numbered 0 to 4", n, retryHeaders)
		}
		if l, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{}); err != nil || len(l) != 1 || l[0].Attempts != 5 {
			t.Errorf("letters: %+v, %v", l, err)
		}
		stop()
	})
}

func TestRetryAfter(t *testing.T) {
	race.TooSlow(t, "TestAttemptCountSurvivesRestart has such retries, too")
	for _, c := range []struct {
		name, value, reason string
		floor               time.Duration
		attempts            int
	}{
		{"a floor under the schedule", "120", "", 2 * time.Minute, 2},
		{"longer than the 24 hours", "90000", "after_exceeds_deadline", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var sent []time.Time
				tr := guarded(&mu, func(*http.Request) (*http.Response, error) {
					if sent = append(sent, time.Now()); len(sent) == 1 {
						return answer(429, "Retry-After", c.value), nil
					}
					return answer(204), nil
				})
				s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
				put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				send(t, s, webhook.Message{Endpoints: []string{"a"}})
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if len(sent) != c.attempts {
					t.Fatalf("%d attempts, want %d", len(sent), c.attempts)
				}
				if c.attempts > 1 && sent[1].Sub(sent[0]) < c.floor {
					t.Errorf("came back after %v, before %v", sent[1].Sub(sent[0]), c.floor)
				}
				letters, _ := s.DB.DeadLetters().List(t.Context(), queue.Filter{})
				if c.reason == "" && len(letters) != 0 || c.reason != "" && (len(letters) != 1 || letters[0].Reason != c.reason) {
					t.Errorf("letters are %+v", letters)
				}
				stop()
			})
		})
	}
}

func TestGoneDisablesTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n, status := 0, 410
		tr := guarded(&mu, func(*http.Request) (*http.Response, error) { n++; return answer(status), nil })
		s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		send(t, s, webhook.Message{ID: "m1", Endpoints: []string{"a"}})
		time.Sleep(time.Second)
		send(t, s, webhook.Message{ID: "m2", Endpoints: []string{"a"}})
		time.Sleep(time.Minute)
		mu.Lock()
		if n != 1 {
			t.Errorf("%d sends, want 1", n)
		}
		mu.Unlock()
		e, err := s.Dispatcher.Endpoints(t.Context())
		if err != nil || e[0].State != webhook.Disabled || !strings.Contains(e[0].Reason, "410") {
			t.Errorf("endpoint is %+v, %v", e[0], err)
		}
		reasons := map[string]bool{}
		alerts, _ := s.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
		for _, a := range alerts {
			reasons[a.Reason] = true
		}
		if !reasons["gone"] || !reasons["endpoint_disabled"] {
			t.Errorf("alerts are %v", reasons)
		}
		if res, err := s.Dispatcher.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || res.OK || res.Enabled {
			t.Errorf("still gone: got %+v, %v", res, err)
		}
		mu.Lock()
		status = 200
		mu.Unlock()
		if res, err := s.Dispatcher.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !res.OK || !res.Enabled {
			t.Errorf("well again: got %+v, %v", res, err)
		}
		time.Sleep(time.Minute)
		if list, _ := s.Dispatcher.Deliveries(t.Context(), "m2"); list[0].State != "delivered" {
			t.Errorf("what waited for the endpoint is %s, want delivered", list[0].State)
		}
		stop()
	})
}

// What waits for a disabled endpoint is dead-lettered at 24 hours, not dropped
// and not kept for ever.
func TestDeadlineIn24Hours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var day atomic.Int64 // is skipped, but at night
		now := func() time.Time { return time.Now().Add(time.Duration(day.Load())) }
		s, stop := start(t, Options{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil }), Poll: time.Minute, Now: now})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		if err := s.Dispatcher.Disable(t.Context(), "a", "test"); err != nil {
			t.Fatal(err)
		}
		send(t, s, webhook.Message{Endpoints: []string{"a"}})
		if !ringtest.Nightly() {
			day.Store(int64(24*time.Hour - 5*time.Minute))
		}
		time.Sleep(24*time.Hour - time.Minute - time.Duration(day.Load()))
		if n, _ := s.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 0 {
			t.Errorf("%d letters before 24 hours", n)
		}
		time.Sleep(3 * time.Minute)
		l, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{})
		if err != nil || len(l) != 1 || l[0].Reason != "deadline" || l[0].Attempts != 0 {
			t.Errorf("letters are %+v, %v", l, err)
		}
		stop()
	})
}

// An endpoint whose outage exhausts its budget has its attempts put off,
// without consuming any; when it is well again everything is delivered.
func TestBudgetPostponesAndConsumesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down, sends := true, 0
		tr := roundTrip(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			sends++
			if down {
				return answer(503), nil
			}
			return answer(200), nil
		})
		s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		const total = 100
		for i := range total {
			send(t, s, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}})
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		during := sends
		down = false
		mu.Unlock()
		time.Sleep(time.Hour)
		if during > total*2 {
			t.Errorf("%d sends during the outage of %d messages: a flood", during, total)
		}
		st := s.Dispatcher.Stats()
		letters, _ := s.DB.DeadLetters().Count(t.Context(), queue.Filter{})
		t.Logf("%d sends during the outage, %d postponements, %d delivered, %d dead", during, st.Postponed, st.Delivered, letters)
		if int(st.Delivered)+letters != total {
			t.Errorf("%d delivered and %d dead of %d", st.Delivered, letters, total)
		}
		if st.Delivered < total*9/10 || st.Postponed == 0 {
			t.Errorf("%d delivered, %d postponed: a stall", st.Delivered, st.Postponed)
		}
		stop()
	})
}

// A token that has expired is refreshed before the retry four hours later; when
// it cannot be, the attempt is put off with an alert, never sent without.
func TestTokenIsRefreshedBeforeALateRetry(t *testing.T) {
	race.TooSlow(t, "package credential has tokens that several ask for")
	synctest.Test(t, func(t *testing.T) {
		t.Setenv(SecretPrefix+"CLIENT", "client-secret-value")
		var mu sync.Mutex
		tokens, refuse := 0, false
		set := func(to bool) { mu.Lock(); refuse = to; mu.Unlock() }
		var seen []string
		tr := guarded(&mu, func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "token.example.com" {
				if refuse {
					return answer(500), nil
				}
				tokens++
				resp := answer(200)
				resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":600}`, tokens)))
				return resp, nil
			}
			seen = append(seen, r.Header.Get("Authorization"))
			if len(seen) == 1 {
				return answer(503, "Retry-After", "14400"), nil
			}
			return answer(200), nil
		})
		s, stop := start(t, Options{Transport: tr, Poll: time.Minute})
		put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/", Auth: &webhook.Auth{TokenURL: "https://token.example.com/", ClientID: "c", ClientSecret: "env:CLIENT"}})
		id := send(t, s, webhook.Message{Endpoints: []string{"a"}})
		time.Sleep(time.Hour)
		set(true)
		time.Sleep(4 * time.Hour)
		mu.Lock()
		if len(seen) != 1 {
			t.Errorf("sent %v while no token was to be had", seen)
		}
		mu.Unlock()
		alerts, _ := s.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
		if len(alerts) == 0 || alerts[0].Reason != "credential" {
			t.Errorf("alerts are %+v", alerts)
		}
		set(false)
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(seen) != "[Bearer token-1 Bearer token-2]" {
			t.Errorf("sent with %v", seen)
		}
		if list, _ := s.Dispatcher.Deliveries(t.Context(), id); list[0].State != "delivered" || list[0].Attempts != 2 || list[0].Postponed == 0 {
			t.Errorf("got %+v", list)
		}
		stop()
		dump := dumpFile(t, s)
		for _, secret := range []string{"token-1", "token-2", "client-secret-value"} {
			if bytes.Contains(dump, []byte(secret)) {
				t.Errorf("%s is in the database", secret)
			}
		}
	})
}

func TestCertificateFailureIsDeadAtOnce(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s, _ := start(t, Options{})
	put(t, s, webhook.Endpoint{ID: "a", URL: srv.URL})
	send(t, s, webhook.Message{Endpoints: []string{"a"}})
	l := waitLetters(t, s, 1)[0]
	if l.Reason != "tls_certificate" || l.Attempts != 1 {
		t.Errorf("got %s after %d attempts", l.Reason, l.Attempts)
	}
	alerts, err := s.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
	if err != nil || len(alerts) == 0 || alerts[0].Reason != "tls_certificate" {
		t.Errorf("alerts are %+v, %v", alerts, err)
	}
}

func waitLetters(t *testing.T, s *Service, n int) []deadletter.Letter {
	t.Helper()
	for range 4000 {
		list, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) >= n {
			return list
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("fewer than %d letters", n)
	return nil
}

// call makes one request to the API.
func call(t *testing.T, s *Service, method, path, body string, header ...string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil && !errors.Is(err, io.EOF) {
		v = map[string]any{"text": w.Body.String()}
	}
	return w.Code, v
}
