package rabbitconsume

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// fit refuses what would lose events, or bring none, on each connection. A queue's length
// limits, time to live and policies the server shows to no client of AMQP.
func fit(conn *amqp.Connection, queue string) error {
	if tooOld(conn.Properties) {
		return fmt.Errorf("%w: waiting for retries needs RabbitMQ 3.10 or later, and this is %v", errUnfit, conn.Properties["version"])
	}
	said, err := differs(conn, queue)
	if said == nil {
		return err
	}
	for _, u := range unfits {
		if u.is(said) {
			return fmt.Errorf("%w: queue %q %s", errUnfit, queue, u.why)
		}
	}
	return nil
}

// errUnfit is of what stays as it is until an operator changes it.
var errUnfit = errors.New("it does not fit")

// unfits are queues that lose events, by what the server says of them.
var unfits = []struct {
	is  func(*amqp.Error) bool
	why string
}{
	{differsIn("durable"), "is not durable, and is lost when the server restarts: declare it durable"},
	{differsIn("auto_delete"), "is deleted with its messages when the last process ends: declare it without auto-delete"},
	{func(e *amqp.Error) bool { return e.Code == amqp.ResourceLocked }, "is exclusive, and is deleted with its connection: declare it without exclusive"},
	{func(e *amqp.Error) bool { return differsIn("x-expires")(e) && !strings.HasSuffix(e.Reason, "is none") }, "is deleted with its messages when no process runs for a while: declare it without x-expires"},
	{func(e *amqp.Error) bool {
		return differsIn("x-queue-type")(e) && strings.Contains(e.Reason, "'stream'")
	}, "is a stream, which has no acknowledgements: bind a quorum or classic queue to its exchange"},
}

// differsIn reports whether the server names a setting as one that differs.
func differsIn(setting string) func(*amqp.Error) bool {
	return func(e *amqp.Error) bool {
		return e.Code == amqp.PreconditionFailed && strings.HasPrefix(e.Reason, "PRECONDITION_FAILED - inequivalent arg '"+setting+"' ")
	}
}

// differs returns in what a queue differs from a durable one that expires at a time which
// cannot be. The server names the first setting alone. Nothing is changed by that, also
// where there is no queue: one that cannot be is not made. It is asked before the queue is
// consumed, since one with auto-delete would go with that consumer.
func differs(conn *amqp.Connection, queue string) (said *amqp.Error, err error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	defer func() { _ = ch.Close() }()
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-expires": int32(-1)})
	if conn.IsClosed() {
		return nil, err
	}
	said, _ = errors.AsType[*amqp.Error](err)
	return said, nil
}

// tooOld reports whether a server says that it is one on whose quorum queues messages do
// not expire: what waits there would wait for ever.
func tooOld(server amqp.Table) bool {
	var major, minor int
	version, _ := server["version"].(string)
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return server["product"] == "RabbitMQ" && err == nil && (major < 3 || major == 3 && minor < 10)
}
