package rabbitconsume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher publishes on a connection of its own, which it makes when it is first needed.
// While RabbitMQ has an alarm of memory or disk it reads nothing more from a connection
// that has published, neither acknowledgements: those are on another one, so that queues
// can still be emptied. It is safe for concurrent use.
type publisher struct {
	dial func() (*amqp.Connection, error)
	turn chan struct{} // holds one token: who may dial

	mu      sync.Mutex
	conn    *amqp.Connection
	idle    []*outlet
	alarmed <-chan struct{} // closed when the alarm is over; nil without one
}

// outlet is a channel in confirm mode on which one message at a time is published, so
// that what comes back is about that one.
type outlet struct {
	*amqp.Channel

	returned chan amqp.Return
	closed   chan *amqp.Error // why the server closed it
	frame    int              // the largest that the server takes, in bytes; none or less: any
}

func newPublisher(dial func() (*amqp.Connection, error)) *publisher {
	p := &publisher{dial: dial, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

var (
	errNotConfirmed = errors.New("the server did not confirm the message")
	// errUnrouted is how a missing queue shows: the server confirms what it drops.
	errUnrouted = errors.New("no queue is bound for it")
	errFrame    = errors.New("properties and headers are larger than a frame")
)

// publish returns once the server has confirmed that queues have the message. A message that
// comes back is in none, and the error is errUnrouted.
func (p *publisher) publish(ctx context.Context, exchange, key string, m amqp.Publishing) error {
	out, err := p.take(ctx)
	if err != nil {
		return err
	}
	if n := frame(m); out.frame > 0 && n > out.frame {
		p.leave(out)
		return fmt.Errorf("%w: %d bytes, want at most %d", errFrame, n, out.frame)
	}
	confirm, err := out.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, m)
	if err == nil {
		var ok bool
		if ok, err = confirm.WaitContext(ctx); err != nil || !ok {
			err = errors.Join(errNotConfirmed, err, out.why())
		}
	}
	if err != nil { // its late confirmation is not to be that of another
		go func() { _ = out.Close() }()
		return err
	}
	defer p.leave(out)
	select {
	case r := <-out.returned: // it comes before the confirmation
		return fmt.Errorf("%w: %s", errUnrouted, r.ReplyText)
	default:
		return nil
	}
}

// leave makes a channel the next one's.
func (p *publisher) leave(out *outlet) {
	p.mu.Lock()
	p.idle = append(p.idle, out)
	p.mu.Unlock()
}

// take returns a channel that no one else publishes on.
func (p *publisher) take(ctx context.Context) (*outlet, error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	for len(p.idle) > 0 {
		out := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !out.IsClosed() {
			p.mu.Unlock()
			return out, nil
		}
	}
	conn := p.conn
	p.mu.Unlock()
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = within(ctx, p.dial, hangUp); err != nil {
			return nil, err
		}
		p.use(conn)
	}
	return within(ctx, func() (*outlet, error) { return newOutlet(conn) }, func(out *outlet) { _ = out.Close() })
}

func newOutlet(conn *amqp.Connection) (*outlet, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close()
		return nil, err
	}
	return &outlet{ch, ch.NotifyReturn(make(chan amqp.Return, 1)), ch.NotifyClose(make(chan *amqp.Error, 1)), conn.Config.FrameSize}, nil
}

// why is what the server says of a message that made it close the channel, or the
// connection. It comes before confirmations end.
func (o *outlet) why() error {
	select {
	case err := <-o.closed:
		if err != nil { // closed
			return err
		}
	default:
	}
	return nil
}

// use makes conn the publisher's, and follows its alarms.
func (p *publisher) use(conn *amqp.Connection) {
	alarms := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	p.mu.Lock()
	p.conn, p.idle, p.alarmed = conn, nil, nil
	p.mu.Unlock()
	go func() {
		over := make(chan struct{})
		for a := range alarms {
			p.mu.Lock()
			switch {
			case p.conn != conn:
			case a.Active && p.alarmed == nil:
				over = make(chan struct{})
				p.alarmed = over
			case !a.Active && p.alarmed != nil:
				close(over)
				p.alarmed = nil
			}
			p.mu.Unlock()
		}
		p.mu.Lock()
		if p.conn == conn && p.alarmed != nil {
			close(over)
			p.alarmed = nil
		}
		p.mu.Unlock()
	}()
}

// clear reports whether the server has no alarm. While it has one it waits until then,
// beside the slot of the handler that ctx is of.
func (p *publisher) clear(ctx context.Context, until time.Time) bool {
	p.mu.Lock()
	over := p.alarmed
	p.mu.Unlock()
	if over == nil {
		return true
	}
	hold(ctx, time.Until(until), over)
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// close closes the connection, if there is one. A later message opens another.
func (p *publisher) close() {
	p.mu.Lock()
	conn := p.conn
	p.conn, p.idle = nil, nil
	p.mu.Unlock()
	if conn != nil {
		hangUp(conn)
	}
}

// goodbye bounds how long a server may take to let a connection go: one that is away, or
// has an alarm, does not.
const goodbye = 2 * time.Second

func hangUp(conn *amqp.Connection) { _ = conn.CloseDeadline(time.Now().Add(goodbye)) }

// within returns what f returns, or the error of ctx when that ends first. What comes too
// late is dropped.
func within[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type result struct {
		v   T
		err error
	}
	made := make(chan result, 1)
	go func() {
		v, err := f()
		made <- result{v, err}
	}()
	select {
	case r := <-made:
		return r.v, r.err
	case <-ctx.Done():
		go func() {
			if r := <-made; r.err == nil {
				drop(r.v)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}
