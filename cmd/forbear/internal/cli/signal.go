package cli

import (
	"context"
	"os"
	"os/signal"
)

// Interrupted is the cause of a context that a signal has ended: an orchestrator's
// SIGTERM leaves time, and a person's Ctrl-C does not.
type Interrupted struct{ Signal os.Signal }

// Error implements error.
func (i Interrupted) Error() string { return "ended by " + i.Signal.String() }

// WithSignals returns a context that ends at the first of the signals, with
// [Interrupted] as its cause. After that they have their usual effect again, unless
// someone else asks for them: a second one ends the process at once. The returned
// function ends it all.
func WithSignals(parent context.Context, signals ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, signals...)
	stop := func() {
		signal.Stop(ch)
		cancel(nil)
	}
	go func() {
		select {
		case s := <-ch:
			cancel(Interrupted{s})
			signal.Stop(ch)
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}
