package forbear

import (
	"context"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
)

// An observer is any value that has one or more of the methods below; pass it
// to [WithObserver]. Each method takes one struct, so that a new field or a new
// event breaks nobody, and an event that nobody listens to costs nothing.
// Methods are called synchronously, from many goroutines.
type (
	// AttemptStartObserver is told before each attempt.
	AttemptStartObserver interface {
		AttemptStarted(context.Context, AttemptStarted)
	}
	// AttemptEndObserver is told after each attempt, the successful ones too.
	AttemptEndObserver interface {
		AttemptEnded(context.Context, AttemptEnded)
	}
	// SuccessObserver is told when a call ends well.
	SuccessObserver interface {
		Succeeded(context.Context, Succeeded)
	}
	// RetryObserver is told of each retry, before its wait.
	RetryObserver interface {
		RetryScheduled(context.Context, RetryScheduled)
	}
	// StopObserver is told when a failed call ends: exhausted, suppressed
	// (see [Reason.Exhausted] and [Reason.Suppressed]) or final.
	StopObserver interface {
		Stopped(context.Context, Stopped)
	}
	// BudgetObserver is told of the budget's level after each retry that it
	// was asked for.
	BudgetObserver interface {
		BudgetLevel(context.Context, BudgetLevel)
	}
	// BreakerObserver is told of each transition of the circuit breaker. It is
	// called with the breaker's lock held: it must not ask the breaker back.
	BreakerObserver interface {
		BreakerMoved(breaker.Transition)
	}
	// CertificateObserver is told at once when a peer's certificate was
	// refused, which may be an attack.
	CertificateObserver interface {
		CertificateRefused(context.Context, CertificateRefused)
	}
	// LayerObserver is told, once per dependency, that a layer below or above
	// retries by itself.
	LayerObserver interface {
		LayeredRetry(context.Context, LayeredRetry)
	}
	// RefreshObserver is told of each refresh of credentials.
	RefreshObserver interface {
		TokenRefreshed(context.Context, TokenRefreshed)
	}
	// DeadLetterObserver is told when failed work has reached a dead-letter
	// queue.
	DeadLetterObserver interface {
		DeadLettered(context.Context, DeadLettered)
	}
	// AttachObserver is told of each Retryer that it was passed to, so that it
	// can read the budget, the breaker and the bulkhead whenever it is asked.
	AttachObserver interface {
		Attached(*Retryer)
	}
)

// Info says which call an event belongs to.
type Info struct {
	Dependency string
	// CorrelationID is that of the context, or of [WithCorrelation], or one
	// made for the call. A call that succeeds at once may have none when
	// nobody was told of its start.
	CorrelationID  string
	IdempotencyKey string
	Attempt        int // the first is 1
	MaxAttempts    int
}

// AttemptStarted is the event before an attempt.
type AttemptStarted struct{ Info }

// AttemptEnded is the event after an attempt. Failure.Class is ClassSuccess for
// a good one.
type AttemptEnded struct {
	Info
	Failure Failure
	// Latency is how long the attempt took, the waits apart. For HTTP it ends
	// with the headers of the answer.
	Latency time.Duration
	// Slow says that a breaker counts a good attempt as slow.
	Slow bool
}

// Succeeded is the event at the end of a call that ended well, on attempt
// Info.Attempt.
type Succeeded struct {
	Info
	Elapsed time.Duration // waits included
	// FailedBefore is the error_type of the attempt before the good one; "" in
	// a call that succeeded at once.
	FailedBefore string
}

// RetryScheduled is the event between a failed attempt and the wait before the
// next. Info.Attempt is the number of the attempt to come.
type RetryScheduled struct {
	Info
	Backoff time.Duration
	Reason  Reason
	Failure Failure
	// Paced says that the budget is spent and the retry one of those that
	// durable work may make beyond it.
	Paced bool
}

// Stopped is the event at the end of a call that failed.
type Stopped struct {
	Info
	Reason  Reason
	Failure Failure
	Elapsed time.Duration
	// Attempts is how many were made; 0 for a call that was refused before its
	// first.
	Attempts int
	// Level is the budget's reading, when the budget said no.
	Level budget.Level
}

// BudgetLevel is the event of a budget that was asked for a retry.
type BudgetLevel struct {
	Dependency string
	Level      budget.Level
}

// CertificateRefused is the event of a peer that could not prove who it is.
type CertificateRefused struct {
	Info
	Failure Failure
}

// LayeredRetry is the event of another layer that retries by itself: one below
// that sends the same request more than once in one attempt, or one above.
type LayeredRetry struct {
	Info
	// Sends is how many times the request was sent in that attempt; of a layer
	// above, the number of its own attempt.
	Sends int
	// Above says on which side the layer is.
	Above bool
}

// TokenRefreshed is the event of credentials that were fetched anew.
type TokenRefreshed struct {
	Dependency string
	// Err is why that failed; nil when it did not.
	Err error
}

// DeadLettered is the event of work that was put into a dead-letter queue.
type DeadLettered struct {
	Dependency string
	Queue      string
	Reason     Reason
}

// observers holds each observer under the events that it wants, so that an
// event nobody wants costs one look at a length.
type observers struct {
	start   []AttemptStartObserver
	end     []AttemptEndObserver
	success []SuccessObserver
	retry   []RetryObserver
	stop    []StopObserver
	level   []BudgetObserver

	breaker     []BreakerObserver
	certificate []CertificateObserver
	layer       []LayerObserver
	refresh     []RefreshObserver
	dead        []DeadLetterObserver
	attach      []AttachObserver
}

// add registers o under every event that it has a method for.
func (os *observers) add(o any) error {
	known := []bool{
		into(&os.start, o), into(&os.end, o), into(&os.success, o), into(&os.retry, o), into(&os.stop, o),
		into(&os.level, o), into(&os.breaker, o), into(&os.certificate, o), into(&os.layer, o),
		into(&os.refresh, o), into(&os.dead, o), into(&os.attach, o),
	}
	for _, k := range known {
		if k {
			return nil
		}
	}
	return fmt.Errorf("observer %T observes nothing: it has none of the event methods", o)
}

// into appends o to the observers of one event, if it wants that event.
func into[T any](list *[]T, o any) bool {
	v, ok := o.(T)
	if ok {
		*list = append(*list, v)
	}
	return ok
}
