package storm

import (
	"fmt"
	"time"
)

const (
	second = Duration(time.Second)
	milli  = Duration(time.Millisecond)
)

// Named returns the scenarios that come with the simulator: the worked cases of
// the standard, the budget article and the lesson, and those of the literature.
// Each is a fresh copy, to be changed at will.
func Named() []Scenario {
	// careful waits as the standard says; naive is the same without a budget.
	careful := Client{Retries: new(3), Timeout: second, Base: 100 * milli, Cap: 2 * second}
	naive := careful
	naive.Baseline.NoBudget = true
	brownout := Fault{Kind: Brownout, At: 10 * second, For: 10 * second}
	large := Service{Name: "service", Capacity: 14_286} // at 70 % with 10,000 req/s
	fleet := func(rate float64, instances int, c Client) Fleet {
		return Fleet{Name: "clients", Rate: rate, Instances: instances, Client: c}
	}
	noBudget := Baseline{NoBudget: true}
	return []Scenario{
		simple("metastable", "70 % load, half the capacity gone for 10 s, no budget: the service never comes back",
			60*second, fleet(10_000, 100, naive), large, brownout),
		simple("budgeted", "the same with the standard's budget of 20 %: the backlog drains",
			60*second, fleet(10_000, 100, careful), large, brownout),
		half("standard-independent", "spec/1: 1,000 req/s, half of the attempts fail, 3 retries: 1,875 req/s", Independent, noBudget),
		half("standard-sticky", "spec/1: the same half fails on every attempt: 2,500 req/s, as the standard says", Sticky, noBudget),
		half("standard-load", "spec/1: the service can do only half of the load: retries make it worse, about 3,140 req/s", LoadCoupled, noBudget),
		half("standard-budget", "spec/1: with the 20 % budget it stays at 1,200 req/s", Sticky, Baseline{}),
		checkout("checkout-sticky", "spec/2: 10 % of 1,000 req/s fail, two retries: 1,200 req/s when the same calls fail again", Sticky),
		checkout("checkout-independent", "spec/2: 1,110 req/s when each attempt fails by itself", Independent),
		layers("five-layers", "spec/2: five layers that try three times each make 243 of one request at the deepest", true),
		layers("one-layer", "spec/2: the same stack when only the layer above the failure retries: 3", false),
		simple("processor-outage", "spec/4: 500 req/s, 503 for 10 s, 3 retries: 2,000 req/s", 60*second,
			Fleet{Name: "payments", Rate: 500, Client: Client{
				Retries: new(3), Timeout: second, Base: 200 * milli, Cap: 2 * second, Baseline: noBudget,
			}},
			Service{Name: "processor", Capacity: 5000, Concurrency: 50},
			Fault{Kind: Outage, At: 10 * second, For: 10 * second}),
		herd("herd-spikes", "spec/4: 1,000 clients fail at once and retry without jitter: spikes at 500 ms and 1,500 ms", "exponential"),
		herd("herd-drizzle", "spec/4: the same with full jitter: two requests a millisecond", ""),
		simple("payment-fleet-200", "spec/4's exercise: 200 instances of a payment service, base 500 ms, cap 20 s, at most 10 % of outgoing calls are retries, breaker", 120*second,
			Fleet{Name: "payment", Rate: 2000, Instances: 200, Client: Client{
				Retries: new(3), Timeout: 2 * second, Base: 500 * milli, Cap: 20 * second, Breaker: true,
				Budget: Budget{Ratio: 0.1, Of: "total"},
			}},
			Service{Name: "processor", Capacity: 2800, Concurrency: 100, RetryAfter: 2 * second, Queue: 5 * second},
			Fault{Kind: Outage, At: 20 * second, For: 20 * second, Rate: 0.8}),
		simple("partial", "30 % of the attempts fail at random, from the first one on: the default policy leaves it at that", 60*second,
			Fleet{Name: "callers", Rate: 200, Instances: 4, Client: Client{Breaker: true}},
			Service{Name: "dependency", Time: 20 * milli},
			Fault{Kind: Errors, Rate: 0.3, For: 3600 * second}), // whatever the duration
		simple("contention-collapse", "Brooker's simple collapse: service time grows with concurrency, a spike of 5 s sticks", 80*second,
			fleet(40, 0, Client{
				Kind: "event", Retries: new(2), Timeout: 3 * second, Base: 20 * second, Cap: 40 * second, RTT: 200 * milli, RTTLaw: "exponential",
				Baseline: Baseline{Wait: "none", NoBudget: true},
			}),
			Service{Name: "service", Time: second, Law: "fixed", PerConcurrent: 10 * milli},
			Fault{Kind: Spike, At: 20 * second, For: 5 * second}),
		simple("gc-pause", "a pause of 1.5 s, and a queue that slows the service down (heap, garbage collection)",
			60*second, fleet(5000, 50, naive), Service{Name: "service", Capacity: 7000, QueueSlowdown: 0.3},
			Fault{Kind: Pause, At: 10 * second, For: 1500 * milli}),
		simple("knife-edge", "the queue's bound is just the clients' timeout: about half of what is served is in time",
			60*second, fleet(10_000, 100, naive), Service{Name: "service", Capacity: 14_286, Queue: 500 * milli}, brownout),
		simple("closed-loop", "users that wait for a response before they send again", 60*second,
			Fleet{Name: "users", Users: 20_000, Think: 2 * second, Instances: 100, Client: naive},
			Service{Name: "service", Capacity: 14_000}, brownout),
		simple("hundred-million", "the metastable case at 100 million requests a second",
			60*second, fleet(100_000_000, 20_000, naive), Service{Name: "service", Capacity: 142_857_143}, brownout),
	}
}

// simple returns a scenario of one fleet, one service and one fault.
func simple(name, text string, length Duration, f Fleet, v Service, w Fault) Scenario {
	return Scenario{
		Name: name, Description: text, Duration: length,
		Fleets: []Fleet{f}, Services: []Service{v}, Faults: []Fault{w},
	}
}

// half is spec/1's case: half of 1,000 requests a second fail. The sentence gives
// another number for each way in which they are chosen.
func half(name, text string, mode ErrorMode, b Baseline) Scenario {
	return simple(name, text, 60*second,
		Fleet{Name: "clients", Rate: 1000, Client: Client{Retries: new(3), Base: 100 * milli, Cap: second, Baseline: b}},
		Service{Name: "service"},
		Fault{Kind: Errors, Mode: mode, Rate: 0.5, At: 5 * second, For: 40 * second})
}

// checkout is spec/2's case: a tenth of the calls to the inventory fail, and are
// retried at once.
func checkout(name, text string, mode ErrorMode) Scenario {
	return simple(name, text, 60*second,
		Fleet{Name: "checkout", Rate: 1000, Client: Client{
			Retries: new(2), Timeout: second, Base: 100 * milli, Cap: second, Baseline: Baseline{Wait: "none", NoBudget: true},
		}},
		Service{Name: "inventory"},
		Fault{Kind: Errors, Mode: mode, Rate: 0.1, At: 5 * second, For: 50 * second})
}

// layers is spec/2's stack: five services that call each other, the deepest of
// them down. Oblivious layers multiply their attempts; others leave the retrying
// to the one above the failure.
func layers(name, text string, oblivious bool) Scenario {
	k := Client{
		Retries: new(2), Timeout: 5 * second, Base: 10 * milli, Cap: 20 * milli,
		Baseline: Baseline{NoBudget: true, Oblivious: oblivious},
	}
	s := simple(name, text, 20*second, Fleet{Name: "clients", Rate: 20, Client: k}, Service{},
		Fault{Kind: Outage, Service: "layer5", At: 2 * second, For: 30 * second})
	s.Services = nil
	for i := 1; i <= 5; i++ {
		v := Service{Name: fmt.Sprintf("layer%d", i)}
		if i < 5 {
			v.Calls = []Edge{{To: fmt.Sprintf("layer%d", i+1), Client: k}}
		}
		s.Services = append(s.Services, v)
	}
	return s
}

// herd is spec/4's thousand clients that fail at one instant, in bins of a
// millisecond: what jitter makes of their retries.
func herd(name, text, wait string) Scenario {
	s := simple(name, text, 2500*milli,
		Fleet{Name: "clients", Burst: 1000, Instances: 1000, Client: Client{
			Retries: new(2), Base: 500 * milli, Cap: 30 * second, Baseline: Baseline{Wait: wait, NoBudget: true},
		}},
		Service{Name: "service"}, Fault{Kind: Outage, For: 3 * second})
	s.Bin = milli
	return s
}

// FindNamed returns the named scenario; ok is false when none has that name.
func FindNamed(name string) (s Scenario, ok bool) {
	for _, s := range Named() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
