package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/pulse"
)

// The parts of what a dispatcher does with its store, again and again and by itself. A
// failure that is in the log alone goes unseen.
const (
	partClaims = iota
	partOutcomes
	partOutbox
	partEndpoints
	partDue
	partHolds
	partFindings
	partAlerts
	partStates
	partHeartbeats
	partLeases
	partOverdue
	partDeletions
	partBodies
	partHistory
	partSpace
	partCounts
	partsLen
)

// parts are indexed by those constants.
type parts [partsLen]pulse.Part

// begin gives each its name and its interval.
func (p *parts) begin(poll time.Duration) {
	for i, of := range [partsLen]struct {
		name  string
		every time.Duration
	}{
		partClaims:     {"claims", 0},
		partOutcomes:   {"outcomes", 0},
		partOutbox:     {"outbox", 0},
		partEndpoints:  {"endpoints", poll},
		partDue:        {"due", poll},
		partHolds:      {"holds", poll},
		partFindings:   {"findings", shareRetry},
		partAlerts:     {"alerts", 0},
		partStates:     {"states", 0},
		partHeartbeats: {"heartbeats", beatEvery},
		partLeases:     {"leases", leaseTime(nil)},
		partOverdue:    {"overdue", overdueEvery},
		partDeletions:  {"deletions", abandonEvery},
		partBodies:     {"bodies", sweepEvery},
		partHistory:    {"history", sweepEvery},
		partSpace:      {"space", sweepEvery},
		partCounts:     {"counts", tallyEvery},
	} {
		p[i].Name, p[i].Every = of.name, of.every
	}
}

// Health returns how the dispatcher's work with its store goes, by its parts. One that
// fails for longer than its interval, and for a quarter of a minute at least, is not
// healthy, nor is one that does not come to an end for as long. The first success makes
// it healthy again.
func (d *Dispatcher) Health() []queue.Health {
	list := make([]queue.Health, partsLen)
	for i := range list {
		list[i] = queue.Health(d.parts[i].State())
	}
	return list
}

// do does f as a part, and logs an error that will pass. It reports whether there was
// none.
func (d *Dispatcher) do(ctx context.Context, part int, what string, f func() error) bool {
	return d.warn(ctx, what, d.parts[part].Do(f))
}
