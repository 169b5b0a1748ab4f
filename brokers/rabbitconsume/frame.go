package rabbitconsume

import amqp "github.com/rabbitmq/amqp091-go"

// The properties of a message, its headers included, go in one frame. A server ends the
// connection at a frame that is larger than agreed, for all who publish on it, and its
// reason is often lost on the way: such a message is not sent.

// frame returns the size of that frame in bytes (AMQP 0-9-1, 2.3.5.2 and 4.2.6.1).
func frame(m amqp.Publishing) int {
	const around, class, weight, size, flags, end = 7, 2, 2, 8, 2, 1
	n := around + class + weight + size + flags + end
	for _, s := range []string{m.ContentType, m.ContentEncoding, m.CorrelationId, m.ReplyTo, m.Expiration, m.MessageId, m.Type, m.UserId, m.AppId} {
		if s != "" {
			n += 1 + len(s)
		}
	}
	if len(m.Headers) > 0 {
		n += table(m.Headers)
	}
	if m.DeliveryMode > 0 {
		n++
	}
	if m.Priority > 0 {
		n++
	}
	if !m.Timestamp.IsZero() {
		n += 8
	}
	return n
}

func table(t amqp.Table) int {
	n := 4
	for name, v := range t {
		n += 1 + len(name) + field(v)
	}
	return n
}

// field is the size of a value and the letter for its type.
func field(v any) int {
	switch v := v.(type) {
	case string:
		return 5 + len(v)
	case []byte:
		return 5 + len(v)
	case amqp.Table:
		return 1 + table(v)
	case []any:
		n := 5
		for _, x := range v {
			n += field(x)
		}
		return n
	case nil:
		return 1
	case bool, byte, int8:
		return 2
	case int16, uint16:
		return 3
	case int, int32, uint32, float32:
		return 5
	case amqp.Decimal:
		return 6
	}
	return 9
}
