package forbear

import (
	"time"

	"github.com/forbear-go/forbear/budget"
)

// Decision is what the policy makes of one failure.
type Decision struct {
	// Retry says whether another attempt may be made, after Wait.
	Retry bool
	Wait  time.Duration
	// Floor and Ceiling bound every Wait that could have been drawn here, the
	// hint's spread included.
	Floor, Ceiling time.Duration
	Reason         Reason
	// Class is the failure's class under the policy's overrides.
	Class Class
	// Cost is what the retry costs the budget.
	Cost budget.Cost
	// Paced says that the budget is spent and the retry one of those that
	// durable work may make beyond it.
	Paced bool
	// free says that the retry was not taken from the budget: see Failure.free.
	free bool
	// Level is the budget's reading, when it refused the retry.
	Level budget.Level
}

// stop returns d as a refusal for the given reason.
func (d Decision) stop(r Reason) Decision {
	return Decision{Reason: r, Class: d.Class, Cost: d.Cost}
}

func costOf(c Class) budget.Cost {
	switch c {
	case ClassTimeout:
		return budget.Timeout
	case ClassThrottled:
		return budget.Throttled
	default:
		return budget.Transient
	}
}
