package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Redrive is the target of the webhooks' dead letters: it puts the message of a
// letter on its way again, with a count of attempts and 24 hours of its own. An
// error that matches [queue.ErrRefused] would come again each time. done says that
// the letter's part is over: its message, which had been accepted nowhere, is accepted
// by the endpoints of its application now.
func (d *Dispatcher) Redrive(ctx context.Context, l deadletter.Letter) (done bool, err error) {
	if err := l.CheckReadable(); err != nil {
		return false, err
	}
	m := store.FromLetter(l)
	if m.Application != "" {
		return true, unredrivable(d.acceptAnew(ctx, m))
	}
	if _, _, err = d.admitter(ctx)(&m); err == nil {
		err = d.cfg.Store.Requeue(ctx, l, d.keepsOrder(l.Destination))
	}
	if err != nil {
		return false, unredrivable(err)
	}
	d.dueAt(l.Destination, time.Now())
	d.wake()
	return false, nil
}

// acceptAnew accepts a message to an application that a letter had.
func (d *Dispatcher) acceptAnew(ctx context.Context, m webhook.Message) error {
	list, err := d.Accept(ctx, m)
	if err == nil && len(list[0].Endpoints) == 0 {
		err = fmt.Errorf("%w: no endpoint of application %q subscribes to its type", queue.ErrRefused, m.Application)
	}
	return err
}

// unredrivable marks errors that a redrive cannot fix.
func unredrivable(err error) error {
	for _, final := range []error{webhook.ErrInvalid, webhook.ErrUnknownEndpoint, webhook.ErrUnknownApplication, webhook.ErrSuspended, webhook.ErrConflict} {
		if errors.Is(err, final) {
			return fmt.Errorf("%w: %w", queue.ErrRefused, err)
		}
	}
	return err
}
