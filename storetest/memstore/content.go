package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// Each delivery has a copy of the message: each is a content of its own.
// Contents implements store.Store.
func (m *Store) Contents(_ context.Context, message string, endpoints []string, limit int) (list []store.MessageContent, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.of[message] {
		c := store.ContentOf(&d.Message, []string{d.Endpoint})
		if c.Dropped, c.Erased = d.dropped, d.erased; d.dropped {
			c.Payload = nil
		}
		if d.erased {
			c = store.MessageContent{Endpoints: c.Endpoints, Created: c.Created, Dropped: true, Erased: true}
		}
		if len(list) < limit && (len(endpoints) == 0 || slices.Contains(endpoints, d.Endpoint)) {
			list = append(list, c)
		}
	}
	return list, nil
}

// Erase implements store.Store.
func (m *Store) Erase(_ context.Context, message string, endpoints []string, by string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := func(endpoint string) bool { return len(endpoints) == 0 || slices.Contains(endpoints, endpoint) }
	deliveries := slices.DeleteFunc(slices.Clone(m.of[message]), func(d *delivery) bool { return !at(d.Endpoint) })
	letters := slices.DeleteFunc(slices.Clone(m.letters), func(l *deadletter.Letter) bool { return l.EventID != message || !at(l.Destination) })
	for _, d := range deliveries {
		if d.state == stateSending {
			return 0, fmt.Errorf("message %q at endpoint %q: %w", message, d.Endpoint, store.ErrSending)
		}
	}
	for _, l := range letters {
		if l.State == deadletter.Redriving && !slices.ContainsFunc(deliveries, func(d *delivery) bool { return d.Letter == l.ID }) {
			return 0, fmt.Errorf("dead letter %q: %w", l.ID, store.ErrSending)
		}
	}
	for _, d := range deliveries {
		if d.finished.IsZero() {
			m.cancel(d)
		}
		if !d.erased {
			if !d.dropped {
				d.Message = d.Message.Dropped()
			}
			d.Message, d.dropped, d.erased, d.OrderKey = d.Message.Erased(), true, true, ""
		}
		for i := range d.history {
			d.history[i].Response, d.history[i].Error, d.history[i].Chain = "", "", nil
		}
	}
	for _, l := range letters {
		if *l = l.Erased(); l.State == deadletter.Dead {
			l.State, l.Discard = deadletter.Discarded, "erased"
		}
	}
	n := len(deliveries) + len(letters)
	if n > 0 {
		m.audits = append(m.audits, deadletter.Entry{At: time.Now(), Who: by, Action: "message-erase", Target: message})
	}
	return n, nil
}
