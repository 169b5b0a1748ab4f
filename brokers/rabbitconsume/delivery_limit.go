package rabbitconsume

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// worn is after how many failed deliveries a message is copied. A quorum queue drops one
// at its limit, 20 unless it says otherwise from RabbitMQ 4 on, and each process that
// ends counts for all that it has fetched, whether it has handled them or not.
const worn = 10

// renew lets the count of a message that was delivered often begin anew: a copy of it
// comes back by the shortest of the waiting queues. It reports whether the message has left
// this process.
func (s *session) renew(ctx context.Context, m amqp.Delivery) (gone bool) {
	if n, _ := m.Headers["x-delivery-count"].(int64); n < worn || !s.waiting.clear(ctx, time.Now()) {
		return false
	}
	err := s.waiting.put(ctx, m, time.Now().Add(soon))
	if err == nil {
		err = m.Ack(false)
	}
	if err != nil {
		s.Logger.LogAttrs(ctx, slog.LevelWarn, "event not copied, and close to the delivery limit at which the server drops it", slog.String("queue", s.Queue), slog.String("error", err.Error()))
	}
	return err == nil
}
