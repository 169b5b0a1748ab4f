package dispatch

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// names keeps a lane from claiming while the name of its endpoint does not resolve.
// R-4 gives a message two attempts that fail for that, and they are kept for when it
// does: from the first failure on the lane resolves the name by itself, spaced out,
// and what is due waits. When the name resolves a single delivery is sent, and the
// others follow if that met anything but the same failure.
type names struct {
	*hold

	mu       sync.Mutex
	looking  bool // a lookup is under way
	resolved bool // by the latest lookup
	alerted  bool // in this hold
}

// lookupTimeout bounds one lookup.
const lookupTimeout = 10 * time.Second

// Resolve resolves a name as the default transport does.
func Resolve(ctx context.Context, host string) error {
	_, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err
}

// resolving returns how many of n deliveries may be claimed by what is known of the
// endpoint's name, and otherwise when to ask again. It looks the name up when that is
// due. The lane is locked.
func (l *lane) resolving(now time.Time, n int) (int, time.Time) {
	s := l.ep.names
	n, next := s.allow(now, n, l.busy())
	if n == 0 || !s.holds() {
		return n, next
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resolved {
		return n, next
	}
	if !s.looking {
		s.looking = true
		l.d.workers.Go(l.ep.lookUp)
	}
	return 0, time.Time{} // its end asks again
}

// lookUp resolves the endpoint's name, apart from the main loop.
func (e *endpoint) lookUp() {
	e.resolve()
	e.names.mu.Lock()
	e.names.looking = false
	e.names.mu.Unlock()
	e.d.ask(e.id())
}

// follow is hold.follow. The alert was raised.
func (s *names) follow(why string, looks int, next time.Time) {
	if !s.hold.follow(why, looks, next) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolved, s.alerted = false, true
}

// resolve reports whether the endpoint's name resolves. A failure counts as one of the
// endpoint, which is disabled after a day of them.
func (e *endpoint) resolve() bool {
	look := time.Now()
	ctx, cancel := context.WithTimeout(e.d.sendCtx, lookupTimeout)
	defer cancel()
	err := e.d.cfg.Lookup(ctx, e.plain.URL.Hostname())
	e.names.mu.Lock()
	e.names.resolved = err == nil
	e.names.mu.Unlock()
	if err != nil && e.d.sendCtx.Err() == nil {
		r := response{failure: forbear.Failure{Class: forbear.ClassDNS, Type: "dns_failure", Err: err}, look: look}
		e.record(&r, e.d.now())
		e.named(&r)
	}
	return err == nil
}

// spared reports whether the delivery is to keep its last attempt at a name that does
// not resolve: another process, or one before this, has seen the first fail, and this
// one may not know yet.
func (j *job) spared() bool {
	return j.call.State.DNSFailures > 0 && !j.lane.ep.resolve()
}

// named learns from an attempt or a lookup whether the endpoint's name resolves. The
// alert is raised when a lookup has failed as well: one failure is soon over, mostly.
func (e *endpoint) named(r *response) {
	s := e.names
	if r.failure.Class != forbear.ClassDNS {
		if s.found(r.look) {
			e.goOn(s.hold, "endpoint's name resolves again")
		}
		return
	}
	began, counts := s.missing(r.failure.Type, r.look)
	if !counts {
		return
	}
	s.mu.Lock()
	first := !began && !s.alerted
	s.resolved, s.alerted = false, !began
	s.mu.Unlock()
	switch {
	case first:
		e.began(s.hold, "endpoint_unresolved", "waits until its name resolves", e.plain.URL.Hostname()+": "+r.failure.Type)
	case !began:
		e.d.find(s.finding(e.id()))
	}
}
