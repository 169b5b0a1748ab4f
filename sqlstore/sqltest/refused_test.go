package sqltest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// A row of the outbox that is too large to be encrypted at once is cut, and nothing of it
// stays in the clear. Where nothing is encrypted it is kept whole.
func TestRefusedRowIsCut(t *testing.T) {
	t.Parallel()
	const size = 33 << 20
	eachDatabase(t, func(t *testing.T, place string) {
		relay := func(db *sqlstore.DB) deadletter.Letter {
			t.Helper()
			const text = `INSERT INTO forbear_outbox (message_id, endpoint, headers, body) VALUES ('large', 'a', 'planted, too', $1)`
			if _, err := outside(t, place).ExecContext(t.Context(), text, bytes.Repeat([]byte("planted "), size/8)); err != nil {
				t.Fatal(err)
			}
			done, err := db.Webhooks().Relay(t.Context(), 10, func(m *webhook.Message) (map[string]bool, error) { return nil, m.Prepare(time.Now()) })
			if err != nil || done.Rows != 1 || len(done.Dead) != 1 {
				t.Fatalf("relayed %+v, %v", done, err)
			}
			l, err := db.DeadLetters().Get(t.Context(), done.Dead[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		kept := func(letter string) (body []byte, headers string) {
			t.Helper()
			if err := outside(t, place).QueryRowContext(t.Context(), `SELECT body, headers FROM forbear_outbox_refused WHERE letter = '`+letter+`'`).Scan(&body, &headers); err != nil {
				t.Fatal(err)
			}
			return body, headers
		}
		l := relay(under(t, place, sqlstore.NewKey("k1")))
		if want := strings.Repeat("planted ", 1<<20); string(l.Payload) != want || !strings.Contains(l.Description, "its beginning is kept") {
			t.Errorf("of %d bytes %d are shown: %s", size, len(l.Payload), l.Description)
		}
		if body, headers := kept(l.ID); bytes.Contains(body, []byte("planted")) || len(body) > 9<<20 || !strings.HasPrefix(headers, "sealed:") {
			t.Errorf("kept are %d bytes, and the headers %.40q", len(body), headers)
		}
		l = relay(open(t, place))
		if body, headers := kept(l.ID); len(body) != size || headers != "planted, too" || strings.Contains(l.Description, "beginning") {
			t.Errorf("without a key %d bytes are kept, and %.40q: %s", len(body), headers, l.Description)
		}
	})
}

// A row of the outbox that is too large for a letter is kept encrypted, is shown with its
// letter, is encrypted anew and goes with its letter.
func TestRefusedRowIsSealed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		old, current := sqlstore.NewKey("k1"), sqlstore.NewKey("k2")
		body := strings.Repeat("planted ", 400_000) // more than is valid
		raw, db := outside(t, place), under(t, place, old)
		insertRows(t, place, [4]string{"large", "a", "", body}, [4]string{"small", "a", "", "{}"})
		if _, err := raw.ExecContext(t.Context(), `UPDATE forbear_outbox SET headers = 'planted, too', type = 'planted' WHERE message_id = 'large'`); err != nil {
			t.Fatal(err)
		}
		done, err := db.Webhooks().Relay(t.Context(), 10, func(m *webhook.Message) (map[string]bool, error) { return nil, m.Prepare(time.Now()) })
		if err != nil || done.Rows != 2 || len(done.Dead) != 1 {
			t.Fatalf("relayed %+v, %v", done, err)
		}
		id := done.Dead[0].ID
		rows := func(condition string) (n int) {
			t.Helper()
			if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_outbox_refused WHERE message_id = 'large' AND endpoint = 'a' `+condition).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if rows("") != 1 || rows(`AND headers LIKE 'sealed:%' AND type LIKE 'sealed:%' AND source IS NULL`) != 1 {
			t.Error("the row is not kept, or not encrypted")
		}
		shown := func(db *sqlstore.DB) {
			t.Helper()
			if l, err := db.DeadLetters().Get(t.Context(), id); err != nil || string(l.Payload) != body {
				t.Errorf("the letter has %d bytes, %v", len(l.Payload), err)
			}
		}
		shown(db)
		rotated := under(t, place, current, old)
		if _, err := rotated.Reencrypt(t.Context(), func(string, int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		list, err := rotated.SealedUnder(t.Context())
		counted := int64(0)
		for _, s := range list {
			if !s.Current {
				t.Errorf("%+v is left", s)
			}
			if s.Part == "refused rows" {
				counted = s.Rows
			}
		}
		if err != nil || counted != 1 {
			t.Errorf("%d refused rows are counted, %v", counted, err)
		}
		shown(under(t, place, current))
		if n, err := rotated.DeadLetters().Remove(t.Context(), []string{id}); err != nil || n != 1 || rows("") != 0 {
			t.Errorf("%d letters removed, %v, and %d rows are left", n, err, rows(""))
		}
	})
}
