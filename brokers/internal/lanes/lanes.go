// Package lanes runs jobs on a fixed number of goroutines, with the jobs of
// one key one after the other. Adapters use it where a broker delivers the
// events of all keys in one stream.
package lanes

import (
	"context"
	"hash/maphash"
	"sync"
)

// Pool is made by [New]. [Pool.Do] is for one goroutine, which is what keeps
// the jobs of a key in order.
type Pool struct {
	free  chan func()
	lanes []chan func()
	seed  maphash.Seed
	wg    sync.WaitGroup
}

// New starts n goroutines; [Pool.Close] ends them. Each has a lane of its
// own, with room for 16 jobs, and helps out with jobs that have no key.
func New(n int) *Pool {
	p := &Pool{free: make(chan func()), lanes: make([]chan func(), n), seed: maphash.MakeSeed()}
	for i := range p.lanes {
		lane := make(chan func(), 16)
		p.lanes[i] = lane
		p.wg.Go(func() {
			free := p.free
			for free != nil || lane != nil {
				select {
				case job, ok := <-lane:
					if !ok {
						lane = nil
						continue
					}
					job()
				case job, ok := <-free:
					if !ok {
						free = nil
						continue
					}
					job()
				}
			}
		})
	}
	return p
}

// Do hands a job to a goroutine: that of its key, or any when it has none.
// It waits until one takes it, and reports false when ctx ends first. Two
// keys may share a lane: then one waits for the other, which costs time and
// not order.
func (p *Pool) Do(ctx context.Context, key string, job func()) bool {
	lane := p.free
	if key != "" {
		lane = p.lanes[maphash.String(p.seed, key)%uint64(len(p.lanes))]
	}
	select {
	case lane <- job:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close waits for the jobs that were taken. Do must not be called
// afterwards.
func (p *Pool) Close() {
	close(p.free)
	for _, lane := range p.lanes {
		close(lane)
	}
	p.wg.Wait()
}
