// Package slots runs jobs in a fixed number of slots, the jobs of one key one
// after the other. A job that only waits leaves its slot to others meanwhile: so
// events that wait for their retry hold up none that could be handled.
//
// Adapters of brokers use it where a broker delivers the events of all keys in one
// stream, and package consume waits through it.
package slots

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// What a pool holds beside the jobs in its slots, for each slot. They bound memory,
// and what a broker has delivered and does not get acknowledged.
const (
	waitingPerSlot = 16 // jobs that wait beside their slot
	linePerSlot    = 16 // jobs in line behind another of their key
)

// Waiting returns how many jobs may wait beside the slots of a pool of n.
func Waiting(n int) int { return waitingPerSlot * n }

// Pool is made by [New]. [Pool.Do] is for one goroutine, which is what keeps the
// jobs of a key in order.
type Pool struct {
	slots   chan struct{} // one element for each job in a slot
	ahead   chan struct{} // one for each that gets ready beside
	waiting chan struct{} // one for each that waits beside, or ends there
	inLine  chan struct{} // one for each that stands behind another of its key
	jobs    sync.WaitGroup
	working atomic.Int64 // jobs that do not just wait

	// Goroutines are used again: a new one grows its stack for each job.
	idle  chan func() // to one that waits for its next job
	over  chan struct{}
	close sync.Once

	mu    sync.Mutex
	lines map[string][]job // those behind the first of their key, which is running
}

type job func(context.Context)

// New returns a pool of n slots. [Pool.Close] waits for its jobs.
func New(n int) *Pool {
	return &Pool{
		slots: make(chan struct{}, n), ahead: make(chan struct{}, n-1), waiting: make(chan struct{}, Waiting(n)), inLine: make(chan struct{}, linePerSlot*n),
		idle: make(chan func()), over: make(chan struct{}), lines: map[string][]job{},
	}
}

// Do runs a job in a slot, on a goroutine of its own: as soon as one is free, or
// behind the job of its key that runs already. It waits for the slot or the place in
// line, and reports false when ctx ends first. An empty key is none. The job gets ctx
// with its slot, for [Wait].
func (p *Pool) Do(ctx context.Context, key string, run func(context.Context)) bool {
	if key != "" {
		if joined, ok := p.join(ctx, key, run); joined || !ok {
			return ok
		}
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		p.leave(ctx, key)
		return false
	}
	p.jobs.Add(1)
	job := func() {
		defer p.jobs.Done()
		for {
			p.run(ctx, run)
			if run = p.next(key); run == nil {
				return
			}
			p.slots <- struct{}{} // they are in line, and so is who waits for a slot
		}
	}
	select {
	case p.idle <- job:
	default:
		go p.work(job)
	}
	return true
}

// work runs a job, and those that come while it has nothing to do.
func (p *Pool) work(job func()) {
	for {
		job()
		select {
		case job = <-p.idle:
		case <-p.over:
			return
		}
	}
}

// join puts a job behind the others of its key. Without others it makes it the
// first, and joined is false. ok is false when ctx ends before there is a place.
func (p *Pool) join(ctx context.Context, key string, run job) (joined, ok bool) {
	if p.first(key) {
		return false, true
	}
	select {
	case p.inLine <- struct{}{}:
	case <-ctx.Done():
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line, busy := p.lines[key]
	if !busy { // the line has ended in the meantime
		<-p.inLine
		p.lines[key] = nil
		return false, true
	}
	p.lines[key] = append(line, run)
	return true, true
}

// first makes a job the first of its key, unless there is one.
func (p *Pool) first(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, busy := p.lines[key]; busy {
		return false
	}
	p.lines[key] = nil
	return true
}

// run runs a job that has a slot, and gives up what it has at its end.
func (p *Pool) run(ctx context.Context, run job) {
	s := &seat{p: p}
	p.working.Add(1)
	defer func() {
		p.working.Add(-1)
		if s.left {
			<-p.waiting
		} else {
			<-p.slots
		}
	}()
	run(context.WithValue(ctx, seatKey{}, s))
}

// leave runs the jobs in line of a key whose first was not taken.
func (p *Pool) leave(ctx context.Context, key string) {
	for run := p.next(key); run != nil; run = p.next(key) {
		p.slots <- struct{}{}
		p.run(ctx, run)
	}
}

// next takes the next job of a key in line, and ends the line without one.
func (p *Pool) next(key string) job {
	if key == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.lines[key]
	if len(line) == 0 {
		delete(p.lines, key)
		return nil
	}
	p.lines[key] = line[1:]
	<-p.inLine
	return line[0]
}

// Idle reports whether all jobs that there are wait.
func (p *Pool) Idle() bool { return p.working.Load() == 0 }

// Close waits for the jobs that were taken. Do must not be called afterwards; Close may
// be called again.
func (p *Pool) Close() {
	p.jobs.Wait()
	p.close.Do(func() { close(p.over) })
}

type seatKey struct{}

// seat is the place of one job: in a slot, or beside.
type seat struct {
	p    *Pool
	left bool // it ends beside
}

// In reports whether ctx is that of a job in a pool.
func In(ctx context.Context) bool { return ctx.Value(seatKey{}) != nil }

// Keep is ctx with the slot of the job that another context is of: for what goes on when
// that has ended.
func Keep(ctx, job context.Context) context.Context {
	return context.WithValue(ctx, seatKey{}, job.Value(seatKey{}))
}

// Without is ctx for work that goes on after the end of its job.
func Without(ctx context.Context) context.Context { return context.WithValue(ctx, seatKey{}, nil) }

// Beside lets another job have the slot of the one that ctx is of, which gets ready for
// it in the meantime: it asks a store, say. back returns when the job has a slot again.
// Fewer jobs get ready than there are slots, so that not more are kept from other
// processes than are handled soon; in a pool of one slot none, which keeps their order.
func Beside(ctx context.Context) (back func()) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		return func() {}
	}
	if s.left { // and begins again
		s.p.slots <- struct{}{}
		<-s.p.waiting
		s.left = false
	}
	select {
	case s.p.ahead <- struct{}{}:
	default:
		return func() {}
	}
	<-s.p.slots
	return func() {
		s.p.slots <- struct{}{}
		<-s.p.ahead
	}
}

// Leave gives up the slot of ctx's job permanently: what is left of it needs
// none, such as the end that a store writes down.
func Leave(ctx context.Context) {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || s.left {
		return
	}
	select {
	case s.p.waiting <- struct{}{}:
		s.left = true
		<-s.p.slots
	default:
	}
}

// Wait waits for d, or until wake is closed or sends, beside the slot of the job
// that ctx is of, and returns when the job has a slot again. It reports false when
// ctx has ended, or at once when too many jobs wait already. A ctx of no pool just
// waits.
func Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	s, ok := ctx.Value(seatKey{}).(*seat)
	if !ok {
		wait.Woken(ctx, d, wake)
		return ctx.Err() == nil
	}
	if !s.left {
		select {
		case s.p.waiting <- struct{}{}:
		default:
			return false
		}
		<-s.p.slots
		defer func() {
			// Also when ctx has ended: the job goes on to its end in a slot.
			s.p.slots <- struct{}{}
			<-s.p.waiting
		}()
	}
	s.p.working.Add(-1)
	defer s.p.working.Add(1)
	wait.Woken(ctx, d, wake)
	return ctx.Err() == nil
}
