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
	waiting chan struct{} // one for each that waits beside
	inLine  chan struct{} // one for each that stands behind another of its key
	jobs    sync.WaitGroup

	// Goroutines are used again: a new one grows its stack for each job.
	idle chan func() // to one that waits for its next job
	over chan struct{}

	mu    sync.Mutex
	lines map[string][]job // those behind the first of their key, which is running
}

type job func(context.Context)

// New returns a pool of n slots. [Pool.Close] waits for its jobs.
func New(n int) *Pool {
	return &Pool{
		slots: make(chan struct{}, n), waiting: make(chan struct{}, Waiting(n)), inLine: make(chan struct{}, linePerSlot*n),
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
		defer func() { <-p.slots }()
		ctx := context.WithValue(ctx, poolKey{}, p)
		run(ctx)
		p.leave(ctx, key)
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

// leave runs the jobs in line of a key, in the slot of the one that has ended.
func (p *Pool) leave(ctx context.Context, key string) {
	for key != "" {
		run := p.next(key)
		if run == nil {
			return
		}
		run(ctx)
	}
}

func (p *Pool) next(key string) job {
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

// Idle reports whether no job is in a slot: those that there are wait beside.
func (p *Pool) Idle() bool { return len(p.slots) == 0 }

// Close waits for the jobs that were taken. Do must not be called afterwards.
func (p *Pool) Close() {
	p.jobs.Wait()
	close(p.over)
}

type poolKey struct{}

// In reports whether ctx is that of a job in a pool.
func In(ctx context.Context) bool { return ctx.Value(poolKey{}) != nil }

// Wait waits for d, or until wake is closed or sends, beside the slot of the job
// that ctx is of, and returns when the job has a slot again. It reports false when
// ctx has ended, or at once when too many jobs wait already. A ctx of no pool just
// waits.
func Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	p, ok := ctx.Value(poolKey{}).(*Pool)
	if !ok {
		wait.Woken(ctx, d, wake)
		return ctx.Err() == nil
	}
	select {
	case p.waiting <- struct{}{}:
	default:
		return false
	}
	<-p.slots
	wait.Woken(ctx, d, wake)
	// Also when ctx has ended: the job goes on to its end in a slot.
	p.slots <- struct{}{}
	<-p.waiting
	return ctx.Err() == nil
}
