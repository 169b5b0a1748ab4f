package forbear

import "context"

// Classify is what Do makes of an operation's error.
func Classify(ctx context.Context, err error, chain ...classifier) Failure {
	return (&Retryer{classifiers: chain}).classify(ctx, err)
}
