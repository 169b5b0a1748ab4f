package metric

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/reason"
)

// Sink is where measurements go. It is called from many goroutines.
type Sink interface {
	// Series returns one series of a metric, by the values of its labels in the
	// order of the [Table], and creates a counter at zero if it is new. The
	// Recorder keeps what the success path needs, so that only failures pay for
	// finding a series.
	Series(metric ID, labels ...string) Series
}

// Series is a metric under one set of labels. It is safe for concurrent use.
type Series interface {
	// Record adds v to a counter, or observes it in a histogram. ctx is that of
	// the call: OpenTelemetry takes the trace of an exemplar from it.
	Record(ctx context.Context, v float64)
}

// Recorder turns the events of Retryers into measurements. It is safe for
// concurrent use; make it with [NewRecorder].
type Recorder struct {
	// AllDependencies keeps the names of dependencies as they are. It is for a
	// sink that one process reads and nothing stores; where every name becomes a
	// stored series they must be few and plain, see [label.Set]. It is set
	// before the first event.
	AllDependencies bool

	sink     Sink
	service  string
	labels   label.Set
	incoming Series
	known    atomic.Pointer[map[string]*series] // by dependency; copied on write
	beyond   beyond

	mu       sync.Mutex
	retryers map[string]*forbear.Retryer

	keys      keyStores
	consumers consumers
}

// NewRecorder returns a Recorder that writes to sink, for a service of that name.
func NewRecorder(sink Sink, service string) *Recorder {
	r := &Recorder{sink: sink, service: label.Clip(service), retryers: map[string]*forbear.Retryer{}}
	r.known.Store(&map[string]*series{})
	r.incoming = sink.Series(Incoming, r.service)
	return r
}

// Observer returns what to pass to [forbear.WithObserver]. Measurements are no
// log, which stays on beside it.
func (r *Recorder) Observer() *forbear.Observer {
	return &forbear.Observer{
		KeepsLog:       true,
		Attached:       r.attached,
		AttemptEnded:   r.attemptEnded,
		RetryScheduled: r.retryScheduled,
		Succeeded:      r.succeeded,
		Stopped:        r.stopped,
		BreakerMoved:   r.breakerMoved,
		TokenRefreshed: r.tokenRefreshed,
		DeadLettered:   r.deadLettered,
	}
}

// CountIncoming returns next with its requests counted.
func (r *Recorder) CountIncoming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.incoming.Record(req.Context(), 1)
		next.ServeHTTP(w, req)
	})
}

// Retryers returns what the [Gauges] are read off, by the label of the dependency.
func (r *Recorder) Retryers() map[string]*forbear.Retryer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.retryers)
}

// Dependency returns the label for the name of a dependency: that name, "other", or
// the state of a webhook's endpoint.
func (r *Recorder) Dependency(name string) string {
	if r.AllDependencies {
		return name
	}
	bounded := r.labels.Bounded(labelDependency, name)
	if isBeyond(name, bounded) {
		return r.beyond.label(name)
	}
	return bounded
}

// ErrorType returns the label for an error_type, which an operation may name as
// it likes.
func (r *Recorder) ErrorType(t string) string { return r.labels.Bounded(labelErrorType, t) }

// Service returns the value of the label service.
func (r *Recorder) Service() string { return r.service }

// attached creates the series of a dependency. A later Retryer of the same
// dependency, as a changed policy brings it, takes the place of the one before. Those
// beyond the bound have counters and no gauges: one of many would speak for all.
func (r *Recorder) attached(retryer *forbear.Retryer) {
	name := retryer.Dependency()
	if !r.AllDependencies && isBeyond(name, r.labels.Bounded(labelDependency, name)) {
		r.beyond.add(retryer)
		for _, sum := range byState {
			r.labelled(sum).zero(retryer)
		}
		return
	}
	s := r.of(name)
	s.zero(retryer)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retryers[s.dependency] = retryer
}

// attemptEnded counts attempts at their end, so that what could not be sent is
// not among them. It runs for each success.
func (r *Recorder) attemptEnded(ctx context.Context, e forbear.AttemptEnded) {
	s := r.of(e.Dependency)
	if e.Attempt <= 1 {
		s.initial.Record(ctx, 1)
		s.first.Record(ctx, e.Latency.Seconds())
	} else {
		s.retry(e.Attempt).Record(ctx, 1)
		s.later.Record(ctx, e.Latency.Seconds())
	}
	s.calls[callOf(e)].Record(ctx, 1)
	if e.Failure.Class == forbear.ClassSuccess {
		s.attempts.Record(ctx, float64(e.Attempt))
	}
}

// callOf returns how a circuit breaker counts an attempt, also where there is
// none: the outcomes of dependencies can be compared.
func callOf(e forbear.AttemptEnded) int {
	o, counts := edge.Outcome(&e.Failure)
	switch {
	case !counts:
		return callIgnored
	case o == breaker.Failed:
		return callFailed
	case e.Slow:
		return callSlow
	default:
		return callGood
	}
}

// succeeded counts the calls that a retry has saved, by the failure before it.
func (r *Recorder) succeeded(ctx context.Context, e forbear.Succeeded) {
	if e.Attempt > 1 {
		r.of(e.Dependency).get(Recovered, r.ErrorType(e.FailedBefore)).Record(ctx, 1)
	}
}

func (r *Recorder) retryScheduled(ctx context.Context, e forbear.RetryScheduled) {
	s := r.of(e.Dependency)
	s.backoff.Record(ctx, e.Backoff.Seconds())
	if e.Paced {
		s.get(Paced).Record(ctx, 1)
	}
}

// stopped counts the calls that have failed, and what was withheld to spare the
// dependency. One event can be both: a retry that the budget refuses ends a call.
func (r *Recorder) stopped(ctx context.Context, e forbear.Stopped) {
	s := r.of(e.Dependency)
	if e.Attempts > 0 {
		s.attempts.Record(ctx, float64(e.Attempts))
		s.get(Failed, r.ErrorType(e.Failure.Type), e.Reason.String()).Record(ctx, 1)
		if e.Reason.Exhausted() {
			s.exhausted.Record(ctx, 1)
		}
	}
	if e.Reason.Suppressed() {
		s.get(Suppressed, e.Reason.String()).Record(ctx, 1)
	}
	switch e.Reason {
	case reason.Budget:
		s.overBudget.Record(ctx, 1)
	case reason.BreakerOpen:
		if e.Attempts == 0 {
			s.calls[callRefused].Record(ctx, 1)
		}
	case reason.BulkheadFull:
		s.get(Rejections).Record(ctx, 1)
	case reason.Certificate:
		s.certificates.Record(ctx, 1)
	case reason.HintTooLong:
		s.timeBudget.Record(ctx, 1)
	case reason.Deadline:
		// An attempt that the caller's deadline cut short was begun.
		if e.Attempts == 0 || e.Failure.Type != errtype.CallerDeadline {
			s.timeBudget.Record(ctx, 1)
		}
	}
}

// breakerMoved runs with the breaker's lock held.
func (r *Recorder) breakerMoved(e breaker.Transition) {
	s, ctx := r.of(e.Dependency), context.Background()
	s.moved(e.From, e.To).Record(ctx, 1)
	if e.To == breaker.Open {
		s.opened(e.Cause).Record(ctx, 1)
	}
}

func (r *Recorder) tokenRefreshed(ctx context.Context, e forbear.TokenRefreshed) {
	outcome := "ok"
	if e.Err != nil {
		outcome = "failed"
	}
	r.of(e.Dependency).get(Refreshes, outcome).Record(ctx, 1)
}

// deadLettered counts by queue alone: the letters of many dependencies may share one.
func (r *Recorder) deadLettered(ctx context.Context, e forbear.DeadLettered) {
	r.sink.Series(Dead, r.labels.Bounded(labelQueue, e.Queue)).Record(ctx, 1)
}
