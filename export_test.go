package forbear

import "context"

// Classify is what Do makes of an operation's error.
func Classify(ctx context.Context, err error, chain ...Classifier) Failure {
	return classify(ctx, err, chain)
}

// SetDraw replaces the randomness of b.
func (b *AdaptiveThrottle) SetDraw(draw func() float64) { b.draw = draw }

// OutcomeLimited is that of a failure that asks for less.
const OutcomeLimited = outcomeLimited
