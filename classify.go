package forbear

import (
	"context"
	"errors"

	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/reason"
)

// classify asks, in this order: certificates (a fact that no mark can lift),
// the caller's own end, the operation's marks, a timeout that forbear itself
// has set, the user's classifiers, an inner forbear, the network. When none of them
// recognizes the failure it is [ClassUnknown], which is not retried.
func (r *Retryer) classify(ctx context.Context, err error) Failure {
	if f, ok := certificate(err); ok {
		return f
	}
	if f, ok := callerEnded(ctx, err); ok {
		return f
	}
	if m, ok := errors.AsType[*mark](err); ok {
		label := errtype.Marked
		if m.class == ClassTerminal {
			label = errtype.Terminal
		}
		return Failure{Class: m.class, Type: label, Hint: m.hint, Err: err}
	}
	if _, ok := err.(*attemptTimeout); ok {
		return Failure{Class: ClassTimeout, Type: errtype.Timeout, Err: err}
	}
	for _, c := range r.classifiers {
		if f, ok := c(err); ok {
			if f.Err == nil {
				f.Err = err
			}
			return f
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		f := e.Failure()
		f.Err = err
		return f
	}
	return r.network(ctx, err)
}

// network recognizes the failures of the network that may be retried although
// the operation says nothing about them: those before anything was sent and, where
// the operation is safe to repeat, all that may go away. Another one keeps its
// name alone: what it means for the operation is unknown.
func (r *Retryer) network(ctx context.Context, err error) Failure {
	f, ok := classifyNet(err)
	switch {
	case !ok || !f.Class.Retryable():
		return Failure{Type: errtype.Unknown, Err: err}
	case f.Unsent || r.policy.Idempotent || layer.Idempotent(ctx):
		return f
	}
	return Failure{Type: f.Type, Err: err}
}

// callerEnded recognizes that the call is over because the caller ended it. err is
// the operation's last error, or nil.
func callerEnded(ctx context.Context, err error) (Failure, bool) {
	end := ctx.Err()
	if end == nil {
		return Failure{}, false
	}
	f := Failure{Class: ClassCanceled, Type: errtype.Canceled, Err: err}
	if end == context.DeadlineExceeded {
		f.Type = errtype.CallerDeadline
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(err, end) && errors.Is(err, cause):
	case err == nil && cause == end:
		f.Err = end
	default:
		f.Err = &abandoned{err, end, cause}
	}
	return f, true
}

// abandoned keeps the operation's last error, if there is one, beside the caller's
// end: the error of the context, and its cause where that is another.
type abandoned struct{ last, end, cause error }

func (e *abandoned) Error() string {
	if e.last == nil {
		return e.cause.Error()
	}
	return e.cause.Error() + ", last error: " + e.last.Error()
}

func (e *abandoned) Unwrap() []error {
	if e.last == nil {
		return []error{e.cause, e.end}
	}
	return []error{e.last, e.cause, e.end}
}

// An operation may call other dependencies through Retryers of their own. This file
// is what their failures mean to the one around it: each breaker judges the dependency
// that it is named after, so that one dead mail server does not stop the work of all
// who write to the ledger and sometimes send a mail.

// elsewhere returns the end of a call to another dependency that err holds, or nil.
func (r *Retryer) elsewhere(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Dependency != r.dependency {
		return e
	}
	return nil
}

// endedReason returns why a call is over whose caller has ended.
func endedReason(f Failure) Reason {
	if f.Type == errtype.CallerDeadline {
		return reason.Deadline
	}
	return reason.Canceled
}

// attemptTimeout marks a timeout as the attempt's own, not the caller's.
type attemptTimeout struct{ error }

func (e *attemptTimeout) Unwrap() error { return e.error }
