package storm

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// bounded is a service of 100 ms for each request, and calls that end after one attempt.
func bounded(f Fleet) Scenario {
	f.Client.Breaker = new(false)
	if f.Client.Retries == nil && f.Client.Policy == nil {
		f.Client.Retries = new(0)
	}
	return Scenario{
		Name: "bounded", Duration: seconds(10), Engine: Exact,
		Fleets: []Fleet{f}, Services: []Service{{Name: "s", Time: 100 * ms, Law: "fixed"}},
	}
}

// A connection makes ten calls of 100 ms in a second, whatever the load.
func TestConnectionsBoundTheRate(t *testing.T) {
	s := bounded(Fleet{Rate: 200, Client: Client{Timeout: seconds(30), Connections: 1}})
	about(t, "one connection", mustRun(t, s).Summary.Good, 99, 0.02)
	s.Fleets[0].Instances = 4
	about(t, "one of each of four instances", mustRun(t, s).Summary.Good, 4*99, 0.02)
	s.Fleets[0].Client.Connections = 3
	about(t, "three each", mustRun(t, s).Summary.Good, 4*3*99, 0.02)
}

// Of five users with one connection each waits for the other four.
func TestConnectionsAreWaitedFor(t *testing.T) {
	s := bounded(Fleet{Users: 5, Think: 1, Client: Client{Timeout: seconds(30), Connections: 1}})
	r := mustRun(t, s)
	about(t, "median", float64(r.Summary.P50), 500, 0.02)
	about(t, "in their turn: the slowest waits no longer", float64(r.Summary.P99), 500, 0.02)
}

// Five calls at once with two connections. Timeouts run while they wait.
func TestTimeoutsRunInTheLine(t *testing.T) {
	five := Fleet{Burst: 5, Client: Client{Timeout: 250 * ms, Connections: 2}}
	for _, tt := range []struct {
		name           string
		spoil          func(*Scenario)
		good, arrivals float64
	}{
		{"two at 100 ms, two at 200 ms, and one is sent in vain", func(*Scenario) {}, 4, 5},
		{"three are never sent", func(s *Scenario) { s.Services[0].Time = 300 * ms }, 0, 2},
		{"a connection is free after a timeout, for two of the retries", func(s *Scenario) {
			s.Services[0].Time = 300 * ms
			s.Fleets[0].Client.Retries, s.Fleets[0].Client.Base = new(1), 100*ms
			s.Fleets[0].Client.Baseline = Baseline{Wait: "fixed", NoBudget: true}
		}, 0, 4},
		{"or for those in line", func(s *Scenario) {
			s.Services[0].Time = 300 * ms
			s.Fleets = append(s.Fleets, s.Fleets[0])
			s.Fleets[0].BurstAt = 100 * ms // has connections of its own
		}, 0, 4},
		{"a partition holds them as well", func(s *Scenario) { s.Faults = []Fault{{Kind: Partition, For: seconds(10)}} }, 0, 0},
		{"an outage does not", func(s *Scenario) { s.Faults = []Fault{{Kind: Outage, For: seconds(10)}} }, 0, 5},
	} {
		s := bounded(five)
		tt.spoil(&s)
		r := mustRun(t, s)
		if r.Summary.Good != tt.good || r.Services[0].Arrivals != tt.arrivals || r.Summary.Open != 0 {
			t.Errorf("%s: %v good, %v arrived, %v open; want %v and %v", tt.name, r.Summary.Good, r.Services[0].Arrivals, r.Summary.Open, tt.good, tt.arrivals)
		}
	}
}

// Whoever has left the line gets no connection, although another in it waits on.
func TestALineOfDifferentTimeouts(t *testing.T) {
	once := func(at Duration, n int, timeout Duration) Fleet {
		return Fleet{Burst: n, BurstAt: at, Client: Client{Retries: new(0), Breaker: new(false), Timeout: timeout}}
	}
	s := Scenario{
		Name: "line", Duration: seconds(10), Engine: Exact,
		Fleets: []Fleet{once(0, 1, seconds(5)), once(10*ms, 3, 300*ms), once(500*ms, 1, seconds(5))},
		Services: []Service{
			{Name: "front", DropExpired: true, Calls: []Edge{{To: "back", Client: Client{
				Retries: new(0), Breaker: new(false), Timeout: seconds(8), Connections: 1,
			}}}},
			{Name: "back", Time: seconds(1), Law: "fixed"},
		},
	}
	r := mustRun(t, s)
	if r.Summary.Good != 2 || r.Services[1].Arrivals != 2 {
		t.Errorf("%v good, %v sent on, want the first and the last", r.Summary.Good, r.Services[1].Arrivals)
	}
}

// A line of calls that end at once does not become a deep stack.
func TestALongLineEndsAtOnce(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(4 << 20))
	s := bounded(Fleet{Burst: 300_000, Client: Client{Connections: 1}})
	s.Faults = []Fault{{Kind: Outage, At: 50 * ms, For: seconds(9)}}
	about(t, "arrivals", mustRun(t, s).Services[0].Arrivals, 300_000, 0)
}

// A service's calls to the next have connections, too.
func TestConnectionsBetweenServices(t *testing.T) {
	s := bounded(Fleet{Rate: 100, Client: Client{Timeout: seconds(30)}})
	s.Services = append(s.Services, s.Services[0])
	s.Services[1].Name = "below"
	s.Services[0].Calls = []Edge{{To: "below", Instances: 2, Client: Client{Retries: new(0), Timeout: seconds(30), Breaker: new(false), Connections: 1}}}
	about(t, "two instances of one connection", mustRun(t, s).Services[1].Served, 2*98, 0.02)
}

// Four erlangs offered to four places: Erlang's formula refuses 31.07 %.
func TestMaxConcurrentIsErlangsLoss(t *testing.T) {
	const loss = 0.3107
	place := Client{Timeout: seconds(30), MaxConcurrent: 4}
	s := bounded(Fleet{Rate: 40, Client: place})
	s.Duration = seconds(1000)
	r := mustRun(t, s)
	about(t, "refused", r.Summary.ConcurrencyRefused/r.Summary.Calls, loss, 0.03)
	about(t, "the others are good", failed(r), loss, 0.03)
	s.Fleets[0].Instances, s.Fleets[0].Rate = 5, 200
	r = mustRun(t, s)
	about(t, "refused by five instances", r.Summary.ConcurrencyRefused/r.Summary.Calls, loss, 0.03)
	s.Fleets[0].Rate, s.Duration = 1000, seconds(10)
	if r = mustRun(t, s); r.Summary.Verdict != Limited {
		t.Errorf("verdict %s, want %s", r.Summary.Verdict, Limited)
	}

	// Here no attempt takes any time: the second of each call comes a second later, and the
	// place is held until then.
	place.Retries, place.Base, place.Baseline = new(1), seconds(1), Baseline{Wait: "fixed", NoBudget: true}
	s = bounded(Fleet{Rate: 4, Client: place})
	s.Duration, s.Faults = seconds(5000), []Fault{{Kind: Outage, For: seconds(10_000)}}
	r = mustRun(t, s)
	about(t, "refused during a wait", r.Summary.ConcurrencyRefused/r.Summary.Calls, loss, 0.04)
	about(t, "sends of the others", r.Summary.Attempts/r.Summary.Calls, 2*(1-loss), 0.03)
	// A durable call gives its place back while it waits.
	s.Fleets[0].Client.Kind = "event"
	if r = mustRun(t, s); r.Summary.ConcurrencyRefused+r.Summary.Postponed > 0 {
		t.Errorf("events: %v refused, %v postponed, want none", r.Summary.ConcurrencyRefused, r.Summary.Postponed)
	}
}

// A sample has as many places for each request as the whole.
func TestASampleKeepsTheBoundsOfCallers(t *testing.T) {
	sample := func(f Fleet, k float64) *Summary {
		s := bounded(f)
		s.Duration, s.Services[0].Time = seconds(30), 10*ms
		c, err := compile(s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.runSample(k, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &r.Summary
	}
	many := sample(Fleet{Instances: 64, Rate: 64 * 400, Client: Client{MaxConcurrent: 4}}, 16)
	about(t, "refused by each of many", many.ConcurrencyRefused/many.Calls, 0.3107, 0.03)
	policy := forbear.Policy{PerAttempt: time.Second, MaxConcurrent: 4, Disabled: true}
	many = sample(Fleet{Instances: 64, Rate: 64 * 400, Client: Client{Policy: &policy}}, 16)
	about(t, "of a policy", many.ConcurrencyRefused/many.Calls, 0.3107, 0.03)
	one := sample(Fleet{Rate: 4000, Client: Client{Connections: 20, Timeout: seconds(100)}}, 10)
	about(t, "half of the load of one", one.Good/one.Calls, 0.5, 0.05)
}

// The breaker of a live call counts a full bulkhead as a failure, so that it opens.
func TestAFullBulkheadOpensTheBreaker(t *testing.T) {
	s := bounded(Fleet{Rate: 100, Client: Client{MaxConcurrent: 2}})
	s.Fleets[0].Client.Breaker = nil
	if r := mustRun(t, s); r.Summary.BreakerRefused == 0 || r.Summary.ConcurrencyRefused == 0 {
		t.Errorf("refused: %v by the breaker, %v by the bulkhead", r.Summary.BreakerRefused, r.Summary.ConcurrencyRefused)
	}
}

func TestBoundsOfCallersAreChecked(t *testing.T) {
	s := bounded(Fleet{Rate: 1, Client: Client{Connections: -1, MaxConcurrent: -2}})
	wantFault(t, s, "fleets[0].client.connections", "-1 is outside")
	wantFault(t, s, "fleets[0].client.max_concurrent", "-2 is outside")
}
