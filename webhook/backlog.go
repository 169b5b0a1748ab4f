package webhook

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// backlogBudget is R-7's budget of an endpoint, with a way out of a backlog.
//
// The budget measures retries against new messages. What an outage leaves
// behind is all retries and hardly a new message: at 20 % of next to nothing it
// would never drain. So a put-off retry that is delivered gives its own place
// back and opens one more, beyond the ratio, up to the endpoint's concurrency;
// and any failed attempt halves those places. The floor of at least one retry
// in each window begins it. A receiver that is well again has its backlog at a
// rate that doubles until the endpoint's own concurrency and rate hold it. One
// that still fails a part of its requests keeps the places at none, and gets
// what the ratio allows: 20 %.
type backlogBudget struct {
	forbear.Budget

	mu     sync.Mutex
	limit  float64 // the endpoint's concurrency
	places float64
}

// Spend implements [forbear.Budget].
func (b *backlogBudget) Spend(now time.Time, c forbear.Cost) bool {
	if b.Budget.Spend(now, c) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.places < 1 {
		return false
	}
	b.places--
	return true
}

// drained notes that a retry that was put off has been delivered.
func (b *backlogBudget) drained() {
	b.mu.Lock()
	b.places = min(b.places+2, b.limit)
	b.mu.Unlock()
}

// failed notes a failed attempt.
func (b *backlogBudget) failed() {
	b.mu.Lock()
	b.places /= 2
	b.mu.Unlock()
}
