// Package rabbitconsume brings events from RabbitMQ to package consume.
//
// RabbitMQ cannot deliver a message again later. An event whose retry is due within
// a moment waits here (see [consume.Options.InPlace]), up to 16 for each handler; one
// that is to come again later is copied, with everything that it has, into a queue of
// events that wait for about as long, from which it returns to its own queue
// when its time is over. The copy is confirmed before the original is
// acknowledged, and the consumer's deduplication drops what a crash in
// between leaves twice.
//
// The waiting queues are named QUEUE.retry.DURATION, nine of them, and are declared when
// Run connects. They are quorum queues, from RabbitMQ 3.10 on, which keep a message until
// it is back. They do not expire: whoever deletes the queue for good deletes them, too.
// One that is deleted earlier is made again; what waited in it is gone with it.
//
// A quorum queue of RabbitMQ 4 drops a message after 20 deliveries, or dead-letters it where
// it has an exchange for that. Each process that ends counts for all messages that it had
// fetched. A message that was delivered ten times is copied, so that its count begins anew:
// a delivery limit under 12 is too low for that. Messages have at most 16 MiB
// (max_message_size); a larger dead letter goes to its exchange without a body. Classic
// queues have one replica.
//
// Experimental: what this package exports may change in any version.
package rabbitconsume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
)

// Options say how [Run] works. Queue and Dial are required.
type Options struct {
	// Queue exists and is durable. A queue that drops messages by itself,
	// because of a length or a delivery limit, has a dead-letter exchange of its
	// own.
	Queue string
	// Dial connects. It is called again whenever the connection was lost.
	Dial func() (*amqp.Connection, error)
	// Concurrency is the number of handlers at once. Default 8.
	Concurrency int
	// Decode makes an event of a message. Nil means [Decode]. What it returns
	// beside an error goes into the dead letter.
	Decode func(amqp.Delivery) (consume.Event, error)
	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger
}

// Waits between two attempts to connect; the cap also says how long a
// connection must have lasted to count as a success.
const (
	reconnectBase = time.Second
	reconnectCap  = 30 * time.Second
)

// Run handles the messages of a queue until ctx ends, which is no error; events
// under way are brought to their end first. A lost connection is dialed again,
// with full jitter, for as long as ctx lasts. A queue that does not exist, is
// deleted, or would lose events by what it is, ends it with an error.
func Run(ctx context.Context, to *consume.Consumer, o Options) error {
	if to == nil || o.Queue == "" || o.Dial == nil || o.Concurrency < 0 {
		return errors.New("rabbitconsume: want a consumer, a queue, Dial, and a Concurrency of 0 or more")
	}
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Decode == nil {
		o.Decode = Decode
	}
	pool := slots.New(o.Concurrency)
	defer pool.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // for handlers, when it ends with an error
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := connected(ctx, to, &o, pool)
		if ctx.Err() != nil {
			break
		}
		if noQueue(err) || errors.Is(err, errUnfit) {
			return fmt.Errorf("rabbitconsume: %w", err)
		}
		if time.Since(began) > reconnectCap {
			failures = 0
		}
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "connection lost", slog.String("queue", o.Queue), slog.String("error", fmt.Sprint(err)))
		// One of many processes that lost the same broker: full jitter
		// spreads them.
		wait.Sleep(ctx, wait.Jitter(min(reconnectBase<<min(failures, 5), reconnectCap)))
	}
	return nil
}

// noQueue reports whether the server says that there is no such queue. It says 404,
// too, of a queue on a node that is down, which comes back.
func noQueue(err error) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == amqp.NotFound && strings.Contains(said.Reason, "no queue")
}

// connected works on one connection until it is lost or ctx ends.
func connected(ctx context.Context, to *consume.Consumer, o *Options, pool *slots.Pool) error {
	conn, err := o.Dial()
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if err := fit(conn, o.Queue); err != nil {
		return err
	}
	s, err := newSession(ctx, conn, to, o)
	if err != nil {
		return err
	}
	return s.run(ctx, pool)
}
