package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// ledger is a store on PostgreSQL of the test's own, and its table beside it.
type ledger struct {
	*testing.T
	idempotency.Store
	pool  *sql.DB
	place string
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	place := pgtest.Database(t)
	pool, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return &ledger{t, open(t, place).Idempotency(), pool, place}
}

func claimOf(key, owner string) idempotency.Claim {
	return idempotency.Claim{ID: idempotency.ID{Scope: "s", Key: key}, Fingerprint: "f", Operation: "op " + key, Owner: owner, Lease: time.Hour, Retention: time.Hour}
}

// claim demands a verdict, whatever it is.
func (l *ledger) claim(c idempotency.Claim) idempotency.Verdict {
	l.Helper()
	v, err := l.Claim(context.Background(), c)
	if err != nil {
		l.Errorf("claim %s: %v", c.ID.Key, err)
	}
	return v
}

// together runs all of list while two of their kind wait for a row each, so that
// what comes behind them gathers; then it lets them go.
func (l *ledger) together(kind func(gate idempotency.Verdict), list ...func()) {
	l.Helper()
	var gates [2]idempotency.Verdict
	for i := range gates {
		gates[i] = l.claim(claimOf(fmt.Sprint("gate-", i, " ", time.Now()), "o"))
	}
	txn, err := l.pool.Begin()
	if err != nil {
		l.Fatal(err)
	}
	if _, err := txn.Exec(`SELECT FROM forbear_idempotency WHERE hash IN ($1, $2) FOR UPDATE`, gates[0].Record.ID.Key, gates[1].Record.ID.Key); err != nil {
		l.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, gate := range gates {
		wg.Go(func() { kind(gate) })
		for n := 0; n <= i; time.Sleep(time.Millisecond) {
			if err := l.pool.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
				l.Fatal(err)
			}
		}
	}
	for _, f := range list {
		wg.Go(f)
	}
	time.Sleep(20 * time.Millisecond) // most of them have come
	if err := txn.Rollback(); err != nil {
		l.Fatal(err)
	}
	wg.Wait()
}

// claims and completions are the kinds of what waits for a gate.
func (l *ledger) claims(gate idempotency.Verdict) { l.claim(claimOf(gate.Record.ID.Key, "new")) }

func (l *ledger) completions(gate idempotency.Verdict) {
	if err := l.Complete(context.Background(), token(gate), idempotency.Response{Status: 200}, time.Hour); err != nil {
		l.Error(err)
	}
}

func token(v idempotency.Verdict) idempotency.Token {
	return idempotency.Token{ID: v.Record.ID, Owner: v.Record.Owner, Fence: v.Record.Fence}
}

// In one statement with others each claim gets what it would get alone, and each
// completion too.
func TestBatchOfClaims(t *testing.T) {
	l := newLedger(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	stored := idempotency.Response{Status: 201, Body: []byte("stored \x00 \xff")}
	must(l.Complete(ctx, token(l.claim(claimOf("done", "o"))), stored, time.Hour))
	must(l.Complete(ctx, token(l.claim(claimOf("past", "o"))), stored, -time.Hour))
	must(l.Hold(ctx, token(l.claim(claimOf("held", "o"))), "why"))
	must(l.Release(ctx, token(l.claim(claimOf("free", "o"))))) // attempt 1
	gone, again := claimOf("gone", "o"), claimOf("again", "o")
	gone.Lease, again.Lease, again.Rerun = -time.Second, -time.Second, true
	l.claim(gone)
	l.claim(again)
	again.Owner, again.Lease = "new", time.Minute
	other := claimOf("done", "new")
	other.Fingerprint = "another"
	bad := claimOf("bad", "new")
	bad.Operation = "\x00" // no text to PostgreSQL

	type row struct {
		claim   idempotency.Claim
		outcome idempotency.ClaimOutcome
		fence   int64
		attempt int
	}
	rows := []row{
		{claimOf("done", "new"), idempotency.Replay, 1, 1},
		{other, idempotency.Mismatch, 1, 1},
		{claimOf("past", "new"), idempotency.Acquired, 2, 1},
		{claimOf("held", "new"), idempotency.Unknown, 1, 1},
		{claimOf("free", "new"), idempotency.Acquired, 2, 2},
		{claimOf("gone", "new"), idempotency.Unknown, 1, 1},
		{again, idempotency.Acquired, 2, 2},
	}
	for i := range 40 {
		rows = append(rows, row{claimOf(fmt.Sprint("fresh-", i), "new"), idempotency.Acquired, 1, 1})
	}
	verdicts := make([]idempotency.Verdict, len(rows))
	var list []func()
	for i, r := range rows {
		list = append(list, func() { verdicts[i] = l.claim(r.claim) })
	}
	list = append(list, func() {
		if _, err := l.Claim(context.Background(), bad); err == nil {
			t.Error("a claim with a text that PostgreSQL does not take was granted")
		}
	})
	var twins [3]idempotency.Verdict
	for i := range twins {
		list = append(list, func() { twins[i] = l.claim(claimOf("twin", fmt.Sprint("twin-", i))) })
	}
	l.together(l.claims, list...)
	for i, r := range rows {
		v := verdicts[i]
		if v.Outcome != r.outcome || v.Record.Fence != r.fence || v.Record.Attempt != r.attempt || v.Record.ID != r.claim.ID {
			t.Errorf("%s: got %+v, want outcome %d, fence %d, attempt %d", r.claim.ID.Key, v, r.outcome, r.fence, r.attempt)
		}
		if rec, err := l.Get(ctx, r.claim.ID); err != nil || v.Outcome == idempotency.Acquired && (rec.Owner != "new" || rec.State != idempotency.Started || rec.Operation != r.claim.Operation || !rec.LeaseEnd.Equal(v.Record.LeaseEnd)) {
			t.Errorf("%s: stored %+v, %v; told %+v", r.claim.ID.Key, rec, err, v.Record)
		}
	}
	if a := verdicts[0].Record.Response; a == nil || string(a.Body) != string(stored.Body) || a.Status != 201 {
		t.Errorf("replayed %+v, want what was stored", a)
	}
	if v := verdicts[5].Record; v.State != idempotency.Held || v.Note != idempotency.Abandoned {
		t.Errorf("abandoned: %+v", v)
	}
	acquired := slices.IndexFunc(twins[:], func(v idempotency.Verdict) bool { return v.Outcome == idempotency.Acquired })
	for i, v := range twins {
		if owner := fmt.Sprint("twin-", acquired); acquired < 0 || v.Record.Owner != owner || i != acquired && v.Outcome != idempotency.InProgress {
			t.Errorf("duplicates of one key: %+v", twins)
		}
	}

	list = nil
	for i := range 40 {
		k := token(verdicts[len(verdicts)-40+i])
		k.Fence *= int64(i % 2) // 0 stands for whatever it is
		list = append(list, func() {
			if err := l.Complete(context.Background(), k, idempotency.Response{Status: 200, Header: map[string][]string{"X": {k.ID.Key}}, Body: []byte("of " + k.ID.Key + "\x00\xfe")}, time.Hour); err != nil {
				t.Errorf("complete %s: %v", k.ID.Key, err)
			}
		})
	}
	for _, k := range []idempotency.Token{{ID: claimOf("done", "").ID, Owner: "o"}, {ID: claimOf("free", "").ID, Owner: "o"}, {ID: claimOf("again", "").ID, Owner: "new", Fence: 1}, {ID: claimOf("none", "").ID, Owner: "o"}} {
		list = append(list, func() {
			if err := l.Complete(context.Background(), k, idempotency.Response{Status: 500}, time.Hour); !errors.Is(err, idempotency.ErrFenced) {
				t.Errorf("complete %+v: %v, want ErrFenced", k, err)
			}
		})
	}
	l.together(l.completions, list...)
	for i := range 40 {
		key := fmt.Sprint("fresh-", i)
		rec, err := l.Get(ctx, claimOf(key, "").ID)
		if err != nil || rec.State != idempotency.Completed || string(rec.Response.Body) != "of "+key+"\x00\xfe" || rec.Response.Header.Get("X") != key || !rec.Expires.After(rec.Completed.Add(59*time.Minute)) {
			t.Errorf("%s: %+v, %v", key, rec, err)
		}
	}
}

// A record that someone else holds for long keeps its own claim waiting, and not
// those that are in the same statement.
func TestHeldRowHoldsUpItsOwnClaimOnly(t *testing.T) {
	l := newLedger(t)
	l.claim(claimOf("locked", "o"))
	txn, err := l.pool.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Exec(`SELECT FROM forbear_idempotency WHERE hash = 'locked' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var slow sync.WaitGroup
	list := []func(){func() {
		slow.Go(func() {
			if v := l.claim(claimOf("locked", "new")); v.Outcome != idempotency.InProgress {
				t.Errorf("the locked one: %+v", v)
			}
		})
	}}
	for i := range 30 {
		list = append(list, func() {
			if v := l.claim(claimOf(fmt.Sprint("free-", i), "new")); v.Outcome != idempotency.Acquired {
				t.Errorf("%s: %+v", v.Record.ID.Key, v)
			}
		})
	}
	l.together(l.claims, list...) // which ends while the row is locked
	if err := txn.Rollback(); err != nil {
		t.Fatal(err)
	}
	slow.Wait()
}

// A caller that leaves ends its own wait, and no one else's.
func TestCallerLeavesABatch(t *testing.T) {
	l := newLedger(t)
	ctx, leave := context.WithCancelCause(t.Context())
	gone := errors.New("gone home")
	list := []func(){func() {
		leave(gone)
		if _, err := l.Claim(ctx, claimOf("left", "o")); err == nil || !strings.Contains(err.Error(), gone.Error()) {
			t.Errorf("got %v, want the caller's own end", err)
		}
	}}
	for i := range 10 {
		list = append(list, func() {
			if v := l.claim(claimOf(fmt.Sprint("stays-", i), "o")); v.Outcome != idempotency.Acquired {
				t.Errorf("%+v", v)
			}
		})
	}
	l.together(l.claims, list...)
}

// A claim whose caller leaves while it is under way is taken back: the next one
// need not wait for its lease.
func TestClaimWhoseCallerLeavesIsTakenBack(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	if _, err := l.pool.Exec(`CREATE FUNCTION waits() RETURNS trigger AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END' LANGUAGE plpgsql;
		CREATE TRIGGER waits BEFORE INSERT ON forbear_idempotency FOR EACH ROW WHEN (NEW.hash = 'left') EXECUTE FUNCTION waits()`); err != nil {
		t.Fatal(err)
	}
	keeps := pool(t, "pgx", l.place)
	run1(t, keeps, `SELECT pg_advisory_lock(1)`)
	ctx, leave := context.WithCancel(t.Context())
	over, left := context.WithCancel(t.Context())
	list := []func(){func() {
		defer left()
		if _, err := l.Claim(ctx, claimOf("left", "o")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the caller's own end", err)
		}
	}, func() {
		for n := 0; n == 0 && over.Err() == nil; time.Sleep(time.Millisecond) {
			if err := l.pool.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`).Scan(&n); err != nil {
				t.Error(err)
				break
			}
		}
		leave()
		select {
		case <-over.Done():
		case <-time.After(time.Minute):
			t.Error("the caller that has left waits for its claim")
		}
		if _, err := keeps.Exec(`SELECT pg_advisory_unlock(1)`); err != nil {
			t.Error(err)
		}
	}}
	for i := range 10 {
		list = append(list, func() {
			if v := l.claim(claimOf(fmt.Sprint("stays-", i), "o")); v.Outcome != idempotency.Acquired {
				t.Errorf("%+v", v)
			}
		})
	}
	l.together(l.claims, list...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		v := l.claim(claimOf("left", "new"))
		if v.Outcome == idempotency.Acquired {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the claim is still taken: %+v", v)
		}
	}
}

// Completions find their records by the key, however many were begun a moment ago, in a
// table that is new to the server and in one that it knows.
func TestRecordsAreFoundByTheirKeys(t *testing.T) {
	l := newLedger(t)
	run1(t, l.pool, `ALTER TABLE forbear_idempotency SET (autovacuum_enabled = off)`)
	round := func(n int) {
		var all sync.WaitGroup
		for caller := range 64 {
			all.Go(func() {
				for i := range 30 {
					key := fmt.Sprint(n, "-", caller, "-", i)
					v := l.claim(claimOf(key, "o"))
					if err := l.Complete(context.Background(), idempotency.Token{ID: v.Record.ID, Owner: "o", Fence: v.Record.Fence}, idempotency.Response{Status: 200}, time.Hour); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	round(1)
	run1(t, l.pool, `ANALYZE forbear_idempotency`)
	round(2)
	time.Sleep(2 * time.Second) // a session says once a second what it has read
	for what, query := range map[string]string{
		"the table":                  `SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'forbear_idempotency'`,
		"the index of what is taken": `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'forbear_idempotency_held'`,
	} {
		var rows int
		if err := l.pool.QueryRowContext(t.Context(), query).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows > 2*64*30 {
			t.Errorf("%d rows of %s were read for %d completions", rows, what, 2*64*30)
		}
	}
}
