package forbear

import (
	"context"

	"github.com/forbear-go/forbear/internal/layer"
)

// One layer retries: the one right above the dependency. This file is how the
// layers learn of each other; what follows from it is decided in Decide.

// noteExhaustion passes the end of a call on to the request it was made for.
func noteExhaustion(ctx context.Context, d Decision) {
	if (&Error{Reason: d.Reason}).spent() {
		layer.Exhausted(ctx)
	}
}

// watcher is a Retryer as its attempts' contexts know it.
type watcher Retryer

// Repeated implements [layer.Reporter]: it is reported once for each dependency.
func (w *watcher) Repeated(ctx context.Context, attempt, sends int) {
	(*Retryer)(w).layered(ctx, LayeredRetry{Info: Info{Attempt: attempt}, Sends: sends})
}

// retryContext returns the context of attempt number of r's, a retry.
func (r *Retryer) retryContext(ctx context.Context, number int) context.Context {
	a := new(layer.Attempt)
	r.number(ctx, a, number)
	return a
}

// number makes a the context of attempt number of r's.
func (r *Retryer) number(ctx context.Context, a *layer.Attempt, number int) {
	a.Context, a.Dependency, a.Number, a.Reporter = ctx, r.dependency, number, (*watcher)(r)
}

// Repeated records that a request which r is about to send is the given attempt
// of a layer above that retries by itself, such as an SDK. It is for protocol
// edges, and reported once.
func (r *Retryer) Repeated(ctx context.Context, attempt int) {
	r.layered(ctx, LayeredRetry{Info: Info{Attempt: 1}, Sends: attempt, Above: true})
}

// LayeredSends returns how many sends other layers have added by themselves so
// far, as far as it was noticed.
func (r *Retryer) LayeredSends() int64 { return r.layeredSends.Load() }
