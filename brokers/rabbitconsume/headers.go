package rabbitconsume

import (
	"maps"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

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
