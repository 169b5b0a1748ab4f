package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

const (
	senders   = 100 // attempts in flight
	producers = 16
)

var body = bytes.Repeat([]byte("x"), 1024)

// bare is a loop over forbear's own tables that does nothing but the work: no
// signing, no history, no leases, no decision. It has one connection and
// prepared statements, and one transaction for as many writes as are at hand.
type bare struct {
	db   *sql.DB
	conn *sql.Conn
	pg   bool
}

func bareTask(ctx context.Context, t task) (r report, err error) {
	s, err := openStore(ctx, t.Database) // for the tables
	if err != nil {
		return r, err
	}
	if err := s.close(); err != nil {
		return r, err
	}
	b, err := newBare(ctx, t.Database)
	if err != nil {
		return r, err
	}
	defer b.close()
	m, err := newMeter("")
	if err != nil {
		return r, err
	}
	if err := b.insert(ctx, t.Messages); err != nil {
		return r, err
	}
	r.Accepted, _ = m.read(t.Messages)
	if m, err = newMeter(t.Profile); err != nil {
		return r, err
	}
	n, err := b.deliver(ctx, t.Sink)
	r.Delivered, r.CPU = m.read(n)
	if err == nil && n != t.Messages {
		err = fmt.Errorf("delivered %d of %d", n, t.Messages)
	}
	return r, err
}

func newBare(ctx context.Context, name string) (*bare, error) {
	b := &bare{pg: isPostgres(name)}
	driver := "sqlite"
	if b.pg {
		driver = "pgx"
	} else {
		name, _ = sqlstore.SQLiteNames(name)
	}
	var err error
	if b.db, err = sql.Open(driver, name); err != nil {
		return nil, err
	}
	b.conn, err = b.db.Conn(ctx)
	return b, err
}

func (b *bare) close() { _ = b.conn.Close(); _ = b.db.Close() }

// text turns ? into $1 for PostgreSQL.
func (b *bare) text(s string) string {
	if !b.pg {
		return s
	}
	for n := 1; strings.Contains(s, "?"); n++ {
		s = strings.Replace(s, "?", fmt.Sprint("$", n), 1)
	}
	return s
}

func (b *bare) exec(ctx context.Context, s string, args ...any) error {
	_, err := b.conn.ExecContext(ctx, b.text(s), args...)
	return err
}

// insert adds n messages, in a transaction as many as there are producers.
func (b *bare) insert(ctx context.Context, n int) error {
	message, err := b.conn.PrepareContext(ctx, b.text(`INSERT INTO forbear_messages (meta, body, created) VALUES (?, ?, 1) RETURNING seq`))
	if err != nil {
		return err
	}
	delivery, err := b.conn.PrepareContext(ctx, b.text(`INSERT INTO forbear_deliveries (message, message_id, endpoint, state, due, start) VALUES (?, ?, 'a', 0, 1, 1)`))
	if err != nil {
		return err
	}
	for i := 0; i < n; i += producers {
		if err := b.exec(ctx, "BEGIN"); err != nil {
			return err
		}
		for k := i; k < min(i+producers, n); k++ {
			var seq int64
			if err := message.QueryRowContext(ctx, `{"id":"x"}`, body).Scan(&seq); err != nil {
				return err
			}
			if _, err := delivery.ExecContext(ctx, seq, fmt.Sprintf("bare-%08d", k)); err != nil {
				return err
			}
		}
		if err := b.exec(ctx, "COMMIT"); err != nil {
			return err
		}
	}
	return nil
}

type bareJob struct {
	id   int64
	body []byte
}

// deliver claims in batches, posts with the senders and marks what is done,
// until nothing is left.
func (b *bare) deliver(ctx context.Context, url string) (n int, err error) {
	jobs, done := make(chan bareJob, 4*senders), make(chan int64, 4*senders)
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	for range senders {
		wg.Go(func() { post(client, url, jobs, done) })
	}
	defer func() { close(jobs); wg.Wait() }()
	claim, mark, err := b.statements(ctx)
	if err != nil {
		return 0, err
	}
	var finished []int64
	for flight := 0; ; {
		if err := b.exec(ctx, "BEGIN"); err != nil {
			return n, err
		}
		if err := mark(2, finished); err != nil {
			return n, err
		}
		n += len(finished)
		finished = finished[:0]
		var got []bareJob
		if flight < senders {
			if got, err = claim(); err != nil {
				return n, err
			}
		}
		if err := b.exec(ctx, "COMMIT"); err != nil {
			return n, err
		}
		for _, j := range got {
			jobs <- j
		}
		if flight += len(got); flight == 0 {
			return n, nil
		}
		finished = append(finished, <-done)
		for len(done) > 0 {
			finished = append(finished, <-done)
		}
		flight -= len(finished)
	}
}

func post(client *http.Client, url string, jobs <-chan bareJob, done chan<- int64) {
	for j := range jobs {
		resp, err := client.Post(url, "application/json", bytes.NewReader(j.body))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		done <- j.id
	}
}

// statements returns what takes 200 rows and what sets the state of rows.
func (b *bare) statements(ctx context.Context) (claim func() ([]bareJob, error), mark func(int, []int64) error, err error) {
	pick, err := b.conn.PrepareContext(ctx, `SELECT d.id, m.body FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.endpoint = 'a' AND d.state = 0 ORDER BY d.due LIMIT 200`)
	if err != nil {
		return nil, nil, err
	}
	set, err := b.conn.PrepareContext(ctx, b.text(`UPDATE forbear_deliveries SET state = ? WHERE id = ?`))
	if err != nil {
		return nil, nil, err
	}
	mark = func(state int, ids []int64) error {
		if b.pg && len(ids) > 0 {
			return b.exec(ctx, `UPDATE forbear_deliveries SET state = ? WHERE id = ANY(?)`, state, ids)
		}
		for _, id := range ids {
			if _, err := set.ExecContext(ctx, state, id); err != nil {
				return err
			}
		}
		return nil
	}
	claim = func() (got []bareJob, err error) {
		rows, err := pick.QueryContext(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = rows.Close() }()
		var ids []int64
		for rows.Next() {
			var j bareJob
			if err := rows.Scan(&j.id, &j.body); err != nil {
				return nil, err
			}
			got, ids = append(got, j), append(ids, j.id)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
		return got, mark(1, ids)
	}
	return claim, mark, nil
}
