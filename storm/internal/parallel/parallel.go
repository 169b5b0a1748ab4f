// Package parallel runs what is independent on all processors: the runs of a study, or
// the variants of a page.
package parallel

import (
	"cmp"
	"context"
	"runtime"
	"sync"
)

// Map calls f for 0 to n-1, on all processors, and returns what they return, by
// index, or the error of the lowest index. The end of ctx keeps further calls from
// beginning; Map returns when those under way have. Calls of progress, which may be
// nil, do not overlap.
func Map[T any](ctx context.Context, n int, progress func(done, of int), f func(i int) (T, error)) ([]T, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		done  int
		all   = make([]T, n)
		errs  = make([]error, n)
		slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	for i := range n {
		// One at a time gets in, so that the calls begin in order.
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			all[i], errs[i] = f(i)
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(done, n)
			}
		})
	}
	wg.Wait()
	if err := cmp.Or(append(errs, context.Cause(ctx))...); err != nil {
		return nil, err
	}
	return all, nil
}
