package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/webhook"
)

// A message is known by its id and its endpoint together. Accepting the same
// content again is a duplicate, which is no fault: a sender that did not see the
// response sends again. Other content under a known identity is a conflict, and
// refuses the whole call.

// Accept implements store.Store. It is durable when it returns: what it says
// is accepted will be sent.
func (w *Webhooks) Accept(ctx context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error) {
	a := &acceptance{rows: make([]encoded, len(msgs)), ordered: ordered}
	for i, m := range msgs {
		var err error
		if a.rows[i], err = w.db.encode(m); err != nil {
			return nil, fmt.Errorf("message %q: %w", m.ID, err)
		}
	}
	// The op has no run: the writer gathers what a group accepts and adds all of
	// it at once, before the other members.
	if err := w.db.submit(ctx, &op{accept: a, keys: a.keys()}); err != nil {
		return nil, err
	}
	if a.refused != nil {
		return nil, a.refused
	}
	list := make([]webhook.Accepted, len(msgs))
	for i := range a.rows {
		list[i] = webhook.Accepted{ID: a.rows[i].ID, Duplicate: !a.rows[i].fresh}
	}
	w.db.notify.accepted(a.rows)
	return list, nil
}

// acceptance is one call of Accept, or one row of the outbox: all of it is
// accepted, or nothing.
type acceptance struct {
	rows    []encoded
	ordered map[string]bool // endpoints that keep the order of keys
	refused error           // the result: an ErrConflict, or what could not be compared
}

// keys returns the locks of the keys whose order the call decides about.
func (a *acceptance) keys() (k keyLocks) {
	for i := range a.rows {
		m := &a.rows[i]
		for _, e := range m.Endpoints {
			if a.orders(m, e) {
				k.add(e, m.Key)
			}
		}
	}
	return k
}

// orders reports whether a message must keep its key's order at an endpoint.
func (a *acceptance) orders(m *encoded, endpoint string) bool {
	return m.Key != "" && a.ordered[endpoint]
}

// conflict says that an identity stands for another message by now (see
// webhook.ErrConflict).
func conflict(id, endpoint string) error {
	return fmt.Errorf("message %q to endpoint %q: %w", id, endpoint, webhook.ErrConflict)
}

// acceptAll adds the messages of several calls. Each call learns by itself that
// it was refused: that is no error of the transaction that it shares. What an
// earlier try of the transaction has noted is forgotten first.
func (t *tx) acceptAll(calls []*acceptance) error {
	for _, a := range calls {
		a.refused = nil
		for i := range a.rows {
			a.rows[i].fresh = false
		}
	}
	return t.db.d.acceptAll(t, calls)
}

// compare refuses the call when what is stored under the identity is another
// message; the same one again is a duplicate, which is no fault. What cannot be read
// refuses this call for now, and none that shares the transaction. A conflict counts
// before that: it comes again each time.
func (a *acceptance) compare(t *tx, m *encoded, endpoint string) error {
	k, err := t.known(knownQuery, m.ID, endpoint)
	switch {
	case errors.Is(err, errOwn):
		a.refused = cmp.Or(a.refused, err)
	case err != nil:
		return err
	case !k.same(&m.Message):
		a.refused = conflict(m.ID, endpoint)
	}
	return nil
}

// undo makes the transaction fail when a refused call has added something. It
// is replayed alone then, and rolled back alone.
func (a *acceptance) undo(added bool) error {
	if a.refused != nil && added {
		return own(a.refused)
	}
	return nil
}
