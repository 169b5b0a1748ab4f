package memstore

import (
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
