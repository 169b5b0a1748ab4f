package forbear_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

type traceCase struct {
	ID        string          `json:"id"`
	Algorithm string          `json:"algorithm"`
	Params    json.RawMessage `json:"params"`
	Basis     string          `json:"basis"`
	Note      string          `json:"note"`
	Events    []traceEvent    `json:"events"`
}

type traceEvent struct {
	TMS         int64    `json:"t_ms"`
	Op          string   `json:"op"`
	Count       *int     `json:"count"`
	Allowed     *int     `json:"allowed"`
	TokensAfter *float64 `json:"tokens_after"`
	// The chance of a local refusal after the event, for adaptive_throttle.
	Probability       *float64 `json:"probability"`
	RejectProbability *float64 `json:"reject_probability"`
	Note              string   `json:"note"`
}

// tracer is one algorithm under test: op does one operation and reports
// whether it was allowed.
type tracer struct {
	op     func(name string, now time.Time) (allowed bool, err error)
	tokens func(now time.Time) float64 // nil where there are none
	chance func(now time.Time) float64 // nil where there is none
	window time.Duration               // 0 where there is none
}

func notUnderstood(what, name string) error { return fmt.Errorf("%s %q is not understood", what, name) }

// newTracer builds the algorithm of a case.
func newTracer(algorithm string, params []byte) (*tracer, error) {
	switch algorithm {
	case "ratio":
		return ratioTracer(params)
	case "finagle":
		return finagleTracer(params)
	case "aws":
		return awsTracer(params)
	case "grpc":
		return grpcTracer(params)
	case "refill":
		return refillTracer(params)
	}
	return nil, notUnderstood("algorithm", algorithm)
}

// requestsAndRetries is the vocabulary of budgets that know these two only.
func requestsAndRetries(b budget.Budget) func(string, time.Time) (bool, error) {
	return func(name string, now time.Time) (bool, error) {
		switch name {
		case "request":
			b.Request(now)
			return true, nil
		case "retry":
			return b.Spend(now, budget.Transient), nil
		}
		return false, notUnderstood("op", name)
	}
}

func ratioTracer(params []byte) (*tracer, error) {
	var p struct {
		RatioPercent float64 `json:"ratio_percent"`
		WindowMS     int64   `json:"window_ms"`
		Check        string  `json:"check"`
		Floor        int     `json:"floor"`
	}
	if err := vectors.Decode(params, &p); err != nil {
		return nil, err
	}
	policy := budget.Policy{
		Ratio:      p.RatioPercent / 100,
		Window:     time.Duration(p.WindowMS) * time.Millisecond,
		MinRetries: p.Floor,
	}
	switch p.Check {
	case "after_of_total":
		policy.Of = budget.OfTotal
	case "after_of_initial":
	case "before_of_initial":
		policy.RoundUp = true
	default:
		return nil, notUnderstood("check", p.Check)
	}
	return &tracer{op: requestsAndRetries(budget.NewRatio(policy)), window: policy.Window}, nil
}

func grpcTracer(params []byte) (*tracer, error) {
	var p struct {
		MaxTokens  float64 `json:"max_tokens"`
		TokenRatio float64 `json:"token_ratio"`
	}
	if err := vectors.Decode(params, &p); err != nil {
		return nil, err
	}
	b := budget.NewGRPC(p.MaxTokens, p.TokenRatio)
	return &tracer{
		op: func(name string, now time.Time) (bool, error) {
			switch name {
			case "failure":
				b.Failed(now)
				return b.Spend(now, budget.Transient), nil
			case "success":
				b.Succeeded(now, 0, 0)
				return true, nil
			}
			return false, notUnderstood("op", name)
		},
		tokens: func(now time.Time) float64 { return p.MaxTokens - b.Level(now).Used },
	}, nil
}

func refillTracer(params []byte) (*tracer, error) {
	var p struct {
		Capacity int `json:"capacity"`
		// One rate, under the names that texts give it.
		PerS      float64 `json:"refill_per_s"`
		PerSec    float64 `json:"refill_per_sec"`
		PerSecond float64 `json:"refill_per_second"`
	}
	if err := vectors.Decode(params, &p); err != nil {
		return nil, err
	}
	b := budget.NewTokenBucket(p.Capacity, cmp.Or(p.PerS, p.PerSec, p.PerSecond))
	return &tracer{
		op:     requestsAndRetries(b),
		tokens: func(now time.Time) float64 { l := b.Level(now); return l.Allowed - l.Used },
	}, nil
}

// run plays the case, its time 0 being at start.
func (c *traceCase) run(start time.Time) error {
	b, err := newTracer(c.Algorithm, c.Params)
	if err != nil {
		return err
	}
	for i, e := range c.Events {
		if err := e.play(b, start.Add(time.Duration(e.TMS)*time.Millisecond)); err != nil {
			return fmt.Errorf("event %d (%s at %d ms): %w", i, e.Op, e.TMS, err)
		}
	}
	return nil
}

func (e *traceEvent) play(b *tracer, now time.Time) error {
	count, allowed, refused := 1, 0, false
	if e.Count != nil {
		count = *e.Count
	}
	if e.Op == "retry" && e.Allowed == nil {
		return fmt.Errorf("a retry without allowed says nothing")
	}
	for range count {
		ok, err := b.op(e.Op, now)
		if err != nil {
			return err
		}
		if ok && refused {
			return fmt.Errorf("allowed again after a refusal in the same instant")
		}
		if refused = !ok; ok {
			allowed++
		}
	}
	if e.Allowed != nil && allowed != *e.Allowed {
		return fmt.Errorf("%d of %d allowed, want %d", allowed, count, *e.Allowed)
	}
	if err := near("tokens", b.tokens, e.TokensAfter, now, 1e-6); err != nil {
		return err
	}
	if err := near("probability", b.chance, e.Probability, now, 1e-3); err != nil {
		return err
	}
	return near("probability", b.chance, e.RejectProbability, now, 1e-3)
}

func near(what string, read func(time.Time) float64, want *float64, now time.Time, tolerance float64) error {
	switch {
	case want == nil:
		return nil
	case read == nil:
		return notUnderstood("expectation", what)
	}
	if got := read(now); math.Abs(got-*want) > tolerance {
		return fmt.Errorf("%s %v, want %v", what, got, *want)
	}
	return nil
}

func finagleTracer(params []byte) (*tracer, error) {
	var p struct {
		TTLMS     int64   `json:"ttl_ms"`
		MinPerSec int     `json:"min_per_sec"`
		Percent   float64 `json:"percent"`
	}
	if err := vectors.Decode(params, &p); err != nil {
		return nil, err
	}
	ttl := time.Duration(p.TTLMS) * time.Millisecond
	return &tracer{op: requestsAndRetries(newFinagle(ttl, p.MinPerSec, p.Percent))}, nil
}

func awsTracer(params []byte) (*tracer, error) {
	var p struct {
		Capacity int `json:"capacity"`
		Costs    struct {
			Retry          *int `json:"retry"`
			RetryTimeout   *int `json:"retry_timeout"`
			RetryThrottled *int `json:"retry_throttled"`
		} `json:"costs"`
	}
	if err := vectors.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Costs.Retry == nil {
		return nil, fmt.Errorf("aws without the cost of a retry")
	}
	costs := awsCosts{Transient: *p.Costs.Retry, Timeout: *p.Costs.Retry, Throttled: *p.Costs.Retry}
	if p.Costs.RetryTimeout != nil {
		costs.Timeout = *p.Costs.RetryTimeout
	}
	if p.Costs.RetryThrottled != nil {
		costs.Throttled = *p.Costs.RetryThrottled
	}
	b := newAWS(p.Capacity, costs)
	last := budget.Transient
	spend := func(now time.Time, c budget.Cost) bool {
		ok := b.Spend(now, c)
		if ok {
			last = c
		}
		return ok
	}
	return &tracer{
		op: func(name string, now time.Time) (bool, error) {
			switch name {
			case "retry":
				return spend(now, budget.Transient), nil
			case "retry_timeout":
				return spend(now, budget.Timeout), nil
			case "retry_throttled":
				return spend(now, budget.Throttled), nil
			case "success_first_try":
				b.Succeeded(now, 0, 0)
				return true, nil
			case "success_after_retry":
				b.Succeeded(now, 1, last)
				return true, nil
			case "failure_final":
				b.Failed(now)
				return true, nil
			}
			return false, notUnderstood("op", name)
		},
		tokens: func(now time.Time) float64 { l := b.Level(now); return l.Allowed - l.Used },
	}, nil
}
