package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Accept takes messages over: when it returns without an error they are on
// disk, and will be delivered or become dead letters. [webhook.ErrConflict]
// refuses all of them when the id of one stands for another message, and
// [ErrRate] when an application has sent too many. After any error nothing was
// promised, and the same call may be made again: messages that were taken are
// duplicates then.
func (d *Dispatcher) Accept(ctx context.Context, msgs ...webhook.Message) ([]webhook.Accepted, error) {
	admit := d.admitter(ctx)
	list := make([]webhook.Accepted, len(msgs))
	ordered := map[string]bool{}
	var kept []webhook.Message // which go anywhere
	var places []int           // of those in list
	for i, m := range msgs {
		m.Trace(ctx)
		tenant := m.Application
		order, passed, err := admit(&m)
		if err != nil {
			return nil, err
		}
		maps.Copy(ordered, order)
		list[i] = webhook.Accepted{ID: m.ID, PassedOver: passed}
		if tenant != "" {
			list[i].Endpoints = m.Endpoints
		}
		if len(m.Endpoints) > 0 {
			kept, places = append(kept, m), append(places, i)
		}
	}
	if err := d.limit(msgs); err != nil || len(kept) == 0 {
		return list, err
	}
	accepted, err := d.cfg.Store.Accept(ctx, kept, ordered)
	if err != nil {
		return nil, err
	}
	for k, i := range places {
		if list[i].Duplicate = accepted[k].Duplicate; !list[i].Duplicate { // else its receivers know of it, or the next look will
			d.stats.accepted.Add(1)
			d.announce(&kept[k])
		}
	}
	d.wake()
	return list, nil
}

// announce lets the receivers of a message know of it.
func (d *Dispatcher) announce(m *webhook.Message) {
	// The receivers count on the monotonic clock, NotBefore is of the wall's.
	due := time.Now().Add(max(m.NotBefore.Sub(d.now()), 0))
	for _, e := range m.Endpoints {
		d.dueAt(e, due)
	}
}

// admitter returns admit for a few messages. It reads what has changed of the
// endpoints, once at the most: for a message to an application, whose endpoints
// another process may have added a moment ago, and for one to an endpoint that it
// does not know, or whose application it believes to be suspended. Not more often, or
// messages to an endpoint that does not exist would each read.
func (d *Dispatcher) admitter(ctx context.Context) func(*webhook.Message) (ordered map[string]bool, passed []string, err error) {
	read := false
	return func(m *webhook.Message) (_ map[string]bool, passed []string, err error) {
		if m.Application == "" {
			passed, err = d.admit(ctx, m)
		}
		if m.Application != "" || errors.Is(err, webhook.ErrUnknownEndpoint) || errors.Is(err, webhook.ErrSuspended) {
			if !read {
				if err := d.current(ctx); err != nil {
					return nil, nil, err
				}
			}
			read = true
			passed, err = d.admit(ctx, m)
		}
		if err != nil {
			return nil, nil, err
		}
		return d.ordered(m), passed, nil
	}
}

// admit completes a message, finds the endpoints of its application and refuses
// what could not be delivered: with [webhook.ErrInvalid], or with
// [webhook.ErrUnknownEndpoint], [webhook.ErrUnknownApplication] or
// [webhook.ErrSuspended]; and for now, with [webhook.ErrUnreadable], what may be for an
// endpoint that this process cannot serve.
func (d *Dispatcher) admit(ctx context.Context, m *webhook.Message) (passed []string, err error) {
	if err := cmp.Or(m.CheckPayload(d.cfg.MaxPayload), m.Prepare(d.now().UTC())); err != nil {
		return nil, err
	}
	if m.Application != "" {
		return d.fanOut(ctx, m)
	}
	for _, e := range m.Endpoints {
		r := d.receiver(e)
		if r == nil {
			return nil, cmp.Or(d.receivers.outdated(e), fmt.Errorf("message %q: %w %q: add it with PUT /v1/endpoints/{id} or forbear endpoints add", m.ID, webhook.ErrUnknownEndpoint, e))
		}
		if err := r.endpoint().conf.Tenant.CheckSuspended(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ordered names the endpoints of a message that keep the order of its key. A
// message without one has no order to keep.
func (d *Dispatcher) ordered(m *webhook.Message) (ordered map[string]bool) {
	for _, e := range m.Endpoints {
		if m.Key == "" || !d.keepsOrder(e) {
			continue
		}
		if ordered == nil {
			ordered = map[string]bool{}
		}
		ordered[e] = true
	}
	return ordered
}

// Deliveries returns the state of a message at each of its endpoints, with the
// history of its attempts. The error matches [webhook.ErrNotFound] when the store
// has no such message, or has it no more.
func (d *Dispatcher) Deliveries(ctx context.Context, message string) ([]store.DeliveryInfo, error) {
	list, err := d.cfg.Store.Deliveries(ctx, message)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %q: %w", message, webhook.ErrNotFound)
	}
	return list, err
}

// Cancel ends messages that wait: see [store.MessageStore]. One that this process
// has claimed is sent once more.
func (d *Dispatcher) Cancel(ctx context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	results, err := d.cfg.Store.Cancel(ctx, numbers, by)
	d.look() // others of their keys may go
	return results, err
}

// SendAgain makes messages due again that have ended: see [store.MessageStore].
func (d *Dispatcher) SendAgain(ctx context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	results, err := d.cfg.Store.SendAgain(ctx, numbers, queue.DefaultMaxRedrives, by)
	d.look()
	return results, err
}

// fanOut names in a message the endpoints of its application that subscribe to its
// type. It returns those that subscribe and are passed over.
func (d *Dispatcher) fanOut(ctx context.Context, m *webhook.Message) (passed []string, err error) {
	list := d.receivers.tenant(m.Application)
	m.Endpoints = []string{} // an empty list says that no one wants it
	if len(list) == 0 {
		a, err := d.cfg.Store.Application(ctx, m.Application)
		if errors.Is(err, webhook.ErrNotFound) {
			err = fmt.Errorf("message %q: %w %q: add it with PUT /v1/applications/{id} or forbear applications add", m.ID, webhook.ErrUnknownApplication, m.Application)
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
