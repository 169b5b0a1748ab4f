package truth

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm"
)

// The figures of a run.
const (
	good     = iota // part of the calls that ended well
	sends           // requests to the last service, for each call
	peak            // most requests to the last service in a second
	p50             // of good calls, in ms
	p99             // of good calls, in ms
	recovery        // from the end of the last fault, in s; all that is left when it never came
	budget          // part of the calls that the budget ended
	breaker         // part of the calls that the breaker ended
	count
)

var names = [count]string{"good", "sends", "peak", "p50", "p99", "recovery", "budget", "breaker"}

// figures are one run in numbers. NaN is for one that the run does not have.
type figures [count]float64

// bin is what happens in a bin of a run.
type bin struct{ calls, good, sends float64 }

// tally counts a real run. What comes after its last bin does not count.
type tally struct {
	bin time.Duration

	mu              sync.Mutex
	bins            []bin
	took            []time.Duration // by good calls
	budget, breaker float64
}

// at returns the bin of a time.
func (t *tally) at(now time.Duration) *bin {
	if i := int(now / t.bin); i < len(t.bins) {
		return &t.bins[i]
	}
	return &bin{}
}

func (t *tally) sent(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at(now).sends++
}

func (t *tally) began(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at(now).calls++
}

func (t *tally) ended(began, now time.Duration, r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case now >= t.bin*time.Duration(len(t.bins)):
	case r.good:
		t.at(now).good++
		t.took = append(t.took, now-began)
	case r.why == reason.Budget:
		t.budget++
	case r.why == reason.BreakerOpen:
		t.breaker++
	}
}

// figures sums up what has happened so far.
func (w *world) figures() figures {
	t := &w.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	f, calls := sum(&w.s, t.bins)
	slices.Sort(t.took)
	f[p50], f[p99] = quantile(t.took, 0.5), quantile(t.took, 0.99)
	f[budget], f[breaker] = t.budget/calls, t.breaker/calls
	return f
}

// predicted returns the figures of a simulated run of s, of which everything is as many
// times as large as in reality.
func predicted(s *storm.Scenario, r *storm.Result, times float64) figures {
	bins := make([]bin, len(r.Series.Good))
	per := r.Bin.Seconds() / times
	load := r.Services[len(r.Services)-1].Load
	for i := range bins {
		bins[i] = bin{r.Series.Offered[i] * per, r.Series.Good[i] * per, load[i] * per}
	}
	f, _ := sum(s, bins)
	f[p50], f[p99] = float64(r.Summary.P50), float64(r.Summary.P99)
	f[budget], f[breaker] = r.Summary.BudgetRefused/r.Summary.Calls, r.Summary.BreakerRefused/r.Summary.Calls
	return f
}

// sum returns what bins alone say, and the number of calls.
func sum(s *storm.Scenario, bins []bin) (f figures, calls float64) {
	second := int(time.Second / s.Bin.D())
	inSecond := 0.0
	for i, b := range bins {
		calls += b.calls
		f[good] += b.good
		f[sends] += b.sends
		if inSecond += b.sends; i >= second {
			inSecond -= bins[i-second].sends
		}
		f[peak] = max(f[peak], inSecond)
	}
	f[good] /= calls
	f[sends] /= calls
	f[recovery] = recovered(s, bins)
	return f, calls
}

// quantile returns a quantile of sorted times, in ms.
func quantile(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return math.NaN()
	}
	return took[int(math.Ceil(q*float64(len(took))))-1].Seconds() * 1e3
}

// recovered judges by the simulator's rule when the good calls were back: after the last
// two seconds in which fewer calls ended well than 95 % of the usual part, less three
// standard deviations. It is NaN where no fault ends within the run.
func recovered(s *storm.Scenario, bins []bin) float64 {
	end := lastFault(s)
	if end == 0 || end >= s.Duration {
		return math.NaN()
	}
	count := func(from, to int) (b bin) {
		for _, v := range bins[from:to] {
			b.calls += v.calls
			b.good += v.good
		}
		return b
	}
	before := count(0, int(s.Faults[0].At/s.Bin))
	usual := min(before.good/before.calls, 1)
	first, span := int(end/s.Bin), int(storm.Duration(2*time.Second)/s.Bin)
	for i := len(bins) - span; i >= first; i-- {
		b := count(i, i+span)
		want := b.calls * usual
		if b.good >= 0.95*want-3*math.Sqrt(want) {
			continue
		}
		if i == len(bins)-span {
			return (s.Duration - end).Seconds()
		}
		return float64(i+span/2+1)*s.Bin.Seconds() - end.Seconds()
	}
	return 0
}

// lastFault is when the last fault ends.
func lastFault(s *storm.Scenario) (end storm.Duration) {
	for _, f := range s.Faults {
		end = max(end, f.At+f.For)
	}
	return end
}
