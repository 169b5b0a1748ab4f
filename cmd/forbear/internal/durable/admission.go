package durable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/rate"
)

// One application can neither take all of the API's room nor all of its time: what its
// tokens do at once and in a second is bounded. Without the bounds a tenant would be an
// outage for the others. The operator's own tokens have the room as a whole.
const (
	maxRequests    = 1024     // under way, in all
	maxRequestsOf  = 256      // of one application
	maxBodies      = 64 << 20 // bytes of bodies that have arrived and are being read, in all
	maxBodiesOf    = 16 << 20 // of one application
	smallBody      = 16 << 10 // bytes of each body that are not counted: they have room with its request
	readsOf        = 100      // a second, of one application: what looks
	changesOf      = 20       // a second, of one application: what changes or sends something, but for messages
	messagesAccept = "POST /v1/messages"
)

var (
	// errTooMany is 429: the caller's part of the API is used up.
	errTooMany = errors.New("too many requests")
	// errOverloaded is 503: the API's whole room is used up.
	errOverloaded = errors.New("overloaded")
)

// tooMany is an errTooMany that says when to come again.
type tooMany struct {
	what  string
	after time.Duration
}

func (e *tooMany) Error() string { return errTooMany.Error() + ": " + e.what }
func (e *tooMany) Unwrap() error { return errTooMany }

// admission lets requests in. The zero value lets none in: see newAdmission. It is safe
// for concurrent use.
type admission struct {
	requests, bodies room
	reads, changes   float64 // a second, of one application
	rates            rate.Limits
	looks            gate
}

// newAdmission returns one for a database of which so many may read at once.
func newAdmission(readers int) *admission {
	return &admission{
		looks:    gate{all: make(chan struct{}, max(readers*3/4, 1)), each: max(readers/4, 2)},
		requests: room{all: maxRequests, each: maxRequestsOf, of: "concurrent requests"},
		bodies:   room{all: maxBodies, each: maxBodiesOf, of: "bytes of concurrent bodies"},
		reads:    readsOf, changes: changesOf,
	}
}

// enter lets a request in, or says why not. leave is called at its end.
func (a *admission) enter(r *http.Request, rt route) (leave func(), err error) {
	who := callerOf(r).Application
	if err := a.pace(who, rt); err != nil {
		return nil, err
	}
	if err := a.requests.enter(who, 1); err != nil {
		return nil, err
	}
	body := &countedBody{ReadCloser: r.Body, room: &a.bodies, who: who}
	r.Body = body
	return func() {
		a.requests.leave(who, 1)
		a.bodies.leave(who, body.taken)
	}, nil
}

// pace bounds how often an application asks. Messages have rates of their own.
func (a *admission) pace(who string, rt route) error {
	if who == "" || rt.method+" "+rt.path == messagesAccept {
		return nil
	}
	kind, most := "changes", a.changes
	if rt.method == http.MethodGet {
		kind, most = "reads", a.reads
	}
	if wait := a.rates.Take(kind+" "+who, most, 1, time.Now()); wait > 0 {
		return &tooMany{fmt.Sprintf("application %q: more than %v %s a second", who, most, kind), wait}
	}
	return nil
}

// room is a bound that is shared: an application has a part of it at most.
type room struct {
	all, each int64
	of        string // for errors

	mu   sync.Mutex
	used int64
	by   map[string]int64
}

// enter takes n, or says why not.
func (m *room) enter(who string, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.used+n > m.all:
		return fmt.Errorf("%w: this process has reached its limit of %s: try again", errOverloaded, m.of)
	case who != "" && m.by[who]+n > m.each:
		return &tooMany{fmt.Sprintf("application %q has reached its limit of %s", who, m.of), time.Second}
	}
	if m.by == nil {
		m.by = map[string]int64{}
	}
	m.used, m.by[who] = m.used+n, m.by[who]+n
	return nil
}

// leave gives n back.
func (m *room) leave(who string, n int64) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	if m.by[who] -= n; m.by[who] == 0 {
		delete(m.by, who)
	}
}

// countedBody takes room for what has arrived of a body.
type countedBody struct {
	io.ReadCloser

	room        *room
	who         string
	read, taken int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if more := b.read - smallBody - b.taken; more > 0 {
		if full := b.room.enter(b.who, more); full != nil {
			return 0, full
		}
		b.taken += more
	}
	return n, err
}

// gate is where what applications read waits for its turn: connections of the database are
// for who comes first, and deliveries and the calls of others need some, too.
type gate struct {
	all  chan struct{} // an element for each that is in
	each int           // of one application at most

	mu sync.Mutex
	by map[string]chan struct{}
}

// pass calls serve, in the turn of an application where it reads.
func (g *gate) pass(r *http.Request, rt route) (status int, body any, err error) {
	if rt.method == http.MethodGet {
		leave, err := g.enter(r)
		if err != nil {
			return 0, nil, err
		}
		defer leave()
	}
	return rt.serve(r)
}

// enter waits for the turn of the application that a request is of.
func (g *gate) enter(r *http.Request) (leave func(), err error) {
	who := callerOf(r).Application
	if who == "" {
		return func() {}, nil
	}
	own := g.of(who)
	select {
	case own <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	select {
	case g.all <- struct{}{}:
		return func() { <-g.all; <-own }, nil
	case <-r.Context().Done():
		<-own
		return nil, r.Context().Err()
	}
}

// of returns the places of an application.
func (g *gate) of(who string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]chan struct{}{}
	}
	if g.by[who] == nil {
		g.by[who] = make(chan struct{}, g.each)
	}
	return g.by[who]
}
