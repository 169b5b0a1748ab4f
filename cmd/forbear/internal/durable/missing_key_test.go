package durable

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// logged is a log that a test reads while it is written.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logged) lines(with string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, with) {
			list = append(list, line)
		}
	}
	return list
}

// startUnder starts a service with keys. It notices messages of others by its polls.
func startUnder(t *testing.T, database string, log *logged, keys ...sqlstore.Key) (*Service, func()) {
	t.Helper()
	return startAgo(t, database, log, 0, keys...)
}

// startAgo is startUnder for a process that is some time ago by its clock.
func startAgo(t *testing.T, database string, log *logged, ago time.Duration, keys ...sqlstore.Key) (*Service, func()) {
	t.Helper()
	c, err := sqlstore.NewCipher(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, Options{Database: database, Poll: 40 * time.Millisecond, Cipher: c, Logger: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return time.Now().Add(-ago) }})
}

func execute(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(text, args...)); err != nil {
		t.Fatal(err)
	}
}

func numberOf(t *testing.T, db *sql.DB, text string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), fmt.Sprintf(text, args...)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Messages that no key of a process opens wait: without an attempt, without a letter, and
// in no other's way. With the key they arrive, and those whose time is over are letters.
func TestMessagesOfAMissingKeyWait(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "TestEndpointsOfAMissingKey lacks one, too")
	databases(t, func(t *testing.T, database string) {
		sink, log, db := newFlaky(t), &logged{}, outside(t, database)
		known, missing := sqlstore.NewKey("0ld0ld01"), sqlstore.NewKey("ne1ne1e1")
		const n = 130 // more than two claims of a lane
		offer := func(s *Service, kind, endpoint, key string, n int) {
			t.Helper()
			list := make([]webhook.Message, n)
			for i := range list {
				id := fmt.Sprintf("%s-%d", kind, i)
				list[i] = webhook.Message{ID: id, Endpoints: []string{endpoint}, Key: key, Type: "t." + kind, Body: []byte(planted(id))}
			}
			if _, err := s.Dispatcher.Accept(t.Context(), list...); err != nil {
				t.Fatal(err)
			}
		}
		s, stop := startUnder(t, database, log, known)
		s.Dispatcher.Pause() // it accepts, and so do those that follow
		for _, id := range []string{"a", "b", "ordered", "gone", "off"} {
			put(t, s, webhook.Endpoint{ID: id, URL: sink.URL, Ordered: id == "ordered"})
		}
		for _, id := range []string{"gone", "off"} {
			if err := s.Dispatcher.Disable(t.Context(), id, "test"); err != nil {
				t.Fatal(err)
			}
		}
		offer(s, "goneknown", "gone", "", 2)
		stop()
		const old = 25 * time.Hour
		s, stop = startAgo(t, database, log, old, missing, known)
		s.Dispatcher.Pause()
		offer(s, "waits", "a", "", n)
		offer(s, "first", "ordered", "k", 1)
		offer(s, "gone", "gone", "", 40)
		offer(s, "late", "off", "", n)
		stop()
		s, stop = startAgo(t, database, &logged{}, old, known)
		s.Dispatcher.Pause() // what it looked at before that was a day ago
		offer(s, "lateknown", "off", "", 1)
		stop()

		// All of them are due, and some have been for longer than they may.
		now := time.Now().UnixMicro()
		execute(t, db, `UPDATE forbear_deliveries SET due = %d, start = %d`, now, now)
		execute(t, db, `UPDATE forbear_deliveries SET start = %d WHERE message_id LIKE 'late%%'`, now-old.Microseconds())
		s, stop = startUnder(t, database, log, known)
		waiting := func() int {
			return numberOf(t, db, `SELECT count(*) FROM forbear_deliveries WHERE state = 0 AND due > %d`, now+(50*time.Second).Microseconds())
		}
		waitFor(t, "them to be put off", func() bool { return waiting() == 2*n+1 })
		unreadable := func(s *Service) (n int) {
			t.Helper()
			n, err := s.DB.Webhooks().Unreadable(t.Context(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		waitFor(t, "them to be counted", func() bool { return unreadable(s) == 2*n+1 })
		if stats, err := s.DB.Webhooks().EndpointStats(t.Context(), []string{"a", "b"}, 1000); err != nil || stats[0].Unreadable != n || stats[1].Unreadable != 0 {
			t.Errorf("the statistics are %+v, %v", stats, err)
		}
		if got, err := s.DB.Webhooks().Unreadable(t.Context(), 5); got != 5 || err != nil {
			t.Errorf("%d of 5 are counted, %v", got, err)
		}
		offer(s, "neighbor", "a", "", n)
		offer(s, "other", "b", "", n)
		offer(s, "behind", "ordered", "k", 1)
		offer(s, "beside", "ordered", "j", 1)
		for kind, n := range map[string]int{"neighbor": n, "other": n, "beside": 1} {
			waitFor(t, kind, func() bool { return sink.arrived(kind, n) })
		}
		if err := s.Dispatcher.DeleteEndpoint(t.Context(), "gone", 0); err != nil {
			t.Fatal(err)
		}
		reasons := map[string]int{}
		count := func(s *Service, n int) {
			t.Helper()
			var list []deadletter.Letter
			waitFor(t, "the letters", func() (ok bool) {
				var err error
				if list, err = s.DB.DeadLetters().List(t.Context(), queue.Filter{Limit: 1000}); err != nil {
					t.Fatal(err)
				}
				return len(list) >= n
			})
			clear(reasons)
			for _, l := range list {
				if reasons[l.Reason]++; string(l.Payload) != planted(l.EventID) {
					t.Errorf("the letter of %s has %q", l.EventID, l.Payload)
				}
			}
		}
		if count(s, 3); reasons[deadletter.ReasonDeleted] != 2 || reasons["deadline"] != 1 || len(reasons) != 2 {
			t.Errorf("without the key the letters are %v", reasons)
		}
		if got := numberOf(t, db, `SELECT count(*) FROM forbear_attempts a JOIN forbear_deliveries d ON d.id = a.delivery WHERE d.message_id LIKE 'waits%%' OR d.message_id LIKE 'late%%' OR d.message_id LIKE 'first%%'`); got != 0 {
			t.Errorf("%d attempts of what cannot be read", got)
		}
		if sink.arrived("behind", 1) {
			t.Error("one went before the first of its key")
		}
		waitFor(t, "those to the deleted endpoint to be counted", func() bool { return unreadable(s) > 2*n+1 })
		lines := log.lines("message cannot be read")
		if len(lines) == 0 || len(lines) > 4 {
			t.Errorf("%d lines of %d messages", len(lines), 2*n)
		}
		for _, line := range lines {
			if !strings.Contains(line, "ne1ne1e1") || !strings.Contains(line, "endpoint=") || !strings.Contains(line, "message=") || strings.Contains(line, "planted") {
				t.Errorf("the log says %s", line)
			}
		}
		alerts, err := s.DB.DeadLetters().AlertPage(t.Context(), 0, 100)
		raised := 0
		for _, a := range alerts {
			if a.Reason == "unreadable" && a.Last.UnixMicro() >= now {
				raised += int(a.Count)
			}
		}
		if err != nil || raised < 1 || raised > 4 { // of each endpoint one
			t.Errorf("%d alerts, %v: %+v", raised, err, alerts)
		}
		stop()

		execute(t, db, `UPDATE forbear_deliveries SET due = %d WHERE state = 0`, now)
		s, stop = startUnder(t, database, log, known, missing)
		for kind, n := range map[string]int{"waits": n, "first": 1, "behind": 1} {
			waitFor(t, kind, func() bool { return sink.arrived(kind, n) })
		}
		if count(s, n+3+40); reasons[deadletter.ReasonDeleted] != 2+40 || reasons["deadline"] != n+1 || len(reasons) != 2 {
			t.Errorf("with the key the letters are %v", reasons)
		}
		if got := unreadable(s); got != 0 {
			t.Errorf("with the key %d cannot be read", got)
		}
		stop()
	})
}

// An endpoint whose configuration no key of a process opens keeps that from learning of no
// other change. It keeps its lane there, what is for one without a lane is refused for now,
// and rows of the outbox wait; a process with the key delivers them. Without the key none
// is started.
func TestEndpointsOfAMissingKey(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		sink, log, db := newFlaky(t), &logged{}, outside(t, database)
		known, missing := sqlstore.NewKey("0ld0ld01"), sqlstore.NewKey("ne1ne1e1")
		s, stop := startUnder(t, database, log, known)
		for _, id := range []string{"acme", "other"} {
			if _, err := s.Dispatcher.PutApplication(t.Context(), webhook.Application{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		put(t, s, webhook.Endpoint{ID: "kept", URL: sink.URL, Application: "acme", Types: []string{"a.*"}})
		put(t, s, webhook.Endpoint{ID: "o", URL: sink.URL, Application: "other"})
		offer := func(id, endpoint, application, kind string) error {
			m := webhook.Message{ID: id + "-1", Application: application, Type: kind, Body: []byte(planted(id + "-1"))}
			if endpoint != "" {
				m.Endpoints = []string{endpoint}
			}
			_, err := s.Dispatcher.Accept(t.Context(), m)
			return err
		}
		has := func(id string) func() bool {
			return func() bool {
				sink.mu.Lock()
				defer sink.mu.Unlock()
				return sink.seen[id+"-1"] == planted(id+"-1")
			}
		}

		rotated, end := startUnder(t, database, log, missing, known)
		put(t, rotated, webhook.Endpoint{ID: "kept", URL: sink.URL, Application: "acme", Types: []string{"b.*"}})
		put(t, rotated, webhook.Endpoint{ID: "alone", URL: sink.URL})
		if err := rotated.Dispatcher.Disable(t.Context(), "o", "test"); err != nil {
			t.Fatal(err)
		}
		end()
		// It learns of what it can read, and of the state of the rest.
		waitFor(t, "the other endpoint's state", func() bool {
			e, err := s.Dispatcher.Endpoint(t.Context(), "o")
			return err == nil && e.State == webhook.Disabled && len(log.lines("stored endpoint cannot be used")) == 2
		})
		for id, err := range map[string]error{"kept": offer("kept", "kept", "", ""), "o": offer("o", "", "other", "a.x")} {
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		waitFor(t, "kept", has("kept"))
		if err := s.Dispatcher.SetState(t.Context(), "o", webhook.Enabled, webhook.ByOperator, ""); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "o", has("o"))
		for id, err := range map[string]error{"alone": offer("alone", "alone", "", ""), "acme": offer("acme", "", "acme", "b.x"), "was": offer("was", "", "acme", "a.x")} {
			if !errors.Is(err, webhook.ErrUnreadable) || !errors.Is(err, sqlstore.ErrKey) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if status, _ := call(t, s, "POST", "/v1/messages", `{"endpoint":"alone","payload":1}`); status != 503 {
			t.Errorf("the API says %d", status)
		}
		row := `INSERT INTO forbear_outbox (message_id, endpoint, application, type, body) VALUES ('%s-1', '%s', '%s', '%s', '%s')`
		for _, r := range [][4]string{{"rowalone", "alone", "", ""}, {"rowacme", "", "acme", "b.x"}, {"rowother", "", "other", "a.x"}, {"rowkept", "kept", "", ""}} {
			execute(t, db, row, r[0], r[1], r[2], r[3], planted(r[0]+"-1"))
		}
		waitFor(t, "rowother", has("rowother"))
		waitFor(t, "rowkept", has("rowkept"))
		if n := numberOf(t, db, `SELECT count(*) FROM forbear_outbox`); n != 2 {
			t.Errorf("%d rows wait in the outbox, want 2", n)
		}
		if list, err := s.DB.DeadLetters().List(t.Context(), queue.Filter{}); err != nil || len(list) != 0 {
			t.Errorf("letters: %+v, %v", list, err)
		}
		stop()

		for name, keys := range map[string][]sqlstore.Key{"the former key": {known}, "another": {sqlstore.NewKey("0ther001")}} {
			c, err := sqlstore.NewCipher(keys...)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := New(t.Context(), Options{Database: database, Cipher: c, Logger: quiet}); !errors.Is(err, sqlstore.ErrKey) || !strings.Contains(err.Error(), "endpoint") {
				t.Errorf("started with %s: %v, %v", name, s, err)
			}
		}
		if _, err := New(t.Context(), Options{Database: database, Logger: quiet}); !errors.Is(err, sqlstore.ErrKey) || !strings.Contains(err.Error(), "0ld0ld01") && !strings.Contains(err.Error(), "ne1ne1e1") {
			t.Errorf("started without a key: %v", err)
		}
		s, stop = startUnder(t, database, log, missing, known)
		for _, id := range []string{"rowalone", "rowacme"} {
			waitFor(t, id, has(id))
		}
		if err := offer("alone", "alone", "", ""); err != nil {
			t.Errorf("with the key: %v", err)
		}
		waitFor(t, "alone", has("alone"))
		stop()
	})
}
