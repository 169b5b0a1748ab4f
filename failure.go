package forbear

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// Failure is what one attempt came back with, in terms that no protocol owns.
// The zero value is an unknown failure, and an unknown failure is not retried.
type Failure struct {
	Class Class
	// Type is the bounded label that logs and metrics carry as error_type:
	// "http_503", "connection_reset", "tls_certificate". It never holds text
	// from a message.
	Type string
	Hint Hint
	// Unsent says that the request certainly never reached the server: a
	// refused connection, a refused HTTP/2 stream.
	Unsent bool
	// Disowned says that the server has refused to process the request, or never got it,
	// although a connection stood: a stream above the last one that GOAWAY names,
	// REFUSED_STREAM (RFC 9113 sections 6.8 and 8.7), a connection that was closed just as
	// the request was to use it. Such a request may be sent again, once, whatever its method.
	Disowned bool
	Err      error
}

// Class is the part of a failure that decides whether a retry may help.
type Class uint8

const (
	ClassUnknown      Class = iota // not recognised: stop
	ClassSuccess                   // not a failure at all
	ClassTransient                 // may go away: 5xx, a reset connection
	ClassTimeout                   // no response in time
	ClassThrottled                 // the server asks for less: 429, RESOURCE_EXHAUSTED
	ClassDNS                       // the name did not resolve: two attempts at most
	ClassUnauthorized              // credentials refused: one refresh, if one can be had
	ClassTerminal                  // the same request will fail again
	ClassCertificate               // the peer could not prove who it is: stop and raise it
	ClassCanceled                  // the caller gave up or ran out of time
)

var classNames = [...]string{
	"unknown", "success", "transient", "timeout", "throttled", "dns",
	"unauthorized", "terminal", "certificate", "canceled",
}

// String returns the name used in policy files, logs and explanations.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// MarshalText implements [encoding.TextMarshaler].
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames {
		if name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("unknown class %q", text)
}

// Retryable reports whether failures of this class may be retried at all.
// Unauthorized is not: one refresh of the credentials follows it, and no retry.
func (c Class) Retryable() bool {
	return c == ClassTransient || c == ClassTimeout || c == ClassThrottled || c == ClassDNS
}

// overridable reports whether a policy may say otherwise about the class.
// Certificates, the caller's own end and success are facts.
func (c Class) overridable() bool {
	return c != ClassCertificate && c != ClassCanceled && c != ClassSuccess
}

// Hint is advice that came with a failure, from the server or from the
// operation itself. The zero value advises nothing.
type Hint struct {
	// Floor is the shortest wait before the next attempt. It is never
	// shortened: a floor that does not fit ends the call.
	Floor time.Duration
	// Spread is laid on top of the wait, uniformly in [0, Spread], so that a
	// crowd that received the same floor does not return as a crowd.
	Spread time.Duration
	// Base replaces the policy's backoff base when it is positive.
	Base time.Duration
	// MaxRetries lowers the policy's count when it is positive.
	MaxRetries int
	// Stop means: do not retry, whatever the class says.
	Stop bool
	// NoBackoff drops the backoff before the first retry: only Floor and Spread
	// remain. Later retries have it again, unless Floor is at least its base.
	NoBackoff bool
	// SameKey says that the next attempt must carry the idempotency key of
	// this one.
	SameKey bool
	// LongerDeadline asks that the next attempt be given more time.
	LongerDeadline bool
}

// outcome returns how a circuit breaker counts f; counts is false for a
// failure that says nothing about the dependency.
func (f *Failure) outcome() (o breaker.Outcome, counts bool) {
	switch {
	case f.Type == errtype.Resend, f.Type == errtype.Silent, f.Disowned && f.Type != errtype.RefusedStream: // which happens to connections of the best
		return breaker.Good, false
	case f.Type == errtype.InProgress: // the work goes on: how it ends is not known yet
		return breaker.Good, false
	case f.Type == mismatch.Upgrade.Error(): // it was not sent
		return breaker.Good, false
	case f.Class == ClassSuccess, responded(f) && !dependencyFailed(f):
		return breaker.Good, true
	case dependencyFailed(f):
		return breaker.Failed, true
	default:
		return breaker.Good, false
	}
}

// dependencyFailed reports whether f is the dependency's failure: 5xx, 429,
// timeouts and broken connections do (INTG-STD-033), and what gRPC has for the
// 5xx that are not retried.
func dependencyFailed(f *Failure) bool {
	switch f.Type {
	case "grpc_INTERNAL", "grpc_UNKNOWN", "grpc_DATA_LOSS":
		return true
	}
	return f.Class.Retryable() || f.Class == ClassCertificate || group(f.Type) == "http_5xx"
}

// responded reports whether f is a response that shows the dependency at work,
// though not the wished one: the other 4xx.
func responded(f *Failure) bool {
	return f.Class == ClassTerminal || f.Class == ClassUnauthorized
}

// group turns "http_503" into "http_5xx", and anything else into "".
func group(label string) string {
	const prefix = "http_"
	if len(label) != len(prefix)+3 || label[:len(prefix)] != prefix {
		return ""
	}
	return label[:len(prefix)+1] + "xx"
}
