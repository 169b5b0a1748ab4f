package rabbitconsume

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// For their tests.
var (
	TooOld = tooOld
	Frame  = frame
)

// Publishing is the message of a letter.
func Publishing(x deadletter.Letter) amqp.Publishing {
	headers, body := consume.AMQP.Original(x)
	return publishing(x, headers, body)
}

// Waiting puts messages off as a session does.
func Waiting(ctx context.Context, dial func() (*amqp.Connection, error), queue string) (put func(context.Context, amqp.Delivery, time.Duration) error, err error) {
	w, err := newWaiting(ctx, &Options{Queue: queue, Dial: dial, Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, w.close)
	return func(ctx context.Context, m amqp.Delivery, wait time.Duration) error {
		return w.put(ctx, m, time.Now().Add(wait))
	}, nil
}
