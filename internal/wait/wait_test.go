package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !wait.Sleep(t.Context(), time.Minute) || time.Since(start) != time.Minute {
			t.Errorf("slept %v, want one minute", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if wait.Sleep(ctx, time.Minute) || time.Since(start) != time.Second {
			t.Errorf("slept %v, want to be stopped after one second", time.Since(start))
		}
		if wait.Sleep(ctx, 0) {
			t.Error("an ended context still got its turn")
		}
	})
}

func TestWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(wake) })
		start := time.Now()
		if !wait.Woken(t.Context(), time.Minute, wake) || time.Since(start) != time.Second {
			t.Errorf("woken after %v, want one second", time.Since(start))
		}
		if wait.Woken(t.Context(), time.Minute, nil) {
			t.Error("woken by nothing")
		}
	})
}

// The ceiling doubles and stops at the cap, and every wait below it may be drawn.
func TestBackoff(t *testing.T) {
	b := wait.Backoff{Base: time.Second, Cap: 5 * time.Second}
	for i, ceiling := range []time.Duration{1, 2, 4, 5, 5} {
		if d := b.Next(); d < 0 || d > ceiling*time.Second {
			t.Errorf("wait %d is %v, want within %v s", i, d, ceiling)
		}
	}
	for range 1 << 10 {
		if d := b.Next(); d < 0 || d > b.Cap {
			t.Fatalf("drew %v, beyond the cap of %v", d, b.Cap)
		}
	}
	b.Reset()
	if d := b.Next(); d > time.Second {
		t.Errorf("after a reset: %v, want at most the base", d)
	}
	low, high := 0, 0
	for range 1000 {
		if d := wait.Jitter(time.Second); d < 250*time.Millisecond {
			low++
		} else if d > 750*time.Millisecond {
			high++
		}
	}
	if low < 150 || high < 150 {
		t.Errorf("%d of 1000 in the lowest quarter and %d in the highest: that is not full jitter", low, high)
	}
	if d := wait.Jitter(-time.Second); d != 0 {
		t.Errorf("jitter of a negative wait: %v", d)
	}
}

func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, fenced := errors.New("down"), errors.New("fenced")
		final := func(err error) bool { return err == fenced }
		for _, tt := range []struct {
			name  string
			errs  []error
			calls int
			want  error
		}{
			{"at once", []error{nil}, 1, nil},
			{"the third time", []error{down, down, nil}, 3, nil},
			{"never", []error{down, down, down, nil}, 3, down},
			{"final", []error{fenced, nil}, 1, fenced},
		} {
			calls, start := 0, time.Now()
			err := wait.Persist(func() error { calls++; return tt.errs[calls-1] }, final)
			if calls != tt.calls || err != tt.want {
				t.Errorf("%s: %d calls and %v, want %d and %v", tt.name, calls, err, tt.calls, tt.want)
			}
			if took := time.Since(start); took > 150*time.Millisecond {
				t.Errorf("%s: took %v", tt.name, took)
			}
		}
	})
}
