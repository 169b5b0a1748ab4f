package gateway

import (
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/resend"
)

// senders are what sends the requests of a route.
type senders struct {
	own     http.RoundTripper // retries, and authorizes with the route's credentials, if it has any
	callers http.RoundTripper // the same for requests that brought an Authorization
	below   http.RoundTripper // sends once
}

// transports makes the senders of the routes. Routes to one dependency share what is
// below its retries: the connections.
type transports struct {
	config   *Config
	memory   *httpretry.BodyMemory
	below    map[*forbear.Retryer]http.RoundTripper
	retrying map[retrying]http.RoundTripper
}

// retrying is what the retrying transports of routes may differ in, and so the key under
// which they are shared.
type retrying struct {
	retryer     *forbear.Retryer
	credentials *credential.Cache
	stream      bool
	bodyLimit   int64
}

// bodyMemory bounds what is kept of all bodies, in bytes, where the options do not: a few
// long bodies, or a burst of medium ones, on a machine whose memory is not known.
const bodyMemory = 256 << 20

func newTransports(c *Config) *transports {
	return &transports{
		config: c, memory: httpretry.NewBodyMemory(bodyMemory),
		below: map[*forbear.Retryer]http.RoundTripper{}, retrying: map[retrying]http.RoundTripper{},
	}
}

// of returns the senders of a route.
func (t *transports) of(r *Route) (senders, error) {
	below, err := t.sender(r)
	if err != nil {
		return senders{}, err
	}
	s := senders{own: t.retry(below, retrying{r.Retryer, r.Credentials, r.Stream, r.BodyLimit}), below: below}
	if s.callers = s.own; r.Credentials != nil && !r.Override {
		s.callers = t.retry(below, retrying{r.Retryer, nil, r.Stream, r.BodyLimit})
	}
	return s, nil
}

// retry returns the transport that retries what below sends.
func (t *transports) retry(below http.RoundTripper, key retrying) http.RoundTripper {
	if made := t.retrying[key]; made != nil {
		return made
	}
	opts := append([]httpretry.Option{httpretry.WithEnvelope(rpcOf), httpretry.WithBodyMemory(t.memory)}, t.config.Options...)
	if key.stream {
		opts = append(opts, httpretry.WithStreams())
	}
	if key.bodyLimit > 0 {
		opts = append(opts, httpretry.WithBodyLimit(int(key.bodyLimit)))
	}
	if key.credentials != nil {
		opts = append(opts, httpretry.WithCredentials(key.credentials))
	}
	t.retrying[key] = httpretry.NewTransport(below, key.retryer, opts...)
	return t.retrying[key]
}

// sender returns what sends the attempts of a dependency: the route's transport, or
// one of the gateway's own, with what the configuration wraps around it.
func (t *transports) sender(r *Route) (http.RoundTripper, error) {
	if made := t.below[r.Retryer]; made != nil {
		return made, nil
	}
	next := r.Transport
	if next == nil {
		own, err := upstream.New(upstream.Config{Connect: r.Retryer.Policy().Connect})
		if err != nil {
			return nil, err
		}
		next = own
	}
	next = attempts{next, resend.TransportOf(next), t.config.Observe != nil}
	if t.config.Wrap != nil {
		next = t.config.Wrap(next)
	}
	t.below[r.Retryer] = next
	return next, nil
}
