package consume_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// slowRenewal is a store on which a heartbeat takes a while.
type slowRenewal struct{ *memstore.Idempotency }

func (s slowRenewal) Renew(ctx context.Context, t idempotency.Token, lease time.Duration) error {
	time.Sleep(50 * time.Millisecond)
	return s.Idempotency.Renew(context.WithoutCancel(ctx), t, lease) // it has reached the database
}

// A heartbeat that is on its way while the event becomes a dead letter does not take
// the hold back: a duplicate is dropped, however late it comes.
func TestHeartbeatDoesNotReviveADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.Store, o.Lease = slowRenewal{&memstore.Idempotency{}}, 300*time.Millisecond
		runs := 0
		c := consumer(t, o, func(context.Context, consume.Event) error {
			runs++
			time.Sleep(120 * time.Millisecond) // the first heartbeat began 20 ms ago
			return errors.New("no such account")
		})
		for i := range 2 {
			if d := deliver(t, c, event("e1")); d.Action != consume.DeadLettered || d.Duplicate != (i > 0) || runs != 1 {
				t.Errorf("%d: %+v, %d runs; want one dead letter and a duplicate", i, d, runs)
			}
			time.Sleep(time.Second) // longer than the lease
		}
	})
}
