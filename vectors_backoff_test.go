package forbear_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/forbeartest"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

type backoffFile struct {
	About       string           `json:"about"`
	Cases       []backoffCase    `json:"cases"`
	Statistics  *statistics      `json:"statistics"`
	Forbidden   *forbidden       `json:"forbidden"`
	Webhook     *webhookSchedule `json:"webhook_schedule"`
	RetryCounts []retryCount     `json:"retry_count_limits"`
	// Judged in package forrst; here it must be there and be readable.
	Forrst []struct {
		Code        string `json:"code"`
		Strategy    string `json:"strategy"`
		BaseMS      int64  `json:"base_ms"`
		MaxAttempts *int   `json:"max_attempts"`
	} `json:"forrst_defaults"`
}

type backoffCase struct {
	ID         string  `json:"id"`
	BaseMS     float64 `json:"base_ms"`
	CapMS      float64 `json:"cap_ms"`
	FirstIndex int     `json:"index_of_first_retry"`
	CeilingsMS []int64 `json:"ceilings_ms"`
	Basis      string  `json:"basis"`
	Note       string  `json:"note"`
	Jitter     string  `json:"jitter"`
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// policy returns a policy with the case's backoff. Where the text starts one
// step later, the base is that step. The counts are beyond R-2 on purpose:
// Decide does not judge its policy.
func (c *backoffCase) policy() *forbear.Policy {
	return &forbear.Policy{
		Kind:       forbear.Event,
		MaxRetries: len(c.CeilingsMS) + 1,
		Backoff:    forbear.Backoff{Base: millis(c.BaseMS) << c.FirstIndex, Cap: millis(c.CapMS)},
	}
}

var transient = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}

func TestVectorsBackoff(t *testing.T) {
	var file backoffFile
	vectors.Load(t, "backoff.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			c.run(t)
			if file.Statistics != nil {
				file.Statistics.run(t, &c)
			}
		})
	}
	if file.Forbidden != nil {
		t.Run("forbidden", file.Forbidden.run)
	}
	if file.Webhook != nil {
		t.Run("webhook schedule", file.Webhook.run)
	}
	for _, c := range file.RetryCounts {
		t.Run("count "+c.Context, c.run)
	}
	for _, f := range file.Forrst {
		if f.Code == "" || f.Strategy == "" {
			t.Errorf("forrst default %+v is incomplete", f)
		}
	}
}

func (c *backoffCase) run(t *testing.T) {
	switch c.Jitter {
	case "", "full", "plus or minus 20 %":
		// R-1 forbids the last: forbear draws fully under the same ceiling.
	default:
		t.Fatal(notUnderstood("jitter", c.Jitter))
	}
	p := c.policy()
	now := time.Unix(1000, 0)
	for i, want := range c.CeilingsMS {
		ceiling := time.Duration(want) * time.Millisecond
		if got := duration.Ceiling(millis(c.BaseMS), millis(c.CapMS), c.FirstIndex+i); got != ceiling {
			t.Errorf("Ceiling before retry %d: got %v, want %v", i+1, got, ceiling)
		}
		d := forbear.Decide(p, forbear.State{Attempt: i + 1}, transient, now, func() float64 { return math.Nextafter(1, 0) })
		if !d.Retry || d.Floor != 0 || d.Ceiling != ceiling || d.Wait > ceiling || d.Wait < ceiling-time.Microsecond {
			t.Errorf("retry %d: got %+v, want a wait just below %v", i+1, d, ceiling)
		}
	}
}

// statistics are the bounds that uniform waits must keep to and that other
// jitters break.
type statistics struct {
	Samples         int        `json:"samples"`
	PerCeiling      bool       `json:"per_ceiling"`
	Mean            [2]float64 `json:"mean_over_ceiling"`
	MinBelow        float64    `json:"min_over_ceiling_below"`
	MaxAbove        float64    `json:"max_over_ceiling_above"`
	NeverAbove      bool       `json:"never_above_ceiling"`
	NeverNegative   bool       `json:"never_negative"`
	BelowHalf       [2]float64 `json:"share_below_half"`
	KSBelow         float64    `json:"ks_uniform_d_below"`
	KSAlpha         float64    `json:"ks_alpha"`
	Variance        [2]float64 `json:"variance_over_ceiling_squared"`
	Lag1Below       float64    `json:"lag1_correlation_abs_below"`
	InstancesDiffer bool       `json:"two_instances_must_differ"`
	Note            string     `json:"note"`
}

func (s *statistics) run(t *testing.T, c *backoffCase) {
	p, now := c.policy(), time.Unix(1000, 0)
	for i, ms := range c.CeilingsMS {
		// One seed for every ceiling: the same sample, scaled.
		draw := rand.New(rand.NewPCG(11, 12)).Float64
		sample := make([]float64, s.Samples)
		for j := range sample {
			d := forbear.Decide(p, forbear.State{Attempt: i + 1}, transient, now, draw)
			sample[j] = float64(d.Wait) / float64(time.Duration(ms)*time.Millisecond)
		}
		for _, fault := range s.faults(sample) {
			t.Errorf("retry %d: %s", i+1, fault)
		}
	}
	one, other := waitsOf(t, p), waitsOf(t, p)
	if s.InstancesDiffer && one == other {
		t.Error("two Retryers wait alike")
	}
}

// waitsOf returns the first waits of a Retryer with its own randomness.
func waitsOf(t *testing.T, p *forbear.Policy) (waits [5]time.Duration) {
	q := *p
	q.MaxRetries = 5
	r := quiet(t, q, forbear.WithBudget(unlimited()), forbear.WithCallerDeadLetter())
	s := forbear.State{}
	for i := range waits {
		waits[i] = r.Next(&s, transient, time.Unix(1000, 0)).Wait
	}
	return waits
}

// The bounds of the statistics reject the jitters that R-1 forbids.
func TestStatisticsRejectOtherJitters(t *testing.T) {
	var file backoffFile
	vectors.Load(t, "backoff.json", &file)
	s := file.Statistics
	if s == nil {
		t.Fatal("no statistics")
	}
	for name, shape := range jitters {
		sample := sampleOf(s.Samples, shape)
		faults := s.faults(sample)
		if full := name == "full"; full != (len(faults) == 0) {
			t.Errorf("%s jitter: faults %v", name, faults)
		}
	}
}

// faults lists the bounds that a sample, in parts of its ceiling, breaks.
func (s *statistics) faults(sample []float64) (faults []string) {
	check := func(ok bool, name string) {
		if !ok {
			faults = append(faults, name)
		}
	}
	within := func(x float64, r [2]float64) bool { return x >= r[0] && x <= r[1] }
	m := momentsOf(sample)
	check(within(m.mean, s.Mean), "mean")
	check(within(m.variance, s.Variance), "variance")
	check(within(m.belowHalf, s.BelowHalf), "share below half")
	check(math.Abs(m.lag1) < s.Lag1Below, "lag-1 correlation")
	check(slices.Min(sample) < s.MinBelow, "minimum")
	check(slices.Max(sample) > s.MaxAbove, "maximum")
	check(!s.NeverAbove || slices.Max(sample) <= 1, "above the ceiling")
	check(!s.NeverNegative || slices.Min(sample) >= 0, "negative")
	check(kolmogorovSmirnov(sample) < s.KSBelow, "Kolmogorov-Smirnov")
	return faults
}

type forbidden struct {
	Rule   string `json:"rule"`
	Traces []struct {
		WaitsMS     []float64 `json:"waits_ms"`
		ManyFirstMS []float64 `json:"many_first_waits_ms"`
		CeilingMS   float64   `json:"ceiling_ms"`
		Flag        string    `json:"flag"`
	} `json:"traces"`
}

func (f *forbidden) run(t *testing.T) {
	for i, trace := range f.Traces {
		var got forbeartest.Fault
		switch {
		case len(trace.WaitsMS) > 0 && len(trace.ManyFirstMS) == 0:
			got = forbeartest.SequenceFault(durations(trace.WaitsMS))
		case len(trace.ManyFirstMS) > 0 && len(trace.WaitsMS) == 0:
			got = forbeartest.JitterFault(durations(trace.ManyFirstMS), millis(trace.CeilingMS))
		default:
			t.Fatalf("trace %d has neither or both kinds of waits", i)
		}
		if string(got) != trace.Flag {
			t.Errorf("trace %d: got %q, want %q", i, got, trace.Flag)
		}
	}
}

func durations(ms []float64) []time.Duration {
	d := make([]time.Duration, len(ms))
	for i, x := range ms {
		d[i] = millis(x)
	}
	return d
}

type webhookSchedule struct {
	Basis    string    `json:"basis"`
	Attempts int       `json:"attempts"`
	DelayS   []float64 `json:"delay_before_attempt_s"`
	TotalS   float64   `json:"total_s"`
	Allowed  [2]int    `json:"allowed_attempts"`
	Default  int       `json:"default_attempts"`
	LimitS   float64   `json:"total_limit_s"`
}

func (w *webhookSchedule) run(t *testing.T) {
	p := forbear.Policy{Kind: forbear.Webhook, MaxAttempts: w.Attempts}
	if len(w.DelayS) != w.Attempts {
		t.Fatalf("%d delays for %d attempts", len(w.DelayS), w.Attempts)
	}
	var total, before time.Duration
	now := time.Unix(1000, 0)
	for i, s := range w.DelayS {
		step := millis(s * 1000)
		if total += step; i > 0 {
			d := forbear.Decide(&p, forbear.State{Attempt: i}, transient, now, func() float64 { return 0.5 })
			if !d.Retry || d.Floor != before || d.Ceiling != step || d.Wait != before+(step-before)/2 {
				t.Errorf("attempt %d: got %+v, want [%v, %v]", i+1, d, before, step)
			}
		}
		before = step
	}
	if total != millis(w.TotalS*1000) {
		t.Errorf("steps add up to %v, want %v s", total, w.TotalS)
	}
	if d := forbear.Decide(&p, forbear.State{Attempt: w.Attempts}, transient, now, func() float64 { return 0 }); d.Retry {
		t.Errorf("attempt %d is one too many", w.Attempts+1)
	}
	def, low, high := forbear.Webhook.Range()
	if def != w.Default || low != w.Allowed[0] || high != w.Allowed[1] {
		t.Errorf("Range: got %d (%d-%d), want %d (%v)", def, low, high, w.Default, w.Allowed)
	}
	if got := (forbear.Policy{Kind: forbear.Webhook}).WithDefaults().Total; got != millis(w.LimitS*1000) {
		t.Errorf("total: got %v, want %v s", got, w.LimitS)
	}
}

type retryCount struct {
	Context string `json:"context"`
	Default int    `json:"default"`
	Low     int    `json:"low"`
	High    int    `json:"high"`
}

func (c retryCount) run(t *testing.T) {
	kind, ok := map[string]forbear.Kind{
		"sync": forbear.Sync, "async": forbear.Event, "webhook": forbear.Webhook, "batch": forbear.Batch, "grpc": forbear.GRPC,
	}[c.Context]
	if !ok {
		t.Fatal(notUnderstood("context", c.Context))
	}
	if def, low, high := kind.Range(); def != c.Default || low != c.Low || high != c.High {
		t.Errorf("got %d (%d-%d), want %d (%d-%d)", def, low, high, c.Default, c.Low, c.High)
	}
	for n := -1; n <= c.High+3; n++ {
		p := forbear.Policy{Kind: kind, MaxRetries: n}
		if kind == forbear.Webhook {
			p = forbear.Policy{Kind: kind, MaxAttempts: n}
		}
		want := n == 0 || n >= c.Low && n <= c.High // 0 is the default
		if err := p.Validate(); (err == nil) != want {
			t.Errorf("count %d: got %v, want accepted = %v", n, err, want)
		}
	}
}
