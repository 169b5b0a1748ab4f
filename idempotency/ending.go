package idempotency

import (
	"context"
	"log/slog"
	"time"
)

// Ending is how a run ended: what is to be written back to its record. The zero
// value is none.
type Ending struct {
	Token       Token       `json:"token"`
	Fingerprint string      `json:"fingerprint"` // of the claim
	Operation   string      `json:"operation"`   // of the claim, for people
	Disposition Disposition `json:"disposition"`
	// Response and Retention are those of Keep.
	Response  Response      `json:"response,omitzero"`
	Retention time.Duration `json:"retention,omitempty"` // in nanoseconds
	// Note is why it is held, of Hold.
	Note string `json:"note,omitempty"`
	// Lease is that of the claim: while the end waits it is renewed. 0: it is not.
	Lease time.Duration `json:"lease,omitempty"`
}

// Ends returns the end of a run of c whose record is rec, without a response: the
// caller fills in what its disposition needs.
func (c Claim) Ends(rec Record, d Disposition) Ending {
	return Ending{
		Token: Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, Fingerprint: c.Fingerprint, Operation: c.Operation,
		Disposition: d, Retention: c.Retention, Lease: c.Lease,
	}
}

// write writes e to the store, once.
func (e *Ending) write(ctx context.Context, s Store) error {
	switch e.Disposition {
	case Keep:
		return s.Complete(ctx, e.Token, e.Response, e.Retention)
	case Hold:
		return s.Hold(ctx, e.Token, e.Note)
	default:
		return s.Release(ctx, e.Token)
	}
}

// size is about what e takes in memory, in bytes.
func (e *Ending) size() int64 {
	n := len(e.Token.ID.Scope) + len(e.Token.ID.Key) + len(e.Token.Owner) + len(e.Fingerprint) + len(e.Operation) + len(e.Note) + len(e.Response.Body)
	for name, values := range e.Response.Header {
		n += len(name)
		for _, v := range values {
			n += len(v) + 16 // a string's own
		}
	}
	return int64(n) + 512
}

// verdict is what a duplicate gets whose claim is c, as the store would say it. ok
// is false where the store must be asked: the key is to be released.
func (e *Ending) verdict(c Claim) (v Verdict, ok bool) {
	rec := Record{ID: c.ID, Fingerprint: e.Fingerprint, Operation: e.Operation, Owner: e.Token.Owner, Fence: e.Token.Fence, Note: e.Note}
	switch {
	case !c.matches(&rec):
		v.Outcome = Mismatch
	case e.Disposition == Keep:
		v.Outcome, rec.State, rec.Response = Replay, Completed, &e.Response
	case e.Disposition == Hold:
		v.Outcome, rec.State = Unknown, Held
	default:
		return v, false
	}
	v.Record = rec
	return v, true
}

// attrs names e in a log: by the digest of its key, never the key or a body.
func (e *Ending) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("operation", e.Operation), slog.String("key_digest", e.Token.ID.Key), slog.String("disposition", e.Disposition.String()),
		slog.Int("status", e.Response.Status),
	}
}
