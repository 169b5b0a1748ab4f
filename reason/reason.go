// Package reason names why a call was retried or ended: the Reason of a
// forbear.Decision, of a forbear.Error and of the events of an observer.
//
// Each has a name, which logs, metrics and explanations carry, and the rule of the
// standard that it follows from. Programs that only want to know what kind of end a
// call had use errors.Is with the sentinels of package forbear.
package reason

// Reason says why a call was retried or ended. The zero value is None.
type Reason uint8

const (
	None Reason = iota

	Retryable // retry: the failure may go away
	Refresh   // retry: once, with refreshed credentials
	Resend    // retry: a send that the transport below would have repeated by itself

	Success        // nothing failed
	Canceled       // the caller gave up
	Deadline       // no time is left for another attempt
	Certificate    // the peer's certificate was refused
	Terminal       // the failure is not retryable
	Unknown        // the failure was not recognised
	Unauthorized   // credentials refused and no refresh left
	ServerStop     // the server asked not to be retried
	ExhaustedBelow // a layer below has used its retries
	NotReplayable  // the request's body is gone
	NoKey          // not idempotent and without a usable key
	BreakerOpen    // the circuit breaker is open
	Unhealthy      // the health gate says no
	Disabled       // the policy or the caller allows no retry
	Inner          // an outer layer is retrying already
	Exhausted      // all retries are used
	DNSLimit       // DNS failures get two attempts
	HintTooLong    // the server's wait does not fit
	Budget         // the retry budget is spent
	NotOwner       // another service owns the retries
	BulkheadFull   // too many calls are under way
	RefreshFailed  // fresh credentials could not be had
	WeakCredential // a retry would go out with a weaker credential
	Paced          // its turn under the dependency's limit would come too late
)

// resilience is the companion standard that a breaker, a bulkhead and a pacer follow: it
// is breaker.Rule.
const resilience = "INTG-STD-033"

// reasons holds each reason's name and the rule that it follows from.
var reasons = [...]struct{ name, rule string }{
	None:           {"", ""},
	Retryable:      {"retryable", "R-4"},
	Refresh:        {"token_refresh", "R-9"},
	Resend:         {"resend", "R-2"},
	Success:        {"success", ""},
	Canceled:       {"canceled", "R-3"},
	Deadline:       {"deadline", "R-3"},
	Certificate:    {"tls_certificate", "R-9"},
	Terminal:       {"terminal", "R-4"},
	Unknown:        {"unknown_error", "R-4"},
	Unauthorized:   {"unauthorized", "R-4"},
	ServerStop:     {"server_said_stop", "R-7"},
	ExhaustedBelow: {"exhausted_below", "R-7"},
	NotReplayable:  {"not_replayable", "R-6"},
	NoKey:          {"no_idempotency_key", "R-6"},
	BreakerOpen:    {"breaker_open", "R-7"},
	Unhealthy:      {"unhealthy", "R-7"},
	Disabled:       {"disabled", "R-2"},
	Inner:          {"inner_layer", "R-7"},
	Exhausted:      {"exhausted", "R-2"},
	DNSLimit:       {"dns_limit", "R-4"},
	HintTooLong:    {"after_exceeds_deadline", "R-5"},
	Budget:         {"budget_exhausted", "R-7"},
	NotOwner:       {"not_owner", "R-7"},
	BulkheadFull:   {"bulkhead_full", resilience},
	RefreshFailed:  {"refresh_failed", "R-9"},
	WeakCredential: {"weaker_credential", "R-9"},
	Paced:          {"paced", resilience},
}

// String returns the name that logs, metrics and explanations use.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r].name
	}
	return "invalid"
}

// Rule returns the rule of the standard that the reason follows from, such as
// "R-5", or "".
func (r Reason) Rule() string {
	if int(r) < len(reasons) {
		return reasons[r].rule
	}
	return ""
}

// URL returns the address of the page that says what the reason means, "" for no reason.
func (r Reason) URL() string {
	name := r.String()
	if name == "" || int(r) >= len(reasons) {
		return ""
	}
	return "https://github.com/forbear-go/forbear/blob/main/docs/reference/reasons.md#" + name
}

// Exhausted reports whether the call used up its retries or its time: what
// retry_exhausted_total counts. Refusals of the budget are not among them.
func (r Reason) Exhausted() bool {
	switch r {
	case Exhausted, DNSLimit, Deadline, HintTooLong:
		return true
	default:
		return false
	}
}

// Suppressed reports whether a call or a retry was withheld although retries
// and time were left: what retry_suppressed_total counts.
func (r Reason) Suppressed() bool {
	switch r {
	case Budget, BreakerOpen, BulkheadFull, Paced, Unhealthy, Inner, NotOwner,
		ExhaustedBelow, ServerStop, NotReplayable, NoKey, Disabled:
		return true
	default:
		return false
	}
}

// Momentary reports whether a refusal concerns only the moment and not the work itself,
// which may be tried later: durable work is postponed by it.
func (r Reason) Momentary() bool {
	switch r {
	case Budget, BreakerOpen, Unhealthy, BulkheadFull, Paced:
		return true
	default:
		return false
	}
}

// Binding reports whether the end of a call binds every layer above it too: this layer
// has tried, or has refused for a reason that holds above as well.
func (r Reason) Binding() bool {
	switch r {
	case Exhausted, DNSLimit, Budget, BreakerOpen, Unhealthy, HintTooLong, ServerStop, ExhaustedBelow, BulkheadFull, Paced:
		return true
	default:
		return false
	}
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
