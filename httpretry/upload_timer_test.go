package httpretry

import (
	"context"
	"testing"
	"time"
)

// The timer of an upload fires in steps while sent bytes are on their way. One of its calls
// may come when the response is there already, and must not cut that off.
func TestTimerThatFiresWithTheResponse(t *testing.T) {
	for _, answered := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		u := &upload{a: &attempt{cancel: cancel, timer: time.NewTimer(time.Hour), limit: time.Hour}}
		u.set(time.Nanosecond)
		for time.Until(u.due) > 0 {
		}
		if answered {
			u.leave()
		}
		u.timeUp()
		if ended := ctx.Err() != nil; ended == answered {
			t.Errorf("with a response %v: the attempt has ended %v", answered, ended)
		}
	}
}
