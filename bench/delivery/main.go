// Command delivery measures durable delivery: what forbear accepts and delivers
// in a second beside a bare loop over the same tables and beside River, what a
// million messages scheduled ahead cost, how late a due retry is, and what an
// idle process takes; and of `forbear serve` on PostgreSQL what one, two and four
// instances accept, how long a call takes at a steady load, and what it costs to
// sweep a million finished messages.
//
//	go run ./delivery [-only throughput,burst,scheduled,late,idle] [-rounds 5]
//	go run ./delivery -databases postgres -only instances,paced,swept [-quota 0.25] [-builds OLD,NEW]
//
// Each measurement is a process of its own with a fresh database; the receiver
// is this process. It uses free ports of the loopback interface, a temporary
// folder and the machine's PostgreSQL binaries, and ends what it started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/bench/internal/postgres"
)

type options struct {
	only      string
	databases string
	rounds    int
	messages  int
	inserted  int
	scheduled int
	length    time.Duration
	profile   string
	builds    string
	history   int
	quota     float64
	waits     bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "throughput,burst,scheduled,late,idle", "the parts to run")
	flag.StringVar(&o.databases, "databases", "sqlite,postgres", "the databases to run them on")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median counts")
	flag.IntVar(&o.messages, "messages", 16*1250, "messages of a turn")
	flag.IntVar(&o.inserted, "inserted", 50_000, "rows of a burst")
	flag.IntVar(&o.scheduled, "scheduled", 1_000_000, "messages scheduled ahead")
	flag.DurationVar(&o.length, "length", 10*time.Second, "how long lateness and idleness are watched in a round")
	flag.StringVar(&o.profile, "profile", "", "a folder for CPU profiles of the deliveries")
	flag.StringVar(&o.builds, "builds", "", "paths of forbear to compare, for instances and paced; default: this one, built anew")
	flag.Float64Var(&o.quota, "quota", 0, "the part of a processor that each of the instances gets; 0: all")
	flag.IntVar(&o.history, "history", 1_000_000, "finished messages of a generation that is swept")
	flag.BoolVar(&o.waits, "waits", false, "print what PostgreSQL's backends wait for, in instances and paced")
	task := flag.String("task", "", "used by the program itself: be one measurement")
	flag.Parse()
	var err error
	if *task != "" {
		err = serve(*task)
	} else {
		signal.Ignore(syscall.SIGPIPE) // a closed pipe must not end this program before what it started
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "delivery:", err)
		os.Exit(2)
	}
}

// bench is one run of the program.
type bench struct {
	options
	dir  string
	sink *sink
	pg   *postgres.Server // nil: not wanted
	n    int              // databases made
	// half is half of the messages that forbear can take a second, by database.
	half  map[string]float64
	built string // forbear
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "forbear-delivery-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, half: map[string]float64{}}
	if b.sink, err = newSink(); err != nil {
		return err
	}
	defer b.sink.close()
	if strings.Contains(o.databases, "postgres") {
		if b.pg, err = postgres.Start(ctx, dir); err != nil {
			return err
		}
		defer b.pg.Stop()
	}
	fmt.Printf("%s, %s/%s, %d processors; bodies of 1 KiB, %d senders, median of %d rounds, in turns.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), senders, o.rounds)
	parts := []struct {
		name string
		run  func(context.Context, string) error
	}{{"throughput", b.throughput}, {"burst", b.burst}, {"scheduled", b.ahead}, {"late", b.late}, {"idle", b.idle}, {"instances", b.instances}, {"paced", b.paced}, {"swept", b.swept}}
	for _, p := range parts {
		if !strings.Contains(o.only, p.name) {
			continue
		}
		for kind := range strings.SplitSeq(o.databases, ",") {
			if err := p.run(ctx, kind); err != nil {
				return fmt.Errorf("%s on %s: %w", p.name, kind, err)
			}
		}
	}
	return nil
}

// database makes an empty database and returns its name and what removes it.
func (b *bench) database(ctx context.Context, kind string) (name string, remove func(), err error) {
	b.n++
	if kind == "postgres" {
		db := fmt.Sprintf("d%d", b.n)
		name, err = b.pg.Create(ctx, db)
		return name, func() { b.pg.Remove(context.WithoutCancel(ctx), db) }, err
	}
	folder := filepath.Join(b.dir, fmt.Sprintf("d%d", b.n))
	return filepath.Join(folder, "forbear.db"), func() { _ = os.RemoveAll(folder) }, os.Mkdir(folder, 0o700)
}

// median returns the middle of the values; low and high are the outermost.
func median(v []float64) (mid, low, high float64) {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2], v[0], v[len(v)-1]
}

// collect takes one figure from each report.
func collect(rs []report, of func(report) float64) []float64 {
	v := make([]float64, len(rs))
	for i, r := range rs {
		v[i] = of(r)
	}
	return v
}
