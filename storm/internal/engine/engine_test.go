package engine

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm/internal/model"
)

//forbear:plain arithmetic on one goroutine

// plan returns one of so many retries with fixed waits of 100 ms, a timeout of a
// second, and no budget.
func plan(retries int) *model.Plan {
	p := forbear.Policy{
		MaxRetries: retries, Disabled: retries == 0, PerAttempt: time.Second,
		Backoff: forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}, Breaker: breaker.Policy{Disabled: true},
	}
	return &model.Plan{
		Given: p, Policy: p.WithDefaults(), Timeout: int64(time.Second), Limit: retries,
		Baseline: model.Baseline{Wait: "fixed", NoBudget: true},
	}
}

// burst returns a model of n calls at one instant, to a service of one server
// that takes 100 ms for each.
func burst(n int, p *model.Plan) *model.Model {
	return &model.Model{
		Seed: 1, Duration: 10 * time.Second, Bin: 100 * time.Millisecond,
		Fleets:   []model.Fleet{{Burst: n}},
		Services: []model.Service{{Capacity: 10, Concurrency: 1, Law: model.Fixed, Bound: -1, Refusal: model.Refusal(0)}},
		Edges:    []model.Edge{{Plan: p, FanOut: 1, Instances: 1}},
		Out:      [][]int{nil}, Nominal: []float64{0},
	}
}

// sums of a record.
type sums struct{ calls, retries, good, failed, served, wasted, shed float64 }

func mustRun(t *testing.T, m *model.Model) (*model.Record, sums) {
	t.Helper()
	r := Run(m, nil)
	s := sums{served: r.Services[0].Served, wasted: r.Services[0].Wasted, shed: r.Services[0].Shed}
	for _, b := range r.Bins {
		s.calls += b.Calls
		s.retries += b.Retry
		s.good += b.Good
		s.failed += b.Failed
	}
	return r, s
}

// Each case is small enough to be counted by hand: a request takes 100 ms, ten fit
// into the timeout.
func TestCallsComeToTheirEnd(t *testing.T) {
	always := func(f model.Fault) []model.Fault {
		f.End = time.Hour
		return []model.Fault{f}
	}
	for _, tt := range []struct {
		name  string
		n     int
		plan  *model.Plan
		spoil func(*model.Model)
		want  sums
	}{
		{"all in time", 9, plan(0), nil, sums{calls: 9, good: 9, served: 9}},
		{"what is late is served, for no one", 20, plan(0), nil, sums{calls: 20, good: 9, failed: 11, served: 20, wasted: 11}},
		{
			"unless deadlines are propagated", 20, plan(0), func(m *model.Model) { m.Services[0].DropExpired = true },
			sums{calls: 20, good: 9, failed: 11, served: 10, wasted: 1, shed: 10},
		},
		{
			"a full queue refuses, and the retries find room", 3, plan(3), func(m *model.Model) { m.Services[0].Bound = 1 },
			sums{calls: 3, retries: 1, good: 3, served: 3, shed: 1},
		},
		{
			"shedding by the expected wait", 8, plan(0), func(m *model.Model) { m.Services[0].Shed = 250 * time.Millisecond },
			sums{calls: 8, good: 4, failed: 4, served: 4, shed: 4},
		},
		{
			"an outage takes every attempt", 2, plan(3), func(m *model.Model) { m.Faults = always(model.Fault{Factor: 1, Outage: 1}) },
			sums{calls: 2, retries: 6, failed: 2},
		},
		{
			"errors cost work", 2, plan(1), func(m *model.Model) {
				m.Faults = always(model.Fault{Factor: 1, Failing: [model.Modes]float64{model.FailSticky: 1}})
			},
			sums{calls: 2, retries: 2, failed: 2, served: 4},
		},
		{
			"a partition lets nothing through", 2, plan(1), func(m *model.Model) { m.Faults = always(model.Fault{Factor: 1, Cut: 1}) },
			sums{calls: 2, retries: 2, failed: 2},
		},
		{
			"half the capacity takes twice the time", 9, plan(0), func(m *model.Model) { m.Faults = always(model.Fault{Factor: 0.5}) },
			sums{calls: 9, good: 4, failed: 5, served: 9, wasted: 5},
		},
		{
			"a pause ends", 2, plan(0), func(m *model.Model) { m.Faults = []model.Fault{{End: 500 * time.Millisecond}} },
			sums{calls: 2, good: 2, served: 2},
		},
		{
			"messages take time, and the work is done before the timeout", 4, plan(0), func(m *model.Model) { m.Edges[0].Plan.RTT = int64(700 * time.Millisecond) },
			sums{calls: 4, good: 2, failed: 2, served: 4},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := burst(tt.n, tt.plan)
			if tt.spoil != nil {
				tt.spoil(m)
			}
			if _, got := mustRun(t, m); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// A fan-out of three fails when one of the three does, and waits for the slowest.
func TestFanOutWaitsForAll(t *testing.T) {
	m := burst(1, plan(0))
	m.Services = append(m.Services, m.Services[0])
	m.Edges = append(m.Edges, model.Edge{Plan: plan(0), To: 1, FanOut: 3, Instances: 1})
	m.Out, m.Nominal = [][]int{{1}, nil}, make([]float64, 2)
	r, got := mustRun(t, m)
	if got.good != 1 || r.Services[1].Served != 3 {
		t.Errorf("%+v, and %v served below, want 1 good call and 3", got, r.Services[1].Served)
	}
	if _, _, mean := r.Latency(); math.Abs(mean-0.4) > 0.01 {
		t.Errorf("the call took %v s, want 0.1 and three times 0.1", mean)
	}
	m.Services[1].Bound = 1
	if _, got := mustRun(t, m); got.failed != 1 {
		t.Errorf("%+v: one of three was refused below, and the call did not fail", got)
	}
}

// Regular arrivals are counted exactly; those of Poisson have another number for
// each seed, and the same for the same.
func TestArrivals(t *testing.T) {
	m := burst(0, plan(0))
	m.Fleets[0] = model.Fleet{Rate: 5, Regular: true}
	if _, got := mustRun(t, m); got.calls != 49 {
		t.Errorf("%v calls, want one every 200 ms before the end", got.calls)
	}
	m.Faults = []model.Fault{{Service: model.Fleets, At: 2*time.Second + 100*time.Millisecond, End: 4 * time.Second, Factor: 1, Spike: 3}}
	if _, got := mustRun(t, m); got.calls < 67 || got.calls > 69 {
		t.Errorf("%v calls with a spike x 3 of 1.9 s, want about 68", got.calls)
	}
	m.Fleets[0].Regular = false
	first, a := mustRun(t, m)
	again, _ := mustRun(t, m)
	if !reflect.DeepEqual(first.Services, again.Services) || first.Events != again.Events {
		t.Error("two runs of one model differ")
	}
	m.Seed = 2
	if _, b := mustRun(t, m); a == b {
		t.Errorf("another seed gives the same %+v", b)
	}
}

// A user asks again when the response is there and the thinking is over.
func TestClosedLoopWaitsForResponses(t *testing.T) {
	m := burst(0, plan(0))
	m.Fleets[0] = model.Fleet{Users: 50, Think: time.Millisecond}
	m.Edges[0].Plan.Timeout = int64(time.Minute)
	if _, got := mustRun(t, m); got.calls != got.good+50 || got.good < 98 {
		t.Errorf("%+v: want as many calls as the server can do, and 50 that wait", got)
	}
}

func TestRunStops(t *testing.T) {
	m := burst(0, plan(0))
	m.Fleets[0] = model.Fleet{Rate: 100_000}
	asked := 0
	r := Run(m, func() bool { asked++; return asked == 3 })
	if !r.Stopped || r.Events != 3<<16 {
		t.Errorf("stopped %v after %d events, want 3 x 65,536", r.Stopped, r.Events)
	}
}

// The queue's ring grows, and keeps its order when its head is not at 0.
func TestQueueIsFirstInFirstOut(t *testing.T) {
	var v serviceState
	v.init(&model.Service{Bound: -1})
	next, want := int32(0), int32(0)
	for range 200 {
		for range 3 {
			v.enqueue(next)
			next++
		}
		if got := v.dequeue(); got != want {
			t.Fatalf("task %d came out, want %d", got, want)
		}
		want++
	}
	for ; v.length > 0; want++ {
		if got := v.dequeue(); got != want {
			t.Fatalf("task %d came out, want %d", got, want)
		}
	}
}

// A breaker's refusal of a retry gives the budget back what it took, and ends the
// call.
func TestBreakersEndCalls(t *testing.T) {
	p := plan(3)
	p.Given.Breaker.Disabled, p.Policy.Breaker.Disabled, p.Breaker = false, false, true
	m := burst(200, p)
	m.Faults = []model.Fault{{End: time.Hour, Factor: 1, Outage: 1}}
	r, got := mustRun(t, m)
	if got.failed != 200 || r.Refused[reason.BreakerOpen] < 100 {
		t.Errorf("%+v, %v ended by the breaker", got, r.Refused[reason.BreakerOpen])
	}
	if sent := got.calls + got.retries; sent > 250 {
		t.Errorf("%v attempts on a dead service, in spite of the breaker", sent)
	}
}

// What a run needs grows with what fails, and with the layers that retry it.
func TestCostGrowsWithTheAttempts(t *testing.T) {
	m := burst(0, plan(0))
	m.Fleets[0] = model.Fleet{Rate: 1000}
	one, memory, took := Cost(m)
	m.Edges[0].Plan = plan(3)
	if four, more, longer := Cost(m); four != 4*one || longer <= took || more <= memory {
		t.Errorf("%v events, %v bytes, %v without retries; %v, %v, %v with three", one, memory, took, four, more, longer)
	}
	m.Faults = []model.Fault{{Service: model.Fleets, Factor: 1, Spike: 2}}
	if eight, _, _ := Cost(m); eight != 8*one {
		t.Errorf("%v events without retries, %v with three and a spike", one, eight)
	}
}
