package sqltest

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What is written while the clock is hours ahead, for seconds, holds no one up for hours: a
// lease, a wait, a member that has died, a redrive, an alert.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, clockWasAhead)
}

func clockWasAhead(t *testing.T) {
	var offset atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	s := views(open(t, file(t), sqlstore.WithClock(clock)))
	step := func(owner string, back ...store.WriteBack) []store.Delivery {
		t.Helper()
		done, err := s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: back, Owner: owner, Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		return done.Claimed
	}
	accept := func(id string, in time.Duration) {
		t.Helper()
		m := webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(id)}
		if in > 0 {
			m.NotBefore = clock().Add(in)
		}
		if _, err := s.Accept(t.Context(), []webhook.Message{m}, nil); err != nil {
			t.Fatal(err)
		}
	}
	due := func(id string) time.Duration {
		t.Helper()
		list, err := s.Deliveries(t.Context(), id)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Due.Sub(clock())
	}
	members := func(owner string, want int) {
		t.Helper()
		if n, err := s.Heartbeat(t.Context(), owner, 15*time.Second); n != want || err != nil {
			t.Errorf("%s counts %d, %v, want %d", owner, n, err, want)
		}
	}
	job := func(want bool) {
		t.Helper()
		if _, ok, err := s.ClaimJob(t.Context(), "w", 30*time.Second); ok != want || err != nil {
			t.Errorf("a job is claimed: %v, %v, want %v", ok, err, want)
		}
	}

	accept("before", 10*time.Hour)
	offset.Store(int64(5 * time.Hour))
	accept("fails", 0)
	failed := step("w")[0]
	step("w", store.WriteBack{ID: failed.ID, Fence: failed.Fence, Endpoint: "a", Kind: store.Retried, After: 90 * time.Minute})
	accept("lost", 0)
	if list := step("dies"); len(list) != 1 || list[0].Message.ID != "lost" {
		t.Fatalf("claimed %+v", list)
	}
	accept("new", 0)
	accept("scheduled", 10*time.Hour)
	members("dies", 1)
	if err := s.PutJob(t.Context(), queue.Job{ID: "j", State: queue.JobRunning}); err != nil {
		t.Fatal(err)
	}
	job(true)
	if err := s.Raise(t.Context(), queue.Alert{Queue: "q", Reason: "r"}); err != nil {
		t.Fatal(err)
	}

	offset.Store(0)
	reclaim := func() (all int) {
		t.Helper()
		for {
			n, err := s.Reclaim(t.Context(), 2)
			if all += n; n == 0 || err != nil {
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
		}
	}
	if n := reclaim(); n != 0 {
		t.Errorf("%d were taken back at once: the clock may only be behind for a moment", n)
	}
	offset.Store(int64(5 * time.Hour))
	reclaim()
	time.Sleep(time.Minute - time.Second) // the lease goes on
	offset.Store(0)
	reclaim()
	time.Sleep(time.Minute)
	if n := reclaim(); n != 5 { // the one that is lost, and then with all that wait
		t.Errorf("%d were taken back, want 5", n)
	}
	got := map[string]string{}
	for _, d := range step("w") {
		if got[d.Message.ID] = string(d.Message.Body); d.Start.After(clock()) {
			t.Errorf("the 24 hours of %s begin at %v", d.Message.ID, d.Start)
		}
	}
	if len(got) != 2 || got["lost"] != "lost" || got["new"] != "new" {
		t.Errorf("due are %v", got)
	}
	for id, want := range map[string]time.Duration{"before": 10 * time.Hour, "fails": 90 * time.Minute, "scheduled": 10 * time.Hour} {
		if in := due(id); in > want || in < want-5*time.Minute {
			t.Errorf("%s is due in %v, want %v", id, in, want)
		}
	}
	members("w", 2)
	offset.Store(int64(time.Minute))
	members("w", 1)
	job(true)
	job(false)
	if list, err := s.ClaimAlerts(t.Context(), 10, time.Minute); err != nil || len(list) != 1 {
		t.Errorf("alerts that are due: %+v, %v", list, err)
	}
}

// The idempotency key of a process that has died while the clock was hours ahead is free
// after its lease, and not hours later. A lease that was renewed since counts as it is.
func TestClockWasAheadOfKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, clockWasAheadOfKeys)
}

func clockWasAheadOfKeys(t *testing.T) {
	var offset atomic.Int64
	s := open(t, file(t), sqlstore.WithClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })).Idempotency()
	claim := func(key, owner string) idempotency.Verdict {
		t.Helper()
		v, err := s.Claim(t.Context(), idempotency.Claim{ID: idempotency.ID{Scope: "s", Key: key}, Fingerprint: "f", Owner: owner, Lease: time.Minute, Retention: 48 * time.Hour, Rerun: true})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	sweep := func() {
		t.Helper()
		if n, err := s.Sweep(t.Context(), 10); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	offset.Store(int64(5 * time.Hour))
	claim("dies", "a")
	lives := claim("lives", "a").Record
	offset.Store(0)
	sweep()
	time.Sleep(time.Minute)
	sweep()
	if v := claim("dies", "b"); v.Outcome != idempotency.InProgress || v.LeaseLeft > time.Minute {
		t.Errorf("within its lease: %v, %v left", v.Outcome, v.LeaseLeft)
	}
	offset.Store(int64(50 * time.Second))
	if err := s.Renew(t.Context(), idempotency.Token{ID: lives.ID, Owner: lives.Owner, Fence: lives.Fence}, time.Minute); err != nil {
		t.Fatal(err)
	}
	offset.Store(int64(70 * time.Second))
	sweep()
	if v := claim("dies", "b"); v.Outcome != idempotency.Acquired {
		t.Errorf("after its lease: %v, %v left", v.Outcome, v.LeaseLeft)
	}
	if v := claim("lives", "b"); v.Outcome != idempotency.InProgress {
		t.Errorf("a lease that was renewed: %v", v.Outcome)
	}
}

// A sweep of bodies while the clock was hours ahead passes over none that arrive later.
func TestClockWasAheadOfBodies(t *testing.T) {
	t.Parallel()
	var offset atomic.Int64
	s := open(t, file(t), sqlstore.WithClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })).Webhooks()
	arrives := func(id string) {
		t.Helper()
		if _, err := s.Accept(t.Context(), []webhook.Message{{ID: id, Endpoints: []string{"a"}, Body: []byte(id)}}, nil); err != nil {
			t.Fatal(err)
		}
		done, err := s.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 1}}})
		if err != nil || len(done.Claimed) != 1 {
			t.Fatal(done, err)
		}
		d := done.Claimed[0]
		if _, err := s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{{ID: d.ID, Fence: d.Fence, Endpoint: "a", Kind: store.Delivered}}}); err != nil {
			t.Fatal(err)
		}
	}
	drops := func(at time.Duration, id string) {
		t.Helper()
		offset.Store(int64(at))
		if _, err := s.DropBodies(t.Context(), time.Hour, 10); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Contents(t.Context(), id, nil, 1); err != nil || len(list) != 1 || !list[0].Dropped {
			t.Errorf("%s: %+v, %v, want it dropped", id, list, err)
		}
	}
	offset.Store(int64(5 * time.Hour))
	arrives("ahead")
	drops(7*time.Hour, "ahead")
	offset.Store(0)
	arrives("later")
	drops(2*time.Hour, "later")
}

// A million that are scheduled are not looked at: what was written in the future has an
// index.
func TestScheduledAreNotLookedAt(t *testing.T) {
	t.Parallel()
	outboxApps(t, func(t *testing.T, s outboxApp) {
		run1(t, s.DB, `INSERT INTO forbear_deliveries (message, message_id, endpoint, state, due, start, written)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i, CAST(i AS TEXT), 'a', 0, 9000000000000000, 9000000000000000, i FROM n`, `ANALYZE forbear_deliveries`)
		explain := "EXPLAIN "
		if s.box.SQLite {
			explain = "EXPLAIN QUERY PLAN "
		}
		if plan := s.plan(t, explain+`SELECT id FROM forbear_deliveries WHERE state = 0 AND written > (SELECT 1000000000000) ORDER BY written LIMIT 1`); !strings.Contains(plan, "forbear_deliveries_written") {
			t.Errorf("they are found by %s", plan)
		}
	})
}
