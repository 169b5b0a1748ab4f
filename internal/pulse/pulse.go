// Package pulse knows whether what is done again and again in the background gets done.
// The log has each failure; a pulse says that they go on, and also sees what says nothing
// at all, since it does not come to an end.
package pulse

import (
	"sync"
	"time"
)

// patience is how long what is done at short intervals may fail, or take, and still be
// well: a store that has a new primary is back by then.
const patience = 15 * time.Second

// Part is one thing that is done again and again: more often than its interval or not at
// all, where nothing asks for it. It is safe for concurrent use.
type Part struct {
	Name  string
	Every time.Duration // the interval, at most; 0 for what is done all the time

	mu       sync.Mutex
	running  int
	since    time.Time // when that began which has not succeeded since
	failures int       // in a row
	failed   time.Time // when the latest came
	good     time.Time
	err      error
}

// Do does it, by f, and returns f's error.
func (p *Part) Do(f func() error) error {
	p.mu.Lock()
	if now := time.Now(); p.since.IsZero() || p.running == 0 && now.Sub(p.failed) > p.memory() {
		p.since = now
	}
	p.running++
	p.mu.Unlock()
	err := f()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	now := time.Now()
	if err != nil {
		p.failures++
		p.failed, p.err = now, err
		return err
	}
	p.failures, p.err, p.good, p.since = 0, nil, now, time.Time{}
	if p.running > 0 {
		p.since = now
	}
	return nil
}

// Get is [Part.Do] for what returns something.
func Get[T any](p *Part, f func() (T, error)) (v T, err error) {
	err = p.Do(func() (err error) { v, err = f(); return err })
	return v, err
}

// limit is how long it may fail, or take.
func (p *Part) limit() time.Duration { return max(patience, p.Every) }

// memory is how long a failure counts that nothing follows: by then it would have been
// tried again, if there were anything to do.
func (p *Part) memory() time.Duration { return p.Every + p.limit() }

// State is how a part fares. It has the fields of queue.Health, which is made of it.
type State struct {
	Name                     string
	Healthy                  bool
	Failures                 int // in a row
	LastSuccess, LastFailure time.Time
	// Error says what is wrong, and since when; "" while it is healthy. Its end is Cause,
	// where there is one: what does not come to an end may have none.
	Error string
	Cause error
}

// State returns how it fares now.
func (p *Part) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, now := State{Name: p.Name, Healthy: true, Failures: p.failures, LastSuccess: p.good, LastFailure: p.failed}, time.Now()
	if p.since.IsZero() || now.Sub(p.since) < p.limit() || p.running == 0 && now.Sub(p.failed) > p.memory() {
		return s
	}
	since := now.UTC().Add(p.since.Sub(now)).Format(time.RFC3339)
	if s.Healthy, s.Cause = false, p.err; s.Cause != nil {
		s.Error = "failing since " + since + ": " + s.Cause.Error()
	} else {
		s.Error = "under way since " + since + ", without an end"
	}
	return s
}

// First returns the state of the first part that is not healthy, or of the last one.
func First(parts ...*Part) (s State) {
	for _, p := range parts {
		if s = p.State(); !s.Healthy {
			break
		}
	}
	return s
}
