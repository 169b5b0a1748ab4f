package memstore

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Identity is the message's id together with its endpoint, as in sqlstore.
// Accept implements store.Store.
func (m *Store) Accept(_ context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// All is compared before anything is added: a call that is refused adds
	// nothing.
	offered := map[string][]*webhook.Message{} // by id and endpoint
	for i := range msgs {
		for _, e := range msgs[i].Endpoints {
			name := msgs[i].ID + "\n" + e
			if d := m.known(msgs[i].ID, e); d != nil && !d.same(&msgs[i]) {
				return nil, conflict(msgs[i].ID, e)
			}
			if offered[name] = append(offered[name], &msgs[i]); !offered[name][0].SameContent(&msgs[i]) {
				return nil, conflict(msgs[i].ID, e)
			}
		}
	}
	responses := make([]webhook.Accepted, len(msgs))
	for i, msg := range msgs {
		responses[i] = webhook.Accepted{ID: msg.ID, Duplicate: true}
		for _, e := range msg.Endpoints {
			if m.known(msg.ID, e) == nil {
				responses[i].Duplicate = false
				m.add(msg, e, ordered[e])
			}
		}
	}
	return responses, nil
}

// conflict says that an identity stands for another message.
func conflict(id, endpoint string) error {
	return fmt.Errorf("message %q to endpoint %q: %w", id, endpoint, webhook.ErrConflict)
}

// same reports whether msg is the message of the delivery.
func (d *delivery) same(msg *webhook.Message) bool {
	if !d.dropped {
		return msg.SameContent(&d.Message)
	}
	digest := msg.Dropped()
	return digest.SameContent(&d.Message)
}

// known returns the delivery of a message to an endpoint, or nil.
func (m *Store) known(id, endpoint string) *delivery {
	return find(m.of[id], func(d *delivery) bool { return d.Endpoint == endpoint })
}

// add adds a delivery, due at once or at its NotBefore. One that keeps its
// key's order is held while an earlier one of that key is unfinished; m.mu
// is held.
func (m *Store) add(msg webhook.Message, endpoint string, ordered bool) *delivery {
	if m.all == nil {
		m.of, m.all, m.lanes, m.keys = map[string][]*delivery{}, map[int64]*delivery{}, map[string]*waiting{}, map[laneKey][]*delivery{}
	}
	m.seq++
	d := &delivery{state: stateWaiting}
	d.ID, d.Message, d.Endpoint, d.Due = m.seq, msg, endpoint, time.Now()
	if msg.NotBefore.After(d.Due) {
		d.Due = msg.NotBefore
	}
	d.Start = d.Due
	m.all[d.ID] = d
	m.of[msg.ID] = append(m.of[msg.ID], d)
	// Behind an unfinished one of its key it waits for that one's end, however
	// long that takes.
	if ordered && msg.Key != "" {
		d.OrderKey = msg.Key
		k := laneKey{endpoint, msg.Key}
		if m.keys[k] = append(m.keys[k], d); len(m.keys[k]) > 1 {
			d.state = stateHeld
			return d
		}
	}
	m.wait(d, d.Due)
	return d
}

// wait makes d due at a time and puts it into its endpoint's lane. It is the
// only way into a lane, so that state, due time and heap agree.
func (m *Store) wait(d *delivery, due time.Time) {
	d.state, d.Due = stateWaiting, due
	// Lanes are kept for good: endpoints are few.
	if m.lanes[d.Endpoint] == nil {
		m.lanes[d.Endpoint] = &waiting{}
	}
	heap.Push(m.lanes[d.Endpoint], d)
}

// Relay implements store.Store. A memory store shares no transaction with
// its caller's data, and so has no outbox to relay from.
func (m *Store) Relay(context.Context, int, func(*webhook.Message) (map[string]bool, error)) (store.RelayResult, error) {
	return store.RelayResult{}, nil
}

// Attempts is the highest number in the history and not its length: an
// interrupted attempt is listed again under the same number.
// Deliveries implements store.Store.
func (m *Store) Deliveries(_ context.Context, message string) (list []store.DeliveryInfo, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.of[message] {
		i := store.DeliveryInfo{Message: message, Endpoint: d.Endpoint, State: d.shown(), Claims: d.Claims, Postponed: d.Progress.Postponed, History: slices.Clone(d.history)}
		if d.finished.IsZero() {
			i.Due = d.Due
		}
		for _, a := range d.history {
			i.Attempts = max(i.Attempts, a.Number)
		}
		list = append(list, i)
	}
	return list, nil
}

// Each delivery has a copy of the message, whose body goes by itself.
// DropBodies implements store.Store.
func (m *Store) DropBodies(_ context.Context, age time.Duration, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.oldest(limit, func(d *delivery) bool {
		return !d.dropped && d.state == stateDone && time.Since(d.finished) >= age
	}) {
		n++
		d.Message, d.dropped = d.Message.Dropped(), true
		for i := range d.history {
			d.history[i].Response = ""
		}
	}
	return n, nil
}

// It walks in the order of creation, so that a limit always removes the
// oldest.
// Sweep implements store.Store.
func (m *Store) Sweep(_ context.Context, age time.Duration, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.oldest(limit, func(d *delivery) bool {
		return !d.finished.IsZero() && time.Since(d.finished) >= age
	}) {
		// The message goes with its last delivery.
		n++
		delete(m.all, d.ID)
		rest := slices.DeleteFunc(m.of[d.Message.ID], func(other *delivery) bool { return other == d })
		if m.of[d.Message.ID] = rest; len(rest) == 0 {
			delete(m.of, d.Message.ID)
		}
	}
	return n, nil
}
