package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// letter returns the letter with that id, or nil; m.mu is held.
func (m *Store) letter(id string) *deadletter.Letter {
	return find(m.letters, func(l *deadletter.Letter) bool { return l.ID == id })
}

// deadLetter adds the letter of a delivery. When the delivery was itself a
// redrive, its old letter goes back to the dead ones instead, with the new
// history, so that one message never has two letters.
func (m *Store) deadLetter(d *delivery, l deadletter.Letter) {
	l.SetHistory(slices.Clone(d.history))
	old := m.letter(d.Letter)
	if old == nil {
		m.put(l)
		return
	}
	old.State, old.Outcome, old.DeadAt = deadletter.Dead, deadletter.RedriveDead, time.Now()
	old.Reason, old.ErrorType, old.History, old.LastAttempt = l.Reason, l.ErrorType, l.History, l.LastAttempt
	old.Error, old.Chain, old.Description, old.Cause = l.Error, l.Chain, l.Description, l.Fingerprint()
	m.raise(queue.Alert{Queue: l.Queue, Reason: l.Reason, Letter: old.ID, Detail: l.Description})
}

// put adds a letter and raises its alert. A letter with a known id is left
// as it is, and raises no second alert: writing one again is how a consumer
// recovers from a lost response.
func (m *Store) put(l deadletter.Letter) {
	if old := m.letter(l.ID); old != nil {
		if old.State == deadletter.Redriving { // it has died again, and says why now
			l.State, l.DeadAt, l.Cause = old.State, old.DeadAt, l.Fingerprint()
			l.Redrives, l.RedrivenAt, l.RedrivenBy, l.Job, l.Outcome, l.Discard = old.Redrives, old.RedrivenAt, old.RedrivenBy, old.Job, old.Outcome, old.Discard
			*old = l
		}
		return
	}
	// Whatever the letter says of itself: it is dead from now on.
	l.State, l.DeadAt, l.Cause = deadletter.Dead, time.Now(), l.Fingerprint()
	if l.Queue == webhook.Queue {
		l.Application = cmp.Or(l.Application, m.applicationOf(l.Destination))
	}
	m.letters = append(m.letters, &l)
	m.raise(queue.Alert{Queue: l.Queue, Reason: l.Reason, Letter: l.ID, Detail: l.Description})
}

// Put implements queue.Store.
func (m *Store) Put(_ context.Context, l deadletter.Letter) error {
	if l.ID == "" || l.Queue == "" || l.Reason == "" {
		return fmt.Errorf("dead letter %q without id, queue or reason", l.ID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(l)
	return nil
}

// The letter is a copy, although its slices are shared: callers do not write
// into them.
// Get implements queue.Store.
func (m *Store) Get(_ context.Context, id string) (deadletter.Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.letter(id); l != nil {
		return *l, nil
	}
	return deadletter.Letter{}, fmt.Errorf("dead letter %q: %w", id, queue.ErrNotFound)
}

// chosen reports whether f chooses l. All fields have to match, and an empty
// field matches everything. Until is exclusive, so that consecutive periods
// count each letter once.
func chosen(f *queue.Filter, l *deadletter.Letter) bool {
	// An empty field of the filter chooses all.
	is := func(want, got string) bool { return want == "" || want == got }
	return is(f.Queue, l.Queue) && is(f.Destination, l.Destination) && is(f.Application, l.Application) && is(f.Reason, l.Reason) && is(f.ErrorType, l.ErrorType) &&
		is(f.EventID, l.EventID) && is(f.Cause, l.Cause) && is(string(f.State), string(l.State)) && is(f.Job, l.Job) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, l.ID)) &&
		(f.Outcome == nil || *f.Outcome == l.Outcome) &&
		(f.Since.IsZero() || !l.DeadAt.Before(f.Since)) && (f.Until.IsZero() || l.DeadAt.Before(f.Until)) &&
		(f.MaxRedrives <= 0 || l.Redrives < f.MaxRedrives) && (f.NotJob == "" || l.Job != f.NotJob)
}

// After is the id of the last letter of the page before. Unlike an offset it
// stays right when letters are removed between two pages.
// List implements queue.Store.
func (m *Store) List(_ context.Context, f queue.Filter) (list []deadletter.Letter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Letters are in the order of their arrival, which is that of the list.
	behind, letters := f.After == "", m.letters
	if f.Newest {
		letters = slices.Clone(letters)
		slices.Reverse(letters)
	}
	for _, l := range letters {
		if behind && chosen(&f, l) && len(list) < cmp.Or(f.Limit, 100) {
			list = append(list, *l)
		}
		behind = behind || l.ID == f.After
	}
	return list, nil
}

// Count implements queue.Store.
func (m *Store) Count(_ context.Context, f queue.Filter) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.letters {
		if chosen(&f, l) {
			n++
		}
	}
	return n, nil
}

// Letters are walked in the order of their arrival, so that the first of a
// group is its oldest and the last its newest.
// Stats implements queue.Store.
func (m *Store) Stats(context.Context) (list []queue.Stat, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.letters {
		i := slices.IndexFunc(list, func(s queue.Stat) bool { return s.Queue == l.Queue && s.Reason == l.Reason && s.State == l.State })
		if i < 0 {
			i, list = len(list), append(list, queue.Stat{Queue: l.Queue, Reason: l.Reason, State: l.State, Oldest: l.DeadAt})
		}
		list[i].Count++
		list[i].Newest = l.DeadAt
	}
	return list, nil
}

// dead returns the dead letter with that id, or why there is none. A letter
// that is being redriven, or was discarded or resolved, is in another state
// and is refused: discard and redrive both start from here.
func (m *Store) dead(id string) (*deadletter.Letter, error) {
	switch l := m.letter(id); {
	case l == nil:
		return nil, fmt.Errorf("dead letter %q: %w", id, queue.ErrNotFound)
	case l.State != deadletter.Dead:
		return nil, fmt.Errorf("dead letter %q is %s: %w", id, l.State, queue.ErrState)
	default:
		return l, nil
	}
}

// A letter that is being redriven stays: the delivery's outcome has to find
// it.
// Remove implements queue.Store.
func (m *Store) Remove(_ context.Context, ids []string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.letters)
	m.letters = slices.DeleteFunc(m.letters, func(l *deadletter.Letter) bool {
		return l.State != deadletter.Redriving && slices.Contains(ids, l.ID)
	})
	return before - len(m.letters), nil
}

// Taking a letter, counting the redrive and the audit entry are one step
// under the lock: two operators who redrive the same letter start one
// delivery.
// BeginRedrive implements queue.Store.
func (m *Store) BeginRedrive(_ context.Context, id, job, by string, limit int) (deadletter.Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.dead(id)
	if err != nil {
		return deadletter.Letter{}, err
	}
	// Counted before the redrive: the limit is on those that began.
	if l.Redrives >= limit {
		return *l, fmt.Errorf("dead letter %q was redriven %d times: %w", id, l.Redrives, queue.ErrRedriveLimit)
	}
	l.State, l.Outcome, l.Job, l.RedrivenBy, l.RedrivenAt = deadletter.Redriving, deadletter.RedriveNone, job, by, time.Now()
	l.Redrives++
	m.audit(queue.Entry{Who: by, Action: "redrive", Target: id, Detail: "job " + job})
	return *l, nil
}

// RecordRedrive implements queue.Store.
func (m *Store) RecordRedrive(_ context.Context, id string, o deadletter.RedriveResult) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endRedrive(id, o)
	return nil
}

// endRedrive records the outcome of a redrive. A redrive that failed for now
// goes on in state redriving. The call does nothing for a delivery that
// redrives no letter, which is most of them.
func (m *Store) endRedrive(id string, o deadletter.RedriveResult) {
	l := m.letter(id)
	if l == nil || l.State != deadletter.Redriving {
		return
	}
	l.Outcome = o
	switch o {
	case deadletter.RedriveDelivered:
		l.State = deadletter.Resolved
	case deadletter.RedriveDead:
		l.State = deadletter.Dead
	}
}
