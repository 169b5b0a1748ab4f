package storm

import (
	"math"
	"strings"
	"testing"
)

// stepped is a fleet of one attempt a call, with the load.
func stepped(load ...Step) Scenario {
	return Scenario{
		Name: "steps", Duration: seconds(40), Bin: seconds(10), Engine: Exact,
		Fleets:   []Fleet{{Load: load, Client: Client{Retries: new(0), Breaker: new(false)}}},
		Services: []Service{{Name: "s", Capacity: 2000}},
	}
}

func TestLoadGoesInSteps(t *testing.T) {
	s := stepped(Step{0, 400}, Step{seconds(10), 1600}, Step{seconds(20), 0}, Step{seconds(30), 800}, Step{seconds(50), 1e6})
	want := []float64{400, 1600, 0, 800}
	offered := func() []float64 { return mustRun(t, s).Series.Offered }
	for i, got := range offered() {
		about(t, "by chance", got, want[i], 0.05)
	}
	s.Fleets[0].Regular = true
	for i, got := range offered() {
		about(t, "regular", got, want[i], 0.001)
	}
	s.Bin, s.Faults = seconds(2), []Fault{{Kind: Spike, At: seconds(10), For: seconds(10), Factor: 2}}
	about(t, "a spike multiplies", offered()[7], 3200, 0.001)
	s.Bin, s.Faults = seconds(10), nil
	about(t, "a sweep does", mustRun(t, s.loaded(0.5)).Series.Offered[1], 800, 0.001)
	about(t, "and leaves the load as it is", s.Fleets[0].Load[1].Rate, 1600, 0)
}

// Steps shorter than a gap do not put regular arrivals off.
func TestShortStepsKeepTheSpacing(t *testing.T) {
	var load []Step
	for i := range 400 {
		load = append(load, Step{Duration(i) * 100 * ms, []float64{0.5, 1.5, 0, 2}[i%4]})
	}
	s := stepped(load...)
	s.Fleets[0].Regular = true
	about(t, "calls", mustRun(t, s).Summary.Calls, 40, 0.03)
}

// A study counts the steps that the run reaches: the greatest rate for what is nominal,
// the mean one for the time.
func TestLoadIsCounted(t *testing.T) {
	s := stepped(Step{0, 1000}, Step{seconds(10), 3000}, Step{seconds(20), 0}, Step{seconds(40), 1e9})
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	about(t, "nominal", c.m.Nominal[0], 3000, 0)
	if !c.m.Overloaded() {
		t.Error("3,000 requests a second are too many for 2,000")
	}
	even := stepped()
	even.Fleets[0].Load, even.Fleets[0].Rate = nil, 1000
	one, _ := even.Estimate(Options{})
	e, _ := s.Estimate(Options{})
	about(t, "events", e.Events, one.Events, 1e-9)
	// The same as a sample of one in ten: a tenth of every rate.
	about(t, "sample", s.sampled(10).Fleets[0].Load[1].Rate, 300, 0)
	r, err := c.runSample(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	about(t, "calls of a sample", r.Summary.Calls, 40_000, 0.1)
}

func TestLoadIsChecked(t *testing.T) {
	at := func(rates ...float64) (all []Step) {
		for i, r := range rates {
			all = append(all, Step{seconds(float64(i)), r})
		}
		return all
	}
	for _, tt := range []struct {
		path, text string
		load       []Step
	}{
		{"fleets[0].load", "has no rate above 0", at(0, 0)},
		{"fleets[0].load", "has no rate above 0", []Step{}},
		{"fleets[0].load", "has 10001 steps", make([]Step, MaxSteps+1)},
		{"fleets[0].load[0].at", "the first step is at 0s", at(0, 1)[1:]},
		{"fleets[0].load[2].at", "is not after the step before, at 1s", append(at(1, 1), at(1, 1)[1])},
		{"fleets[0].load[1].rate", "-1 is outside", at(1, -1)},
		{"fleets[0].load[1].rate", "NaN is outside", at(1, math.NaN())},
	} {
		wantFault(t, stepped(tt.load...), tt.path, tt.text)
	}
	s := stepped(at(1)...)
	s.Fleets[0].Rate = 1
	wantFault(t, s, "fleets[0]", "sets 2 of rate, load, users and burst")
}

// What was measured comes out again, where nothing waits.
func TestQuantilesComeBack(t *testing.T) {
	s := stepped(Step{0, 5000})
	s.Services[0] = Service{Name: "s", Quantiles: []Quantile{{0.5, 12 * ms}, {0.9, 30 * ms}, {0.95, 80 * ms}, {0.99, 300 * ms}}}
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, s)
	about(t, "p50", float64(r.Summary.P50), 12, 0.03)
	about(t, "p99", float64(r.Summary.P99), 300, 0.03)
	about(t, "mean", float64(r.Summary.Mean), c.m.Services[0].Measured.Mean()/1e6, 0.03)
	// The timeouts count what is longer than a quantile.
	s.Fleets[0].Client.Timeout = 80 * ms
	about(t, "above p95", failed(mustRun(t, s)), 0.05, 0.05)
	s.Fleets[0].Client.Timeout = 30 * ms
	about(t, "above p90", failed(mustRun(t, s)), 0.1, 0.05)
	// Half the speed takes twice the time.
	s.Bin, s.Fleets[0].Client.Timeout, s.Faults = seconds(1), 0, []Fault{{Kind: Brownout, For: seconds(100)}}
	about(t, "slow p50", float64(mustRun(t, s).Summary.P50), 24, 0.03)
}

// Two quantiles are a lognormal, and their mean makes servers of a capacity.
func TestQuantilesMakeServers(t *testing.T) {
	// exp(sigma²/2) = 1.05 with sigma = 0.3124: the mean is 105 ms, and 200 a second keep 21
	// servers busy.
	const sigma = 0.3124
	p84 := Duration(float64(100*ms) * math.Exp(sigma))
	s := stepped(Step{0, 150})
	s.Services[0] = Service{Name: "s", Capacity: 200, Quantiles: []Quantile{{0.5, 100 * ms}, {0.8413447, p84}}}
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	about(t, "mean", c.m.Services[0].Measured.Mean(), float64(105*ms), 0.001)
	about(t, "servers", float64(c.m.Services[0].Concurrency), 21, 0)
	s.Services[0].Replicas = 3
	if c, err = compile(s); err != nil {
		t.Fatal(err)
	}
	about(t, "servers of a replica", float64(c.m.Services[2].Concurrency), 7, 0)
	s.Services[0].Replicas = 0
	s.Fleets[0].Load[0].Rate = 400
	s.Fleets[0].Client.Timeout = seconds(100)
	about(t, "served at twice the capacity", mustRun(t, s).Services[0].Served, 200*40, 0.03)
}

func TestQuantilesAreChecked(t *testing.T) {
	good := []Quantile{{0.5, 12 * ms}, {0.99, 300 * ms}}
	for _, tt := range []struct {
		path, text string
		service    Service
	}{
		{"services[0].law", "follows from quantiles", Service{Quantiles: good, Law: "fixed"}},
		{"services[0].cv", "follows from quantiles", Service{Quantiles: good, CV: 2}},
		{"services[0].time", "follows from quantiles", Service{Quantiles: good, Time: ms}},
		{"services[0].time", "follows from quantiles", Service{Quantiles: good, Time: ms, Capacity: 10}},
		{"services[0].concurrency", "follows from quantiles", Service{Quantiles: good, Concurrency: 3, Capacity: 10}},
		{"services[0].quantiles", "has 1 entries", Service{Quantiles: good[:1]}},
		{"services[0].quantiles", "has 0 entries", Service{Quantiles: []Quantile{}}},
		{"services[0].quantiles[1].q", "0.5 is not above the one before, 0.5", Service{Quantiles: []Quantile{{0.5, ms}, {0.5, 2 * ms}}}},
		{"services[0].quantiles[1].q", "1 is outside", Service{Quantiles: []Quantile{{0.5, ms}, {1, 2 * ms}}}},
		{"services[0].quantiles[1].time", "1ms is below that of q 0.5, 2ms", Service{Quantiles: []Quantile{{0.5, 2 * ms}, {0.9, ms}}}},
		{"services[0].quantiles[0].time", "0 is outside", Service{Quantiles: []Quantile{{0.5, 0}, {0.9, ms}}}},
	} {
		s := stepped(Step{0, 1})
		tt.service.Name = "s"
		s.Services[0] = tt.service
		wantFault(t, s, tt.path, tt.text)
	}
	s := stepped(Step{0, 1})
	s.Services[0].Quantiles = []Quantile{{0.5, ms}, {0.9, ms}}
	if err := s.Validate(); err != nil {
		t.Errorf("equal times: %v", err)
	}
}

// A whole number of servers may do more or less than the capacity: that is noted, and counts
// for the verdict.
func TestServersOfQuantilesAreWhole(t *testing.T) {
	s := stepped(Step{0, 90})
	s.Services[0] = Service{Name: "s", Capacity: 100, Replicas: 10, Quantiles: []Quantile{{0.5, 140 * ms}, {0.99, 150 * ms}}}
	r := mustRun(t, s)
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "s does 71.4 requests a second, not its capacity of 100") {
		t.Errorf("notes %q", r.Notes)
	}
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if !c.m.Overloaded() {
		t.Error("10 servers of 140 ms do 90 requests a second")
	}
	s.Services[0].Replicas = 0
	if r := mustRun(t, s); len(r.Notes) != 0 {
		t.Errorf("14 servers: %q", r.Notes)
	}
}

// A peak of the load that is over before the fault does not make the trouble after it the
// load's; one that sticks by itself does.
func TestAPeakIsNotOverload(t *testing.T) {
	s := brownout(150, 10)
	s.Fleets[0].Rate = 0
	for want, load := range map[Verdict][]Step{
		Metastable: {{0, 400}, {500 * ms, 150}},
		Overloaded: {{0, 150}, {seconds(25), 700}, {seconds(35), 150}},
	} {
		s.Fleets[0].Load = load
		if got := mustRun(t, s).Summary.Verdict; got != want {
			t.Errorf("%v: %s, want %s", load, got, want)
		}
	}
}
