package storm

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

type metastableParams struct {
	Load      float64 `json:"load"`
	Timeout   float64 `json:"timeout_s"`
	Retries   int     `json:"retries"`
	BaseMS    float64 `json:"base_ms"`
	CapMS     float64 `json:"cap_ms"`
	Jitter    string  `json:"jitter"`
	Capacity  float64 `json:"brownout_capacity"`
	Rate      float64 `json:"rate_rps"`
	Queue     string  `json:"queue"`
	BrownoutS float64 `json:"brownout_s"`
	Budget    float64 `json:"budget"`
	BucketS   float64 `json:"bucket_s"`
	Others    string  `json:"others"`
}

func (p *metastableParams) scenario(length float64, seed uint64) Scenario {
	return Scenario{
		Duration: seconds(50 + length), Engine: Exact, Seed: seed,
		Fleets: []Fleet{{Rate: p.Rate, Client: Client{
			Breaker: new(false),
			Retries: &p.Retries, Timeout: seconds(p.Timeout), Base: millis(p.BaseMS), Cap: millis(p.CapMS),
			Baseline: Baseline{NoBudget: true},
		}}},
		Services: []Service{{Name: "s", Capacity: p.Rate / p.Load}},
		Faults:   []Fault{{Kind: Brownout, At: seconds(10), For: seconds(length), Factor: p.Capacity}},
	}
}

func vectorMetastableThreshold(t *testing.T, v *simVector) {
	var p metastableParams
	var want struct {
		Range      [2]float64 `json:"min_metastable_brownout_s"`
		Multiplier float64    `json:"arrival_multiplier_stuck"`
		Goodput    float64    `json:"goodput_stuck"`
	}
	var tol struct {
		Multiplier float64 `json:"multiplier_rel"`
	}
	v.read(t, &p, &want, &tol)
	is(t, "jitter", p.Jitter, "full")
	is(t, "queue", p.Queue, "FIFO unbounded, dead work still served")
	seeds := ringtest.Size(uint64(2), 5)
	stuck := func(length float64, change func(*Scenario)) (n int, last *Result) {
		for seed := range seeds {
			s := p.scenario(length, seed+1)
			if change != nil {
				change(&s)
			}
			if last = mustRun(t, s); last.Summary.Verdict == Metastable {
				n++
			}
		}
		return n, last
	}
	if n, _ := stuck(want.Range[0], nil); n != 0 {
		t.Errorf("brownout of %v s: stuck for %d of %d seeds, want none", want.Range[0], n, seeds)
	}
	n, r := stuck(want.Range[1], nil)
	if n != int(seeds) {
		t.Errorf("brownout of %v s: stuck for %d of %d seeds, want all", want.Range[1], n, seeds)
	}
	near(t, "multiplier", r.Summary.FinalMultiplier, want.Multiplier, tol.Multiplier*want.Multiplier)
	near(t, "goodput", r.Summary.FinalGoodput, want.Goodput, 0.001)
	// With a 20 % budget: at no length.
	for _, length := range []float64{4, 5, 10} {
		if n, _ := stuck(length, func(s *Scenario) {
			s.Fleets[0].Client.Baseline.NoBudget = false
			s.Fleets[0].Client.Budget = Budget{Ratio: 0.2, Window: seconds(10)}
		}); n != 0 {
			t.Errorf("brownout of %v s with a budget: stuck for %d of %d seeds, want none", length, n, seeds)
		}
	}
	s := p.scenario(1, 1)
	s.Engine = Auto // a sample will do
	least, err := LeastTrigger(t.Context(), s, Options{Within: 20 * time.Millisecond}, 20*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !least.Sticks || least.Least.Seconds() < want.Range[0] || least.Least.Seconds() > want.Range[1] {
		t.Errorf("least trigger: %+v, want %v", least, want.Range)
	}
}

func vectorMetastableBudget(t *testing.T, v *simVector) {
	p := metastableParams{Timeout: 1, Retries: 3, BaseMS: 100, CapMS: 2000, Capacity: 0.5}
	var want struct {
		Recovery float64 `json:"recovery_after_trigger_s"`
	}
	var tol absolute
	v.read(t, &p, &want, &tol)
	is(t, "others", p.Others, "as metastable-threshold")
	bucket := Bucket{Deposit: p.Budget, Size: p.Budget * p.BucketS * p.Rate}
	s := p.scenario(p.BrownoutS, 1)
	s.Fleets[0].Client.Baseline = Baseline{Bucket: bucket}
	near(t, "recovery", mustRun(t, s).Summary.Recovery, want.Recovery, tol.Abs)
	s = p.scenario(p.BrownoutS, 1)
	s.Fleets[0].Instances = 100
	s.Fleets[0].Client.Baseline = Baseline{Bucket: Bucket{Deposit: p.Budget, Size: bucket.Size / 100}}
	near(t, "split a hundred ways: recovery", mustRun(t, s).Summary.Recovery, want.Recovery, tol.Abs)
}
