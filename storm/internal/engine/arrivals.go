package engine

import "github.com/forbear-go/forbear/storm/internal/model"

// fleetState is the arrival process of one fleet.
type fleetState struct {
	// gen is that of the arrival that is on the wheel; older ones are stale.
	gen uint32
	// factor is that on the load, of the spikes that hold now.
	factor float64
	// next is the instance whose turn it is, where they take turns.
	next int
}

// seed puts in what is known from the start: the first requests of every fleet,
// the boundaries of the faults and the end of the first bin.
func (x *engine) seed() {
	spike := x.m.Spike(0)
	for i := range x.m.Fleets {
		f := &x.m.Fleets[i]
		x.fleets[i].factor = spike
		switch {
		case f.Burst > 0:
			x.push(int64(f.BurstAt), evBurst, uint32(i), 0)
		case f.Users > 0:
			for range f.Users {
				x.push(x.thinkTime(f, spike), evThink, uint32(i), 0)
			}
		default:
			x.nextArrival(i)
		}
	}
	for _, t := range x.m.Boundaries() {
		x.push(t, evChange, 0, 0)
	}
	x.push(int64(x.m.Bin)-1, evBin, 0, 0) // before whatever happens on the boundary
}

// request begins a call of the fleet.
func (x *engine) request(fleet int) {
	i := x.anyOf(fleet)
	if f := &x.fleets[fleet]; x.m.Fleets[fleet].Turns {
		i = f.next
		f.next = (i + 1) % x.m.Edges[fleet].Instances
	}
	x.begin(fleet, int32(i), -1, 0, false)
}

// anyOf returns an instance of edge e by chance. That is why one breaker opens later
// than another.
func (x *engine) anyOf(e int) int {
	if n := x.m.Edges[e].Instances; n > 1 {
		return x.spread.IntN(n)
	}
	return 0
}

// nextArrival schedules the fleet's next request, at its present rate. It makes
// the one that is on the wheel stale: a spike that begins draws a new gap.
func (x *engine) nextArrival(i int) {
	f, s := &x.m.Fleets[i], &x.fleets[i]
	s.gen++
	rate := f.Rate * s.factor
	if rate <= 0 {
		return
	}
	gap := 1e9 / rate
	if !f.Regular {
		gap *= x.arrivals.ExpFloat64()
	}
	x.push(x.now+int64(gap+0.5), evArrival, uint32(i), s.gen&genMask)
}

// onArrival begins the request that is due and schedules the one after it.
func (x *engine) onArrival(e event) {
	i := int(e.idx)
	if x.fleets[i].gen&genMask != e.gen() {
		return
	}
	x.request(i)
	x.nextArrival(i)
}

// thinkTime draws when a user of f is back. A spike makes users hasty; the floor
// of the factor keeps one of next to nothing from a division by 0.
func (x *engine) thinkTime(f *model.Fleet, factor float64) int64 {
	return x.now + int64(x.arrivals.ExpFloat64()*float64(f.Think)/max(factor, 1e-9))
}
