package gateway

import (
	"net/http"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/httpretry"
)

// wires makes the transports of the routes. Routes to one dependency share what
// is below its retries: the connections.
type wires struct {
	config *Config
	below  map[*forbear.Retryer]http.RoundTripper
	// made is filled while the gateway is built, and only read afterwards.
	made map[wire]http.RoundTripper
}

// wire is what the transports of routes may differ in, and so the key under
// which they are shared.
type wire struct {
	retryer     *forbear.Retryer
	credentials *credential.Cache
	override    bool
}

// of returns the transport of a route.
func (w *wires) of(r *Route) http.RoundTripper {
	key := wire{r.Retryer, r.Credentials, r.Override}
	if t := w.made[key]; t != nil {
		return t
	}
	next := w.next(r.Retryer)
	t := httpretry.NewTransport(next, r.Retryer, w.config.Options...)
	if r.Credentials != nil {
		own := httpretry.NewTransport(next, r.Retryer,
			append(slices.Clip(w.config.Options), httpretry.WithCredentials(r.Credentials))...)
		if r.Override {
			t = own
		} else {
			t = ownOrCallers{own: own, callers: t}
		}
	}
	w.made[key] = t
	return t
}

// next returns what sends the attempts of a dependency.
func (w *wires) next(r *forbear.Retryer) http.RoundTripper {
	if w.below[r] == nil {
		w.below[r] = w.config.transport(w.config.Transport, r)
	}
	return w.below[r]
}

// transport returns t, or a transport of the gateway's own in place of nil, with
// what the configuration wraps around it.
func (c *Config) transport(t http.RoundTripper, r *forbear.Retryer) http.RoundTripper {
	if t == nil {
		t = NewTransport(r.Policy().Connect)
	}
	if c.Wrap != nil {
		t = c.Wrap(t)
	}
	return t
}
