package webhook

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
