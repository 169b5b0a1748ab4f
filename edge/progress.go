package edge

import (
	"time"

	"github.com/forbear-go/forbear"
)

// Progress is what of a durable call is stored between its attempts. It is plain
// data; the zero value is that of a call before its first attempt.
type Progress struct {
	// Attempts counts the attempts that were made.
	Attempts int           `json:"attempts,omitempty"`
	State    forbear.State `json:"state,omitzero"`
	// Pending is a failure whose retry was refused for the moment. Nil when no
	// decision is open.
	Pending *Pending `json:"pending,omitempty"`
	// Postponed counts how often the call was postponed without an attempt.
	Postponed int `json:"postponed,omitempty"`
	// Last is the error_type of the latest failed attempt.
	Last string `json:"last,omitempty"`
}

// Pending is a failed attempt that waits for its decision, since the budget was
// spent, the breaker open or the dependency unhealthy.
type Pending struct {
	Class forbear.Class `json:"class"`
	Type  string        `json:"type"`
	At    time.Time     `json:"at"`
	// Until is when the server's own wait ends.
	Until time.Time `json:"until,omitzero"`
	// Refused counts how often the retry was refused since.
	Refused int `json:"refused,omitempty"`
}

// failure returns the failure, with what is left of the server's wait.
func (p *Pending) failure(now time.Time) forbear.Failure {
	f := forbear.Failure{Class: p.Class, Type: p.Type}
	if p.Until.After(now) {
		f.Hint.Floor = p.Until.Sub(now)
	}
	return f
}

// left returns what is left of a wait that counts from the failure. The server's
// own wait is never shortened; a clock that was set back ends the rest.
func (p *Pending) left(wait time.Duration, now time.Time) time.Duration {
	rest := p.At.Add(wait).Sub(now)
	if p.At.After(now) {
		rest = 0
	}
	if !p.Until.IsZero() {
		rest = max(rest, p.Until.Sub(now))
	}
	return max(rest, 0)
}
