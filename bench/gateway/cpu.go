package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// cost is what a request costs a contender.
type cost struct {
	Proxy   string `json:"proxy"`
	Label   string `json:"-"`
	Version string `json:"version"`
	// Microseconds of user and system time of the proxy's processes for each
	// completed request, by round, and the least of them.
	Rounds []float64 `json:"cpu_us_rounds"`
	Least  float64   `json:"cpu_us"`
	Ratio  float64   `json:"against_bare"` // of the least
	RPS    float64   `json:"requests_per_second"`
	P99    float64   `json:"p99_ms"`
	Sends  float64   `json:"sends_per_request"`
}

// costs loads the contenders by turns with as many requests as they take, and
// measures what each of them uses.
func costs(ctx context.Context, o options, cs []*contender, dir string) ([]cost, error) {
	up, err := newPlain()
	if err != nil {
		return nil, err
	}
	defer up.close()
	s := times()
	s.Upstream = up.addr()
	all := make([]*meter, len(cs))
	for i, c := range cs {
		p, err := c.launch(s, dir)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		all[i] = &meter{contender: c, p: p}
		if _, err := all[i].turn(ctx, o, up, time.Second); err != nil { // connections, caches, heaps
			return nil, err
		}
	}
	up.status.Store(int64(o.status))
	for range o.rounds {
		for _, m := range all {
			f, err := m.measured(ctx, o, up)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.label, err)
			}
			m.seen = append(m.seen, f)
		}
	}
	found := make([]cost, len(all))
	for i, m := range all {
		found[i] = m.cost()
	}
	for i := range found {
		found[i].Ratio = found[i].Least / found[0].Least // the bare proxy comes first
	}
	return found, nil
}

// meter measures one running contender.
type meter struct {
	*contender
	p    *running
	seen []figures
}

// figures are what one proxy did in one turn.
type figures struct {
	cpu      float64 // microseconds for each completed request
	rps, p99 float64
	requests float64 // completed
	sends    float64 // requests that the upstream got for them
}

// measured is a turn that counts, and that a profile is made of.
func (m *meter) measured(ctx context.Context, o options, up *plain) (figures, error) {
	if len(m.seen) == 0 {
		if err := m.profiled(m.p); err != nil {
			return figures{}, err
		}
	}
	f, err := m.turn(ctx, o, up, o.turn)
	if err == nil && len(m.seen) == o.rounds-1 {
		if err = m.profiled(m.p); err == nil && len(m.env) > 0 {
			time.Sleep(time.Second) // it writes the profile
		}
	}
	return f, err
}

func (m *meter) turn(ctx context.Context, o options, up *plain, lasts time.Duration) (figures, error) {
	arrived, used := up.requests.Load(), cpuTime(m.p.pid())
	begun := time.Now()
	latencies, err := loadFlat(ctx, m.p.addr, o.conns, lasts)
	if err != nil {
		return figures{}, err
	}
	took, n := time.Since(begun), float64(len(latencies))
	return figures{
		cpu:      float64((cpuTime(m.p.pid()) - used).Microseconds()) / n,
		rps:      n / took.Seconds(),
		p99:      quantile(latencies, 99),
		requests: n,
		sends:    float64(up.requests.Load() - arrived),
	}, nil
}

// cost takes the least of the rounds: what else the machine does only adds. Sends
// are those of all rounds, since a budget is spent in bursts.
func (m *meter) cost() cost {
	c := cost{Proxy: m.name, Label: m.label, Version: m.version}
	requests, sends := 0.0, 0.0
	for i, f := range m.seen {
		c.Rounds = append(c.Rounds, f.cpu)
		requests, sends = requests+f.requests, sends+f.sends
		c.RPS = max(c.RPS, f.rps)
		if i == 0 || f.p99 < c.P99 {
			c.P99 = f.p99
		}
	}
	c.Least, c.Sends = slices.Min(c.Rounds), sends/requests
	return c
}

// writeCosts writes the table of what a request costs.
func writeCosts(w io.Writer, o options, costs []cost) {
	fmt.Fprintf(w, "### CPU time for a request: %d to everything, 128 bytes, %d connections, the least of %d rounds of %v in turns\n\n",
		o.status, o.conns, o.rounds, o.turn)
	fmt.Fprintln(w, "| | version | CPU us per request | against the bare proxy | requests per second | p99 ms | sends per request |")
	fmt.Fprintln(w, "|---|---|--:|--:|--:|--:|--:|")
	for _, c := range costs {
		fmt.Fprintf(w, "| %s | %s | %.1f | %.2f | %.0f | %.1f | %.2f |\n", c.Label, c.Version, c.Least, c.Ratio, c.RPS, c.P99, c.Sends)
	}
}
