package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
)

// recorder writes down the events it sees, one word a piece.
type recorder struct {
	mu     sync.Mutex
	events []string
	infos  []forbear.Info
}

func (r *recorder) note(i forbear.Info, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
	r.infos = append(r.infos, i)
}

func (r *recorder) AttemptStarted(_ context.Context, e forbear.Info) {
	r.note(e, "start %d", e.Attempt)
}

func (r *recorder) AttemptEnded(_ context.Context, e forbear.AttemptEnded) {
	r.note(e.Info, "end %d", e.Attempt)
}

func (r *recorder) RetryScheduled(_ context.Context, e forbear.RetryScheduled) {
	r.note(e.Info, "retry %d", e.Attempt)
}

func (r *recorder) Stopped(_ context.Context, e forbear.Stopped) {
	r.note(e.Info, "stop %d %v", e.Attempt, e.Reason)
}

func TestEventsComeInOrder(t *testing.T) {
	bubble(t, "success after a retry", func(t *testing.T) {
		var seen recorder
		op, _ := failTimes(1, forbear.Retryable(errFlaky, forbear.Hint{}))
		if err := quiet(t, forbear.Policy{}, forbear.WithObserver(seen.observer())).Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if want := []string{"start 1", "end 1", "retry 2", "start 2", "end 2"}; !slices.Equal(seen.events, want) {
			t.Errorf("got %q, want %q", seen.events, want)
		}
	})
	bubble(t, "exhausted", func(t *testing.T) {
		var seen recorder
		ctx := forbear.WithIdempotencyKey(forbear.WithCorrelationID(t.Context(), "c-1"), "k-1")
		_ = quiet(t, forbear.Policy{MaxRetries: 1}, forbear.WithObserver(seen.observer())).Do(ctx, failing)
		if want := []string{"start 1", "end 1", "retry 2", "start 2", "end 2", "stop 2 exhausted"}; !slices.Equal(seen.events, want) {
			t.Errorf("got %q, want %q", seen.events, want)
		}
		for i, info := range seen.infos {
			if info.Dependency != "payments" || info.CorrelationID != "c-1" || info.IdempotencyKey != "k-1" || info.MaxAttempts != 2 {
				t.Errorf("event %d: got %+v", i, info)
			}
		}
	})
	bubble(t, "one correlation id a call", func(t *testing.T) {
		var seen recorder
		r := quiet(t, forbear.Policy{MaxRetries: 1}, forbear.WithObserver(seen.observer()))
		_ = r.Do(t.Context(), failing)
		first := seen.infos[0].CorrelationID
		for _, info := range seen.infos {
			if info.CorrelationID != first || len(first) != 32 {
				t.Errorf("got %q and %q", first, info.CorrelationID)
			}
		}
		_ = r.Do(t.Context(), failing)
		if seen.infos[len(seen.infos)-1].CorrelationID == first {
			t.Error("two calls share an id")
		}
	})
}

type startOnly struct{ n int }

func (s *startOnly) AttemptStarted(context.Context, forbear.Info) { s.n++ }

func TestAnObserverMayWantOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s startOnly
		_ = quiet(t, forbear.Policy{MaxRetries: 2}, forbear.WithObserver(s.observer())).Do(t.Context(), failing)
		if s.n != 3 {
			t.Errorf("%d events, want 3", s.n)
		}
	})
}

func TestObserverThatObservesNothingIsRefused(t *testing.T) {
	_, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(&forbear.Observer{KeepsLog: true}))
	if err == nil || !strings.Contains(err.Error(), "has no callbacks") {
		t.Errorf("got %v", err)
	}
}

func TestNilCollaboratorsAreRefused(t *testing.T) {
	for name, opt := range map[string]forbear.Option{
		"budget": forbear.WithBudget(nil),
		"sink":   forbear.WithDeadLetter(nil),
		"draw":   forbear.WithRand(nil),
	} {
		if _, err := forbear.New("payments", forbear.Policy{}, opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := forbear.New("payments", forbear.Policy{}, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
	if _, err := forbear.New("", forbear.Policy{}); err == nil {
		t.Error("a dependency without a name was accepted")
	}
}

// sink is a dead-letter queue in memory.
type sink struct {
	letters []*forbear.Error
	err     error
	ended   bool // whether the context of the last letter had ended
}

func (s *sink) DeadLetter(ctx context.Context, e *forbear.Error) error {
	s.letters, s.ended = append(s.letters, e), ctx.Err() != nil
	return s.err
}

func TestDurableKindsNeedADeadLetterSink(t *testing.T) {
	for _, kind := range []forbear.Kind{forbear.Event, forbear.Webhook} {
		p := forbear.Policy{Kind: kind}
		if _, err := forbear.New("orders", p); err == nil || !strings.Contains(err.Error(), "R-8") {
			t.Errorf("%v without a sink: got %v", kind, err)
		}
		for _, opt := range []forbear.Option{forbear.WithDeadLetter(&sink{}), forbear.WithCallerDeadLetter()} {
			if _, err := forbear.New("orders", p, opt); err != nil {
				t.Errorf("%v: %v", kind, err)
			}
		}
	}
	if _, err := forbear.New("orders", forbear.Policy{Kind: forbear.Batch}); err != nil {
		t.Errorf("batch: %v", err)
	}
}

func TestExhaustedWorkReachesTheSink(t *testing.T) {
	bubble(t, "exhausted", func(t *testing.T) {
		var q sink
		err := quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(&q), forbear.WithBudget(unlimited())).Do(t.Context(), failing)
		if len(q.letters) != 1 || q.letters[0].Attempts != 6 || !errors.Is(err, forbear.ErrExhausted) || !errors.Is(q.letters[0], errFlaky) {
			t.Errorf("letters %v, error %v", q.letters, err)
		}
	})
	bubble(t, "terminal", func(t *testing.T) {
		var q sink
		_ = quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(&q)).Do(t.Context(), func(context.Context) error { return errFlaky })
		if len(q.letters) != 1 || q.letters[0].Attempts != 1 {
			t.Errorf("letters %v", q.letters)
		}
	})
	bubble(t, "after the caller's deadline", func(t *testing.T) {
		var q sink
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(&q)).Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if len(q.letters) != 1 || q.ended {
			t.Errorf("letters %v, context ended = %v", q.letters, q.ended)
		}
	})
	bubble(t, "a sink that fails", func(t *testing.T) {
		full := errors.New("disk full")
		err := quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(&sink{err: full}), forbear.WithBudget(unlimited())).Do(t.Context(), failing)
		if !errors.Is(err, full) || !errors.Is(err, forbear.ErrExhausted) {
			t.Errorf("got %v, want both errors", err)
		}
	})
	bubble(t, "success", func(t *testing.T) {
		var q sink
		if err := quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(&q)).Do(t.Context(), func(context.Context) error { return nil }); err != nil || len(q.letters) != 0 {
			t.Errorf("letters %v, error %v", q.letters, err)
		}
	})
}

func (o *recorder) observer() *forbear.Observer {
	return &forbear.Observer{AttemptStarted: o.AttemptStarted, AttemptEnded: o.AttemptEnded, RetryScheduled: o.RetryScheduled, Stopped: o.Stopped}
}

func (o *startOnly) observer() *forbear.Observer {
	return &forbear.Observer{AttemptStarted: o.AttemptStarted}
}
