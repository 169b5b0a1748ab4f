package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// ailing is a store of which a part fails, or does not return, while it is ill.
type ailing struct {
	*memstore.Store
	ill   string // the part
	hangs bool
	on    atomic.Bool
}

var errIll = errors.New("the store is at 10.1.2.3 and ill")

func (s *ailing) fault(ctx context.Context, part string) error {
	if s.ill != part || !s.on.Load() {
		return nil
	}
	for s.hangs && s.on.Load() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if s.hangs {
		return nil
	}
	return errIll
}

func (s *ailing) EndpointChanges(ctx context.Context, since int64) (c store.EndpointChanges, err error) {
	if err := s.fault(ctx, "endpoints"); err != nil {
		return c, err
	}
	return s.Store.EndpointChanges(ctx, since)
}

func (s *ailing) NextDues(ctx context.Context) ([]store.NextDue, error) {
	if err := s.fault(ctx, "due"); err != nil {
		return nil, err
	}
	return s.Store.NextDues(ctx)
}

func (s *ailing) WriteBackAndClaim(ctx context.Context, step store.Step) (r store.StepResult, err error) {
	part := "claims"
	if len(step.WriteBacks) > 0 {
		part = "outcomes"
	}
	if err := s.fault(ctx, part); err != nil {
		return r, err
	}
	return s.Store.WriteBackAndClaim(ctx, step)
}

func (s *ailing) Relay(ctx context.Context, limit int, admit func(*webhook.Message) (map[string]bool, error)) (r store.RelayResult, err error) {
	if err := s.fault(ctx, "outbox"); err != nil {
		return r, err
	}
	if s.ill == "stuck" && s.on.Load() {
		r.Stuck = []error{errIll}
		return r, nil
	}
	return s.Store.Relay(ctx, limit, admit)
}

func (s *ailing) Reclaim(ctx context.Context, limit int) (int, error) {
	if err := s.fault(ctx, "leases"); err != nil {
		return 0, err
	}
	return s.Store.Reclaim(ctx, limit)
}

func (s *ailing) Abandon(ctx context.Context, limit int) (int, error) {
	if err := s.fault(ctx, "deletions"); err != nil {
		return 0, err
	}
	return s.Store.Abandon(ctx, limit)
}

func (s *ailing) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	if err := s.fault(ctx, "history"); err != nil {
		return 0, err
	}
	return s.Store.Sweep(ctx, age, limit)
}

func (s *ailing) PutTallies(ctx context.Context, owner string, list []store.Tally) error {
	if err := s.fault(ctx, "counts"); err != nil {
		return err
	}
	return s.Store.PutTallies(ctx, owner, list)
}

func (s *ailing) Raise(ctx context.Context, a queue.Alert) error {
	if err := s.fault(ctx, "alerts"); err != nil {
		return err
	}
	return s.Store.Raise(ctx, a)
}

func (s *ailing) SetEndpointState(ctx context.Context, id string, state webhook.EndpointState, by webhook.Party, why string, failing time.Time) error {
	if s.ill == "alerts" && s.on.Load() {
		return errIll // and so its alert is raised apart
	}
	return s.Store.SetEndpointState(ctx, id, state, by, why, failing)
}

// What a dispatcher does with its store is not healthy within some intervals after it has
// begun to fail, or to stand still, says why, and is healthy again soon after that.
func TestHealthTellsTheTruth(t *testing.T) {
	for _, part := range []string{"endpoints", "due", "claims", "outcomes", "outbox", "stuck", "leases", "deletions", "history", "counts", "alerts"} {
		for _, hangs := range []bool{false, true} {
			if hangs && part == "stuck" {
				continue
			}
			t.Run(part+map[bool]string{false: " fails", true: " hangs"}[hangs], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &ailing{Store: &memstore.Store{}, ill: part, hangs: hangs}
					r := &receiver{respond: always(200)}
					d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Logger: quiet, Transport: r})
					if err == nil {
						_, err = d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"})
					}
					if err != nil {
						t.Fatal(err)
					}
					ctx, stop := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() { done <- d.Run(ctx) }()
					defer func() {
						s.on.Store(false)
						stop()
						if err := <-done; err != nil {
							t.Error(err)
						}
					}()
					work := func() {
						m := webhook.Message{ID: webhook.NewID("m"), Endpoints: []string{"a"}, Body: []byte(`{}`)}
						if _, err := d.Accept(t.Context(), m); err != nil {
							t.Error(err)
						}
					}
					ill := func() (list []queue.Health) {
						for _, h := range d.Health() {
							if !h.Healthy {
								list = append(list, h)
							}
						}
						return list
					}
					work()
					time.Sleep(time.Minute)
					if list := ill(); len(list) > 0 {
						t.Fatalf("while all is well: %+v", list)
					}
					s.on.Store(true)
					if part == "alerts" {
						r.mu.Lock()
						r.respond = always(410) // which disables it
						r.mu.Unlock()
					}
					for i := range 5 {
						if i == 0 || part != "alerts" && part != "endpoints" { // which messages wait for
							work()
						}
						time.Sleep(20 * time.Second)
					}
					list := ill()
					want := strings.Replace(part, "stuck", "outbox", 1)
					if len(list) != 1 || list[0].Name != want || list[0].Error == "" {
						t.Fatalf("it is ill, and health says %+v", list)
					}
					if h := list[0]; !hangs && (h.Cause == nil || !strings.HasSuffix(h.Error, errIll.Error()) || h.LastFailure.IsZero() || h.Failures < 2) {
						t.Errorf("health says %+v", h)
					}
					s.on.Store(false)
					time.Sleep(time.Minute)
					if list := ill(); len(list) > 0 {
						t.Errorf("when it is well again: %+v", list)
					}
				})
			})
		}
	}
}

// A store that is away just when Run begins has it wait, and not end: no one would begin
// it again.
func TestRunBeginsWithoutItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &ailing{Store: &memstore.Store{}, ill: "endpoints"}
		r := &receiver{respond: always(200)}
		d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Logger: quiet, Transport: r})
		if err == nil {
			_, err = d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		}
		if err == nil {
			err = d.Load(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		s.on.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(time.Minute)
		s.on.Store(false)
		accept(t, d, 1)
		time.Sleep(time.Minute)
		if n := r.since(time.Time{}); n != 1 {
			t.Errorf("%d messages sent, want 1", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
