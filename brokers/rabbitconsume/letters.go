package rabbitconsume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// LettersOptions say where [Letters] publishes. Dial is required.
type LettersOptions struct {
	// Dial connects. It is called when a letter is published and no connection
	// stands.
	Dial func() (*amqp.Connection, error)
	// Exchange and Key route the messages; with the default exchange, "", the key
	// is the name of a queue. Queues are to be durable.
	Exchange, Key string
}

// Letters publishes dead letters to an exchange: it is a [consume.Options.Topic].
// Make it with [NewLetters] and close it. It is safe for concurrent use, and
// publishes one letter after the other.
type Letters struct {
	o    LettersOptions
	turn chan struct{} // holds one token: whose turn it is
	line *line         // nil without a connection
}

// line is one connection for publishing.
type line struct {
	conn     *amqp.Connection
	ch       *amqp.Channel // in confirm mode
	returned chan amqp.Return
}

// NewLetters returns a topic of dead letters.
func NewLetters(o LettersOptions) (*Letters, error) {
	if o.Dial == nil || o.Exchange == "" && o.Key == "" {
		return nil, errors.New("rabbitconsume: a topic of dead letters needs a way to dial, and an exchange or a queue")
	}
	l := &Letters{o: o, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l, nil
}

// errUnrouted is how a missing queue shows: the server confirms what it drops.
var errUnrouted = errors.New("no queue takes it")

// Put publishes the event of a letter as it came, with headers that say why (see
// [consume.Binding.Original]), persistent, and returns once the server has confirmed
// that queues have it.
func (l *Letters) Put(ctx context.Context, x deadletter.Letter) error {
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("rabbitconsume: dead letter not published: %w", ctx.Err())
	}
	err := l.put(ctx, publishing(x))
	if err == nil {
		return nil
	}
	if !errors.Is(err, errUnrouted) { // whatever it is, the next one begins anew
		l.hangUp()
	}
	return fmt.Errorf("rabbitconsume: dead letter not published to exchange %q, key %q: %w", l.o.Exchange, l.o.Key, err)
}

func (l *Letters) put(ctx context.Context, p amqp.Publishing) error {
	if err := l.connect(ctx); err != nil {
		return err
	}
	confirm, err := l.line.ch.PublishWithDeferredConfirmWithContext(ctx, l.o.Exchange, l.o.Key, true, false, p)
	if err != nil {
		return err
	}
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		return errors.Join(errNotConfirmed, err)
	}
	select {
	case r, ok := <-l.line.returned: // it comes before the confirmation
		if ok {
			return fmt.Errorf("%w: %s", errUnrouted, r.ReplyText)
		}
	default:
	}
	return nil
}

// connect makes a connection when there is none. One that comes too late is closed.
func (l *Letters) connect(ctx context.Context) error {
	if l.line != nil && !l.line.ch.IsClosed() {
		return nil
	}
	l.hangUp()
	type result struct {
		line *line
		err  error
	}
	made := make(chan result, 1)
	go func() {
		line, err := dialLine(l.o.Dial)
		made <- result{line, err}
	}()
	select {
	case r := <-made:
		l.line = r.line
		return r.err
	case <-ctx.Done():
		go func() {
			if r := <-made; r.line != nil {
				_ = r.line.conn.Close()
			}
		}()
		return ctx.Err()
	}
}

// dialLine connects and opens a channel in confirm mode.
func dialLine(dial func() (*amqp.Connection, error)) (*line, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &line{conn, ch, ch.NotifyReturn(make(chan amqp.Return, 1))}, nil
}

// hangUp closes the connection, if there is one.
func (l *Letters) hangUp() {
	if l.line != nil {
		_ = l.line.conn.Close()
		l.line = nil
	}
}

// Close closes the connection. A later Put opens another.
func (l *Letters) Close() error {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	l.hangUp()
	return nil
}

// publishing is the message of a letter. What is a property of messages in RabbitMQ is
// one here, too. A table has each name once: of a repeated header it gets the first.
func publishing(x deadletter.Letter) amqp.Publishing {
	headers, body := consume.AMQP.Original(x)
	p := amqp.Publishing{
		Headers: amqp.Table{}, DeliveryMode: amqp.Persistent, Body: body, ContentType: short(x.ContentType),
		MessageId: short(x.EventID), CorrelationId: short(x.CorrelationID), Type: short(x.Type), Timestamp: x.EnqueuedAt,
	}
	for _, h := range headers {
		if _, there := p.Headers[h.Name]; !there && !strings.EqualFold(h.Name, "Content-Type") && len(h.Name) <= maxShort {
			p.Headers[h.Name] = h.Value
		}
	}
	return p
}

// short returns what fits into a property, or nothing: half an id is another id.
func short(s string) string {
	if len(s) > maxShort {
		return ""
	}
	return s
}

// maxShort is the longest short string of AMQP, in bytes.
const maxShort = 255
