package webhook

import (
	"math/bits"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// backlogBudget is R-7's budget of an endpoint, with a way out of a backlog.
//
// The budget measures retries against new messages. What an outage leaves
// behind is all retries and hardly a new message: at 20 % of next to nothing it
// would never drain. So a put-off retry that is delivered gives its own place
// back and opens one more, beyond the ratio, up to the endpoint's concurrency,
// provided that the endpoint is well: that of its latest attempts no larger
// part failed than the ratio. The floor of at least one retry in each window
// begins it. A receiver that is well again has its backlog at a rate that
// doubles until the endpoint's own concurrency and rate hold it. One that fails
// more often, which is what the budget is for, gets what the ratio allows.
type backlogBudget struct {
	forbear.Budget

	ends chan struct{} // a put-off retry has ended: ask again; it holds as many as there are places

	ratio float64

	mu       sync.Mutex
	places   int
	inFlight int    // put-off retries
	latest   uint64 // how attempts ended, the latest in the lowest bit: 1 failed
	known    int    // of these bits
}

func newBacklogBudget(p forbear.BudgetPolicy, concurrency int) *backlogBudget {
	return &backlogBudget{Budget: forbear.NewRatioBudget(p), ratio: p.MaxAmplification() - 1, ends: make(chan struct{}, concurrency)}
}

// Spend implements [forbear.Budget].
func (b *backlogBudget) Spend(now time.Time, c forbear.Cost) bool {
	if b.Budget.Spend(now, c) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places == 0 {
		return false
	}
	b.places--
	return true
}

// begin notes that a put-off retry is being made.
func (b *backlogBudget) begin() {
	b.mu.Lock()
	b.inFlight++
	b.mu.Unlock()
}

// end notes its end.
func (b *backlogBudget) end(delivered bool) {
	b.mu.Lock()
	b.inFlight--
	asks := 2
	if delivered && b.well() {
		b.places = min(b.places+2, cap(b.ends))
	} else if b.inFlight == 0 {
		asks = cap(b.ends) // nobody is left to wait for
	}
	b.mu.Unlock()
	for range asks {
		select {
		case b.ends <- struct{}{}:
		default:
		}
	}
}

// note notes how an attempt of any kind ended. An endpoint that is not well has
// no places.
func (b *backlogBudget) note(failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest <<= 1
	b.known = min(b.known+1, 64)
	if !failed {
		return
	}
	b.latest |= 1
	if !b.well() {
		b.places = 0
	}
}

// well reports whether no larger part of the latest attempts failed than the
// ratio.
func (b *backlogBudget) well() bool {
	return float64(bits.OnesCount64(b.latest)) <= b.ratio*float64(b.known)
}

// forget begins anew: the breaker has closed, which takes good probes.
func (b *backlogBudget) forget() {
	b.mu.Lock()
	b.latest, b.known = 0, 0
	b.mu.Unlock()
}

// patience is how long a retry that was refused waits for others that are under
// way, whose success would open a place: a backlog that begins to drain is not
// put off once more as a whole.
const patience = time.Second

// await waits for the end of a put-off retry, until over or stop. It reports
// whether it is worth asking again.
func (b *backlogBudget) await(over <-chan time.Time, stop <-chan struct{}) bool {
	b.mu.Lock()
	alone := b.inFlight == 0
	b.mu.Unlock()
	if alone {
		return false
	}
	select {
	case <-b.ends:
		return true
	case <-over:
	case <-stop:
	}
	return false
}
