package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// Outcomes wait a moment for company, but not for ever, and not when others wait
// for them.
func TestOutcomesWaitForCompany(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		key     string
		since   time.Duration
		writing int32
		closed  bool
		want    int
		again   time.Duration // 0: when something happens
	}{
		{"none", 0, "", 0, 0, false, 0, 0},
		{"one", 1, "", 0, 0, false, 0, lull},
		{"one, for a while", 1, "", time.Millisecond, 0, false, 0, lull - time.Millisecond},
		{"one, for long enough", 1, "", lull, 0, false, 1, 0},
		{"enough", enough, "", 0, 0, false, enough, 0},
		{"others wait for its key", 1, "k", 0, 0, false, 1, 0},
		{"no more will come", 1, "", 0, 0, true, 1, 0},
		{"two steps are writing", enough, "k", time.Hour, maxWriting, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &loop{open: true}
				l.writing.Store(c.writing)
				for range c.n {
					l.add(store.WriteBack{OrderKey: c.key}, true)
				}
				l.open = !c.closed
				time.Sleep(c.since)
				back, ripe := l.take()
				if len(back) != c.want || ripe.IsZero() != (c.again == 0) || c.again > 0 && time.Until(ripe) != c.again {
					t.Errorf("took %d, again in %v; want %d, %v", len(back), time.Until(ripe), c.want, c.again)
				}
			})
		})
	}
}

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
