package dispatch

import (
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
// refuses all of them when the id of one stands for another message.
func (d *Dispatcher) Accept(ctx context.Context, msgs ...webhook.Message) ([]webhook.Accepted, error) {
	admit := d.admitter(ctx)
	ordered := map[string]bool{}
	for i := range msgs {
		m := &msgs[i]
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
			continue
		}
		d.stats.accepted.Add(1)
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
// have just added it.
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

// admit completes a message and refuses what could not be delivered.
func (d *Dispatcher) admit(m *webhook.Message) error {
	if err := m.Prepare(d.now().UTC()); err != nil {
		return err
	}
	for _, e := range m.Endpoints {
		if d.lane(e) == nil {
			return fmt.Errorf("message %q: %w %q", m.ID, webhook.ErrUnknownEndpoint, e)
		}
	}
	return nil
}

// relay empties the outbox, as messages that are accepted like all others.
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
// letter on its way again.
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

// Deliveries returns how a message fares at each of its endpoints.
func (d *Dispatcher) Deliveries(ctx context.Context, message string) ([]webhook.Info, error) {
	list, err := d.cfg.Store.Deliveries(ctx, message)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("message %q: %w", message, webhook.ErrNotFound)
	}
	return list, err
}
