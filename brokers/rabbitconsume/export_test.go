package rabbitconsume

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TooOld is for its test.
var TooOld = tooOld

// Waiting puts messages off as a session does.
func Waiting(conn *amqp.Connection, queue string) (put func(context.Context, amqp.Delivery, time.Duration) error, err error) {
	w, err := newWaiting(conn, queue)
	if err != nil {
		return nil, err
	}
	return w.put, nil
}
