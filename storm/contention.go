package storm

import (
	"time"

	"github.com/forbear-go/forbear/storm/internal/exact"
)

// Contention is the model of the AWS Architecture Blog's "Exponential Backoff
// and Jitter": clients that all want to change one row, each by a read and a
// conditional write, and try again when another was faster. The row has no
// limit of capacity, which is why no backoff at all is the quickest here; draw
// no conclusion about real servers from that.
type Contention struct {
	Clients int
	Client  Client // its backoff; counts and budgets do not matter
	// FirstExponent is the exponent of the first wait: 0 in R-1, 1 in the
	// blog's program.
	FirstExponent int
	// Each message takes |normal(NetMean, NetSpread)|.
	NetMean, NetSpread time.Duration
	Seed               uint64
}

// Contended is what a [Contention] came to.
type Contended struct {
	Time   time.Duration // until the last client is done
	Writes int
}

// Run plays the contention out. The blog's clients never give up.
func (c Contention) Run() (Contended, error) {
	k := c.Client
	k.Kind, k.Retries = "event", nil
	k.Baseline.NoBudget = true
	plan, err := k.plan()
	if err != nil {
		return Contended{}, err
	}
	plan.Given.MaxRetries, plan.Baseline.Unchecked = 1<<20, true
	took, writes, err := exact.Contend(plan, exact.Rivals{
		Clients: c.Clients, FirstExponent: c.FirstExponent, NetMean: c.NetMean, NetSpread: c.NetSpread, Seed: c.Seed,
	})
	return Contended{took, writes}, err
}
