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
	maxAge time.Duration    // 0 or less sets no bound
	files  *certfile.Source // of the certificates; nil for none

	now    atomic.Pointer[pools]
	mu     sync.Mutex // of replacing now
	closed bool
}

// pools are the pool of the moment and the one that requests move to, nil before they do.
// They do not change.
type pools struct{ old, fresh *pool }

// each does something with both.
func (s *pools) each(do func(*pool)) {
	do(s.old)
	if s.fresh != nil {
		do(s.fresh)
	}
}

func newAging(fresh func() *pool, maxAge time.Duration) *aging {
	a := &aging{fresh: fresh, maxAge: maxAge}
	a.now.Store(&pools{old: a.made(time.Now())})
	return a
}

// made returns a fresh pool, a closed one when nothing is kept any more. Its end is
// random in the second half of maxAge, so that the pools of many addresses and processes,
// which all began with an incident, do not end together. The move to the next takes the
// last tenth of maxAge before it.
func (a *aging) made(now time.Time) *pool {
	p := a.fresh()
	if a.maxAge > 0 {
		p.end = now.Add(a.maxAge - wait.Jitter(a.maxAge/2))
		p.moving = p.end.Add(-a.maxAge / 10)
	}
	if a.closed {
		p.direct.Close()
	}
	return p
}

// pick returns the pool for a new request.
func (a *aging) pick() *pool {
	s := a.now.Load()
	if a.files != nil {
		if m := a.files.Current(); s.old.material != m {
			s = a.renew(m)
		}
	}
	if a.maxAge <= 0 {
		return s.old
	}
	now := time.Now()
	if now.Before(s.old.moving) {
		return s.old
	}
	if s.fresh == nil || !now.Before(s.old.end) {
		s = a.advance(now)
	}
	if s.fresh == nil {
		return s.old
	}
	moved := float64(now.Sub(s.old.moving)) / float64(s.old.end.Sub(s.old.moving))
	if rand.Float64() < moved {
		return s.fresh
	}
	return s.old
}

// renew replaces the pools at once when the certificate files have changed: a
// connection that is never idle would otherwise keep the old trust for as long as it
// lives.
func (a *aging) renew(m *certfile.Material) *pools {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.now.Load()
	if s.old.material == m { // another request was faster
		return s
	}
	next := &pools{old: a.made(time.Now())}
	a.now.Store(next)
	s.each(func(p *pool) { p.direct.Close() })
	return next
}

// advance begins the move to a fresh pool, or ends it.
func (a *aging) advance(now time.Time) *pools {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := *a.now.Load()
	for s.old != nil && !now.Before(s.old.end) { // both, where no requests came for long
		s.old.direct.Close()
		s.old, s.fresh = s.fresh, nil
	}
	if s.old == nil {
		s.old = a.made(now)
	}
	if s.fresh == nil && !now.Before(s.old.moving) {
		s.fresh = a.made(now)
	}
	a.now.Store(&s)
	return &s
}

// closeIdle closes the connections that no request uses.
func (a *aging) closeIdle() {
	a.now.Load().each(func(p *pool) { p.direct.CloseIdleConnections() })
}

// close closes all connections, those in use when their requests are over.
func (a *aging) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.now.Load().each(func(p *pool) { p.direct.Close() })
}
