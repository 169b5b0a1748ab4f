package storm

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// brooker is the fleet of mbrooker/simulator_example: the failure rate does not
// depend on the load.
func brooker(clients int, rps, failing, duration float64, k Client) Scenario {
	k.RTT, k.RTTLaw = 20*ms, "exponential" // 10 ms each way
	k.Timeout = seconds(100)
	k.Kind, k.Breaker = "event", new(false)
	return Scenario{
		Duration: seconds(duration), Engine: Exact,
		Fleets:   []Fleet{{Rate: float64(clients) * rps, Instances: clients, Client: k}},
		Services: []Service{{Name: "s"}},
		Faults:   []Fault{{Kind: Errors, Rate: failing, For: seconds(duration)}},
	}
}

func vectorBrookerRetry(t *testing.T, v *simVector) {
	var p struct {
		Clients int     `json:"clients"`
		RPS     float64 `json:"rps_per_client"`
		Rate    float64 `json:"failure_rate"`
		RTT     string  `json:"rtt"`
		Bucket  struct {
			Size    float64 `json:"size"`
			Deposit float64 `json:"deposit"`
			On      string  `json:"deposit_on"`
			Cost    float64 `json:"cost"`
		} `json:"token_bucket"`
		Duration float64 `json:"duration_s"`
	}
	type outcome struct {
		Success float64 `json:"success"`
		Load    float64 `json:"load"`
	}
	var want struct {
		None   outcome `json:"no_retries"`
		Three  outcome `json:"three_retries"`
		Bucket outcome `json:"token_bucket"`
	}
	var tol struct {
		Success float64 `json:"success_abs"`
		Load    float64 `json:"load_abs"`
	}
	v.read(t, &p, &want, &tol)
	is(t, "rtt", p.RTT, "Exp(10 ms) each way")
	is(t, "deposit_on", p.Bucket.On, "every call start")
	near(t, "cost", p.Bucket.Cost, 1, 0)
	check := func(name string, k Client, want outcome) {
		t.Helper()
		r := mustRun(t, brooker(p.Clients, p.RPS, p.Rate, ringtest.Size(p.Duration/3, p.Duration), k))
		near(t, name+" load", r.Summary.Multiplier, want.Load, tol.Load)
		near(t, name+" success", r.Summary.Good/(r.Summary.Good+r.Summary.Failed), want.Success, tol.Success)
	}
	at := Baseline{Wait: "none", NoBudget: true}
	check("no retries", Client{Retries: new(0), Baseline: at}, want.None)
	check("three retries", Client{Retries: new(3), Baseline: at}, want.Three)
	at = Baseline{Wait: "none", Bucket: Bucket{Deposit: p.Bucket.Deposit, Size: p.Bucket.Size}}
	check("token bucket", Client{Retries: new(3), Baseline: at}, want.Bucket)
}

// lifetimeBreaker refuses retries while more than a tenth of all calls ever
// made have failed.
type lifetimeBreaker struct{ calls, failures float64 }

func (b *lifetimeBreaker) Request(time.Time)                     { b.calls++ }
func (b *lifetimeBreaker) Spend(time.Time, budget.Cost) bool     { return b.failures <= 0.1*b.calls }
func (b *lifetimeBreaker) Refund(time.Time, budget.Cost)         {}
func (b *lifetimeBreaker) Level(time.Time) budget.Level          { return budget.Level{} }
func (b *lifetimeBreaker) Failed(time.Time)                      { b.failures++ }
func (b *lifetimeBreaker) Succeeded(time.Time, int, budget.Cost) {}

func vectorBrookerBreaker(t *testing.T, v *simVector) {
	var p struct {
		Rates   []float64 `json:"failure_rates"`
		Breaker string    `json:"breaker"`
	}
	var want struct {
		Load    []float64 `json:"load"`
		Success []float64 `json:"success"`
	}
	var tol struct {
		Load    float64 `json:"load_abs"`
		Success float64 `json:"success_abs"`
	}
	v.read(t, &p, &want, &tol)
	is(t, "breaker", p.Breaker, "open for retries when lifetime failures/calls > 0.1 per client")
	if len(want.Load) != len(p.Rates) || len(want.Success) != len(p.Rates) {
		t.Fatalf("%d rates, %d loads, %d successes", len(p.Rates), len(want.Load), len(want.Success))
	}
	for i, rate := range p.Rates {
		r := mustRun(t, brooker(100, 10, rate, 300, Client{
			Retries: new(3), Baseline: Baseline{Wait: "none"},
			NewBudget: func() budget.Budget { return &lifetimeBreaker{} },
		}))
		near(t, "load", r.Summary.Multiplier, want.Load[i], tol.Load)
		near(t, "success", r.Summary.Good/(r.Summary.Good+r.Summary.Failed), want.Success[i], tol.Success)
	}
}

// over returns the mean of a series over the seconds [from, to).
func over(r *Result, series []float64, from, to float64) float64 {
	bin := r.Bin.Seconds()
	sum, n := 0.0, 0
	for i := int(from/bin + 0.5); i < min(int(to/bin+0.5), len(series)); i++ {
		sum += series[i]
		n++
	}
	return sum / float64(n)
}

func vectorBrookerCollapse(t *testing.T, v *simVector) {
	var p struct {
		Base     float64    `json:"base_rps"`
		Spike    float64    `json:"spike_rps"`
		SpikeS   [2]float64 `json:"spike_s"`
		Service  string     `json:"service_s"`
		Net      string     `json:"net_s"`
		Timeout  float64    `json:"timeout_s"`
		Attempts int        `json:"attempts"`
		Runs     int        `json:"runs"`
	}
	var want struct {
		No struct {
			Goodput float64 `json:"goodput_50_79_rps"`
			Retries float64 `json:"retries_rps"`
		} `json:"no_backoff"`
		Jitter struct {
			Goodput float64 `json:"goodput_40_79_rps"`
			Retries float64 `json:"retries_by_35s"`
		} `json:"backoff_jitter"`
	}
	var tol struct {
		Max     float64 `json:"no_backoff_goodput_max"`
		Retries float64 `json:"retries_abs"`
		Min     float64 `json:"backoff_goodput_min"`
	}
	v.read(t, &p, &want, &tol)
	is(t, "service_s", p.Service, "1+0.01*concurrency")
	is(t, "net_s", p.Net, "Exp(0.1) each way")
	s := Scenario{
		Duration: seconds(80), Bin: 100 * ms, Engine: Exact,
		Fleets: []Fleet{{Rate: p.Base, Client: Client{
			Breaker: new(false),
			Kind:    "event", Retries: new(p.Attempts - 1), Timeout: seconds(p.Timeout),
			Base: seconds(20), Cap: seconds(40), RTT: 200 * ms, RTTLaw: "exponential",
		}}},
		Services: []Service{{Name: "s", Time: seconds(1), Law: "fixed", PerConcurrent: 10 * ms}},
		Faults:   []Fault{{Kind: Spike, At: seconds(p.SpikeS[0]), For: seconds(p.SpikeS[1] - p.SpikeS[0]), Factor: p.Spike / p.Base}},
	}
	mean := func(b Baseline, measure func(*Result) float64) (sum float64) {
		// Each run either collapses or does not: of twenty, the mean would be
		// off by more than the tolerance every third time.
		runs := p.Runs
		if b.Wait == "none" {
			runs = ringtest.Size(60, max(runs, 200))
		}
		for seed := range runs {
			s.Seed = uint64(seed + 1)
			s.Fleets[0].Client.Baseline = b
			sum += measure(mustRun(t, s)) / float64(runs)
		}
		return sum
	}
	none, jitter := Baseline{Wait: "none", NoBudget: true}, Baseline{NoBudget: true}
	if got := mean(none, func(r *Result) float64 { return over(r, r.Series.Good, 50, 79) }); got > tol.Max {
		t.Errorf("no backoff: goodput %.1f/s, want about %v and at most %v", got, want.No.Goodput, tol.Max)
	} else {
		t.Logf("no backoff: goodput %.1f/s (want about %v)", got, want.No.Goodput)
	}
	near(t, "no backoff: retries", mean(none, func(r *Result) float64 { return over(r, r.Series.Retry, 50, 79) }), want.No.Retries, tol.Retries)
	// The reference counts a retry when it is decided on, not when it is sent.
	const late = 100
	var decided lateSpender
	s.Fleets[0].Client.NewBudget = func() budget.Budget { return &decided }
	s.Fleets[0].Client.Baseline = Baseline{}
	for seed := range uint64(late) {
		s.Seed = seed + 1
		mustRun(t, s)
	}
	s.Fleets[0].Client.NewBudget = nil
	near(t, "backoff and jitter: retries at 35 s", decided.n/late, want.Jitter.Retries, 0.5)
	if got := mean(jitter, func(r *Result) float64 { return over(r, r.Series.Good, 40, 79) }); got < tol.Min {
		t.Errorf("backoff and jitter: goodput %.1f/s, want about %v and at least %v", got, want.Jitter.Goodput, tol.Min)
	} else {
		t.Logf("backoff and jitter: goodput %.1f/s (want about %v)", got, want.Jitter.Goodput)
	}
}

// lateSpender allows everything and counts the retries of second 35.
type lateSpender struct {
	model.Unlimited
	n float64
}

func (b *lateSpender) Spend(now time.Time, _ budget.Cost) bool {
	if t := now.Sub(model.StartOfTime()); t >= 35*time.Second && t < 36*time.Second {
		b.n++
	}
	return true
}

func vectorMM1(t *testing.T, v *simVector) {
	var p struct {
		Lambda float64 `json:"lam"`
		Mu     float64 `json:"mu"`
	}
	var want struct {
		Mean     float64 `json:"mean_sojourn_ms"`
		P99      float64 `json:"p99_ms"`
		InSystem float64 `json:"mean_in_system"`
	}
	var tol struct {
		Rel float64 `json:"rel"`
	}
	v.read(t, &p, &want, &tol)
	lasts := ringtest.Size(1000.0, 3000)
	r := mustRun(t, Scenario{
		Duration: seconds(lasts), Bin: seconds(1), Engine: Exact,
		Fleets:   []Fleet{{Rate: p.Lambda, Client: Client{Retries: new(0), Timeout: seconds(60), Breaker: new(false)}}},
		Services: []Service{{Name: "s", Capacity: p.Mu}},
	})
	near(t, "mean sojourn", float64(r.Summary.Mean), want.Mean, tol.Rel*want.Mean)
	near(t, "p99", float64(r.Summary.P99), want.P99, tol.Rel*want.P99)
	near(t, "in system", float64(r.Summary.Mean)/1e3*r.Summary.Calls/lasts, want.InSystem, tol.Rel*want.InSystem)
}

func vectorAdaptive(t *testing.T, v *simVector) {
	var p struct {
		K        float64 `json:"K"`
		Capacity float64 `json:"backend_capacity_rps"`
		Offered  float64 `json:"offered_rps"`
		Window   float64 `json:"window_s"`
	}
	var want struct {
		Sent float64 `json:"sent_to_backend_rps"`
	}
	var tol struct {
		Rel float64 `json:"rel"`
	}
	v.read(t, &p, &want, &tol)
	share := ringtest.Size(0.2, 1) // of all that is played
	r := mustRun(t, Scenario{
		Duration: seconds(2.5 * p.Window), Bin: seconds(1), Engine: Exact,
		Fleets: []Fleet{{Rate: share * p.Offered, Client: Client{
			Breaker: new(false),
			Retries: new(0), Throttle: Throttle{K: p.K, Window: seconds(p.Window)},
		}}},
		Services: []Service{{Name: "s", Capacity: share * p.Capacity, QueueLength: 100}},
	})
	near(t, "sent", over(r, r.Services[0].Load, 1.5*p.Window, 2.5*p.Window)/share, want.Sent, tol.Rel*want.Sent)
}

func vectorGRPCThrottle(t *testing.T, v *simVector) {
	var p struct {
		MaxTokens float64 `json:"maxTokens"`
		Ratio     float64 `json:"tokenRatio"`
		Failure   string  `json:"failure"`
	}
	var want struct {
		Allowed   float64 `json:"retries_allowed_before_stop"`
		Failures  float64 `json:"failures_until_throttled"`
		BreakEven float64 `json:"break_even_failure_fraction"`
	}
	var tol absolute
	v.read(t, &p, &want, &tol)
	is(t, "failure", p.Failure, "total from start")
	s := Scenario{
		Duration: seconds(60), Engine: Exact,
		Fleets: []Fleet{{Burst: 1, Client: Client{
			Breaker: new(false),
			Kind:    "event", Retries: new(1000), Base: ms, Baseline: Baseline{Wait: "none", Unchecked: true},
			NewBudget: func() budget.Budget { return budget.NewGRPC(p.MaxTokens, p.Ratio) },
		}}},
		Services: []Service{{Name: "s"}},
		Faults:   []Fault{{Kind: Outage, For: seconds(60)}},
	}
	r := mustRun(t, s)
	near(t, "retries before it stops", r.Summary.Retries, want.Allowed, tol.Abs)
	near(t, "failures until it throttles", r.Summary.Attempts, want.Failures, tol.Abs)
	if r.Summary.BudgetRefused != 1 {
		t.Errorf("the call ended for another reason than the throttle: %+v", r.Summary)
	}
	// Below the break-even fraction the tokens stay, above it they run out.
	near(t, "break-even", p.Ratio/(1+p.Ratio), want.BreakEven, 0.0001)
	for _, tt := range []struct {
		fraction  float64
		throttled bool
	}{{want.BreakEven * 0.5, false}, {want.BreakEven * 1.5, true}} {
		s.Fleets[0].Burst, s.Fleets[0].Rate = 0, 1000
		s.Fleets[0].Client.Retries = new(10)
		s.Faults = []Fault{{Kind: Errors, Rate: tt.fraction, For: seconds(60)}}
		r := mustRun(t, s)
		share := r.Summary.BudgetRefused / max(r.Summary.BudgetRefused+r.Summary.Retries, 1)
		if throttled := share > 0.5; throttled != tt.throttled {
			t.Errorf("%.3f of the attempts fail: %.3f of the retries refused, want throttled = %v", tt.fraction, share, tt.throttled)
		}
	}
}
