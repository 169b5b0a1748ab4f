// Command stale makes 1,000 POSTs without an idempotency key over pooled
// connections that their server has just given up: plain net/http, forbear and
// its peers.
//
//	go run ./stale [-calls 1000] [-rounds 3]
//
// Servers are on the loopback interface, and remember the body of each POST that
// reached them: none may come twice. It exits with 1 when forbear misses a goal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	calls := flag.Int("calls", 1000, "POSTs of each contender")
	rounds := flag.Int("rounds", 3, "how often all of it is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *calls, *rounds)
	stop()
	switch {
	case errors.Is(err, errMissed):
		fmt.Fprintln(os.Stderr, "stale:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "stale:", err)
		os.Exit(2)
	}
}

// errMissed says that forbear did worse than net/http alone.
var errMissed = errors.New("a goal is missed")

// figures are what became of the POSTs of one contender. Median is of the time
// of a call, failed ones included.
type figures struct {
	calls, succeeded, received, twice int
	median                            time.Duration
}

func run(ctx context.Context, calls, rounds int) error {
	if calls < 1 || rounds < 1 {
		return errors.New("want at least one call and one round")
	}
	var missed error
	for _, m := range modes {
		fmt.Printf("\n### %s\n\n| | succeeded | reached the server | reached it twice | median of a call |\n|---|--:|--:|--:|--:|\n", m.title)
		for range rounds {
			all, err := measure(ctx, m, calls, contenders...)
			if err != nil {
				return fmt.Errorf("%s: %w", m.title, err)
			}
			missed = errors.Join(missed, m.held(all[0], all[1]))
			for i, got := range all {
				fmt.Printf("| %s | %d | %d | %d | %v |\n",
					contenders[i].name, got.succeeded, got.received, got.twice, got.median.Round(time.Microsecond))
			}
		}
	}
	return missed
}

// held returns what forbear missed beside net/http alone.
func (m mode) held(plain, forbear figures) error {
	slack := 0
	if m.races { // four standard errors of the difference
		share := float64(plain.succeeded+forbear.succeeded) / float64(plain.calls+forbear.calls)
		slack = int(math.Ceil(4 * math.Sqrt(share*(1-share)*float64(plain.calls+forbear.calls))))
	}
	switch {
	case forbear.twice > 0:
		return fmt.Errorf("%w: %s: %d POSTs came twice", errMissed, m.title, forbear.twice)
	case forbear.succeeded < plain.succeeded-slack:
		return fmt.Errorf("%w: %s: %d succeeded, through net/http %d", errMissed, m.title, forbear.succeeded, plain.succeeded)
	}
	return nil
}
