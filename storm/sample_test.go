package storm

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// three layers at 20,000 requests a second, each of which retries.
func threeLayers(rate float64) Scenario {
	k := Client{Retries: new(2), Timeout: seconds(1), Base: 100 * ms, Cap: seconds(1), Breaker: new(false), Baseline: Baseline{NoBudget: true, Oblivious: true}}
	return Scenario{
		Name: "three layers", Duration: seconds(40),
		Fleets: []Fleet{{Rate: rate, Instances: 100, Client: k}},
		Services: []Service{
			{Name: "a", Capacity: 4 * rate, Concurrency: 40, Calls: []Edge{{To: "b", Instances: 40, Client: k}}},
			{Name: "b", Capacity: 4 * rate, Concurrency: 40, Calls: []Edge{{To: "c", Instances: 40, Client: k}}},
			{Name: "c", Capacity: 4 * rate, Concurrency: 40},
		},
		Faults: []Fault{{Kind: Errors, Service: "c", Rate: 0.5, At: seconds(5), For: seconds(20)}},
	}
}

// A sample of a scenario says the same as the whole.
func TestSampleSaysTheSame(t *testing.T) {
	s := threeLayers(2000)
	s.Engine = Exact
	whole := mustRun(t, s)
	m, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	part, err := m.runSample(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole.Services {
		near(t, whole.Services[i].Name, part.Services[i].Arrivals, whole.Services[i].Arrivals, 0.03*whole.Services[i].Arrivals)
	}
	near(t, "good", part.Summary.Good, whole.Summary.Good, 0.02*whole.Summary.Good)
	if part.Summary.Verdict != whole.Summary.Verdict || len(part.Notes) == 0 {
		t.Errorf("verdict %s for %s, notes %q", part.Summary.Verdict, whole.Summary.Verdict, part.Notes)
	}
}

// Capacities and queues are scaled as well: the collapse looks the same.
func TestSampleCollapsesTheSame(t *testing.T) {
	rate := ringtest.Size(2000.0, 5000)
	s := brownout(rate, 10)
	s.Services[0].Queue, s.Services[0].Concurrency = seconds(20), 50
	whole := mustRun(t, s)
	m, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	part, err := m.runSample(5, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := whole.Summary, part.Summary
	near(t, "multiplier", b.Multiplier, a.Multiplier, 0.03*a.Multiplier)
	near(t, "queue", b.MaxQueue, a.MaxQueue, 0.03*a.MaxQueue)
	near(t, "good", b.Good, a.Good, 0.05*a.Good)
	if a.Verdict != b.Verdict {
		t.Errorf("verdict %s for %s", b.Verdict, a.Verdict)
	}
}

func TestAutoSamplesLargeStacks(t *testing.T) {
	s := threeLayers(10_000_000)
	s.Duration = seconds(30)
	r := mustRun(t, s)
	if r.Scale < 100 {
		t.Errorf("scale %v", r.Scale)
	}
	if math.Abs(r.Summary.Calls/(30*10_000_000)-1) > 0.02 {
		t.Errorf("%v calls, want 300 M", r.Summary.Calls)
	}
}

// What would need too much is refused with an estimate; where every request is
// asked for, no sample is taken.
func TestTooLarge(t *testing.T) {
	s := brownout(10_000_000, 10)
	_, err := Run(t.Context(), s, Options{})
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok {
		t.Fatalf("got %v, want a TooLargeError", err)
	}
	if large.Estimate.Memory < MaxMemory && large.Estimate.Time < MaxTime || large.Estimate.Events < 1e9 {
		t.Errorf("refused for %+v", large.Estimate)
	}
	s.Engine = Auto
	r, err := Run(t.Context(), s, Options{Within: 100 * time.Millisecond})
	if err != nil || r.Scale < 1000 {
		t.Errorf("auto: %v, %v", r, err)
	}
}

// The estimate must not be below what a run takes.
func TestEstimateIsNotTooLow(t *testing.T) {
	for _, s := range Named() {
		s.Engine = Exact
		e, err := s.Estimate(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Events > ringtest.Size(1e6, 2e7) {
			continue
		}
		if r := mustRun(t, s); float64(r.Events) > 1.2*e.Events+10_000 {
			t.Errorf("%s: %d events, estimated %.0f", s.Name, r.Events, e.Events)
		}
	}
}

// What bounds or lengthens single requests comes out of a sample nearly as out of the
// whole. A hundred places are full more often than three hundred, at the load that they
// can just bear by 0.03.
func TestSamplesKeepTheShares(t *testing.T) {
	once := Client{Retries: new(0), Breaker: new(false)}
	at := func(rate float64, instances int, c Client, v Service) Scenario {
		v.Name = "s"
		return Scenario{
			Name: "shares", Duration: seconds(10), Engine: Exact,
			Fleets: []Fleet{{Rate: rate, Instances: instances, Client: c}}, Services: []Service{v},
		}
	}
	measured := []Quantile{{0.5, ms}, {0.99, ms * 6 / 5}}
	full, pooled := once, once
	full.MaxConcurrent, pooled.Connections, pooled.Timeout = 300, 300, 100*ms
	for name, s := range map[string]Scenario{
		"measured times, overloaded": at(13_000, 20, once, Service{Capacity: 12_000, Quantiles: measured}),
		"measured times, 92 %":       at(11_000, 20, once, Service{Capacity: 12_000, Quantiles: measured}),
		"contention":                 at(4000, 20, once, Service{Capacity: 10_000, Concurrency: 200, PerConcurrent: ms / 5}),
		"a bulkhead":                 at(15_500, 1, full, Service{Time: 20 * ms}),
		"connections":                at(15_500, 1, pooled, Service{Time: 20 * ms}),
		"a small bucket":             at(9500, 20, once, Service{Time: 5 * ms, Limit: Limit{Rate: 10_000, Burst: 50}}),
	} {
		whole := mustRun(t, s)
		c, err := compile(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []float64{5, 9} {
			k = c.even(max(1, min(k, c.divisible())))
			part, err := c.runSample(k, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, 1 of %v", name, k)
			near(t, name+": good", part.Summary.Good/part.Summary.Calls, whole.Summary.Good/whole.Summary.Calls, 0.035)
			near(t, name+": failed", part.Summary.Failed/part.Summary.Calls, whole.Summary.Failed/whole.Summary.Calls, 0.035)
			if k < 1.5 {
				t.Errorf("%s: 1 of %v is no sample", name, k)
			}
		}
	}
}

// A queue of a few places in a sample is noted: it refuses more.
func TestSampleNotesFewPlaces(t *testing.T) {
	s := brownout(2000, 10)
	s.Services[0].Concurrency, s.Services[0].QueueLength = 400, 10
	for k, want := range map[float64]bool{2: false, 20: true} {
		c, err := compile(s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.runSample(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(r.Notes, "\n"), "places of s"); got != want {
			t.Errorf("1 of %v: notes %q", k, r.Notes)
		}
	}
}

// A small fleet beside a large one keeps the load of its instances.
func TestSamplesOfUnequalFleets(t *testing.T) {
	c := Client{Retries: new(3), Base: 100 * ms, Breaker: new(false)}
	s := Scenario{
		Name: "unequal", Duration: seconds(30), Engine: Exact,
		Fleets:   []Fleet{{Rate: 2_000_000, Client: c}, {Rate: 1000, Instances: 16, Calls: "b", Client: c}},
		Services: []Service{{Name: "a"}, {Name: "b"}},
		Faults:   []Fault{{Kind: Outage, Service: "b", At: seconds(5), For: seconds(20)}},
	}
	small := s
	small.Fleets = s.Fleets[1:]
	want := mustRun(t, small).Services[1]
	m, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	part, err := m.runSample(500, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := part.Services[1]
	near(t, "attempts for a call", got.Arrivals/(got.Arrivals-got.Retries), want.Arrivals/(want.Arrivals-want.Retries), 0.1)
}

// A sample has whole servers of measured times, and any part of a limit.
func TestSampleScale(t *testing.T) {
	s := Scenario{
		Duration: seconds(10), Fleets: []Fleet{{Rate: 10_000}, {Rate: 1, Calls: "rare"}},
		Services: []Service{
			{Name: "s", Capacity: 12_000, Quantiles: []Quantile{{0.5, ms}, {0.99, ms * 6 / 5}}},
			{Name: "rare", Limit: Limit{Rate: 0.002}},
		},
	}
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "one of", c.sampleScale(Estimate{Time: 5 * time.Second}, time.Second), 4, 0)
	if _, err := compile(s.sampled(4)); err != nil {
		t.Error(err)
	}
}
