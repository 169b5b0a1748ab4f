package brokertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/consume"
)

// While the dependency is down nothing is taken up but what probes it, and nothing is
// given back to the broker, which would have to copy it. When it is up again, all
// that waited is done.
func outage(t *testing.T, b Broker) {
	const events, lasts = 300, 7 * time.Second
	var down atomic.Bool
	var calls, gaveBack, opened, closed atomic.Int64
	k := newKit(t, b, func(context.Context, consume.Event, int) error {
		calls.Add(1)
		if down.Load() {
			return busy()
		}
		return nil
	})
	k.o.InPlace = 0 // as by default
	k.o.Retryer = forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event, Backoff: forbear.Backoff{Base: 50 * time.Millisecond}},
		forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithObserver(&forbear.Observer{
			BreakerMoved: func(m breaker.Transition) {
				switch m.To {
				case breaker.Open:
					opened.CompareAndSwap(0, time.Now().UnixNano())
				case breaker.Closed:
					closed.Store(time.Now().UnixNano())
				}
			},
		})))
	k.o.Observe = func(_ consume.Event, d consume.Decision) {
		if d.Action == consume.RetryAt {
			gaveBack.Add(1)
		}
	}
	down.Store(true)
	for i := range events {
		b.Publish(t, fmt.Sprint("e", i), fmt.Sprint(i%7), "body")
	}
	k.start()
	k.until("the breaker has opened", func() bool { return opened.Load() != 0 })
	time.Sleep(lasts)
	// Twenty calls open it. What was under way then, and one probing, come on top.
	if n := calls.Load(); n > 20+int64(b.Concurrency())+10 {
		t.Errorf("%d calls in the outage", n)
	}
	k.keeps(events)
	down.Store(false)
	back := time.Now()
	k.until("all are done", func() bool { return k.done() == events })
	t.Logf("%d calls for %d events, %d given back; all done %v after it was back, %v after the breaker had closed",
		calls.Load(), events, gaveBack.Load(), time.Since(back), time.Since(time.Unix(0, closed.Load())))
	k.acknowledged()
	// Only a failure that is to wait for longer than its time in place goes back.
	if n := gaveBack.Load(); n > 20 {
		t.Errorf("%d events were given back", n)
	}
}
