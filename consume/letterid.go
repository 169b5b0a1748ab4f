package consume

import (
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// LetterID returns the id of the dead letter of an event. It follows from the
// event, so that a second letter changes nothing. Of an event without id or source all
// that it has tells it from others, but for headers that change when it is delivered
// again; two that are the same in everything have one letter.
func (c *Consumer) LetterID(e Event) string {
	if e.letter != "" {
		return e.letter
	}
	parts := []string{c.Group, e.Source, e.ID}
	if e.ID == "" || e.Source == "" {
		parts = append(parts, e.Type, e.Subject, e.Key, e.ContentType, e.CorrelationID)
		if !e.Time.IsZero() {
			parts = append(parts, strconv.FormatInt(e.Time.UnixNano(), 10))
		}
		for _, h := range e.Headers {
			if !ofDelivery(h.Name) && !deadletter.CarriesCredential(h.Name) {
				parts = append(parts, h.Name, h.Value)
			}
		}
		parts = append(parts, string(e.Data))
	}
	return "dlq_" + idempotency.Digest(parts...)
}

// ofDelivery reports whether a header is about one delivery of an event, and another in
// the next: those of HTTP requests, of webhooks, of RabbitMQ and of this package.
func ofDelivery(name string) bool {
	switch name = strings.ToLower(name); name {
	case "date", "traceparent", "tracestate", "x-request-id", "x-retry-attempt", "webhook-timestamp", "webhook-signature",
		"x-death", "x-delivery-count", "x-acquired-count":
		return true
	}
	for _, prefix := range []string{ownPrefix, "x-first-death-", "x-last-death-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
