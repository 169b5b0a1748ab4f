package storm

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
	"github.com/forbear-go/forbear/storm/internal/model"
)

type simFile struct {
	About   string      `json:"about"`
	Version int         `json:"version"`
	Entries []simVector `json:"entries"`
}

type simVector struct {
	ID        string          `json:"id"`
	Source    string          `json:"source"`
	Kind      string          `json:"kind"`
	Params    json.RawMessage `json:"params"`
	Expect    json.RawMessage `json:"expect"`
	Tolerance json.RawMessage `json:"tolerance"`
	Note      string          `json:"note"`
}

// read decodes the three parts of v strictly: what a runner does not
// understand must fail.
func (v *simVector) read(t *testing.T, params, expect, tolerance any) {
	t.Helper()
	for _, part := range []struct {
		name string
		data json.RawMessage
		dst  any
	}{{"params", v.Params, params}, {"expect", v.Expect, expect}, {"tolerance", v.Tolerance, tolerance}} {
		if err := vectors.Decode(part.data, part.dst); err != nil {
			t.Fatalf("%s: %v", part.name, err)
		}
	}
}

// is fails the test unless the fixed text is what this runner implements.
func is(t *testing.T, name, got string, want ...string) {
	t.Helper()
	if slices.Contains(want, got) {
		return
	}
	t.Fatalf("%s %q is not understood: want one of %q", name, got, want)
}

func near(t *testing.T, name string, got, want, abs float64) {
	t.Helper()
	if !(math.Abs(got-want) <= abs+1e-12) {
		t.Errorf("%s: got %.5g, want %.5g +- %.3g", name, got, want, abs)
		return
	}
	t.Logf("%s: %.5g (want %.5g +- %.3g)", name, got, want, abs)
}

// runners are by the beginning of the entry's id; the longest wins.
var runners = map[string]func(*testing.T, *simVector){
	"herd":                 vectorHerd,
	"stack":                vectorStack,
	"waits":                vectorWaits,
	"fleet":                vectorFleet,
	"aws-occ":              vectorContention,
	"aws-occ-order":        vectorContentionOrder,
	"brooker-retry":        vectorBrookerRetry,
	"brooker-breaker":      vectorBrookerBreaker,
	"brooker-collapse":     vectorBrookerCollapse,
	"metastable-threshold": vectorMetastableThreshold,
	"metastable-budget":    vectorMetastableBudget,
	"mm1":                  vectorMM1,
	"sre-adaptive":         vectorAdaptive,
	"grpc-throttle":        vectorGRPCThrottle,
}

func TestVectorsSimulation(t *testing.T) {
	var file simFile
	vectors.Load(t, "simulation.json", &file)
	if file.Version != 1 || len(file.Entries) == 0 {
		t.Fatalf("version %d with %d entries", file.Version, len(file.Entries))
	}
	for i := range file.Entries {
		v := &file.Entries[i]
		t.Run(v.ID, func(t *testing.T) {
			is(t, "kind", v.Kind, "exact", "statistical", "order", "metastable")
			best := ""
			for prefix := range runners {
				if strings.HasPrefix(v.ID, prefix) && len(prefix) > len(best) {
					best = prefix
				}
			}
			if best == "" {
				t.Fatalf("no runner for %q", v.ID)
			}
			runners[best](t, v)
		})
	}
}

func millis(ms float64) Duration { return Duration(ms * 1e6) }

type absolute struct {
	Abs float64 `json:"abs"`
}

func vectorHerd(t *testing.T, v *simVector) {
	var p struct {
		Clients int     `json:"clients"`
		BaseMS  float64 `json:"base_ms"`
		Jitter  string  `json:"jitter"`
		Retries int     `json:"retries"`
		RTTMS   float64 `json:"rtt_ms"`
	}
	var want struct {
		Waves []float64 `json:"waves_at_ms"`
	}
	var tol absolute
	v.read(t, &p, &want, &tol)
	is(t, "jitter", p.Jitter, "none")
	last := want.Waves[len(want.Waves)-1]
	r := mustRun(t, Scenario{
		Duration: millis(last + 500), Bin: ms, Engine: Exact,
		Fleets: []Fleet{{Burst: p.Clients, Client: Client{
			Breaker: new(false),
			Retries: &p.Retries, Base: millis(p.BaseMS), RTT: millis(p.RTTMS), Timeout: seconds(60),
			Baseline: Baseline{Wait: "exponential", NoBudget: true, Unchecked: true},
		}}},
		Services: []Service{{Name: "s"}},
		Faults:   []Fault{{Kind: Outage, For: seconds(3600)}},
	})
	var waves []float64
	for i, rate := range r.Series.Retry {
		if rate*r.Bin.Seconds() > float64(p.Clients)/100 {
			waves = append(waves, float64(i)*1)
		}
	}
	if len(waves) != len(want.Waves) {
		t.Fatalf("waves at %v ms, want %v", waves, want.Waves)
	}
	for i := range waves {
		near(t, "wave", waves[i], want.Waves[i], tol.Abs)
	}
}

// stack returns so many services that call each other; every caller makes so
// many attempts, and the deepest service is down.
func stack(layers, attempts int, oblivious bool) Scenario {
	k := Client{Retries: new(attempts - 1), Timeout: seconds(10), Breaker: new(false), Baseline: Baseline{
		Wait: "none", NoBudget: true, Oblivious: oblivious, Unchecked: true,
	}}
	s := Scenario{
		Duration: seconds(1), Bin: 50 * ms, Engine: Exact,
		Fleets: []Fleet{{Burst: 10, Client: k}},
		Faults: []Fault{{Kind: Outage, Service: name(layers), For: seconds(10)}},
	}
	for i := 1; i <= layers; i++ {
		v := Service{Name: name(i)}
		if i < layers {
			v.Calls = []Edge{{To: name(i + 1), Client: k}}
		}
		s.Services = append(s.Services, v)
	}
	return s
}

func name(i int) string { return string(rune('a' + i - 1)) }

func deepest(r *Result) float64 { return r.Services[len(r.Services)-1].PerCall }

func vectorStack(t *testing.T, v *simVector) {
	var p struct {
		Layers   int     `json:"retrying_layers"`
		Attempts int     `json:"attempts_per_layer"`
		Failure  string  `json:"failure"`
		Backoff  float64 `json:"backoff"`
	}
	var want struct {
		Deepest  float64 `json:"deepest_attempts_per_request"`
		OneLayer float64 `json:"one_layer_only"`
	}
	var tol absolute
	v.read(t, &p, &want, &tol)
	is(t, "failure", p.Failure, "deepest dependency fails always")
	near(t, "backoff", p.Backoff, 0, 0)
	near(t, "every layer retries", deepest(mustRun(t, stack(p.Layers, p.Attempts, true))), want.Deepest, tol.Abs)
	near(t, "one layer retries", deepest(mustRun(t, stack(p.Layers, p.Attempts, false))), want.OneLayer, tol.Abs)
}

func vectorWaits(t *testing.T, v *simVector) {
	var p struct {
		BaseMS   float64 `json:"base_ms"`
		CapMS    float64 `json:"cap_ms"`
		Exponent string  `json:"exponent"`
		Jitter   string  `json:"jitter"`
	}
	var want struct {
		Ceilings    []float64 `json:"ceilings_ms"`
		Means       []float64 `json:"means_ms"`
		SumMean     float64   `json:"sum_mean_ms"`
		SumNoJitter float64   `json:"sum_nojitter_ms"`
		FirstCapped int       `json:"first_capped_n"`
	}
	var tol struct {
		MeansRel float64 `json:"means_rel"`
	}
	v.read(t, &p, &want, &tol)
	is(t, "jitter", p.Jitter, "full")
	is(t, "exponent", p.Exponent, "n=1..3", "n=0..2")
	first := int(p.Exponent[2] - '0')
	policy := forbear.Policy{Kind: forbear.Event, MaxRetries: 10, Backoff: forbear.Backoff{Base: millis(p.BaseMS).D(), Cap: millis(p.CapMS).D()}}
	decide := func(n int, u float64) forbear.Decision {
		return forbear.Decide(&policy, forbear.State{Attempt: n + 1}, model.FailedResponse, time.Now(), func() float64 { return u })
	}
	var sum, ceilings float64
	for i := range want.Ceilings {
		n := first + i
		near(t, "ceiling", decide(n, 0).Ceiling.Seconds()*1e3, want.Ceilings[i], 0)
		mean := 0.0
		const draws = 1000
		for k := range draws {
			mean += decide(n, (float64(k)+0.5)/draws).Wait.Seconds() * 1e3 / draws
		}
		near(t, "mean", mean, want.Means[i], tol.MeansRel*want.Means[i])
		sum += mean
		ceilings += decide(n, 0).Ceiling.Seconds() * 1e3
	}
	near(t, "sum of means", sum, want.SumMean, tol.MeansRel*want.SumMean)
	near(t, "sum without jitter", ceilings, want.SumNoJitter, 0)
	n := 0
	for policy.Backoff.Base<<n < policy.Backoff.Cap {
		n++
	}
	near(t, "first capped", float64(n), float64(want.FirstCapped), 0)
}

func vectorFleet(t *testing.T, v *simVector) {
	var p struct {
		Clients int    `json:"clients"`
		Retries int    `json:"retries"`
		Failure string `json:"failure"`
	}
	var want struct {
		Multiplier float64 `json:"multiplier"`
	}
	var tol absolute
	v.read(t, &p, &want, &tol)
	is(t, "failure", p.Failure, "total")
	r := mustRun(t, Scenario{
		Duration: seconds(20), Engine: Exact,
		Fleets: []Fleet{{Burst: p.Clients, Instances: p.Clients, Client: Client{
			Breaker: new(false),
			Retries: &p.Retries, Baseline: Baseline{Wait: "none", NoBudget: true, Unchecked: true},
		}}},
		Services: []Service{{Name: "s"}},
		Faults:   []Fault{{Kind: Outage, For: seconds(3600)}},
	})
	near(t, "multiplier", r.Summary.Multiplier, want.Multiplier, tol.Abs)
}
