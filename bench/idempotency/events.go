package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// noLetters is a dead-letter queue that must stay empty.
type noLetters struct{}

func (noLetters) Put(context.Context, deadletter.Letter) error {
	return errors.New("an event became a dead letter")
}

// events are consumed, each with an id of its own and a handler that does
// nothing: what is left is the consumer's claim, its end, and what is between.
func events(open func() (idempotency.Store, *client, error)) func(context.Context, int) (work, error) {
	return func(_ context.Context, conns int) (work, error) {
		store, c, err := open()
		if err != nil {
			return work{}, err
		}
		retryer, err := forbear.New("bench", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
		if err != nil {
			return work{}, err
		}
		consumer, err := consume.New(func(context.Context, consume.Event) error { return nil },
			consume.Options{Group: "bench", Store: store, DLQ: noLetters{}, Retryer: retryer})
		if err != nil {
			return work{}, err
		}
		w := loop(conns, func(ctx context.Context, key string) error {
			if d := consumer.Consume(ctx, consume.Event{ID: key, Source: "bench", Time: time.Now()}); d.Action != consume.Ack || d.Duplicate {
				return fmt.Errorf("event %s: %v, %s, %w", key, d.Action, d.Reason, d.Err)
			}
			return nil
		})
		w.redis, w.close = c, c.close
		return w, nil
	}
}
