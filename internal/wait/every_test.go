package wait_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), []time.Duration{}
		stop := wait.Every(time.Second, func() time.Duration {
			calls = append(calls, time.Since(start))
			time.Sleep(time.Second)
			return 2 * time.Second
		})
		time.Sleep(4500 * time.Millisecond) // in the middle of the second call
		stop()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("stopped after %v, want the end of the call under way", took)
		}
		stop()
		time.Sleep(time.Hour)
		if len(calls) != 2 || calls[0] != time.Second || calls[1] != 4*time.Second {
			t.Errorf("called at %v", calls)
		}
	})
}

func TestEveryEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		stop := wait.Every(time.Second, func() time.Duration {
			calls++
			return 0
		})
		time.Sleep(time.Hour)
		stop()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
		wait.Every(time.Second, func() time.Duration { t.Error("called after its end"); return 0 })()
		time.Sleep(time.Hour)
	})
}
