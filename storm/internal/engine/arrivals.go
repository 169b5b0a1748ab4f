package engine

import "github.com/forbear-go/forbear/storm/internal/model"

// fleetState is the arrival process of one fleet.
type fleetState struct {
	// gen is that of the arrival that is on the wheel; older ones are stale.
	gen uint32
	// rate is that of an open loop now, in requests a second, without the spikes.
	rate float64
	// step is the next of the load.
	step int
	// due is when the next arrival comes, in ns; at a rate of 0, left is the part of the gap
	// that is left.
	due, left float64
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
			x.fleets[i].rate, x.fleets[i].step = f.First(), 1
			x.nextStep(i)
			x.nextArrival(i, 1)
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

// nextArrival schedules the fleet's next request, the given part of a gap from now at the
// present rate. It makes the one that is on the wheel stale.
func (x *engine) nextArrival(i int, part float64) {
	f, s := &x.m.Fleets[i], &x.fleets[i]
	s.gen++
	rate := s.rate * s.factor
	if s.left = part; rate <= 0 {
		return
	}
	gap := part * 1e9 / rate
	if !f.Regular {
		gap *= x.arrivals.ExpFloat64()
	}
	s.due = float64(x.now) + gap
	if s.due < float64(x.end) {
		x.push(x.now+int64(gap+0.5), evArrival, uint32(i), s.gen&genMask)
	}
}

// retime gives fleet i, an open loop, another rate or factor. The gaps of a Poisson
// process have no memory: it begins a new one. Even spacing goes on with what is left of
// its gap, so that many small steps do not put an arrival off again and again.
func (x *engine) retime(i int, rate, factor float64) {
	s := &x.fleets[i]
	if old := s.rate * s.factor; !x.m.Fleets[i].Regular {
		s.left = 1
	} else if old > 0 {
		s.left = max(s.due-float64(x.now), 0) * old / 1e9
	}
	s.rate, s.factor = rate, factor
	x.nextArrival(i, s.left)
}

// nextStep puts the next step of fleet i's load on the wheel, if one is left.
func (x *engine) nextStep(i int) {
	if f, s := &x.m.Fleets[i], &x.fleets[i]; s.step < len(f.Load) && f.Load[s.step].At < x.end {
		x.push(f.Load[s.step].At, evLoad, uint32(i), 0)
	}
}

// onLoad begins the next step of fleet i's load.
func (x *engine) onLoad(i int) {
	s := &x.fleets[i]
	x.retime(i, x.m.Fleets[i].Load[s.step].Rate, s.factor)
	s.step++
	x.nextStep(i)
}

// onArrival begins the request that is due and schedules the one after it.
func (x *engine) onArrival(e event) {
	i := int(e.idx)
	if x.fleets[i].gen&genMask != e.gen() {
		return
	}
	x.request(i)
	x.nextArrival(i, 1)
}

// thinkTime draws when a user of f is back. A spike makes users hasty; the floor
// of the factor keeps one of next to nothing from a division by 0.
func (x *engine) thinkTime(f *model.Fleet, factor float64) int64 {
	return x.now + int64(x.arrivals.ExpFloat64()*float64(f.Think)/max(factor, 1e-9))
}
