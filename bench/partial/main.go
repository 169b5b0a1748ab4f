// Command partial measures what becomes of calls to a dependency that fails now
// and then: forbear as it comes, without its circuit breaker and with the
// breaker that it had before, beside other retry libraries and models of two
// that are not written in Go.
//
//	go run ./partial [-for 20s] [-callers 20] [-every 100ms] [-quick] [-work=false] [-svg FILE]
//
// Each cell of its tables is a server on the loopback interface and callers of
// its own, in real time; a few rows run at once. A last table has durable work:
// webhooks, events and batch items. It exits with 1 when forbear misses a goal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	callers int
	every   time.Duration // between the calls that one caller starts
	length  time.Duration // of a cell
	warm    time.Duration // before it, when everything succeeds
	rows    int           // at once
	only    string
	svg     string
	work    bool
}

func main() {
	var o options
	flag.IntVar(&o.callers, "callers", 20, "callers of a cell")
	flag.DurationVar(&o.every, "every", 100*time.Millisecond, "how often each caller starts a call")
	flag.DurationVar(&o.length, "for", 20*time.Second, "how long a cell is measured")
	flag.DurationVar(&o.warm, "warm", 0, "how long everything succeeds before a cell is measured")
	flag.IntVar(&o.rows, "rows", 3, "rows that run at once")
	flag.StringVar(&o.only, "only", "", "only the contenders whose name contains this")
	flag.StringVar(&o.svg, "svg", "", "a file for the picture of the first table")
	flag.BoolVar(&o.work, "work", true, "measure durable work, too: three minutes more")
	quick := flag.Bool("quick", false, "5 s for each cell, all rows at once: a look, not a measurement")
	flag.Parse()
	if *quick {
		o.length, o.rows, o.work = 5*time.Second, 100, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	switch {
	case errors.Is(err, errMissed):
		fmt.Fprintln(os.Stderr, "partial:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "partial:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, o options) error {
	var list []contender
	for _, c := range contenders() {
		if strings.Contains(c.name, o.only) {
			list = append(list, c)
		}
	}
	switch {
	case len(list) == 0:
		return fmt.Errorf("no contender is named %q", o.only)
	case o.callers < 1 || o.every <= 0 || o.length <= 0 || o.warm < 0 || o.rows < 1:
		return errors.New("want at least one caller and one row at once, and times above 0")
	}
	if err := enoughFiles(min(o.rows, len(shareRows())) * len(list) * o.callers); err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d processors; %d caller(s), each of which starts a call every %v (%.0f calls/s in all), for %v; a response takes %v.\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.callers, o.every,
		float64(o.callers)/o.every.Seconds(), o.length, latency)
	if o.warm > 0 {
		fmt.Printf("Before, everything succeeds for %v.\n", o.warm)
	}
	shares, err := measure(ctx, o, shareRows(), list)
	if err != nil {
		return err
	}
	printTable("Random failures: success in %, sends a call", "503 to", shares, list)
	cases, err := measure(ctx, o, caseRows(), list)
	if err != nil {
		return err
	}
	printTable("Other partial failures: success in %, sends a call", "", cases, list)
	printPace(shares, list, o)
	if o.svg != "" {
		if err := writePicture(o, shares, list); err != nil {
			return err
		}
	}
	missed := goals(o, append(shares, cases...), list)
	if o.work {
		missed = errors.Join(missed, printWork(ctx))
	}
	return missed
}

// row is a fault and what became of the calls, by contender.
type row struct {
	fault fault
	cells []figures
}

// measure runs every contender against every fault, a few rows at once, so that
// what else the machine does falls on all contenders alike.
func measure(ctx context.Context, o options, rows []row, list []contender) ([]row, error) {
	for first := 0; first < len(rows); first += o.rows {
		some := rows[first:min(first+o.rows, len(rows))]
		errs := make([]error, len(some)*len(list))
		var wg sync.WaitGroup
		for i := range some {
			some[i].cells = make([]figures, len(list))
			for j, c := range list {
				wg.Go(func() {
					some[i].cells[j], errs[i*len(list)+j] = cell(ctx, o, some[i].fault, c)
				})
			}
		}
		wg.Wait()
		if err := errors.Join(append(errs, ctx.Err())...); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// enoughFiles returns an error when that many callers may find no file left for
// a connection, which would be another failure than those that are measured. A
// connection takes two, its server being this process, and slow ones are
// replaced before they are gone.
func enoughFiles(callers int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := uint64(callers)*3 + 100; need > limit.Cur {
		return fmt.Errorf("%d callers at once want %d open files and may have %d: lower -rows or -callers", callers, need, limit.Cur)
	}
	return nil
}
