package truth

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// fleet makes the calls of f until the run ends.
func (w *world) fleet(f *storm.Fleet) {
	c := newCaller(w, f.Client, f.Instances, f.Calls)
	defer c.close()
	c.turns = f.Burst > 0 // as in the simulator
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
		for w.sleep(time.Duration(w.dice.exponential() / (f.Rate * w.spike()) * 1e9)) {
			calls.Go(func() { w.call(c) })
		}
	}
}

// call makes a call and notes how it ended.
func (w *world) call(c *caller) {
	began := w.now()
	w.tally.began(began)
	r := c.call(w.ctx)
	w.tally.ended(began, w.now(), r)
}

// spike is the factor on the load.
func (w *world) spike() float64 { return w.fault("", storm.Spike).Factor }
