package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// trial is one contender in one row, with processes and an upstream of its own.
type trial struct {
	ctx   context.Context
	row   row
	lasts time.Duration
	quick bool
	up    *scripted
	addr  string
	extra map[string]float64
}

// warm is how long all goes well before a row begins.
func warm(quick bool) time.Duration {
	if quick {
		return time.Second
	}
	return 3 * time.Second
}

// playAll plays some rows at once.
func playAll(ctx context.Context, o options, rs []row, cs []*contender, dir string) ([][]result, error) {
	results, errs := make([][]result, len(rs)), make([]error, len(rs))
	var wg sync.WaitGroup
	for i, r := range rs {
		wg.Go(func() { results[i], errs[i] = play(ctx, o, r, cs, dir) })
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// play plays a row with all contenders: at the same time, so that what else the
// machine does falls on all, or one after the other.
func play(ctx context.Context, o options, r row, cs []*contender, dir string) ([]result, error) {
	results, errs := make([]result, len(cs)), make([]error, len(cs))
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() {
			if results[i], errs[i] = try(ctx, o, r, c, dir); errs[i] != nil {
				errs[i] = fmt.Errorf("%s, %s: %w", r.name, c.label, errs[i])
			}
		})
		if o.apart {
			wg.Wait()
		}
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// try plays a row with one contender.
func try(ctx context.Context, o options, r row, c *contender, dir string) (result, error) {
	up, err := newScripted()
	if err != nil {
		return result{}, err
	}
	defer up.close()
	s := times()
	s.Upstream, s.Streams = up.addr, r.streams
	p, err := c.launch(s, dir)
	if err != nil {
		return result{}, err
	}
	defer p.stop()
	t := &trial{ctx: ctx, row: r, lasts: r.lasts, quick: o.quick, up: up, addr: p.addr, extra: map[string]float64{}}
	if o.quick {
		t.lasts = r.quick
	}
	return t.run(c)
}

func (t *trial) run(c *contender) (result, error) {
	crowd.run(t.ctx, t.addr, warm(t.quick), false)
	t.up.begin(t.row.script(t.lasts))
	refused := make(chan error, 1)
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	closed := t.row.refuses != nil && t.row.refuses(0)
	if closed {
		t.up.refuse()
	}
	go func() { refused <- t.refuse(ctx, closed) }()
	seen, err := tally{}, error(nil)
	if t.row.measure != nil {
		seen, err = t.row.measure(t)
	} else {
		seen = t.row.load.run(t.ctx, t.addr, t.lasts, true)
	}
	stop()
	if err = errors.Join(err, <-refused, t.ctx.Err()); err != nil {
		return result{}, err
	}
	t.up.mu.Lock()
	defer t.up.mu.Unlock()
	return t.result(c, seen), nil
}

// refuse closes and opens the upstream's port, which is closed or not, as the row
// has it.
func (t *trial) refuse(ctx context.Context, closed bool) error {
	if t.row.refuses == nil {
		return nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if want := t.row.refuses(time.Since(t.up.began)); want != closed {
			if closed = want; closed {
				t.up.refuse()
			} else if err := t.up.listen(); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// result is one contender in one row, as it is written for machines. Times are
// milliseconds.
type result struct {
	Row           string             `json:"row"`
	Proxy         string             `json:"proxy"`
	Label         string             `json:"-"`
	Calls         int                `json:"calls"`
	Good          int                `json:"good"`
	GoodPerSecond float64            `json:"good_per_second"`
	GoodShare     float64            `json:"good_share"` // 0 to 1
	SendsPerCall  float64            `json:"sends_per_call"`
	P50           float64            `json:"p50_ms"`
	P99           float64            `json:"p99_ms"`
	Seen          map[string]int     `json:"seen"`
	Lag           float64            `json:"lag_p99_ms"` // how late the callers were
	Extra         map[string]float64 `json:"extra,omitempty"`
}

func (t *trial) result(c *contender, seen tally) result {
	calls := max(len(seen.took), 1)
	return result{
		Row: t.row.name, Proxy: c.name, Label: c.label, Calls: len(seen.took), Good: seen.good,
		GoodPerSecond: float64(seen.good-seen.late) / t.lasts.Seconds(),
		GoodShare:     float64(seen.good) / float64(calls),
		SendsPerCall:  float64(t.up.sends) / float64(calls),
		P50:           quantile(seen.took, 50), P99: quantile(seen.took, 99),
		Seen: seen.seen, Lag: quantile(seen.lag, 99), Extra: t.extra,
	}
}

// quantile returns a percentile in milliseconds, 0 of nothing.
func quantile(took []time.Duration, percent int) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return float64(took[(len(took)-1)*percent/100].Microseconds()) / 1000
}
