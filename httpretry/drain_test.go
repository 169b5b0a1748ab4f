package httpretry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// dawdling is a body that takes its time to end.
type dawdling time.Duration

func (d dawdling) Read([]byte) (int, error) { time.Sleep(time.Duration(d)); return 0, io.EOF }
func (d dawdling) Close() error             { return nil }

// The time that a body takes to drain is part of the wait: observers see the
// wait that there is between a failure and the next attempt.
func TestDrainingIsPartOfTheWait(t *testing.T) {
	const drain = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var failed, started time.Time
		var seen time.Duration
		r := quiet(t, forbear.Policy{}, forbear.WithObserver(&forbear.Observer{
			AttemptEnded: func(_ context.Context, e forbear.AttemptEnded) {
				if e.Attempt == 1 {
					failed = time.Now()
				}
			},
			RetryScheduled: func(_ context.Context, e forbear.RetryScheduled) { seen = e.Backoff },
			AttemptStarted: func(_ context.Context, e forbear.Info) {
				if e.Attempt == 2 {
					started = time.Now()
				}
			},
		}))
		s := &script{steps: []step{
			func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: fields("Retry-After:1"), Body: dawdling(drain), ContentLength: 1, Request: req}, nil
			},
			status(200),
		}}
		resp, err := httpretry.NewTransport(s, r).RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if waited := started.Sub(failed); waited != seen || seen < time.Second {
			t.Errorf("waited %v, of which %v to drain; observers saw %v", waited, drain, seen)
		}
	})
}

// The drain of a response whose body stalls is bounded, also after an upload that has a
// timer of its own.
func TestDrainAfterAnUpload(t *testing.T) {
	for _, size := range []int{1000, 64 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int64
				gone := make(chan struct{})
				below := piped(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if n.Add(1) > 1 {
						return
					}
					w.WriteHeader(503)
					_, _ = w.Write([]byte("x"))
					w.(http.Flusher).Flush()
					select {
					case <-r.Context().Done():
					case <-gone:
					}
				})
				defer close(gone)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://files.test/", strings.NewReader(strings.Repeat("x", size)))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					resp, err := httpretry.NewTransport(below, quiet(t, fast)).RoundTrip(req)
					if err == nil {
						_ = resp.Body.Close()
					}
				}()
				select {
				case <-done:
					if took := time.Since(began); took > time.Second {
						t.Errorf("took %v", took)
					}
				case <-time.After(24 * time.Hour):
					t.Error("still draining after a day")
				}
			})
		})
	}
}
