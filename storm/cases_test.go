package storm

import "testing"

// change returns s with its first service and fleet copied, and f applied.
func change(s Scenario, f func(*Fleet, *Service)) Scenario {
	s.Fleets = append([]Fleet(nil), s.Fleets...)
	s.Services = append([]Service(nil), s.Services...)
	f(&s.Fleets[0], &s.Services[0])
	return s
}

func faulty(s Scenario, f ...Fault) Scenario {
	s.Faults = f
	return s
}

// cases has each fault and each feature of a service or a client at least once. Those
// of the study come first, by its letters.
func cases(rate float64) map[string]Scenario {
	c := brownout(rate, 10)
	down := Fault{Kind: Outage, At: seconds(10), For: seconds(10)}
	ample := change(c, func(_ *Fleet, v *Service) { v.Capacity *= 6 })
	shed := func(s Scenario) Scenario {
		return change(s, func(_ *Fleet, v *Service) { v.Queue = 300 * ms })
	}
	return map[string]Scenario{
		"A outage, full jitter": faulty(ample, down),
		"B outage, no jitter": faulty(change(ample, func(f *Fleet, _ *Service) {
			f.Client.Baseline.Wait = "exponential"
		}), down),
		"C brownout, no budget":   c,
		"D brownout, budget":      withBudget(c),
		"E brownout, 100 budgets": change(withBudget(c), func(f *Fleet, _ *Service) { f.Instances = 100 }),
		"G short brownout":        brownout(rate, 1),
		"H short queue":           shed(c),
		"bucket": change(c, func(f *Fleet, _ *Service) {
			f.Client.Baseline = Baseline{Bucket: Bucket{Deposit: 0.2, Size: 2 * rate}}
		}),
		"window of 30 s":     change(c, func(f *Fleet, _ *Service) { f.Client.Baseline = Baseline{} }),
		"independent errors": faulty(ample, Fault{Kind: Errors, Rate: 0.5, At: seconds(10), For: seconds(20)}),
		"sticky errors":      faulty(ample, Fault{Kind: Errors, Mode: Sticky, Rate: 0.5, At: seconds(10), For: seconds(20)}),
		"load errors":        faulty(ample, Fault{Kind: Errors, Mode: LoadCoupled, Rate: 0.5, At: seconds(10), For: seconds(20)}),
		"partition": faulty(change(c, func(f *Fleet, _ *Service) { f.Instances = 10 }),
			Fault{Kind: Partition, Share: 0.3, At: seconds(10), For: seconds(5)}),
		"spike, shed": faulty(shed(withBudget(c)), Fault{Kind: Spike, Factor: 3, At: seconds(10), For: seconds(5)}),
		"pauses": faulty(c, Fault{Kind: Pause, At: seconds(10), For: seconds(0.5)},
			Fault{Kind: Pause, At: seconds(20), For: seconds(0.7)}),
		"slow start":  faulty(shed(c), Fault{Kind: SlowStart, Factor: 0.2, At: seconds(10), For: seconds(10)}),
		"Retry-After": faulty(change(shed(c), func(_ *Fleet, v *Service) { v.RetryAfter = seconds(1) }), down),
		"deadline propagation": change(c, func(_ *Fleet, v *Service) {
			// At 70 % it is so near to being metastable that chance decides.
			v.DropExpired, v.Capacity = true, rate/0.6
		}),
		"load shedding": change(c, func(_ *Fleet, v *Service) { v.Shed = 400 * ms }),
		"slow queue":    change(withBudget(c), func(_ *Fleet, v *Service) { v.QueueSlowdown = 0.1 }),
		"equal jitter":  faulty(change(ample, func(f *Fleet, _ *Service) { f.Client.Baseline.Wait = "equal" }), down),
		"no backoff":    change(shed(c), func(f *Fleet, _ *Service) { f.Client.Baseline.Wait = "none" }),
		"deadline binds": faulty(change(ample, func(f *Fleet, _ *Service) {
			f.Client.Total = seconds(2)
			f.Client.Retries = new(5)
			f.Client.Base = 400 * ms
		}), down),
		"breaker": change(withBudget(c), func(f *Fleet, _ *Service) {
			f.Instances = 20
			f.Client.Breaker = new(true)
		}),
		"breaker, outage": faulty(change(ample, func(f *Fleet, _ *Service) {
			f.Instances = 20
			f.Client.Breaker = new(true)
		}), down),
		"breaker, errors": faulty(change(withBudget(ample), func(f *Fleet, _ *Service) {
			f.Instances = 20
			f.Client.Breaker = new(true)
		}), Fault{Kind: Errors, Rate: 0.3, At: seconds(10), For: seconds(10)}),
		"rate limit": faulty(change(ample, func(_ *Fleet, v *Service) {
			v.Limit = Limit{Rate: 1.2 * rate, RetryAfter: seconds(1)}
		}), Fault{Kind: Spike, At: seconds(10), For: seconds(5)}),
		"final status":     faulty(ample, Fault{Kind: Errors, Rate: 0.5, Status: 404, At: seconds(10), For: seconds(20)}),
		"slow requests":    faulty(change(ample, func(_ *Fleet, v *Service) { v.Concurrency = 600 }), Fault{Kind: Slow, Rate: 0.1, Time: seconds(3), At: seconds(10), For: seconds(10)}),
		"server's timeout": change(c, func(_ *Fleet, v *Service) { v.Timeout = 200 * ms }),
		"write":            faulty(change(ample, func(f *Fleet, _ *Service) { f.Client.Method = "POST" }), down),
		"closed loop": change(withBudget(c), func(f *Fleet, _ *Service) {
			f.Users, f.Rate = int(2*rate), 0
			f.Think = seconds(2)
		}),
	}
}

// TestCases holds the runs to what a second engine, which moved masses of requests
// without chance, came to for the same scenarios: within 2 % and 2.5 s.
func TestCases(t *testing.T) {
	want := map[string]struct {
		verdict              Verdict
		multiplier, recovery float64
	}{
		"A outage, full jitter":   {Recovered, 1.495, 0.0},
		"B outage, no jitter":     {Recovered, 1.492, 0.0},
		"C brownout, no budget":   {Metastable, 3.257, -1.0},
		"D brownout, budget":      {Recovered, 1.067, 14.3},
		"E brownout, 100 budgets": {Recovered, 1.067, 14.2},
		"G short brownout":        {Recovered, 1.000, 0.0},
		"H short queue":           {Recovered, 1.226, 0.0},
		"Retry-After":             {Recovered, 1.501, 0.0},
		"breaker":                 {Recovered, 0.936, 0.0},
		"breaker, errors":         {Recovered, 1.033, 0.0},
		"breaker, outage":         {Recovered, 0.848, 0.9},
		"bucket":                  {Recovered, 1.129, 22.6},
		"closed loop":             {Recovered, 1.000, 0.0},
		"deadline binds":          {Recovered, 1.771, 0.0},
		"deadline propagation":    {Recovered, 1.136, 0.0},
		"equal jitter":            {Recovered, 1.494, 0.0},
		"independent errors":      {Recovered, 1.291, 0.0},
		"load errors":             {Recovered, 1.691, 0.0},
		"load shedding":           {Recovered, 1.240, 0.0},
		"no backoff":              {Recovered, 1.120, 0.0},
		"partition":               {Recovered, 1.058, 0.0},
		"pauses":                  {Recovered, 1.000, 0.0},
		"slow queue":              {Metastable, 1.167, -1.0},
		"slow start":              {Recovered, 1.172, 0.0},
		"spike, shed":             {Recovered, 1.057, 0.0},
		"sticky errors":           {Recovered, 1.498, 0.0},
		"window of 30 s":          {Recovered, 1.100, 18.9},
		"rate limit":              {Recovered, 1.203, 0.0},
		"final status":            {Recovered, 1, 0.0},
		"slow requests":           {Recovered, 1.017, 0.0},
		"server's timeout":        {Metastable, 3.447, -1.0},
		"write":                   {Recovered, 1, 0.0},
	}
	for name, s := range cases(1000) {
		w, got := want[name], mustRun(t, s).Summary
		if got.Verdict != w.verdict {
			t.Errorf("%s: %s, want %s", name, got.Verdict, w.verdict)
		}
		near(t, name+": multiplier", got.Multiplier, w.multiplier, 0.02*w.multiplier)
		near(t, name+": recovery", got.Recovery, w.recovery, 2.5)
	}
}
