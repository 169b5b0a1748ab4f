package webhook

import "time"

// Message is what is to be delivered. Body is required, and either Endpoints or
// Application.
type Message struct {
	// ID and an endpoint identify the message permanently: the id is sent as
	// webhook-id in every attempt, as [Message.SentID] has it. The same message again is a duplicate, and
	// another one with the same id and endpoint is refused with [ErrConflict].
	// An ID is made when it is empty.
	ID        string   `json:"id"`
	Endpoints []string `json:"endpoints"`
	// Application sends the message to each of an application's endpoints that
	// subscribes to its Type. When it is accepted they take its place in Endpoints.
	Application string `json:"application,omitempty"`
	Type        string `json:"type,omitempty"`
	Source      string `json:"source,omitempty"`
	Subject     string `json:"subject,omitempty"`
	// Key orders the messages to an ordered endpoint.
	Key string `json:"key,omitempty"`
	// IdempotencyKey is sent as Idempotency-Key in every attempt; ID is, when
	// it is empty and fits.
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	CorrelationID  string   `json:"correlation_id,omitempty"`
	ContentType    string   `json:"content_type,omitempty"` // default application/json
	Headers        []Header `json:"headers,omitempty"`
	// NotBefore delays the first attempt.
	NotBefore time.Time `json:"not_before,omitzero"`
	Created   time.Time `json:"created_at,omitzero"`
	Body      []byte    `json:"-"`
}

// Accepted is the response to one message.
type Accepted struct {
	ID string `json:"id"`
	// Duplicate says that this message was accepted before at each of its
	// endpoints; nothing was added.
	Duplicate bool `json:"duplicate,omitempty"`
	// Endpoints are where a message to an application goes: none when none of its
	// endpoints subscribes to the type, and the message is not kept then.
	Endpoints []string `json:"endpoints,omitzero"`
	// PassedOver are those of them that subscribe and have been disabled for so
	// long that nothing is kept for them.
	PassedOver []string `json:"passed_over,omitempty"`
}

const (
	// AlertEndpoint is the id of the endpoint that alerts are delivered to.
	AlertEndpoint = "forbear-alerts"
	// AlertQueue is the queue of alerts that could not be delivered.
	AlertQueue = "alerts"
)

// QueueOf returns the name of the queue that an endpoint's dead letters go to.
func QueueOf(endpoint string) string {
	if endpoint == AlertEndpoint {
		return AlertQueue
	}
	return Queue
}

// Queue is the name of the webhooks' dead-letter queue.
const Queue = "webhooks"
