package forbear

import (
	"context"
	"errors"

	"github.com/forbear-go/forbear/internal/errtype"
)

// classifier turns an error into a failure when it knows the error; ok is false
// when it does not, and the next one is asked.
type classifier = func(err error) (f Failure, ok bool)

// classify asks, in this order: certificates (a fact that no mark can lift),
// the caller's own end, the operation's marks, a timeout that forbear itself
// has set, the user's classifiers, an inner forbear. When none of them recognises
// the failure it is [ClassUnknown], which is not retried.
func classify(ctx context.Context, err error, chain []classifier) Failure {
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
	for _, c := range chain {
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
	return Failure{Type: errtype.Unknown, Err: err}
}

// callerEnded recognises that the call is over because the caller ended it.
func callerEnded(ctx context.Context, err error) (Failure, bool) {
	switch ctx.Err() {
	case nil:
		return Failure{}, false
	case context.DeadlineExceeded:
		return Failure{Class: ClassCanceled, Type: errtype.CallerDeadline, Err: err}, true
	default:
		return Failure{Class: ClassCanceled, Type: errtype.Canceled, Err: err}, true
	}
}
