package forbear

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/reason"
)

// LogObserver returns an observer that writes every retry and every failed end of
// a call to a structured log, with R-10's fields and nothing else of the request.
// A refused certificate is an ERROR. A nil logger is slog.Default(). sampler, which
// may be nil, thins out the lines about suppressed calls and retries in a storm;
// retries that are sent are always logged.
func LogObserver(logger *slog.Logger, sampler *LogSampler) *Observer {
	o := logObserver{logger, sampler}
	return &Observer{
		RetryScheduled: o.retryScheduled,
		Stopped:        o.stopped,
		BreakerMoved:   o.breakerMoved,
		LayeredRetry:   o.layeredRetry,
		TokenRefreshed: o.tokenRefreshed,
		DeadLettered:   o.deadLettered,
	}
}

type logObserver struct {
	to      *slog.Logger
	sampler *LogSampler
}

// logger asks for the default each time, since the program may set it later.
func (o logObserver) logger() *slog.Logger {
	if o.to != nil {
		return o.to
	}
	return slog.Default()
}

func (o logObserver) retryScheduled(ctx context.Context, e RetryScheduled) {
	var room [maxAttrs]slog.Attr
	l := o.logger()
	if !l.Enabled(ctx, slog.LevelWarn) {
		return
	}
	l.LogAttrs(ctx, slog.LevelWarn, "retry", append(e.attrs(room[:0]),
		slog.Int64("backoff_ms", e.Backoff.Milliseconds()),
		slog.String("error_type", label.Clean(e.Failure.Type)))...)
}

func (o logObserver) stopped(ctx context.Context, e Stopped) {
	var room [maxAttrs]slog.Attr
	l, level, what := o.logger(), slog.LevelWarn, "retries stopped"
	if e.postponed() {
		what = "retry postponed"
	}
	switch e.Reason {
	case reason.Certificate:
		level = slog.LevelError
	case reason.Terminal, reason.Unknown, reason.Canceled:
		level = slog.LevelDebug // the caller's own affair: it has the error
	}
	if !l.Enabled(ctx, level) {
		return
	}
	if o.sampler != nil {
		o.sampler.report(ctx, l, time.Now(), false)
		if e.Reason.Suppressed() && !o.sampler.keep(e.Dependency, e.Reason, time.Now()) {
			return
		}
	}
	attrs := append(e.attrs(room[:0]),
		slog.Int64("backoff_ms", 0),
		slog.String("error_type", label.Clean(e.Failure.Type)),
		slog.String("reason", e.Reason.String()))
	if cause := e.Failure.Explain(); cause != "" {
		attrs = append(attrs, slog.String("cause", cause))
	}
	switch e.Reason {
	case reason.Budget, reason.BreakerOpen, reason.HintTooLong: // these have figures
		attrs = append(attrs, slog.String("why", e.Explain()))
	case reason.NotReplayable:
		if err, ok := errors.AsType[loggable](e.Failure.Err); ok {
			attrs = append(attrs, slog.Any("why", err.LogValue()))
		}
	}
	l.LogAttrs(ctx, level, what, attrs...)
}

func (o logObserver) breakerMoved(e breaker.Transition) {
	attrs := []slog.Attr{
		slog.String("dependency", label.Clean(e.Dependency)),
		slog.String("previous", e.From.String()), slog.String("new", e.To.String()),
		slog.String("cause", e.Cause.String()),
		slog.Float64("failure_rate", e.FailureRate), slog.Float64("slow_rate", e.SlowRate),
		slog.Int("calls", e.Calls), slog.Bool("budget_spent", e.BudgetSpent), slog.String("actor", label.Clean(e.Actor)),
	}
	if e.To == breaker.Open && e.Cause != breaker.CauseOperator { // who holds it open says for how long
		attrs = append(attrs, slog.Int64("open_for_ms", e.OpenFor.Milliseconds()))
	}
	o.logger().LogAttrs(context.Background(), slog.LevelWarn, "circuit breaker moved", attrs...)
}

func (o logObserver) layeredRetry(ctx context.Context, e LayeredRetry) {
	var room [maxAttrs]slog.Attr
	message := "a layer below retries by itself"
	if e.Above {
		message = "a layer above retries by itself"
	}
	o.logger().LogAttrs(ctx, slog.LevelWarn, message, append(e.attrs(room[:0]),
		slog.Int("sends", e.Sends))...)
}

// loggable is an error that has words for a log.
type loggable interface {
	error
	slog.LogValuer
}

// tokenRefreshed logs no text of the error, which may hold what a token server
// said: only the words for a log that it has as a [slog.LogValuer].
func (o logObserver) tokenRefreshed(ctx context.Context, e TokenRefreshed) {
	if e.Err == nil {
		return
	}
	attrs := []slog.Attr{slog.String("dependency", label.Clean(e.Dependency))}
	if err, ok := errors.AsType[loggable](e.Err); ok {
		attrs = append(attrs, slog.Any("cause", err.LogValue()))
	}
	o.logger().LogAttrs(ctx, slog.LevelError, "token refresh failed", attrs...)
}

func (o logObserver) deadLettered(ctx context.Context, e DeadLettered) {
	o.logger().LogAttrs(ctx, slog.LevelWarn, "dead letter",
		slog.String("dependency", label.Clean(e.Dependency)),
		slog.String("queue", label.Clean(e.Queue)), slog.String("reason", e.Reason.String()))
}

// maxAttrs is how many attributes a line of the log has at most. Room for them
// stays on the stack: the logger copies what it is given.
const maxAttrs = 10

// attrs appends R-10's fields that every event has.
func (i Info) attrs(to []slog.Attr) []slog.Attr {
	return append(to,
		slog.String("correlation_id", label.Clean(i.CorrelationID)),
		slog.String("dependency", label.Clean(i.Dependency)),
		slog.Int("attempt", i.Attempt),
		slog.Int("max_attempts", i.MaxAttempts),
		slog.String("idempotency_key", label.Clean(i.IdempotencyKey)))
}

// LogSampler keeps a storm of refusals from becoming a storm of log lines: of
// each dependency and reason it lets a few lines through per period, and the
// number of those left out is logged after the period. Only suppressed calls
// and retries are thinned out; what was sent is always logged. It is
// safe for concurrent use; the zero value is ready and may be shared by all
// Retryers of a process.
type LogSampler struct {
	// Lines let through per Period. Default 10 in 1 s.
	Lines  int
	Period time.Duration

	mu   sync.Mutex
	seen map[sampled]*sample
}

type sampled struct {
	dependency string
	reason     Reason
}

type sample struct {
	since       time.Time
	lines, left int
}

// keep reports whether a line may be written, and counts it if not.
func (s *LogSampler) keep(dependency string, why Reason, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[sampled]*sample{}
	}
	k := sampled{dependency, why}
	c := s.seen[k]
	if c == nil {
		c = &sample{since: now}
		s.seen[k] = c
	}
	if c.lines < cmp.Or(s.Lines, 10) {
		c.lines++
		return true
	}
	c.left++
	return false
}

// Flush logs what was left out so far. Call it from time to time, so that the
// count of a storm that has ended is not kept back until the next one, and at
// the end of the process.
func (s *LogSampler) Flush(l *slog.Logger) {
	s.report(context.Background(), l, time.Now(), true)
}

// report logs the counts of the periods that are over, or of all.
func (s *LogSampler) report(ctx context.Context, l *slog.Logger, now time.Time, all bool) {
	type line struct {
		sampled
		left int
	}
	var lines []line
	s.mu.Lock()
	for k, c := range s.seen {
		if !all && now.Sub(c.since) < cmp.Or(s.Period, time.Second) {
			continue
		}
		if c.left > 0 {
			lines = append(lines, line{k, c.left})
		}
		delete(s.seen, k)
	}
	s.mu.Unlock()
	for _, i := range lines {
		l.LogAttrs(ctx, slog.LevelWarn, "retries stopped, lines left out",
			slog.String("dependency", label.Clean(i.dependency)),
			slog.String("reason", i.reason.String()), slog.Int("left_out", i.left))
	}
}
