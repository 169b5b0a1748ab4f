package forbear

import (
	"errors"
	"fmt"
	"strings"
	"time"
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
	// Err is the operation's last error; nil when no attempt was made.
	Err error

	class Class
}

// Error says what happened in one line: `payments: retries exhausted after 4
// attempts in 7.2s: ...`. It adds nothing of the request.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Dependency != "" {
		b.WriteString(e.Dependency + ": ")
	}
	what := "not retried"
	if err := e.Reason.Err(); err != nil {
		what = err.Error()
	}
	b.WriteString(what)
	switch e.Reason {
	case ReasonNoKey:
		b.WriteString(": no idempotency key of 1 to 64 characters")
	case ReasonUnknown:
		b.WriteString(": unknown error")
	case ReasonHintTooLong:
		fmt.Fprintf(&b, ": the server asked for %v", e.RetryAfter)
	}
	if rule := e.Reason.Rule(); rule != "" {
		b.WriteString(" (" + rule + ")")
	}
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

// Unwrap returns the operation's last error.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of e's reason.
func (e *Error) Is(target error) bool { return target != nil && target == e.Reason.Err() }

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

// Rule returns the rule of the standard behind the end of the call.
func (e *Error) Rule() string { return e.Reason.Rule() }

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
	case ReasonDisabled, ReasonInner, ReasonNotOwner:
		return e.class.Retryable()
	default:
		return false
	}
}

// spent reports whether e ends a call on behalf of everyone above it: this
// layer tried, or refused for a reason that holds above as well.
func (e *Error) spent() bool {
	switch e.Reason {
	case ReasonExhausted, ReasonDNSLimit, ReasonBudget, ReasonBreakerOpen, ReasonUnhealthy,
		ReasonHintTooLong, ReasonServerStop, ReasonExhaustedBelow, ReasonBulkheadFull:
		return true
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
