package forbear

import (
	"context"
	"time"
)

// This file is for the durable mouths, which keep a call's [State] themselves
// between attempts and use [Retryer.Next] directly.

// Classify returns what the Retryer makes of an operation's error, by the
// operation's marks, the classifiers and what forbear knows by itself. ctx is
// the caller's: its end is not the operation's fault.
func (r *Retryer) Classify(ctx context.Context, err error) Failure {
	return classify(ctx, err, r.classifiers)
}

// Requested tells the budget of a first attempt. [Call] tells by itself.
func (r *Retryer) Requested(now time.Time) { r.budget.Request(now) }
