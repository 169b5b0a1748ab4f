package model

import "github.com/forbear-go/forbear"

// Limit is a token bucket in front of a service. The zero value is none.
type Limit struct {
	// Rate is how many tokens come a second, and Burst how many the bucket holds.
	Rate, Burst float64
	// Refusal is the failure that a request without a token comes back with.
	Refusal forbear.Failure
}

// Tokens are those in the bucket of a [Limit] at a time, in ns since the start.
type Tokens struct {
	left float64
	at   int64
}

// Tokens returns the full bucket of l at the start.
func (l *Limit) Tokens() Tokens { return Tokens{left: l.Burst} }

// Take takes a token at the given time, or reports that there is none.
func (l *Limit) Take(t *Tokens, now int64) bool {
	t.left = min(l.Burst, t.left+l.Rate*float64(now-t.at)/1e9)
	t.at = now
	// A tenth of a second at 10 a second is one token, whatever the rounding.
	if t.left < 1-1e-9 {
		return false
	}
	t.left = max(t.left-1, 0)
	return true
}
