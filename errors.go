package forbear

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// Error is how a call ends that did not succeed. Unwrap gives the operation's
// last error, so errors.Is and errors.As see what they would have seen without
// forbear; errors.Is also finds the sentinel of Reason.
type Error struct {
	Dependency string
	Reason     Reason
	// Type is the error_type label of the last failure.
	Type     string
	Attempts int
	Elapsed  time.Duration
	// RetryAfter is the server's wait, when it was too long to be kept.
	RetryAfter time.Duration
	// Level is the reading of the budget, when it refused the retry.
	Level budget.Level
	// Until is when an open circuit breaker lets the first probe through; zero when
	// no time is known, since it is held open by hand or its probes are under way. Of a
	// call that was refused with [reason.Paced] it is when a new one may expect its turn.
	Until time.Time
	// Err is the operation's last error; nil when no attempt was made.
	Err error

	kind     Kind           // of the policy
	shares   *budget.Policy // of a budget that counts in a window, or nil
	class    Class
	standing standing
	unsent   bool // no attempt that was made has reached the server
}

// standing is what keeps a circuit breaker shut that says no time.
type standing uint8

const (
	timed standing = iota
	held
	probing
)

// Error says what happened in one line: `payments: retries exhausted (R-2) after 4
// attempts in 7.2s: ...`. A spent budget comes with its figures and its knob, an open
// breaker with the time of its next probe. It adds nothing of the request.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Dependency != "" {
		b.WriteString(e.Dependency + ": ")
	}
	e.writeWhy(&b)
	b.WriteString(e.source())
	if e.Attempts > 0 {
		unit := "attempts"
		if e.Attempts == 1 {
			unit = "attempt"
		}
		fmt.Fprintf(&b, " after %d %s in %v", e.Attempts, unit, e.Elapsed.Round(time.Millisecond))
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// source names the rule, and how to read more where forbear itself has withheld the
// call. A rule of the companion standards means nothing to a reader who has not read them.
func (e *Error) source() string {
	var parts []string
	if rule := e.Reason.Rule(); strings.HasPrefix(rule, "R-") {
		parts = append(parts, rule)
	}
	if e.Reason.Suppressed() {
		parts = append(parts, "forbear explain "+e.Reason.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// Explain says why the call ended, with the figures that this rests on: "retry budget
// exhausted: 3 of 3 retries of this 30s window used; a quiet client's floor is
// budget.min_retries". It is the part of [Error.Error] that holds nothing of the request
// or of the operation's last error, so it may be shown to a caller.
func (e *Error) Explain() string {
	var b strings.Builder
	e.writeWhy(&b)
	return b.String()
}

func (e *Error) writeWhy(b *strings.Builder) {
	what := "not retried"
	if err := sentinels[e.Reason]; err != nil {
		what = err.Error()
	}
	b.WriteString(what)
	switch e.Reason {
	case reason.Disabled:
		b.WriteString(": this call may have none")
	case reason.DNSLimit:
		b.WriteString(": a name that does not resolve is tried twice")
	case reason.NotOwner:
		b.WriteString(": the policy's owner is another service")
	case reason.Unauthorized:
		b.WriteString(": the credentials were refused")
	case reason.NoKey:
		b.WriteString(": " + e.keyless())
	case reason.Unknown:
		e.writeUnknown(b)
	case reason.HintTooLong:
		fmt.Fprintf(b, ": the server asked for a wait of %v", e.RetryAfter)
	case reason.Budget:
		e.writeBudget(b)
	case reason.BreakerOpen:
		e.writeBreaker(b)
	case reason.Paced:
		if !e.Until.IsZero() {
			b.WriteString(" before " + clock(e.Until))
		}
	}
}

// keyless says what makes an operation without an idempotency key safe to repeat.
func (e *Error) keyless() string {
	if e.kind == GRPC {
		return "send an idempotency-key of 1 to 64 characters, or declare the method idempotent (grpcretry.WithIdempotent; at a gateway, idempotent in the policy file)"
	}
	return "send an Idempotency-Key of 1 to 64 characters, or declare the operation idempotent"
}

// clock writes a time of this day as the machine shows it, with its zone: its reader may
// be in another one.
func clock(t time.Time) string { return t.Local().Format("15:04:05Z07:00") }

// writeUnknown says why an error is not retried although it may go away.
func (e *Error) writeUnknown(b *strings.Builder) {
	if e.Type == errtype.Unknown {
		b.WriteString(": unknown error; if it may be retried, mark it with forbear.Retryable or classify it")
		return
	}
	b.WriteString(": " + e.Type + " may come after the work was done; if it is safe to repeat, declare it idempotent (forbear.Idempotent)")
}

// writeBudget writes how much of the budget is used, and which knob sets its size.
func (e *Error) writeBudget(b *strings.Builder) {
	if e.shares == nil {
		if e.Level != (budget.Level{}) {
			fmt.Fprintf(b, ": %.4g of %.4g used", e.Level.Used, e.Level.Allowed)
		}
		return
	}
	fmt.Fprintf(b, ": %.0f of %.0f retries of this %v window used; ", e.Level.Used, e.Level.Allowed, e.shares.Window)
	if least := e.shares.MinRetries; least > 0 && e.Level.Allowed <= float64(least) {
		b.WriteString("a quiet client's floor is budget.min_retries")
	} else {
		b.WriteString("the share of all calls is budget.ratio")
	}
}

// writeBreaker writes when the breaker will let something through.
func (e *Error) writeBreaker(b *strings.Builder) {
	switch {
	case e.standing == held:
		b.WriteString(": held open by an operator")
	case e.standing == probing:
		b.WriteString(": half-open, and all its probes are under way")
	case !e.Until.IsZero():
		b.WriteString(" until " + clock(e.Until))
	}
}

// Unwrap returns the operation's last error.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of e's reason.
func (e *Error) Is(target error) bool { return target != nil && target == sentinels[e.Reason] }

// Timeout reports whether the operation's last error was a timeout, as
// [net.Error] does. An http.Client asks the error of its transport for it, and
// looks no deeper.
func (e *Error) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}

// Unsent reports whether the call certainly has done nothing at the server: no attempt
// was made, or none that was made has reached it. It may be made again whatever its
// method. Of durable work it knows the attempts of this process alone, and reports false
// after any.
func (e *Error) Unsent() bool { return e.Attempts == 0 || e.unsent }

// Failure returns e as the failure that a layer above sees.
func (e *Error) Failure() Failure {
	return Failure{Class: e.class, Type: e.Type, Err: e}
}

// Retryable reports whether the layer above may try again at once: only when
// the failure was of a kind that may go away and this layer left the retrying
// to others. What this layer has given up, the one above must not repeat; a
// durable one may come back later.
func (e *Error) Retryable() bool {
	switch e.Reason {
	case reason.Disabled, reason.Inner, reason.NotOwner:
		return e.class.Retryable()
	default:
		return false
	}
}

// mark is an error that its operation has classified.
type mark struct {
	error
	class Class
	hint  Hint
}

func (m *mark) Unwrap() error { return m.error }

// Retryable marks err as one that may go away, with advice on when to come
// back; the zero Hint advises nothing. A nil err stays nil. An error that holds
// a refused certificate stays final whatever its mark.
func Retryable(err error, h Hint) error {
	if err == nil {
		return nil
	}
	return &mark{err, ClassTransient, h}
}

// Terminal marks err as final. A nil err stays nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &mark{err, ClassTerminal, Hint{}}
}

// policyError prefixes each violation with the policy that has it.
type policyError struct {
	dependency string
	violations []*Violation
}

func (e *policyError) Error() string {
	lines := make([]string, len(e.violations))
	for i, v := range e.violations {
		lines[i] = fmt.Sprintf("policy %q: %v", e.dependency, v)
	}
	return strings.Join(lines, "\n")
}

func (e *policyError) Unwrap() []error {
	errs := []error{ErrPolicy}
	for _, v := range e.violations {
		errs = append(errs, v)
	}
	return errs
}

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
	ErrInner           = errors.New("another layer owns the retries")
	ErrBulkheadFull    = errors.New("too many calls under way")
	ErrPaced           = errors.New("no turn in time under the dependency's rate limit")

	// errNilFunc is returned for a nil operation, which is a mistake of the program.
	errNilFunc = errors.New("the function is nil")
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
