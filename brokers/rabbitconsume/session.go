package rabbitconsume

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
)

// session is the work on one connection. It ends with the connection and is
// never reused: channels and deliveries belong to it.
type session struct {
	*Options
	to       *consume.Consumer
	in       *amqp.Channel
	waiting  *waiting
	messages <-chan amqp.Delivery
	lost     chan *amqp.Error
}

// prefetch bounds the messages that are here and not acknowledged, per handler,
// beside those that wait for a retry. Some more than one keep a handler busy while
// another message is on its way.
const prefetch = 4

// newSession opens a channel to consume on. Copies have a connection of their own, whose
// failure must not end the consumption.
func newSession(ctx context.Context, conn *amqp.Connection, to *consume.Consumer, o *Options) (*session, error) {
	s := &session{Options: o, to: to, lost: conn.NotifyClose(make(chan *amqp.Error, 1))}
	var err error
	if s.in, err = conn.Channel(); err != nil {
		return nil, err
	}
	if err = s.in.Qos(min(prefetch*o.Concurrency+slots.Waiting(o.Concurrency), math.MaxUint16), 0, false); err != nil {
		return nil, err
	}
	if s.messages, err = s.in.Consume(o.Queue, "", false, false, false, false, nil); err != nil {
		return nil, err
	}
	s.waiting, err = newWaiting(ctx, o) // of a queue that is there
	return s, err
}

// errCanceled is how a deleted queue shows: the connection stays. So does one whose
// node ended; a new connection tells.
var errCanceled = errors.New("the server ended the consumer: check that the queue exists")

// run handles messages until the connection is lost or ctx ends. Handlers go on when
// the connection is lost, such as when one has taken longer than the server's
// consumer_timeout: their messages come again, and are duplicates then.
func (s *session) run(ctx context.Context, pool *slots.Pool) error {
	defer s.waiting.close()
	defer func() {
		if ctx.Err() != nil { // while they can be acknowledged
			pool.Close()
		}
	}()
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { // also while all handlers are busy
		if err := <-s.lost; err != nil {
			stop(err)
			return
		}
		stop(amqp.ErrClosed)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-working.Done():
			return context.Cause(working)
		case m, ok := <-s.messages:
			if !ok {
				return errCanceled
			}
			if s.renew(working, m) {
				continue
			}
			back(&m)
			e, err := s.Decode(m)
			key := ""
			if s.to.Ordered {
				key = e.Key
			}
			pool.Do(working, key, func(job context.Context) {
				if s.to.Ready(job) != nil {
					_ = m.Nack(false, true) // another process may have it at once
					return
				}
				handling := slots.Keep(ctx, job)
				for !s.writeBack(job, m, s.decide(handling, e, err)) {
				}
			})
		}
	}
}

// decide asks the consumer about an event, or dead-letters what could not be
// decoded.
func (s *session) decide(ctx context.Context, e consume.Event, err error) consume.Decision {
	if err != nil {
		return s.to.Poison(ctx, e, deadletter.ReasonUndecodable, err.Error())
	}
	return s.to.Consume(ctx, e)
}

// again is the ceiling of the wait for another try to write a decision back.
const (
	again = 10 * time.Second
	soon  = 10 * time.Millisecond // no event turns without a pause
)

// writeBack writes the decision back to the server, and reports whether the event has left
// this process. What the server does not receive is delivered again, and is a duplicate
// then. While the server takes no copies an event waits here: to give it back would count
// as a delivery, of which a quorum queue allows a few alone.
func (s *session) writeBack(ctx context.Context, m amqp.Delivery, d consume.Decision) (gone bool) {
	var err error
	switch until := time.Now().Add(max(d.Wait(time.Now()), soon)); {
	case d.Acknowledge():
		err = m.Ack(false)
	case !s.waiting.clear(ctx, until) && ctx.Err() == nil:
		return false
	case ctx.Err() != nil: // this process is being stopped: another may have it at once
		err = m.Nack(false, true)
	default:
		if err = s.waiting.put(ctx, m, until); err != nil {
			s.Logger.LogAttrs(ctx, slog.LevelWarn, "event not copied to its waiting queue: it waits in this process", slog.String("queue", s.Queue), slog.String("reason", d.Reason), slog.String("error", err.Error()))
			hold(ctx, wait.Jitter(again), nil)
			return false
		}
		err = m.Ack(false)
	}
	if err != nil {
		s.Logger.LogAttrs(ctx, slog.LevelWarn, "event not acknowledged: it will be delivered again", slog.String("queue", s.Queue), slog.String("reason", d.Reason), slog.String("error", err.Error()))
		_ = m.Nack(false, true)
	}
	return true
}

// hold waits beside the slot of the handler that ctx is of, or in it when too many wait.
func hold(ctx context.Context, d time.Duration, over <-chan struct{}) {
	if !slots.Wait(ctx, d, over) {
		wait.Woken(ctx, d, over)
	}
}
