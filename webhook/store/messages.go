package store

import (
	"context"
	"errors"
	"time"
)

// MessageStore is the part of a [Store] by which operators see messages and act
// upon them. A message is one at one endpoint here: each has a state of its own.
type MessageStore interface {
	// Messages lists messages, the newest first, from before on, which is the Next
	// of an earlier page and 0 at first. It looks for a bounded time: a
	// page may have fewer than limit, or none, when Next says that there are more.
	Messages(ctx context.Context, f MessageFilter, before int64, limit int) (MessagePage, error)
	// Cancel ends messages that wait; by is for the audit trail. What is being sent
	// is canceled when the attempt under way does not end it. It is harmless to
	// repeat. numbers are those of MessageInfo, at most [MaxAct].
	Cancel(ctx context.Context, numbers []int64, by string) ([]MessageResult, error)
	// SendAgain makes messages that have ended due again, with a fresh count of
	// attempts, and keeps their history. For one that is dead its letter is
	// redriven, at most redrives times in all.
	SendAgain(ctx context.Context, numbers []int64, redrives int, by string) ([]MessageResult, error)
	// Contents returns what is sent of a message to endpoints, or to all of them when none
	// is given: one item for each content that its id stands for, up to limit.
	Contents(ctx context.Context, message string, endpoints []string, limit int) ([]MessageContent, error)
	// Erase removes what is kept of a message at endpoints, or at all of them when none
	// is given: what was sent, what was responded, and its dead letters but for why they
	// died, with a line in the audit trail. What waits is canceled; what is under way is
	// refused with [ErrSending]. Ids, states and times stay, and a digest, by which the
	// same message again is a duplicate. It returns how many deliveries, letters and
	// rows of the outbox there were, and is harmless to repeat.
	Erase(ctx context.Context, message string, endpoints []string, by string) (int, error)
	// Abandon makes dead letters of up to limit deliveries that wait for an endpoint
	// which was deleted, and returns their number. What cannot be read waits; where there
	// is nothing else it is [webhook.ErrUnreadable].
	Abandon(ctx context.Context, limit int) (int, error)
	// PutTallies stores what a process, the owner, has counted in whole slots, in the
	// place of what it has stored for them before.
	PutTallies(ctx context.Context, owner string, list []Tally) error
}

// MaxAct is how many messages are canceled or sent again at once: at least as many as a
// message can have endpoints.
const MaxAct = 1000

// ErrDeleting refuses to put an endpoint that was deleted while messages to the
// former one have not become dead letters yet.
var ErrDeleting = errors.New("the endpoint is still being deleted: try again in a moment")

// The states of a message at an endpoint.
const (
	StateWaiting   = "waiting"
	StateHeld      = "held" // behind one of its key
	StateSending   = "sending"
	StateDelivered = "delivered"
	StateDead      = "dead"
	StateCanceled  = "canceled"
	// StateCanceling is that of a message which is being sent for the last time.
	StateCanceling = "canceling"
)

// MessageFilter chooses messages. An empty field chooses all.
type MessageFilter struct {
	ID        string   `json:"id,omitempty"`
	Endpoints []string `json:"endpoint,omitempty"`
	// Application chooses messages to the endpoints of one, those that were deleted
	// included.
	Application string    `json:"application,omitempty"`
	Type        string    `json:"type,omitempty"`
	Key         string    `json:"key,omitempty"`
	States      []string  `json:"state,omitempty"`
	Since       time.Time `json:"since,omitzero"` // when it was accepted
	Until       time.Time `json:"until,omitzero"` // exclusive
	// Patience is about how long a page is looked for. 0 means a second.
	Patience time.Duration `json:"-"`
	// Bare says that no one looks at what came of the latest attempts.
	Bare bool `json:"-"`
}

// IsZero reports whether f chooses everything.
func (f *MessageFilter) IsZero() bool {
	return f.ID == "" && len(f.Endpoints) == 0 && f.Application == "" && f.Type == "" && f.Key == "" && len(f.States) == 0 && f.Since.IsZero() && f.Until.IsZero()
}

// MessageInfo is what a list has of a message: nothing of its payload.
type MessageInfo struct {
	Number   int64  `json:"-"` // of the delivery: higher ones are newer
	ID       string `json:"id"`
	Endpoint string `json:"endpoint"`
	// Application is that of the endpoint.
	Application string    `json:"application,omitempty"`
	Type        string    `json:"type,omitempty"`
	Key         string    `json:"key,omitempty"`
	State       string    `json:"state"`
	Created     time.Time `json:"created_at"`
	Due         time.Time `json:"due,omitzero"`         // unless it has ended
	Finished    time.Time `json:"finished_at,omitzero"` // when it has
	// Attempts, ErrorType and Status are those of the latest attempt.
	Attempts  int    `json:"attempts"`
	ErrorType string `json:"error_type,omitempty"`
	Status    int    `json:"status,omitempty"`
	// Error is why Type and Key cannot be read, which are missing then: for one, this
	// process lacks the key that they are encrypted under.
	Error string `json:"error,omitempty"`
	// Erased says that the message's content is no longer kept.
	Erased bool `json:"erased,omitempty"`
}

// MessagePage is a page of a list.
type MessagePage struct {
	Messages []MessageInfo
	// Unreadable counts those that were passed over, since they cannot be read and the
	// filter asks for a type or a key.
	Unreadable int
	Next       int64 // 0: it was the last one
}

// Kept counts the messages of the page that are not erased.
func (p MessagePage) Kept() (n int) {
	for i := range p.Messages {
		if !p.Messages[i].Erased {
			n++
		}
	}
	return n
}

// Numbers returns the numbers of the page's messages.
func (p MessagePage) Numbers() []int64 {
	numbers := make([]int64, len(p.Messages))
	for i := range p.Messages {
		numbers[i] = p.Messages[i].Number
	}
	return numbers
}

// MessageResult is what became of a message that was to be canceled or sent again.
type MessageResult struct {
	ID       string `json:"id"`
	Endpoint string `json:"endpoint"`
	State    string `json:"state"`
	// Done says that the message changed, and Why what stood against it.
	Done bool   `json:"done"`
	Why  string `json:"why,omitempty"`
}

// Why a message was left as it was.
const (
	WhyUnderWay    = "it is on its way"
	WhyEnded       = "it has ended"
	WhyBodyDropped = "its payload is no longer kept"
	WhyNoEndpoint  = "its endpoint was deleted"
	WhyLimit       = "its dead letter was redriven too often"
	WhyLetter      = "its dead letter is not there, or was discarded"
	WhyErased      = "it is erased already"
)
