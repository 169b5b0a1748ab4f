package gather_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/gather"
)

// What comes alone goes at once. What comes while a batch is under way goes
// together, in its order, as far as the bounds allow; what is larger than they
// are goes alone.
func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name              string
		width, max, bytes int
		sizes             []int // of what comes while the first is under way
		want              [][]int
	}{
		{"without bounds", 0, 0, 0, []int{1, 1, 1}, [][]int{{0}, {1, 2, 3}}},
		{"by number", 1, 2, 0, []int{1, 1, 1}, [][]int{{0}, {1, 2}, {3}}},
		{"by size", 1, 0, 10, []int{4, 4, 4, 30, 1}, [][]int{{0}, {1, 2}, {3}, {4}, {5}}},
		{"two at a time", 2, 0, 0, []int{1, 1, 1}, [][]int{{0}, {1}, {2, 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				var done [][]int
				b := gather.Batches[int]{Width: tt.width, Max: tt.max, Bytes: tt.bytes}
				turn := make(chan struct{}, 1)
				b.Do = func(batch []int) {
					turn <- struct{}{}
					done = append(done, slices.Clone(batch))
					<-turn
					<-goOn
				}
				b.Add(0, 1)
				synctest.Wait()
				for i, size := range tt.sizes {
					b.Add(i+1, size)
					synctest.Wait()
				}
				close(goOn)
				synctest.Wait()
				if !slices.EqualFunc(done, tt.want, slices.Equal) {
					t.Errorf("got %v, want %v", done, tt.want)
				}
			})
		})
	}
}

// A caller that leaves gets its own end, and End says that it has left; one that
// is there gets its result, and Lasting ends with the last of them.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls gather.Calls[int, string]
		handed := map[int]bool{}
		goOn := make(chan struct{})
		calls.Do = func(batch []*gather.Call[int, string]) {
			<-goOn
			for _, c := range gather.Present(batch) {
				handed[c.Arg] = c.End(fmt.Sprint("result ", c.Arg), nil)
			}
		}
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone home")
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				with := t.Context()
				if i == 1 {
					with = ctx
				}
				got, err := calls.Ask(with, i, 0)
				if i == 1 && !errors.Is(err, gone) || i != 1 && (err != nil || got != fmt.Sprint("result ", i)) {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
			})
		}
		synctest.Wait()
		leave(gone)
		synctest.Wait()
		close(goOn)
		wg.Wait()
		synctest.Wait() // for what notes the last
		if handed[1] || len(handed) < 2 {
			t.Errorf("handed over: %v", handed)
		}

		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, tt := range []struct {
			batch []*gather.Call[int, string]
			want  time.Duration
		}{
			{[]*gather.Call[int, string]{{Ctx: soon}}, time.Second},
			{[]*gather.Call[int, string]{{Ctx: soon}, {Ctx: t.Context()}}, time.Minute},
		} {
			got, cancel := gather.Lasting(tt.batch, time.Minute)
			defer cancel()
			if end, _ := got.Deadline(); time.Until(end) != tt.want {
				t.Errorf("lasts %v, want %v", time.Until(end), tt.want)
			}
		}
	})
}
