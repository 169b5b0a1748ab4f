package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/reason"
)

// A function that ends its goroutine, as FailNow of a test does, has failed its item for
// good, like one that panics. The run goes on.
func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		p := calm()
		p.MaxConcurrent = 2
		r := retryer(t, p)
		report, err := batch.Run(t.Context(), r, numbers(20), func(_ context.Context, i int) error {
			if i%5 == 0 {
				runtime.Goexit()
			}
			return nil
		}, batch.Options[int]{ID: name, DLQ: q})
		if !errors.Is(err, batch.ErrFailed) || report.Done != 16 || report.Failed != 4 || report.Retries != 0 || report.Problems[0].Reason != reason.Terminal {
			t.Errorf("%v, %+v", err, report)
		}
		if n := r.Bulkhead().Available(); n != 2 {
			t.Errorf("%d places are free, want 2", n)
		}
		if len(q.list) != 4 {
			t.Fatalf("%d letters", len(q.list))
		}
		for _, l := range q.list {
			if l.Panic != "runtime.Goexit" || !strings.Contains(l.Stack, "goexit_test.go") || l.Reason != "terminal" || len(l.History) != 1 || l.Attempts != 1 {
				t.Errorf("got %+v", l)
			}
		}
	})
}

// leaver is a dead-letter queue that ends the goroutine of who puts something into it.
type leaver struct{}

func (leaver) Put(context.Context, deadletter.Letter) error { runtime.Goexit(); return nil }

// What keeps items and ends its goroutine ends the run, as one does that returns an error.
func TestQueueThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, err := batch.Run(t.Context(), retryer(t, calm()), numbers(20), func(_ context.Context, i int) error {
			if i == 0 {
				return forbear.Terminal(errors.New("no such account"))
			}
			return nil
		}, batch.Options[int]{ID: name, DLQ: leaver{}, Concurrency: 1})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("item %q has ended its goroutine", name(0))) || report.Failed != 1 || !report.Cut {
			t.Errorf("%v, %+v", err, report)
		}
	})
}
