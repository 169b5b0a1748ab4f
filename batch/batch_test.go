package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/reason"
)

func retryer(t testing.TB, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p.Kind = forbear.Batch
	r, err := forbear.New("ledger", p, append(opts, forbear.WithoutLog(),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "ledger", Reason: "calm"}))...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// calm is a policy without a breaker and with a budget that never says no here.
func calm() forbear.Policy {
	return forbear.Policy{Breaker: breaker.Policy{Disabled: true}, Budget: budget.Policy{MinRetries: 1 << 20}}
}

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func name(i int) string { return fmt.Sprint(i) }

func busy() error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) }

// letters is a dead-letter queue that can be down.
type letters struct {
	mu   sync.Mutex
	down bool
	list []deadletter.Letter
}

func (l *letters) Put(_ context.Context, x deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errors.New("queue is down")
	}
	l.list = append(l.list, x)
	return nil
}

func TestAllDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		runs, under, most := map[int]int{}, 0, 0
		report, err := batch.Run(t.Context(), retryer(t, calm()), numbers(100), func(_ context.Context, i int) error {
			mu.Lock()
			runs[i]++
			n := runs[i]
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			under--
			mu.Unlock()
			if i%10 == 0 && n < 3 {
				return busy()
			}
			return nil
		}, batch.Options[int]{Concurrency: 7})
		if err != nil || report.Done != 100 || report.Retries != 20 || report.Failed+report.Postponed+report.Skipped != 0 || report.Elapsed <= 0 {
			t.Errorf("%v, %+v", err, report)
		}
		if len(runs) != 100 || most != 7 {
			t.Errorf("%d items, %d at once", len(runs), most)
		}
	})
}

func TestFailedItemsGoToTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		var runs atomic.Int64
		report, err := batch.Run(t.Context(), retryer(t, calm()), numbers(50), func(_ context.Context, i int) error {
			switch i {
			case 3:
				return forbear.Terminal(errors.New("no such account"))
			case 7:
				runs.Add(1)
				return busy()
			case 9:
				panic("bad")
			}
			return nil
		}, batch.Options[int]{ID: name, DLQ: q})
		if !errors.Is(err, batch.ErrFailed) || errors.Is(err, batch.ErrPostponed) || report.Done != 47 || report.Failed != 3 || len(report.Problems) != 3 {
			t.Fatalf("%v, %+v", err, report)
		}
		if runs.Load() != 4 {
			t.Errorf("item 7 ran %d times, want 1 and 3 retries (R-2)", runs.Load())
		}
		reasons := map[string]string{}
		for _, l := range q.list {
			reasons[l.EventID] = fmt.Sprintf("%s %d %s %s", l.Reason, l.Attempts, l.Payload, l.Queue)
		}
		want := map[string]string{"3": "terminal 1 3 ledger", "7": "exhausted 4 7 ledger", "9": "terminal 1 9 ledger"}
		if fmt.Sprint(reasons) != fmt.Sprint(want) {
			t.Errorf("letters %v, want %v", reasons, want)
		}
	})
}

// The total of an item is hard, whatever its function does.
func TestItemHas30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, err := batch.Run(t.Context(), retryer(t, calm()), numbers(1), func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}, batch.Options[int]{})
		if !errors.Is(err, batch.ErrFailed) || report.Elapsed != 30*time.Second || report.Problems[0].Reason != reason.Deadline {
			t.Errorf("%v, %+v", err, report)
		}
	})
}

// A dependency that is down for a while is waited for, not hammered.
func TestDependencyDownForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, done atomic.Int64
		var refused refusals
		r := retryer(t, forbear.Policy{}, forbear.WithObserver(refused.observer()))
		start := time.Now()
		report, err := batch.Run(t.Context(), r, numbers(2000), func(context.Context, int) error {
			if at := time.Since(start); at > time.Second && at < 2*time.Minute {
				calls.Add(1)
				return busy()
			}
			time.Sleep(10 * time.Millisecond)
			done.Add(1)
			return nil
		}, batch.Options[int]{ID: name})
		if !errors.Is(err, batch.ErrPostponed) || report.Cut || report.Done != int(done.Load()) || report.Done+report.Failed+report.Postponed != 2000 {
			t.Fatalf("%v, %+v", err, report)
		}
		// Some 70 calls show that a good dependency has gone bad, those under
		// way end, then there is a probe each 30 s at most.
		if n := calls.Load(); n > 100 {
			t.Errorf("%d calls to a dependency that was down for two minutes", n)
		}
		if n := refused.Load(); n > 3*8 {
			t.Errorf("the breaker was asked %d times in vain", n)
		}
		if n := int64(report.Postponed); n > calls.Load() || report.Failed > 0 {
			t.Errorf("%d calls, and %v", calls.Load(), report)
		}
	})
}

// refusals counts the calls that were not let in.
type refusals struct{ atomic.Int64 }

func (r *refusals) Stopped(_ context.Context, e forbear.Stopped) {
	if e.Attempts == 0 && e.Failure.Type == reason.BreakerOpen.String() {
		r.Add(1)
	}
}

func TestDependencyDownForLong(t *testing.T) {
	for _, patience := range []time.Duration{0, -1, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			q := &letters{}
			j := open(t, filepath.Join(t.TempDir(), "j"))
			var calls atomic.Int64
			o := batch.Options[int]{ID: name, Journal: j, DLQ: q, Patience: patience}
			report, err := batch.Run(t.Context(), retryer(t, forbear.Policy{}), numbers(2000), func(context.Context, int) error {
				calls.Add(1)
				return busy()
			}, o)
			if !errors.Is(err, batch.ErrPostponed) || !report.Cut || report.Done > 0 {
				t.Fatalf("%v, %+v", err, report)
			}
			if report.Elapsed > 6*time.Minute || calls.Load() > 200 {
				t.Errorf("patience %v: %d calls in %v", patience, calls.Load(), report.Elapsed)
			}
			report, err = batch.Run(t.Context(), retryer(t, calm()), numbers(2000), func(context.Context, int) error { return nil }, o)
			if err != nil || report.Done+len(q.list) != 2000 || report.Skipped != len(q.list) {
				t.Errorf("the run after it: %v, %+v, %d letters", err, report, len(q.list))
			}
		})
	}
}

// The budget is one for all items. A retry that it refuses waits, for no longer
// than the item's total, and its end tells how often it was put off.
func TestBudgetIsOneForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		q := &letters{}
		p := forbear.Policy{Strict: true, Breaker: breaker.Policy{Disabled: true}}
		report, err := batch.Run(t.Context(), retryer(t, p), numbers(1000), func(context.Context, int) error {
			calls.Add(1)
			return busy()
		}, batch.Options[int]{Concurrency: 50, ID: name, DLQ: q})
		if !errors.Is(err, batch.ErrFailed) || report.Retries > 200 || calls.Load() > 1200 || report.Retries == 0 {
			t.Errorf("%d calls for 1000 items: %v, %+v", calls.Load(), err, report)
		}
		if report.Elapsed > 30*time.Second || report.Reasons["deadline"] != 1000 || len(q.list) != 1000 {
			t.Errorf("got %v, %d letters", report, len(q.list))
		}
		for _, l := range q.list {
			if waited := l.DeadAt.Sub(l.FirstAttempt); l.Postponed != 1 || l.Attempts < 1 || waited < 29*time.Second || l.LastAttempt.Sub(l.FirstAttempt) > 10*time.Second {
				t.Fatalf("dead after %v: %+v", waited, l)
			}
		}
	})
}

func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		why := errors.New("deployed anew")
		report, err := batch.Run(ctx, retryer(t, calm()), numbers(1000), func(ctx context.Context, i int) error {
			time.Sleep(time.Millisecond) // so that all wait for the hundredth
			if i == 100 {
				stop(why)
			}
			return ctx.Err()
		}, batch.Options[int]{ID: name, DLQ: &letters{down: true}})
		if !errors.Is(err, why) || !report.Cut || report.Done < 90 || report.Failed > 0 {
			t.Errorf("%v, %+v", err, report)
		}
	})
}

// Letters are not dropped: when the queue is down the run ends, and the item is
// not marked.
func TestQueueDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	q := &letters{down: true}
	bad := func(_ context.Context, i int) error {
		if i == 5 {
			return forbear.Terminal(errors.New("bad"))
		}
		return nil
	}
	j := open(t, path)
	o := batch.Options[int]{ID: name, Journal: j, DLQ: q, Concurrency: 1}
	report, err := batch.Run(t.Context(), retryer(t, calm()), numbers(100), bad, o)
	if err == nil || !strings.Contains(err.Error(), "queue is down") || !report.Cut || j.Finished("5") {
		t.Fatalf("%v, %+v", err, report)
	}
	q.down = false
	report, err = batch.Run(t.Context(), retryer(t, calm()), numbers(100), bad, o)
	if !errors.Is(err, batch.ErrFailed) || report.Done+report.Skipped+1 != 100 || len(q.list) != 1 || !j.Finished("5") {
		t.Errorf("%v, %+v, %d letters", err, report, len(q.list))
	}
	report, err = batch.Run(t.Context(), retryer(t, calm()), numbers(100), bad, o)
	if err != nil || report.Skipped != 100 || len(q.list) != 1 {
		t.Errorf("the third run: %v, %+v", err, report)
	}
}

func TestSameItemTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		report, err := batch.Run(t.Context(), retryer(t, calm()), slices.Values([]int{1, 1, 2}), func(context.Context, int) error {
			runs.Add(1)
			time.Sleep(time.Second)
			return nil
		}, batch.Options[int]{ID: name})
		if err != nil || runs.Load() != 2 || report.Skipped != 1 {
			t.Errorf("%v, %+v, %d runs", err, report, runs.Load())
		}
	})
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []int
		_, err := batch.Run(t.Context(), retryer(t, calm()), numbers(100), func(context.Context, int) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}, batch.Options[int]{Concurrency: 1, Progress: func(r batch.Report) { reported = append(reported, r.Done) }})
		if err != nil || len(reported) != 11 || reported[10] != 100 || !slices.IsSorted(reported) {
			t.Errorf("%v, reported %v", err, reported)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := batch.Run(t.Context(), forbear.Must(forbear.New("x", forbear.Policy{})), nil, func(context.Context, int) error { return nil }, batch.Options[int]{DLQ: &letters{}, Concurrency: -1})
	for _, want := range []string{"no items", "kind sync, want batch", "need the ids", "concurrency -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func (o *refusals) observer() *forbear.Observer {
	return &forbear.Observer{Stopped: o.Stopped}
}
