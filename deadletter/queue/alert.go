package queue

import "time"

// Alert is one thing that an operator has to know, coalesced: Count
// occurrences of the same reason in the same queue.
type Alert struct {
	ID     int64  `json:"id"`
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
	// Detail says more about the latest occurrence, without payloads.
	Detail string    `json:"detail,omitempty"`
	Letter string    `json:"letter,omitempty"` // the latest one
	Count  int       `json:"count"`
	First  time.Time `json:"first_at"`
	Last   time.Time `json:"last_at"`

	// Sent names the notifiers that have taken the alert already.
	Sent  []string `json:"sent,omitempty"`
	Tries int      `json:"tries,omitempty"`
	Done  bool     `json:"done"`
	Error string   `json:"error,omitempty"` // of the latest try
}

// CoalesceFor is how long alerts of the same queue and reason are gathered
// after one was sent.
const CoalesceFor = time.Minute
