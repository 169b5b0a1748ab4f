package rabbitconsume

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// Make it with [NewLetters] and close it. It is safe for concurrent use.
type Letters struct {
	o LettersOptions
	p *publisher
}

// NewLetters returns a topic of dead letters.
func NewLetters(o LettersOptions) (*Letters, error) {
	if o.Dial == nil || o.Exchange == "" && o.Key == "" {
		return nil, errors.New("rabbitconsume: want Dial, and an exchange or a queue, for dead letters")
	}
	return &Letters{o, newPublisher(o.Dial)}, nil
}

// Put publishes the event of a letter as it came, with headers that say why (see
// [consume.Binding.Original]), persistent, and returns once the server has confirmed
// that queues have it. Of one that is too large for the server a notice is published (see
// [consume.Binding.Notice]).
func (l *Letters) Put(ctx context.Context, x deadletter.Letter) error {
	headers, body := consume.AMQP.Original(x)
	err := l.p.publish(ctx, l.o.Exchange, l.o.Key, publishing(x, headers, body))
	if tooLarge(err) {
		err = l.p.publish(ctx, l.o.Exchange, l.o.Key, publishing(x, consume.AMQP.Notice(x), nil))
	}
	if err != nil {
		return fmt.Errorf("rabbitconsume: dead letter not published to exchange %q, key %q: %w", l.o.Exchange, l.o.Key, err)
	}
	return nil
}

// tooLarge reports whether a message has more headers than a frame, or is larger than the
// server takes: it closes the message's channel then.
func tooLarge(err error) bool {
	said, ok := errors.AsType[*amqp.Error](err)
	return errors.Is(err, errFrame) || ok && said.Code == amqp.PreconditionFailed
}

// Close closes the connection. A later Put opens another.
func (l *Letters) Close() error {
	l.p.close()
	return nil
}

// publishing is the message of a letter. What is a property of messages in RabbitMQ is
// one here, too. A table has each name once: of a repeated header it gets the first.
func publishing(x deadletter.Letter, headers []deadletter.Header, body []byte) amqp.Publishing {
	p := amqp.Publishing{
		Headers: amqp.Table{}, DeliveryMode: amqp.Persistent, Body: body, ContentType: short(x.ContentType),
		MessageId: short(x.EventID), CorrelationId: short(x.CorrelationID), Type: short(x.Type), Timestamp: x.EnqueuedAt,
	}
	var types map[string]any
	for _, h := range headers {
		if h.Name == typesTravel {
			types = typesOf(h.Value)
			continue
		}
		if i := slices.IndexFunc(properties, func(p property) bool { return strings.EqualFold(p.name, h.Name) }); i >= 0 {
			properties[i].set(&p, short(h.Value))
			continue
		}
		if slices.Contains(routes, h.Name) { // it would be routed by it
			h.Name = travels + h.Name
		}
		if _, there := p.Headers[h.Name]; !there && len(h.Name) <= maxShort {
			p.Headers[h.Name] = h.Value
		}
	}
	for name, v := range types {
		if text, there := p.Headers[name]; there && text != deadletter.Masked {
			p.Headers[name] = untyped(v)
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
