// Package gate lets metrics and the admin endpoint read the health gates of a
// Retryer. A caller has no use for the reading: it learns of a closed gate by the
// reason of a refusal. So the root package exports nothing for it.
package gate

import "time"

// Reading is what the health gates of one Retryer say at one moment.
type Reading struct {
	// Healthy says that retries may go on.
	Healthy bool
	// Rate is the share of good attempts in the gate's window, 0 to 1. It is
	// there only where the policy sets a limit, which Counted says: a gate of the
	// caller's counts nothing.
	Rate    float64
	Counted bool
}

// Of reads the gates of a *forbear.Retryer; ok is false for one without any. The
// root package sets it, being above this one: who has a Retryer has it set.
var Of func(retryer any, now time.Time) (r Reading, ok bool)
