package storm

import (
	"fmt"
	"time"
)

// Named returns the scenarios that come with the simulator: the worked cases of
// the standard, the budget article and the lesson, and those of the literature.
func Named() []Scenario {
	const sec = Duration(time.Second)
	const milli = Duration(time.Millisecond)
	naive := Client{Retries: new(3), Timeout: sec, Base: 100 * milli, Cap: 2 * sec, Baseline: Baseline{NoBudget: true}}
	half := func(mode ErrorMode, b Baseline) Scenario {
		return Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "clients", Rate: 1000, Client: Client{Retries: new(3), Base: 100 * milli, Cap: sec, Baseline: b}}},
			Services: []Service{{Name: "service"}},
			Faults:   []Fault{{Kind: Errors, Mode: mode, Rate: 0.5, At: 5 * sec, For: 40 * sec}},
		}
	}
	describe := func(s Scenario, name, text string) Scenario {
		s.Name, s.Description = name, text
		return s
	}
	checkout := func(mode ErrorMode) Scenario {
		return Scenario{
			Duration: 60 * sec,
			Fleets: []Fleet{{Name: "checkout", Rate: 1000, Client: Client{
				Retries: new(2), Timeout: sec, Base: 100 * milli, Cap: sec, Baseline: Baseline{Wait: "none", NoBudget: true},
			}}},
			Services: []Service{{Name: "inventory"}},
			Faults:   []Fault{{Kind: Errors, Mode: mode, Rate: 0.1, At: 5 * sec, For: 50 * sec}},
		}
	}
	all := []Scenario{
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "clients", Rate: 10_000, Instances: 100, Client: naive}},
			Services: []Service{{Name: "service", Capacity: 14_286}},
			Faults:   []Fault{{Kind: Brownout, At: 10 * sec, For: 10 * sec}},
		}, "metastable", "70 % load, half the capacity gone for 10 s, no budget: the service never comes back"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets: []Fleet{{Name: "clients", Rate: 10_000, Instances: 100, Client: Client{
				Retries: new(3), Timeout: sec, Base: 100 * milli, Cap: 2 * sec,
			}}},
			Services: []Service{{Name: "service", Capacity: 14_286}},
			Faults:   []Fault{{Kind: Brownout, At: 10 * sec, For: 10 * sec}},
		}, "budgeted", "the same with the standard's budget of 20 %: the backlog drains"),
		describe(half(Independent, Baseline{NoBudget: true}), "standard-independent", "spec/1: 1,000 req/s, half of the attempts fail, 3 retries: 1,875 req/s"),
		describe(half(Sticky, Baseline{NoBudget: true}), "standard-sticky", "spec/1: the same half fails on every attempt: 2,500 req/s, as the standard says"),
		describe(half(LoadCoupled, Baseline{NoBudget: true}), "standard-load", "spec/1: the service can do only half of the load: retries make it worse, about 3,140 req/s"),
		describe(half(Sticky, Baseline{}), "standard-budget", "spec/1: with the 20 % budget it stays at 1,200 req/s"),
		describe(checkout(Sticky), "checkout-sticky", "spec/2: 10 % of 1,000 req/s fail, two retries: 1,200 req/s when the same calls fail again"),
		describe(checkout(Independent), "checkout-independent", "spec/2: 1,110 req/s when each attempt fails by itself"),
		layers("five-layers", "spec/2: five layers that try three times each make 243 of one request at the deepest", true),
		layers("one-layer", "spec/2: the same stack when only the layer above the failure retries: 3", false),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets: []Fleet{{Name: "payments", Rate: 500, Client: Client{
				Retries: new(3), Timeout: sec, Base: 200 * milli, Cap: 2 * sec, Baseline: Baseline{NoBudget: true},
			}}},
			Services: []Service{{Name: "processor", Capacity: 5000, Concurrency: 50}},
			Faults:   []Fault{{Kind: Outage, At: 10 * sec, For: 10 * sec}},
		}, "processor-outage", "spec/4: 500 req/s, 503 for 10 s, 3 retries: 2,000 req/s"),
		herd("herd-spikes", "spec/4: 1,000 clients fail at once and retry without jitter: spikes at 500 ms and 1,500 ms", "exponential"),
		herd("herd-drizzle", "spec/4: the same with full jitter: two requests a millisecond", ""),
		describe(Scenario{
			Duration: 120 * sec,
			Fleets: []Fleet{{Name: "payment", Rate: 2000, Instances: 200, Client: Client{
				Retries: new(3), Timeout: 2 * sec, Base: 500 * milli, Cap: 20 * sec, Breaker: true,
				Budget: Budget{Ratio: 0.1, Of: "total"},
			}}},
			Services: []Service{{Name: "processor", Capacity: 2800, Concurrency: 100, RetryAfter: 2 * sec, Queue: 5 * sec}},
			Faults:   []Fault{{Kind: Outage, At: 20 * sec, For: 20 * sec, Rate: 0.8}},
		}, "payment-fleet-200", "spec/4's exercise: 200 instances of a payment service, base 500 ms, cap 20 s, at most 10 % of outgoing calls are retries, breaker"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "callers", Rate: 200, Instances: 4, Client: Client{Breaker: true}}},
			Services: []Service{{Name: "dependency", Time: 20 * milli}},
			Faults:   []Fault{{Kind: Errors, Rate: 0.3, For: 3600 * sec}}, // whatever the duration
		}, "partial", "30 % of the attempts fail at random, from the first one on: the default policy leaves it at that"),
		describe(Scenario{
			Duration: 80 * sec,
			Fleets: []Fleet{{Name: "clients", Rate: 40, Client: Client{
				Kind: "event", Retries: new(2), Timeout: 3 * sec, Base: 20 * sec, Cap: 40 * sec, RTT: 200 * milli, RTTLaw: "exponential",
				Baseline: Baseline{Wait: "none", NoBudget: true},
			}}},
			Services: []Service{{Name: "service", Time: sec, Law: "fixed", PerConcurrent: 10 * milli}},
			Faults:   []Fault{{Kind: Spike, At: 20 * sec, For: 5 * sec}},
		}, "contention-collapse", "Brooker's simple collapse: service time grows with concurrency, a spike of 5 s sticks"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "clients", Rate: 5000, Instances: 50, Client: naive}},
			Services: []Service{{Name: "service", Capacity: 7000, QueueSlowdown: 0.3}},
			Faults:   []Fault{{Kind: Pause, At: 10 * sec, For: 1500 * milli}},
		}, "gc-pause", "a pause of 1.5 s, and a queue that slows the service down (heap, garbage collection)"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "clients", Rate: 10_000, Instances: 100, Client: naive}},
			Services: []Service{{Name: "service", Capacity: 14_286, Queue: 500 * milli}},
			Faults:   []Fault{{Kind: Brownout, At: 10 * sec, For: 10 * sec}},
		}, "knife-edge", "the queue's bound is just the clients' timeout: the cohort engine says that it cannot be trusted"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "users", Users: 20_000, Think: 2 * sec, Instances: 100, Client: naive}},
			Services: []Service{{Name: "service", Capacity: 14_000}},
			Faults:   []Fault{{Kind: Brownout, At: 10 * sec, For: 10 * sec}},
		}, "closed-loop", "users that wait for an answer before they ask again"),
		describe(Scenario{
			Duration: 60 * sec,
			Fleets:   []Fleet{{Name: "clients", Rate: 100_000_000, Instances: 20_000, Client: naive}},
			Services: []Service{{Name: "service", Capacity: 142_857_143}},
			Faults:   []Fault{{Kind: Brownout, At: 10 * sec, For: 10 * sec}},
		}, "hundred-million", "the metastable case at 100 million requests a second"),
	}
	return all
}

func layers(name, text string, oblivious bool) Scenario {
	k := Client{
		Retries: new(2), Timeout: Duration(5 * time.Second), Base: Duration(10 * time.Millisecond), Cap: Duration(20 * time.Millisecond),
		Baseline: Baseline{NoBudget: true, Oblivious: oblivious},
	}
	s := Scenario{
		Name: name, Description: text, Duration: Duration(20 * time.Second),
		Fleets: []Fleet{{Name: "clients", Rate: 20, Client: k}},
		Faults: []Fault{{Kind: Outage, Service: "layer5", At: Duration(2 * time.Second), For: Duration(30 * time.Second)}},
	}
	for i := 1; i <= 5; i++ {
		v := Service{Name: fmt.Sprintf("layer%d", i)}
		if i < 5 {
			v.Calls = []Edge{{To: fmt.Sprintf("layer%d", i+1), Client: k}}
		}
		s.Services = append(s.Services, v)
	}
	return s
}

func herd(name, text, wait string) Scenario {
	return Scenario{
		Name: name, Description: text, Duration: Duration(2500 * time.Millisecond), Bin: Duration(time.Millisecond),
		Fleets: []Fleet{{Name: "clients", Burst: 1000, Instances: 1000, Client: Client{
			Retries: new(2), Base: Duration(500 * time.Millisecond), Cap: Duration(30 * time.Second),
			Baseline: Baseline{Wait: wait, NoBudget: true},
		}}},
		Services: []Service{{Name: "service"}},
		Faults:   []Fault{{Kind: Outage, For: Duration(3 * time.Second)}},
	}
}

// FindNamed returns the named scenario.
func FindNamed(name string) (Scenario, bool) {
	for _, s := range Named() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
