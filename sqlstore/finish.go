package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// settled is an outcome as its row wants it.
type settled struct {
	*webhook.Outcome `json:"-"`

	ID       int64   `json:"id"`
	Fence    int64   `json:"fence"`
	State    int     `json:"state"`
	After    int64   `json:"after"` // microseconds
	Progress *string `json:"progress"`
	Finished bool    `json:"finished"`

	// What the write returned: whether the row was still this lease's, and the
	// letter that it redrives.
	ok     bool
	letter string
}

func settle(o *webhook.Outcome) (settled, error) {
	s := settled{Outcome: o, ID: o.ID, Fence: o.Fence, After: o.After.Microseconds()}
	switch o.Kind {
	case webhook.Delivered:
		s.State, s.Finished = delivered, true
	case webhook.Dead:
		s.State, s.Finished = dead, true
	}
	if o.Kind != webhook.Delivered && !(o.Kind == webhook.Released && o.Progress == forbear.Progress{}) {
		text, err := json.Marshal(o.Progress)
		if err != nil {
			return s, err
		}
		p := string(text)
		s.Progress = &p
	}
	return s, nil
}

// settle writes the states back, fenced.
func (t *tx) settle(rows []settled) (err error) {
	for i := range rows {
		rows[i].ok, rows[i].letter = false, ""
	}
	if t.d.postgres {
		return t.settlePostgres(rows)
	}
	if err := t.settleDelivered(rows); err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if r.Kind == webhook.Delivered {
			continue
		}
		var finished any
		if r.Finished {
			finished = after(0)
		}
		r.ok, err = t.row([]any{&r.letter}, `UPDATE forbear_deliveries SET state = ?, due = CASE WHEN ? IS NULL THEN {t} ELSE due END, progress = COALESCE(?, progress), finished = ?, lease = NULL
			WHERE id = ? AND fence = ? AND state = 1 RETURNING COALESCE(letter, '')`,
			r.State, finished, after(r.Outcome.After), r.Progress, finished, r.ID, r.Fence)
		if err != nil {
			return err
		}
	}
	return nil
}

// settleDelivered writes back the successes, nearly all there is on a good day,
// in one statement.
func (t *tx) settleDelivered(rows []settled) error {
	index := make(map[leaseID]*settled, len(rows))
	spec := []byte("[")
	for i := range rows {
		r := &rows[i]
		if r.Kind != webhook.Delivered {
			continue
		}
		if len(index) > 0 {
			spec = append(spec, ',')
		}
		index[leaseID{r.ID, r.Fence}] = r
		spec = strconv.AppendInt(append(spec, '['), r.ID, 10)
		spec = append(strconv.AppendInt(append(spec, ','), r.Fence, 10), ']')
	}
	if len(index) == 0 {
		return nil
	}
	found, err := t.query(`UPDATE forbear_deliveries SET state = 2, finished = {t}, lease = NULL
		FROM (SELECT value ->> 0 AS id, value ->> 1 AS fence FROM json_each(?)) x
		WHERE forbear_deliveries.id = x.id AND forbear_deliveries.fence = x.fence AND state = 1 RETURNING forbear_deliveries.id, forbear_deliveries.fence, COALESCE(letter, '')`, after(0), string(append(spec, ']')))
	if err != nil {
		return err
	}
	return note(found, index)
}

// leaseID names one claim of a delivery.
type leaseID struct{ id, fence int64 }

// note notes which rows were written.
func note(found *sql.Rows, index map[leaseID]*settled) error {
	return each(found, func(r *sql.Rows) error {
		var id leaseID
		var letter string
		err := r.Scan(&id.id, &id.fence, &letter)
		if row := index[id]; row != nil {
			row.ok, row.letter = true, letter
		}
		return err
	})
}

func (t *tx) settlePostgres(rows []settled) error {
	index := make(map[leaseID]*settled, len(rows))
	for i := range rows {
		index[leaseID{rows[i].ID, rows[i].Fence}] = &rows[i]
	}
	spec, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	// A row may have to be waited for: another process's claim that came too
	// late locks it, too. Claims wait for nothing, and come last in their
	// transactions, so that this ends. The sum keeps the planner from the partial index on leases: it may
	// take that for small, and then compares each row with each lease.
	found, err := t.query(`WITH x AS MATERIALIZED (SELECT x.* FROM json_to_recordset(?::json) AS x(id bigint, fence bigint, state smallint, "after" bigint, progress text, finished boolean)
			JOIN forbear_deliveries d ON d.id = x.id AND d.fence = x.fence AND d.state + 0 = 1 ORDER BY x.id FOR UPDATE OF d)
		UPDATE forbear_deliveries d SET state = x.state, due = CASE WHEN x.finished THEN d.due ELSE {t} + x."after" END,
			progress = COALESCE(x.progress, d.progress), finished = CASE WHEN x.finished THEN {t} END, lease = NULL
		FROM x WHERE d.id = x.id AND d.fence = x.fence AND d.state + 0 = 1 RETURNING d.id, d.fence, COALESCE(d.letter, '')`, string(spec), after(0), after(0))
	if err != nil {
		return err
	}
	return note(found, index)
}

// attemptRow is an attempt as its row wants it.
type attemptRow struct {
	Delivery  int64   `json:"delivery"`
	Claim     int     `json:"claim"`
	N         int     `json:"n"`
	Due       int64   `json:"due"`
	At        int64   `json:"at"`
	Took      int64   `json:"took"`
	Wait      int64   `json:"wait"`
	ErrorType string  `json:"error_type"`
	Status    int     `json:"status"`
	Worker    string  `json:"worker"`
	Response  *string `json:"response"`
}

const attemptColumns = `delivery, claim, n, due, at, took, wait, error_type, status, worker, response`

// attemptGroup is the number of attempts in one statement on SQLite.
const attemptGroup = 8

var attemptsInsert = `INSERT INTO forbear_attempts (` + attemptColumns + `) VALUES ` +
	strings.TrimSuffix(strings.Repeat("("+placeholders(11)+"), ", attemptGroup), ", ") + ` ON CONFLICT DO NOTHING`

func (t *tx) recordAttempts(rows []settled) error {
	var list []attemptRow
	for i := range rows {
		r := &rows[i]
		a := r.Attempt
		if !r.ok || a == nil {
			continue
		}
		row := attemptRow{
			Delivery: r.ID, Claim: a.Claim, N: a.Number, Due: a.Due.UnixMicro(), At: a.At.UnixMicro(),
			Took: a.Took.Microseconds(), Wait: a.Wait.Microseconds(), ErrorType: a.ErrorType, Status: a.Status, Worker: a.Worker,
		}
		if a.Response != "" {
			row.Response = &a.Response
		}
		list = append(list, row)
	}
	if len(list) == 0 {
		return nil
	}
	if t.d.postgres {
		spec, err := json.Marshal(list)
		if err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO forbear_attempts (`+attemptColumns+`) SELECT `+attemptColumns+` FROM json_to_recordset(?::json)
			AS x(delivery bigint, claim int, n int, due bigint, at bigint, took bigint, wait bigint, error_type text, status int, worker text, response text) ON CONFLICT DO NOTHING`, string(spec))
		return err
	}
	for len(list) >= attemptGroup {
		args := make([]any, 0, attemptGroup*11)
		for _, a := range list[:attemptGroup] {
			args = append(args, a.Delivery, a.Claim, a.N, a.Due, a.At, a.Took, a.Wait, a.ErrorType, a.Status, a.Worker, a.Response)
		}
		if _, err := t.exec(attemptsInsert, args...); err != nil {
			return err
		}
		list = list[attemptGroup:]
	}
	for _, a := range list {
		if _, err := t.exec(`INSERT INTO forbear_attempts (`+attemptColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			a.Delivery, a.Claim, a.N, a.Due, a.At, a.Took, a.Wait, a.ErrorType, a.Status, a.Worker, a.Response); err != nil {
			return err
		}
	}
	return nil
}

// followUp does what a settled delivery entails, in the same transaction: its
// letter and alert, the redrive that it belongs to, the next of its key, whose
// lock the transaction holds.
func (s *Store) followUp(t *tx, rows []settled, letters map[int64]letterRow) error {
	var keys []ordering
	for i := range rows {
		r := &rows[i]
		if !r.ok {
			continue
		}
		var err error
		switch {
		case r.Kind == webhook.Dead:
			err = s.bury(t, r.ID, r.letter, letters[r.ID])
		case r.letter == "":
		case r.Kind == webhook.Delivered:
			err = t.endRedrive(r.letter, deadletter.OutcomeDelivered)
		case r.Kind == webhook.Retried:
			err = t.endRedrive(r.letter, deadletter.OutcomeFailing)
		}
		if err != nil {
			return err
		}
		if r.Finished && r.OrderKey != "" {
			keys = append(keys, ordering{r.Endpoint, r.OrderKey})
		}
	}
	return t.promote(keys)
}

// history returns the attempts of one delivery in their order.
func (t *tx) history(delivery int64) (list []webhook.Attempt, err error) {
	rows, err := t.query(historyQuery, delivery)
	if err != nil {
		return nil, err
	}
	return list, each(rows, func(r *sql.Rows) error {
		a, err := scanAttempt(r)
		list = append(list, a)
		return err
	})
}

const historyQuery = `SELECT claim, n, due, at, took, wait, error_type, status, worker, COALESCE(response, '') FROM forbear_attempts WHERE delivery = ? ORDER BY claim`

func scanAttempt(r *sql.Rows) (a webhook.Attempt, err error) {
	var due, began, took, wait int64
	err = r.Scan(&a.Claim, &a.Number, &due, &began, &took, &wait, &a.ErrorType, &a.Status, &a.Worker, &a.Response)
	a.Due, a.At = at(due), at(began)
	a.Took, a.Wait = time.Duration(took)*time.Microsecond, time.Duration(wait)*time.Microsecond
	return a, err
}

var stateNames = [...]string{waiting: "waiting", leased: "sending", delivered: "delivered", dead: "dead", held: "held"}

// Deliveries implements webhook.Store.
func (s *Store) Deliveries(ctx context.Context, message string) (list []webhook.Info, err error) {
	var ids []int64
	err = s.query(ctx, func(r *sql.Rows) error {
		var id, due int64
		var state int
		var progress string
		i := webhook.Info{Message: message}
		if err := r.Scan(&id, &i.Endpoint, &state, &due, &i.Claims, &progress); err != nil {
			return err
		}
		var p forbear.Progress
		if progress != "" {
			if err := json.Unmarshal([]byte(progress), &p); err != nil {
				return err
			}
		}
		i.State, i.Due, i.Postponed = stateNames[state], at(due), p.Postponed
		ids, list = append(ids, id), append(list, i)
		return nil
	}, `SELECT id, endpoint, state, due, claims, COALESCE(progress, '') FROM forbear_deliveries WHERE message_id = ? ORDER BY id`, message)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		list[i].History = []webhook.Attempt{}
		err := s.query(ctx, func(r *sql.Rows) error {
			a, err := scanAttempt(r)
			list[i].History = append(list[i].History, a)
			list[i].Attempts = max(list[i].Attempts, a.Number)
			return err
		}, historyQuery, id)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Sweep implements webhook.Store. One process does it at a time.
func (s *Store) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	return do(ctx, s, func(t *tx) (int, error) {
		if mine, err := t.tryLock(sweepLock); err != nil || !mine {
			return 0, err
		}
		type old struct {
			id, message int64
			name        string
		}
		var list []old
		rows, err := t.query(`SELECT id, message, message_id FROM forbear_deliveries WHERE finished < {now} ORDER BY finished LIMIT ?`, after(-age), limit)
		if err != nil {
			return 0, err
		}
		err = each(rows, func(r *sql.Rows) error {
			var o old
			err := r.Scan(&o.id, &o.message, &o.name)
			list = append(list, o)
			return err
		})
		if err != nil {
			return 0, err
		}
		for _, o := range list {
			for _, text := range []string{`DELETE FROM forbear_attempts WHERE delivery = ?`, `DELETE FROM forbear_deliveries WHERE id = ?`} {
				if _, err := t.exec(text, o.id); err != nil {
					return 0, err
				}
			}
			// Deliveries of one message have its id: their index is by that.
			if _, err := t.exec(`DELETE FROM forbear_messages WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM forbear_deliveries WHERE message_id = ? AND message = ?)`, o.message, o.name, o.message); err != nil {
				return 0, err
			}
		}
		return len(list), nil
	})
}
