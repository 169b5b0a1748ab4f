package deadletter

import (
	"errors"
	"time"

	"github.com/forbear-go/forbear"
)

// Letter is one piece of work that could not be done: the original as it
// came, why it failed, and everything that was tried. The zero value is not
// useful; a store refuses a letter without ID, Queue and Reason.
type Letter struct {
	ID    string `json:"id"`
	Queue string `json:"queue"`
	// Destination is where the work was meant to go: for a webhook, the
	// endpoint's id.
	Destination string `json:"destination,omitempty"`
	// Application is the tenant whose endpoint that is, or "". A store that knows the
	// endpoint fills it in.
	Application string `json:"application,omitempty"`

	// EventID and IdempotencyKey are the original's; they never change, so
	// that a second redrive is harmless to a receiver that looks at them.
	EventID        string `json:"event_id"`
	Source         string `json:"source,omitempty"`
	Type           string `json:"type,omitempty"`
	Subject        string `json:"subject,omitempty"`
	PartitionKey   string `json:"partition_key,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	CorrelationID  string `json:"correlation_id,omitempty"`

	Payload     []byte   `json:"payload,omitempty"`
	ContentType string   `json:"content_type,omitempty"`
	Headers     []Header `json:"headers,omitempty"`

	Policy        forbear.Policy `json:"policy,omitzero"`
	PolicyVersion string         `json:"policy_version,omitempty"`

	Reason      string `json:"reason"`
	ErrorType   string `json:"error_type,omitempty"`
	Status      int    `json:"status,omitempty"`
	Description string `json:"description,omitempty"` // at most 1 KiB, redacted

	// Error is the text of the last error, redacted, at most MaxError bytes;
	// empty in letters of earlier versions, and when nothing failed. Chain has the
	// Go types of it and of what it wraps, the outermost first.
	Error string   `json:"error,omitempty"`
	Chain []string `json:"error_chain,omitempty"`
	// Panic and Stack are those of the panic that ended the work, redacted, at
	// most MaxPanic and MaxStack bytes.
	Panic string `json:"panic,omitempty"`
	Stack string `json:"stack,omitempty"`
	// TraceID is that of the event or call, 32 hexadecimal digits.
	TraceID string `json:"trace_id,omitempty"`
	// Cause is the letter's [Letter.Fingerprint]; its store sets it.
	Cause string `json:"cause,omitempty"`

	Attempts    int       `json:"attempts"`
	MaxAttempts int       `json:"max_attempts,omitempty"`
	Postponed   int       `json:"postponed,omitempty"`
	History     []Attempt `json:"attempt_history,omitempty"`

	EnqueuedAt   time.Time `json:"enqueued_at,omitzero"`
	FirstAttempt time.Time `json:"first_attempt_at,omitzero"`
	LastAttempt  time.Time `json:"last_attempt_at,omitzero"`
	DeadAt       time.Time `json:"dead_lettered_at"`

	State State `json:"state"`
	// Redrives counts how often the letter was sent on its way again.
	Redrives   int       `json:"redrive_count,omitempty"`
	RedrivenAt time.Time `json:"last_redriven_at,omitzero"`
	RedrivenBy string    `json:"last_redriven_by,omitempty"`
	Job        string    `json:"redrive,omitempty"`
	// Outcome is what is known of the latest redrive.
	Outcome RedriveResult `json:"redrive_outcome,omitempty"`
	Discard string        `json:"discard_reason,omitempty"`

	// Unreadable is why Payload and Headers, and what errors quote, cannot be read and are
	// missing: for one, this process lacks the key that they are encrypted under. It is ""
	// where they can, and never stored.
	Unreadable string `json:"unreadable,omitempty"`
}

// CheckReadable returns an error when the letter is Unreadable, and nil otherwise: what is
// missing must be neither sent nor exported.
func (l *Letter) CheckReadable() error {
	if l.Unreadable == "" {
		return nil
	}
	return errors.New(l.Unreadable)
}

// Header is one header line. Letters keep all lines in their order, with
// duplicates.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Attempt is one line of a letter's history.
type Attempt struct {
	Number int `json:"attempt"`
	// Claim counts the times that a worker took the work up, the attempts that
	// a crash cut short included.
	Claim int           `json:"claim"`
	Due   time.Time     `json:"due,omitzero"`
	At    time.Time     `json:"at"`
	Took  time.Duration `json:"took_ns"`
	// Wait is the backoff that the attempt decided upon, 0 when it was the
	// last.
	Wait      time.Duration `json:"wait_ns,omitempty"`
	ErrorType string        `json:"error_type,omitempty"` // empty for a success
	Status    int           `json:"status,omitempty"`
	// Class is the [forbear.Class] of the failure, Error the beginning of its
	// text, redacted, at most MaxAttemptError bytes, and Chain as in a letter.
	Class  string   `json:"error_class,omitempty"`
	Error  string   `json:"error,omitempty"`
	Chain  []string `json:"error_chain,omitempty"`
	Worker string   `json:"worker,omitempty"`
	// Response is the beginning of the response's body, redacted.
	Response string `json:"response,omitempty"`
}

// State says where a letter stands.
type State string

const (
	Dead      State = "dead"      // waiting for a decision
	Redriving State = "redriving" // on its way again
	Resolved  State = "resolved"  // a redrive succeeded
	Discarded State = "discarded" // given up by a person, with a reason
)

// RedriveResult is what is known of a redrive.
type RedriveResult string

const (
	RedriveNone      RedriveResult = ""          // not attempted yet
	RedriveFailing   RedriveResult = "failing"   // attempted, failed, and being retried
	RedriveDelivered RedriveResult = "delivered" // done
	RedriveDead      RedriveResult = "dead"      // dead-lettered again
)

// Reasons beyond those of [forbear.Reason].
const (
	ReasonGone        = "gone"        // the receiver responded 410
	ReasonDeleted     = "deleted"     // its endpoint was deleted
	ReasonInvalid     = "invalid"     // it could never have been sent
	ReasonConflict    = "conflict"    // its id stands for another message
	ReasonUndecodable = "undecodable" // a consumer could not read it
	ReasonCrashLoop   = "crash_loop"  // workers died on it too often
)

// MaxDescription bounds Letter.Description, in bytes.
const MaxDescription = 1 << 10
