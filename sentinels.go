package forbear

import (
	"errors"

	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/reason"
)

// Reason says why a decision fell as it did; its values are those of package reason.
type Reason = reason.Reason

// The sentinels say why a call ended; [Error] matches them in errors.Is. Those for
// credentials are of package credential.
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

	// errNilFunc is returned for a nil operation, which is a mistake of the program.
	errNilFunc = errors.New("nil function")
	// ErrPolicy is what errors of [New] match when the policy was refused.
	ErrPolicy = errors.New("policy refused")
)

// sentinels are what errors.Is finds in the error of a call that ended for a reason.
var sentinels = map[Reason]error{
	reason.Canceled:       ErrCanceled,
	reason.Deadline:       ErrDeadline,
	reason.Certificate:    ErrCertificate,
	reason.Terminal:       ErrTerminal,
	reason.Unknown:        ErrTerminal,
	reason.Unauthorized:   ErrTerminal,
	reason.ServerStop:     ErrServerStop,
	reason.ExhaustedBelow: ErrExhaustedBelow,
	reason.NotReplayable:  ErrNotReplayable,
	reason.NoKey:          ErrNotReplayable,
	reason.BreakerOpen:    ErrBreakerOpen,
	reason.Unhealthy:      ErrUnhealthy,
	reason.Disabled:       ErrExhausted,
	reason.Inner:          ErrInner,
	reason.Exhausted:      ErrExhausted,
	reason.DNSLimit:       ErrExhausted,
	reason.HintTooLong:    ErrDeadline,
	reason.Budget:         ErrBudgetExhausted,
	reason.NotOwner:       ErrInner,
	reason.BulkheadFull:   ErrBulkheadFull,
	reason.RefreshFailed:  credential.ErrRefreshFailed,
	reason.WeakCredential: credential.ErrWeak,
	reason.Paced:          ErrPaced,
}
