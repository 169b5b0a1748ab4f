package main

import (
	"context"
	"fmt"
)

var titles = map[string]string{
	"sqlite": "SQLite, synchronous=FULL", "postgres": "PostgreSQL, fsync on",
	"bare": "bare claim-and-post loop", "forbear": "**forbear**", "river": "River", "river-tuned": "River, fetching as often as it permits",
	"burst-sql": "**webhook.Outbox**, database/sql", "burst-pgx": "**pgxoutbox**, COPY", "burst-river": "River, InsertManyTx", "burst-river-fast": "River, InsertManyFastTx (COPY)",
}

// throughput compares what is accepted and delivered in a second.
func (b *bench) throughput(ctx context.Context, kind string) error {
	contenders := []string{"bare", "forbear"}
	if kind == "postgres" {
		contenders = append(contenders, "river", "river-tuned")
	}
	seen := map[string][]report{}
	for range b.rounds {
		for _, c := range contenders {
			r, err := b.fresh(ctx, kind, task{Kind: c, Messages: b.messages})
			if err != nil {
				return err
			}
			seen[c] = append(seen[c], r)
		}
	}
	fmt.Printf("\n### Accepted and delivered: %s\n\n", titles[kind])
	fmt.Println("| | accepted/s (lowest to highest) | against bare | delivered/s (lowest to highest) | against bare | CPU us for a delivery | against bare |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|")
	accepted := func(r report) float64 { return r.Accepted }
	delivered := func(r report) float64 { return r.Delivered }
	cost := func(r report) float64 { return r.CPU }
	for _, c := range contenders {
		in, inLow, inHigh := median(collect(seen[c], accepted))
		out, outLow, outHigh := median(collect(seen[c], delivered))
		cpu, _, _ := median(collect(seen[c], cost))
		fmt.Printf("| %s | %.0f (%.0f to %.0f) | %s | %.0f (%.0f to %.0f) | %s | %.0f | %s |\n", titles[c],
			in, inLow, inHigh, ratio(seen[c], seen["bare"], accepted), out, outLow, outHigh, ratio(seen[c], seen["bare"], delivered), cpu, ratio(seen[c], seen["bare"], cost))
		if c == "forbear" {
			b.half[kind] = half(in, out)
		}
	}
	if kind == "postgres" {
		fmt.Printf("\nforbear against River: accepted %s, delivered %s; fetching as often as it permits: %s and %s.\n",
			ratio(seen["forbear"], seen["river"], accepted), ratio(seen["forbear"], seen["river"], delivered),
			ratio(seen["forbear"], seen["river-tuned"], accepted), ratio(seen["forbear"], seen["river-tuned"], delivered))
	}
	return nil
}

// ratio is the median of the rounds' ratios: what else the machine did in a
// round fell on both.
func ratio(of, to []report, figure func(report) float64) string {
	v := make([]float64, len(of))
	for i := range of {
		v[i] = figure(of[i]) / figure(to[i])
	}
	mid, low, high := median(v)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", mid, low, high)
}

// fresh runs a task on a database of its own.
func (b *bench) fresh(ctx context.Context, kind string, t task) (r report, err error) {
	name, remove, err := b.database(ctx, kind)
	if err != nil {
		return r, err
	}
	defer remove()
	t.Database = name
	return b.do(ctx, t)
}

// ahead measures what messages scheduled for later cost: memory and
// throughput, of one database with and one without them.
func (b *bench) ahead(ctx context.Context, kind string) error {
	var names [2]string
	for i := range names {
		name, remove, err := b.database(ctx, kind)
		if err != nil {
			return err
		}
		defer remove()
		names[i] = name
	}
	if _, err := b.do(ctx, task{Kind: "fill", Database: names[1], Messages: b.scheduled}); err != nil {
		return err
	}
	var seen [2][]report
	for range b.rounds {
		for i, name := range names {
			r, err := b.do(ctx, task{Kind: "forbear", Database: name, Messages: b.messages})
			if err != nil {
				return err
			}
			seen[i] = append(seen[i], r)
		}
	}
	fmt.Printf("\n### %d messages scheduled for tomorrow: %s\n\n", b.scheduled, titles[kind])
	fmt.Println("| | accepted/s | delivered/s | peak memory MiB |")
	fmt.Println("|---|--:|--:|--:|")
	figures := []func(report) float64{
		func(r report) float64 { return r.Accepted }, func(r report) float64 { return r.Delivered }, func(r report) float64 { return r.Peak },
	}
	for i, name := range []string{"none", "all of them"} {
		fmt.Printf("| %s |", name)
		for _, f := range figures {
			mid, low, high := median(collect(seen[i], f))
			fmt.Printf(" %.0f (%.0f to %.0f) |", mid, low, high)
		}
		fmt.Println()
	}
	fmt.Printf("| ratio | %s | %s | %s |\n", ratio(seen[1], seen[0], figures[0]), ratio(seen[1], seen[0], figures[1]), ratio(seen[1], seen[0], figures[2]))
	return nil
}

// half is half of what can be accepted and delivered at the same time, given
// what can be done of each alone.
func half(accepted, delivered float64) float64 { return 1 / (1/accepted + 1/delivered) / 2 }

// late measures how late due retries are at half load.
func (b *bench) late(ctx context.Context, kind string) error {
	if b.half[kind] == 0 { // throughput was not asked for
		r, err := b.fresh(ctx, kind, task{Kind: "forbear", Messages: b.messages})
		if err != nil {
			return err
		}
		b.half[kind] = half(r.Accepted, r.Delivered)
	}
	var seen []report
	for range b.rounds {
		r, err := b.fresh(ctx, kind, task{Kind: "late", Rate: b.half[kind], Length: b.length})
		if err != nil {
			return err
		}
		seen = append(seen, r)
	}
	fmt.Printf("\n### A due retry, at %.0f messages a second: %s\n\n", b.half[kind], titles[kind])
	fmt.Println("| | p50 ms late | p99 ms late | most |")
	fmt.Println("|---|--:|--:|--:|")
	for i, r := range seen {
		fmt.Printf("| run %d | %.0f | %.0f | %.0f |\n", i+1, r.P50, r.P99, r.Most)
		if r.Earliest < 0 {
			return fmt.Errorf("a retry came %.1f ms before its time", -r.Earliest)
		}
	}
	p99, _, _ := median(collect(seen, func(r report) float64 { return r.P99 }))
	fmt.Printf("| median | | **%.0f** | |\n", p99)
	return nil
}

// idle measures a process without work.
func (b *bench) idle(ctx context.Context, kind string) error {
	r, err := b.fresh(ctx, kind, task{Kind: "idle", Length: b.length})
	if err == nil {
		fmt.Printf("\nIdle, %s: %.2f %% of one processor, %.0f MiB.\n", titles[kind], r.CPU/10_000, r.Peak)
	}
	return err
}
