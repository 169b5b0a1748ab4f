package sqltest

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A sweep that has read what is old deletes nothing of it that is redriven meanwhile:
// the message would be gone, and its letter on its way for good.
func TestSweepLeavesWhatIsRedriven(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	db, raw := open(t, place), pool(t, "pgx", place)
	w := db.Webhooks()
	if _, err := w.Accept(t.Context(), []webhook.Message{{ID: "m", Endpoints: []string{"a"}, Body: []byte("kept")}}, nil); err != nil {
		t.Fatal(err)
	}
	step, err := w.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 1}}})
	if err != nil || len(step.Claimed) != 1 {
		t.Fatal(step, err)
	}
	d := step.Claimed[0]
	letter := d.DeadLetter(&webhook.Endpoint{ID: "a"}, reason.Terminal, 5, time.Now())
	now := time.Now()
	dead := store.WriteBack{
		ID: d.ID, Fence: d.Fence, Endpoint: "a", Kind: store.Dead, Dead: letter,
		Attempt: &deadletter.Attempt{Number: 1, Claim: 1, Due: now, At: now, ErrorType: "http_404", Status: 404, Worker: "w"},
	}
	if back, err := w.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{dead}}); err != nil || !back.OK[0] {
		t.Fatal(back, err)
	}
	run1(t, raw, `UPDATE forbear_deliveries SET finished = finished - 8*24*3600*1000000::bigint`)
	// What holds the attempt's row keeps the sweep between its look and its end.
	hold, err := pool(t, "pgx", place).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback() }()
	if _, err := hold.ExecContext(t.Context(), `SELECT 1 FROM forbear_attempts FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.Sweep(t.Context(), 7*24*time.Hour, 100); err != nil {
			t.Error(err)
		}
	})
	waiting(t, raw)
	got, err := db.DeadLetters().BeginRedrive(t.Context(), letter.ID, "job", "ann", 3)
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		if err := w.Requeue(t.Context(), got, false); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(100 * time.Millisecond) // it waits for the sweep now, or is done
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	again, err := w.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 1}}})
	if err != nil || len(again.Claimed) != 1 || string(again.Claimed[0].Message.Body) != "kept" || again.Claimed[0].Letter != letter.ID {
		t.Errorf("on its way again: %+v, %v", again.Claimed, err)
	}
}

// waiting waits until a statement waits for a lock.
func waiting(t *testing.T, raw *sql.DB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var n int
		if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing waits for a lock")
		}
	}
}

// Processes whose rows have all run out beat at once: none waits in a circle, and none
// counts itself alone but the first.
func TestBeatsAtOnce(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	raw := pool(t, "pgx", place)
	var stores []*sqlstore.Webhooks
	for range 4 {
		stores = append(stores, open(t, place).Webhooks())
	}
	for round := range 20 {
		run1(t, raw, `UPDATE forbear_dispatchers SET expires = 1`)
		var wg sync.WaitGroup
		live := make([]int, len(stores))
		for i, s := range stores {
			wg.Go(func() {
				var err error
				if live[i], err = s.Heartbeat(t.Context(), fmt.Sprint("p", i), time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		alone := 0
		for _, n := range live {
			if n == 1 {
				alone++
			}
		}
		if alone > 1 {
			t.Errorf("round %d: counted %v", round, live)
		}
	}
	var deadlocks int
	if err := raw.QueryRowContext(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}

// What dies in several steps at once and is canceled meanwhile waits for each other in
// one order: nothing deadlocks, and no cancel fails.
func TestDeadAndCanceledAtOnce(t *testing.T) {
	t.Parallel()
	place := pgtest.Database(t)
	raw, one, other := pool(t, "pgx", place), open(t, place).Webhooks(), open(t, place).Webhooks()
	const n = 60
	for round := range 6 {
		msgs := make([]webhook.Message, n)
		for i := range msgs {
			msgs[i] = webhook.Message{ID: fmt.Sprint(round, "-", i), Endpoints: []string{"a"}, Body: []byte("x")}
		}
		if _, err := one.Accept(t.Context(), msgs, nil); err != nil {
			t.Fatal(err)
		}
		step, err := one.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: n}}})
		if err != nil || len(step.Claimed) != n {
			t.Fatal(len(step.Claimed), err)
		}
		ids := make([]int64, n)
		var wg sync.WaitGroup
		for i := range step.Claimed {
			d := &step.Claimed[n-1-i]
			ids[i] = d.ID
			wg.Go(func() {
				letter := d.DeadLetter(&webhook.Endpoint{ID: "a"}, reason.Terminal, 5, time.Now())
				dead := store.WriteBack{ID: d.ID, Fence: d.Fence, Endpoint: "a", Kind: store.Dead, Dead: letter}
				if _, err := one.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{dead}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			time.Sleep(3 * time.Millisecond)
			if _, err := other.Cancel(t.Context(), ids, "ann"); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}
	var deadlocks int
	if err := raw.QueryRowContext(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks); err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, %v", deadlocks, err)
	}
}
