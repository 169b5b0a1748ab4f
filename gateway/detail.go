package gateway

import "time"

// DependencyDetail is what the admin endpoint shows of one dependency.
type DependencyDetail struct {
	DependencyStatus
	// Policy is the policy in force with its defaults, by the keys of a policy file, as
	// YAML; "" for a dependency that no Retryer serves.
	Policy string `json:"policy"`
	// Moves are the latest of the breaker, newest first.
	Moves []BreakerMove `json:"moves"`
	// Calls are the latest with a failed attempt, newest first: those that failed, and
	// those that a retry has saved, at most 16 of each.
	Calls []FailedCall `json:"calls"`
	// Certificate is the latest refusal; certificate_errors counts them.
	Certificate *CertificateRefusal `json:"certificate,omitempty"`
	// Layers are the layers that were seen to retry by themselves, beside this one.
	Layers []LayerSeen `json:"layers"`
}

// BreakerMove is one move of a circuit breaker.
type BreakerMove struct {
	At    time.Time `json:"at"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Cause string    `json:"cause"` // by the name of a breaker.Cause
	// FailureRate is of the latest calls at that moment, 0 to 1, among so many.
	FailureRate float64 `json:"failure_rate"`
	Calls       int     `json:"calls"`
	// Actor is who moved it by hand.
	Actor string `json:"actor,omitempty"`
}

// The outcomes of a [FailedCall].
const (
	CallFailed    = "failed"
	CallSaved     = "saved"     // by a retry
	CallRetrying  = "retrying"  // durable work, whose retry is scheduled
	CallPostponed = "postponed" // durable work, whose retry was refused for the moment
)

// FailedCall is a call that had a failed attempt. Nothing of the request is in it, nor any
// text of the peer.
type FailedCall struct {
	At            time.Time `json:"at"` // when it ended, or its latest attempt of durable work
	CorrelationID string    `json:"correlation_id,omitempty"`
	Outcome       string    `json:"outcome"`
	Reason        string    `json:"reason"` // why it ended, or is retried
	Rule          string    `json:"rule,omitempty"`
	// Why is a sentence with the figures that decided; "" where nothing was refused.
	Why       string   `json:"why,omitempty"`
	ErrorType string   `json:"error_type"` // of the latest failed attempt
	Elapsed   Duration `json:"elapsed"`    // the waits included
	// Made is how many attempts were made so far, of durable work in other processes too.
	Made int `json:"made"`
	// Attempts are the failed ones, oldest first, at most 16. Of durable work only that of
	// this entry.
	Attempts []CallAttempt `json:"attempts"`
}

// CallAttempt is one failed attempt of a [FailedCall].
type CallAttempt struct {
	Number    int       `json:"n"`
	At        time.Time `json:"at"` // when it began
	Took      Duration  `json:"took"`
	Wait      Duration  `json:"wait"` // before the next; 0s when none followed
	ErrorType string    `json:"error_type"`
	Reason    string    `json:"reason"` // of the decision about it
	Rule      string    `json:"rule,omitempty"`
	// Detail says what was wrong with the connection, where the error type covers several
	// causes, in the words of [forbear.Failure.Explain].
	Detail string `json:"detail,omitempty"`
}

// CertificateRefusal is a certificate that was refused, ours or the peer's.
type CertificateRefusal struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// LayerSeen is another layer that retries by itself.
type LayerSeen struct {
	Seen  time.Time `json:"seen"` // first
	Above bool      `json:"above"`
	// Sends is how often the layer below sent the request in one attempt, or the attempt
	// of the layer above.
	Sends int `json:"sends"`
}
