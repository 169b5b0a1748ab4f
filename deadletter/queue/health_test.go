package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// illness is that of a store while it is on: it fails, or does not return.
type illness struct{ on, hangs atomic.Bool }

var errIll = errors.New("the store is at 10.1.2.3 and ill")

func (i *illness) fault() error {
	for i.on.Load() {
		if !i.hangs.Load() {
			return errIll
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

type ailing struct {
	*memstore.Store
	claims, notes, jobs, counts, letters illness
}

func (s *ailing) ClaimAlerts(ctx context.Context, limit int, lease time.Duration) ([]queue.Alert, error) {
	if err := s.claims.fault(); err != nil {
		return nil, err
	}
	return s.Store.ClaimAlerts(ctx, limit, lease)
}

func (s *ailing) WriteBackAlert(ctx context.Context, a queue.Alert, sent bool, wait time.Duration) error {
	if err := s.notes.fault(); err != nil {
		return err
	}
	return s.Store.WriteBackAlert(ctx, a, sent, wait)
}

func (s *ailing) ClaimJob(ctx context.Context, owner string, lease time.Duration) (queue.Job, bool, error) {
	if err := s.jobs.fault(); err != nil {
		return queue.Job{}, false, err
	}
	return s.Store.ClaimJob(ctx, owner, lease)
}

func (s *ailing) Count(ctx context.Context, f queue.Filter) (int, error) {
	if err := s.counts.fault(); err != nil {
		return 0, err
	}
	return s.Store.Count(ctx, f)
}

func (s *ailing) List(ctx context.Context, f queue.Filter) ([]deadletter.Letter, error) {
	if f.Queue != "" { // a redrive's
		return s.Store.List(ctx, f)
	}
	if err := s.letters.fault(); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, f)
}

// No notifier is healthy while alerts are not read, or are sent and not noted; redrives and
// the retention say the same of themselves.
func TestHealthKnowsItsStore(t *testing.T) {
	for name, part := range map[string]struct {
		ill func(*ailing) *illness
		of  int // which of the healths
	}{
		"alerts are not read":        {func(s *ailing) *illness { return &s.claims }, 0},
		"alerts are not noted":       {func(s *ailing) *illness { return &s.notes }, 0},
		"redrives are not read":      {func(s *ailing) *illness { return &s.jobs }, 1},
		"a redrive does not go on":   {func(s *ailing) *illness { return &s.counts }, 1},
		"expired letters not listed": {func(s *ailing) *illness { return &s.letters }, 2},
	} {
		for _, hangs := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: ", and nothing returns"}[hangs], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &ailing{Store: &memstore.Store{}}
					a := queue.NewAlerter(s, quiet, named{&flaky{}, "good"})
					bury(t, s.Store, 3)
					sent := func(context.Context, deadletter.Letter) error { return nil } // and what becomes of it stays unknown
					r := queue.NewRedriver(s, "me", map[string]queue.Target{"orders": sent}, quiet)
					if _, err := r.Start(t.Context(), queue.Job{Filter: queue.Filter{Queue: "orders"}, By: "ann"}, "job"); err != nil {
						t.Fatal(err)
					}
					kept := &queue.Retention{Store: s, Log: quiet}
					ctx, stop := context.WithCancel(t.Context())
					for _, run := range []func(context.Context){a.Run, r.Run, kept.Run} {
						go run(ctx)
					}
					defer func() { stop(); synctest.Wait() }()
					raise := func() {
						if err := s.Raise(t.Context(), queue.Alert{Queue: "orders", Reason: "exhausted"}); err != nil {
							t.Error(err)
						}
					}
					of := func(which int) queue.Health {
						return []queue.Health{a.Health()[1], r.Health(), kept.Health()}[which]
					}
					raise()
					time.Sleep(11 * time.Minute)
					for i := range 3 {
						if h := of(i); !h.Healthy {
							t.Fatalf("while all is well: %+v", h)
						}
					}
					ill := part.ill(s)
					ill.hangs.Store(hangs)
					ill.on.Store(true)
					for range 25 {
						raise()
						time.Sleep(time.Minute)
					}
					for i := range 3 {
						h := of(i)
						if h.Healthy != (i != part.of) {
							t.Errorf("it is ill, and health says %+v", h)
						}
						if i == part.of && !hangs && (h.Cause != errIll || !strings.HasSuffix(h.Error, errIll.Error())) {
							t.Errorf("it does not say why: %+v", h)
						}
					}
					ill.on.Store(false)
					time.Sleep(11 * time.Minute)
					for i := range 3 {
						if h := of(i); !h.Healthy || h.Error != "" {
							t.Errorf("when it is well again: %+v", h)
						}
					}
				})
			})
		}
	}
}

// Of two processes one may fail to deliver an alert that the other one delivers. It has no
// other for days, and does not say that long that the notifier is down.
func TestHealthLearnsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		here, there := &flaky{down: true}, &flaky{}
		a, b := queue.NewAlerter(s, quiet, named{here, "pager"}), queue.NewAlerter(s, quiet, named{there, "pager"})
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); synctest.Wait() }()
		go a.Run(ctx)
		if err := s.Raise(t.Context(), queue.Alert{Queue: "orders", Reason: "exhausted"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if h := a.Health()[1]; h.Healthy {
			t.Fatalf("while no one takes it: %+v", h)
		}
		go b.Run(ctx)
		for range 1000 {
			if time.Sleep(time.Minute); len(there.told()) > 0 {
				break
			}
		}
		time.Sleep(time.Minute)
		if h := a.Health()[1]; len(there.told()) != 1 || !h.Healthy || h.Error != "" {
			t.Errorf("told %d, and where it failed: %+v", len(there.told()), h)
		}
		a.Test(t.Context(), "ann") // which no one else takes
		time.Sleep(time.Hour)
		if h := a.Health()[1]; h.Healthy {
			t.Errorf("after a test alert that failed: %+v", h)
		}
	})
}
