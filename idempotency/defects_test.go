package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// These tests hold what other libraries were seen to get wrong. Each names the defect in
// its comment; handler_test.go and storetest hold further ones.

// direct calls a handler without a network, as tests in a bubble must.
func direct(t *testing.T, store idempotency.Store, o idempotency.Options, do http.HandlerFunc) func() *httptest.ResponseRecorder {
	t.Helper()
	o.Scope, o.Logger = byHeader, quiet()
	h, err := idempotency.Handler(store, o, do)
	if err != nil {
		t.Fatal(err)
	}
	return func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader(`{"amount":1}`))
		r.Header.Set("X-Principal", "t1")
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

// Duplicates of a run of 300 ms have their answer when it ends, and not at the
// next of many polls.
func TestDuplicatesAreWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send := direct(t, &memstore.Idempotency{}, idempotency.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(300 * time.Millisecond)
			w.WriteHeader(201)
		})
		begin := time.Now()
		var wg sync.WaitGroup
		for range 17 { // one runs, sixteen wait
			wg.Go(func() {
				if w := send(); w.Code != 201 || time.Since(begin) != 300*time.Millisecond {
					t.Errorf("got %d after %v", w.Code, time.Since(begin))
				}
			})
		}
		wg.Wait()
	})
}

// More duplicates than may wait are told to come back at once, those that wait
// give up in time, and the key is as usable afterwards as before.
func TestWaitersLeaveTheKeyUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		send := direct(t, &memstore.Idempotency{}, idempotency.Options{Wait: 50 * time.Millisecond, MaxWaiters: 4}, func(w http.ResponseWriter, _ *http.Request) {
			if runs++; runs == 1 {
				time.Sleep(time.Second)
				w.WriteHeader(503)
				return
			}
			w.WriteHeader(201)
		})
		var wg sync.WaitGroup
		wg.Go(func() { send() })
		synctest.Wait()
		begin := time.Now()
		var busy atomic.Int64
		for range 20 {
			wg.Go(func() {
				if w := send(); w.Code == 409 && w.Header().Get("Retry-After") != "" && time.Since(begin) <= 50*time.Millisecond {
					busy.Add(1)
				}
			})
		}
		wg.Wait()
		if busy.Load() != 20 {
			t.Errorf("%d of 20 were told to come back", busy.Load())
		}
		for _, want := range []bool{false, true} {
			if w := send(); w.Code != 201 || (w.Header().Get("Idempotent-Replayed") == "true") != want || runs != 2 {
				t.Errorf("afterwards: %d, %v, %d runs", w.Code, w.Header(), runs)
			}
		}
	})
}

// ordered notes when an answer is stored.
type ordered struct {
	*memstore.Idempotency
	stored atomic.Bool
}

func (o *ordered) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, retention time.Duration) error {
	err := o.Idempotency.Complete(ctx, t, a, retention)
	o.stored.Store(err == nil)
	return err
}

// early fails the test when a byte goes out before the answer is stored.
type early struct {
	http.ResponseWriter
	t     *testing.T
	store *ordered
}

func (e *early) WriteHeader(status int) { e.check(); e.ResponseWriter.WriteHeader(status) }

func (e *early) Write(p []byte) (int, error) { e.check(); return e.ResponseWriter.Write(p) }

func (e *early) check() {
	if !e.store.stored.Load() {
		e.t.Error("an answer went out before it was stored")
	}
}

// The client has the answer after the store has it, whether it fits or is too
// large to be kept.
func TestAnswerIsStoredBeforeItIsSent(t *testing.T) {
	for _, size := range []int{10, 5000} {
		store := &ordered{Idempotency: &memstore.Idempotency{}}
		h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), MaxResponse: 1000}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			for range size / 10 {
				_, _ = w.Write([]byte("0123456789"))
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/pay", nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(&early{w, t, store}, r)
		if w.Code != 201 || w.Body.Len() != size {
			t.Errorf("got %d with %d bytes", w.Code, w.Body.Len())
		}
	}
}

// A handler cannot get at the connection behind the recorder's back, and a
// switch of protocols is not stored as if it were an answer.
func TestNothingPassesTheRecorder(t *testing.T) {
	s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusSwitchingProtocols)
	})
	s.want(s.send(), 500, "", false, 1)
	s.want(s.send(), 500, "", false, 2)
}

// A process that died keeps its key for the rest of its lease, and not for as
// long as an answer would be kept.
func TestCrashHoldsTheKeyForALeaseOnly(t *testing.T) {
	for _, rerun := range []bool{false, true} {
		var later atomic.Int64
		store := &memstore.Idempotency{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }}
		dead := make(chan struct{})
		s := serveOn(t, store, idempotency.Options{Wait: -1, Rerun: rerun}, func(w http.ResponseWriter, _ *http.Request, n int64) {
			if n == 1 {
				<-dead // never comes back, as far as the others can tell
			}
			w.WriteHeader(201)
		})
		go func() { _, _ = s.try(context.Background()) }()
		s.begun()
		s.want(s.send(), 409, "in-progress", false, 1)
		later.Store(int64(31 * time.Second))
		if rerun {
			s.want(s.send(), 201, "", false, 2)
			s.want(s.send(), 201, "", true, 2)
		} else {
			s.want(s.send(), 409, "outcome-unknown", false, 1)
		}
		close(dead)
	}
}

// A lease is never without end: neither by a zero nor by a slip.
func TestLeaseIsNeverWithoutEnd(t *testing.T) {
	for _, lease := range []time.Duration{-time.Second, time.Millisecond} {
		if _, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{Scope: byHeader, Lease: lease}, http.NotFoundHandler()); err == nil {
			t.Errorf("lease %v was taken", lease)
		}
	}
	store := &memstore.Idempotency{}
	var left time.Duration
	send := direct(t, store, idempotency.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		list, err := store.List(r.Context(), idempotency.Filter{State: idempotency.Started})
		if err != nil || len(list) != 1 {
			t.Fatalf("got %v, %v", list, err)
		}
		left = time.Until(list[0].LeaseEnd)
	})
	send()
	if left <= 0 || left > 30*time.Second {
		t.Errorf("the lease ends in %v", left)
	}
}

// Two processes on one store run an operation once.
func TestTwoProcessesRunOnce(t *testing.T) {
	store := &memstore.Idempotency{}
	var runs atomic.Int64
	do := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		w.WriteHeader(201)
		fmt.Fprint(w, runs.Add(1))
	}
	sends := []func() *httptest.ResponseRecorder{direct(t, store, idempotency.Options{}, do), direct(t, store, idempotency.Options{}, do)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if w := sends[i%2](); w.Code != 201 || w.Body.String() != "1" {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// A key is what the client says it is: from one character to 64, and no UUID
// unless it likes.
func TestKeysOfAnyLength(t *testing.T) {
	s := serve(t, idempotency.Options{}, nil)
	for n, k := range []string{"1", "order-2026-11-22/7", "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2", strings.Repeat("k", 64)} {
		s.want(s.send(with("Idempotency-Key", k)), 201, "", false, int64(n+1))
		s.want(s.send(with("Idempotency-Key", k)), 201, "", true, int64(n+1))
	}
}

// The handler has a number that is higher in every later run, for writes
// elsewhere that must refuse an earlier one.
func TestHandlerHasAFence(t *testing.T) {
	var fences []int64
	s := serve(t, idempotency.Options{}, func(w http.ResponseWriter, r *http.Request, n int64) {
		if fences = append(fences, idempotency.Fence(r.Context())); n < 3 {
			w.WriteHeader(503)
		}
	})
	for range 4 {
		s.send()
	}
	if len(fences) != 3 || fences[0] < 1 || fences[1] <= fences[0] || fences[2] <= fences[1] {
		t.Errorf("got %v", fences)
	}
}
