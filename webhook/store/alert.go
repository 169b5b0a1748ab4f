package store

import (
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// AlertDisabled is the reason of the alert that an endpoint was disabled by forbear.
const AlertDisabled = "endpoint_disabled"

// DisabledAlert returns the alert that an endpoint was disabled by forbear, and why.
func DisabledAlert(id, why string) queue.Alert {
	return queue.Alert{Queue: webhook.QueueOf(id), Reason: AlertDisabled, Detail: "endpoint " + id + " was disabled: " + why}
}
