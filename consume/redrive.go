package consume

import (
	"context"
	"fmt"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
)

// Redrive runs the event of a dead letter again, in this process, and reports
// to the queue what became of it: it is the [queue.Target] of the
// consumer's queue. Retries are those in place only: an event that fails again
// is a dead letter again, with its alert. The error is that of a letter whose
// outcome is not known yet, such as one that ctx has cut short; it may be
// redriven again, and an event that is done already is not done twice.
//
// The order of keys does not bind a redrive: later events of its key are
// through long ago.
func (c *Consumer) Redrive(ctx context.Context, l deadletter.Letter) error {
	if err := l.CheckReadable(); err != nil {
		return err
	}
	e := FromLetter(l)
	var d Decision
	if e.ID == "" || e.Source == "" {
		d = c.poison(ctx, &e, deadletter.ReasonInvalid, "the event has no id or no source")
	} else {
		d = c.claim(ctx, &e, true)
	}
	c.Observe(e, d)
	if d.Acknowledge() {
		return nil
	}
	return fmt.Errorf("redrive of %s: %s: %w", l.ID, d.Reason, d.Err)
}

// FromLetter returns the event of a dead letter, marked as redriven.
func FromLetter(l deadletter.Letter) Event {
	return Event{
		ID: fromText(l.EventID), Source: fromText(l.Source), Type: l.Type, Subject: l.Subject, Key: l.PartitionKey, CorrelationID: l.CorrelationID,
		Time: l.EnqueuedAt, ContentType: l.ContentType, Headers: l.Headers, Data: l.Payload, Redrive: true, letter: l.ID,
	}
}

// redriven reports the outcome of a redrive to a queue that takes it. A failure
// to report is not one of the event: the next redrive finds it done.
func (c *Consumer) redriven(ctx context.Context, e *Event, o deadletter.RedriveResult) {
	q, ok := c.DLQ.(interface {
		RecordRedrive(ctx context.Context, id string, o deadletter.RedriveResult) error
		Raise(ctx context.Context, a queue.Alert) error
	})
	if !ok || !e.Redrive {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	id := c.LetterID(*e)
	_ = q.RecordRedrive(ctx, id, o)
	if o == deadletter.RedriveDead {
		_ = q.Raise(ctx, queue.Alert{Queue: c.Queue, Reason: "redrive_failed", Letter: id})
	}
}
