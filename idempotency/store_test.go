package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// faulty is a store whose calls fail on demand.
type faulty struct {
	*memstore.Idempotency
	claims, ends atomic.Bool
}

var errDown = errors.New("store is down")

func (f *faulty) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if f.claims.Load() {
		return idempotency.Verdict{}, errDown
	}
	return f.Idempotency.Claim(ctx, c)
}

func (f *faulty) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, d time.Duration) error {
	if f.ends.Load() {
		return errDown
	}
	return f.Idempotency.Complete(ctx, t, a, d)
}

func TestStoreDownAtClaimFailsClosed(t *testing.T) {
	f := &faulty{Idempotency: &memstore.Idempotency{}}
	s := serveOn(t, f, idempotency.Options{}, nil)
	f.claims.Store(true)
	r := s.send()
	s.want(r, 503, "store-unavailable", false, 0)
	if r.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	f.claims.Store(false)
	s.want(s.send(), 201, "", false, 1)
}

// Without room to keep it, an outcome that the store has not heard of is held.
func TestStoreDownAtCompletionDoesNotRunAgain(t *testing.T) {
	var skew atomic.Int64
	f := &faulty{Idempotency: &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }}}
	s := serveOn(t, f, idempotency.Options{Wait: -1, Backlog: &idempotency.Backlog{Store: f, MaxEntries: -1, Logger: quiet()}}, nil)
	f.ends.Store(true)
	s.want(s.send(), 201, "", false, 1) // the response is true all the same
	f.ends.Store(false)
	s.want(s.send(), 409, "in-progress", false, 1)
	skew.Store(int64(time.Minute))
	s.want(s.send(), 409, "outcome-unknown", false, 1)

	list, err := f.List(t.Context(), idempotency.Filter{State: idempotency.Held})
	if err != nil || len(list) != 1 || list[0].Operation != "POST /pay" {
		t.Fatalf("got %+v, %v", list, err)
	}
	if err := f.Resolve(t.Context(), list[0].ID, idempotency.Resolution{Response: &idempotency.Response{Status: 201, Body: []byte("settled")}, By: "ann", Why: "seen in the ledger"}); err != nil {
		t.Fatal(err)
	}
	if r := s.send(); r.status != 201 || r.body != "settled" || !r.replayed() {
		t.Errorf("got %+v", r)
	}
}

// A run that was frozen beyond its lease, and taken over, gives the answer
// that counts and not its own.
func TestFencedRunGivesTheStoredAnswer(t *testing.T) {
	var skew atomic.Int64
	store := &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }}
	first, gate := make(chan struct{}), make(chan struct{})
	fences := make(chan int64, 2)
	s := serveOn(t, store, idempotency.Options{Rerun: true}, func(w http.ResponseWriter, r *http.Request, n int64) {
		fences <- idempotency.Fence(r.Context())
		if n == 1 {
			close(first)
			<-gate
		}
		w.WriteHeader(201)
		_, _ = w.Write([]byte{'0' + byte(n)})
	})
	done := make(chan reply)
	go func() { r, _ := s.try(t.Context()); done <- r }()
	<-first
	skew.Store(int64(time.Hour)) // its heartbeats come too late
	if r := s.send(); r.status != 201 || r.body != "2" || r.replayed() {
		t.Fatalf("takeover: got %+v", r)
	}
	close(gate)
	if r := <-done; r.status != 201 || r.body != "2" || !r.replayed() {
		t.Errorf("the fenced run answered %+v", r)
	}
	if a, b := <-fences, <-fences; a != 1 || b != 2 {
		t.Errorf("fences %d and %d", a, b)
	}
}

// A run that loses its lease to another is told so, at its next heartbeat.
func TestLostLeaseEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew, runs atomic.Int64
		store := &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }}
		ended := make(chan error, 1)
		send := direct(t, store, idempotency.Options{Rerun: true, Lease: 150 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			if runs.Add(1) == 1 {
				<-r.Context().Done()
				ended <- context.Cause(r.Context())
			}
			w.WriteHeader(201)
		})
		begun := time.Now()
		go send()
		synctest.Wait()
		skew.Store(int64(time.Hour)) // before its heartbeat
		if w := send(); w.Code != 201 || runs.Load() != 2 {
			t.Errorf("the other got %d after %d runs", w.Code, runs.Load())
		}
		if err := <-ended; !errors.Is(err, idempotency.ErrFenced) || time.Since(begun) > 150*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
	})
}

// The heartbeat keeps a long run its own.
func TestHeartbeatKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		send := direct(t, &memstore.Idempotency{}, idempotency.Options{Rerun: true, Lease: 150 * time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
			runs.Add(1)
			time.Sleep(600 * time.Millisecond)
			w.WriteHeader(201)
		})
		go send()
		time.Sleep(300 * time.Millisecond)
		if w := send(); w.Code != 201 || w.Header().Get("Idempotent-Replayed") != "true" || runs.Load() != 1 {
			t.Errorf("got %d %v after %d runs, want the response of one", w.Code, w.Header(), runs.Load())
		}
	})
}
