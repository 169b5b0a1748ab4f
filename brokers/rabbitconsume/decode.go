package rabbitconsume

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// underscored is the binding of clients that write cloudEvents_id, as the
// specification allows beside cloudEvents:id.
var underscored = consume.Binding{Prefix: "cloudevents_"}

// Decode reads a CloudEvent, or makes an event of any other message. Its id
// is the message id, without which it cannot be distinguished from others
// and becomes a dead letter. Its source is the application or the exchange,
// its type and key are the type or the routing key.
func Decode(m amqp.Delivery) (consume.Event, error) {
	headers := lines(m)
	e, err := consume.AMQP.Decode(headers, m.Body)
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e, err = underscored.Decode(headers, m.Body)
	}
	if errors.Is(err, consume.ErrNotCloudEvent) {
		e.ID, e.Source, e.Type, err = m.MessageId, "amqp:"+cmp.Or(m.AppId, m.Exchange), cmp.Or(m.Type, m.RoutingKey), nil
		if e.ID == "" {
			err = errors.New("the message has no id")
		}
		e.Key = e.Type
	}
	e.CorrelationID = cmp.Or(e.CorrelationID, m.CorrelationId)
	e.Time = cmp.Or(e.Time, m.Timestamp)
	return e, err
}

// lines returns the headers and the content type, sorted by name. RabbitMQ's
// own headers about waiting are left out: they change with each delivery and
// say nothing about the event.
func lines(m amqp.Delivery) (list []deadletter.Header) {
	if m.ContentType != "" {
		list = append(list, deadletter.Header{Name: "Content-Type", Value: m.ContentType})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if ofServer(name) {
			continue
		}
		value := ""
		switch v := m.Headers[name].(type) {
		case string:
			value = v
		case []byte:
			value = string(v)
		default:
			value = fmt.Sprint(v)
		}
		list = append(list, deadletter.Header{Name: name, Value: value})
	}
	return list
}
