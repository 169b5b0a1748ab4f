package rabbitconsume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rungs are the waiting queues. A queue gives messages back from its head only,
// so that one with a long wait holds up those behind it: with a queue for each
// rung a message comes back at most a rung too late.
var rungs = []time.Duration{
	time.Second, 4 * time.Second, 16 * time.Second, time.Minute, 4 * time.Minute,
	16 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour,
}

// confirmTimeout bounds a copy.
const confirmTimeout = 10 * time.Second

// waiting puts messages into the waiting queues. It is safe for concurrent use.
type waiting struct {
	*Options
	*publisher
}

// newWaiting connects and declares the waiting queues: a server that dies right after the
// first declaration of a quorum queue may forget it, with what is in it, and no event is
// to be there then.
func newWaiting(ctx context.Context, o *Options) (*waiting, error) {
	w := &waiting{o, newPublisher(o.Dial)}
	for _, r := range rungs {
		if err := w.declare(ctx, r); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// rung returns the shortest queue that lasts as long as the wait.
func rung(wait time.Duration) time.Duration {
	for _, r := range rungs {
		if wait <= r {
			return r
		}
	}
	return rungs[len(rungs)-1]
}

// name is that of the waiting queue of a rung.
func (w *waiting) name(r time.Duration) string { return fmt.Sprintf("%s.retry.%v", w.Queue, r) }

// declare declares the waiting queue of a rung. Messages that expire there are
// dead-lettered by the server into the queue they came from. A classic queue would forget
// them before that queue has them on disk, and lose all that have come back lately when
// the server dies; a quorum queue keeps them until that is confirmed.
//
// The queue itself does not expire: to publish is no use of a queue in RabbitMQ's sense,
// and it would go with what waits in it.
func (w *waiting) declare(ctx context.Context, r time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // beside other work a new one takes seconds
	defer cancel()
	out, err := w.take(ctx)
	if err != nil {
		return err
	}
	_, err = within(ctx, func() (amqp.Queue, error) {
		return out.QueueDeclare(w.name(r), true, false, false, false, amqp.Table{
			"x-queue-type":              "quorum",
			"x-dead-letter-strategy":    "at-least-once",
			"x-overflow":                "reject-publish", // which that asks for
			"x-dead-letter-exchange":    "",
			"x-dead-letter-routing-key": w.Queue,
		})
	}, func(amqp.Queue) {})
	go func() { _ = out.Close() }()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("queue %q, where events wait for their retry: %w", w.name(r), err)
	if said, ok := errors.AsType[*amqp.Error](err); ok && (said.Code == amqp.AccessRefused || said.Code == amqp.PreconditionFailed) {
		err = fmt.Errorf("%w: give the user the rights to configure and read it and to write to amq.default; a queue of that name with other arguments must be deleted: %w", errUnfit, err)
	}
	return err
}

// put copies a message into a waiting queue and returns once the server has confirmed
// that it is there: only then may the original be acknowledged. A longer
// wait than a day is cut to one, and the consumer then puts the event off
// again. A stop does not cut it short: the copy may be there already, and the
// message would be in two queues. A queue that someone has deleted is made again.
func (w *waiting) put(ctx context.Context, m amqp.Delivery, until time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	r := rung(time.Until(until))
	err := w.copyTo(ctx, r, m, until)
	if errors.Is(err, errUnrouted) {
		w.Logger.LogAttrs(ctx, slog.LevelError, "waiting queue deleted, with the events in it", slog.String("queue", w.name(r)))
		if err = w.declare(ctx, r); err == nil {
			err = w.copyTo(ctx, r, m, until)
		}
	}
	return err
}

func (w *waiting) copyTo(ctx context.Context, r time.Duration, m amqp.Delivery, until time.Time) error {
	// Expiration is in milliseconds, rounded up: an event must not come early.
	left := min(max(time.Until(until), time.Millisecond), r)
	return w.publish(ctx, "", w.name(r), amqp.Publishing{
		Headers: away(m), ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: m.Priority,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, MessageId: m.MessageId, Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppId,
		Expiration: strconv.FormatInt(int64((left+time.Millisecond-1)/time.Millisecond), 10), Body: m.Body,
	})
}
