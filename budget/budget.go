package budget

import (
	"time"
)

// Budget bounds the retries that a client may add to a dependency's load,
// whatever the number of its callers. Implementations are safe for
// concurrent use and take the time as an argument.
type Budget interface {
	// Request records that a logical call sends its first attempt.
	Request(now time.Time)
	// Spend asks for one retry and takes it when it may be had.
	Spend(now time.Time, c Cost) bool
	// Refund gives back a retry that was spent and then not sent.
	Refund(now time.Time, c Cost)
	// Level returns how much of the budget is in use.
	Level(now time.Time) Level
}

// Level is a budget's reading. Used over Allowed is the utilization.
type Level struct {
	Used    float64
	Allowed float64
}

// Utilization returns Used over Allowed: 0 for an idle budget, 1 for a spent
// one. A budget that allows nothing counts as spent.
func (l Level) Utilization() float64 {
	if l.Allowed <= 0 {
		return 1
	}
	return l.Used / l.Allowed
}

// Cost is the kind of failure behind a retry. Some budgets charge by kind.
type Cost uint8

const (
	Transient Cost = iota
	Timeout
	Throttled
)
