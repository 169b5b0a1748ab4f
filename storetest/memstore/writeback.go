package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// Finish is the half of a turn that writes outcomes back. It reports for
// each outcome whether its fence held; the others change nothing, and are no
// error, since a lost lease is an ordinary event for a dispatcher that was
// slow.
func (m *Store) Finish(_ context.Context, outcomes []store.WriteBack) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ok := make([]bool, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		d := m.all[o.ID]
		// The fence: the lease may have passed to another.
		if ok[i] = d != nil && d.state == stateSending && d.Fence == o.Fence; !ok[i] {
			continue
		}
		if o.Attempt != nil {
			d.history = append(d.history, *o.Attempt)
		}
		if err := m.writeBack(d, o); err != nil {
			return nil, err
		}
	}
	return ok, nil
}

// writeBack changes a delivery under a good lease, with its letter, the redrive
// that it belongs to and the next of its key. Its progress goes through JSON, as
// in a database, so that a test meets what is lost there.
func (m *Store) writeBack(d *delivery, o *store.WriteBack) error {
	now := time.Now()
	if o.Kind != store.Delivered {
		text, err := json.Marshal(o.Progress) // what a real store would keep
		if err != nil {
			return err
		}
		var kept store.WriteBack
		if err := json.Unmarshal(text, &kept.Progress); err != nil {
			return err
		}
		d.Progress = kept.Progress
	}
	switch o.Kind {
	case store.Delivered:
		d.state, d.finished = stateDone, now
		m.endRedrive(d.Letter, deadletter.RedriveDelivered)
	case store.Dead:
		if o.Dead == nil {
			return fmt.Errorf("delivery %d: dead without a letter", d.ID)
		}
		d.state, d.finished = stateDead, now
		m.deadLetter(d, *o.Dead)
	case store.Retried:
		m.endRedrive(d.Letter, deadletter.RedriveFailing)
		fallthrough
	default:
		m.wait(d, now.Add(o.After))
		return nil
	}
	m.promote(d)
	return nil
}

// promote takes a finished delivery out of its key's queue and makes the
// next one due.
func (m *Store) promote(d *delivery) {
	// Without a key there is no queue, and the zero key has none either.
	k := laneKey{d.Endpoint, d.OrderKey}
	queue := slices.DeleteFunc(m.keys[k], func(other *delivery) bool { return other == d })
	if len(queue) == 0 {
		delete(m.keys, k)
		return
	}
	m.keys[k] = queue
	if queue[0].state == stateHeld {
		m.wait(queue[0], queue[0].Due)
	}
}

// It is repeatable: a redrive whose worker died between requeueing and
// recording it is requeued again, and must not send the message twice.
// Requeue implements store.Store.
func (m *Store) Requeue(_ context.Context, l deadletter.Letter, ordered bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Each case is harmless to repeat.
	msg := store.FromLetter(l)
	d := m.known(l.EventID, l.Destination)
	switch {
	case d == nil:
		m.add(msg, l.Destination, ordered).Letter = l.ID
	case !d.same(&msg):
		return conflict(l.EventID, l.Destination)
	case d.state == stateDone:
		m.endRedrive(l.ID, deadletter.RedriveDelivered)
	case d.state != stateDead && d.state != stateCanceled:
		d.Letter = cmp.Or(d.Letter, l.ID)
	default:
		m.restart(d, l.ID)
	}
	return nil
}

// again puts a finished delivery back on its way: behind the one of its key
// that is already under way, and before those that wait. Ordered delivery
// means one at a time, and the redriven message is the oldest that is open.
func (m *Store) again(d *delivery) {
	if d.OrderKey != "" {
		k := laneKey{d.Endpoint, d.OrderKey}
		if queue := m.keys[k]; len(queue) > 0 {
			d.state = stateHeld
			m.keys[k] = slices.Insert(queue, 1, d)
			return
		}
		m.keys[k] = []*delivery{d}
	}
	m.wait(d, d.Due)
}
