// Command gateway compares retrying proxies before an upstream that fails in one
// way after the other: `forbear serve`, nginx and HAProxy, a bare reverse proxy of
// Go's standard library, and Caddy where it is installed. It measures what callers
// get, what the upstream is sent, and what a request costs.
//
//	go run ./gateway [-quick] [-row NAME,...] [-cpu [-profile FILE]] [-json]
//
// It uses free ports of the loopback interface and a temporary folder, and ends
// what it started.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	quick, apart, cpu, json bool
	row, only, forbear      string
	profile                 string
	rounds, conns, status   int
	turn                    time.Duration
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "rows of a few seconds; the figures are rougher, and flaps are short of their goal")
	flag.BoolVar(&o.apart, "apart", false, "in each row one proxy after the other, not all at once: for times on a quiet machine")
	flag.StringVar(&o.row, "row", "", "only these rows, by their names, and no CPU time")
	flag.StringVar(&o.only, "only", "", "only these proxies beside the bare one: forbear, haproxy, nginx, caddy")
	flag.BoolVar(&o.cpu, "cpu", false, "only the CPU time for a request")
	flag.StringVar(&o.profile, "profile", "", "with -cpu: write a CPU profile of forbear serve to this file")
	flag.IntVar(&o.rounds, "rounds", 5, "with -cpu: rounds, of which the least counts")
	flag.DurationVar(&o.turn, "turn", 2*time.Second, "with -cpu: how long each proxy is loaded in a round")
	flag.IntVar(&o.conns, "conns", 64, "with -cpu: connections that send requests")
	flag.IntVar(&o.status, "status", 200, "with -cpu: what the upstream responds: 200 or 503")
	flag.StringVar(&o.forbear, "forbear", "", "the forbear binary (default: build it)")
	flag.BoolVar(&o.json, "json", false, "write JSON instead of tables")
	proxy := flag.String("proxy", "", "used by the program itself: be the bare reverse proxy before this address")
	listen := flag.String("listen", "", "used by the program itself: where the bare reverse proxy listens")
	wait := flag.Duration("wait", 0, "used by the program itself: how long the bare reverse proxy waits for a response")
	flag.Parse()
	if o.quick {
		o.turn = min(o.turn, time.Second)
	}
	if *proxy != "" {
		fail(bareProxy(*listen, *proxy, *wait))
		return
	}
	// A closed pipe must not end this program before what it started.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(run(ctx, o, os.Stdout))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// selected returns the rows that the options ask for.
func selected(o options) ([]row, error) {
	all := rows()
	if o.cpu {
		return nil, nil
	}
	if o.row == "" {
		return all, nil
	}
	var found []row
	for name := range strings.SplitSeq(o.row, ",") {
		i := slices.IndexFunc(all, func(r row) bool { return r.name == name })
		if i < 0 {
			names := make([]string, len(all))
			for j, r := range all {
				names[j] = r.name
			}
			return nil, fmt.Errorf("no row %q: there are %s", name, strings.Join(names, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

func run(ctx context.Context, o options, w io.Writer) error {
	chosen, err := selected(o)
	if err != nil {
		return err
	}
	if o.status != 200 && o.status != 503 {
		return fmt.Errorf("-status %d is neither 200 nor 503", o.status)
	}
	dir, err := os.MkdirTemp("", "forbear-gateway-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cs, err := contenders(ctx, o, dir)
	if err != nil {
		return err
	}
	found := report{
		Go: runtime.Version(), At: time.Now().UTC().Truncate(time.Second), Quick: o.quick, Apart: o.apart, Versions: map[string]string{},
		Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
	}
	tables := w
	if o.json {
		tables = io.Discard
	}
	fmt.Fprintf(tables, "%s, %s, %s.", found.At.Format(time.DateOnly), found.Go, found.Machine)
	for _, c := range cs {
		found.Versions[c.name] = c.version
		fmt.Fprintf(tables, " %s %s.", c.label, c.version)
	}
	fmt.Fprintln(tables)
	for _, batch := range batches(chosen, o.quick && !o.apart) {
		results, err := playAll(ctx, o, batch, cs, dir)
		if err != nil {
			return err
		}
		for i, r := range batch {
			writeRow(tables, r, results[i])
			found.add(r, results[i], o.quick)
		}
	}
	writeSummary(tables, chosen, cs, found.Rows)
	if o.row == "" {
		if found.Costs, err = costs(ctx, o, cs, dir); err != nil {
			return err
		}
		fmt.Fprintln(tables)
		writeCosts(tables, o, found.Costs)
	}
	return found.finish(o, w)
}

// add adds a row, and what forbear misses in it.
func (f *report) add(r row, results []result, quick bool) {
	f.Rows = append(f.Rows, results...)
	for _, x := range results {
		if x.Proxy == "forbear" {
			f.Misses = append(f.Misses, r.misses(x, results[0], quick)...)
		}
	}
}

// finish writes the report for machines, and returns what was missed as an error.
func (f *report) finish(o options, w io.Writer) error {
	if o.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	if len(f.Misses) > 0 {
		return errors.New("forbear misses its goals:\n  " + strings.Join(f.Misses, "\n  "))
	}
	return nil
}
