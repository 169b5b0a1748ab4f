package forbear_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/vectors"
)

func TestVectorsBudgetTrace(t *testing.T) {
	var file struct {
		About         string          `json:"about"`
		Cases         []traceCase     `json:"cases"`
		Amplification []amplification `json:"amplification"`
	}
	vectors.Load(t, "budget-trace.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			b, err := newTracer(c.Algorithm, c.Params)
			if err != nil {
				t.Fatal(err)
			}
			// Where the slots of a window happen to begin must not matter.
			for i := range 4 {
				start := time.Now().Add(time.Duration(i) * b.window / 120)
				if err := c.run(start); err != nil {
					t.Errorf("start %d: %v (%s)", i, err, c.Basis)
				}
			}
		})
	}
	for i, a := range file.Amplification {
		t.Run(fmt.Sprintf("amplification %d", i), a.run)
	}
}

// amplification is a row of worked numbers: what the dependency sees when a
// part of the calls fails at every attempt, or when a budget rules.
type amplification struct {
	InitialRPS int     `json:"initial_rps"`
	Fail       float64 `json:"fail"`
	Retries    int     `json:"retries"`
	Budget     float64 `json:"budget"`
	Of         string  `json:"of"`
	RPS        float64 `json:"rps"`
	Note       string  `json:"note"`
}

// rate plays the row and returns the attempts a second, in the steady state.
func (a amplification) rate(t *testing.T) float64 {
	p := forbear.Policy{MaxRetries: a.Retries, Backoff: forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}}
	l := load{rate: a.InitialRPS, fail: a.Fail, duration: 60 * time.Second}
	if a.Budget == 0 {
		if a.Retries > 5 {
			p.Kind = forbear.Event // the kind that allows up to 10
		}
		l.duration = 20 * time.Second
		return l.simulate(t, p, unlimited()).rate(10, 20)
	}
	l.fail = 1
	p.Budget.Ratio = a.Budget
	if a.Of == "total" {
		p.Budget.Of = budget.OfTotal
	} else if a.Of != "initial" {
		t.Fatal(notUnderstood("of", a.Of))
	}
	return l.simulate(t, p, nil).rate(30, 60)
}

func (a amplification) run(t *testing.T) {
	if a.Budget == 0 && a.Retries == 0 {
		t.Fatal("neither retries nor a budget")
	}
	// The edge slots of the windows leave out up to 1/30.
	got, slack := a.rate(t), 0.002*a.RPS
	low := a.RPS - slack
	if a.Budget > 0 {
		low -= (a.RPS - float64(a.InitialRPS)) / 15
	}
	if got > a.RPS+slack || got < low {
		t.Errorf("%d calls a second became %.1f, want %.1f", a.InitialRPS, got, a.RPS)
	}
	if a.Budget > 0 {
		of := budget.OfInitial
		if a.Of == "total" {
			of = budget.OfTotal
		}
		m := budget.Policy{Ratio: a.Budget, Of: of}.MaxAmplification()
		if math.Abs(m*float64(a.InitialRPS)-a.RPS) > 0.001 {
			t.Errorf("MaxAmplification %v, want %v", m, a.RPS/float64(a.InitialRPS))
		}
	}
}

// The vocabulary that the file at hand does not use.
func TestTraceVocabulary(t *testing.T) {
	for _, tt := range []struct{ name, algorithm, params, events string }{
		{
			"Finagle's own defaults", "finagle", `{"ttl_ms":10000,"min_per_sec":10,"percent":0.2}`,
			`[{"t_ms":0,"op":"retry","count":101,"allowed":100},{"t_ms":1,"op":"request","count":4},{"t_ms":2,"op":"retry","count":1,"allowed":0},
			{"t_ms":3,"op":"request"},{"t_ms":4,"op":"retry","count":2,"allowed":1},{"t_ms":15000,"op":"retry","count":101,"allowed":100}]`,
		},
		{
			"R-7 of initial", "ratio", `{"ratio_percent":20,"window_ms":30000,"check":"after_of_initial"}`,
			`[{"t_ms":0,"op":"request","count":1000},{"t_ms":10,"op":"retry","count":300,"allowed":200}]`,
		},
		{
			"before, one of one", "ratio", `{"ratio_percent":10,"window_ms":60000,"check":"before_of_initial"}`,
			`[{"t_ms":0,"op":"retry","count":1,"allowed":0},{"t_ms":0,"op":"request","count":1},{"t_ms":1,"op":"retry","count":2,"allowed":1}]`,
		},
		{
			"before, 11 of 101", "ratio", `{"ratio_percent":10,"window_ms":60000,"check":"before_of_initial"}`,
			`[{"t_ms":0,"op":"request","count":101},{"t_ms":1,"op":"retry","count":20,"allowed":11}]`,
		},
		{
			"200 tokens, 20 a second", "refill", `{"capacity":200,"refill_per_second":20}`,
			`[{"t_ms":0,"op":"retry","count":250,"allowed":200,"tokens_after":0},
			{"t_ms":1000,"op":"retry","count":25,"allowed":20},{"t_ms":1500,"op":"retry","count":25,"allowed":10},
			{"t_ms":60000,"op":"retry","count":250,"allowed":200,"tokens_after":0}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := traceCase{Algorithm: tt.algorithm, Params: []byte(tt.params)}
			if err := vectors.Decode([]byte(tt.events), &c.Events); err != nil {
				t.Fatal(err)
			}
			if err := c.run(time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTraceRunnerFailsOnWhatItDoesNotUnderstand(t *testing.T) {
	one, half := 1, 0.5
	ratio := `{"ratio_percent":20,"window_ms":30000,"check":"after_of_total"}`
	for _, tt := range []struct {
		name string
		c    traceCase
	}{
		{"algorithm", traceCase{Algorithm: "leaky", Params: []byte(`{}`)}},
		{"check", traceCase{Algorithm: "ratio", Params: []byte(`{"check":"sideways"}`)}},
		{"param", traceCase{Algorithm: "grpc", Params: []byte(`{"max_tokens":1,"surprise":1}`)}},
		{"op", traceCase{Algorithm: "ratio", Params: []byte(ratio), Events: []traceEvent{{Op: "hedge"}}}},
		{"nothing expected", traceCase{Algorithm: "ratio", Params: []byte(ratio), Events: []traceEvent{{Op: "retry"}}}},
		{"tokens of a ratio", traceCase{Algorithm: "ratio", Params: []byte(ratio), Events: []traceEvent{{Op: "request", TokensAfter: &half}}}},
		{"wrong answer", traceCase{Algorithm: "ratio", Params: []byte(ratio), Events: []traceEvent{{Op: "retry", Allowed: &one}}}},
	} {
		if err := tt.c.run(time.Now()); err == nil {
			t.Errorf("%s: the runner let it pass", tt.name)
		}
	}
}
