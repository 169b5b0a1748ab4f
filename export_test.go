package forbear

import "context"

// Classify is what Do makes of an operation's error.
func Classify(ctx context.Context, err error, chain ...classifier) Failure {
	return classify(ctx, err, chain)
}
