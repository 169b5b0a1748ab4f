package storm

import (
	"math"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// A run is back when its goodput, over a span with enough calls for a verdict,
// is at least this part of what it was, less three standard deviations of the
// count: a fixed threshold alone reports shot noise as late recoveries.
const recoveredAt = 0.95

// lastsFor is how long goodput must be back to be back, in seconds: where too little ends
// well by itself, a good moment comes by chance.
const lastsFor = 5

// patience returns the least time after the last fault, in seconds, for which
// goodput that stays away is called metastable: an open breaker must have had
// its time, which grows with each probing that fails and ends at open_for.
func patience(m *model.Model) float64 {
	wait := 0.0
	for i := range m.Edges {
		if p := m.Edges[i].Plan; p.Breaker {
			wait = max(wait, p.Policy.Breaker.OpenFor.Seconds())
		}
	}
	return wait + 5
}

// lasting returns the part of the first attempts that faults which last to the
// end of the run let pass, or 0 when there are other faults than of that kind.
func (c *compiled) lasting() float64 {
	pass, s := 1.0, &c.s
	for _, f := range s.Faults {
		if f.At+f.For < s.Duration || f.Kind != Errors && f.Kind != Outage && f.Kind != Slow {
			return 0
		}
		if f.Kind != Slow { // what is slow is not failed
			pass *= 1 - f.Rate*s.part(&f)*c.sending(f.Method)
		}
	}
	return pass
}

// sending returns the part of the fleets' requests that have the method; all have "".
func (c *compiled) sending(method string) float64 {
	var all, some float64
	for i := range c.s.Fleets {
		load := c.s.rateOf(&c.s.Fleets[i])
		all += load
		if method == "" || c.m.Edges[i].Plan.Method == method {
			some += load
		}
	}
	return some / max(all, 1e-9)
}

// judge returns the verdict on r, and the recovery time in seconds: -1 for none. lasting
// is what a fault without an end lets pass; 0 is for one that ends, or lets nothing pass.
// It compares the goodput after the last fault with that before the first one: a run
// that was in trouble before is overloaded, and one that is too short for patience
// undecided.
func judge(r *Result, patience, lasting float64) (v Verdict, recovery float64) {
	bin, n := r.Bin.Seconds(), len(r.Series.Good)
	if n == 0 || r.Summary.Calls == 0 {
		return Steady, 0
	}
	span := windowFor(r)
	// Without a fault there is nothing to recover from: what is bad at the end is
	// bad by itself.
	if r.Trigger == nil {
		if lastBad(r, 0, span, 1) >= n-span {
			return Overloaded, 0
		}
		return Steady, 0
	}
	// Nothing recovers from a fault that lasts. What fails by chance is not trouble.
	if lasting > 0 {
		if lastBad(r, 0, span, lasting) >= n-span {
			return Undecided, -1
		}
		return Steady, 0
	}
	usual := usualGoodput(r, int(r.Trigger[0].Seconds()/bin))
	if usual == 0 {
		return Overloaded, -1
	}
	end := r.Trigger[1].Seconds()
	first := int(math.Ceil(end/bin - 1e-9))
	if first+span > n {
		return Undecided, -1
	}
	// The last bad span decides: a run that comes back and fails again is not back.
	switch last := lastBad(r, first, span, usual); {
	case last < first:
		return Recovered, 0
	case last < n-max(span, int(lastsFor/bin)):
		return Recovered, max(0, float64(last+span/2+1)*bin-end)
	case last < n-span, r.Duration.Seconds()-end < patience:
		return Undecided, -1
	}
	return Metastable, -1
}

// windowFor returns the number of bins that hold about a thousand calls, but no
// more than two seconds.
func windowFor(r *Result) int {
	bin := r.Bin.Seconds()
	perBin := r.Summary.Calls / float64(len(r.Series.Good))
	n := int(math.Ceil(1000 / max(perBin, 1e-9)))
	return max(1, min(n, int(2/bin), len(r.Series.Good)))
}

// usualGoodput returns the part of calls that ended well in the bins before the
// trouble. A lead of less than a second says nothing: all calls are taken to end
// well then. 0 says that too few did, which is no state to go back to.
func usualGoodput(r *Result, bins int) float64 {
	calls, good := r.count(r.Series.Offered, 0, bins), r.count(r.Series.Good, 0, bins)
	if float64(bins)*r.Bin.Seconds() < 1 || calls == 0 {
		return 1
	}
	// A second of calls is under way at any time.
	if good < recoveredAt*(calls-r.count(r.Series.Offered, max(0, bins-int(1/r.Bin.Seconds())), bins))-3*math.Sqrt(calls) {
		return 0
	}
	return min(good/calls, 1)
}

// lastBad returns the first bin of the last span, from bin first on, in which
// the goodput is missing; first-1 when there is none.
func lastBad(r *Result, first, span int, usual float64) int {
	for i := len(r.Series.Good) - span; i >= first; i-- {
		want := r.count(r.Series.Offered, i, i+span) * usual
		if r.count(r.Series.Good, i, i+span) < recoveredAt*want-3*math.Sqrt(want) {
			return i
		}
	}
	return first - 1
}

// count returns how many there were, at the rates of a series, from bin from up to bin
// to or the last one.
func (r *Result) count(rates []float64, from, to int) (n float64) {
	for i := from; i < min(to, len(rates)); i++ {
		n += rates[i] * r.Bin.Seconds()
	}
	return n
}
