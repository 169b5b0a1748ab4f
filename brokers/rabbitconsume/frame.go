package rabbitconsume

import amqp "github.com/rabbitmq/amqp091-go"

// The properties of a message, its headers included, go in one frame. A server ends the
// connection at a frame that is larger than agreed, for all who publish on it, and its
// reason is often lost on the way: such a message is not sent.

// frame returns how large that frame is at most, in bytes (AMQP 0-9-1, 2.3.5.2 and
// 4.2.6.1).
func frame(m amqp.Publishing) int {
	const around, class, weight, size, flags, mode, priority, timestamp, end = 7, 2, 2, 8, 2, 1, 1, 8, 1
	n := around + class + weight + size + flags + mode + priority + timestamp + end + table(m.Headers)
	for _, s := range []string{m.ContentType, m.ContentEncoding, m.CorrelationId, m.ReplyTo, m.Expiration, m.MessageId, m.Type, m.UserId, m.AppId} {
		n += 1 + len(s)
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

// field is the size of a value and of the letter for its type; no number has more than
// eight bytes.
func field(v any) int {
	n := 1 + 8
	switch v := v.(type) {
	case string:
		n = 5 + len(v)
	case []byte:
		n = 5 + len(v)
	case amqp.Table:
		n = 1 + table(v)
	case []any:
		n = 5
		for _, x := range v {
			n += field(x)
		}
	}
	return n
}
