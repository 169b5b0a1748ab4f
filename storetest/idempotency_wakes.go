package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// A store that is a Waker makes each end of a run known by its key, whatever the end
// is; one that has nothing to listen to returns at once.
func testKeyWakes(t *testing.T, s idempotency.Store) {
	w, ok := s.(idempotency.Waker)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		w.Wakes(ctx, func(key string) { heard <- key })
	}()
	select {
	case <-heard: // it listens
	case <-done:
		return
	}
	for name, end := range map[string]func(idempotency.Token) error{
		"complete": func(k idempotency.Token) error {
			return s.Complete(t.Context(), k, idempotency.Response{Status: 201}, time.Hour)
		},
		"release": func(k idempotency.Token) error { return s.Release(t.Context(), k) },
		"hold":    func(k idempotency.Token) error { return s.Hold(t.Context(), k, "no one knows") },
	} {
		v := wantKey(t, s, keyClaim(name), idempotency.Acquired)
		if err := end(tokenOf(v)); err != nil {
			t.Fatal(err)
		}
		timeout := time.After(time.Minute)
		for got := ""; got != v.Record.ID.Key; {
			select {
			case got = <-heard:
			case <-timeout:
				t.Fatalf("the end by %s was not heard", name)
			}
		}
	}
	cancel()
	<-done
}
