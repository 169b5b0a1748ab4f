package webhook

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// drainBudget is R-7's budget of an endpoint, with a way out of a backlog.
// A queue that holds nothing but retries, after an outage, would be allowed
// next to nothing of 20 % of its initial requests. So each delivery that
// succeeds makes room for two retries beyond the ratio, up to a bound, and each
// failure halves that room: a receiver that is well again gets its backlog at
// a rate that doubles until the lane's own concurrency and rate hold it, and
// one that is not gets the ratio.
type drainBudget struct {
	forbear.Budget

	mu   sync.Mutex
	room float64
}

const maxRoom = 1000

// Spend implements [forbear.Budget].
func (b *drainBudget) Spend(now time.Time, c forbear.Cost) bool {
	if b.Budget.Spend(now, c) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room < 1 {
		return false
	}
	b.room--
	return true
}

func (b *drainBudget) succeeded() {
	b.mu.Lock()
	b.room = min(b.room+2, maxRoom)
	b.mu.Unlock()
}

func (b *drainBudget) failed() {
	b.mu.Lock()
	b.room /= 2
	b.mu.Unlock()
}
