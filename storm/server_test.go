package storm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// steady is a fleet of regular calls to an idle service that takes 10 ms, without a budget
// or a breaker, so that what a fault does can be counted.
func steady(rate float64, retries int) Scenario {
	return Scenario{
		Duration: seconds(60), Engine: Exact,
		Fleets: []Fleet{{Rate: rate, Regular: true, Client: Client{
			Retries: &retries, Timeout: seconds(1), Base: 100 * ms, Cap: 1000 * ms, Breaker: new(false), Baseline: Baseline{NoBudget: true},
		}}},
		Services: []Service{{Name: "s", Time: 10 * ms, Law: "fixed"}},
	}
}

// single is the same with one call.
func single(retries int) Scenario {
	s := steady(1, retries)
	s.Fleets[0].Rate, s.Fleets[0].Regular, s.Fleets[0].Burst = 0, false, 1
	return s
}

func always(f Fault) []Fault {
	f.For = Duration(time.Hour)
	return []Fault{f}
}

// A limiter lets its rate through, and once its burst; all else is shed.
func TestLimitLetsItsRateThrough(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit Limit
		want  float64
	}{
		{"by default a second's worth at once", Limit{Rate: 60}, 60*60 + 60},
		{"a burst of one has no room for what a second request leaves", Limit{Rate: 60, Burst: 1}, 50 * 60},
		{"less than one a second", Limit{Rate: 0.5}, 1 + 29},
	} {
		s := steady(100, 0)
		s.Services[0].Limit = tt.limit
		r := mustRun(t, s)
		near(t, tt.name, r.Services[0].Served, tt.want, 2.5)
		near(t, tt.name+": shed", r.Services[0].Shed, r.Summary.Calls-tt.want, 2.5)
		if r.Summary.Verdict != Overloaded {
			t.Errorf("%s: the verdict is %s for a load above the limit", tt.name, r.Summary.Verdict)
		}
	}
	s := steady(100, 0)
	s.Services[0].Limit = Limit{Rate: 200}
	if r := mustRun(t, s); r.Services[0].Shed != 0 {
		t.Errorf("%v shed below the limit", r.Services[0].Shed)
	}
}

// The Retry-After of a limiter is waited for, in place of the backoff.
func TestLimitAsksToWait(t *testing.T) {
	s := single(1)
	s.Fleets[0].Burst = 2
	s.Services[0].Limit = Limit{Rate: 0.5, Burst: 1, RetryAfter: seconds(2)}
	r := mustRun(t, s)
	near(t, "good", r.Summary.Good, 2, 0)
	near(t, "p99, ms", float64(r.Summary.P99), 2110, 110) // 2 s and up to 10 % more
	s.Services[0].Limit.RetryAfter = 0
	near(t, "good without Retry-After", mustRun(t, s).Summary.Good, 1, 0)
}

// A limit that is too low for the load explains a run that does not recover.
func TestOverloadIsTheLimits(t *testing.T) {
	s := steady(100, 0)
	s.Services[0].Limit = Limit{Rate: 60}
	s.Faults = []Fault{{Kind: Outage, At: seconds(0.2), For: seconds(10)}}
	if r := mustRun(t, s); r.Summary.Verdict != Overloaded {
		t.Errorf("the verdict is %s", r.Summary.Verdict)
	}
}

// Statuses are R-4's: a final one costs one attempt, another one all of them.
func TestStatusDecidesOnRetries(t *testing.T) {
	for status, attempts := range map[int]float64{0: 4, 400: 1, 401: 1, 404: 1, 408: 4, 429: 4, 500: 4, 501: 1, 503: 4, 504: 4} {
		for _, kind := range []FaultKind{Errors, Outage} {
			s := single(3)
			s.Faults = always(Fault{Kind: kind, Status: status})
			near(t, fmt.Sprint(kind, " ", status), mustRun(t, s).Summary.Attempts, attempts, 0)
		}
	}
}

// The policy's own words on a status hold.
func TestPolicyClassifiesTheStatus(t *testing.T) {
	s := single(3)
	s.Faults = always(Fault{Kind: Errors, Status: 404})
	p, err := s.Fleets[0].Client.AsPolicy()
	if err != nil {
		t.Fatal(err)
	}
	p.Classify = map[string]forbear.Class{"http_404": forbear.ClassTransient}
	s.Fleets[0].Client = Client{Policy: &p, Baseline: Baseline{NoBudget: true}}
	near(t, "attempts a call", mustRun(t, s).Summary.Attempts, 4, 0)
}

// Faults that do different things add up; of those that do the same the greatest counts.
func TestStatusesAddUp(t *testing.T) {
	for _, tt := range []struct {
		name   string
		second Fault
		good   float64
	}{
		{"two statuses", Fault{Kind: Errors, Rate: 0.2, Status: 404}, 0.5},
		{"twice the same", Fault{Kind: Errors, Rate: 0.2}, 0.7},
		{"the same of the calls' method", Fault{Kind: Errors, Rate: 0.2, Method: "GET"}, 0.5},
		{"the same of another method", Fault{Kind: Errors, Rate: 0.2, Method: "POST"}, 0.7},
	} {
		s := steady(500, 0)
		writes := s.Fleets[0] // next to none, so that no fault hits no one
		writes.Name, writes.Rate, writes.Client.Method = "writes", 0.001, "POST"
		s.Fleets = append(s.Fleets, writes)
		s.Faults = append(always(Fault{Kind: Errors, Rate: 0.3}), always(tt.second)...)
		sum := mustRun(t, s).Summary
		near(t, tt.name, sum.Good/sum.Calls, tt.good, 0.01)
	}
}

// The Retry-After of a fault is waited for; in an outage the service's is the default.
func TestFaultsAskToWait(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fault   Fault
		service Duration
		floor   float64 // ms
	}{
		{"errors", Fault{Kind: Errors, RetryAfter: seconds(3)}, 0, 3000},
		{"errors, and not the service's", Fault{Kind: Errors}, seconds(3), 0},
		{"an outage", Fault{Kind: Outage, RetryAfter: seconds(3)}, seconds(5), 3000},
		{"an outage, the service's", Fault{Kind: Outage, Status: 503}, seconds(3), 3000},
		{"an outage of another status", Fault{Kind: Outage, Status: 429}, seconds(3), 0},
	} {
		s := single(1)
		s.Services[0].RetryAfter = tt.service
		tt.fault.For = ms
		s.Faults = []Fault{tt.fault}
		// Errors are found when the service is done, after the fault.
		if tt.fault.Kind == Errors {
			s.Faults[0].For = seconds(0.011)
		}
		// The single call ends well after its wait; a backoff is at most 100 ms.
		if r := mustRun(t, s); r.Summary.Good != 1 || float64(r.Summary.P50) < tt.floor || float64(r.Summary.P50) > 1.15*tt.floor+130 {
			t.Errorf("%s: %v good after %v ms, want at least %v", tt.name, r.Summary.Good, r.Summary.P50, tt.floor)
		}
	}
}

// POST and PATCH are sent once, unless they carry a key or the policy makes one.
func TestWritesNeedAKey(t *testing.T) {
	for _, tt := range []struct {
		client   Client
		attempts float64
	}{
		{Client{}, 4},
		{Client{Method: "DELETE"}, 4},
		{Client{Method: "POST"}, 1},
		{Client{Method: "PATCH"}, 1},
		{Client{Method: "POST", Key: true}, 4},
	} {
		for name, spoil := range map[string]func(*Scenario){
			"503":     func(s *Scenario) { s.Faults = always(Fault{Kind: Outage}) },
			"timeout": func(s *Scenario) { s.Services[0].Time = seconds(2) },
		} {
			for _, breaker := range []bool{false, true} { // a plan that keeps its calls, and one that does not
				s := single(3)
				c := &s.Fleets[0].Client
				c.Method, c.Key, c.Breaker = tt.client.Method, tt.client.Key, &breaker
				spoil(&s)
				near(t, fmt.Sprintf("%s of %s, key %v", name, c.Method, c.Key), mustRun(t, s).Summary.Attempts, tt.attempts, 0)
			}
		}
	}
	s := single(3)
	s.Faults = always(Fault{Kind: Outage})
	p, err := s.Fleets[0].Client.AsPolicy()
	if err != nil {
		t.Fatal(err)
	}
	p.Keys = forbear.KeyGenerate
	s.Fleets[0].Client = Client{Policy: &p, Method: "POST", Baseline: Baseline{NoBudget: true}}
	near(t, "attempts with a policy that makes keys", mustRun(t, s).Summary.Attempts, 4, 0)
}

// A fault of a method hits the calls of that method alone.
func TestFaultsOfAMethod(t *testing.T) {
	for _, kind := range []FaultKind{Errors, Outage} {
		s := steady(20, 0)
		s.Fleets = append(s.Fleets, s.Fleets[0])
		s.Fleets[1].Rate, s.Fleets[1].Client.Method = 10, "POST"
		s.Faults = always(Fault{Kind: kind, Method: "POST"})
		sum := mustRun(t, s).Summary
		near(t, "the POSTs fail", sum.Failed, 600, 2)
		near(t, "the GETs do not", sum.Good, 1200, 2)
	}
}

// Of a slow tenth, each attempt times out with a chance of a tenth: a retry for a tenth of
// the calls, and a hundredth that fails.
func TestSlowTenth(t *testing.T) {
	s := steady(1000, 1)
	s.Faults = always(Fault{Kind: Slow, Rate: 0.1, Time: seconds(3)})
	sum := mustRun(t, s).Summary
	near(t, "attempts a call", sum.Multiplier, 1.1, 0.005)
	near(t, "failed", sum.Failed/sum.Calls, 0.01, 0.002)
	near(t, "p50, ms", float64(sum.P50), 10, 0.5)
	near(t, "p99, ms", float64(sum.P99), 1100, 30) // a timeout, and most of the wait
	if sum.Verdict != Steady {
		t.Errorf("the verdict is %s for what a timeout and a retry cure", sum.Verdict)
	}
}

// A loss of capacity lengthens a slow request as any other.
func TestSlowRequestsShareTheCapacity(t *testing.T) {
	s := steady(1, 0)
	s.Services[0] = Service{Name: "s", Capacity: 100, Concurrency: 1, Law: "fixed"}
	s.Faults = append(always(Fault{Kind: Slow, Time: 200 * ms}), always(Fault{Kind: Brownout, Factor: 0.5})...)
	near(t, "p50, ms", float64(mustRun(t, s).Summary.P50), 400, 10)
}

// A service whose own timeout is shorter than what it calls responds first; the deadline
// that it propagates is the shorter one.
func TestServersTimeoutIsPropagated(t *testing.T) {
	below := Client{Retries: new(3), Timeout: 5000 * ms, Base: 10 * ms, Cap: 20 * ms, Breaker: new(false), Baseline: Baseline{NoBudget: true}}
	s := steady(10, 0)
	s.Fleets[0].Client.Timeout = seconds(5)
	s.Services = []Service{
		{Name: "s", Timeout: 300 * ms, Calls: []Edge{{To: "below", Client: below}}},
		{Name: "below", Time: seconds(1), Law: "fixed"},
	}
	r := mustRun(t, s)
	near(t, "good", r.Summary.Good, 0, 0)
	near(t, "wasted below", r.Services[1].Wasted, 0, 0) // without propagation it still has a client
	s.Services[0].DropExpired = true
	r = mustRun(t, s)
	near(t, "wasted below, of what has a deadline", r.Services[1].Wasted, r.Services[1].Served, 0)
}

// Limits are scaled in a sample like all that there is many of.
func TestSampleHasItsPartOfTheLimit(t *testing.T) {
	s := steady(2000, 1)
	s.Services[0].Limit = Limit{Rate: 1200}
	whole := mustRun(t, s)
	c, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	part, err := c.runSample(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "good", part.Summary.Good, whole.Summary.Good, 0.01*whole.Summary.Good)
	near(t, "shed", part.Services[0].Shed, whole.Services[0].Shed, 0.02*whole.Services[0].Shed)
	// Of a small bucket enough is left for chance not to empty it.
	for burst, want := range map[float64]float64{1: 1, 20: 20, 1200: leastTokens} {
		s.Services[0].Limit.Burst = burst
		if c, err = compile(s.sampled(10_000)); err != nil || c.m.Services[0].Limit.Burst != want {
			t.Errorf("a burst of %v for %v in a small sample, %v: want %v", c.m.Services[0].Limit.Burst, burst, err, want)
		}
	}
}

// What would be ignored, or means nothing, is refused by its path.
func TestServersMistakes(t *testing.T) {
	for _, tt := range []struct {
		path, want string
		spoil      func(*Scenario)
	}{
		{"services[0].limit.rate", "is missing", func(s *Scenario) { s.Services[0].Limit.Burst = 3 }},
		{"services[0].limit.rate", "is missing", func(s *Scenario) { s.Services[0].Limit.RetryAfter = ms }},
		{"services[0].limit.rate", "outside", func(s *Scenario) { s.Services[0].Limit.Rate = -1 }},
		{"services[0].limit.burst", "outside 1", func(s *Scenario) { s.Services[0].Limit = Limit{Rate: 5, Burst: 0.5} }},
		{"services[0].limit.retry_after", "outside", func(s *Scenario) { s.Services[0].Limit = Limit{Rate: 5, RetryAfter: -1} }},
		{"services[0].timeout", "outside", func(s *Scenario) { s.Services[0].Timeout = -1 }},
		{"faults[0].status", "outside 400 to 599", func(s *Scenario) { s.Faults = always(Fault{Kind: Errors, Status: 302}) }},
		{"faults[0].status", "does not belong to pause", func(s *Scenario) { s.Faults = always(Fault{Kind: Pause, Status: 500}) }},
		{"faults[0].retry_after", "does not belong to slow", func(s *Scenario) { s.Faults = always(Fault{Kind: Slow, Time: ms, RetryAfter: ms}) }},
		{"faults[0].retry_after", "outside", func(s *Scenario) { s.Faults = always(Fault{Kind: Errors, RetryAfter: -1}) }},
		{"faults[0].method", "want GET", func(s *Scenario) { s.Faults = always(Fault{Kind: Errors, Method: "post"}) }},
		{"faults[0].time", "is missing", func(s *Scenario) { s.Faults = always(Fault{Kind: Slow}) }},
		{"faults[0].time", "does not belong to errors", func(s *Scenario) { s.Faults = always(Fault{Kind: Errors, Time: ms}) }},
		{"fleets[0].client.method", "want GET", func(s *Scenario) { s.Fleets[0].Client.Method = "FETCH" }},
		{"fleets[0].client.method", "webhooks", func(s *Scenario) { s.Fleets[0].Client = Client{Kind: "webhook", Method: "POST"} }},
		{"fleets[0].client.key", "webhooks", func(s *Scenario) { s.Fleets[0].Client = Client{Kind: "webhook", Key: true} }},
		{"fleets[0].client.key", "changes nothing for GET", func(s *Scenario) { s.Fleets[0].Client.Key = true }},
		{"fleets[0].client.key", "changes nothing for PUT", func(s *Scenario) { s.Fleets[0].Client.Key, s.Fleets[0].Client.Method = true, "PUT" }},
	} {
		s := steady(10, 1)
		tt.spoil(&s)
		found := FieldErrors(s.Validate())
		if len(found) != 1 || found[0].Path != tt.path || !strings.Contains(found[0].Detail, tt.want) {
			t.Errorf("%s, %s: got %v", tt.path, tt.want, found)
		}
	}
}

// Every call of a fleet that fails has a reason, those too that a throttle drops.
func TestEveryFailedCallHasAReason(t *testing.T) {
	s := steady(1000, 5)
	s.Services[0] = Service{Name: "s", Capacity: 500, Shed: 100 * ms}
	s.Fleets[0].Client.Throttle.K = 1.2
	r := mustRun(t, s)
	sum := 0.0
	for _, n := range r.Summary.Reasons {
		sum += n
	}
	if r.Summary.Reasons["throttled"] == 0 {
		t.Errorf("reasons %v: want throttled", r.Summary.Reasons)
	}
	near(t, "failed by reason", sum, r.Summary.Failed, 0)
}

// A lasting fault of a method is judged by the part of the requests that have it.
func TestALastingFaultOfAMethodIsJudgedByItsPart(t *testing.T) {
	s := steady(500, 1)
	writes := s.Fleets[0]
	writes.Name, writes.Rate, writes.Client.Method = "writes", 100, "POST"
	s.Fleets = append(s.Fleets, writes)
	s.Faults = []Fault{{Kind: Errors, At: seconds(5), For: seconds(1000), Rate: 0.5, Method: "POST"}}
	if got := mustRun(t, s).Summary; got.Verdict != Steady {
		t.Errorf("%s, with a goodput of %.2f", got.Verdict, got.FinalGoodput)
	}
}
