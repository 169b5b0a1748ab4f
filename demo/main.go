// Command demo shows what retries do to a service that is in trouble, and what forbear does
// instead. It compiles in seconds and needs nothing but Go:
//
//	go run ./demo
//
// Both runs are the simulator's (package storm), in which forbear's own policy, budget and
// breaker decide. The same fault and the same calls come to both.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/storm"
)

func main() {
	file, err := os.Stdout.Stat()
	colour := err == nil && file.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	if err := show(os.Stdout, colour); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

const (
	rate     = 1000 // calls a second
	capacity = 1400 // requests a second that the service can take
	second   = storm.Duration(time.Second)
)

// scenario is a service with room to spare that loses half of its capacity for ten seconds.
func scenario() storm.Scenario {
	return storm.Scenario{
		Name: "demo", Duration: 60 * second, Bin: second,
		Fleets:   []storm.Fleet{{Rate: rate, Instances: 10, Client: storm.Client{Retries: new(3), Timeout: second}}},
		Services: []storm.Service{{Name: "service", Capacity: capacity}},
		Faults:   []storm.Fault{{Kind: storm.Brownout, At: 10 * second, For: 10 * second}},
	}
}

// show writes both runs.
func show(w io.Writer, colour bool) error {
	fmt.Fprintf(w, `A service takes %d requests a second, and gets %d. From second 10 to 20 it can do
half of that. Each client tries a call up to four times, with backoff and jitter.

`, capacity, rate)
	fmt.Fprintf(w, "            0 s       |- fault -|                             60 s\n")
	var verdicts []string
	for _, run := range []struct{ name, variant string }{
		{"retries as they are usually written", "jitter"},
		{"retries by forbear: a budget of 20 %, and a breaker", "breaker"},
	} {
		r, err := storm.Run(context.Background(), variant(run.variant), storm.Options{})
		if err != nil {
			return err
		}
		chart(w, run.name, r, colour)
		verdicts = append(verdicts, fmt.Sprintf("%.0f %%", 100*r.Summary.Good/r.Summary.Calls))
	}
	fmt.Fprintf(w, `
The fault is over at second 20. The retries keep the service busy with calls that no
one waits for any longer: %s of the calls end well there, and %s with forbear.

next:  go run ./cmd/forbear serve   a gateway to try; compiles for a minute or two
       docs/guides/http.md          the same engine under your http.Client
`, verdicts[0], verdicts[1])
	return nil
}

// variant is the scenario with one of the simulator's ways to retry.
func variant(name string) storm.Scenario {
	s := scenario()
	for _, v := range storm.Variants() {
		if v.Name == name {
			return s.With(v)
		}
	}
	panic("no variant " + name)
}

// chart draws the requests that reach the service in each second, and the calls that end well.
func chart(w io.Writer, title string, r *storm.Result, colour bool) {
	const (
		red, green, plain = "\x1b[31m", "\x1b[32m", "\x1b[0m"
		most              = 4 * rate
	)
	paint := func(c, s string) string {
		if !colour {
			return s
		}
		return c + s + plain
	}
	var sent, good strings.Builder
	for i := range r.Series.Fresh {
		load := r.Series.Fresh[i] + r.Series.Retry[i]
		c := green
		if load > capacity {
			c = red
		}
		sent.WriteString(paint(c, bar(load/most)))
		good.WriteString(paint(green, bar(r.Series.Good[i]/most)))
	}
	fmt.Fprintf(w, "%s: up to %.1f requests a call\n  requests  %s\n  good      %s\n", title, r.Summary.PeakMultiplier, sent.String(), strings.TrimRight(good.String(), " "))
}

// bar is an eighth to eight eighths of a line.
func bar(share float64) string {
	bars := []rune(" ▁▂▃▄▅▆▇█")
	return string(bars[min(int(share*8+0.5), 8)])
}
