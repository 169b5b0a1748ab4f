package budget

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/internal/window"
)

// This file reports what a Fleet has spent to its store, in the background.

// run is the one goroutine of a Fleet; Close ends it.
func (b *Fleet) run(ctx context.Context) {
	defer close(b.done)
	// The first reading says how large a hold may be, so the second report
	// follows soon.
	next := b.opts.Interval / 10
	for {
		_ = b.report(ctx, false)
		if !wait.Sleep(ctx, next) {
			return
		}
		next = wait.Jitter(2 * b.opts.Interval)
	}
}

// Close reports for the last time, so that what this instance has not spent
// goes to the others at once, and ends the background work. The error is that
// of that report. The budget may still be asked: it is then the instance's
// own. Further calls do nothing.
func (b *Fleet) Close() (err error) {
	b.closing.Do(func() {
		b.stop()
		<-b.done
		err = b.report(context.Background(), true)
	})
	return err
}

// report sends one report. It is never under way twice.
func (b *Fleet) report(ctx context.Context, leave bool) error {
	s, left := b.prepare(leave)
	sent := time.Now()
	bounded, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	fleet, err := b.store.Sync(bounded, b.key, b.policy.Window, s)
	if err != nil {
		if ctx.Err() == nil { // Close reports once more
			b.failed(err, left)
		}
		return err
	}
	b.accepted(fleet, sent, leave)
	return nil
}

// prepare draws up a report for the store. From here on the instance spends only
// the hold that it reports and what it earns anew; left is what else it had.
// That goes to the fleet, or back to own when the report fails.
func (b *Fleet) prepare(leave bool) (s Report, left int64) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(now)
	s = Report{Instance: b.instance, Total: b.total, Recent: b.recent(now), Lease: b.lease, Leave: leave}
	s.Limit = b.policy.Allowed(b.fleet.Initial + b.total.Initial - b.mark.Initial)
	if b.alone(now) {
		s.Limit = b.policy.Allowed(b.initial.Sum(now)) // the last reading is too old
	}
	if !leave {
		s.Want = b.want(s.Limit)
	}
	held, earned, spent := b.share(now)
	left = max(0, earned-spent)
	s.Hold = min(max(0, held-max(0, spent-earned))/b.unit, s.Want)

	b.debt = max(0, b.debt-b.ppm*(b.total.Initial-b.mark.Initial))
	b.hold, b.own, b.mark = s.Hold*b.unit, 0, b.total
	b.asked, b.askedBefore = 0, b.asked
	return s, left
}

// want returns how many retries the instance would like to hold: of what the
// fleet has left, half of an equal share when it is quiet, and twice what it
// has been asked for when it is not. b.mu is held.
func (b *Fleet) want(limit int64) int64 {
	asked := max(b.asked, b.askedBefore)
	free := max(limit-b.fleet.Retries, 0)
	quiet := max(free/int64(2*max(b.fleet.Instances, 1)), 1)
	if asked > 0 {
		return max(quiet, min(2*asked, free/4))
	}
	if b.fleet.Retries+b.fleet.Held >= limit && b.hold > 0 {
		return 0 // all is held: leave it to an instance that may need it
	}
	return quiet
}

// recent returns the usage of the window by slots; b.mu is held, requests are
// counted.
func (b *Fleet) recent(now time.Time) []Usage {
	var retries [window.Slots]int64
	b.retries.Slots(now, &retries)
	usage, n := make([]Usage, window.Slots), 0
	for age := range usage {
		usage[age] = Usage{b.counted[age], retries[age]}
		if usage[age] != (Usage{}) {
			n = age + 1
		}
	}
	return usage[:n]
}

// accepted takes in what the store returned for a report, and logs the end of an
// outage.
func (b *Fleet) accepted(fleet Reading, sent time.Time, leave bool) {
	if b.read(fleet, sent, leave) {
		b.opts.Logger.Info("fleet budget: the store is reachable again", "key", b.key)
	}
}

// maxCount is the largest count that can be told in units.
const maxCount = math.MaxInt64 / 1_000_000

// read takes in a reading and reports whether it ends an outage.
func (b *Fleet) read(fleet Reading, sent time.Time, leave bool) (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Reported++
	b.fleet, b.readAt = fleet, sent
	b.hold, b.leaseEnd = min(fleet.Granted, maxCount)*b.unit, sent.Add(b.lease)
	if leave {
		b.leaseEnd = time.Time{}
	}
	// New requests earn once they have made up for the floor, which may be
	// spent before they come, and for what is spent or held beyond the ratio.
	committed := int64(b.policy.MinRetries)
	if n := fleet.Retries + fleet.Held; n > b.policy.Allowed(fleet.Initial) {
		committed = n
	}
	b.debt = max(0, min(committed, maxCount)*b.unit-b.ppm*min(fleet.Initial, maxCount))
	back, b.local = b.local, false
	return back
}

func (b *Fleet) failed(err error, left int64) {
	if !b.missed(left) {
		return
	}
	b.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn,
		"fleet budget: the store is unreachable, retries are limited by this instance's own requests",
		slog.String("key", b.key), slog.String("error", label.Clean(err.Error())))
}

// missed records a report that failed and reports whether it begins an outage.
func (b *Fleet) missed(left int64) (begins bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Failed++
	b.own += left
	if time.Since(b.readAt) > b.policy.Window {
		b.debt = 0 // the reading that it comes from is no longer true
	}
	if begins = !b.local; begins {
		b.stats.Outages++
	}
	b.local = true
	return begins
}
