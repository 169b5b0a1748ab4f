package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/batch"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// dependency fails a share of the attempts. Each attempt of each item has its
// own luck, the same in all runs with one seed.
type dependency struct {
	seed  uint64
	share func(since time.Duration) float64
	takes time.Duration

	mu     sync.Mutex
	start  time.Time
	sends  map[int]int
	third  map[int]time.Duration // after the start, of an item's third send
	done   map[int]int
	doneAt []time.Duration // after the start, in order
}

func (d *dependency) call(_ context.Context, i int) error {
	time.Sleep(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	since := time.Since(d.start)
	if d.sends[i]++; d.sends[i] == 3 {
		d.third[i] = since
	}
	if d.luck(i, d.sends[i]) < d.share(since) {
		return busy()
	}
	d.done[i]++
	d.doneAt = append(d.doneAt, since)
	return nil
}

func (d *dependency) luck(item, attempt int) float64 {
	return rand.New(rand.NewPCG(uint64(item)<<8|uint64(attempt), d.seed)).Float64()
}

// allowed returns how many of n items the attempts allow to be done.
func (d *dependency) allowed(n, attempts int, share float64) (can int) {
	for i := range n {
		for a := range attempts {
			if d.luck(i, a+1) >= share {
				can++
				break
			}
		}
	}
	return can
}

func constant(share float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return share }
}

// totals are the sends of a run, and how many of them were first attempts.
func (d *dependency) totals() (sends, firsts int) {
	for _, n := range d.sends {
		sends += n
	}
	return sends, len(d.sends)
}

const partialItems = 3000

// run works on the items, in virtual time.
func (d *dependency) run(t *testing.T, p forbear.Policy, o batch.Options[int], items iter.Seq[int], opts ...forbear.Option) (report batch.Report, err error) {
	t.Helper()
	d.start, d.sends, d.third, d.done, d.doneAt = time.Now(), map[int]int{}, map[int]time.Duration{}, map[int]int{}, nil
	return batch.Run(t.Context(), retryer(t, p, opts...), items, d.call, o)
}

// moves are the transitions of a breaker.
type moves struct {
	mu   sync.Mutex
	list []breaker.Transition
}

func (m *moves) BreakerMoved(e breaker.Transition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, e)
}

// TestPartialFailure: what a dependency that fails a part of the attempts can
// do is done nearly as soon as without a budget and a breaker, with as few sends.
func TestPartialFailure(t *testing.T) {
	t.Log("failures  base   workers  allowed  ideal: 99 % after, sends   forbear: done, 99 % after, sends  first attempts")
	for _, share := range []float64{0.15, 0.25, 0.30, 0.40} {
		for _, base := range []time.Duration{time.Second, 50 * time.Millisecond} {
			for _, workers := range []int{8, 64} {
				t.Run(fmt.Sprintf("%.0f %%, base %v, %d workers", 100*share, base, workers), func(t *testing.T) {
					partial(t, share, base, workers)
				})
			}
		}
	}
}

// partial compares runs with as many of an oracle.
func partial(t *testing.T, share float64, base time.Duration, workers int) {
	policy, unbound := forbear.Policy{}, calm()
	policy.Backoff.Base, unbound.Backoff.Base = base, base
	o := batch.Options[int]{Concurrency: workers}
	var sum struct{ allowed, idealDone, idealSends, done, sends, firsts int }
	var ideal, got time.Duration
	seeds := ringtest.Size[uint64](1, 3)
	if base == time.Second && workers == 64 {
		seeds = 3 // two such waits are the whole run: one in a hundred takes 1.3 times as long by luck
	}
	for seed := range seeds {
		d := dependency{seed: seed, share: constant(share), takes: 10 * time.Millisecond}
		allowed := d.allowed(partialItems, 4, share)
		sum.allowed += allowed
		enough := (99*allowed + 99) / 100
		synctest.Test(t, func(t *testing.T) {
			_, _ = d.run(t, unbound, o, numbers(partialItems))
			sends, _ := d.totals()
			sum.idealDone, sum.idealSends = sum.idealDone+len(d.done), sum.idealSends+sends
			ideal += d.doneAt[enough-1]
		})
		synctest.Test(t, func(t *testing.T) {
			report, _ := d.run(t, policy, o, numbers(partialItems))
			sends, firsts := d.totals()
			sum.done, sum.sends, sum.firsts = sum.done+len(d.done), sum.sends+sends, sum.firsts+firsts
			if len(d.doneAt) != report.Done || report.Done+report.Failed != partialItems {
				t.Errorf("%d done, reported %v", len(d.doneAt), report)
			}
			if len(d.doneAt) < enough {
				t.Fatalf("%d done of the %d that the attempts allow", len(d.doneAt), allowed)
			}
			got += d.doneAt[enough-1]
		})
	}
	t.Logf("%3.0f %%    %5v  %4d  %6d   %8v  %6d   %6d  %8v  %6d  %6d", 100*share, base, workers, sum.allowed,
		(ideal / time.Duration(seeds)).Round(time.Millisecond), sum.idealSends, sum.done, (got / time.Duration(seeds)).Round(time.Millisecond), sum.sends, sum.firsts)
	if sum.idealDone != sum.allowed {
		t.Errorf("the oracle did %d, and the attempts allow %d", sum.idealDone, sum.allowed)
	}
	if 10*got > 13*ideal {
		t.Errorf("99 %% after %v, want at most 1.3 times the ideal %v", got, ideal)
	}
	if 10*sum.sends > 11*sum.idealSends {
		t.Errorf("%d sends, want at most 1.1 times the ideal %d", sum.sends, sum.idealSends)
	}
}

// TestEveryOtherAttemptFails: at the breaker's threshold it may open by chance,
// and the last items may find nothing earned. Whatever becomes of an item, it is
// reported, and most are done.
func TestEveryOtherAttemptFails(t *testing.T) {
	for seed := range ringtest.Size[uint64](2, 8) {
		synctest.Test(t, func(t *testing.T) {
			d := dependency{seed: seed, share: constant(0.5), takes: 10 * time.Millisecond}
			m := &moves{}
			report, _ := d.run(t, forbear.Policy{}, batch.Options[int]{}, numbers(partialItems), forbear.WithObserver(m.observer()))
			allowed := d.allowed(partialItems, 4, 0.5)
			t.Logf("seed %d: %d of %d, the breaker moved %d times; %v", seed, len(d.done), allowed, len(m.list), report)
			if len(d.doneAt) != len(d.done) || report.Done != len(d.done) {
				t.Errorf("%d items are done, %d times; reported %v", len(d.done), len(d.doneAt), report)
			}
			if len(m.list) == 0 && (100*len(d.done) < 90*allowed || report.Done+report.Failed != partialItems) {
				t.Errorf("%d of %d: %v", len(d.done), allowed, report)
			}
		})
	}
}

// fetches notes when each item is fetched.
func fetches(items iter.Seq[int], at *[]time.Time) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range items {
			*at = append(*at, time.Now())
			if !yield(i) {
				return
			}
		}
	}
}

// between counts the times from one to another.
func between(at []time.Time, from, to time.Time) (n int) {
	for _, t := range at {
		if !t.Before(from) && t.Before(to) {
			n++
		}
	}
	return n
}

// TestDeadDependency gets few sends, and little is fetched for it.
func TestDeadDependency(t *testing.T) {
	for _, workers := range []int{8, 64} {
		synctest.Test(t, func(t *testing.T) {
			d := dependency{share: constant(1), takes: 10 * time.Millisecond}
			m, fetched := &moves{}, []time.Time{}
			report, _ := d.run(t, forbear.Policy{}, batch.Options[int]{Concurrency: workers}, fetches(numbers(partialItems), &fetched), forbear.WithObserver(m.observer()))
			sends, firsts := d.totals()
			opened := m.list[0].At
			t.Logf("%d workers: %d sends for %d first attempts, %d items fetched, %d of them since the breaker opened, in %d openings; %v",
				workers, sends, firsts, len(fetched), between(fetched, opened, opened.Add(time.Hour)), (len(m.list)+1)/2, report)
			if 10*sends > 12*firsts {
				t.Errorf("%d sends for %d first attempts", sends, firsts)
			}
			if n := between(fetched, opened, opened.Add(m.list[0].OpenFor)); n > workers {
				t.Errorf("%d items fetched while the breaker was open", n)
			}
			if n := between(fetched, opened.Add(m.list[0].OpenFor), opened.Add(time.Hour)); n > (len(m.list)+1)/2 {
				t.Errorf("%d items fetched for %d openings", n, (len(m.list)+1)/2)
			}
			if !report.Cut || report.Failed > 0 || report.Done > 0 || report.Reasons["breaker_open"] != report.Postponed {
				t.Errorf("got %v", report)
			}
		})
	}
}

// TestOutage: what an outage has held up is done when it is over: in the same run
// when the items' totals are not, else in the next. Nothing is done twice. One item
// in a million draws such short waits that three of its attempts are over before the
// breaker has seen enough, and the fourth is a probe: it is a letter, and not lost.
func TestOutage(t *testing.T) {
	for _, outage := range []time.Duration{8 * time.Second, time.Minute} {
		for _, workers := range []int{8, 64} {
			synctest.Test(t, func(t *testing.T) {
				const begins = 500 * time.Millisecond
				d := dependency{takes: 10 * time.Millisecond, share: func(since time.Duration) float64 {
					if since >= begins && since < begins+outage {
						return 1
					}
					return 0
				}}
				q := &letters{}
				o := batch.Options[int]{Concurrency: workers, ID: name, DLQ: q, Journal: open(t, filepath.Join(t.TempDir(), "j"))}
				items := 200 * workers
				report, _ := d.run(t, forbear.Policy{}, o, numbers(items))
				third := d.third
				sends, _ := d.totals()
				t.Logf("%v, %d workers: %d of %d done, %d sends; %v", outage, workers, len(d.done), items, sends, report)
				unlucky := len(q.list)
				if len(d.doneAt) != report.Done || report.Done+report.Postponed+unlucky != items || report.Cut || unlucky > 1 {
					t.Errorf("%d done, %d letters; %v", len(d.doneAt), unlucky, report)
				}
				for _, l := range q.list {
					i, _ := strconv.Atoi(l.EventID)
					if third := third[i] - begins; l.Reason != "exhausted" || l.Attempts != 4 || third > 300*time.Millisecond {
						t.Errorf("item %s given up: %s after %d attempts, the third %v into the outage", l.EventID, l.Reason, l.Attempts, third)
					}
				}
				// A hundred show the outage beside those under way; a probing each 5, 10, 20, 30 s.
				if sends > items+100+2*workers {
					t.Errorf("%d sends for %d items", sends, items)
				}
				if late := d.doneAt[len(d.doneAt)-1] - begins - outage; late > 35*time.Second {
					t.Errorf("the last was done %v after the outage", late)
				}
				if outage < 20*time.Second && report.Postponed > 0 {
					t.Errorf("postponed beyond a short outage: %v", report)
				}
				d.share = constant(0)
				before := len(d.doneAt)
				report, err := batch.Run(t.Context(), retryer(t, forbear.Policy{}), numbers(items), d.call, o)
				if err != nil || report.Skipped != before+unlucky || len(d.done)+unlucky != items || len(d.doneAt)+unlucky != items {
					t.Errorf("the run after it: %v, %v; %d items done, %d times", err, report, len(d.done), len(d.doneAt))
				}
			})
		}
	}
}

// TestWaiting: so many items may wait for a retry, and then none is fetched.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetched []time.Time
		start, tried := time.Now(), map[int]bool{}
		report, err := batch.Run(t.Context(), retryer(t, calm()), fetches(numbers(100), &fetched), func(_ context.Context, i int) error {
			if !tried[i] {
				tried[i] = true
				return forbear.Retryable(errors.New("later"), forbear.Hint{Floor: 10 * time.Second})
			}
			return nil
		}, batch.Options[int]{Concurrency: 1, Waiting: 20})
		if err != nil || report.Done != 100 || report.Retries != 100 {
			t.Errorf("%v, %v", err, report)
		}
		if n := between(fetched, start, start.Add(10*time.Second)); n != 21 { // one is at hand
			t.Errorf("%d items fetched before the first retry, want 20 and the next", n)
		}
	})
}

// When all that may wait wait for the budget, an item now and then is begun even
// so: its success earns the others their retries.
func TestWaitingForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dependency{takes: 10 * time.Millisecond, share: func(since time.Duration) float64 {
			if since < 10*time.Second {
				return 1
			}
			return 0
		}}
		p := forbear.Policy{Strict: true, Breaker: breaker.Policy{Disabled: true}}
		report, _ := d.run(t, p, batch.Options[int]{Waiting: 30}, numbers(1000))
		sends, _ := d.totals()
		t.Logf("%d sends; %v", sends, report)
		if report.Done < 990 || report.Reasons["deadline"] > 0 || report.Elapsed > 14*time.Second {
			t.Errorf("got %v", report)
		}
		if sends > 1000+100 {
			t.Errorf("%d sends for 1000 items", sends)
		}
	})
}

// A slow source of items holds up no retry.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tried := time.Now(), false
		report, err := batch.Run(t.Context(), retryer(t, calm()), func(yield func(int) bool) {
			if yield(1) {
				time.Sleep(time.Hour)
				yield(2)
			}
		}, func(_ context.Context, i int) error {
			if i == 1 && !tried {
				tried = true
				return busy()
			}
			if since := time.Since(start); i == 1 && since > time.Second {
				t.Errorf("the retry came after %v", since)
			}
			return nil
		}, batch.Options[int]{})
		if err != nil || report.Done != 2 {
			t.Errorf("%v, %v", err, report)
		}
	})
}

// A backoff that the end of the run cuts off is no failure of the item.
func TestDeadlineOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		report, err := batch.Run(ctx, retryer(t, calm()), numbers(50), func(context.Context, int) error {
			return forbear.Retryable(errors.New("later"), forbear.Hint{Floor: 1800 * time.Millisecond})
		}, batch.Options[int]{ID: name, DLQ: q})
		if !errors.Is(err, batch.ErrPostponed) || errors.Is(err, batch.ErrFailed) || report.Postponed != 50 || len(q.list) > 0 {
			t.Errorf("%v, %v, %d letters", err, report, len(q.list))
		}
	})
}

// The run's patience is for one outage, not for all of them.
func TestPatienceBeginsAnewAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dependency{takes: 100 * time.Millisecond, share: func(since time.Duration) float64 {
			if since%(90*time.Second) < 20*time.Second {
				return 1
			}
			return 0
		}}
		report, _ := d.run(t, forbear.Policy{}, batch.Options[int]{Patience: 45 * time.Second}, numbers(20_000))
		if report.Cut || report.Done+report.Failed+report.Postponed != 20_000 || report.Elapsed < 4*time.Minute {
			t.Errorf("got %v", report)
		}
	})
}

// No more attempts are begun at once than the policy's bulkhead holds.
func TestBulkheadBoundsTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int64
		o := &observed{}
		p := calm()
		p.MaxConcurrent = 3
		report, err := batch.Run(t.Context(), retryer(t, p, forbear.WithObserver(o.observer())), numbers(100), func(context.Context, int) error {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(time.Millisecond)
			under.Add(-1)
			return nil
		}, batch.Options[int]{})
		if err != nil || report.Done != 100 || most.Load() != 3 || o.putOff.Load() > 0 {
			t.Errorf("%v, %v, %d at once, %d refused", err, report, most.Load(), o.putOff.Load())
		}
	})
}

// observed counts the events of calls.
type observed struct {
	attempts, retries, successes, stops, putOff atomic.Int64
}

func (o *observed) AttemptEnded(context.Context, forbear.AttemptEnded)     { o.attempts.Add(1) }
func (o *observed) RetryScheduled(context.Context, forbear.RetryScheduled) { o.retries.Add(1) }
func (o *observed) Succeeded(context.Context, forbear.Succeeded)           { o.successes.Add(1) }
func (o *observed) Stopped(_ context.Context, e forbear.Stopped) {
	if e.Attempts == 0 {
		o.putOff.Add(1)
	} else {
		o.stops.Add(1)
	}
}

// Observers see each attempt, each retry and each end, once.
func TestObserversAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observed{}
		d := dependency{share: constant(0.7), takes: 10 * time.Millisecond}
		report, _ := d.run(t, forbear.Policy{Backoff: forbear.Backoff{Base: 50 * time.Millisecond}, Breaker: breaker.Policy{Disabled: true}}, batch.Options[int]{}, numbers(1000), forbear.WithObserver(o.observer()))
		sends, _ := d.totals()
		t.Logf("%d retries were put off first", o.putOff.Load())
		if o.attempts.Load() != int64(sends) || o.retries.Load() != int64(report.Retries) ||
			o.successes.Load() != int64(report.Done) || o.stops.Load() != int64(report.Failed) || o.putOff.Load() == 0 {
			t.Errorf("observed %d attempts, %d retries, %d successes, %d ends and %d put off; %d sends, %v",
				o.attempts.Load(), o.retries.Load(), o.successes.Load(), o.stops.Load(), o.putOff.Load(), sends, report)
		}
	})
}

func (o *moves) observer() *forbear.Observer {
	return &forbear.Observer{BreakerMoved: o.BreakerMoved}
}

func (o *observed) observer() *forbear.Observer {
	return &forbear.Observer{AttemptEnded: o.AttemptEnded, RetryScheduled: o.RetryScheduled, Succeeded: o.Succeeded, Stopped: o.Stopped}
}
