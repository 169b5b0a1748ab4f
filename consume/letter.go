package consume

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
)

// DeadLetters takes what cannot be done. A queue.Store does; its Put
// raises the alert that R-8 demands, and other implementations have to.
type DeadLetters interface {
	Put(ctx context.Context, l deadletter.Letter) error
}

// letter is the dead letter of an event: the original as it came, but for the
// values of headers that carry credentials.
func (c *Consumer) letter(e *Event, p progress, reason string, f forbear.Failure, description string) deadletter.Letter {
	now := time.Now()
	headers := make([]deadletter.Header, len(e.Headers))
	for i, h := range e.Headers {
		if deadletter.CarriesCredential(h.Name) {
			h.Value = deadletter.Masked
		}
		headers[i] = h
	}
	policy := c.Retryer.Policy()
	l := deadletter.Letter{
		ID: c.LetterID(*e), Queue: c.Queue, Destination: c.Group,
		EventID: asText(e.ID), Source: asText(e.Source), Type: e.Type, Subject: e.Subject, PartitionKey: e.Key, CorrelationID: e.CorrelationID,
		Payload: e.Data, ContentType: e.ContentType, Headers: headers,
		Reason: reason, ErrorType: f.Type, Description: deadletter.Redact(description, deadletter.MaxDescription),
		Policy: policy, Attempts: p.Attempts, MaxAttempts: policy.MaxRetries + 1, Postponed: p.Postponed,
		EnqueuedAt: cmp.Or(e.Time, now), DeadAt: now, State: deadletter.Dead,
		TraceID: cmp.Or(e.TraceContext().TraceID(), deadletter.TraceID(e.Headers, e.CorrelationID)),
	}
	switch {
	case p.Cause != nil:
		l.SetCause(*p.Cause)
	case p.Attempts == 0: // it never came to its handler: the description is all that is known
		l.Error = l.Description
	}
	l.SetHistory(p.History)
	return l
}

// deadLetter writes the letter, to the store first, which takes it once however often
// the topic fails, and reports it only then.
func (c *Consumer) deadLetter(ctx context.Context, e *Event, l deadletter.Letter, why forbear.Reason) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := c.DLQ.Put(limited, l); err != nil {
		return err
	}
	if err := c.publish(ctx, l); err != nil {
		return err
	}
	c.redriven(ctx, e, deadletter.RedriveDead)
	edge.DeadLettered(ctx, c.Retryer, c.Queue, why)
	return nil
}

// publish gives the topic its copy of a letter.
func (c *Consumer) publish(ctx context.Context, l deadletter.Letter) error {
	if c.Topic == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), topicTimeout)
	defer cancel()
	if err := c.Topic.Put(ctx, l); err != nil {
		return fmt.Errorf("dead-letter topic: %w", err)
	}
	return nil
}

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

// Producers may send any bytes as ids and sources. A dead letter is JSON, and PostgreSQL
// takes no zero byte in a text. Ids and sources that do not fit are base64 in a letter, so
// that a redrive finds the event again.
const notText = "base64:"

// asText returns what a letter says for an id or a source. No two have the same.
func asText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && !strings.HasPrefix(s, notText) {
		return s
	}
	return notText + base64.StdEncoding.EncodeToString([]byte(s))
}

// fromText is the inverse of asText.
func fromText(s string) string {
	if text, ok := strings.CutPrefix(s, notText); ok {
		if b, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(b)
		}
	}
	return s
}
