package check

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/score"
)

// luck is how the attempts of one process end in the partial failure. The first attempt
// has the first luck, whatever the policy, and so on: as long as a breaker is closed it
// sees the same as any other, so that one look tells which of them stay closed.
type luck struct {
	failed []int32 // of the first n attempts
	// rates are the highest rates that any n or more attempts in a row show, by n.
	rates []float64
}

// typical are the seeds of three processes in which breakers of many kinds cost what they
// cost in the mean of 160, to 11 % of the calls and mostly to 4 %. A breaker that opens
// early stays open for most of the minute, so that any three tell little.
var typical = []uint64{133, 158, 10}

// lucks are those of the typical processes.
var lucks = sync.OnceValue(func() []*luck {
	all := make([]*luck, len(typical))
	inParallel(len(all), func(i int) { all[i] = newLuck(typical[i]) })
	return all
})

// newLuck draws the ends of more attempts than there can be: no call is retried more
// often than its attempts fail.
func newLuck(seed uint64) *luck {
	const most = partialRate * int(simTime/time.Second) * 11 / 7 // 1.1 of all calls over 1 - partialFailure
	l := &luck{failed: []int32{0}}
	random, n := rand.New(rand.NewPCG(1, seed)), int32(0)
	for range most {
		if random.Float64() < partialFailure {
			n++
		}
		l.failed = append(l.failed, n)
	}
	l.rates = make([]float64, len(l.failed))
	for n := len(l.failed) - 1; n > 0; n-- {
		worst := int32(0)
		for i := n; i < len(l.failed); i++ {
			worst = max(worst, l.failed[i]-l.failed[i-n])
		}
		l.rates[n] = shown(float64(worst), float64(n))
		if n+1 < len(l.rates) {
			l.rates[n] = max(l.rates[n], l.rates[n+1])
		}
	}
	return l
}

// shown returns the rate that so many bad ones of n show: the one above which
// [score.Exceeds] begins to say no. It is Wilson's lower bound.
func shown(bad, n float64) float64 {
	const z2 = score.Certain
	return (bad + z2/2 - math.Sqrt(z2*(bad*(n-bad)/n+z2/4))) / (n + z2)
}

// attempts returns what says how the next attempt ends.
func (l *luck) attempts() func() bool {
	i := 0
	return func() bool {
		i = i%(len(l.failed)-1) + 1
		return l.failed[i] > l.failed[i-1]
	}
}

// doubtful reports whether b opens in any process.
func doubtful(b breaker.Policy) bool {
	return slices.ContainsFunc(lucks(), func(l *luck) bool { return l.mayOpen(b) })
}

// mayOpen reports whether b can open there. It looks at what b looks at while it is
// closed, in both windows, and at a little more: how many attempts a time holds
// depends on the retries.
func (l *luck) mayOpen(b breaker.Policy) bool {
	b = b.WithDefaults(0)
	least := min(max(b.MinCalls, 1), len(l.rates)-1)
	if b.OnBudget == breaker.BudgetOpens {
		return true
	}
	if b.FailureRate >= l.rates[least] {
		return false
	}
	// In each second there are first attempts at least. The slot at the edge of a
	// window does not count.
	busy := int(b.WindowTime.Seconds() * partialRate * 0.95)
	if b.WindowTime < simTime && b.FailureRate < l.rates[min(max(busy, least), len(l.rates)-1)] {
		return true
	}
	for i := least; i < len(l.failed); i++ {
		latest := max(i-b.Window, 0)
		if l.exceeds(latest, i, b.FailureRate) || l.exceeds(0, i, b.FailureRate) {
			return true
		}
	}
	return false
}

// exceeds reports whether the attempts from one to the other show a higher rate.
func (l *luck) exceeds(from, to int, rate float64) bool {
	return score.Exceeds(int64(l.failed[to]-l.failed[from]), int64(to-from), rate, score.Certain)
}
