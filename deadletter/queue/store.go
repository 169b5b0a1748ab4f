package queue

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// The errors of a [Store].
var (
	ErrNotFound = errors.New("not found")
	// ErrInvalid is what errors about a redrive that cannot be made match.
	ErrInvalid = errors.New("invalid")
	ErrState   = errors.New("not possible in this state")
	// ErrRedriveLimit refuses a letter that was redriven too often: it needs a
	// person, not another round.
	ErrRedriveLimit = errors.New("redriven too often")
	// ErrRefused is what a [Target] returns for a letter that it will never take
	// as it is.
	ErrRefused = errors.New("cannot be redriven")
	// ErrFenced refuses a write under a lease that has passed to another
	// process.
	ErrFenced = errors.New("lease lost to another process")
)

// Filter chooses letters. Empty fields choose all.
type Filter struct {
	IDs         []string                  `json:"ids,omitempty"`
	Queue       string                    `json:"queue,omitempty"`
	Destination string                    `json:"destination,omitempty"`
	Application string                    `json:"application,omitempty"`
	Reason      string                    `json:"reason,omitempty"`
	ErrorType   string                    `json:"error_type,omitempty"`
	EventID     string                    `json:"event_id,omitempty"`
	Cause       string                    `json:"cause,omitempty"` // a Letter.Fingerprint
	State       deadletter.State          `json:"state,omitempty"`
	Since       time.Time                 `json:"since,omitzero"` // dead-lettered at or after
	Until       time.Time                 `json:"until,omitzero"` // dead-lettered before
	Job         string                    `json:"redrive,omitempty"`
	Outcome     *deadletter.RedriveResult `json:"outcome,omitempty"`
	// MaxRedrives leaves out letters that were redriven this often, when it is
	// positive.
	MaxRedrives int `json:"max_redrives,omitempty"`
	// NotJob leaves out letters whose latest redrive was this job.
	NotJob string `json:"-"`

	// After continues a list behind the letter with this id; letters come
	// oldest first, or with Newest newest first.
	After  string `json:"after,omitempty"`
	Newest bool   `json:"-"`
	Limit  int    `json:"limit,omitempty"` // default 100, at most 1,000
}

// MaxList bounds one page of a list.
const MaxList = 1000

// Stat counts letters of one queue, reason and state.
type Stat struct {
	Queue  string           `json:"queue"`
	Reason string           `json:"reason"`
	State  deadletter.State `json:"state"`
	Count  int              `json:"count"`
	Oldest time.Time        `json:"oldest,omitzero"`
	Newest time.Time        `json:"newest,omitzero"`
	// Causes are those of the dead letters among them, the most frequent first;
	// only [StatsByCause] fills them in.
	Causes []CauseStat `json:"causes,omitempty"`
}

// Store keeps letters, redrive jobs, alerts and the audit trail. All writes are
// durable when the method returns. Implementations are safe for concurrent use
// and pass storetest.
type Store interface {
	// Put adds a letter and raises its alert, in one transaction. A letter
	// with a known id is left as it is, without error: the source was not
	// acknowledged the first time. One that is being redriven has died again: it
	// says why from then on, and [Store.RecordRedrive] makes it dead.
	Put(ctx context.Context, l deadletter.Letter) error
	// Get and List return letters that cannot be read as well, with their Unreadable.
	Get(ctx context.Context, id string) (deadletter.Letter, error)
	List(ctx context.Context, f Filter) ([]deadletter.Letter, error)
	Count(ctx context.Context, f Filter) (int, error)
	Stats(ctx context.Context) ([]Stat, error)
	// Causes counts the letters in state Dead by queue, reason and cause, the most
	// frequent first, up to limit causes.
	Causes(ctx context.Context, limit int) ([]CauseStat, error)
	// Discard gives a dead letter up. It stays listed until its retention
	// ends; the audit keeps who and why.
	Discard(ctx context.Context, id, by, why string) error
	// DiscardMany gives up to [MaxList] letters up, of those in state Dead that the
	// filter chooses, the oldest first, each with a line of its own in the audit. It
	// returns how many. [DiscardAll] is for callers.
	DiscardMany(ctx context.Context, f Filter, by, why string) (int, error)
	// Remove deletes letters that were exported, whatever their state but
	// Redriving.
	Remove(ctx context.Context, ids []string) (int, error)

	// BeginRedrive marks a dead letter as being redriven, counting the
	// redrive, unless it was redriven limit times.
	BeginRedrive(ctx context.Context, id, job, by string, limit int) (deadletter.Letter, error)
	// RecordRedrive records the outcome of a redrive.
	RecordRedrive(ctx context.Context, id string, o deadletter.RedriveResult) error

	PutJob(ctx context.Context, j Job) error
	Job(ctx context.Context, id string) (Job, error)
	// JobPage returns up to limit jobs, of one application's letters or all, the newest
	// first, from the one behind after on, which is the id of an earlier page's last.
	JobPage(ctx context.Context, application, after string, limit int) ([]Job, error)
	// ClaimJob leases one running job that no process holds to owner; ok is
	// false when there is none. Of an application's letters one job at a time is
	// held, so that many of its jobs send no faster than one, and cost no more.
	ClaimJob(ctx context.Context, owner string, lease time.Duration) (j Job, ok bool, err error)
	// UpdateJob writes back a claimed job and renews its lease. It returns
	// ErrFenced when the lease was lost. A state that was set in the
	// meantime, such as a pause, stays; the job is returned as it is now.
	UpdateJob(ctx context.Context, j Job, lease time.Duration) (Job, error)
	// SetJobState pauses, resumes or cancels a job.
	SetJobState(ctx context.Context, id string, s JobState, by string) error

	// Raise records an alert: it joins the open one of its queue and
	// reason, or opens one.
	Raise(ctx context.Context, a Alert) error
	// ClaimAlerts takes due alerts, closing them: later ones of the same queue
	// and reason open a new one.
	ClaimAlerts(ctx context.Context, limit int, lease time.Duration) ([]Alert, error)
	// WriteBackAlert writes back a claimed alert: sent, or due again after a
	// while.
	WriteBackAlert(ctx context.Context, a Alert, sent bool, after time.Duration) error
	// AlertPage returns up to limit alerts, the newest first, from the one behind after on,
	// which is the id of an earlier page's last; 0 begins with the newest.
	AlertPage(ctx context.Context, after int64, limit int) ([]Alert, error)

	Audit(ctx context.Context, e Entry) error
	AuditTrail(ctx context.Context, limit int) ([]Entry, error)
}

// Entry is one line of the audit trail.
type Entry struct {
	// Number is the store's: higher ones are newer. 0 where it has none.
	Number int64     `json:"-"`
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Action string    `json:"action"` // "reveal", "redrive", "discard", ...
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
}

// AuditFilter chooses lines of the audit trail. An empty field chooses all.
type AuditFilter struct {
	Who    string // a token's name, or what a caller calls itself
	Action string
	Target string
	Since  time.Time
	Until  time.Time // exclusive
}
