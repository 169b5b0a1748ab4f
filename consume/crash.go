package consume

import (
	"context"
	"fmt"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/reason"
)

// crashes returns how many processes died on the event since a claim last left its
// progress. A process that ends in order leaves it, and one that dies cannot.
func (r *run) crashes() int {
	n := r.rec.Attempt - 1 - r.p.Claims
	r.p.Claims = r.rec.Attempt
	return n
}

// crashLoop dead-letters an event on which too many processes died: each of them took the
// other events that it was handling with it.
func (r *run) crashLoop(ctx context.Context, crashes int) Decision {
	r.call.Attempts += crashes
	return r.dead(ctx, deadletter.ReasonCrashLoop, reason.Terminal, forbear.Failure{Type: deadletter.ReasonCrashLoop}, fmt.Sprintf("%d processes died while handling it", crashes))
}
