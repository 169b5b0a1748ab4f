package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/uuid"
	"github.com/forbear-go/forbear/internal/window"
)

// Fleet is the rolling-window budget of R-7 for all instances of a
// service together: give each instance one with the same key and the same
// policy, by way of forbear.WithBudget. MinRetries is then a floor of the fleet, not
// one of each instance, and may be up to 1000.
//
// No call ever waits for the store. Between two reports in the background
// an instance spends what the store lets it hold, and what its own new requests
// have earned since: ratio x their number, rounded down. What it does not spend
// goes to the others with the next report. The sum of all holds and of the
// retries that are booked never exceeds what the fleet may send, and a request
// earns for one instance only; so the fleet oversteps its ratio by at most
//
//	ratio x the initial requests that leave the window during one lease,
//
// because a hold is not taken back when the requests behind it grow too old.
// At an even rate and with the default lease of a second that is one thirtieth
// of the budget; slots count late and leave late on the dependency's side,
// which takes as much away.
//
// While the store is out of reach the instance has its own requests alone: a
// [Ratio] without a floor, and, so that no instance spends again what the
// fleet has spent already, no more than it has earned since the last reading.
// Alone it cannot see the fleet's older requests leave the window: across an
// outage of d the bound above is that of the requests of window + d.
// A store that comes back empty learns the present window from all instances,
// and grants nothing until a lease has passed.
//
// It is safe for concurrent use. Its success path, Request, takes no lock and
// allocates nothing. [Fleet.Close] ends it. Times given to it are the
// machine's: a simulation of its own clock cannot use it, a synctest bubble
// can.
type Fleet struct {
	policy   Policy
	store    Store
	key      string
	instance string
	opts     FleetOptions
	lease    time.Duration

	initial *window.Sharded
	stop    context.CancelFunc
	done    chan struct{}
	closing sync.Once

	mu       sync.Mutex
	retries  *window.Exact
	total    Usage
	counted  [window.Slots]int64 // what total has of each slot
	countedN uint32              // number of the newest of these
	mark     Usage               // total at the latest report

	// In units: a retry is unit of them, an initial request earns ppm.
	ppm, unit int64
	hold      int64 // granted by the store, until leaseEnd
	own       int64 // earned, left over, and not yet reported
	debt      int64 // to be earned before anything else

	leaseEnd    time.Time
	fleet       Reading
	readAt      time.Time // of fleet; zero before the first
	local       bool      // the store is out of reach
	asked       int64     // retries asked for since the latest report
	askedBefore int64     // and in the time before it
	stats       FleetStats
}

// FleetOptions tune a [Fleet]. The zero value is good for most.
type FleetOptions struct {
	// Interval is the mean time between reports to the store; each is drawn with full
	// jitter, from nothing to twice of it. Default 250 ms.
	Interval time.Duration
	// Timeout bounds one report. Default 100 ms.
	Timeout time.Duration
	// Logger receives the beginning and the end of an outage of the store.
	// Default slog.Default().
	Logger *slog.Logger
	// Strict takes away the floor of the fleet.
	Strict bool
}

// FleetStats count the reports to the store by their result.
type FleetStats struct {
	Reported int64   // reports that the store took
	Failed   int64   // reports that it did not
	Outages  int64   // rows of failed ones
	Local    bool    // the store is out of reach at present
	Reading  Reading // the latest reading
	ReadAt   time.Time
}

// NewFleet returns a budget that shares the one named key in store, and
// starts to report in the background. Zero fields of p are the defaults of
// a synchronous call. The instances of a fleet must agree on p and on the lease, which is
// four times the interval plus the timeout.
func NewFleet(p Policy, store Store, key string, opts FleetOptions) (*Fleet, error) {
	if p = p.WithDefaults(); opts.Strict {
		p.MinRetries = 0
	}
	opts.Interval = cmp.Or(opts.Interval, 250*time.Millisecond)
	opts.Timeout = cmp.Or(opts.Timeout, 100*time.Millisecond)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	b := &Fleet{
		policy: p, store: store, key: key, instance: uuid.New(), opts: opts,
		lease:   4*opts.Interval + opts.Timeout,
		initial: window.NewSharded(p.Window), retries: window.NewExact(p.Window),
		done: make(chan struct{}),
	}
	b.ppm, b.unit = p.parts()
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("fleet budget %q: %w", key, err)
	}
	b.countedN = b.initial.Slots(time.Now(), &b.counted)
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go b.run(ctx)
	return b, nil
}

// maxFleetFloor bounds the floor of a fleet: that of a hundred instances which each
// have a floor of their own, the highest that needs no waiver.
const maxFleetFloor = 100 * MaxMinRetries

func (b *Fleet) validate() error {
	var errs []error
	if b.store == nil {
		errs = append(errs, errors.New("no store"))
	}
	if b.key == "" {
		errs = append(errs, errors.New("no key"))
	}
	if r := b.policy.Ratio; !(r > 0 && r < 1) {
		errs = append(errs, fmt.Errorf("ratio %v is outside 0-1 (R-7)", r))
	}
	if n := b.policy.MinRetries; n < 0 || n > maxFleetFloor {
		errs = append(errs, fmt.Errorf("min_retries %d is outside 0-%d (R-7)", n, maxFleetFloor))
	}
	if b.opts.Interval < 0 || b.opts.Timeout < 0 {
		errs = append(errs, fmt.Errorf("interval %v or timeout %v is negative", b.opts.Interval, b.opts.Timeout))
	}
	if w := b.policy.Window; w < 4*b.lease {
		errs = append(errs, fmt.Errorf("window %v is shorter than four leases of %v", w, b.lease))
	}
	return errors.Join(errs...)
}

// Policy returns b's policy, with its defaults.
func (b *Fleet) Policy() Policy { return b.policy }

// Request implements [Budget].
func (b *Fleet) Request(now time.Time) { b.initial.Add(now, 1) }

// Spend implements [Budget]. The cost does not matter to a ratio.
func (b *Fleet) Spend(now time.Time, _ Cost) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	b.count(now)
	held, earned, spent := b.share(now)
	if held+earned < spent+b.unit {
		return false
	}
	if b.alone(now) && b.retries.Sum(now)+1 > b.allowedAlone(now) {
		return false
	}
	b.retries.Add(now, 1)
	b.total.Retries++
	return true
}

// Refund implements [Budget].
func (b *Fleet) Refund(now time.Time, _ Cost) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total.Retries == 0 {
		return
	}
	b.retries.Remove(now)
	b.total.Retries--
}

// share returns, in units, what the instance may spend since the latest
// report and what it has spent; b.mu is held, requests are counted.
func (b *Fleet) share(now time.Time) (held, earned, spent int64) {
	if now.Before(b.leaseEnd) {
		held = b.hold
	}
	earned = b.own + max(0, b.ppm*(b.total.Initial-b.mark.Initial)-b.debt)
	return held, earned, b.unit * (b.total.Retries - b.mark.Retries)
}

// alone reports whether the instance has no reading of the fleet to go by.
func (b *Fleet) alone(now time.Time) bool { return b.local || !now.Before(b.leaseEnd) }

// allowedAlone is the budget of the instance's own requests, without a floor.
func (b *Fleet) allowedAlone(now time.Time) int64 {
	return b.ppm * b.initial.Sum(now) / b.unit
}

// count brings the total of initial requests up to date; b.mu is held.
func (b *Fleet) count(now time.Time) {
	var counts [window.Slots]int64
	newest := b.initial.Slots(now, &counts)
	shift := int(int32(newest - b.countedN))
	if shift < 0 {
		return // an older time than the last one; nothing is lost
	}
	for age, n := range counts {
		if age >= shift {
			n -= b.counted[age-shift]
		}
		b.total.Initial += n
	}
	b.counted, b.countedN = counts, newest
}

// Level implements [Budget]: that of the fleet, or the instance's own while the
// store is out of reach.
func (b *Fleet) Level(now time.Time) Level {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(now)
	if b.alone(now) {
		return Level{Used: float64(b.retries.Sum(now)), Allowed: float64(b.allowedAlone(now))}
	}
	return Level{
		Used:    float64(b.fleet.Retries + b.total.Retries - b.mark.Retries),
		Allowed: float64(b.policy.Allowed(b.fleet.Initial + b.total.Initial - b.mark.Initial)),
	}
}

// Stats returns the counts of reports and the latest reading.
func (b *Fleet) Stats() FleetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Local, s.Reading, s.ReadAt = b.local, b.fleet, b.readAt
	return s
}
