package idempotency

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a store for tests: it forgets everything with its process, which is
// when idempotency is needed most, and is refused by [Handler] under
// [Options.Production]. Make it with [NewMemory]. It is safe for concurrent
// use.
type Memory struct {
	mu      sync.Mutex
	now     func() time.Time
	records map[ID]*Record
}

// NewMemory returns an empty store. now is its clock; nil means time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, records: map[ID]*Record{}}
}

// Durable reports that records end with the process.
func (m *Memory) Durable() bool { return false }

// Claim implements [Store].
func (m *Memory) Claim(ctx context.Context, c Claim) (Verdict, error) {
	if err := ctx.Err(); err != nil {
		return Verdict{}, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	rec, outcome := c.Against(m.records[c.ID], now)
	if outcome == Acquired || outcome == Unknown {
		kept := rec
		m.records[c.ID] = &kept
	}
	return Verdict{Outcome: outcome, Record: rec, LeaseLeft: max(rec.LeaseEnd.Sub(now), 0)}, nil
}

// update changes the record that t holds.
func (m *Memory) update(ctx context.Context, t Token, change func(r *Record, now time.Time)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[t.ID]
	if r == nil || !r.Holds(t) {
		return ErrFenced
	}
	change(r, m.now())
	return nil
}

// Renew implements [Store].
func (m *Memory) Renew(ctx context.Context, t Token, lease time.Duration) error {
	return m.update(ctx, t, func(r *Record, now time.Time) {
		r.State, r.Note = Started, ""
		r.Expires = r.Expires.Add(now.Add(lease).Sub(r.LeaseEnd))
		r.LeaseEnd = now.Add(lease)
	})
}

// Complete implements [Store].
func (m *Memory) Complete(ctx context.Context, t Token, a Answer, retention time.Duration) error {
	return m.update(ctx, t, func(r *Record, now time.Time) {
		r.State, r.Answer, r.Note, r.Completed, r.Expires = Completed, &a, "", now, now.Add(retention)
	})
}

// Release implements [Store].
func (m *Memory) Release(ctx context.Context, t Token) error {
	return m.update(ctx, t, func(r *Record, _ time.Time) { r.State, r.Note = Released, "" })
}

// Hold implements [Store].
func (m *Memory) Hold(ctx context.Context, t Token, why string) error {
	return m.update(ctx, t, func(r *Record, _ time.Time) { r.State, r.Note = Held, why })
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id ID) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil {
		return Record{}, ErrNotFound
	}
	return *r, nil
}

// List implements [Store].
func (m *Memory) List(_ context.Context, f Filter) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var list []Record
	for _, r := range slices.SortedFunc(maps.Values(m.records), func(a, b *Record) int { return compareID(a.ID, b.ID) }) {
		rec := *r
		rec.Settle(now)
		if f.Scope != "" && rec.ID.Scope != f.Scope || f.State != "" && rec.State != f.State || f.After != (ID{}) && compareID(rec.ID, f.After) <= 0 {
			continue
		}
		if rec.Answer != nil {
			a := *rec.Answer
			a.Body = nil
			rec.Answer = &a
		}
		if list = append(list, rec); len(list) == f.Max() {
			break
		}
	}
	return list, nil
}

// Max returns the number of records in one page of a list.
func (f Filter) Max() int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
}

// Settle makes a record that was abandoned by now what the next claim would
// make of it: held, unless it may be repeated.
func (r *Record) Settle(now time.Time) {
	if r.State == Started && !r.Rerun && !r.LeaseEnd.After(now) {
		r.State, r.Note = Held, Abandoned
	}
}

func compareID(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}

// Resolve implements [Store].
func (m *Memory) Resolve(_ context.Context, id ID, res Resolution) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[id]
	if r == nil {
		return ErrNotFound
	}
	now := m.now()
	r.Settle(now)
	if r.State != Held {
		return ErrNotHeld
	}
	retention := r.Expires.Sub(r.LeaseEnd)
	r.Note = res.Text()
	r.Owner = "" // a run that still goes on has lost it
	r.State, r.Expires = Released, now.Add(retention)
	if res.Answer != nil {
		r.State, r.Answer, r.Completed = Completed, res.Answer, now
	}
	return nil
}

// Text is what a record notes of its resolution.
func (r Resolution) Text() string {
	return "resolved by " + cmp.Or(r.By, "somebody") + ": " + cmp.Or(r.Why, "no reason given")
}

// Sweep implements [Store].
func (m *Memory) Sweep(_ context.Context, limit int) (n int, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for id, r := range m.records {
		r.Settle(now)
		if n < limit && r.State != Held && !r.Expires.After(now) {
			delete(m.records, id)
			n++
		}
	}
	return n, nil
}
