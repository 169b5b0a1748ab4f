package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pipetest"
)

// A server of fixed capacity that is offered more than it can do, in virtual time:
// the figures do not depend on what else the machine does.

var (
	table = flag.Bool("table", false, "print the tables of TestOverload")
	runs  = flag.Int("runs", 3, "of which the tables have the medians")
)

const (
	workers  = 10
	usual    = 50 * time.Millisecond // of work for a request, half of it more or less
	capacity = 200.0                 // requests a second
	giveUp   = time.Second           // the wait of a client for a response
	warmUp   = time.Minute           // at half the capacity at most, not measured
	slowFor  = 800 * time.Millisecond
)

// overload is what the server is asked for, and what it can do.
type overload struct {
	name   string
	rate   float64 // calls a second
	length time.Duration
	// A request that would wait longer than patient gets shed at once.
	patient time.Duration
	shed    int
	slow    float64 // the share of the responses that are held back for slowFor
	// From weak on and for weakFor, the work takes four times as long.
	weak, weakFor time.Duration
	// least is a goal for forbear: good calls a second.
	least float64
}

var overloads = []overload{
	{
		name: "1.5 times, 503 after 0.5 s",
		rate: 1.5 * capacity, length: time.Minute, patient: giveUp / 2, shed: http.StatusServiceUnavailable, least: 0.8 * capacity,
	},
	{
		name: "1.5 times, 429 after 0.5 s",
		rate: 1.5 * capacity, length: time.Minute, patient: giveUp / 2, shed: http.StatusTooManyRequests, least: 0.8 * capacity,
	},
	{
		name: "1.5 times, no 503 within 5 s",
		rate: 1.5 * capacity, length: time.Minute, patient: 5 * giveUp, shed: http.StatusServiceUnavailable,
	},
	{
		name: "0.8 times, slow for 20 s",
		rate: 0.8 * capacity, length: 2 * time.Minute, patient: 5 * giveUp, shed: http.StatusServiceUnavailable,
		weak: 20 * time.Second, weakFor: 20 * time.Second, least: 0.6 * capacity,
	},
	{
		name: "0.5 times, a tenth late",
		rate: 0.5 * capacity, length: time.Minute, patient: 5 * giveUp, shed: http.StatusServiceUnavailable, slow: 0.1, least: 0.45 * capacity,
	},
}

// server works on requests in the order in which they come. It notices nothing of
// clients that give up, and does their work too.
type server struct {
	overload
	begin time.Time

	mu   sync.Mutex
	free [workers]time.Time // when each worker has done what it was given
	// sends counts requests since begin.
	sends atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	if !now.Before(s.begin) {
		s.sends.Add(1)
	}
	done, ok := s.accept(now)
	if !ok {
		w.WriteHeader(s.shed)
		return
	}
	if rand.Float64() < s.slow {
		done = done.Add(slowFor)
	}
	if sleep(r.Context(), done.Sub(now)) {
		w.WriteHeader(http.StatusOK)
	}
}

// accept gives a request to the worker that is free first.
func (s *server) accept(now time.Time) (done time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	for i := range s.free {
		if s.free[i].Before(s.free[first]) {
			first = i
		}
	}
	start := now
	if s.free[first].After(now) {
		start = s.free[first]
	}
	if start.Sub(now) > s.patient {
		return done, false
	}
	work := usual/2 + rand.N(usual)
	if since := start.Sub(s.begin); since >= s.weak && since < s.weak+s.weakFor {
		work *= 4
	}
	s.free[first] = start.Add(work)
	return s.free[first], true
}

// outcome is what became of the calls that began in the measured time.
type outcome struct {
	figures
	took    []time.Duration // by good calls
	seconds []figures       // by the second in which a call began
}

func (o *outcome) add(began, took time.Duration, ok bool) {
	second := &o.seconds[began/time.Second]
	o.calls++
	second.calls++
	if ok {
		o.good++
		second.good++
		o.took = append(o.took, took)
	}
}

// quantile returns the time in which a share of the good calls ended.
func (o *outcome) quantile(share float64) time.Duration {
	if len(o.took) == 0 {
		return 0
	}
	slices.Sort(o.took)
	return o.took[int(share*float64(len(o.took)-1))]
}

// recovered returns how long after at the first second began from which on at least
// 95 % of the calls of each second were good. All the time to the end means never.
func (o *outcome) recovered(at time.Duration) time.Duration {
	first := int(at / time.Second)
	for s := len(o.seconds) - 1; s >= first; s-- {
		if o.seconds[s].success() < 0.95 {
			return time.Duration(s+1-first) * time.Second
		}
	}
	return 0
}

// offer has calls begin at random and independently of each other, in a bubble of
// its own.
func offer(t *testing.T, l overload, c contender) outcome {
	o := outcome{seconds: make([]figures, l.length/time.Second)}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().Add(warmUp)
		s := &server{overload: l, begin: begin}
		network := pipetest.New()
		srv := &http.Server{Handler: s}
		go func() { _ = srv.Serve(network) }()
		defer srv.Close()
		transport := &http.Transport{DialContext: network.Dial, MaxIdleConnsPerHost: 10_000, ResponseHeaderTimeout: giveUp}
		defer transport.CloseIdleConnections()
		do, err := c.open(transport, "http://server/")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for at := -warmUp; ; {
			rate := l.rate
			if at < 0 {
				rate = min(rate, capacity/2)
			}
			at += time.Duration(rand.ExpFloat64() / rate * float64(time.Second))
			if at >= l.length {
				break
			}
			time.Sleep(time.Until(begin.Add(at)))
			wg.Go(func() {
				ok := do(t.Context())
				if at >= 0 {
					mu.Lock()
					defer mu.Unlock()
					o.add(at, time.Since(begin)-at, ok)
				}
			})
		}
		wg.Wait()
		o.sends = s.sends.Load()
	})
	return o
}

// TestOverload holds forbear to its goals, and prints the table of the README
// with -table.
func TestOverload(t *testing.T) {
	list, n := overloadContenders(), *runs
	if !*table {
		list, n = list[:1], 1
	}
	rows := make([]string, len(list)) // of the table
	for _, l := range overloads {
		t.Run(l.name, func(t *testing.T) {
			for i, c := range list {
				outcomes := make([]outcome, n)
				for k := range outcomes {
					outcomes[k] = offer(t, l, c)
				}
				rows[i] += " " + l.cell(outcomes) + " |"
				if i == 0 {
					l.check(t, outcomes)
				}
			}
		})
	}
	if !*table {
		return
	}
	fmt.Print("|")
	for _, l := range overloads {
		fmt.Printf(" | %s", l.name)
	}
	fmt.Printf(" |\n|---|%s\n", strings.Repeat("--:|", len(overloads)))
	for i, c := range list {
		if c.name == nameForbear {
			c.name = "**forbear**"
		}
		fmt.Printf("| %s |%s\n", c.name, rows[i])
	}
}

func (l overload) check(t *testing.T, outcomes []outcome) {
	for _, o := range outcomes {
		if got := float64(o.good) / l.length.Seconds(); got < l.least {
			t.Errorf("got %.0f good calls a second, want at least %.0f", got, l.least)
		}
		if got := o.sendsACall(); got > mostSends {
			t.Errorf("got %.2f sends a call, want at most %v", got, mostSends)
		}
		if after := o.recovered(l.weak + l.weakFor); l.weakFor > 0 && after > 10*time.Second {
			t.Errorf("recovered after %v, want at most 10 s", after)
		}
	}
}

// cell is a cell of the table, of medians.
func (l overload) cell(outcomes []outcome) string {
	median := func(value func(*outcome) float64) float64 {
		values := make([]float64, len(outcomes))
		for k := range outcomes {
			values[k] = value(&outcomes[k])
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	ms := func(share float64) float64 {
		return median(func(o *outcome) float64 { return o.quantile(share).Seconds() * 1000 })
	}
	text := fmt.Sprintf("%.0f, %.2f; %.0f, %.0f, %.0f", median(func(o *outcome) float64 { return float64(o.good) / l.length.Seconds() }),
		median((*outcome).sendsACall), ms(0.5), ms(0.95), ms(0.99))
	if l.weakFor == 0 {
		return text
	}
	at := l.weak + l.weakFor
	after := median(func(o *outcome) float64 { return o.recovered(at).Seconds() })
	if after >= (l.length - at).Seconds() {
		return text + "; never"
	}
	return fmt.Sprintf("%s; %.0f s", text, after)
}
