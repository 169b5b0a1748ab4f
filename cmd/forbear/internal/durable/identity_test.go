package durable

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// One rule for the outbox and the API: endpoint and id name a message, the same
// content again is a duplicate, other content is refused, and each endpoint
// gets its own.
func TestOneRuleForOutboxAndAPI(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		s := newBodiesSink(t)
		svc, stop := start(t, Options{Database: database, Poll: 40 * time.Millisecond})
		for _, id := range []string{"cust_a", "cust_b", "cust_c"} {
			put(t, svc, webhook.Endpoint{ID: id, URL: s.URL + "/" + id})
		}
		db := outside(t, database)
		for i, step := range []struct {
			how, id, endpoints, payload string
			status                      int
			duplicate                   bool
			letters                     int // dead from this step on
		}{
			// What a shop does: one id for the same order of two customers.
			{"outbox", "order-1", "cust_a", `"for a"`, 0, false, 0},
			{"outbox", "order-1", "cust_b", `"for b"`, 0, false, 0},
			{"post", "order-1", "cust_a", `"for a"`, 200, true, 0},
			{"post", "order-1", "cust_a", `"for b"`, 409, false, 0},
			{"outbox", "order-1", "cust_a", `"for a"`, 0, false, 0},
			{"outbox", "order-1", "cust_a", `"for b"`, 0, false, 1},
			{"post", "order-1", "cust_c", `"for c"`, 202, false, 1},
			{"outbox", "order-1", "cust_c", `"another"`, 0, false, 2},
			// Several endpoints at once: all or nothing.
			{"post", "order-2", "cust_a,cust_b", `"both"`, 202, false, 2},
			{"post", "order-2", "cust_b,cust_c", `"both"`, 202, false, 2},
			{"post", "order-2", "cust_a,cust_b,cust_c", `"both"`, 200, true, 2},
			{"post", "order-3", "cust_c", `"one"`, 202, false, 2},
			{"post", "order-3", "cust_a,cust_c", `"two"`, 409, false, 2},
			{"post", "order-3", "cust_a", `"three"`, 202, false, 2},
			// The Idempotency-Key is the id of a message without one.
			{"key", "order-4", "cust_a", `"four"`, 202, false, 2},
			{"key", "order-4", "cust_a", `"four"`, 200, true, 2},
			{"key", "order-4", "cust_a", `"five"`, 409, false, 2},
			{"key", "order-4", "cust_b", `"six"`, 202, false, 2},
		} {
			name := fmt.Sprintf("step %d, %s %s to %s", i, step.how, step.id, step.endpoints)
			var code int
			var v map[string]any
			switch step.how {
			case "outbox":
				if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, content_type, body) VALUES ('`+step.id+`', '`+step.endpoints+`', 'application/json', '`+step.payload+`')`); err != nil {
					t.Fatal(err)
				}
				waitFor(t, "the outbox", func() bool {
					var n int
					return db.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_outbox`).Scan(&n) == nil && n == 0
				})
			case "post":
				code, v = call(t, svc, "POST", "/v1/messages", fmt.Sprintf(`{"id":%q,"endpoints":["%s"],"payload":%s}`, step.id, strings.ReplaceAll(step.endpoints, ",", `","`), step.payload))
			case "key":
				code, v = call(t, svc, "POST", "/v1/messages", fmt.Sprintf(`{"endpoint":%q,"payload":%s}`, step.endpoints, step.payload), "Idempotency-Key", step.id)
			}
			if dup, _ := v["duplicate"].(bool); code != step.status || dup != step.duplicate {
				t.Errorf("%s: %d %v", name, code, v)
			}
			if code == http.StatusConflict && (v["type"] != "urn:forbear:problem:message-conflict" || !strings.Contains(fmt.Sprint(v["detail"]), step.id)) {
				t.Errorf("%s: the problem is %v", name, v)
			}
			if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{Reason: deadletter.ReasonConflict}); n != step.letters || err != nil {
				t.Errorf("%s: %d letters, %v; want %d", name, n, err, step.letters)
			}
		}
		want := map[string]string{
			"cust_a order-1": `"for a"`, "cust_b order-1": `"for b"`, "cust_c order-1": `"for c"`,
			"cust_a order-2": `"both"`, "cust_b order-2": `"both"`, "cust_c order-2": `"both"`,
			"cust_c order-3": `"one"`, "cust_a order-3": `"three"`, "cust_a order-4": `"four"`, "cust_b order-4": `"six"`,
		}
		waitFor(t, "all deliveries", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.seen) >= len(want)
		})
		time.Sleep(200 * time.Millisecond) // for what must not come
		s.mu.Lock()
		if fmt.Sprint(s.seen) != fmt.Sprint(want) {
			t.Errorf("arrived:\n%v\nwant:\n%v", s.seen, want)
		}
		s.mu.Unlock()
		// Listed by the id, each endpoint's by itself; the letters are those of
		// cust_a and cust_c, with the payload that was refused.
		_, v := call(t, svc, "GET", "/v1/messages/order-1", "")
		if list, _ := v["deliveries"].([]any); len(list) != 3 {
			t.Errorf("order-1 is listed as %v", v)
		}
		letters, err := svc.DB.DeadLetters().List(t.Context(), queue.Filter{EventID: "order-1"})
		if err != nil || len(letters) != 2 || letters[0].Destination != "cust_a" || string(letters[0].Payload) != `"for b"` || letters[1].Destination != "cust_c" || string(letters[1].Payload) != `"another"` {
			t.Errorf("letters are %+v, %v", letters, err)
		}
		stop()
	})
}
