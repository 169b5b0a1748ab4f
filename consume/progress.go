package consume

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/reason"
)

// progress is how far an event is that waits for its retry. It is kept in the
// store, beside the event's record, so that no adapter has to: most brokers
// cannot change a message that they hold.
type progress struct {
	edge.Progress
	Claims  int                  `json:"claims,omitempty"` // that ended in order
	Due     time.Time            `json:"due,omitzero"`     // not before
	History []deadletter.Attempt `json:"history,omitempty"`
	Cause   *deadletter.Cause    `json:"cause,omitempty"` // of the latest failure
	Verdict *verdict             `json:"verdict,omitempty"`
}

// verdict is the end of an event that the dead-letter queue did not take yet.
// The handler is not called again for it.
type verdict struct {
	Reason      string `json:"reason"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
}

// why is the reason as the engine knows it. Those of consumers alone are final.
func (v *verdict) why() forbear.Reason {
	for why := reason.None + 1; why.String() != forbear.Reason(255).String(); why++ {
		if why.String() == v.Reason {
			return why
		}
	}
	return reason.Terminal
}

// progressID names what the n-th claim of an event has left. A claim that died
// leaves nothing. Each claim has a record of its own, since a completed one
// cannot be changed; they expire with the window.
func (c *Consumer) progressID(e *Event, rec *idempotency.Record, n int) idempotency.ID {
	return idempotency.ID{
		Scope: idempotency.EventProgressScope + c.Group,
		Key:   idempotency.Digest(e.Source, e.ID, strconv.FormatInt(rec.Created.UnixMicro(), 36), strconv.Itoa(n)),
	}
}

// load returns what the claims before rec's have left; ok is false when they
// have left nothing.
func (c *Consumer) load(ctx context.Context, e *Event, rec *idempotency.Record) (p progress, ok bool, err error) {
	for n := rec.Attempt - 1; n > 0 && n >= rec.Attempt-1-c.Crashes; n-- {
		left, err := c.Store.Get(ctx, c.progressID(e, rec, n))
		switch {
		case errors.Is(err, idempotency.ErrNotFound), err == nil && left.Response == nil:
			continue
		case err == nil:
			err = json.Unmarshal(left.Response.Body, &p)
		}
		return p, err == nil, err
	}
	return p, false, nil
}

// keep stores what rec's claim leaves to the next one.
func (c *Consumer) keep(ctx context.Context, e *Event, rec *idempotency.Record, p progress) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	id, owner := c.progressID(e, rec, rec.Attempt), rand.Text()
	v, err := c.Store.Claim(ctx, idempotency.Claim{
		ID: id, Fingerprint: "progress", Operation: c.Group, Owner: owner, Lease: endTimeout, Retention: c.Window, Rerun: true,
	})
	if err != nil || v.Outcome != idempotency.Acquired { // stored by an earlier try
		return err
	}
	return c.Store.Complete(ctx, idempotency.Token{ID: id, Owner: owner, Fence: v.Record.Fence}, idempotency.Response{Status: 202, Body: body}, c.Window)
}
