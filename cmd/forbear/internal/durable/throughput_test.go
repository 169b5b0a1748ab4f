package durable

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

const workers = 100

var body1K = bytes.Repeat([]byte("x"), 1024)

// bare is a loop over forbear's own tables that does nothing but the work:
// no signing, no history, no leases, no decision.
type bare struct {
	db   *sql.DB
	conn *sql.Conn
	pg   bool
}

func newBare(t *testing.T, name string) *bare {
	t.Helper()
	b := &bare{pg: strings.HasPrefix(name, "postgres")}
	driver := "sqlite"
	if b.pg {
		driver = "pgx"
	} else {
		name, _ = sqlstore.SQLiteNames(name)
	}
	var err error
	if b.db, err = sql.Open(driver, name); err == nil {
		b.conn, err = b.db.Conn(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.conn.Close(); _ = b.db.Close() })
	return b
}

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

func (b *bare) exec(t *testing.T, s string, args ...any) {
	t.Helper()
	if _, err := b.conn.ExecContext(context.Background(), b.text(s), args...); err != nil {
		t.Fatal(err)
	}
}

// insert adds n messages, per transaction as many as there are producers.
func (b *bare) insert(t *testing.T, round, n int) {
	t.Helper()
	ctx := context.Background()
	message, err := b.conn.PrepareContext(ctx, b.text(`INSERT INTO forbear_messages (id, meta, body, created) VALUES (?, ?, ?, 1) RETURNING seq`))
	if err != nil {
		t.Fatal(err)
	}
	delivery, err := b.conn.PrepareContext(ctx, b.text(`INSERT INTO forbear_deliveries (message, endpoint, state, due, start) VALUES (?, 'a', 0, 1, 1)`))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += 16 {
		b.exec(t, "BEGIN")
		for k := i; k < i+16; k++ {
			var seq int64
			if err := message.QueryRowContext(ctx, fmt.Sprintf("bare-%d-%08d", round, k), `{"id":"x"}`, body1K).Scan(&seq); err != nil {
				t.Fatal(err)
			}
			if _, err := delivery.ExecContext(ctx, seq); err != nil {
				t.Fatal(err)
			}
		}
		b.exec(t, "COMMIT")
	}
}

// deliver claims in batches, posts with the workers and marks what is done.
func (b *bare) deliver(t *testing.T, url string) (n int) {
	t.Helper()
	ctx := context.Background()
	type job struct {
		id   int64
		body []byte
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	jobs, done := make(chan job, 4*workers), make(chan int64, 4*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				resp, err := client.Post(url, "application/json", bytes.NewReader(j.body))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				done <- j.id
			}
		})
	}
	defer func() { close(jobs); wg.Wait() }()
	pick, err := b.conn.PrepareContext(ctx, `SELECT d.id, m.body FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.endpoint = 'a' AND d.state = 0 ORDER BY d.due LIMIT 200`)
	if err != nil {
		t.Fatal(err)
	}
	set, err := b.conn.PrepareContext(ctx, b.text(`UPDATE forbear_deliveries SET state = ? WHERE id = ?`))
	if err != nil {
		t.Fatal(err)
	}
	mark := func(state int, ids []int64) {
		if len(ids) == 0 {
			return
		}
		if b.pg {
			b.exec(t, `UPDATE forbear_deliveries SET state = ? WHERE id = ANY(?)`, state, ids)
			return
		}
		for _, id := range ids {
			if _, err := set.ExecContext(ctx, state, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	var finished []int64
	flight := 0
	for {
		b.exec(t, "BEGIN")
		mark(2, finished)
		n += len(finished)
		finished = finished[:0]
		var got []job
		if flight < workers {
			rows, err := pick.QueryContext(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for rows.Next() {
				var j job
				if err := rows.Scan(&j.id, &j.body); err != nil {
					t.Fatal(err)
				}
				got, ids = append(got, j), append(ids, j.id)
			}
			_ = rows.Close()
			mark(1, ids)
		}
		b.exec(t, "COMMIT")
		for _, j := range got {
			jobs <- j
		}
		if flight += len(got); flight == 0 {
			return n
		}
		finished = append(finished, <-done)
		for len(done) > 0 {
			finished = append(finished, <-done)
		}
		flight -= len(finished)
	}
}

// accept sends n messages from 16 producers, each waiting for its own.
func acceptAll(t *testing.T, s *Service, n int, notBefore time.Time) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for int(next.Add(1)) <= n {
				if _, err := s.Dispatcher.Accept(t.Context(), webhook.Message{Endpoints: []string{"a"}, Body: body1K, NotBefore: notBefore}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Throughput as a ratio of the bare loop over the same tables, in one run.
func TestSoakThroughput(t *testing.T) {
	needSoak(t)
	databases(t, func(t *testing.T, name string) {
		const n = 16 * 1250
		s := newSink(t)
		prepare(t, name, s.URL)
		ratio := func(what string, bare, ours float64) {
			t.Logf("%-10s bare %6.0f/s, forbear %6.0f/s: %.2fx", what, bare, ours, ours/bare)
			if ours < 0.7*bare {
				t.Errorf("%s: %.2fx, want at least 0.7x", what, ours/bare)
			}
		}
		var bareIn, bareOut, in, out []float64
		for round := range 3 {
			b := newBare(t, name)
			at := time.Now()
			b.insert(t, round, n)
			bareIn = append(bareIn, n/time.Since(at).Seconds())
			at = time.Now()
			if done := b.deliver(t, s.URL); done != n {
				t.Fatalf("the bare loop delivered %d of %d", done, n)
			}
			bareOut = append(bareOut, n/time.Since(at).Seconds())

			svc, err := New(t.Context(), Options{Database: name, Allow: loopback, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL, Concurrency: workers, Secrets: []string{webhook.NewSecret()}})
			at = time.Now()
			acceptAll(t, svc, n, time.Time{})
			in = append(in, n/time.Since(at).Seconds())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			at = time.Now()
			go func() { ended <- svc.Run(ctx) }()
			for svc.Dispatcher.Stats().Delivered < n {
				time.Sleep(2 * time.Millisecond)
			}
			out = append(out, n/time.Since(at).Seconds())
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			_ = svc.Close()
		}
		for _, l := range [][]float64{bareIn, bareOut, in, out} {
			slices.Sort(l)
		}
		ratio("accepted", bareIn[1], in[1])
		ratio("delivered", bareOut[1], out[1])
	})
}

// One of 100 endpoints hangs for its full timeout: the others' p99 does not
// feel it.
func TestOneHangingEndpointOfAHundred(t *testing.T) {
	p99 := func(hang bool) time.Duration {
		var mu sync.Mutex
		sent := map[string]time.Time{}
		var took []time.Duration
		release := make(chan struct{})
		s := newSink(t)
		s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if hang && r.URL.Path == "/e0" {
				select {
				case <-release:
				case <-r.Context().Done():
				}
				return
			}
			now := time.Now()
			mu.Lock()
			took = append(took, now.Sub(sent[r.Header.Get("Webhook-Id")]))
			mu.Unlock()
		})
		svc, stop := start(t, Options{Database: filepath.Join(t.TempDir(), "forbear.db")})
		for i := range 100 {
			put(t, svc, webhook.Endpoint{ID: fmt.Sprint("e", i), URL: fmt.Sprint(s.URL, "/e", i)})
		}
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := range 1500 {
			<-tick.C
			id := fmt.Sprint("m", i)
			mu.Lock()
			sent[id] = time.Now()
			mu.Unlock()
			e := fmt.Sprint("e", i%100)
			if hang && i%3 == 0 {
				e = "e0" // and it gets a third of everything
			}
			send(t, svc, webhook.Message{ID: id, Endpoints: []string{e}})
		}
		time.Sleep(500 * time.Millisecond)
		close(release)
		stop()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	healthy := min(p99(false), p99(false))
	hanging := min(p99(true), p99(true)) // the machine's own noise is not the subject
	t.Logf("p99 from accepted to received: %v healthy, %v with one endpoint hanging", healthy, hanging)
	if hanging > healthy*3/2+20*time.Millisecond {
		t.Errorf("p99 grew from %v to %v", healthy, hanging)
	}
}

// A due retry is late by at most 100 ms at p99, at half load.
func TestSoakLateness(t *testing.T) {
	needSoak(t)
	databases(t, func(t *testing.T, name string) {
		var mu sync.Mutex
		var late []time.Duration
		due := map[string]time.Time{}
		s := newSink(t)
		s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			now := time.Now()
			mu.Lock()
			late = append(late, now.Sub(due[r.Header.Get("Webhook-Id")]))
			mu.Unlock()
		})
		svc, stop := start(t, Options{Database: name})
		put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL, Concurrency: workers})
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := range 1000 {
			<-tick.C
			var batch []webhook.Message
			mu.Lock()
			for k := range 15 { // 1,500 a second
				id := fmt.Sprintf("m%d-%d", i, k)
				due[id] = time.Now().Add(time.Second)
				batch = append(batch, webhook.Message{ID: id, Endpoints: []string{"a"}, Body: body1K, NotBefore: due[id]})
			}
			mu.Unlock()
			if _, err := svc.Dispatcher.Accept(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		stop()
		slices.Sort(late)
		if len(late) != 15_000 {
			t.Fatalf("%d arrived", len(late))
		}
		t.Logf("late by %v at p50, %v at p99, %v at most; the earliest by %v", late[7500], late[14850], late[14999], late[0])
		if late[14850] > 100*time.Millisecond || late[0] < 0 {
			t.Errorf("late by %v at p99, %v at best", late[14850], late[0])
		}
	})
}
