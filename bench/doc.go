// Package bench puts forbear beside its peers on the same work.
//
// Each peer runs the same operation, in the way its own documentation shows,
// with the smallest waits that it permits and without logging, so that what
// remains is the cost of the library itself. What a peer needs in order to take
// the context of a single request is part of its cost: a server has a new
// context with every request.
//
// Run `make bench` for the table and `make gates` for the limits that forbear
// must hold.
package bench

import (
	"context"
	"errors"
	"time"
)

// Peer is one library, in one configuration, at one scenario's work.
type Peer struct {
	Name   string
	Module string // its module path; "" for the standard library
	// Context says that the library is given each call's own context.
	Context bool
	// New returns the work for one goroutine. What the goroutines share, such
	// as a budget, is made once, around New.
	New func() func() error
}

// Scenario is one kind of work and those who do it. The first peer does it
// without any library.
type Scenario struct {
	ID    string
	Title string
	Peers []Peer
	// Parallel says that the scenario is about sharing: it runs on one and on
	// two processors.
	Parallel bool
}

// Scenarios returns all scenarios, with state of their own.
func Scenarios() []Scenario {
	return []Scenario{
		{ID: "A", Title: "a call that succeeds at once", Peers: funcs(0)},
		{ID: "B", Title: "a call that fails twice, then succeeds", Peers: funcs(2)},
		{ID: "C1", Title: "as A, all goroutines under one retry budget", Peers: shared(0), Parallel: true},
		{ID: "C2", Title: "as B, all goroutines under one retry budget", Peers: shared(2), Parallel: true},
		{ID: "D1", Title: "HTTP GET, response 200", Peers: requests("GET", 0)},
		{ID: "D2", Title: "HTTP PUT of 1 KiB, response 200", Peers: requests("PUT", 0)},
		{ID: "E", Title: "HTTP GET, responses 503, 503, 200", Peers: requests("GET", 2)},
	}
}

var errFlaky = errors.New("flaky")

// flaky returns an operation that returns err the given number of times, then
// succeeds, and begins anew.
func flaky(failures int, err error) func(context.Context) error {
	// A line of cache for each goroutine's counter, or the counters of two
	// goroutines slow each other down and not the libraries.
	own := &struct {
		_     [64]byte
		calls int
		_     [64]byte
	}{}
	return func(context.Context) error {
		if own.calls++; own.calls <= failures {
			return err
		}
		own.calls = 0
		return nil
	}
}

// requestContext is what a server hands to its handlers: cancelable and with a
// deadline. It is never canceled: it lives as long as the benchmark.
func requestContext() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// deadlineContext is requestContext with a deadline of the caller's that comes
// before forbear's own, which then need not be set. It lasts longer than a turn.
func deadlineContext() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}
