package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// letterRow is a letter as its row wants it: what is the original's, payload
// and headers, apart from the rest, so that it can be encrypted.
type letterRow struct {
	deadletter.Letter
	sealed []byte
}

// original is the part of a letter that may be secret.
type original struct {
	Payload []byte              `json:"payload"`
	Headers []deadletter.Header `json:"headers"`
}

func (s *Store) prepare(l deadletter.Letter) (letterRow, error) {
	if l.ID == "" || l.Queue == "" || l.Reason == "" {
		return letterRow{}, fmt.Errorf("dead letter %q without id, queue or reason", l.ID)
	}
	plain, err := json.Marshal(original{l.Payload, l.Headers})
	if err != nil {
		return letterRow{}, err
	}
	sealed, err := s.seal(plain)
	l.Payload, l.Headers = nil, nil
	return letterRow{l, sealed}, err
}

func (s *Store) prepareLetters(outcomes []webhook.Outcome) (map[int64]letterRow, error) {
	var letters map[int64]letterRow
	for _, o := range outcomes {
		if o.Kind != webhook.Dead {
			continue
		}
		if o.Dead == nil {
			return nil, fmt.Errorf("delivery %d: dead without a letter", o.ID)
		}
		l, err := s.prepare(*o.Dead)
		if err != nil {
			return nil, err
		}
		if letters == nil {
			letters = map[int64]letterRow{}
		}
		letters[o.ID] = l
	}
	return letters, nil
}

// bury adds the letter of a delivery with its history, or returns the letter
// that was being redriven to the dead ones.
func (s *Store) bury(t *tx, delivery int64, redriven string, l letterRow) (err error) {
	if l.History, err = t.history(delivery); err != nil {
		return err
	}
	if len(l.History) > 0 {
		l.FirstAttempt, l.LastAttempt = l.History[0].At, l.History[len(l.History)-1].At
	}
	if redriven == "" {
		return t.putLetter(l)
	}
	l.ID = redriven
	meta, err := json.Marshal(l.Letter)
	if err != nil {
		return err
	}
	if _, err = t.exec(`UPDATE forbear_letters SET state = 'dead', outcome = 'dead', reason = ?, error_type = ?, meta = ?, dead_at = {t} WHERE id = ?`,
		l.Reason, l.ErrorType, string(meta), after(0), l.ID); err != nil {
		return err
	}
	t.raise(deadletter.Alert{Queue: l.Queue, Reason: l.Reason, Letter: l.ID, Detail: l.Description})
	return nil
}

func (t *tx) putLetter(l letterRow) error {
	meta, err := json.Marshal(l.Letter)
	if err != nil {
		return err
	}
	n, err := t.exec(`INSERT INTO forbear_letters (id, queue, dest, event_id, reason, error_type, state, dead_at, meta, sealed)
		VALUES (?, ?, ?, ?, ?, ?, 'dead', {t}, ?, ?) ON CONFLICT (id) DO NOTHING`,
		l.ID, l.Queue, l.Destination, l.EventID, l.Reason, l.ErrorType, after(0), string(meta), l.sealed)
	if err != nil || n == 0 {
		return err
	}
	t.raise(deadletter.Alert{Queue: l.Queue, Reason: l.Reason, Letter: l.ID, Detail: l.Description})
	return nil
}

// Put implements deadletter.Store.
func (s *Store) Put(ctx context.Context, l deadletter.Letter) error {
	row, err := s.prepare(l)
	if err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error { return t.putLetter(row) })
}

const letterColumns = `id, state, dead_at, redrives, COALESCE(redriven, 0), COALESCE(redriver, ''), COALESCE(job, ''), outcome, COALESCE(discard, ''), meta, sealed`

func (s *Store) scanLetter(r *sql.Rows) (l deadletter.Letter, err error) {
	var id, state, redriver, job, outcome, discard, meta string
	var deadAt, redriven int64
	var redrives int
	var sealed []byte
	if err := r.Scan(&id, &state, &deadAt, &redrives, &redriven, &redriver, &job, &outcome, &discard, &meta, &sealed); err != nil {
		return l, err
	}
	if err := json.Unmarshal([]byte(meta), &l); err != nil {
		return l, fmt.Errorf("dead letter %q: %w", id, err)
	}
	plain, err := s.unseal(sealed)
	if err != nil {
		return l, fmt.Errorf("dead letter %q: %w", id, err)
	}
	var o original
	if err := json.Unmarshal(plain, &o); err != nil {
		return l, fmt.Errorf("dead letter %q: %w", id, err)
	}
	l.ID, l.Payload, l.Headers = id, o.Payload, o.Headers
	l.State, l.DeadAt, l.Redrives, l.RedrivenAt = deadletter.State(state), at(deadAt), redrives, at(redriven)
	l.RedrivenBy, l.Job, l.Outcome, l.Discard = redriver, job, deadletter.Outcome(outcome), discard
	return l, nil
}

// Get implements deadletter.Store.
func (s *Store) Get(ctx context.Context, id string) (deadletter.Letter, error) {
	list, err := s.List(ctx, deadletter.Filter{IDs: []string{id}, Limit: 1})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%q: %w", id, deadletter.ErrNotFound)
	}
	if err != nil {
		return deadletter.Letter{}, err
	}
	return list[0], nil
}

// where turns a filter into a condition.
func where(f deadletter.Filter) (string, []any) {
	cond, args := []string{"1 = 1"}, []any(nil)
	add := func(c string, a ...any) { cond, args = append(cond, c), append(args, a...) }
	for _, c := range []struct{ column, value string }{
		{"queue", f.Queue},
		{"dest", f.Destination},
		{"reason", f.Reason},
		{"error_type", f.ErrorType},
		{"event_id", f.EventID},
		{"state", string(f.State)},
		{"job", f.Job},
	} {
		if c.value != "" {
			add(c.column+" = ?", c.value)
		}
	}
	if len(f.IDs) > 0 {
		var ids []any
		for _, id := range f.IDs {
			ids = append(ids, id)
		}
		add("id IN ("+placeholders(len(ids))+")", ids...)
	}
	if f.Outcome != nil {
		add("outcome = ?", string(*f.Outcome))
	}
	if !f.Since.IsZero() {
		add("dead_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		add("dead_at < ?", f.Until)
	}
	if f.MaxRedrives > 0 {
		add("redrives < ?", f.MaxRedrives)
	}
	return strings.Join(cond, " AND "), args
}

// List implements deadletter.Store.
func (s *Store) List(ctx context.Context, f deadletter.Filter) (list []deadletter.Letter, err error) {
	cond, args := where(f)
	if f.After != "" {
		cond, args = cond+" AND seq > (SELECT seq FROM forbear_letters WHERE id = ?)", append(args, f.After)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	err = s.query(ctx, func(r *sql.Rows) error {
		l, err := s.scanLetter(r)
		list = append(list, l)
		return err
	}, `SELECT `+letterColumns+` FROM forbear_letters WHERE `+cond+` ORDER BY seq LIMIT ?`, append(args, min(limit, deadletter.MaxList))...)
	return list, err
}

// Count implements deadletter.Store.
func (s *Store) Count(ctx context.Context, f deadletter.Filter) (n int, err error) {
	cond, args := where(f)
	err = s.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM forbear_letters WHERE `+cond, args...)
	return n, err
}

// Stats implements deadletter.Store.
func (s *Store) Stats(ctx context.Context) (list []deadletter.Stat, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		var st deadletter.Stat
		var oldest, newest int64
		err := r.Scan(&st.Queue, &st.Reason, &st.State, &st.Count, &oldest, &newest)
		st.Oldest, st.Newest = at(oldest), at(newest)
		list = append(list, st)
		return err
	}, `SELECT queue, reason, state, count(*), min(dead_at), max(dead_at) FROM forbear_letters GROUP BY queue, reason, state ORDER BY queue, reason, state`)
	return list, err
}

// Discard implements deadletter.Store.
func (s *Store) Discard(ctx context.Context, id, by, why string) error {
	return s.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_letters SET state = 'discarded', discard = ? WHERE id = ? AND state = 'dead'`, why, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return t.whyNot(id)
		}
		return t.audit(deadletter.Entry{Who: by, Action: "discard", Target: id, Detail: why})
	})
}

// whyNot tells why a letter could not change: it is unknown, or in another
// state.
func (t *tx) whyNot(id string) error {
	var state string
	ok, err := t.row([]any{&state}, `SELECT state FROM forbear_letters WHERE id = ?`, id)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%q: %w", id, own(deadletter.ErrNotFound))
	default:
		return fmt.Errorf("dead letter %q is %s: %w", id, state, own(deadletter.ErrState))
	}
}

// Remove implements deadletter.Store.
func (s *Store) Remove(ctx context.Context, ids []string) (int, error) {
	return do(ctx, s, func(t *tx) (removed int, err error) {
		for _, id := range ids {
			n, err := t.exec(`DELETE FROM forbear_letters WHERE id = ? AND state <> 'redriving'`, id)
			if err != nil {
				return 0, err
			}
			removed += int(n)
		}
		return removed, nil
	})
}
