package forbear

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/label"
)

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
