package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// latency is what a response takes that is not slow.
const latency = 10 * time.Millisecond

// fault is one way in which a dependency fails now and then.
type fault struct {
	name   string
	share  float64 // of random failures, 0 to 1, in the first table
	period time.Duration
	// rate is that of all callers' calls a second; 0 is the one of the options.
	rate float64
	// allowed is how far the success with the default policy may lie under that
	// without a breaker, 0 to 1; negative is no goal.
	allowed float64
	// opens says that it may open the breaker once, which costs openFor of the
	// calls beside that.
	opens bool
	// timeout bounds an attempt; 0 is none.
	timeout time.Duration
	// respond returns the status and the time of the nth request, the first is
	// 0, so long after the fault began.
	respond func(n int64, since time.Duration) (status int, took time.Duration)
}

// shareRows are the rows of the first table.
func shareRows() (rows []row) {
	for _, of := range []struct {
		percent int
		allowed float64
	}{{5, 0.02}, {10, 0.02}, {20, 0.02}, {30, 0.02}, {40, 0.02}, {45, 0.05}, {60, -1}, {75, -1}, {100, -1}} {
		share := float64(of.percent) / 100
		rows = append(rows, row{fault: fault{
			name: fmt.Sprintf("%d %%", of.percent), share: share, allowed: of.allowed,
			respond: func(int64, time.Duration) (int, time.Duration) { return random(share, http.StatusServiceUnavailable) },
		}})
	}
	return rows
}

// caseRows are the rows of the second table.
func caseRows() []row {
	const period, burst, slow = 20 * time.Second, 2 * time.Second, time.Second
	bursts := func(_ int64, since time.Duration) (int, time.Duration) {
		if at := since % period; at >= (period-burst)/2 && at < (period+burst)/2 {
			return http.StatusServiceUnavailable, latency
		}
		return http.StatusOK, latency
	}
	const allowed = 0.03
	return []row{
		{fault: fault{name: "bursts: 503 to all for 2 s of every 20 s", period: period, allowed: allowed, opens: true, respond: bursts}},
		{fault: fault{name: "the same at 5 calls/s", period: period, rate: 5, allowed: allowed, respond: bursts}},
		{fault: fault{
			name: "a slow tenth: 1 s, given up after 500 ms", timeout: slow / 2, allowed: allowed,
			respond: func(int64, time.Duration) (int, time.Duration) {
				if rand.Float64() < 0.1 {
					return http.StatusOK, slow
				}
				return http.StatusOK, latency
			},
		}},
		{fault: fault{
			name: "one of five instances fails, requests in turn", allowed: allowed,
			respond: func(n int64, _ time.Duration) (int, time.Duration) {
				if n%5 == 0 {
					return http.StatusServiceUnavailable, latency
				}
				return http.StatusOK, latency
			},
		}},
		{fault: fault{
			name: "429 to 20 %, at random", allowed: allowed,
			respond: func(int64, time.Duration) (int, time.Duration) { return random(0.2, http.StatusTooManyRequests) },
		}},
	}
}

func random(share float64, status int) (int, time.Duration) {
	if rand.Float64() < share {
		return status, latency
	}
	return http.StatusOK, latency
}

// every returns the time between the calls that one caller starts.
func (f *fault) every(o options) time.Duration {
	if f.rate == 0 {
		return o.every
	}
	return time.Duration(float64(o.callers) / f.rate * float64(time.Second))
}

// length returns how long a cell with this fault is measured: whole periods.
func (f *fault) length(d time.Duration) time.Duration {
	if f.period == 0 {
		return d
	}
	return (d + f.period - 1) / f.period * f.period
}

// dependency is a server with a fault, which begins at a moment of its own.
type dependency struct {
	fault fault
	begin time.Time
	sends atomic.Int64 // since begin
	url   string
	http  *http.Server
}

func newDependency(f fault, begin time.Time) (*dependency, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &dependency{fault: f, begin: begin, url: "http://" + l.Addr().String() + "/"}
	d.http = &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.http.Serve(l) }()
	return d, nil
}

// ServeHTTP responds without a body: not every contender reads those that it
// gives up, and an unread body costs its connection.
func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, took := http.StatusOK, latency
	if since := time.Since(d.begin); since >= 0 {
		status, took = d.fault.respond(d.sends.Add(1)-1, since)
	}
	select {
	case <-time.After(took):
		w.WriteHeader(status)
	case <-r.Context().Done():
	}
}
