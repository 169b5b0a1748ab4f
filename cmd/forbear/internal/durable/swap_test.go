package durable

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// Who can write rows, and has no key, cannot have one message shown in the place of
// another, nor, once all was found encrypted, a text of his own.
func TestSealedRowsCannotBeMoved(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		key := sqlstore.NewKey("01ab23cd")
		s, stop := startUnder(t, database, &logged{}, key)
		defer stop()
		rows := outside(t, database)
		numbers := map[string]int64{}
		for _, id := range []string{"mine", "theirs"} {
			put(t, s, webhook.Endpoint{ID: "to-" + id, URL: "https://example.com/"})
			if status, v := call(t, s, "POST", "/v1/messages", `{"id":"`+id+`","endpoint":"to-`+id+`","type":"t","payload":"of `+id+`","not_before":"2099-01-01T00:00:00Z"}`); status != 202 {
				t.Fatalf("%s: %d %v", id, status, v)
			}
			var n int64
			if err := rows.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT message FROM forbear_deliveries WHERE message_id = '%s'`, id)).Scan(&n); err != nil {
				t.Fatal(err)
			}
			numbers[id] = n
		}
		shown := func() (payload, unreadable string) {
			t.Helper()
			status, v := call(t, s, "GET", "/v1/messages/mine?reveal=true", "")
			if status != 200 {
				t.Fatalf("%d %v", status, v)
			}
			c := v["contents"].([]any)[0].(map[string]any)
			text, _ := c["payload_base64"].(string)
			plain, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			unreadable, _ = c["unreadable"].(string)
			return string(plain), unreadable
		}
		if payload, why := shown(); payload != `"of mine"` || why != "" {
			t.Fatalf("got %q, %s", payload, why)
		}
		exec := func(text string) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // SQLite may be busy
				_, err := rows.ExecContext(t.Context(), text)
				if err == nil {
					return
				}
				if time.Now().After(end) {
					t.Fatal(err)
				}
			}
		}
		// A column of another row, all of them, and another row in its place.
		mine, theirs := numbers["mine"], numbers["theirs"]
		exec(`CREATE TABLE kept AS SELECT seq, meta, body, created FROM forbear_messages`)
		restore := func() {
			exec(`UPDATE forbear_messages SET meta = (SELECT k.meta FROM kept k WHERE k.seq = forbear_messages.seq), body = (SELECT k.body FROM kept k WHERE k.seq = forbear_messages.seq), created = (SELECT k.created FROM kept k WHERE k.seq = forbear_messages.seq)`)
			exec(fmt.Sprintf(`UPDATE forbear_deliveries SET message = %d WHERE message_id = 'mine'`, mine))
			if payload, why := shown(); payload != `"of mine"` || why != "" {
				t.Errorf("put back: %q, %s", payload, why)
			}
		}
		for name, text := range map[string]string{
			"body":     `UPDATE forbear_messages SET body = (SELECT k.body FROM kept k WHERE k.seq = %[2]d) WHERE seq = %[1]d`,
			"envelope": `UPDATE forbear_messages SET meta = (SELECT k.meta FROM kept k WHERE k.seq = %[2]d) WHERE seq = %[1]d`,
			"all": `UPDATE forbear_messages SET body = (SELECT k.body FROM kept k WHERE k.seq = %[2]d), meta = (SELECT k.meta FROM kept k WHERE k.seq = %[2]d),
				created = (SELECT k.created FROM kept k WHERE k.seq = %[2]d) WHERE seq = %[1]d`,
			"row": `UPDATE forbear_deliveries SET message = %[2]d WHERE message = %[1]d AND message_id = 'mine'`,
		} {
			exec(fmt.Sprintf(text, mine, theirs))
			if payload, why := shown(); strings.Contains(payload, "theirs") || !strings.Contains(why, "moved here") {
				t.Errorf("%s: the payload is %q, unreadable %q", name, payload, why)
			}
			restore()
		}

		text := fmt.Sprintf("X'%x'", `"in the clear"`)
		if strings.HasPrefix(database, "postgres") {
			text = fmt.Sprintf(`'\x%x'::bytea`, `"in the clear"`)
		}
		plain := fmt.Sprintf(`UPDATE forbear_messages SET body = %s WHERE seq = %d`, text, mine)
		exec(plain)
		if payload, why := shown(); payload != `"in the clear"` || why != "" { // it may be of before encryption
			t.Errorf("before all was sealed: %q, %s", payload, why)
		}
		// Another process encrypts what is left, and this one learns of it.
		other, stopOther := startUnder(t, database, &logged{}, key)
		defer stopOther()
		if n, err := other.DB.Reencrypt(context.WithoutCancel(t.Context()), func(string, int64, int64) {}); n != 1 || err != nil || !other.DB.AllSealed() {
			t.Fatalf("%d rows, %v, all sealed %v", n, err, other.DB.AllSealed())
		}
		if _, err := s.DB.Webhooks().Heartbeat(t.Context(), "me", time.Minute); err != nil || !s.DB.AllSealed() {
			t.Fatalf("%v, all sealed %v", err, s.DB.AllSealed())
		}
		third, stopThird := startUnder(t, database, &logged{}, key)
		defer stopThird()
		if !third.DB.AllSealed() {
			t.Error("a process that starts does not know that all is sealed")
		}
		if payload, why := shown(); payload != `"in the clear"` || why != "" {
			t.Errorf("what was taken up is %q, %s", payload, why)
		}
		exec(plain)
		if payload, why := shown(); payload != "" || !strings.Contains(why, "not encrypted for its row") {
			t.Errorf("in the clear: %q, %s", payload, why)
		}
	})
}
