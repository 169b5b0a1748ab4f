package durable

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// An endpoint is deleted while messages to it are on their way, and the process that was
// asked to is killed in the middle. The other ends them: each message has arrived or is
// a dead letter that says why, with its payload, and the id is free again. What was
// accepted for another endpoint meanwhile arrives.
func TestKilledWhileItDeletes(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		s := newSink(t)
		b := &slowSink{seen: map[string]string{}, deleting: make(chan struct{})}
		slow := httptest.NewServer(b)
		t.Cleanup(slow.Close)
		prepare(t, database, s.URL)
		first, second := spawn(t, database, ""), spawn(t, database, "")
		first.ready(t)
		second.ready(t)
		spec := fmt.Sprintf(`{"url":%q,"concurrency":4}`, slow.URL)
		if code := request(t, "PUT", second.addr, "/v1/endpoints/b", spec); code/100 != 2 {
			t.Fatalf("PUT: %d", code)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // both know it
			code := request(t, "POST", first.addr, "/v1/messages", `{"id":"b","endpoint":"b","payload":{"n":0}}`)
			if code == 202 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("POST: %d", code)
			}
		}
		work := produce(4, first.addr, second.addr)
		sent := map[string]string{"b": `{"n":0}`}
		for i := range 120 {
			id := fmt.Sprint("b", i)
			sent[id] = fmt.Sprintf(`{"n":%d}`, i)
			addr := []string{first.addr, second.addr}[i%2]
			if code := request(t, "POST", addr, "/v1/messages", fmt.Sprintf(`{"id":%q,"endpoint":"b","payload":%s}`, id, sent[id])); code != 202 {
				t.Fatalf("POST: %d", code)
			}
		}
		go func() {
			req, _ := http.NewRequest("DELETE", "http://"+first.addr+"/v1/endpoints/b", nil)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
		time.Sleep(5 * time.Millisecond)
		first.kill()
		close(b.deleting)
		if code := request(t, "DELETE", second.addr, "/v1/endpoints/b", ""); code/100 != 2 && code != 404 {
			t.Fatalf("DELETE: %d", code)
		}
		endLeases(t, database, first.cmd.Process.Pid)
		acked := work.end()
		s.arrive(t, acked)
		for end := time.Now().Add(time.Minute); request(t, "PUT", second.addr, "/v1/endpoints/b", spec)/100 != 2; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the endpoint's messages do not end")
			}
		}
		svc, err := New(t.Context(), Options{Database: database, Allow: thisMachine, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = svc.Close() }()
		list, err := svc.DB.DeadLetters().List(t.Context(), queue.Filter{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		both, letters := 0, map[string]bool{}
		for _, l := range list {
			letters[l.EventID] = true
			if l.Reason != "deleted" || string(l.Payload) != sent[l.EventID] {
				t.Errorf("letter of %s: reason %s, payload %s", l.EventID, l.Reason, l.Payload)
			}
			if b.seen[l.EventID] != "" {
				both++ // it was on its way
			}
		}
		for id, body := range sent {
			if got, arrived := b.seen[id]; !arrived && !letters[id] || arrived && got != body {
				t.Errorf("%s neither arrived as it was sent nor is a letter: %q", id, got)
			}
		}
		t.Logf("%d messages to the other endpoint arrived; of %d, %d arrived, %d are letters, and %d both", len(acked), len(sent), len(b.seen), len(letters), both)
		if len(letters) == 0 || both > 2*4 {
			t.Errorf("%d letters, %d of messages that arrived", len(letters), both)
		}
	})
}

// slowSink keeps what arrives, and takes a while for each: before the deletion so long
// that most of the messages are still to come, however slowly they are accepted.
type slowSink struct {
	mu       sync.Mutex
	seen     map[string]string
	deleting chan struct{}
}

func (s *slowSink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen[r.Header.Get("Webhook-Id")] = string(body)
	s.mu.Unlock()
	select {
	case <-s.deleting:
	case <-time.After(8 * time.Second):
	}
	time.Sleep(100 * time.Millisecond)
}

// request makes a call of the API and returns its status.
func request(t *testing.T, method, addr, path, body string) int {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

// endLeases ends the leases of a process that was killed, so that no test waits for
// them.
func endLeases(t *testing.T, database string, pid int) {
	t.Helper()
	driver, place := "sqlite", "file:"+database+"?_pragma=busy_timeout(30000)"
	if strings.HasPrefix(database, "postgres") {
		driver, place = "pgx", database
	}
	db, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(fmt.Sprintf(`UPDATE forbear_deliveries SET lease = 0 WHERE state = 1 AND owner LIKE '%%-%d-%%'`, pid)); err != nil {
		t.Fatal(err)
	}
}
