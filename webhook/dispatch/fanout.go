package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/webhook"
)

// fanOut names in a message the endpoints of its application that subscribe to its
// type. It returns those that subscribe and are passed over.
func (d *Dispatcher) fanOut(ctx context.Context, m *webhook.Message) (passed []string, err error) {
	list := d.receivers.tenant(m.Application)
	m.Endpoints = []string{} // an empty list says that no one wants it
	if len(list) == 0 {
		a, err := d.cfg.Store.Application(ctx, m.Application)
		if errors.Is(err, webhook.ErrNotFound) {
			err = fmt.Errorf("message %q: %w %q", m.ID, webhook.ErrUnknownApplication, m.Application)
		}
		return nil, cmp.Or(err, a.CheckSuspended(), d.receivers.unsure(m.Application))
	}
	if err := cmp.Or(list[0].endpoint().conf.Tenant.CheckSuspended(), d.receivers.unsure(m.Application)); err != nil {
		return nil, err
	}
	now := d.now()
	for _, r := range list {
		switch {
		case !r.endpoint().conf.Subscribes(m.Type):
		case r.abandoned(now):
			passed = append(passed, r.id)
		default:
			m.Endpoints = append(m.Endpoints, r.id)
		}
	}
	return passed, nil
}
