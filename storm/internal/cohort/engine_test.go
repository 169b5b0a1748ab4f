package cohort

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// fleet returns a model of 1,000 requests a second to a service of the given
// capacity, with so many retries that wait for 100 ms each and no budget.
func fleet(capacity float64, retries int) *model.Model {
	p := forbear.Policy{
		MaxRetries: retries, Disabled: retries == 0, PerAttempt: time.Second,
		Backoff: forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}, Breaker: breaker.Policy{Disabled: true},
	}
	return &model.Model{
		Seed: 1, Duration: 20 * time.Second, Bin: 100 * time.Millisecond,
		Fleets:   []model.Fleet{{Name: "fleet", Rate: 1000}},
		Services: []model.Service{{Capacity: capacity, Concurrency: 1, Bound: -1, Refusal: model.Refusal(0)}},
		Edges: []model.Edge{{FanOut: 1, Instances: 1, Plan: &model.Plan{
			Given: p, Policy: p.WithDefaults(), Timeout: int64(time.Second), Limit: retries,
			Baseline: model.Baseline{Wait: "fixed", NoBudget: true},
		}}},
		Out: [][]int{nil}, Nominal: []float64{1000},
	}
}

// sums of a record.
type sums struct{ calls, retries, good, failed float64 }

func mustRun(t *testing.T, m *model.Model) (*model.Record, sums) {
	t.Helper()
	if why := Unfit(m); why != "" {
		t.Fatal(why)
	}
	r := Run(m, nil)
	var s sums
	for _, b := range r.Bins {
		s.calls += b.Calls
		s.retries += b.Retry
		s.good += b.Good
		s.failed += b.Failed
	}
	return r, s
}

func near(t *testing.T, name string, got, want, rel float64) {
	t.Helper()
	if math.Abs(got-want) > rel*math.Abs(want)+1e-6 {
		t.Errorf("%s: got %.5g, want %.5g", name, got, want)
	}
}

// Each case comes down to a sum that can be done by hand, of 20,000 calls.
func TestMassesComeToTheirEnd(t *testing.T) {
	always := func(m *model.Model, f model.Fault) {
		f.End = time.Hour
		m.Faults = append(m.Faults, f)
	}
	for _, tt := range []struct {
		name     string
		capacity float64
		retries  int
		spoil    func(*model.Model)
		want     sums
		rel      float64
	}{
		{"ample capacity", 5000, 3, nil, sums{20_000, 0, 20_000, 0}, 0.001},
		{"an outage takes every attempt", 5000, 3, func(m *model.Model) {
			always(m, model.Fault{Factor: 1, Outage: 1})
		}, sums{20_000, 60_000, 0, 20_000}, 0.02},
		{"independent errors: 1 + 1/2 + 1/4", 9000, 2, func(m *model.Model) {
			always(m, model.Fault{Factor: 1, Failing: [model.Modes]float64{model.FailIndependent: 0.5}})
		}, sums{20_000, 15_000, 17_500, 2500}, 0.02},
		{"sticky errors: the same half, three times", 9000, 2, func(m *model.Model) {
			always(m, model.Fault{Factor: 1, Failing: [model.Modes]float64{model.FailSticky: 0.5}})
		}, sums{20_000, 20_000, 10_000, 10_000}, 0.02},
		{"half of the load finds room in a full queue", 500, 0, func(m *model.Model) {
			m.Services[0].Bound = 50
		}, sums{20_000, 0, 10_000, 10_000}, 0.02},
		{"a partition swallows its share", 5000, 0, func(m *model.Model) {
			m.Edges[0].Instances = 10
			always(m, model.Fault{Factor: 1, Cut: 0.3})
		}, sums{20_000, 0, 14_000, 6000 * 19 / 20}, 0.02},
		{"an endless queue is late for all but the first second", 500, 0, nil, sums{20_000, 0, 1000, 18_000}, 0.06},
		{"a spike", 9000, 0, func(m *model.Model) {
			m.Faults = []model.Fault{{Service: model.Fleets, At: 5 * time.Second, End: 10 * time.Second, Factor: 1, Spike: 3}}
		}, sums{30_000, 0, 30_000, 0}, 0.001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := fleet(tt.capacity, tt.retries)
			if tt.spoil != nil {
				tt.spoil(m)
			}
			_, got := mustRun(t, m)
			near(t, "calls", got.calls, tt.want.calls, 0.001)
			near(t, "retries", got.retries, tt.want.retries, tt.rel)
			near(t, "good", got.good, tt.want.good, tt.rel)
			near(t, "failed", got.failed, tt.want.failed, tt.rel)
		})
	}
}

// The cost of a run does not depend on the rate, nor do its shares.
func TestRateIsAUnit(t *testing.T) {
	small := fleet(5000, 3)
	small.Faults = []model.Fault{{At: 5 * time.Second, End: 8 * time.Second, Factor: 1, Failing: [model.Modes]float64{model.FailIndependent: 0.5}}}
	large := fleet(5000*1e5, 3)
	large.Fleets[0].Rate, large.Faults = 1000*1e5, small.Faults
	a, b := Cost(small), Cost(large)
	if a != b {
		t.Errorf("%+v for 1,000 requests a second, %+v for 100 M", a, b)
	}
	_, few := mustRun(t, small)
	_, many := mustRun(t, large)
	near(t, "retries", many.retries/1e5, few.retries, 0.05)
	near(t, "good", many.good/1e5, few.good, 0.05)
}

// A budget of 20 % allows retries for a fifth of the calls.
func TestBudgetBoundsTheRetries(t *testing.T) {
	m := fleet(9000, 3)
	p := m.Edges[0].Plan
	p.Baseline.NoBudget = false
	m.Faults = []model.Fault{{End: time.Hour, Factor: 1, Outage: 1}}
	r, got := mustRun(t, m)
	near(t, "retries", got.retries, 0.2*got.calls, 0.05)
	near(t, "ended by the budget", r.Refused[forbear.ReasonBudget], got.failed, 0.05)
}

// Breakers see samples of the mass and turn the mass away.
func TestBreakersTurnMassAway(t *testing.T) {
	m := fleet(9000, 1)
	p := m.Edges[0].Plan
	p.Given.Breaker.Disabled, p.Policy.Breaker.Disabled, p.Breaker = false, false, true
	m.Edges[0].Instances = 20
	m.Faults = []model.Fault{{At: 5 * time.Second, End: time.Hour, Factor: 1, Outage: 1}}
	r, _ := mustRun(t, m)
	var turned float64
	for _, b := range r.Bins[80:] {
		turned += b.Turned
	}
	if share := turned / 12_000; share < 0.9 {
		t.Errorf("%.2f of the calls were turned away three seconds into an outage", share)
	}
	if r.Bins[40].Breaker != 0 || r.Bins[100].Breaker < 0.9 {
		t.Errorf("%v of the breakers are open before the outage, %v in it", r.Bins[40].Breaker, r.Bins[100].Breaker)
	}
}

func TestRunStops(t *testing.T) {
	m, asked := fleet(5000, 0), 0
	m.Step = time.Millisecond
	r := Run(m, func() bool { asked++; return asked == 3 })
	if !r.Stopped || r.Events != 2048 || r.Step != time.Millisecond {
		t.Errorf("stopped %v after %d steps of %v, want 2,048", r.Stopped, r.Events, r.Step)
	}
}

// What does not fit is refused for a reason that a user understands, and what
// fits badly is noted.
func TestUnfitAndNotes(t *testing.T) {
	for _, tt := range []struct {
		part  string
		spoil func(*model.Model)
	}{
		{"layers", func(m *model.Model) { m.Services = append(m.Services, m.Services[0]) }},
		{"single requests", func(m *model.Model) { m.Services[0].PerConcurrent = time.Millisecond }},
		{"decorrelated", func(m *model.Model) {
			m.Edges[0].Plan.Baseline.Wait, m.Edges[0].Plan.Policy.Backoff.Jitter = "", forbear.JitterDecorrelated
		}},
		{"throttling", func(m *model.Model) { m.Edges[0].Plan.ThrottleK = 2 }},
		{"schedule", func(m *model.Model) { m.Edges[0].Plan.Policy.Backoff.Schedule = []time.Duration{time.Hour} }},
		{"round trip", func(m *model.Model) { m.Edges[0].Plan.RTT = int64(time.Second) }},
		{"as long as the timeout", func(m *model.Model) { m.Services[0].Capacity = 1 }},
	} {
		m := fleet(5000, 1)
		tt.spoil(m)
		if why := Unfit(m); !strings.Contains(why, tt.part) {
			t.Errorf("%q, want a reason with %q", why, tt.part)
		}
	}
	m := fleet(5000, 1)
	m.Fleets[0].Rate = 10
	if r, _ := mustRun(t, m); !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "few requests") }) {
		t.Errorf("notes of ten requests a second: %q", r.Notes)
	}
}

// Faults divide instances and calls where they hit, and nowhere else.
func TestDivisions(t *testing.T) {
	sticky := func(rate float64) model.Fault {
		return model.Fault{Failing: [model.Modes]float64{model.FailSticky: rate}}
	}
	faults := []model.Fault{sticky(0.5), sticky(0.2), sticky(0.5), {Cut: 0.33}, {Outage: 0.7}}
	lucks, cuts := divisions(faults, 10)
	if !slices.Equal(lucks, []float64{0.2, 0.5, 1}) || !slices.Equal(cuts, []float64{0.4, 1}) {
		t.Errorf("ten instances: by luck %v, by instance %v", lucks, cuts)
	}
	lucks, cuts = divisions(faults, 1)
	if !slices.Equal(lucks, []float64{0.2, 0.33, 0.5, 1}) || !slices.Equal(cuts, []float64{1}) {
		t.Errorf("one instance: by luck %v, by instance %v", lucks, cuts)
	}
}
