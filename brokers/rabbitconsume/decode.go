package rabbitconsume

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
// content encoding, reply address and application. Values of headers that are not text are
// shown as text.
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
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if ofServer(name) {
			continue
		}
		list = append(list, deadletter.Header{Name: name, Value: shown(m.Headers[name])})
	}
	return list
}

// shown returns a header's value as text.
func shown(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case amqp.Table, []any:
		b, _ := json.Marshal(v)
		return string(b)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// What a message has lost when it comes back from a waiting queue travels in headers: its
// exchange and its routing key, which identify it, and the headers by which the server
// would route the copy to others as well.
const (
	travels         = "x-forbear-"
	exchangeTravels = travels + "exchange"
	keyTravels      = travels + "routing-key"
)

// routes are the headers that RabbitMQ routes by.
var routes = []string{"CC", "BCC"}

// away returns the headers of the copy of a message.
func away(m amqp.Delivery) amqp.Table {
	headers := amqp.Table{exchangeTravels: m.Exchange, keyTravels: m.RoutingKey}
	maps.Copy(headers, m.Headers)
	maps.DeleteFunc(headers, func(name string, _ any) bool { return ofServer(name) })
	for _, name := range routes {
		if v, there := headers[name]; there {
			delete(headers, name)
			headers[travels+name] = v
		}
	}
	return headers
}

// back makes a message that comes from a waiting queue what it was.
func back(m *amqp.Delivery) {
	exchange, there := m.Headers[exchangeTravels].(string)
	key, too := m.Headers[keyTravels].(string)
	if !there || !too {
		return
	}
	m.Exchange, m.RoutingKey = exchange, key
	m.Headers = maps.Clone(m.Headers)
	for _, name := range routes {
		if v, there := m.Headers[travels+name]; there {
			m.Headers[name] = v
		}
	}
	maps.DeleteFunc(m.Headers, func(name string, _ any) bool { return strings.HasPrefix(name, travels) })
}

// ofServer reports whether a header is the server's own, about waiting and deliveries: it
// changes with each of them and says nothing about the event.
func ofServer(name string) bool {
	switch name {
	case "x-death", "x-delivery-count", "x-acquired-count":
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}
