package truth

import (
	"math"
	"sync"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// fleet makes the calls of f until the run ends.
func (w *world) fleet(f *storm.Fleet) {
	c := newCaller(w, f.Client, f.Instances, f.Calls)
	defer c.close()
	c.turns = f.Spread == "turns" || f.Burst > 0 // as in the simulator
	var calls sync.WaitGroup
	defer calls.Wait()
	switch {
	case f.Users > 0:
		for range f.Users {
			calls.Go(func() {
				for w.sleep(time.Duration(w.dice.exponential() * float64(f.Think))) {
					w.call(c)
				}
			})
		}
	case f.Burst > 0:
		w.sleep(f.BurstAt.D())
		for range f.Burst {
			calls.Go(func() { w.call(c) })
		}
	default:
		for {
			rate, left := load(f, w.now())
			gap := w.dice.exponential() / (rate * w.spike()) * 1e9
			if !w.sleep(time.Duration(min(gap, left))) {
				return
			}
			if gap < left { // otherwise the next step has come first, and the gap is drawn anew
				calls.Go(func() { w.call(c) })
			}
		}
	}
}

// load returns the rate of an open loop now, and how long it stays, in ns.
func load(f *storm.Fleet, now time.Duration) (rate, left float64) {
	rate, left = f.Rate, math.Inf(1)
	for _, s := range f.Load {
		if s.At.D() > now {
			return rate, float64(s.At.D() - now)
		}
		rate = s.Rate
	}
	return rate, left
}

// call makes a call and notes how it ended.
func (w *world) call(c *caller) {
	began := w.now()
	w.tally.began(began)
	r := c.call(w.ctx)
	w.tally.ended(began, w.now(), r)
}

// spike is the factor on the load.
func (w *world) spike() float64 { f, _ := w.fault(nil, storm.Spike); return f.Factor }
