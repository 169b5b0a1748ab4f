package brokertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
)

// Handlers that hear of no end keep the places of none but themselves, and their events
// are handled once.
func deafHandlers(t *testing.T, b Broker) {
	hang := make(chan struct{})
	k := newKit(t, b, func(_ context.Context, e consume.Event, _ int) error {
		if strings.HasPrefix(e.ID, "deaf") {
			<-hang
		}
		return nil
	})
	k.o.Grace = 100 * time.Millisecond
	k.o.Retryer = forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event, PerAttempt: time.Second}, forbear.WithoutLog(), forbear.WithCallerDeadLetter()))
	for i := range b.Concurrency() {
		b.Publish(t, fmt.Sprint("deaf", i), "k", "body")
	}
	for i := range 20 {
		b.Publish(t, fmt.Sprint("e", i), "k", "body")
	}
	k.start()
	k.until("the others are done", func() bool { return k.done() == 20 })
	// The others may have come first, where a broker delivers in another order.
	k.until("all places were kept", func() bool { return k.c.Stalled().Handlers == b.Concurrency() })
	close(hang)
	k.until("all are done", func() bool { return k.done() == 20+b.Concurrency() })
	k.acknowledged()
	for i := range b.Concurrency() {
		if n := k.ran(fmt.Sprint("deaf", i)); n != 1 {
			t.Errorf("deaf%d ran %d times", i, n)
		}
	}
	if n := k.c.Stalled().Handlers; n != 0 {
		t.Errorf("%d handlers are stalled at the end", n)
	}
}

// StandsStill is the test of a broker whose source has that many places for events that
// wait: when they are all taken, the consumer says so for as long as that lasts.
func StandsStill(t *testing.T, b Broker, places int) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, n int) error {
		if strings.HasPrefix(e.ID, "held") && n == 1 {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 12 * time.Second})
		}
		return nil
	})
	for i := range places {
		b.Publish(t, fmt.Sprint("held", i), "k", "body")
	}
	k.start()
	k.until("all places are taken", func() bool { return k.ran(fmt.Sprint("held", places-1)) == 1 })
	for i := range 3 {
		b.Publish(t, fmt.Sprint("e", i), "k", "body")
	}
	k.until("it says so", func() bool { return k.c.Stalled().Sources == 1 })
	k.until("all are done", func() bool { return k.done() == places+3 })
	k.until("it moves again", func() bool { return k.c.Stalled().Sources == 0 })
}
