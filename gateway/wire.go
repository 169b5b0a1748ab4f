package gateway

import (
	"net/http"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway/upstream"
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
	stream      bool
}

// of returns the transport of a route.
func (w *wires) of(r *Route) (http.RoundTripper, error) {
	next, err := w.next(r)
	if err != nil {
		return nil, err
	}
	key := wire{r.Retryer, r.Credentials, r.Override, r.Stream}
	if t := w.made[key]; t != nil {
		return t, nil
	}
	opts := append([]httpretry.Option{httpretry.WithEnvelope(rpcOf)}, w.config.Options...)
	if r.Stream {
		opts = append(opts, httpretry.WithStreams())
	}
	t := httpretry.NewTransport(next, r.Retryer, opts...)
	if r.Credentials != nil {
		own := httpretry.NewTransport(next, r.Retryer, append(slices.Clip(opts), httpretry.WithCredentials(r.Credentials))...)
		if r.Override {
			t = own
		} else {
			t = ownOrCallers{own: own, callers: t}
		}
	}
	w.made[key] = t
	return t, nil
}

// next returns what sends the attempts of a dependency: the route's transport, or
// one of the gateway's own, with what the configuration wraps around it.
func (w *wires) next(r *Route) (http.RoundTripper, error) {
	if t := w.below[r.Retryer]; t != nil {
		return t, nil
	}
	t := r.Transport
	if t == nil {
		own, err := upstream.New(upstream.Config{Connect: r.Retryer.Policy().Connect})
		if err != nil {
			return nil, err
		}
		t = own
	}
	t = expecting{t}
	if w.config.Wrap != nil {
		t = w.config.Wrap(t)
	}
	if w.config.Observe != nil {
		t = metered{t}
	}
	w.below[r.Retryer] = t
	return t, nil
}
