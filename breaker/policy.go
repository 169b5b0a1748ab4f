package breaker

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/internal/enum"
	"github.com/forbear-go/forbear/internal/label"
)

// Policy configures a circuit breaker; the defaults and floors are those
// of INTG-STD-033.
//
// A rate opens the breaker when the attempts of a window show, with a confidence
// of 99.9 % (Wilson's lower bound), that it is above the threshold: all of 20,
// or 66 of 100, for a threshold of 0.5. Both windows of the standard are looked
// at, the last Window attempts and those of the last WindowTime. A threshold of
// 1 is never exceeded.
type Policy struct {
	Disabled    bool          `json:"disabled,omitzero"`
	FailureRate float64       `json:"failure_rate,omitzero"` // above it, it opens; default 0.5, at least 0.25
	SlowRate    float64       `json:"slow_rate,omitzero"`    // above it, it opens; default 0.8
	SlowCall    time.Duration `json:"slow_call,omitzero"`    // default: the per-attempt timeout
	Window      int           `json:"window,omitzero"`       // attempts; default 100
	WindowTime  time.Duration `json:"window_time,omitzero"`  // default 60 s
	MinCalls    int           `json:"min_calls,omitzero"`    // before a rate counts; default 20
	// OpenFor is the longest time that it stays open, default 30 s, at least
	// 5 s. It starts with 5 s, and doubles with each probing that fails after
	// the first; after a minute without an opening it starts anew.
	OpenFor time.Duration `json:"open_for,omitzero"`
	// Probes is how many are let through then; all must succeed. Default 5. When
	// none is left to give, and the latest was given longer ago than OpenFor and
	// SlowCall, those still under way are overdue, and their places are given again.
	Probes int `json:"probes,omitzero"`
	// OnBudget says what an exhausted retry budget means to the breaker.
	OnBudget BudgetEffect `json:"on_budget,omitzero"`
}

// BudgetEffect is what an exhausted retry budget means to the breaker.
type BudgetEffect uint8

const (
	// BudgetSignals shows it, in the events of the breaker and wherever the
	// breaker is shown, and changes nothing about when it opens: a budget is
	// spent whenever more than a fifth fails, and a breaker that opens then
	// turns 20 % of failures into nearly all.
	BudgetSignals BudgetEffect = iota
	// BudgetOpens opens the breaker at once, after MinCalls, as R-7 has it
	// literally.
	BudgetOpens
	// BudgetIgnored does not even show it.
	BudgetIgnored
)

// MinFailureRate is the lowest failure rate that may open a breaker.
const MinFailureRate = 0.25

// minOpenFor is how long a breaker stays open at first.
const minOpenFor = 5 * time.Second

// WithDefaults returns p with its zero fields filled in. attempt is the
// per-attempt timeout, which is the default of SlowCall.
func (p Policy) WithDefaults(attempt time.Duration) Policy {
	p.FailureRate = cmp.Or(p.FailureRate, 0.5)
	p.SlowRate = cmp.Or(p.SlowRate, 0.8)
	p.SlowCall = cmp.Or(p.SlowCall, attempt)
	p.Window = cmp.Or(p.Window, 100)
	p.WindowTime = cmp.Or(p.WindowTime, time.Minute)
	p.MinCalls = cmp.Or(p.MinCalls, 20)
	p.OpenFor = cmp.Or(p.OpenFor, 30*time.Second)
	p.Probes = cmp.Or(p.Probes, 5)
	return p
}

// Rule is the standard that a breaker follows.
const Rule = "INTG-STD-033"

// Check reports each value of b that makes no sense, or that leaves the standard
// and then with its rule. b's zero fields stand for their defaults.
func (b Policy) Check(report func(field, rule, format string, args ...any)) {
	for _, f := range []struct {
		name       string
		value, low float64
	}{{"breaker.failure_rate", b.FailureRate, MinFailureRate}, {"breaker.slow_rate", b.SlowRate, 0}} {
		switch {
		case !(f.value >= 0 && f.value <= 1): // NaN too
			report(f.name, "", "%v is not a fraction: want 0 to 1, such as 0.2", f.value)
		case f.value != 0 && f.value < f.low:
			report(f.name, Rule, "%s is under %s", label.Percent(f.value), label.Percent(f.low))
		}
	}
	if b.OpenFor != 0 && b.OpenFor < minOpenFor {
		report("breaker.open_for", Rule, "%v is under %v", b.OpenFor, minOpenFor)
	}
	if b.SlowCall < 0 {
		report("breaker.slow_call", "", "%v is negative", b.SlowCall)
	}
	if b.WindowTime < 0 || b.WindowTime > time.Hour {
		report("breaker.window_time", "", "%v is not in 0-1h, such as 30s", b.WindowTime)
	}
	if b.Window < 0 || b.Window > maxWindow {
		report("breaker.window", "", "%d is not in 1-%d", b.Window, maxWindow)
	}
	q := b.WithDefaults(0)
	if b.Probes > maxProbes {
		report("breaker.probes", "", "%d is not in 1-%d: all probes must succeed", b.Probes, maxProbes)
	}
	if b.MinCalls < 0 || b.Probes < 0 {
		report("breaker", "", "counts must not be negative: min_calls %d, probes %d", b.MinCalls, b.Probes)
	} else if b.WindowTime == 0 && q.MinCalls > q.Window {
		report("breaker.min_calls", "", "%d is more than the window of %d calls", q.MinCalls, q.Window)
	}
	if b.OnBudget > BudgetIgnored {
		report("breaker.on_budget", "", "%d is unknown: want signal, immediate or off", b.OnBudget)
	}
}

// maxProbes bounds what a dependency must do to be taken for recovered.
const maxProbes = 1000

// maxWindow bounds the memory of one breaker.
const maxWindow = 100_000

var budgetEffects = []string{"signal", "immediate", "off"}

// String returns the name that policy files use.
func (e BudgetEffect) String() string { return enum.Name(budgetEffects, uint8(e)) }

// MarshalText implements [encoding.TextMarshaler].
func (e BudgetEffect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *BudgetEffect) UnmarshalText(text []byte) error {
	i, err := enum.Parse("budget effect", budgetEffects, text)
	*e = BudgetEffect(i)
	return err
}
