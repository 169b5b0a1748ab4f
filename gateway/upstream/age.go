package upstream

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/internal/wait"
)

// DefaultMaxAge is how old a connection becomes where a Config does not say.
const DefaultMaxAge = 5 * time.Minute

// aging is the connections to one address, none of which gets a new request when it
// is older than maxAge. It is safe for concurrent use.
//
// net/http closes single connections only for its own reasons, and one that is closed
// from below may just be getting a request. So the whole pool is replaced: new
// requests go to a fresh one, and the old one is closed as its requests end, over
// HTTP/1 and HTTP/2 alike. They move over by and by, so that not all connections are
// made at once. It needs no goroutine: where no requests come, connections end by
// being idle.
type aging struct {
	fresh  func() *pool
	maxAge time.Duration    // 0 or less: for ever
	files  *certfile.Source // of the certificates; nil for none

	now    atomic.Pointer[shift]
	mu     sync.Mutex // of replacing now
	closed bool
}

// shift is the pool of the moment, and the one that follows it. It does not
// change.
type shift struct {
	pool  *pool
	begin time.Time // of the move to next
	end   time.Time // of the pool
	next  *pool     // nil before the move
	made  time.Time // when next was
}

func newAging(fresh func() *pool, maxAge time.Duration) *aging {
	a := &aging{fresh: fresh, maxAge: maxAge}
	a.now.Store(a.shift(fresh(), time.Now()))
	return a
}

// shift returns a pool with its times. Its end is drawn from the second half of
// maxAge, so that the pools of many addresses and processes, which all began with an
// incident, do not end together. The move takes the last tenth of it.
func (a *aging) shift(p *pool, made time.Time) *shift {
	end := made.Add(a.maxAge - wait.Jitter(a.maxAge/2))
	return &shift{pool: p, begin: end.Add(-a.maxAge / 10), end: end}
}

// pick returns the pool for a new request.
func (a *aging) pick() *pool {
	s := a.now.Load()
	if a.files != nil {
		if m := a.files.Current(); s.pool.material != m {
			s = a.renew(m)
		}
	}
	if a.maxAge <= 0 {
		return s.pool
	}
	now := time.Now()
	if now.Before(s.begin) {
		return s.pool
	}
	if s.next == nil || !now.Before(s.end) {
		s = a.advance(now)
	}
	if s.next == nil {
		return s.pool
	}
	if moved := float64(now.Sub(s.begin)) / float64(s.end.Sub(s.begin)); rand.Float64() < moved {
		return s.next
	}
	return s.pool
}

// renew replaces the pools at once when the certificate files have changed: a
// connection that is never idle would otherwise keep the old trust for as long as it
// lives.
func (a *aging) renew(m *certfile.Material) *shift {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.now.Load()
	if s.pool.material == m { // another request was faster
		return s
	}
	next := a.shift(a.made(), time.Now())
	a.now.Store(next)
	for _, p := range s.pools() {
		p.close()
	}
	return next
}

// advance begins the move to a fresh pool, or ends it.
func (a *aging) advance(now time.Time) *shift {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.now.Load()
	ended := !now.Before(s.end)
	switch {
	case now.Before(s.begin): // another request was faster
		return s
	case ended && s.next != nil:
		s.pool.close()
		if s = a.shift(s.next, s.made); !now.Before(s.end) { // it was idle for long
			s.pool.close()
			s = a.shift(a.made(), now)
		}
	case ended:
		s.pool.close()
		s = a.shift(a.made(), now)
	case s.next == nil:
		moving := *s
		moving.next, moving.made = a.made(), now
		s = &moving
	}
	a.now.Store(s)
	return s
}

// made returns a fresh pool, a closed one when nothing is kept any more. It is called
// with mu held.
func (a *aging) made() *pool {
	p := a.fresh()
	p.closed.Store(a.closed)
	return p
}

// closeIdle closes the connections that no request uses.
func (a *aging) closeIdle() {
	for _, p := range a.now.Load().pools() {
		p.direct.CloseIdleConnections()
	}
}

// close closes them for good: those in use when their requests are over.
func (a *aging) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, p := range a.now.Load().pools() {
		p.close()
	}
}

func (s *shift) pools() []*pool {
	if s.next == nil {
		return []*pool{s.pool}
	}
	return []*pool{s.pool, s.next}
}
