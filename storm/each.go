package storm

import (
	"context"
	"runtime"
	"sync"
)

// each calls f for 0 to n-1, on all processors, and returns the error of the
// lowest index. The end of ctx keeps further calls from beginning; each returns
// when those under way have. Calls of progress, which may be nil, do not overlap.
func each(ctx context.Context, n int, progress func(done, of int), f func(i int) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		done  int
		errs  = make([]error, n)
		slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(done, n)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
