package tick_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/tick"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !tick.Wait(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("waited %v, want one minute", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if tick.Wait(ctx, time.Minute) || time.Since(start) != time.Second {
			t.Errorf("waited %v, want to be stopped after one second", time.Since(start))
		}
		if tick.Wait(ctx, 0) {
			t.Error("an ended context still got its turn")
		}
	})
}
