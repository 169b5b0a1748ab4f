package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// Accept takes messages over: when it returns without an error they are on
// disk, and will be delivered or become dead letters. [webhook.ErrConflict]
// refuses all of them when the id of one stands for another message. After any
// error nothing was promised, and the same call may be made again: messages that
// were taken are duplicates then.
func (d *Dispatcher) Accept(ctx context.Context, msgs ...webhook.Message) ([]webhook.Accepted, error) {
	admit := d.admitter(ctx)
	// A message without a key has no order to keep, whatever its endpoint.
	ordered := map[string]bool{}
	for i := range msgs {
		m := &msgs[i]
		m.Trace(ctx)
		if err := admit(m); err != nil {
			return nil, err
		}
		for _, e := range m.Endpoints {
			if m.Key != "" && d.keepsOrder(e) {
				ordered[e] = true
			}
		}
	}
	accepted, err := d.cfg.Store.Accept(ctx, msgs, ordered)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i := range msgs {
		if accepted[i].Duplicate {
			continue // its lane knows of it, or the next look will
		}
		d.stats.accepted.Add(1)
		// The lanes count on the monotonic clock, NotBefore is of the wall's.
		due := now.Add(max(msgs[i].NotBefore.Sub(d.now()), 0))
		for _, e := range msgs[i].Endpoints {
			d.dueAt(e, due)
		}
	}
	d.wake()
	return accepted, nil
}

// admitter returns admit for a few messages. It reads the endpoints once more,
// at the most, when it meets one that it does not know: another process may
// have just added it. Not more often, or messages to an endpoint that does not
// exist would read the whole list each.
func (d *Dispatcher) admitter(ctx context.Context) func(*webhook.Message) error {
	read := false
	return func(m *webhook.Message) error {
		err := d.admit(m)
		if !errors.Is(err, webhook.ErrUnknownEndpoint) || read {
			return err
		}
		read = true
		if err := d.Load(ctx); err != nil {
			return err
		}
		return d.admit(m)
	}
}

// admit completes a message and refuses what could not be delivered: with
// [webhook.ErrInvalid], or with [webhook.ErrUnknownEndpoint].
func (d *Dispatcher) admit(m *webhook.Message) error {
	if err := cmp.Or(m.CheckPayload(d.cfg.MaxPayload), m.Prepare(d.now().UTC())); err != nil {
		return err
	}
	for _, e := range m.Endpoints {
		if d.lane(e) == nil {
			return fmt.Errorf("message %q: %w %q", m.ID, webhook.ErrUnknownEndpoint, e)
		}
	}
	return nil
}

// relay empties the outbox, as messages that are accepted like all others. A row
// that is refused has become a dead letter, of which the observers learn here:
// there is no endpoint, and so no lane, whose Retryer could say so.
func (d *Dispatcher) relay(ctx context.Context) {
	for ctx.Err() == nil {
		admit := d.admitter(ctx)
		done, err := d.cfg.Store.Relay(ctx, storeBatch, func(m *webhook.Message) (bool, error) {
			err := admit(m)
			return d.keepsOrder(m.Endpoints[0]), err
		})
		for _, l := range done.Dead {
			d.outbox.DeadLettered(ctx, l.Queue, forbear.ReasonTerminal)
		}
		d.stats.accepted.Add(int64(done.Accepted))
		if done.Rows > 0 {
			d.look()
		}
		if !d.warn(ctx, "outbox not read", err) || done.Rows == 0 {
			return
		}
	}
}

// Redrive is the target of the webhooks' dead letters: it puts the message of a
// letter on its way again, with a count of attempts and 24 hours of its own. An
// error that matches [deadletter.ErrRefused] would come again each time.
func (d *Dispatcher) Redrive(ctx context.Context, l deadletter.Letter) error {
	m := webhook.FromLetter(l)
	err := d.admitter(ctx)(&m)
	if err == nil {
		err = d.cfg.Store.Requeue(ctx, l, d.keepsOrder(l.Destination))
	}
	if errors.Is(err, webhook.ErrInvalid) || errors.Is(err, webhook.ErrUnknownEndpoint) || errors.Is(err, webhook.ErrConflict) {
		return fmt.Errorf("%w: %w", deadletter.ErrRefused, err)
	}
	if err != nil {
		return err
	}
	d.dueAt(l.Destination, time.Now())
	d.wake()
	return nil
}

// Deliveries returns how a message fares at each of its endpoints, with the
// history of its attempts. The error matches [webhook.ErrNotFound] when the store
// has no such message, or has it no more.
func (d *Dispatcher) Deliveries(ctx context.Context, message string) ([]webhook.DeliveryInfo, error) {
	list, err := d.cfg.Store.Deliveries(ctx, message)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %q: %w", message, webhook.ErrNotFound)
	}
	return list, err
}
