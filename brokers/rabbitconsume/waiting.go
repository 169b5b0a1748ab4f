package rabbitconsume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
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

// A waiting queue outlives the longest wait by far, so that it never expires
// with messages in it.
const (
	unusedFor      = 48 * time.Hour // after which a waiting queue goes away
	confirmTimeout = 10 * time.Second
)

// waiting puts messages into the waiting queues. It is safe for concurrent use.
type waiting struct {
	queue string
	mu    sync.Mutex
	ch    *amqp.Channel // in confirm mode
	known map[time.Duration]bool
}

// newWaiting opens a channel in confirm mode.
func newWaiting(conn *amqp.Connection, queue string) (*waiting, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	return &waiting{queue: queue, ch: ch, known: map[time.Duration]bool{}}, ch.Confirm(false)
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

// declare declares the waiting queue of a rung, once for each connection,
// and returns its name. Messages that expire there are dead-lettered by the
// server into the queue they came from. A classic queue would forget them before that
// queue has them on disk, and lose all that have come back lately when the server dies;
// a quorum queue keeps them until that is confirmed.
func (w *waiting) declare(r time.Duration) (string, error) {
	name := fmt.Sprintf("%s.wait.quorum.%v", w.queue, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[r] {
		return name, nil
	}
	_, err := w.ch.QueueDeclare(name, true, false, false, false, amqp.Table{
		"x-queue-type":              "quorum",
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish", // which that asks for
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": w.queue,
		"x-expires":                 unusedFor.Milliseconds(),
	})
	w.known[r] = err == nil
	return name, err
}

var errNotConfirmed = errors.New("the server did not confirm the copy")

// put copies a message into a waiting queue and returns once the server has
// confirmed the copy: only then may the original be acknowledged. A longer
// wait than a day is cut to one, and the consumer then puts the event off
// again. A stop does not cut it short: the copy may be there already, and the
// message would be in two queues.
func (w *waiting) put(ctx context.Context, m amqp.Delivery, wait time.Duration) error {
	wait = min(max(wait, time.Millisecond), rungs[len(rungs)-1])
	name, err := w.declare(rung(wait))
	if err != nil {
		return err
	}
	headers := maps.Clone(m.Headers)
	delete(headers, "x-death") // the server's, of the wait before; it grows
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	confirm, err := w.ch.PublishWithDeferredConfirmWithContext(ctx, "", name, true, false, amqp.Publishing{
		Headers: headers, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: m.Priority,
		CorrelationId: m.CorrelationId, ReplyTo: m.ReplyTo, MessageId: m.MessageId, Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppId,
		// Expiration is in milliseconds, rounded up: an event must not
		// come early.
		Expiration: strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10), Body: m.Body,
	})
	if err != nil {
		return err
	}
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		return errors.Join(errNotConfirmed, err)
	}
	return nil
}
