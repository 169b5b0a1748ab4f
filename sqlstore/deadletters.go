package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// The methods of this view stand here for letters, in redrive.go and
// redrive_job.go for redrives, in alerts.go and in audit.go.

// DeadLetters is the view of a database that keeps dead letters, redrives, their
// alerts and the audit trail. It implements queue.Store. Make it with
// [DB.DeadLetters]. It is safe for concurrent use.
type DeadLetters struct{ db *DB }

// DeadLetters returns the dead letters of the database.
func (db *DB) DeadLetters() *DeadLetters { return &DeadLetters{db} }

// What statements say of a letter's state, to set it or to ask for it.
const (
	letterDead      = `state = '` + string(deadletter.Dead) + `'`
	letterRedriving = `state = '` + string(deadletter.Redriving) + `'`
	letterDiscarded = `state = '` + string(deadletter.Discarded) + `'`
)

// letterRow is a letter as its row wants it: what is the original's, payload
// and headers, apart from the rest, so that it can be encrypted and the rest
// can be searched.
type letterRow struct {
	deadletter.Letter
	sealed []byte
}

// original is the part of a letter that may be secret. Where it is encrypted, it
// has what the letter's errors quote as well, and meta has them without.
type original struct {
	Payload []byte               `json:"payload"`
	Headers []deadletter.Header  `json:"headers"`
	Error   string               `json:"error,omitempty"`
	Panic   string               `json:"panic,omitempty"`
	History []deadletter.Attempt `json:"attempt_history,omitempty"`
}

// encodeLetter makes a row of a letter, before the transaction. A letter without
// a queue or reason could not be found again by those that look for it.
func (db *DB) encodeLetter(l deadletter.Letter) (letterRow, error) {
	if l.ID == "" || l.Queue == "" || l.Reason == "" {
		return letterRow{}, fmt.Errorf("dead letter %q without id, queue or reason", l.ID)
	}
	l.Cause, l.Unreadable = l.Fingerprint(), ""
	o := original{Payload: l.Payload, Headers: l.Headers}
	if db.cipher != nil {
		o.Error, o.Panic, o.History = l.Error, l.Panic, l.History
		l = l.Mask()
	}
	l.Payload, l.Headers = nil, nil
	plain, err := json.Marshal(o)
	if err != nil {
		return letterRow{}, err
	}
	sealed, err := db.seal(letterCell(l.ID), plain)
	return letterRow{l, sealed}, err
}

// letterCell is where what is sealed of a letter belongs.
func letterCell(id string) cell { return place("letters.sealed", id) }

// moveLetter makes l the letter of that id.
func (db *DB) moveLetter(l *letterRow, id string) error {
	plain, err := db.unseal(letterCell(l.ID), l.sealed)
	if err != nil {
		return err
	}
	l.ID = id
	l.sealed, err = db.seal(letterCell(id), plain)
	return err
}

// setCause writes anew what a letter says; the arguments are those of [letterRow.cause].
const setCause = `reason = ?, error_type = ?, cause = ?, meta = ?, sealed = ?`

func (l *letterRow) cause() []any {
	return []any{l.Reason, l.ErrorType, l.Cause, asJSON{l.Letter}, l.sealed}
}

// putLetter adds a letter and raises its alert. One that is there already has
// raised its own; while it is redriven it has died again, and says why now.
func (t *tx) putLetter(l letterRow) error {
	n, err := t.exec(`INSERT INTO forbear_letters (id, queue, dest, application, event_id, reason, error_type, state, dead_at, cause, meta, sealed)
		VALUES (?, ?, ?, COALESCE(CAST(? AS TEXT), (SELECT e.application FROM forbear_endpoints e WHERE e.id = ?)), ?, ?, ?, ?, {t}, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		l.ID, l.Queue, l.Destination, null(l.Application), l.endpoint(), l.EventID, l.Reason, l.ErrorType, string(deadletter.Dead), after(0), l.Cause, asJSON{l.Letter}, l.sealed)
	switch {
	case err != nil:
	case n > 0:
		t.raise(alertOf(l.Letter))
	default:
		_, err = t.exec(`UPDATE forbear_letters SET `+setCause+` WHERE id = ? AND `+letterRedriving, append(l.cause(), l.ID)...)
	}
	return err
}

// endpoint returns the endpoint that a letter of the webhooks' queue was for: those of
// other queues may have destinations of the same name.
func (l *letterRow) endpoint() string {
	if l.Queue != webhook.Queue {
		return ""
	}
	return l.Destination
}

// alertOf is the alert that a letter raises.
func alertOf(l deadletter.Letter) queue.Alert {
	return queue.Alert{Queue: l.Queue, Reason: l.Reason, Letter: l.ID, Detail: l.Description}
}

// Put implements queue.Store.
func (l *DeadLetters) Put(ctx context.Context, letter deadletter.Letter) error {
	row, err := l.db.encodeLetter(letter)
	if err != nil {
		return err
	}
	return l.db.write(ctx, func(t *tx) error { return t.putLetter(row) })
}

// letterColumns are what scanLetter reads.
const letterColumns = `id, state, COALESCE(application, ''), dead_at, redrives, COALESCE(redriven, 0), COALESCE(redriver, ''), COALESCE(job, ''), outcome, COALESCE(discard, ''), meta, sealed`

// scanLetter reads a letter, all of which can be read.
func (db *DB) scanLetter(r *sql.Rows) (deadletter.Letter, error) {
	l, unreadable, err := db.readLetter(r)
	return l, cmp.Or(err, unreadable)
}

// scanAnyLetter reads a letter, as far as it can be read.
func (db *DB) scanAnyLetter(r *sql.Rows) (deadletter.Letter, error) {
	l, unreadable, err := db.readLetter(r)
	if unreadable != nil {
		l.Unreadable = unreadable.Error()
	}
	return l, err
}

// readLetter reads a letter, and why what is sealed of it is missing: what changes has
// columns, which count, and all else is in meta as it was put.
func (db *DB) readLetter(r *sql.Rows) (l deadletter.Letter, unreadable, err error) {
	var id, state, application, redriver, job, outcome, discard, meta string
	var deadAt, redriven int64
	var redrives int
	var sealed []byte
	if err := r.Scan(&id, &state, &application, &deadAt, &redrives, &redriven, &redriver, &job, &outcome, &discard, &meta, &sealed); err != nil {
		return l, nil, err
	}
	if err := json.Unmarshal([]byte(meta), &l); err != nil {
		return l, nil, fmt.Errorf("dead letter %q: %w", id, err)
	}
	var o original
	plain, why := db.unseal(letterCell(id), sealed)
	if why == nil {
		why = json.Unmarshal(plain, &o)
	}
	if why != nil {
		o, unreadable = original{}, fmt.Errorf("dead letter %q %w: %w", id, webhook.ErrUnreadable, why)
	}
	l.ID, l.Application, l.Payload, l.Headers = id, application, o.Payload, o.Headers
	if l.Error, l.Panic = cmp.Or(o.Error, l.Error), cmp.Or(o.Panic, l.Panic); len(o.History) > 0 {
		l.History = o.History
	}
	l.State, l.DeadAt, l.Redrives, l.RedrivenAt = deadletter.State(state), at(deadAt), redrives, at(redriven)
	l.RedrivenBy, l.Job, l.Outcome, l.Discard = redriver, job, deadletter.RedriveResult(outcome), discard
	return l, unreadable, nil
}

// Get implements queue.Store.
func (l *DeadLetters) Get(ctx context.Context, id string) (deadletter.Letter, error) {
	list, err := l.List(ctx, queue.Filter{IDs: []string{id}, Limit: 1})
	letter, err := first(list, err, fmt.Errorf("dead letter %q: %w", id, queue.ErrNotFound))
	if err == nil && letter.Unreadable == "" {
		err = l.db.addRefused(ctx, &letter)
	}
	return letter, err
}

// defaultList is the number of letters in a page when the filter says none.
const defaultList = 100

// List implements queue.Store.
func (l *DeadLetters) List(ctx context.Context, f queue.Filter) ([]deadletter.Letter, error) {
	cond, args := letterFilter(f)
	behind, order := ">", "seq"
	if f.Newest {
		behind, order = "<", "seq DESC"
	}
	if f.After != "" {
		cond, args = cond+" AND seq "+behind+" (SELECT seq FROM forbear_letters WHERE id = ?)", append(args, f.After)
	}
	limit := min(cmp.Or(max(f.Limit, 0), defaultList), queue.MaxList)
	// The rows are long: the inner query finds them by indexes, and sorts numbers alone.
	return readAll(ctx, l.db, l.db.scanAnyLetter, `SELECT `+letterColumns+` FROM forbear_letters WHERE seq IN
		(SELECT seq FROM forbear_letters WHERE `+cond+` ORDER BY `+order+` LIMIT ?) ORDER BY `+order, append(args, limit)...)
}

// Count implements queue.Store.
func (l *DeadLetters) Count(ctx context.Context, f queue.Filter) (n int, err error) {
	cond, args := letterFilter(f)
	err = l.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM forbear_letters WHERE `+cond, args...)
	return n, err
}

// letterFilter turns a filter into a condition, but for what pages a list.
func letterFilter(f queue.Filter) (string, []any) {
	// Conditions of equal form come from a table, so that a new column is one
	// line.
	cond, args := []string{"1 = 1"}, []any(nil)
	add := func(c string, a ...any) { cond, args = append(cond, c), append(args, a...) }
	for _, c := range []struct{ column, value string }{
		{"queue", f.Queue},
		{"application", f.Application},
		{"reason", f.Reason},
		{"error_type", f.ErrorType},
		{"event_id", f.EventID},
		{"cause", f.Cause},
		{"job", f.Job},
	} {
		if c.value != "" {
			add(c.column+" = ?", c.value)
		}
	}
	if f.Destination != "" {
		add("dest = ? AND substr(dest, 1, 64) = substr(CAST(? AS TEXT), 1, 64)", f.Destination, f.Destination) // as forbear_letters_to has it
	}
	if f.State != "" {
		state := "state"
		if f.Destination != "" || f.Cause != "" || f.EventID != "" || f.Job != "" || len(f.IDs) > 0 {
			state = "COALESCE(state, '')" // a plan may read all of a state otherwise
		}
		add(state+" = ?", string(f.State))
	}
	if len(f.IDs) > 0 {
		add("id IN (SELECT value FROM {texts} x)", asJSON{f.IDs})
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
	if f.NotJob != "" {
		add("(job IS NULL OR job <> ?)", f.NotJob)
	}
	return strings.Join(cond, " AND "), args
}

// scanStat reads the count of one queue, reason and state.
func scanStat(r *sql.Rows) (s queue.Stat, err error) {
	var oldest, newest int64
	err = r.Scan(&s.Queue, &s.Reason, &s.State, &s.Count, &oldest, &newest)
	s.Oldest, s.Newest = at(oldest), at(newest)
	return s, err
}

// Stats implements queue.Store.
func (l *DeadLetters) Stats(ctx context.Context) ([]queue.Stat, error) {
	return readAll(ctx, l.db, scanStat, `SELECT queue, reason, state, count(*), min(dead_at), max(dead_at) FROM forbear_letters GROUP BY state, queue, reason ORDER BY queue, reason, state`)
}

// Causes implements queue.Store.
func (l *DeadLetters) Causes(ctx context.Context, limit int) ([]queue.CauseStat, error) {
	list, err := readAll(ctx, l.db, scanCause, `SELECT g.n, g.oldest, l.id, l.dead_at, l.meta FROM
		(SELECT count(*) AS n, min(dead_at) AS oldest, max(seq) AS last FROM forbear_letters WHERE `+letterDead+` GROUP BY queue, reason, cause ORDER BY n DESC LIMIT ?) g
		JOIN forbear_letters l ON l.seq = g.last`, limit)
	slices.SortFunc(list, queue.CauseStat.Compare)
	return list, err
}

// scanCause reads the count of one cause and the latest letter of it.
func scanCause(r *sql.Rows) (c queue.CauseStat, err error) {
	var l deadletter.Letter
	var id, meta string
	var oldest, newest int64
	if err := r.Scan(&c.Count, &oldest, &id, &newest, &meta); err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(meta), &l); err != nil {
		return c, fmt.Errorf("dead letter %q: %w", id, err)
	}
	l.ID, l.DeadAt, c.Oldest = id, at(newest), at(oldest)
	c.Latest(l)
	return c, nil
}

// Discard implements queue.Store.
func (l *DeadLetters) Discard(ctx context.Context, id, by, why string) error {
	return l.db.write(ctx, func(t *tx) error {
		n, err := t.exec(`UPDATE forbear_letters SET `+letterDiscarded+`, discard = ? WHERE id = ? AND `+letterDead, why, id)
		if err != nil {
			return err
		}
		// The condition was in the write, so that no one could change the letter
		// between a look and the write.
		if n == 0 {
			return t.whyNot(id)
		}
		return t.audit(queue.Entry{Who: by, Action: "discard", Target: id, Detail: why})
	})
}

// DiscardMany implements queue.Store.
func (l *DeadLetters) DiscardMany(ctx context.Context, f queue.Filter, by, why string) (n int, err error) {
	f.State = deadletter.Dead
	cond, args := letterFilter(f)
	return do(ctx, l.db, func(t *tx) (int, error) {
		// What another has changed in between is looked at again, and left alone.
		ids, err := collect(t, one[string], `UPDATE forbear_letters SET `+letterDiscarded+`, discard = ? WHERE `+letterDead+` AND seq IN
			(SELECT seq FROM forbear_letters WHERE `+cond+` ORDER BY seq LIMIT ?) RETURNING id`, append(append([]any{why}, args...), queue.MaxList)...)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		_, err = t.exec(`INSERT INTO forbear_audit (at, who, action, target, detail) SELECT {t}, ?, 'discard', value, ? FROM {texts} x`, after(0), by, why, asJSON{ids})
		return len(ids), err
	})
}

// whyNot finds out why a letter could not change: it is unknown, or in another
// state.
func (t *tx) whyNot(id string) error {
	var state string
	ok, err := t.row([]any{&state}, `SELECT state FROM forbear_letters WHERE id = ?`, id)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("dead letter %q: %w", id, own(queue.ErrNotFound))
	default:
		return fmt.Errorf("dead letter %q is %s: %w", id, state, own(queue.ErrState))
	}
}

// Remove implements queue.Store.
func (l *DeadLetters) Remove(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	return do(ctx, l.db, func(t *tx) (int, error) {
		// One that is being redriven is left: its delivery will come back to it.
		removed, err := collect(t, one[string], `DELETE FROM forbear_letters WHERE id IN (SELECT value FROM {texts} x) AND NOT `+letterRedriving+` RETURNING id`, asJSON{ids})
		if err == nil && len(removed) > 0 {
			_, err = t.exec(`DELETE FROM forbear_outbox_refused WHERE letter IN (SELECT value FROM {texts} x)`, asJSON{removed})
		}
		return len(removed), err
	})
}
