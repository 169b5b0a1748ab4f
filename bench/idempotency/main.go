// Command idempotency measures what idempotency keys cost: forbear's middleware
// on each of its stores beside the bare handler and beside Fiber's middleware,
// and the stores themselves beside bare claim-and-complete pairs on the same
// database.
//
//	go run ./idempotency [-rounds 15] [-turn 300ms]
//
// It uses free ports of the loopback interface, a temporary folder and the
// machine's PostgreSQL and Redis binaries, and ends what it started. It exits
// with 1 when a ratio misses its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

type options struct {
	rounds, conns int
	turn          time.Duration
	only          string
	profile       string
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 15, "rounds; the median of their ratios counts")
	flag.DurationVar(&o.turn, "turn", 300*time.Millisecond, "how long each contender is loaded in a round")
	flag.IntVar(&o.conns, "conns", 32, "connections that send requests")
	flag.StringVar(&o.only, "only", "", "only the contenders whose name contains this, and what they are compared with")
	flag.StringVar(&o.profile, "profile", "", "a folder for CPU profiles, one for each contender")
	flag.Parse()
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not end this program before what it started
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	switch {
	case errors.Is(err, errMissed):
		fmt.Fprintln(os.Stderr, "idempotency:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "idempotency:", err)
		os.Exit(2)
	}
}

var errMissed = errors.New("a ratio misses its limit")

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "forbear-idempotency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := startServers(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	list, err := s.contenders(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d processors; %d connections, median of %d rounds of %v, contenders in turns.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.conns, o.rounds, o.turn)
	for round := range o.rounds {
		for _, c := range list {
			if err := c.measure(ctx, o, round); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return table(list)
}

// contender is one row of the table.
type contender struct {
	name    string
	against string  // the name of what it is compared with
	limit   float64 // the ratio that it must reach; 0: none
	open    func(ctx context.Context, conns int) (work, error)
	seen    []float64 // operations per second, by round
	p99     []float64 // milliseconds
	cpu     []float64 // microseconds for each operation, of this process (so the client's included) and of Redis
	trips   float64   // round trips to Redis for each operation, where counted
}

// work is a contender that is ready to be loaded.
type work struct {
	// do does operations until end and returns how long each took.
	do    func(ctx context.Context, end time.Time) ([]time.Duration, error)
	redis *client // nil: none
	close func()
}

func (c *contender) measure(ctx context.Context, o options, round int) error {
	w, err := c.open(ctx, o.conns)
	if err != nil {
		return err
	}
	defer w.close()
	runtime.GC() // what one left is not the next one's
	stop, err := profile(o.profile, c.name, round)
	if err != nil {
		return err
	}
	defer stop()
	trips, begun, used := w.redis.trips(), time.Now(), cpuTime()+w.redis.cpuTime(ctx)
	took, err := w.do(ctx, begun.Add(o.turn))
	if err != nil {
		return err
	}
	if len(took) == 0 {
		return errors.New("nothing was done")
	}
	c.seen = append(c.seen, float64(len(took))/time.Since(begun).Seconds())
	c.trips = float64(w.redis.trips()-trips) / float64(len(took))
	c.cpu = append(c.cpu, float64((cpuTime()+w.redis.cpuTime(ctx)-used).Microseconds())/float64(len(took)))
	slices.Sort(took)
	c.p99 = append(c.p99, float64(took[len(took)*99/100].Microseconds())/1000)
	return ctx.Err()
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func table(list []*contender) error {
	fmt.Println("| | per second (lowest to highest) | p99 ms | CPU us, lowest | Redis round trips | against | ratio (lowest to highest) | by CPU | at least |")
	fmt.Println("|---|--:|--:|--:|--:|---|--:|--:|--:|")
	var missed error
	for _, c := range list {
		mid, low, high := median(c.seen)
		p99, _, _ := median(c.p99)
		_, cpu, _ := median(c.cpu) // what other work adds by its caches only makes it more
		trips, ratio, byCPU, limit := "", "", "", ""
		if c.trips > 0 {
			trips = fmt.Sprintf("%.2f", c.trips)
		}
		if k := slices.IndexFunc(list, func(o *contender) bool { return o.name == c.against }); k >= 0 {
			ratios := make([]float64, len(c.seen))
			for i := range ratios {
				ratios[i] = c.seen[i] / list[k].seen[i]
			}
			r, least, most := median(ratios)
			ratio = fmt.Sprintf("%.2f (%.2f to %.2f)", r, least, most)
			_, other, _ := median(list[k].cpu)
			byCPU = fmt.Sprintf("%.2f", other/cpu)
			if c.limit > 0 {
				limit = fmt.Sprintf("%.1f", c.limit)
				if r < c.limit {
					missed = errors.Join(missed, fmt.Errorf("%w: %s is %.2f of %s, want %.1f", errMissed, c.name, r, c.against, c.limit))
				}
			}
		}
		fmt.Printf("| %s | %.0f (%.0f to %.0f) | %.1f | %.0f | %s | %s | %s | %s | %s |\n", c.name, mid, low, high, p99, cpu, trips, c.against, ratio, byCPU, limit)
	}
	return missed
}

func median(of []float64) (mid, low, high float64) {
	v := slices.Sorted(slices.Values(of))
	return v[len(v)/2], v[0], v[len(v)-1]
}
