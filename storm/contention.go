package storm

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
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

// contender is a client that wants the row.
type contender struct {
	version  int
	attempt  int
	prevWait time.Duration
}

// Run plays the contention out.
func (c Contention) Run() (Contended, error) {
	const (
		read = iota
		answerRead
		write
		won
		lost
	)
	k := c.Client
	k.Kind, k.Retries = "event", nil
	k.Baseline.NoBudget = true
	plan, err := k.plan()
	if err != nil {
		return Contended{}, err
	}
	// The blog's clients never give up.
	plan.given.Baseline.Unchecked = true
	plan.given.Retries = new(int)
	*plan.given.Retries = 1 << 20
	rng := rand.New(rand.NewPCG(c.Seed, 5))
	b, err := plan.caller(rng.Float64, 1, 1)
	if err != nil {
		return Contended{}, err
	}
	net := func() int64 {
		return int64(math.Abs(float64(c.NetMean) + float64(c.NetSpread)*rng.NormFloat64()))
	}
	all := make([]contender, c.Clients)
	w := newWheel(float64(c.Clients) * 100)
	for i := range all {
		w.push(event{at: net(), idx: uint32(i), gk: read})
	}
	var out Contended
	epoch, version := startOfTime(), 0
	for {
		e, ok := w.pop()
		if !ok {
			return out, nil
		}
		me := &all[e.idx]
		next := event{at: e.at + net(), idx: e.idx}
		switch e.kind() {
		case read:
			me.version = version
			next.gk = answerRead
		case answerRead:
			next.gk = write
		case write:
			out.Writes++
			if next.gk = lost; me.version == version {
				version++
				next.gk = won
			}
		case won:
			out.Time = time.Duration(e.at)
			continue
		case lost:
			me.attempt++
			s := forbear.State{Attempt: me.attempt + c.FirstExponent, Start: epoch.Add(time.Duration(e.at)), PrevWait: me.prevWait}
			d := b.r.Next(&s, failedAnswer, epoch.Add(time.Duration(e.at)))
			me.prevWait = plan.wait(&d, me.attempt+c.FirstExponent, rng.Float64)
			next.at += int64(me.prevWait)
			next.gk = read
		}
		w.push(next)
	}
}
