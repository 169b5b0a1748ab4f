package store

import (
	"cmp"
	"errors"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// ErrSending refuses to erase a message that is under way.
var ErrSending = errors.New("it is being sent or redriven: cancel it, or try again later")

// MessageContent is what is sent of a message, and to which of its endpoints: an id may
// stand for another message at another endpoint.
type MessageContent struct {
	Endpoints []string `json:"endpoints"`
	// WebhookID is what receivers see as webhook-id, where that is not the id itself.
	WebhookID      string           `json:"webhook_id,omitempty"`
	Type           string           `json:"type,omitempty"`
	Source         string           `json:"source,omitempty"`
	Subject        string           `json:"subject,omitempty"`
	Key            string           `json:"key,omitempty"`
	IdempotencyKey string           `json:"idempotency_key,omitempty"`
	CorrelationID  string           `json:"correlation_id,omitempty"`
	ContentType    string           `json:"content_type,omitempty"`
	Headers        []webhook.Header `json:"headers,omitempty"`
	Created        time.Time        `json:"created_at,omitzero"`
	Payload        []byte           `json:"payload_base64,omitempty"`
	// Dropped says that the payload is kept no more, and Erased that nothing is.
	Dropped bool `json:"payload_dropped,omitempty"`
	Erased  bool `json:"erased,omitempty"`
	// Unreadable is why nothing of it can be read: for one, this process lacks the key
	// that it is encrypted under. "" where it can.
	Unreadable string `json:"unreadable,omitempty"`
}

// ContentOf returns what is sent of m to endpoints.
func ContentOf(m *webhook.Message, endpoints []string) MessageContent {
	sent := m.SentID()
	if sent == m.ID {
		sent = ""
	}
	return MessageContent{
		Endpoints: endpoints, WebhookID: sent, Type: m.Type, Source: m.Source, Subject: m.Subject, Key: m.Key, IdempotencyKey: m.SentKey(), CorrelationID: m.CorrelationID,
		ContentType: cmp.Or(m.ContentType, "application/json"), Headers: m.Headers, Created: m.Created, Payload: m.Body,
	}
}

// Mask returns c without its payload and the values of headers that may be secret.
func (c MessageContent) Mask() MessageContent {
	c.Payload, c.Headers = nil, deadletter.MaskHeaders(c.Headers)
	return c
}
