package store

import (
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// Hold is what a dispatcher has found out about an endpoint, for the others that share
// the store: the endpoint takes nothing at present, and is sent single messages until it
// does. An endpoint may have one hold of each kind.
type Hold struct {
	Endpoint string
	Kind     string
	Owner    string // the dispatcher that wrote it last
	Why      string // such as http_404
	// Looks counts those that found nothing so far; 0: other processes do not follow.
	Looks int
	// In is when the next look is due; negative when it is.
	In   time.Duration
	Over bool
}

// HoldWrite is a write of a hold.
type HoldWrite struct {
	Hold
	// Begins says that there may be none of its kind yet: then it begins, and Alert is
	// raised with it, unless that is zero. Without Begins, what does not go on is not
	// written.
	Begins bool
	Alert  queue.Alert
}

// HoldFor is how long a hold counts that no one writes again: by then, all that was
// waiting when it began has ended.
const HoldFor = 24 * time.Hour

// AlertDisabled is the reason of the alert that an endpoint was disabled by forbear.
const AlertDisabled = "endpoint_disabled"

// DisabledAlert returns the alert that an endpoint was disabled by forbear, and why.
func DisabledAlert(id, why string) queue.Alert {
	return queue.Alert{Queue: webhook.QueueOf(id), Reason: AlertDisabled, Detail: "endpoint " + id + " was disabled: " + why}
}
