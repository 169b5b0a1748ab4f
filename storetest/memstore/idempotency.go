package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// Idempotency is an idempotency.Store in memory. It forgets everything with its
// process, which is when idempotency is needed most: idempotency.Handler refuses
// it under Options.Production. The zero value is empty and ready, and it is safe
// for concurrent use.
type Idempotency struct {
	// Now is its clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	records map[idempotency.ID]*idempotency.Record
}

// now is the store's clock.
func (m *Idempotency) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Durable reports that records end with the process.
func (m *Idempotency) Durable() bool { return false }

// Claim implements idempotency.Store.
func (m *Idempotency) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	// As a database would: a caller that has left claims nothing.
	if err := ctx.Err(); err != nil {
		return idempotency.Verdict{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	rec, outcome := c.Against(m.records[c.ID], now)
	if outcome == idempotency.Acquired || outcome == idempotency.Unknown {
		// The state machine is Claim.Against: what it acquires or finds abandoned is
		// written down.
		if m.records == nil {
			m.records = map[idempotency.ID]*idempotency.Record{}
		}
		m.records[c.ID] = new(rec)
	}
	return idempotency.Verdict{Outcome: outcome, Record: rec, LeaseLeft: max(rec.LeaseEnd.Sub(now), 0)}, nil
}

// update changes the record that t holds. Every write goes through it, so
// that no method can forget the fence. A missing record counts as a lost
// fence too: the record expired, and another run may have come and gone.
func (m *Idempotency) update(ctx context.Context, t idempotency.Token, change func(r *idempotency.Record, now time.Time)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[t.ID]
	if r == nil || !r.Holds(t) {
		return idempotency.ErrFenced
	}
	change(r, m.now())
	return nil
}

// A renewal also undoes a hold: the run is evidently alive. Expires moves
// with the lease, so that the retention after it stays the same.
// Renew implements idempotency.Store.
func (m *Idempotency) Renew(ctx context.Context, t idempotency.Token, lease time.Duration) error {
	return m.update(ctx, t, func(r *idempotency.Record, now time.Time) {
		r.State, r.Note = idempotency.Started, ""
		r.Expires = r.Expires.Add(now.Add(lease).Sub(r.LeaseEnd))
		r.LeaseEnd = now.Add(lease)
	})
}

// The retention counts from now, not from the claim: a client repeats a
// request because its response was lost, which is after completion.
// Complete implements idempotency.Store.
func (m *Idempotency) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, retention time.Duration) error {
	return m.update(ctx, t, func(r *idempotency.Record, now time.Time) {
		r.State, r.Response, r.Note, r.Completed, r.Expires = idempotency.Completed, &a, "", now, now.Add(retention)
	})
}

// The record stays, as released: its fence has to survive, or a late write
// of this run could enter the next.
// Release implements idempotency.Store.
func (m *Idempotency) Release(ctx context.Context, t idempotency.Token) error {
	return m.update(ctx, t, func(r *idempotency.Record, _ time.Time) { r.State, r.Note = idempotency.Released, "" })
}

// A held key grants no claim until it is completed by its own run or
// resolved by a person.
// Hold implements idempotency.Store.
func (m *Idempotency) Hold(ctx context.Context, t idempotency.Token, why string) error {
	return m.update(ctx, t, func(r *idempotency.Record, _ time.Time) { r.State, r.Note = idempotency.Held, why })
}

// The record is as stored: a lease that has ended is not yet shown as held,
// unlike in List.
// Get implements idempotency.Store.
func (m *Idempotency) Get(_ context.Context, id idempotency.ID) (idempotency.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return *r, nil
}

// Each copy is brought up to date first: an abandoned run is listed as held
// even when no claim has found it yet.
// List implements idempotency.Store.
func (m *Idempotency) List(_ context.Context, f idempotency.Filter) ([]idempotency.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var list []idempotency.Record
	for _, r := range slices.SortedFunc(maps.Values(m.records), func(a, b *idempotency.Record) int { return compareID(a.ID, b.ID) }) {
		rec := *r
		rec.HoldAbandoned(now)
		if f.Scope != "" && rec.ID.Scope != f.Scope || f.Key != "" && rec.ID.Key != f.Key || f.State != "" && rec.State != f.State || f.After != (idempotency.ID{}) && compareID(rec.ID, f.After) <= 0 {
			continue
		}
		// Lists show no bodies.
		if rec.Response != nil {
			a := *rec.Response
			a.Body = nil
			rec.Response = &a
		}
		if list = append(list, rec); len(list) == f.Max() {
			break
		}
	}
	return list, nil
}

// compareID is the order of lists: by scope, then by key. Paging relies on
// it, since After names the last record of the page before.
func compareID(a, b idempotency.ID) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}

// Clearing the owner is the fence here: a run that was only slow finds that
// it no longer holds the record.
// Resolve implements idempotency.Store.
func (m *Idempotency) Resolve(_ context.Context, id idempotency.ID, res idempotency.Resolution) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil {
		return idempotency.ErrNotFound
	}
	now := m.now()
	r.HoldAbandoned(now)
	if r.State != idempotency.Held || res.Fence != 0 && r.Fence != res.Fence {
		return idempotency.ErrNotHeld
	}
	// A record expires its retention after the end of its lease.
	retention := r.Expires.Sub(r.LeaseEnd)
	r.Note = res.Text()
	r.Owner = "" // a run that still goes on has lost it
	r.State, r.Expires = idempotency.Released, now.Add(retention)
	if res.Response != nil {
		r.State, r.Response, r.Completed = idempotency.Completed, res.Response, now
	}
	return nil
}

// A held record stays past its expiry until a person has resolved it. The
// map's order is random, so that a limit removes any of the expired ones.
// Sweep implements idempotency.Store.
func (m *Idempotency) Sweep(_ context.Context, limit int) (n int, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for id, r := range m.records {
		r.HoldAbandoned(now)
		if n < limit && r.State != idempotency.Held && !r.Expires.After(now) {
			delete(m.records, id)
			n++
		}
	}
	return n, nil
}

// Census implements idempotency.Counter.
func (m *Idempotency) Census(context.Context) (c idempotency.Census, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, r := range m.records {
		rec := *r
		rec.HoldAbandoned(now)
		c.Add(&rec, now)
	}
	return c, nil
}
