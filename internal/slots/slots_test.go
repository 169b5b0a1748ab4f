package slots

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Jobs of one key keep their order, others pass, and Close waits for all.
func TestOrderOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(4)
		var mu sync.Mutex
		ran := map[string][]int{}
		job := func(key string, n int, takes time.Duration) func(context.Context) {
			return func(ctx context.Context) {
				Wait(ctx, takes, nil) // beside its slot, and still before the others of its key
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
		if time.Since(start) > 0 {
			t.Errorf("jobs without a key waited %v for those of one", time.Since(start))
		}
		p.Close()
		if !slices.Equal(ran["a"], []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || len(ran[""]) != 3 {
			t.Errorf("got %v", ran)
		}
		if len(p.lines) != 0 || len(p.slots)+len(p.waiting)+len(p.inLine) != 0 {
			t.Errorf("%d lines, %d slots, %d waiting, %d in line are left", len(p.lines), len(p.slots), len(p.waiting), len(p.inLine))
		}
	})
}

// No more jobs work at once than there are slots, and those that wait take none.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(2)
		var mu sync.Mutex
		working, most := 0, 0
		work := func() {
			mu.Lock()
			working++
			most = max(most, working)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			working--
			mu.Unlock()
		}
		start := time.Now()
		for range 20 { // each works a second, waits for an hour, and works again
			p.Do(t.Context(), "", func(ctx context.Context) {
				work()
				if !Wait(ctx, time.Hour, nil) {
					t.Error("no place to wait")
				}
				work()
			})
		}
		p.Close()
		if took := time.Since(start); most != 2 || took > time.Hour+25*time.Second {
			t.Errorf("%d at once, in %v", most, took)
		}
	})
}

// A job is woken early, and one too many does not wait.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		wake, refused := make(chan struct{}), 0
		for range Waiting(1) + 1 {
			p.Do(t.Context(), "", func(ctx context.Context) {
				if !In(ctx) {
					t.Error("not in the pool")
				}
				if !Wait(ctx, time.Hour, wake) {
					refused++ // jobs have one slot, so that this is no race
				}
			})
		}
		start := time.Now()
		time.AfterFunc(time.Second, func() { close(wake) })
		p.Close()
		if took := time.Since(start); took != time.Second || refused != 1 {
			t.Errorf("after %v with %d refused", took, refused)
		}
		if !Wait(t.Context(), time.Minute, nil) || In(t.Context()) {
			t.Error("outside of a pool it should just wait")
		}
	})
}

// Nobody waits for a slot, for a place in line or beside a slot after the end.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		p.Do(ctx, "a", func(ctx context.Context) {
			if Wait(ctx, time.Hour, nil) {
				t.Error("it has waited for an hour")
			}
		})
		synctest.Wait()
		p.Do(ctx, "", func(context.Context) { time.Sleep(time.Minute) })
		if p.Do(ctx, "", func(context.Context) { t.Error("it ran") }) {
			t.Error("it was taken")
		}
		if p.Do(ctx, "b", func(context.Context) { t.Error("it ran") }) {
			t.Error("it was taken")
		}
		p.Close()
		if len(p.lines) != 0 {
			t.Errorf("%d lines are left", len(p.lines))
		}
	})
}

// Jobs get ready and end beside the slots, no more work at once than there are, and one
// that begins again has a slot again.
func TestBesideAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(3)
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		stage := func(name string) {
			mu.Lock()
			now[name]++
			most[name] = max(most[name], now[name])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[name]--
			mu.Unlock()
		}
		start := time.Now()
		for i := range 40 {
			p.Do(t.Context(), "", func(ctx context.Context) {
				for range 1 + i%2 {
					ready := Beside(ctx)
					stage("ready")
					ready()
					stage("work")
					Leave(ctx)
					stage("end")
				}
			})
		}
		p.Close()
		if most["work"] != 3 || most["ready"] > 5 || most["end"] < 3 {
			t.Errorf("at once: %v", most)
		}
		if took := time.Since(start); took > 40*time.Second { // 60 s in the slots alone
			t.Errorf("took %v", took)
		}
		if len(p.slots)+len(p.ahead)+len(p.waiting) != 0 || !p.Idle() {
			t.Errorf("%d slots, %d ahead, %d waiting are left", len(p.slots), len(p.ahead), len(p.waiting))
		}
	})
}

// In a pool of one slot jobs keep their order.
func TestOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ran := New(1), []int{}
		for n := range 10 {
			p.Do(t.Context(), "", func(ctx context.Context) {
				ready := Beside(ctx)
				time.Sleep(time.Duration(10-n) * time.Second)
				ready()
				ran = append(ran, n)
				Leave(ctx)
			})
		}
		p.Close()
		if !slices.IsSorted(ran) || len(ran) != 10 {
			t.Errorf("got %v", ran)
		}
	})
}
