package forbear

import (
	"errors"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/credential"
)

// Reason says why a decision fell as it did. The zero value is no reason.
type Reason uint8

const (
	ReasonNone Reason = iota

	ReasonRetryable // retry: the failure may go away
	ReasonRefresh   // retry: once, with refreshed credentials
	ReasonResend    // retry: a send that the transport below would have repeated by itself

	ReasonSuccess        // nothing failed
	ReasonCanceled       // the caller gave up
	ReasonDeadline       // no time is left for another attempt
	ReasonCertificate    // the peer's certificate was refused
	ReasonTerminal       // the failure is not retryable
	ReasonUnknown        // the failure was not recognised
	ReasonUnauthorized   // credentials refused and no refresh left
	ReasonServerStop     // the server asked not to be retried
	ReasonExhaustedBelow // a layer below has used its retries
	ReasonNotReplayable  // the request's body is gone
	ReasonNoKey          // not idempotent and without a usable key
	ReasonBreakerOpen    // the circuit breaker is open
	ReasonUnhealthy      // the health gate says no
	ReasonDisabled       // the policy or the caller allows no retry
	ReasonInner          // an outer layer is retrying already
	ReasonExhausted      // all retries are used
	ReasonDNSLimit       // DNS failures get two attempts
	ReasonHintTooLong    // the server's wait does not fit
	ReasonBudget         // the retry budget is spent
	ReasonNotOwner       // another service owns the retries
	ReasonBulkheadFull   // too many calls are under way
	ReasonRefreshFailed  // fresh credentials could not be had
	ReasonWeakCredential // a retry would go out with a weaker credential
	ReasonPaced          // its turn under the dependency's limit would come too late
)

// reasons holds each reason's name, the rule it follows from, and the sentinel
// that errors.Is finds.
var reasons = [...]struct {
	name, rule string
	sentinel   error
}{
	ReasonNone:           {"", "", nil},
	ReasonRetryable:      {"retryable", "R-4", nil},
	ReasonRefresh:        {"token_refresh", "R-9", nil},
	ReasonResend:         {"resend", "R-2", nil},
	ReasonSuccess:        {"success", "", nil},
	ReasonCanceled:       {"canceled", "R-3", ErrCanceled},
	ReasonDeadline:       {"deadline", "R-3", ErrDeadline},
	ReasonCertificate:    {"tls_certificate", "R-9", ErrCertificate},
	ReasonTerminal:       {"terminal", "R-4", ErrTerminal},
	ReasonUnknown:        {"unknown_error", "R-4", ErrTerminal},
	ReasonUnauthorized:   {"unauthorized", "R-4", ErrTerminal},
	ReasonServerStop:     {"server_said_stop", "R-7", ErrServerStop},
	ReasonExhaustedBelow: {"exhausted_below", "R-7", ErrExhaustedBelow},
	ReasonNotReplayable:  {"not_replayable", "R-6", ErrNotReplayable},
	ReasonNoKey:          {"no_idempotency_key", "R-6", ErrNotReplayable},
	ReasonBreakerOpen:    {"breaker_open", "R-7", ErrBreakerOpen},
	ReasonUnhealthy:      {"unhealthy", "R-7", ErrUnhealthy},
	ReasonDisabled:       {"disabled", "R-2", ErrExhausted},
	ReasonInner:          {"inner_layer", "R-7", ErrInner},
	ReasonExhausted:      {"exhausted", "R-2", ErrExhausted},
	ReasonDNSLimit:       {"dns_limit", "R-4", ErrExhausted},
	ReasonHintTooLong:    {"after_exceeds_deadline", "R-5", ErrDeadline},
	ReasonBudget:         {"budget_exhausted", "R-7", ErrBudgetExhausted},
	ReasonNotOwner:       {"not_owner", "R-7", ErrInner},
	ReasonBulkheadFull:   {"bulkhead_full", breaker.Rule, ErrBulkheadFull},
	ReasonRefreshFailed:  {"refresh_failed", "R-9", ErrRefreshFailed},
	ReasonWeakCredential: {"weaker_credential", "R-9", ErrWeakCredential},
	ReasonPaced:          {"paced", breaker.Rule, ErrPaced},
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

// Err returns the sentinel error of a stop, or nil.
func (r Reason) Err() error {
	if int(r) < len(reasons) {
		return reasons[r].sentinel
	}
	return nil
}

// Exhausted reports whether the call used up its retries or its time: what
// retry_exhausted_total counts. Refusals of the budget are not among them.
func (r Reason) Exhausted() bool {
	switch r {
	case ReasonExhausted, ReasonDNSLimit, ReasonDeadline, ReasonHintTooLong:
		return true
	default:
		return false
	}
}

// Suppressed reports whether a call or a retry was withheld although retries
// and time were left: what retry_suppressed_total counts.
func (r Reason) Suppressed() bool {
	switch r {
	case ReasonBudget, ReasonBreakerOpen, ReasonBulkheadFull, ReasonPaced, ReasonUnhealthy, ReasonInner, ReasonNotOwner,
		ReasonExhaustedBelow, ReasonServerStop, ReasonNotReplayable, ReasonNoKey, ReasonDisabled:
		return true
	default:
		return false
	}
}

// Momentary reports whether a refusal is one of the moment and says nothing
// about the work, which may be tried later: durable work is put off by it.
func (r Reason) Momentary() bool {
	switch r {
	case ReasonBudget, ReasonBreakerOpen, ReasonUnhealthy, ReasonBulkheadFull, ReasonPaced:
		return true
	default:
		return false
	}
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// The sentinels say why a call ended; [Error] matches them in errors.Is.
var (
	ErrExhausted       = errors.New("retries exhausted")
	ErrBudgetExhausted = errors.New("retry budget exhausted")
	ErrBreakerOpen     = errors.New("circuit breaker open")
	ErrUnhealthy       = errors.New("dependency unhealthy")
	ErrDeadline        = errors.New("no time left for another attempt")
	ErrCanceled        = errors.New("canceled by the caller")
	ErrNotReplayable   = errors.New("not safe to send again")
	ErrTerminal        = errors.New("not retryable")
	ErrCertificate     = errors.New("certificate refused")
	ErrServerStop      = errors.New("the server asked not to be retried")
	ErrExhaustedBelow  = errors.New("a layer below has used its retries")
	ErrInner           = errors.New("the retrying belongs to another layer")
	ErrBulkheadFull    = errors.New("too many calls under way")
	ErrPaced           = errors.New("no turn in time under the dependency's limit")
	ErrRefreshFailed   = credential.ErrRefreshFailed
	ErrWeakCredential  = credential.ErrWeak

	// errNilFunc is returned for a nil operation, which is a mistake of the program.
	errNilFunc = errors.New("nil function")
	// ErrPolicy is what errors of [New] match when the policy was refused.
	ErrPolicy = errors.New("policy refused")
)
