package storetest

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// A census has what waits for an operator or for the next attempt, requests and
// events apart, and nothing that runs, is done, has expired or is a dead letter.
func testKeyCensus(t *testing.T, s idempotency.Store) {
	counter, ok := s.(idempotency.Counter)
	if !ok {
		t.Skip("not an idempotency.Counter")
	}
	ctx := t.Context()
	if c := must(counter.Census(ctx))(t); c != (idempotency.Census{}) {
		t.Errorf("of an empty store: %+v", c)
	}
	claim := func(scope, key string, rerun bool, lease time.Duration) idempotency.Token {
		c := keyClaim(key)
		c.ID.Scope, c.Rerun, c.Lease = scope, rerun, lease
		return tokenOf(wantKey(t, s, c, idempotency.Acquired))
	}
	const event, progress = idempotency.EventScope + "orders", idempotency.EventProgressScope + "orders"
	claim("t1", "running", false, time.Minute)
	claim(event, "running", true, time.Minute)
	check(t, s.Complete(ctx, claim("t1", "done", false, time.Minute), idempotency.Response{Status: 200}, time.Hour))
	check(t, s.Release(ctx, claim("t1", "released", false, shortLease)))
	check(t, s.Hold(ctx, claim("t1", "held", false, time.Minute), "cut off"))
	claim("t2", "abandoned", false, shortLease)
	claim("t2", "overdue", true, shortLease)
	expired := keyClaim("expired")
	expired.Rerun, expired.Lease, expired.Retention = true, shortLease, time.Millisecond
	wantKey(t, s, expired, idempotency.Acquired)
	check(t, s.Hold(ctx, claim(event, "held", true, time.Minute), "an operator asked"))
	check(t, s.Hold(ctx, claim(event, "dead", true, time.Minute), idempotency.DeadLetterNote))
	claim(event, "overdue", true, shortLease)
	claim(event, "overdue too", true, shortLease)
	claim(progress, "left", true, shortLease)
	time.Sleep(pastLease)

	c := must(counter.Census(ctx))(t)
	for name, w := range map[string]struct {
		got           idempotency.Waiting
		held, overdue int
	}{"requests": {c.Requests, 2, 1}, "events": {c.Events, 1, 2}} {
		if w.got.Held != w.held || w.got.Overdue != w.overdue {
			t.Errorf("%s: %+v, want %d held and %d overdue", name, w.got, w.held, w.overdue)
		}
		// Both are measured by the store's clock.
		if w.got.HeldFor < pastLease || w.got.HeldFor > time.Hour || w.got.OverdueFor < pastLease-shortLease || w.got.OverdueFor > time.Hour {
			t.Errorf("%s: the ages are %v and %v", name, w.got.HeldFor, w.got.OverdueFor)
		}
	}
}
