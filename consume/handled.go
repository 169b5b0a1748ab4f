package consume

import (
	"context"
	"runtime/debug"

	"github.com/forbear-go/forbear"
)

// handled calls the handler, on a goroutine of its own: runtime.Goexit in it, as test
// helpers have it, would end the adapter's, with the place and the key that this holds.
// It is an error that is final, like a panic.
func (r *run) handled(ctx context.Context) error {
	end := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			v := recover()
			if v == nil && !returned {
				v = "runtime.Goexit"
			}
			if v != nil {
				err = forbear.Terminal(&forbear.PanicError{Value: v, Stack: debug.Stack()})
			}
			end <- err
		}()
		err = r.c.handle(ctx, *r.e)
		returned = true
	}()
	return <-end
}
