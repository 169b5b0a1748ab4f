package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// refusing is a store that refuses a number of steps.
type refusing struct {
	*memstore.Store
	refuse int
	steps  int
}

func (s *refusing) WriteBackAndClaim(context.Context, store.Step) (store.StepResult, error) {
	if s.steps++; s.steps <= s.refuse {
		return store.StepResult{}, errors.New("the store is away")
	}
	return store.StepResult{OK: []bool{true}}, nil
}

// What was written makes the lane due when it has work again; a delivery whose lease
// was lost is another process's.
func TestWrittenOutcomesMakeTheLaneDue(t *testing.T) {
	for _, c := range []struct {
		name string
		o    store.WriteBack
		lost bool
		due  time.Duration // -1: not at all
	}{
		{"retried", store.WriteBack{Kind: store.Retried, After: time.Minute}, false, time.Minute},
		{"postponed", store.WriteBack{Kind: store.Postponed, After: time.Second}, false, time.Second},
		{"released", store.WriteBack{Kind: store.Released}, false, 0},
		{"delivered", store.WriteBack{Kind: store.Delivered}, false, -1},
		{"delivered, others behind it", store.WriteBack{Kind: store.Delivered, OrderKey: "k"}, false, 0},
		{"retried under a lost lease", store.WriteBack{Kind: store.Retried, After: time.Minute}, true, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{})
				r.to.due = time.Time{}
				c.o.Endpoint = "a"
				r.d.written([]store.WriteBack{c.o}, []bool{!c.lost})
				if due := r.to.due; due.IsZero() != (c.due < 0) || c.due >= 0 && time.Until(due) != c.due {
					t.Errorf("due in %v, want %v", time.Until(due), c.due)
				}
			})
		})
	}
}

// What a step that failed has written is neither written again, under a lease that is
// over, nor taken for another process's.
func TestHalfWrittenStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		r.to.due = time.Time{}
		batch := []store.WriteBack{{ID: 1, Endpoint: "a", Kind: store.Dead}, {ID: 2, Endpoint: "a", Kind: store.Retried, After: time.Minute}}
		if rest := r.d.unwritten(batch, []bool{false, true}); len(rest) != 1 || rest[0].ID != 1 || time.Until(r.to.due) != time.Minute {
			t.Errorf("%+v is left, and the lane is due in %v", rest, time.Until(r.to.due))
		}
		if rest := r.d.unwritten(batch, nil); len(rest) != 2 {
			t.Errorf("%+v is left where nothing was written", rest)
		}
	})
}

// letters records the dead letters that observers hear of.
type letters []forbear.DeadLettered

func (l *letters) DeadLettered(_ context.Context, e forbear.DeadLettered) { *l = append(*l, e) }

// A dead letter is observed when it is on disk, and not by a process that lost
// its lease.
func TestWrittenDeadLettersAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen letters
		r := newRig(t, status(400), webhook.Endpoint{}, forbear.WithObserver(&forbear.Observer{DeadLettered: seen.DeadLettered}))
		o := r.process(r.job())
		for _, ok := range []bool{false, true} {
			if len(seen) != 0 {
				t.Errorf("observed before it is written: %+v", seen)
			}
			r.d.written([]store.WriteBack{o}, []bool{ok})
		}
		want := forbear.DeadLettered{Dependency: "webhook:a", Queue: webhook.Queue, Reason: reason.Terminal}
		if len(seen) != 1 || seen[0] != want {
			t.Errorf("observed is %+v, want %+v", seen, want)
		}
	})
}

// Outcomes that the store refuses are written when it is back, or given up after
// five minutes; sooner when Run is to end, but not at once.
func TestRefusedOutcomesAreWrittenLater(t *testing.T) {
	for _, c := range []struct {
		name       string
		refuse     int
		stopping   bool
		written    bool
		least, top time.Duration
	}{
		{"the store is back", 8, false, true, time.Millisecond, 10 * time.Second},
		{"the store stays away", 1 << 30, false, false, rewriteFor, rewriteFor + 2*time.Second},
		{"at a stop, and it is back", 5, true, true, time.Millisecond, 2 * time.Second},
		{"at a stop", 1 << 30, true, false, time.Millisecond, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, status(200), webhook.Endpoint{})
				s := &refusing{Store: r.store, refuse: c.refuse}
				r.d.cfg.Store = s
				if c.stopping {
					close(r.d.stop)
				}
				r.to.due = time.Time{}
				began := time.Now()
				r.d.rewrite(t.Context(), []store.WriteBack{{Endpoint: "a", Kind: store.Released}}, errors.New("first"))
				if took := time.Since(began); took < c.least || took > c.top {
					t.Errorf("took %v", took)
				}
				if written := !r.to.due.IsZero(); written != c.written || s.steps < min(c.refuse, rewriteAtStop) {
					t.Errorf("written %v after %d tries", written, s.steps)
				}
			})
		})
	}
}

// A step that the store refuses gives the lanes their claims back, rate included,
// and has the outcomes written apart from the loop.
func TestRefusedStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{Rate: 100})
		s := &refusing{Store: r.store, refuse: 1}
		r.d.cfg.Store = s
		c := r.d.wants()
		if len(c.specs) != 1 || c.specs[0].Max != 10 || r.to.tokens != 0 {
			t.Fatalf("wanted %+v", c.specs)
		}
		r.d.step(t.Context(), c, []store.WriteBack{{Endpoint: "a", Kind: store.Released}})
		if r.to.tokens != 10 || len(r.d.looks) != 1 {
			t.Errorf("%v of the rate are back, %d looks are asked for", r.to.tokens, len(r.d.looks))
		}
		r.d.rewriting.Wait()
		if s.steps != 2 {
			t.Errorf("%d steps, want the outcomes written by the second", s.steps)
		}
	})
}
