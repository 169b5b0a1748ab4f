package forbear

import "context"

// Classify is what Do makes of an operation's error.
func Classify(ctx context.Context, err error, chain ...classifier) Failure {
	return (&Retryer{classifiers: chain}).classify(ctx, err)
}

// Sentinel is what errors.Is finds in the error of a call that ended for a reason.
func Sentinel(r Reason) error { return sentinels[r] }
