package health

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/internal/label"
)

// Policy configures a health gate. The zero value means no gate: retries are
// the cure of a partial failure, and how much of one a caller wants cured is not
// ours to guess.
type Policy struct {
	// MinSuccess stops retries while the rate of good attempts is below it, 0 to
	// 1, with a confidence of 99.9 %: for 0.5, when 17 of 20 attempts have
	// failed, or 66 of 100. 0 sets no limit.
	MinSuccess float64 `json:"min_success,omitzero"`
	// Window is how far back attempts count; default 60 s.
	Window time.Duration `json:"window,omitzero"`
	// MinCalls is how many attempts a window must hold before its rate counts;
	// default 20.
	MinCalls int `json:"min_calls,omitzero"`
}

// Enabled reports whether p asks for a gate.
func (p Policy) Enabled() bool { return p.MinSuccess != 0 }

// WithDefaults returns p with its zero fields filled in. No gate stays none.
func (p Policy) WithDefaults() Policy {
	if !p.Enabled() {
		return p
	}
	p.Window = cmp.Or(p.Window, time.Minute)
	p.MinCalls = cmp.Or(p.MinCalls, 20)
	return p
}

// Check reports each value of p that makes no sense. The standard sets no figures
// for a gate, so no rule is among them. A limit of 1 is refused: the first failure
// would stop all retries.
func (p Policy) Check(report func(field, rule, format string, args ...any)) {
	if !(p.MinSuccess >= 0 && p.MinSuccess <= 1) { // NaN too
		report("health.min_success", "", "%v is not a fraction: want 0 to 1, such as 0.2", p.MinSuccess)
	} else if p.MinSuccess == 1 {
		report("health.min_success", "", "%s stops retries at the first failure: set disabled instead", label.Percent(p.MinSuccess))
	}
	if p.Window < 0 || p.Window > time.Hour {
		report("health.window", "", "%v is not in 0-1h, such as 30s", p.Window)
	}
	if p.MinCalls < 0 {
		report("health.min_calls", "", "%d is negative", p.MinCalls)
	}
	if !p.Enabled() && p != (Policy{}) {
		report("health", "", "has a window or min_calls without min_success: set min_success")
	}
}
