package sqlstore

import (
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

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
