// Package watermillconsume is a middleware that puts package consume between a
// Watermill router and its handlers, in place of Watermill's Retry, PoisonQueue
// and Deduplicator.
//
// A Watermill subscriber knows Ack and Nack and no "later". An event that is
// to come again is therefore held in the handler until it is due, up to
// [Options.Hold], and then given back to the broker with an error, to which
// the router responds with a Nack. How soon the event then comes again is up
// to the broker; if that is too early, it waits again. In the meantime it
// occupies one of the subscriber's handlers, which most subscribers have one of for
// each partition or subscription: with many transient failures, subscribe more often, or
// wait less (InPlace, Hold). The adapters of this module
// that speak to a broker themselves do not have this limit.
//
// Experimental: what this package exports may change in any version.
package watermillconsume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/wait"
)

// Options are those of the consumer and of the middleware. The Source of an
// event whose message has none is the topic.
type Options struct {
	consume.Options
	// Hold is how long an event waits here for its retry. Default 1 min.
	Hold time.Duration
	// Publisher publishes what handlers produce, to the topic that the handler
	// was added with. It returns once its broker has the message: AMQP wants publisher
	// confirms, Kafka all in-sync replicas. Without one a message that a handler returns is a final
	// failure: the router publishes after the event is marked as done, so that a
	// crash in between would lose it.
	Publisher message.Publisher
	// Decode makes an event of a message. Nil means [Decode].
	Decode func(*message.Message) (consume.Event, error)
}

// ErrAgain is what the router gets for an event that is to come again.
var ErrAgain = errors.New("deliver the event again")

// Middleware returns the middleware. Handlers mark what may succeed later with
// [forbear.Retryable].
func Middleware(o Options) (message.HandlerMiddleware, error) {
	o.Hold = cmp.Or(o.Hold, time.Minute)
	if o.Decode == nil {
		o.Decode = Decode
	}
	m := &middleware{o}
	var err error
	// One consumer for all handlers: its handler is in the context.
	c, err := consume.New(m.handle, o.Options)
	if err != nil {
		return nil, err
	}
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) { return nil, m.consume(c, h, msg) }
	}, nil
}

type middleware struct{ Options }

// work is what the consumer's handler finds in its context.
type work struct {
	h   message.HandlerFunc
	msg *message.Message
}

type workKey struct{}

func (m *middleware) consume(c *consume.Consumer, h message.HandlerFunc, msg *message.Message) error {
	ctx := context.WithValue(msg.Context(), workKey{}, work{h, msg})
	e, err := m.Decode(msg)
	began := time.Now()
	for {
		if err := c.Ready(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrAgain, err)
		}
		var d consume.Decision
		if err != nil {
			d = c.Poison(ctx, e, deadletter.ReasonUndecodable, err.Error())
		} else {
			d = c.Consume(ctx, e)
		}
		if d.Acknowledge() {
			return nil
		}
		now := time.Now()
		away, left := d.Wait(now), m.Hold-now.Sub(began)
		if !wait.Sleep(ctx, min(away, left)) || away > left {
			return fmt.Errorf("%w: %s", ErrAgain, d.Reason)
		}
	}
}

// handle calls the router's handler under the attempt's context.
func (m *middleware) handle(ctx context.Context, _ consume.Event) error {
	w := ctx.Value(workKey{}).(work)
	defer w.msg.SetContext(w.msg.Context())
	w.msg.SetContext(ctx)
	produced, err := w.h(w.msg)
	if err != nil || len(produced) == 0 {
		return err
	}
	topic := message.PublishTopicFromCtx(ctx)
	if m.Publisher == nil || topic == "" {
		return forbear.Terminal(errors.New("the handler produced messages: set a Publisher for them"))
	}
	if err := m.Publisher.Publish(topic, produced...); err != nil {
		return forbear.Retryable(err, forbear.Hint{})
	}
	return nil
}

// Decode reads a CloudEvent whose attributes are in the metadata, with the
// prefix ce_ or ce-, or makes an event of another message: its id is the UUID,
// its source and type the topic.
func Decode(msg *message.Message) (consume.Event, error) {
	var headers []deadletter.Header
	for _, name := range slices.Sorted(maps.Keys(msg.Metadata)) {
		headers = append(headers, deadletter.Header{Name: name, Value: msg.Metadata[name]})
	}
	e, err := consume.Kafka.Decode(headers, msg.Payload)
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e, err = consume.HTTP.Decode(headers, msg.Payload)
	}
	if errors.Is(err, consume.ErrNotCloudEvent) {
		topic := cmp.Or(message.SubscribeTopicFromCtx(msg.Context()), "watermill")
		e.ID, e.Source, e.Type, err = msg.UUID, topic, topic, nil
	}
	return e, err
}
