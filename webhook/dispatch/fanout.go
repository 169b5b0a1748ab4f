package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// fanOut names in a message the endpoints of its application that subscribe to its
// type. It returns those that subscribe and are passed over.
func (d *Dispatcher) fanOut(ctx context.Context, m *webhook.Message) (passed []string, err error) {
	lanes := d.lanes.tenant(m.Application)
	m.Endpoints = []string{} // an empty list says that no one wants it
	if len(lanes) == 0 {
		a, err := d.cfg.Store.Application(ctx, m.Application)
		if errors.Is(err, webhook.ErrNotFound) {
			err = fmt.Errorf("message %q: %w %q", m.ID, webhook.ErrUnknownApplication, m.Application)
		}
		return nil, cmp.Or(err, a.CheckSuspended(), d.lanes.unsure(m.Application))
	}
	if err := cmp.Or(lanes[0].ep.conf.Tenant.CheckSuspended(), d.lanes.unsure(m.Application)); err != nil {
		return nil, err
	}
	now := d.now()
	for _, l := range lanes {
		switch {
		case !l.ep.conf.Subscribes(m.Type):
		case l.ep.abandoned(now, l.retryer.Policy().Total):
			passed = append(passed, l.ep.id())
		default:
			m.Endpoints = append(m.Endpoints, l.ep.id())
		}
	}
	return passed, nil
}

// abandoned reports whether the endpoint has been disabled for so long that what was
// sent to it then is dead by now. Nothing more is kept for it until it is enabled: a
// receiver that is gone for good would fill the store with letters. Until then its
// messages wait for it, so that a pause loses nothing.
func (e *endpoint) abandoned(now time.Time, total time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conf.State == webhook.Disabled && now.Sub(e.conf.Since) > cmp.Or(total, 24*time.Hour)
}
