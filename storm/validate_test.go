package storm

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

// chain returns services that call each other in a line.
func chain(n int) Scenario {
	s := Scenario{Fleets: []Fleet{{Rate: 1}}}
	for i := range n {
		v := Service{Name: fmt.Sprint("s", i)}
		if i+1 < n {
			v.Calls = []Edge{{To: fmt.Sprint("s", i+1)}}
		}
		s.Services = append(s.Services, v)
	}
	return s
}

func TestDepth(t *testing.T) {
	if err := chain(MaxDepth).Validate(); err != nil {
		t.Errorf("%d layers: %v", MaxDepth, err)
	}
	if err := chain(MaxDepth + 1).Validate(); err == nil {
		t.Errorf("%d layers were accepted", MaxDepth+1)
	}
	// Ten deep, with a fan-out of two in each: 512 at the deepest.
	s := chain(MaxDepth)
	s.Duration, s.Engine = seconds(10), Exact
	for i := range s.Services {
		for j := range s.Services[i].Calls {
			s.Services[i].Calls[j].FanOut = 2
		}
	}
	near(t, "deepest", deepest(mustRun(t, s)), 512, 0)
}

func TestValidate(t *testing.T) {
	ok := brownout(100, 1)
	for _, tt := range []struct {
		path  string
		spoil func(*Scenario)
	}{
		{"engine", func(s *Scenario) { s.Engine = "steam" }},
		{"duration", func(s *Scenario) { s.Duration = -1 }},
		{"duration", func(s *Scenario) { s.Duration = Duration(48 * time.Hour) }},
		{"bin", func(s *Scenario) { s.Bin = 1 }},
		{"faults[0].service", func(s *Scenario) { s.Services = append(s.Services, Service{Name: "b"}); s.Faults[0].Service = "b" }},
		{"faults[0].method", func(s *Scenario) { s.Faults[0] = Fault{Kind: Errors, For: ms, Method: "POST"} }},
		{"fleets[0].client.policy", func(s *Scenario) { s.Fleets[0].Client.PolicyRef = "policy.yaml" }},
		{"bin", func(s *Scenario) { s.Bin = s.Duration / 10 }},
		{"fleets", func(s *Scenario) { s.Fleets = nil }},
		{"services", func(s *Scenario) { s.Services = nil }},
		{"fleets[0]", func(s *Scenario) { s.Fleets[0].Users = 3 }},
		{"fleets[0].rate", func(s *Scenario) { s.Fleets[0].Rate = -3 }},
		{"fleets[0].rate", func(s *Scenario) { s.Fleets[0].Rate = 1e12 }},
		{"fleets[0].client.rtt_law", func(s *Scenario) { s.Fleets[0].Client.RTTLaw = "exponential" }},
		{"fleets[0].client.throttle.window", func(s *Scenario) { s.Fleets[0].Client.Throttle.Window = seconds(1) }},
		{"fleets[0].client.baseline.bucket.deposit", func(s *Scenario) { s.Fleets[0].Client.Baseline.Bucket.Deposit = 0.1 }},
		{"fleets[0].client.baseline.bucket", func(s *Scenario) { s.Fleets[0].Client.Baseline.Bucket.Size = 3 }},
		{"fleets[0].instances", func(s *Scenario) { s.Fleets[0].Instances = 1 << 30 }},
		{"fleets[0].client", func(s *Scenario) { s.Fleets[0].Client.Budget.Ratio = math.NaN() }},
		{"fleets[0].client", func(s *Scenario) {
			s.Fleets[0].Client.Budget.Ratio, s.Fleets[0].Client.Baseline.Unchecked = math.Inf(1), true
		}},
		{"fleets[0].client.baseline.bucket.size", func(s *Scenario) { s.Fleets[0].Client.Baseline.Bucket.Size = math.NaN() }},
		{"fleets[0].client.baseline.bucket.deposit", func(s *Scenario) { s.Fleets[0].Client.Baseline.Bucket.Deposit = math.Inf(1) }},
		{"fleets[0].calls", func(s *Scenario) { s.Fleets[0].Calls = "x" }},
		{"fleets[0].client.retries", func(s *Scenario) { s.Fleets[0].Client.Retries = new(-1) }},
		{"fleets[0].client", func(s *Scenario) { s.Fleets[0].Client.Retries = new(9) }},
		{"fleets[0].client.kind", func(s *Scenario) { s.Fleets[0].Client.Kind = "carrier pigeon" }},
		{"fleets[0].client.jitter", func(s *Scenario) { s.Fleets[0].Client.Jitter = "equal" }},
		{"fleets[0].client.budget.of", func(s *Scenario) { s.Fleets[0].Client.Budget.Of = "all" }},
		{"fleets[0].client.baseline.wait", func(s *Scenario) { s.Fleets[0].Client.Baseline.Wait = "long" }},
		{"fleets[0].client.rtt_law", func(s *Scenario) { s.Fleets[0].Client.RTTLaw = "odd" }},
		{"services[0].name", func(s *Scenario) { s.Services[0].Name = "" }},
		{"services[0].law", func(s *Scenario) { s.Services[0].Law = "odd" }},
		{"services[0].time", func(s *Scenario) { s.Services[0].Time = ms }},
		{"services[0].capacity", func(s *Scenario) { s.Services[0].Capacity, s.Services[0].Queue = 0, ms }},
		{"services[0].calls[0].to", func(s *Scenario) { s.Services[0].Calls = []Edge{{To: "x"}} }},
		{"services[0].calls[0].to", func(s *Scenario) { s.Services[0].Calls = []Edge{{To: "s"}} }},
		{"services[0].calls[0].fan_out", func(s *Scenario) { s.Services[0].Calls = []Edge{{To: "s", FanOut: 1000}} }},
		{"faults[0].kind", func(s *Scenario) { s.Faults[0].Kind = "quake" }},
		{"faults[0].for", func(s *Scenario) { s.Faults[0].For = 0 }},
		{"faults[0].for", func(s *Scenario) { s.Faults[0].For = math.MaxInt64 }}, // its end would be before its beginning
		{"faults[0].at", func(s *Scenario) { s.Faults[0].At = seconds(1e4) }},
		{"faults[0].rate", func(s *Scenario) { s.Faults[0].Rate = 2 }},
		{"faults[0].factor", func(s *Scenario) { s.Faults[0].Factor = 7 }},
		{"faults[0].mode", func(s *Scenario) { s.Faults[0].Mode = "odd" }},
		{"faults[0].service", func(s *Scenario) { s.Faults[0].Service = "x" }},
	} {
		s := ok.WithDefaults() // a copy
		tt.spoil(&s)
		found := FieldErrors(s.Validate())
		hit := false
		for _, f := range found {
			hit = hit || f.Path == tt.path
		}
		if !hit {
			t.Errorf("%s: got %v", tt.path, found)
		}
	}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

// The standard's own words come through.
func TestPoliciesOutsideTheStandardAreRefused(t *testing.T) {
	s := brownout(100, 1)
	s.Fleets[0].Client.Retries = new(9)
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "R-2") {
		t.Errorf("nine retries: %v", err)
	}
	s.Fleets[0].Client.Baseline.Unchecked = true
	if err := s.Validate(); err != nil {
		t.Errorf("nine retries as a baseline: %v", err)
	}
}

// An event costs no allocation: a run's are those of its start and of its
// peak.
func TestExactAllocatesNothingPerEvent(t *testing.T) {
	bounds := brownout(5000, 10)
	bounds.Fleets[0].Instances, bounds.Fleets[0].Rate = 10, 0
	bounds.Fleets[0].Client.Connections, bounds.Fleets[0].Client.MaxConcurrent = 50, 400
	for i := range Duration(100) {
		bounds.Fleets[0].Load = append(bounds.Fleets[0].Load, Step{i * 100 * ms, 4000 + 20*float64(i)})
	}
	bounds.Services[0].Replicas, bounds.Services[0].Quantiles = 3, []Quantile{{0.5, 10 * ms}, {0.9, 30 * ms}}
	all := []Scenario{brownout(5000, 1), brownout(5000, 10), withBudget(brownout(5000, 10)), bounds}
	for i := range all {
		s := change(all[i], func(f *Fleet, v *Service) {
			v.Limit, v.Timeout = Limit{Rate: 7000, RetryAfter: seconds(1)}, 500*ms
			f.Client.Method, f.Client.Key = "POST", true
		})
		s.Faults = append([]Fault{
			{Kind: Slow, Rate: 0.1, Time: 20 * ms, At: seconds(5), For: seconds(30)},
			{Kind: Errors, Rate: 0.1, Status: 429, Method: "POST", At: seconds(15), For: seconds(20)},
		}, s.Faults...)
		all = append(all, s)
	}
	for _, s := range all {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := mustRun(t, s)
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / float64(r.Events); n > 0.01 {
			t.Errorf("%d events: %.4f allocations each", r.Events, n)
		}
	}
}

// Scaling the load does not turn a number that is refused into one that is not.
func TestSweepsRefuseWhatIsRefused(t *testing.T) {
	s := brownout(10, 1)
	s.Fleets[0].Rate, s.Fleets[0].Users = 0, -5
	if w, err := RunSweep(t.Context(), s, SweepBounds{}, Options{}, nil); err == nil || !strings.Contains(err.Error(), "users") {
		t.Errorf("%v, %v: want a complaint about users", w, err)
	}
}
