// Package steps holds turns of several operations.
package steps

import (
	"database/sql"
	"log"
	"net/http"
	"time"
)

type page struct{ version string }

func read(url string) (*page, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	return &page{resp.Header.Get("ETag")}, resp.Body.Close()
}

func (p *page) write() error {
	resp, err := http.Get(p.version)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// paused: the pause lies between two steps of a turn, and after no failure.
func paused(url string, pause time.Duration) error {
	var err error
	for retries := range 3 {
		var p *page
		if p, err = read(url); err != nil {
			log.Print(retries)
			continue
		}
		time.Sleep(pause)
		if err = p.write(); err == nil {
			return nil
		}
	}
	return err
}

// failed: each failure leads to the pause.
func failed(url string, pause time.Duration) (err error) {
	for retries := range 3 { // want `FB1001: retries steps.read, others on failure and waits pause every time`
		if retries > 0 {
			time.Sleep(pause)
		}
		var p *page
		if p, err = read(url); err != nil {
			continue
		}
		if err = p.write(); err == nil {
			return nil
		}
	}
	return err
}

// scanned: a row hands on the failure of its query.
func scanned(db *sql.DB) (n int, err error) {
	for range 3 { // want `FB1001: retries sql.Row.Scan on failure and waits 1s every time`
		if err = db.QueryRow("SELECT 1").Scan(&n); err == nil {
			return n, nil
		}
		time.Sleep(time.Second)
	}
	return 0, err
}

// each scans rows, and goes on with the next: the query was one.
func each(rows *sql.Rows) {
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
			continue
		}
		log.Print(n)
	}
}
