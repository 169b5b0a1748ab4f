package store

import (
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook"
)

// Delivery is one message on its way to one endpoint, as a worker holds it.
type Delivery struct {
	ID      int64
	Fence   int64 // what a write must carry to be accepted
	Claims  int   // how often it was taken up, this time included
	Message webhook.Message

	Endpoint string
	OrderKey string // set when the endpoint keeps the key's order
	Due      time.Time
	Start    time.Time // R-3's 24 hours count from here
	Progress edge.Progress
	// Letter is the dead letter that this delivery redrives, or "".
	Letter string
	// Canceled says that it was canceled while it was under way: it must not be
	// sent again.
	Canceled bool
	// Unreadable is why the message cannot be read, and nil where it can: for one, this
	// process lacks the key that it is encrypted under. Of the message there is the id
	// alone then. The delivery is neither attempted nor dead: it is [Released], to be
	// looked at later.
	Unreadable error
	// LeaseEnd is when others may take the delivery, on this process's
	// monotonic clock.
	LeaseEnd time.Time
}

// DeliveryInfo is what can be read about a delivery.
type DeliveryInfo struct {
	Message   string               `json:"message"`
	Endpoint  string               `json:"endpoint"`
	State     string               `json:"state"`        // see [StateWaiting] and those behind it
	Due       time.Time            `json:"due,omitzero"` // unless it has ended
	Attempts  int                  `json:"attempts"`
	Claims    int                  `json:"claims"`
	Postponed int                  `json:"postponed,omitempty"`
	History   []deadletter.Attempt `json:"attempt_history"`
}
