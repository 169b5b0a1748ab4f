package forbear

import (
	"context"
	"sync"
	"sync/atomic"
)

// One layer retries: the one right above the dependency. This file is how the
// layers learn of each other; what follows from it is decided in Decide.

// Exhaustion tells a server whether the calls made on behalf of one request
// have used up their retries below it. The layer above should then not begin
// its own. It is safe for concurrent use.
type Exhaustion struct{ below atomic.Bool }

// Below reports whether a call under the watched context ended exhausted.
func (e *Exhaustion) Below() bool { return e.below.Load() }

// WatchExhaustion returns a context for the work on one inbound request, and
// what becomes known of the calls made under it.
func WatchExhaustion(ctx context.Context) (context.Context, *Exhaustion) {
	e := &Exhaustion{}
	return context.WithValue(ctx, keyExhaustion, e), e
}

// noteExhaustion passes the end of a call on to the request it was made for.
func noteExhaustion(ctx context.Context, d Decision) {
	if !(&Error{Reason: d.Reason}).spent() {
		return
	}
	if e, ok := ctx.Value(keyExhaustion).(*Exhaustion); ok {
		e.below.Store(true)
	}
}

// NoteSend tells the retry that ctx runs under, if any, that the request
// identified by id is being sent. Protocol edges call it for each logical send.
// Seeing the same request twice within one attempt means that something in
// between, such as an SDK, retries by itself: the layers multiply. That is
// reported to the observers once per dependency.
func NoteSend(ctx context.Context, id uint64) {
	c, ok := ctx.Value(keyAttempt).(*attemptCtx)
	if !ok || c.retryer == nil {
		return
	}
	if n := c.sends.note(id); n > 1 {
		c.retryer.layered(ctx, LayeredRetry{Info: Info{Attempt: c.number}, Sends: n})
	}
}

// Repeated tells that a request which r is about to send is the given attempt
// of a layer above that retries by itself, such as an SDK. Like [NoteSend] it is
// for protocol edges, and reported once.
func (r *Retryer) Repeated(ctx context.Context, attempt int) {
	r.layered(ctx, LayeredRetry{Info: Info{Attempt: 1}, Sends: attempt, Above: true})
}

// sends counts the requests of one attempt by their identity. The zero value
// has seen none, and takes hardly any room: most attempts never use it.
type sends struct {
	mu   sync.Mutex
	seen []sent
}

type sent struct {
	id uint64
	n  int
}

// maxSends bounds how many different requests one attempt is watched for.
const maxSends = 8

func (s *sends) note(id uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.seen {
		if s.seen[i].id == id {
			s.seen[i].n++
			return s.seen[i].n
		}
	}
	if len(s.seen) < maxSends {
		s.seen = append(s.seen, sent{id, 1})
	}
	return 1
}

// LayeredSends returns how many sends other layers have added by themselves so
// far, as far as it was noticed.
func (r *Retryer) LayeredSends() int64 { return r.layeredSends.Load() }
