package dispatch

import (
	"context"
	"net"
	"time"

	"github.com/forbear-go/forbear"
)

// R-4 gives a message two attempts that fail because the endpoint's name does not resolve.
// They are kept for when it does: from the first failure on the receiver resolves the name
// by itself, spaced out, and what is due waits. When the name resolves a single delivery is
// sent, and the others follow if that met anything but the same failure.

// lookupTimeout bounds one lookup.
const lookupTimeout = 10 * time.Second

// Resolve resolves a name as the default transport does.
func Resolve(ctx context.Context, host string) error {
	_, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err
}

// lookUp resolves the endpoint's name apart from the main loop, unless that is under way.
// The caller holds mu.
func (r *receiver) lookUp() {
	if r.looking {
		return
	}
	r.looking = true
	r.d.workers.Go(func() {
		r.resolve()
		r.mu.Lock()
		r.looking = false
		r.mu.Unlock()
		r.d.ask(r.id)
	})
}

// resolve reports whether the endpoint's name resolves. A failure counts as one of the
// endpoint, which is disabled after a day of them.
func (r *receiver) resolve() bool {
	d, look := r.d, &attempt{ep: r.endpoint(), look: time.Now()}
	ctx, cancel := context.WithTimeout(d.sendCtx, lookupTimeout)
	defer cancel()
	err := d.cfg.Lookup(ctx, look.ep.host())
	r.mu.Lock()
	defer r.unlock()
	r.resolved = err == nil
	if err != nil && d.sendCtx.Err() == nil {
		look.failure = forbear.Failure{Class: forbear.ClassDNS, Type: "dns_failure", Err: err}
		r.judge(look, d.now())
	}
	return err == nil
}

// judgeName learns from an attempt or a lookup whether the endpoint's name resolves. The
// caller holds mu.
func (r *receiver) judgeName(a *attempt) {
	switch {
	case a.failure.Class != forbear.ClassDNS:
		r.found(unresolved, a.look)
	case r.missing(unresolved, a.failure.Type, a.look):
		r.resolved = false
	}
}

// spared reports whether the delivery is to keep its last attempt at a name that does
// not resolve: another process, or one before this, has seen the first fail, and this
// one may not know yet.
func (j *job) spared() bool {
	return j.call.State.DNSFailures > 0 && !j.to.resolve()
}
