package sqlstore

import (
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter"
)

// The history of a delivery is a table of its own: claims and write-backs change
// a row of a few bytes, however long the history grows, and attempts are only
// added.

// attemptRow is an attempt as its row wants it. Times are microseconds.
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
	Cause     *string `json:"cause"`
}

// attemptCause is what an attempt says of its failure beyond the error_type. It is
// one column: no statement looks into it.
type attemptCause struct {
	Class string   `json:"class,omitempty"`
	Error string   `json:"error,omitempty"`
	Chain []string `json:"chain,omitempty"`
}

// attemptColumns are named as the JSON of an attemptRow is. A claim has one attempt at most,
// so that a write-back that is repeated adds nothing.
const attemptColumns = `delivery, claim, n, due, at, took, wait, error_type, status, worker, response, cause`

// newAttemptRow makes the row of an attempt that was written back under a good lease.
func (db *DB) newAttemptRow(delivery int64, a *deadletter.Attempt) (attemptRow, error) {
	row := attemptRow{
		Delivery: delivery, Claim: a.Claim, N: a.Number, Due: a.Due.UnixMicro(), At: a.At.UnixMicro(),
		Took: a.Took.Microseconds(), Wait: a.Wait.Microseconds(), ErrorType: a.ErrorType, Status: a.Status, Worker: a.Worker,
	}
	return row, db.sealAttempt(&row, a)
}

// sealAttempt fills in what an attempt quotes, which may be the payload. What is
// empty is NULL: most attempts succeed and keep nothing.
func (db *DB) sealAttempt(row *attemptRow, a *deadletter.Attempt) error {
	if response := a.Response; response != "" {
		// No receiver's text must look as if it were sealed.
		if strings.HasPrefix(response, sealedText) {
			response = " " + response
		}
		text, err := db.sealText(attemptCell("response", row.Delivery, a.Claim), []byte(response))
		if err != nil {
			return err
		}
		row.Response = &text
	}
	if a.Error == "" {
		return nil
	}
	plain, err := json.Marshal(attemptCause{a.Class, a.Error, a.Chain})
	if err != nil {
		return err
	}
	text, err := db.sealText(attemptCell("cause", row.Delivery, a.Claim), plain)
	row.Cause = &text
	return err
}

// historyQuery reads in the order of claims, which is that of time: a claim has
// one attempt at most.
const historyQuery = `SELECT claim, n, due, at, took, wait, error_type, status, worker, COALESCE(response, ''), COALESCE(cause, '') FROM forbear_attempts WHERE delivery = ? ORDER BY claim`

// attemptCell is where something sealed of an attempt belongs.
func attemptCell(column string, delivery int64, claim int) cell {
	return place("attempts."+column, strconv.FormatInt(delivery, 10), strconv.Itoa(claim))
}

// scanAttempts returns what scans the attempts of a delivery.
func (db *DB) scanAttempts(delivery int64) func(*sql.Rows) (deadletter.Attempt, error) {
	return func(r *sql.Rows) (deadletter.Attempt, error) { return db.scanAttempt(delivery, r) }
}

// scanAttempt is the inverse of an attemptRow. What it quotes may be encrypted under a
// key that is missing. The attempt says so then, and that is no error: the letter of its
// delivery must be written.
func (db *DB) scanAttempt(delivery int64, r *sql.Rows) (a deadletter.Attempt, err error) {
	var due, began, took, wait int64
	var response, cause string
	err = r.Scan(&a.Claim, &a.Number, &due, &began, &took, &wait, &a.ErrorType, &a.Status, &a.Worker, &response, &cause)
	if err != nil {
		return a, err
	}
	a.Due, a.At = at(due), at(began)
	a.Took, a.Wait = time.Duration(took)*time.Microsecond, time.Duration(wait)*time.Microsecond
	if err := db.openAttempt(delivery, &a, response, cause); err != nil {
		a.Error = "its record cannot be read: " + err.Error()
	}
	return a, nil
}

// openAttempt is the inverse of sealAttempt.
func (db *DB) openAttempt(delivery int64, a *deadletter.Attempt, response, cause string) error {
	plain, err := db.unsealText(attemptCell("response", delivery, a.Claim), response)
	if err != nil {
		return err
	}
	a.Response = string(plain)
	if plain, err = db.unsealText(attemptCell("cause", delivery, a.Claim), cause); err != nil || len(plain) == 0 {
		return err
	}
	var c attemptCause
	err = json.Unmarshal(plain, &c)
	a.Class, a.Error, a.Chain = c.Class, c.Error, c.Chain
	return err
}
