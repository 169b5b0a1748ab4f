package engine

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// Twenty requests come at once to a server that takes 100 ms for each and has a timeout of
// 500 ms: four are done before it. The others get a response at that moment, though the
// client would wait for seconds, and their work is waste. That holds from the moment on,
// and not from when the response is there.
func TestServersTimeoutRespondsAndWorksOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		drop bool
		rtt  time.Duration
		want sums
	}{
		{"the work goes on", false, 0, sums{calls: 20, good: 4, failed: 16, served: 20, wasted: 16}},
		{"the work goes on, far away", false, 400 * time.Millisecond, sums{calls: 20, good: 4, failed: 16, served: 20, wasted: 16}},
		{"what is queued is thrown away", true, 0, sums{calls: 20, good: 4, failed: 16, served: 5, wasted: 1, shed: 15}},
		{"what is queued is thrown away, far away", true, 400 * time.Millisecond, sums{calls: 20, good: 4, failed: 16, served: 5, wasted: 1, shed: 15}},
	} {
		m := burst(20, plan(0))
		m.Edges[0].Plan.Timeout, m.Edges[0].Plan.RTT = int64(5*time.Second), int64(tt.rtt)
		m.Services[0].Timeout, m.Services[0].DropExpired = 500*time.Millisecond, tt.drop
		r, got := mustRun(t, m)
		if got != tt.want {
			t.Errorf("%s: got  %+v\nwant %+v", tt.name, got, tt.want)
		}
		if n := r.Bins[(500*time.Millisecond+tt.rtt)/m.Bin].Failed; n != 16 {
			t.Errorf("%s: %v failed when the timeout was over, want all 16", tt.name, n)
		}
	}
}

// What is in time has another task's place when the timeout of that one is over, in the
// service or on its way to it.
func TestServersTimeoutIsOfOneTask(t *testing.T) {
	m := burst(0, plan(0))
	m.Fleets[0] = model.Fleet{Rate: 5, Regular: true}
	m.Services[0].Timeout = 450 * time.Millisecond
	if _, got := mustRun(t, m); got.failed != 0 || got.good < 48 {
		t.Errorf("%+v: each is done in 100 of 450 ms", got)
	}
	m = burst(1, plan(0))
	m.Services[0].Timeout = 500 * time.Millisecond
	far := plan(0)
	far.RTT = int64(400 * time.Millisecond)
	m.Fleets = append(m.Fleets, model.Fleet{Burst: 1, BurstAt: 450 * time.Millisecond})
	m.Edges = append(m.Edges, model.Edge{Plan: far, FanOut: 1, Instances: 1})
	if _, got := mustRun(t, m); got.good != 2 {
		t.Errorf("%+v: want 2 good", got)
	}
}

// A client whose patience is shorter has left when the server's is over, and its retry
// is another request, with a timeout of its own.
func TestServersTimeoutIsOfTheAttempt(t *testing.T) {
	m := burst(1, plan(1))
	m.Edges[0].Plan.Timeout = int64(40 * time.Millisecond)
	m.Services[0].Timeout = 60 * time.Millisecond
	m.Services[0].Capacity, m.Services[0].Concurrency = 40, 4 // 100 ms each
	if _, got := mustRun(t, m); got != (sums{calls: 1, retries: 1, failed: 1, served: 2, wasted: 2}) {
		t.Errorf("%+v", got)
	}
}

// No task and no call is lost or freed twice, whatever comes first: the client's timeout,
// the server's, the end of the work, or that of the calls below.
func TestTasksAreFreedOnce(t *testing.T) {
	for _, drop := range []bool{false, true} {
		for _, rtt := range []time.Duration{0, 30 * time.Millisecond} {
			p := plan(2)
			p.Timeout, p.RTT, p.RTTExponential = int64(200*time.Millisecond), int64(rtt), rtt > 0
			inner := plan(1)
			inner.Timeout = int64(150 * time.Millisecond)
			v := model.Service{
				Capacity: 300, Concurrency: 30, Law: model.Exponential, Bound: 20, DropExpired: drop,
				Refusal: model.Refusal(0), Timeout: 180 * time.Millisecond,
				Limit: model.Limit{Rate: 400, Burst: 20, Refusal: model.Response(429, 0)},
			}
			lower := v
			lower.Timeout, lower.Concurrency = 90*time.Millisecond, 10
			m := &model.Model{
				Seed: 1, Duration: 30 * time.Second, Bin: 100 * time.Millisecond,
				Fleets:   []model.Fleet{{Rate: 60}},
				Services: []model.Service{v, lower},
				Edges:    []model.Edge{{Plan: p, FanOut: 1, Instances: 1}, {Plan: inner, To: 1, FanOut: 2, Instances: 1}},
				Out:      [][]int{{1}, nil}, Nominal: []float64{60, 120},
				Faults: []model.Fault{{End: time.Hour, Factor: 1, Slow: 0.1, SlowTime: 400 * time.Millisecond}},
			}
			x := newEngine(m)
			x.run(nil)
			distinct(t, "task", x.freeTask, len(x.tasks))
			free := distinct(t, "call", x.freeCall, len(x.calls))
			open := 0.0
			for i := range x.calls {
				if !free[int32(i)] && x.calls[i].parent < 0 {
					open++
				}
			}
			var calls, ended, good float64
			for _, b := range x.rec.Bins {
				calls, ended, good = calls+b.Calls, ended+b.Good+b.Failed, good+b.Good
			}
			if calls != ended+open || good < 0.1*calls {
				t.Errorf("%v calls, %v ended (%v good), %v open", calls, ended, good, open)
			}
			// A queue, the servers, what waits for the layer below and what is on its way.
			if live := len(x.tasks) - len(x.freeTask); live > 400 || len(x.tasks) > 1000 {
				t.Errorf("drop %v, rtt %v: %d tasks at the end, of %d", drop, rtt, live, len(x.tasks))
			}
		}
	}
}

// distinct fails the test when an index is in all twice, or out of range.
func distinct(t *testing.T, what string, all []int32, n int) map[int32]bool {
	t.Helper()
	seen := map[int32]bool{}
	for _, i := range all {
		if seen[i] || int(i) >= n {
			t.Fatalf("%s %d of %d was freed twice", what, i, n)
		}
		seen[i] = true
	}
	return seen
}

// What ends a call says why: a write without a key, a final status.
func TestReasonsOfFinalFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*model.Model)
		want  reason.Reason
	}{
		{"a 404", func(m *model.Model) { m.Faults[0].Failure = model.Response(404, 0) }, reason.Terminal},
		{"a 401", func(m *model.Model) { m.Faults[0].Failure = model.Response(401, 0) }, reason.Unauthorized},
		{"a 503 of a write", func(m *model.Model) { m.Edges[0].Plan.NeedsKey = true }, reason.NoKey},
		{"a 503", func(*model.Model) {}, reason.Exhausted},
		{"a wait beyond the deadline", func(m *model.Model) { m.Faults[0].Failure = model.Response(503, time.Hour) }, reason.HintTooLong},
	} {
		m := burst(3, plan(1))
		m.Faults = []model.Fault{{End: time.Hour, Factor: 1, Outage: 1}}
		tt.spoil(m)
		if r, _ := mustRun(t, m); r.Refused[tt.want] != 3 {
			t.Errorf("%s: %v ended by %v, want all 3", tt.name, r.Refused[tt.want], tt.want)
		}
	}
}

// A layer above retries what a layer below did not: the 500 of a handler whose call got a
// 404. What the layer below has retried in vain is marked, and left.
func TestFinalFailuresBelow(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		below  float64 // arrivals at the deepest service for one call
	}{{"final", 404, 3}, {"given up", 503, 3}} {
		m := burst(1, plan(2))
		m.Services = append(m.Services, m.Services[0])
		m.Edges = append(m.Edges, model.Edge{Plan: plan(2), To: 1, FanOut: 1, Instances: 1})
		m.Out, m.Nominal = [][]int{{1}, nil}, make([]float64, 2)
		m.Faults = []model.Fault{{Service: 1, End: time.Hour, Factor: 1, Outage: 1, Failure: model.Response(tt.status, 0)}}
		r, _ := mustRun(t, m)
		top := map[int]float64{404: 3, 503: 1}[tt.status]
		if r.Services[0].Arrivals != top || r.Services[1].Arrivals != tt.below {
			t.Errorf("%s: %v arrivals above, %v below, want %v and %v", tt.name, r.Services[0].Arrivals, r.Services[1].Arrivals, top, tt.below)
		}
	}
}
