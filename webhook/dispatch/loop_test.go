package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
)

// endsBetween is a context that ends right after it was asked for the first
// time.
type endsBetween struct {
	context.Context
	asked int
}

func (c *endsBetween) Err() error {
	if c.asked++; c.asked == 1 {
		return nil
	}
	return c.Context.Err()
}

// The main loop ends whenever its context does: between two of its questions,
// too, and when the last outcome is there already. A bubble whose goroutines
// all wait is a failure.
func TestMainLoopEnds(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d, err := New(Config{Store: &lateStore{}, Alerts: noAlerts{}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if closed {
				close(d.outcomes)
			}
			quiet, done := make(chan struct{}), make(chan struct{})
			go func() { (&loop{d: d}).run(&endsBetween{Context: ctx}, quiet); close(done) }()
			if !closed {
				<-quiet
				close(d.outcomes)
			}
			<-done
		})
	}
}
