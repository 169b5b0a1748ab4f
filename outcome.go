package forbear

import (
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
)

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
