package lanes

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Jobs of one key keep their order, others pass, and Close waits for all.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4)
		var mu sync.Mutex
		ran := map[string][]int{}
		job := func(key string, n int, takes time.Duration) func() {
			return func() {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				ran[key] = append(ran[key], n)
			}
		}
		for n := range 10 {
			p.Do(t.Context(), "a", job("a", n, time.Duration(10-n)*time.Second))
		}
		start := time.Now()
		for n := range 3 {
			p.Do(t.Context(), "", job("", n, time.Second))
		}
		if time.Since(start) > time.Second {
			t.Errorf("jobs without a key waited %v for those of one", time.Since(start))
		}
		p.Close()
		if !slices.Equal(ran["a"], []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || len(ran[""]) != 3 {
			t.Errorf("got %v", ran)
		}
	})
}

// Nobody waits for a lane after the end.
func TestLanesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ctx, cancel := context.WithCancel(t.Context())
		p.Do(ctx, "", func() { time.Sleep(time.Minute) })
		time.AfterFunc(time.Second, cancel)
		if p.Do(ctx, "", func() { t.Error("it ran") }) {
			t.Error("it was taken")
		}
		p.Close()
	})
}
