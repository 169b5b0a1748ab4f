package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	callers = 100
	steady  = 600 // messages a second
)

// turn is what a fleet did in one turn.
type turn struct {
	Accepted, Delivered float64 // in a second
	Own, Server         float64 // microseconds of processor time for a message: of the fleet, and of PostgreSQL
	Busy                float64 // processors that both took
	P50, P99, Most      float64 // milliseconds that a call took
}

// turn lets a fleet of n work for a while.
func (b *bench) turn(ctx context.Context, binary string, n int, rate float64) (t turn, err error) {
	name, remove, err := b.database(ctx, "postgres")
	if err != nil {
		return t, err
	}
	defer remove()
	f, err := b.startFleet(ctx, binary, name, n)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if b.quota > 0 {
		limited, end := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer end()
		for _, i := range f.instances {
			wg.Go(func() { restrain(limited, i.cmd.Process, b.quota) })
		}
	}
	warm, cancel := context.WithTimeout(ctx, time.Second)
	_, err = f.produce(warm, callers, rate)
	if cancel(); err != nil {
		return t, err
	}
	watch := b.watch(ctx)
	own, server, sent, began := f.used(), treeTime(b.pg.PID()), b.sink.count.Load(), time.Now()
	limited, cancel := context.WithTimeout(ctx, b.length)
	took, err := f.produce(limited, callers, rate)
	if cancel(); err != nil {
		return t, err
	}
	seconds, count := time.Since(began).Seconds(), float64(len(took))
	own, server = f.used()-own, treeTime(b.pg.PID())-server
	watch()
	ms := func(part float64) float64 { return took[int(part*(count-1))].Seconds() * 1000 }
	return turn{
		Accepted: count / seconds, Delivered: float64(b.sink.count.Load()-sent) / seconds,
		Own: float64(own.Microseconds()) / count, Server: float64(server.Microseconds()) / count, Busy: (own + server).Seconds() / seconds,
		P50: ms(0.5), P99: ms(0.99), Most: ms(1),
	}, nil
}

// contender is a number of instances of one build.
type contender struct {
	name, binary string
	n            int
}

// contenders are one, two and four instances of each build.
func (b *bench) contenders(ctx context.Context, sizes ...int) (list []contender, err error) {
	builds := []string{""}
	if b.builds != "" {
		builds = strings.Split(b.builds, ",")
	}
	for _, path := range builds {
		name := ""
		if path == "" {
			if path, err = b.binary(ctx); err != nil {
				return nil, err
			}
		} else {
			name = path[strings.LastIndexByte(path, '/')+1:] + ", "
		}
		for _, n := range sizes {
			list = append(list, contender{fmt.Sprint(name, n), path, n})
		}
	}
	return list, nil
}

// inTurns lets the contenders work in turns.
func (b *bench) inTurns(ctx context.Context, list []contender, rate float64) ([][]turn, error) {
	seen := make([][]turn, len(list))
	for range b.rounds {
		for i, c := range list {
			t, err := b.turn(ctx, c.binary, c.n, rate)
			if err != nil {
				return nil, fmt.Errorf("%s instances: %w", c.name, err)
			}
			seen[i] = append(seen[i], t)
		}
	}
	return seen, nil
}

// instances measures what more processes on one PostgreSQL accept and deliver.
func (b *bench) instances(ctx context.Context, kind string) error {
	if kind != "postgres" {
		return nil
	}
	list, err := b.contenders(ctx, 1, 2, 4)
	if err != nil {
		return err
	}
	seen, err := b.inTurns(ctx, list, 0)
	if err != nil {
		return err
	}
	limit := ""
	if b.quota > 0 {
		limit = fmt.Sprintf(", each of %.2f processors", b.quota)
	}
	fmt.Printf("\n### One, two and four instances%s: %d callers over HTTP\n\n", limit, callers)
	fmt.Println("| instances | accepted/s | against one | delivered/s | CPU us of a message: forbear | PostgreSQL | processors taken | p99 ms |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|")
	for i, c := range list {
		of := func(f func(turn) float64) float64 { mid, _, _ := median(figures(seen[i], f)); return mid }
		_, low, high := median(figures(seen[i], func(t turn) float64 { return t.Accepted }))
		against, least, most := median(ratios(seen[i], seen[i-i%3], func(t turn) float64 { return t.Accepted }))
		fmt.Printf("| %s | %.0f (%.0f to %.0f) | %.2f (%.2f to %.2f) | %.0f | %.0f | %.0f | %.2f | %.0f |\n", c.name, of(func(t turn) float64 { return t.Accepted }), low, high,
			against, least, most, of(func(t turn) float64 { return t.Delivered }), of(func(t turn) float64 { return t.Own }),
			of(func(t turn) float64 { return t.Server }), of(func(t turn) float64 { return t.Busy }), of(func(t turn) float64 { return t.P99 }))
	}
	return nil
}

// paced measures how long a call takes at a load that is far from the limit.
func (b *bench) paced(ctx context.Context, kind string) error {
	if kind != "postgres" {
		return nil
	}
	list, err := b.contenders(ctx, 1, 2)
	if err != nil {
		return err
	}
	seen, err := b.inTurns(ctx, list, steady)
	if err != nil {
		return err
	}
	fmt.Printf("\n### A call at %d messages a second, %d callers\n\n", steady, callers)
	fmt.Println("| instances | p50 ms | p99 ms: median (the rounds) | most | CPU us of a message: forbear | PostgreSQL |")
	fmt.Println("|---|--:|--:|--:|--:|--:|")
	for i, c := range list {
		of := func(f func(turn) float64) float64 { mid, _, _ := median(figures(seen[i], f)); return mid }
		p99 := figures(seen[i], func(t turn) float64 { return t.P99 })
		fmt.Printf("| %s | %.1f | %.0f (%.0f) | %.0f | %.0f | %.0f |\n", c.name, of(func(t turn) float64 { return t.P50 }), of(func(t turn) float64 { return t.P99 }), p99,
			of(func(t turn) float64 { return t.Most }), of(func(t turn) float64 { return t.Own }), of(func(t turn) float64 { return t.Server }))
	}
	return nil
}

// figures takes one figure from each turn.
func figures(turns []turn, of func(turn) float64) []float64 {
	v := make([]float64, len(turns))
	for i, t := range turns {
		v[i] = of(t)
	}
	return v
}

// ratios compares turns round by round: what else the machine did fell on both.
func ratios(of, to []turn, figure func(turn) float64) []float64 {
	v := figures(of, figure)
	for i := range v {
		v[i] /= figure(to[i])
	}
	return v
}
