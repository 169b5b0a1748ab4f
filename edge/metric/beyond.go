package metric

import (
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/label"
)

// webhooks is what the dependencies of webhooks begin with, one for each endpoint.
// There may be thousands. Beyond the bound of a label they have one series for each
// state of their circuit breakers, which an event counts in by the state at its time.
const webhooks = "webhook:"

// byState are the labels of those beyond the bound.
var byState = [...]string{
	breaker.Closed: webhooks + "(" + breaker.Closed.String() + ")",
	breaker.Open:   webhooks + "(" + breaker.Open.String() + ")", breaker.HalfOpen: webhooks + "(" + breaker.HalfOpen.String() + ")",
}

// beyond has the Retryers of endpoints beyond the bound, by their dependencies, for as
// long as they are in use. The zero value is ready.
type beyond struct{ retryers sync.Map }

// isBeyond reports whether the label of a dependency is one of [byState].
func isBeyond(dependency, bounded string) bool {
	return bounded == label.Other && strings.HasPrefix(dependency, webhooks)
}

// add keeps a Retryer until no one else does: endpoints come and go.
func (b *beyond) add(r *forbear.Retryer) {
	name, p := r.Dependency(), weak.Make(r)
	b.retryers.Store(name, p)
	// A later Retryer of the same endpoint may have taken its place by then.
	runtime.AddCleanup(r, func(name string) { b.retryers.CompareAndDelete(name, p) }, name)
}

// label returns the label of an endpoint beyond the bound.
func (b *beyond) label(dependency string) string {
	if p, ok := b.retryers.Load(dependency); ok {
		if r := p.(weak.Pointer[forbear.Retryer]).Value(); r != nil && r.Breaker() != nil {
			return byState[r.Breaker().State()]
		}
	}
	return byState[breaker.Closed]
}
