package rabbitconsume

import (
	"cmp"
	"encoding/json"
	"errors"
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
// its type and key are the type or the routing key. Beside the headers an event has lines for
// content encoding, reply address and application; x-forbear-types has the values of headers
// that are no text.
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

// property is what RabbitMQ keeps beside a message's headers and an event has there.
type property struct {
	name string
	of   func(*amqp.Delivery) string
	set  func(*amqp.Publishing, string)
}

var properties = []property{
	{"Content-Type", func(m *amqp.Delivery) string { return m.ContentType }, func(*amqp.Publishing, string) {}}, // the letter has it
	{"Content-Encoding", func(m *amqp.Delivery) string { return m.ContentEncoding }, func(p *amqp.Publishing, v string) { p.ContentEncoding = v }},
	{"Reply-To", func(m *amqp.Delivery) string { return m.ReplyTo }, func(p *amqp.Publishing, v string) { p.ReplyTo = v }},
	{"App-Id", func(m *amqp.Delivery) string { return m.AppId }, func(p *amqp.Publishing, v string) { p.AppId = v }},
}

// lines returns the headers, sorted by name, behind the properties. RabbitMQ's
// own headers about waiting are left out: they change with each delivery and
// say nothing about the event.
func lines(m amqp.Delivery) (list []deadletter.Header) {
	for _, p := range properties {
		if v := p.of(&m); v != "" {
			list = append(list, deadletter.Header{Name: p.name, Value: v})
		}
	}
	types := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if ofServer(name) {
			continue
		}
		text, is := shown(m.Headers[name])
		if !is && !deadletter.CarriesCredential(name) { // whose value a letter does not have
			types[name] = typed(m.Headers[name])
		}
		list = append(list, deadletter.Header{Name: name, Value: text})
	}
	if len(types) > 0 {
		text, _ := json.Marshal(types)
		list = append(list, deadletter.Header{Name: typesTravel, Value: string(text)})
	}
	return list
}
