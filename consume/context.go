package consume

import "context"

type attemptKey struct{}

type attemptInfo struct {
	number int
	fence  int64
}

// Attempt returns the number of the attempt that ctx is the handler's of; the
// first is 1. It is 0 elsewhere.
func Attempt(ctx context.Context) int {
	a, _ := ctx.Value(attemptKey{}).(attemptInfo)
	return a.number
}

// Fence returns a number that grows with each claim of the event. A handler
// that writes it with its effect, and refuses to write below a higher one,
// cannot be overtaken by a run of its own that was taken for dead. It is 0
// outside of handlers.
func Fence(ctx context.Context) int64 {
	a, _ := ctx.Value(attemptKey{}).(attemptInfo)
	return a.fence
}
