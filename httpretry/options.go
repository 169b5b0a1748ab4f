package httpretry

import (
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/pace"
)

// Option changes how a transport works. What it may retry is the policy's.
type Option func(*transport)

// WithRetryer chooses the Retryer for each request, for one transport that
// serves many dependencies. Where it returns nil, the transport falls back to the one passed to
// [NewTransport].
func WithRetryer(choose func(*http.Request) *forbear.Retryer) Option {
	return func(t *transport) { t.choose = choose }
}

// WithBodyLimit sets how many bytes of a request body without GetBody are kept
// for replay. Default 64 KiB; 0 keeps none. A longer body is sent once.
func WithBodyLimit(bytes int) Option {
	return func(t *transport) { t.bodyLimit = max(bytes, 0) }
}

// WithStreams lets bodies stand still for any time, in both directions, whatever the
// policy's BodyIdle: for watches and feeds that are no Server-Sent Events, which may
// stand still anyway.
func WithStreams() Option {
	return func(t *transport) { t.streams = true }
}

// WithPacer paces every send of the transport, first attempts and retries: once the
// server has refused some with 429, or with 503 and a Retry-After, each waits for its
// turn within its call's time, or is refused with [forbear.ReasonPaced]. It takes the
// place of the Retryer's own, as [forbear.WithPacer] sets it.
func WithPacer(p *pace.Pacer) Option {
	return func(t *transport) { t.pacer = p }
}

// WithoutAttemptHeader sends no X-Retry-Attempt.
func WithoutAttemptHeader() Option {
	return func(t *transport) { t.noHeader = true }
}

// WithoutAttemptTimeout leaves attempts without a timeout of their own, for
// callers whose contexts or transports bound each attempt already.
func WithoutAttemptTimeout() Option {
	return func(t *transport) { t.noTimeout = true }
}
