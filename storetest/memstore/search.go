package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook/store"
)

// Messages implements store.Store. It looks at all of them.
func (m *Store) Messages(_ context.Context, f store.MessageFilter, before int64, limit int) (page store.MessagePage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range slices.Backward(m.oldest(len(m.all), func(d *delivery) bool {
		return (before <= 0 || d.ID < before) && d.chosen(&f) && (f.Application == "" || m.applicationOf(d.Endpoint) == f.Application)
	})) {
		if len(page.Messages) == limit {
			page.Next = page.Messages[limit-1].Number
			break
		}
		i := d.info()
		i.Application = m.applicationOf(d.Endpoint)
		page.Messages = append(page.Messages, i)
	}
	return page, nil
}

// chosen reports whether a filter chooses the delivery.
func (d *delivery) chosen(f *store.MessageFilter) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	in := func(list []string, got string) bool { return len(list) == 0 || slices.Contains(list, got) }
	made := d.Message.Created
	return is(f.ID, d.Message.ID) && is(f.Type, d.Message.Type) && is(f.Key, d.Message.Key) && in(f.Endpoints, d.Endpoint) && in(f.States, d.shown()) &&
		(f.Since.IsZero() || !made.Before(f.Since)) && (f.Until.IsZero() || made.Before(f.Until))
}

// info is the delivery as a list has it.
func (d *delivery) info() store.MessageInfo {
	i := store.MessageInfo{
		Number: d.ID, ID: d.Message.ID, Endpoint: d.Endpoint, Type: d.Message.Type, Key: d.Message.Key, State: d.shown(),
		Created: d.Message.Created, Finished: d.finished,
	}
	if d.finished.IsZero() {
		i.Due = d.Due
	}
	if n := len(d.history); n > 0 {
		last := d.history[n-1]
		i.Attempts, i.ErrorType, i.Status = last.Number, last.ErrorType, last.Status
	}
	return i
}

// shown is the state as a list has it.
func (d *delivery) shown() string {
	if d.Canceled && d.finished.IsZero() {
		return store.StateCanceling
	}
	return d.state
}

// act calls f for each of the deliveries, and notes what was done in the audit
// trail.
func (m *Store) act(numbers []int64, by, action string, f func(*delivery, *store.MessageResult)) (list []store.MessageResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		d := m.all[n]
		if d == nil {
			continue
		}
		r := store.MessageResult{ID: d.Message.ID, Endpoint: d.Endpoint, State: d.state}
		f(d, &r)
		if r.Done = r.Why == ""; r.Done {
			m.audits = append(m.audits, queue.Entry{At: time.Now(), Who: by, Action: action, Target: r.ID, Detail: "endpoint " + r.Endpoint})
		}
		list = append(list, r)
	}
	return list
}

// Cancel implements store.Store.
func (m *Store) Cancel(_ context.Context, numbers []int64, by string) ([]store.MessageResult, error) {
	return m.act(numbers, by, "message-cancel", func(d *delivery, r *store.MessageResult) {
		switch d.state {
		case stateWaiting, stateHeld:
			r.State = store.StateCanceled
			m.cancel(d)
		case stateSending:
			r.State, d.Canceled = store.StateCanceling, true
		default:
			r.Why = store.WhyEnded
		}
	}), nil
}

// cancel ends a delivery that is not under way.
func (m *Store) cancel(d *delivery) {
	d.state, d.finished, d.Canceled = stateCanceled, time.Now(), false
	if l := m.letter(d.Letter); l != nil && l.State == deadletter.Redriving {
		l.State, l.Discard = deadletter.Discarded, "canceled"
	}
	m.promote(d)
}

// Abandon implements store.Store.
func (m *Store) Abandon(_ context.Context, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.oldest(limit, func(d *delivery) bool {
		if d.state != stateWaiting && d.state != stateHeld {
			return false
		}
		_, err := m.endpoint(d.Endpoint)
		return err != nil
	}) {
		n++
		d.state, d.finished = stateDead, time.Now()
		m.deadLetter(d, *d.Abandoned(time.Now()))
		m.promote(d)
	}
	return n, nil
}

// deleting reports whether messages to a deleted endpoint have not ended yet. The
// caller holds mu.
func (m *Store) deleting(id string) bool {
	for _, d := range m.all {
		if d.Endpoint == id && d.finished.IsZero() {
			return true
		}
	}
	return false
}

// PutTallies implements store.Store. No one asks for them.
func (m *Store) PutTallies(context.Context, string, []store.Tally) error { return nil }
