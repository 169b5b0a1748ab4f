package sqltest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// Bodies are dropped in the order in which their messages arrived while all that is
// stored is encrypted anew in the order in which it came: neither waits for the other for
// good, and both are done.
func TestBodiesAreDroppedBesideReencrypt(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		old, current := sqlstore.NewKey("k1"), sqlstore.NewKey("k2")
		before, db, raw := under(t, place, old).Webhooks(), under(t, place, current, old), outside(t, place)
		exec := func(text string, args ...any) {
			t.Helper()
			if _, err := raw.ExecContext(t.Context(), fmt.Sprintf(text, args...)); err != nil {
				t.Fatal(err)
			}
		}
		const n, rounds = 192, 6
		for round := range rounds {
			msgs := make([]webhook.Message, n)
			for i := range msgs {
				id := fmt.Sprintf("m%d-%d", round, i)
				msgs[i] = webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("planted " + id)}
			}
			if _, err := before.Accept(t.Context(), msgs, nil); err != nil {
				t.Fatal(err)
			}
			ago := time.Now().Add(-2*time.Hour).UnixMicro() + int64(round)*n
			exec(`UPDATE forbear_deliveries SET state = 2, finished = %d + (id * 7919) %% %d WHERE state = 0`, ago, n)
			exec(`INSERT INTO forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker, response)
				SELECT id, 1, 1, 0, 0, 0, 0, '', 200, 'w', 'planted' FROM forbear_deliveries WHERE message_id LIKE 'm%d-%%'`, round)
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					looked, err := db.Webhooks().DropBodies(t.Context(), time.Hour, 64)
					if err != nil {
						t.Error(err)
					}
					if err != nil || looked == 0 {
						return
					}
				}
			})
			wg.Go(func() {
				if _, err := db.Reencrypt(t.Context(), func(string, int64, int64) {}); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		}
		count := func(text string) (n int) {
			t.Helper()
			if err := raw.QueryRowContext(context.Background(), text).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if left := count(`SELECT count(*) FROM forbear_messages WHERE dropped IS NULL`); left != 0 {
			t.Errorf("%d messages have their bodies", left)
		}
		if left := count(`SELECT count(*) FROM forbear_attempts WHERE response IS NOT NULL`); left != 0 {
			t.Errorf("%d attempts have their responses", left)
		}
		if strings.HasPrefix(place, "postgres") {
			if n := count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
				t.Errorf("%d deadlocks", n)
			}
		}
		for i, want := range map[int]error{7: nil, 8: webhook.ErrConflict} {
			m := webhook.Message{ID: "m3-7", Endpoints: []string{"a"}, Body: fmt.Appendf(nil, "planted m3-%d", i)}
			if got, err := db.Webhooks().Accept(t.Context(), []webhook.Message{m}, nil); (want == nil) != (err == nil) || err == nil && !got[0].Duplicate {
				t.Errorf("with the body of %d: %+v, %v, want %v", i, got, err, want)
			}
		}
	})
}
