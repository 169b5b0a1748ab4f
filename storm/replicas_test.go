package storm

import (
	"math"
	"strings"
	"testing"
)

// twoReplicas is a service of two replicas that one call in a millisecond reaches, whose
// callers do not retry.
func twoReplicas(f Fault) Scenario {
	f.For, f.Replicas = seconds(100), 1
	return Scenario{
		Name: "two", Duration: seconds(30), Engine: Exact,
		Fleets:   []Fleet{{Rate: 1000, Client: Client{Retries: new(0), Timeout: 1000 * ms, Breaker: new(false)}}},
		Services: []Service{{Name: "s", Replicas: 2}},
		Faults:   []Fault{f},
	}
}

func failed(r *Result) float64 { return r.Summary.Failed / (r.Summary.Good + r.Summary.Failed) }

// One of two replicas is dead: half of the attempts meet it, whatever happened to the
// attempt before.
func TestABadReplicaFailsItsPart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Scenario)
		want  float64
	}{
		{"503 at once", func(*Scenario) {}, 0.5},
		{"errors after the work", func(s *Scenario) { s.Faults[0].Kind, s.Services[0].Time = Errors, 10*ms }, 0.5},
		{"half of its requests", func(s *Scenario) { s.Faults[0].Rate = 0.5 }, 0.25},
		{"no capacity", func(s *Scenario) { s.Faults[0].Kind, s.Services[0].Capacity = Pause, 4000 }, 0.5},
		{"cut off", func(s *Scenario) { s.Faults[0].Kind = Partition }, 0.5},
		{"what exceeds a half of its nominal load, at twice the load", func(s *Scenario) {
			s.Faults[0] = Fault{Kind: Errors, Mode: LoadCoupled, Rate: 0.5, For: seconds(100), Replicas: 1}
			s.Faults = append(s.Faults, Fault{Kind: Spike, For: seconds(100)})
		}, 0.75 / 2},
		{"both", func(s *Scenario) { s.Faults[0].Replicas = 0 }, 1},
		{"one of four", func(s *Scenario) { s.Services[0].Replicas = 4 }, 0.25},
		{"and a retry", func(s *Scenario) {
			s.Fleets[0].Client.Retries, s.Fleets[0].Client.Baseline = new(1), Baseline{NoBudget: true, Wait: "none"}
		}, 0.25},
	} {
		s := twoReplicas(Fault{Kind: Outage})
		tt.spoil(&s)
		r := mustRun(t, s)
		about(t, tt.name, failed(r), tt.want, 0.03)
		if len(r.Services) != 1 {
			t.Errorf("%s: %d results of one service", tt.name, len(r.Services))
		}
		if s.Faults[0].Kind != Partition {
			about(t, tt.name+": attempts that arrive", r.Services[0].Arrivals, r.Summary.Attempts, 0.001)
		}
	}
}

// A fault that lasts, on one replica of four, is not trouble where as much fails as it
// fails.
func TestALastingBadReplicaIsSteady(t *testing.T) {
	s := twoReplicas(Fault{Kind: Outage})
	s.Services[0].Replicas = 4
	if v := mustRun(t, s).Summary.Verdict; v != Steady {
		t.Errorf("verdict %s, want %s", v, Steady)
	}
}

// Two replicas are two queues: M/M/1 with half the load and half the capacity waits twice
// as long. The load of each is a half as well.
func TestReplicasQueueEachForItself(t *testing.T) {
	s := Scenario{
		Name: "queues", Duration: seconds(2000), Engine: Exact,
		Fleets:   []Fleet{{Rate: 50, Client: Client{Retries: new(0), Timeout: seconds(100), Breaker: new(false)}}},
		Services: []Service{{Name: "s", Capacity: 100}, {Name: "below", Capacity: 75, Replicas: 3}},
	}
	about(t, "one queue", float64(mustRun(t, s).Summary.Mean), 20, 0.05)
	s.Services[0].Replicas = 2
	about(t, "two queues", float64(mustRun(t, s).Summary.Mean), 40, 0.05)

	s.Services[0].Calls = []Edge{{To: "below"}}
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if n := c.m.Nominal; len(n) != 5 || n[0] != 25 || n[1] != 25 || n[4] < 16.6 || n[4] > 16.7 || c.m.Overloaded() {
		t.Errorf("nominal load %v (overloaded: %v), want 25 twice and 16.7 three times", n, c.m.Overloaded())
	}
	r := mustRun(t, s)
	about(t, "the layer below both", r.Services[1].Arrivals, r.Services[0].Served, 0.001)
	if load := r.Services[1].Load; len(load) != len(r.Series.Good) {
		t.Errorf("%d bins of load, want %d", len(load), len(r.Series.Good))
	}
}

// A sample keeps the service times: no replica is left with less than a server.
func TestASampleKeepsTheReplicas(t *testing.T) {
	s := Scenario{
		Name: "sample", Duration: seconds(30),
		Fleets:   []Fleet{{Rate: 4000, Client: Client{Retries: new(0), Breaker: new(false)}}},
		Services: []Service{{Name: "s", Capacity: 8000, Time: 20 * ms, Law: "fixed", Replicas: 10}},
	}
	for _, name := range []string{"time", "quantiles"} {
		c, err := compile(s)
		if err != nil {
			t.Fatal(err)
		}
		e := c.estimate(Options{Within: 1})
		about(t, name+": a server of each replica is left", e.Scale, 16, 0)
		if c, err = compile(s.sampled(e.Scale)); err != nil {
			t.Fatal(err)
		}
		v := &c.m.Services[9]
		about(t, name+": service time", float64(v.Concurrency)/v.Capacity, 0.02, 0.001)
		s.Services[0].Time, s.Services[0].Law = 0, ""
		s.Services[0].Quantiles = []Quantile{{0.5, 20 * ms}, {0.9, 20 * ms}}
	}
}

// The bound of a queue is a part for each replica, and not less than one place.
func TestReplicasShareTheBound(t *testing.T) {
	s := Scenario{
		Name: "bound", Duration: seconds(10), Engine: Exact,
		Fleets:   []Fleet{{Burst: 10_000, Client: Client{Retries: new(0), Timeout: seconds(100), Breaker: new(false)}}},
		Services: []Service{{Name: "s", Capacity: 1000, Concurrency: 8, QueueLength: 40, Replicas: 4}},
	}
	about(t, "8 in service and 40 in line", mustRun(t, s).Summary.Good, 48, 0)
	s.Services[0].Concurrency, s.Services[0].QueueLength = 1, 1
	about(t, "one of each in each", mustRun(t, s).Summary.Good, 8, 0)
}

// The limit of a service is that of all its replicas, and the status of a bad one final
// for the calls that meet it.
func TestReplicasShareTheLimit(t *testing.T) {
	s := twoReplicas(Fault{Kind: Outage})
	s.Faults, s.Services[0].Limit = nil, Limit{Rate: 200, Burst: 20}
	about(t, "accepted", mustRun(t, s).Summary.Good, 200*30+20, 0.01)

	s = twoReplicas(Fault{Kind: Errors, Status: 404})
	s.Fleets[0].Client.Retries, s.Fleets[0].Client.Baseline = new(3), Baseline{NoBudget: true}
	r := mustRun(t, s)
	about(t, "sends", r.Summary.Attempts, r.Summary.Calls, 0)
	about(t, "failed", failed(r), 0.5, 0.03)
}

func TestReplicasAreChecked(t *testing.T) {
	for _, tt := range []struct {
		path, text string
		spoil      func(*Scenario)
	}{
		{"services[0].replicas", "101 is outside", func(s *Scenario) { s.Services[0].Replicas = 101 }},
		{"services[2].replicas", "makes 300 services", func(s *Scenario) {
			s.Services = append(s.Services, Service{Name: "b", Replicas: 100}, Service{Name: "c", Replicas: 100})
			s.Services[0].Replicas = 100
		}},
		{"faults[0].replicas", "3 is outside 1 to 2", func(s *Scenario) { s.Faults[0].Replicas = 3 }},
		{"faults[0].replicas", "has one replica: set replicas there", func(s *Scenario) { s.Services[0].Replicas = 0 }},
		{"faults[0].replicas", "does not belong to spike", func(s *Scenario) { s.Faults[0].Kind = Spike }},
	} {
		s := twoReplicas(Fault{Kind: Outage})
		tt.spoil(&s)
		wantFault(t, s, tt.path, tt.text)
	}
}

// wantFault complains unless the validation of s finds a fault of that path and text.
func wantFault(t *testing.T, s Scenario, path, text string) {
	t.Helper()
	found := FieldErrors(s.Validate())
	for _, f := range found {
		if f.Path == path && strings.Contains(f.Detail, text) {
			return
		}
	}
	t.Errorf("got %v, want %s: %s", found, path, text)
}

// about is near with a part of what is wanted.
func about(t *testing.T, name string, got, want, part float64) {
	t.Helper()
	near(t, name, got, want, part*want)
}

// A bound of the queue in seconds is divided in requests, of which a replica keeps one.
func TestReplicasKeepAPlaceInTheQueue(t *testing.T) {
	for queue, want := range map[Duration]float64{50 * ms: 1, 1000 * ms: 10, ms: 0} {
		s := twoReplicas(Fault{Kind: Outage})
		s.Services[0] = Service{Name: "s", Replicas: 10, Capacity: 100, Queue: queue}
		c, err := compile(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := math.Floor(c.m.Services[9].Bound); got != want {
			t.Errorf("%v: %v places, want %v", queue, got, want)
		}
	}
}
