package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// watch samples what PostgreSQL's backends wait for until the returned function
// is called, which prints it; where it is not wanted it does nothing.
func (b *bench) watch(ctx context.Context) (end func()) {
	if !b.waits {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	seen, samples := map[string]int{}, 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			rows, err := b.pg.DB().QueryContext(ctx, `SELECT COALESCE(wait_event_type||':'||wait_event, 'running')||'  '||left(regexp_replace(query, '\s+', ' ', 'g'), 40)
				FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')`)
			if err != nil {
				continue
			}
			samples++
			for rows.Next() {
				var what string
				if rows.Scan(&what) == nil {
					seen[what]++
				}
			}
			_ = rows.Close()
		}
	})
	return func() {
		cancel()
		wg.Wait()
		for _, what := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return seen[b] - seen[a] })[:min(14, len(seen))] {
			fmt.Fprintf(os.Stderr, "  %5.2f  %s\n", float64(seen[what])/float64(samples), what)
		}
		fmt.Fprintln(os.Stderr)
	}
}
