package memstore

import (
	"container/heap"
	"context"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// A lane without a waiting delivery has no head: its dispatcher sleeps until
// something is accepted.
// NextDues implements store.Store.
func (m *Store) NextDues(context.Context) (heads []store.NextDue, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for endpoint, w := range m.lanes {
		if d := w.head(); d != nil {
			heads = append(heads, store.NextDue{Endpoint: endpoint, In: time.Until(d.Due)})
		}
	}
	return heads, nil
}

// The two halves take the lock one after the other. Another claim may come
// between them, which is harmless: each half is complete in itself.
// WriteBackAndClaim implements store.Store.
func (m *Store) WriteBackAndClaim(ctx context.Context, t store.Step) (done store.StepResult, err error) {
	// Write back first: what that lets go may be claimed in the same turn.
	if done.OK, err = m.Finish(ctx, t.WriteBacks); err != nil {
		return done, err
	}
	if done.Claimed, err = m.Claim(ctx, t.Owner, t.Lease, t.Lanes); err != nil {
		return done, err
	}
	got := map[string]int{}
	for _, d := range done.Claimed {
		got[d.Endpoint]++
	}
	// Only lanes that got less than they wanted need to know what is next.
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range t.Lanes {
		if w := m.lanes[l.Endpoint]; w != nil && got[l.Endpoint] < l.Max {
			if d := w.head(); d != nil {
				done.Next = append(done.Next, store.NextDue{Endpoint: l.Endpoint, In: time.Until(d.Due)})
			}
		}
	}
	return done, nil
}

// Claim is the half of a turn that takes deliveries. Lanes are served in the
// order given, each up to its own limit, so that an endpoint with a long
// queue takes nothing from the others.
func (m *Store) Claim(_ context.Context, owner string, lease time.Duration, lanes []store.Lane) (list []store.Delivery, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, l := range lanes {
		w := m.lanes[l.Endpoint]
		for range l.Max {
			if w == nil {
				break
			}
			d := w.head()
			if d == nil || d.Due.After(now) {
				break
			}
			heap.Pop(w)
			list = append(list, d.taken(owner, now.Add(lease)))
		}
	}
	return list, nil
}

// taken leases the delivery and returns it as it is then. Each claim counts the
// fence up, so that the holder of an earlier one writes nothing back.
func (d *delivery) taken(owner string, lease time.Time) store.Delivery {
	d.state, d.owner, d.lease = stateSending, owner, lease
	d.Fence++
	d.Claims++
	d.LeaseEnd = lease
	return d.Delivery
}

// Age counts from the delivery's start, which retries never move, and the
// due time is not looked at: a delivery may be overdue while its endpoint is
// disabled.
// Overdue implements store.Store.
func (m *Store) Overdue(_ context.Context, owner string, lease, age time.Duration, lane store.Lane) (list []store.Delivery, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.oldest(lane.Max, func(d *delivery) bool {
		return d.Endpoint == lane.Endpoint && d.state == stateWaiting && time.Since(d.Start) > age
	}) {
		list = append(list, d.taken(owner, time.Now().Add(lease)))
	}
	return list, nil
}

// The delivery is due again at once and keeps its progress: a crash of the
// dispatcher is not the endpoint's failure.
// Reclaim implements store.Store.
func (m *Store) Reclaim(_ context.Context, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.oldest(limit, func(d *delivery) bool {
		return d.state == stateWaiting && d.Canceled || d.state == stateSending && d.lease.Before(time.Now())
	}) {
		n++
		if d.state == stateWaiting {
			m.cancel(d)
		} else {
			// No one knows whether the attempt was made: that is what the history says.
			d.history = append(d.history, deadletter.Attempt{Number: d.Progress.Attempts + 1, Claim: d.Claims, Due: d.Due, At: d.lease, ErrorType: "interrupted", Worker: d.owner})
			m.wait(d, d.Due)
		}
	}
	return n, nil
}
