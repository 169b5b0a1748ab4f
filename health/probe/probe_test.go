package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/health/probe"
)

// endpoint is a transport that responds with one status, or with an error for 0,
// and notes when it was asked.
type endpoint struct {
	mu     sync.Mutex
	status int
	asked  []time.Time
}

func (e *endpoint) set(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *endpoint) questions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, time.Now())
	if e.status == 0 {
		return nil, errors.New("connection refused")
	}
	h := http.Header{"Location": {"https://elsewhere.test/"}}
	return &http.Response{StatusCode: e.status, Header: h, Body: http.NoBody, Request: r}, nil
}

// await lets virtual time pass until so many questions more have been asked.
func (e *endpoint) await(more int) {
	for want := e.questions() + more; e.questions() < want; {
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
}

const address = "https://payments.test/health?token=hush"

func start(t *testing.T, e *endpoint, log *bytes.Buffer) *probe.Prober {
	t.Helper()
	p, err := probe.Start(probe.Config{URL: address, Transport: e, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProber(t *testing.T) {
	for _, status := range []int{0, 302, 404, 500, 503} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			e := &endpoint{status: status}
			p := start(t, e, &log)
			healthy := func(when string, want bool) {
				t.Helper()
				if got := p.Healthy(time.Now()); got != want {
					t.Errorf("status %d, %s: healthy is %v, want %v", status, when, got, want)
				}
			}
			healthy("before the first response", true)
			e.await(1)
			healthy("after one failure", true)
			e.await(1)
			healthy("after two", false)
			e.set(204)
			e.await(1)
			healthy("after one success", true)
			e.set(status)
			e.await(1)
			e.set(200)
			e.await(1)
			e.set(status)
			e.await(1)
			healthy("after two failures that are not in a row", true)
			p.Close()
			p.Close()
			if text := log.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, "hush") || !strings.Contains(text, "payments.test") {
				t.Errorf("logged %q, want two changes of payments.test and no secret", text)
			}
		})
	}
}

// TestProbersAreSpread holds that the questions have full jitter, and the mean that
// the interval says.
func TestProbersAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{status: 200}
		p := start(t, e, new(bytes.Buffer))
		began := time.Now()
		time.Sleep(time.Hour)
		p.Close()
		n := e.questions()
		if n < 600 || n > 850 {
			t.Errorf("%d questions in an hour, want about 720", n)
		}
		short, last := 0, began
		for _, at := range e.asked {
			if gap := at.Sub(last); gap > 10*time.Second {
				t.Errorf("a wait of %v, want at most 10 s", gap)
			} else if gap < time.Second {
				short++
			}
			last = at
		}
		if short < n/25 {
			t.Errorf("%d of %d waits are under a second, want about a tenth", short, n)
		}
		time.Sleep(time.Minute)
		if e.questions() != n {
			t.Error("a closed prober went on asking")
		}
	})
}

// TestProberAsGate plugs a prober into a Retryer, over a real connection.
func TestProberAsGate(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	p, err := probe.Start(probe.Config{URL: srv.URL, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for p.Healthy(time.Now()) {
		time.Sleep(time.Millisecond)
	}
	r := forbear.Must(forbear.New("payments", forbear.Policy{}, forbear.WithoutLog(), forbear.WithHealthGate(p.Healthy)))
	runs := 0
	err = r.Do(t.Context(), func(context.Context) error {
		runs++
		return forbear.Retryable(errors.New("flaky"), forbear.Hint{})
	})
	if !errors.Is(err, forbear.ErrUnhealthy) || runs != 1 {
		t.Errorf("got %v after %d attempts, want the gate to stop the first retry", err, runs)
	}
	ill.Store(false)
	for !p.Healthy(time.Now()) {
		time.Sleep(time.Millisecond)
	}
}

func TestStartRefuses(t *testing.T) {
	for _, c := range []probe.Config{
		{},
		{URL: "payments/health"},
		{URL: "ftp://x/"},
		{URL: "http://user:hush@[::1"},
		{URL: address, Interval: -1},
		{URL: address, Timeout: -1},
	} {
		if _, err := probe.Start(c); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: got %v, want it refused without its secret", c, err)
		}
	}
}

func ExampleStart() {
	p, err := probe.Start(probe.Config{URL: "https://payments.internal/health/ready"})
	if err != nil {
		panic(err)
	}
	defer p.Close()
	_, err = forbear.New("payments", forbear.Policy{}, forbear.WithHealthGate(p.Healthy))
	fmt.Println(err)
	// Output:
	// <nil>
}
