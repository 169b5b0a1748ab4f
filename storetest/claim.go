package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook/store"
)

// A message with NotBefore waits until then, and NextDues reports how long: the
// dispatcher sleeps by it. A head that is too late delays deliveries, and
// one that is too early makes the dispatcher spin.
func testDue(t *testing.T, s Store) {
	later := message("later", "", "a")
	later.NotBefore = time.Now().Add(time.Hour)
	accept(t, s, false, later)
	if n := len(claim(t, s, "a", 10)); n != 0 {
		t.Errorf("%d deliveries before their time", n)
	}
	// A message that waits is due next already: the dispatcher sleeps until
	// then.
	heads := must(s.NextDues(t.Context()))(t)
	if len(heads) != 1 || heads[0].In < 59*time.Minute || heads[0].In > time.Hour+time.Second {
		t.Errorf("heads are %+v, want one in about an hour", heads)
	}
	accept(t, s, false, message("now", "", "a"), message("now2", "", "b"))
	heads = must(s.NextDues(t.Context()))(t)
	if len(heads) != 2 || heads[0].In > 0 || heads[1].In > 0 {
		t.Errorf("heads are %+v, want two that are due", heads)
	}
	if list := claim(t, s, "a", 10); len(list) != 1 || list[0].Message.ID != "now" {
		t.Errorf("got %+v", list)
	}
}

// Each lane has a limit of its own. An endpoint that is down and has a long
// queue must not take the place of those that work.
func testLanes(t *testing.T, s Store) {
	for i := range 20 {
		accept(t, s, false, message(fmt.Sprint("dead-", i), "", "dead"), message(fmt.Sprint("ok-", i), "", "ok"))
	}
	// Both lanes have twenty; each gives what was asked of it.
	list := claimAs(t, s, "test", lease, store.Lane{Endpoint: "dead", Max: 2}, store.Lane{Endpoint: "ok", Max: 15})
	n := map[string]int{}
	for _, d := range list {
		n[d.Endpoint]++
	}
	// A store that serves the older queue first would starve the other
	// lane.
	if n["dead"] != 2 || n["ok"] != 15 {
		t.Errorf("got %v, want 2 of the dead endpoint and 15 of the other", n)
	}
}

// Four dispatchers claim from one lane until all is taken. A delivery that
// two of them get is a message sent twice.
func testOverlap(t *testing.T, s Store) {
	const total = 200
	for i := range total {
		accept(t, s, false, message(fmt.Sprint("m", i), "", "a"))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	parallel(4, func(w int) {
		// More turns than needed, in sevens: claims of different
		// sizes meet at the end.
		for range 100 {
			done, err := s.WriteBackAndClaim(t.Context(), store.Step{Owner: fmt.Sprint("w", w), Lease: lease, Lanes: []store.Lane{{Endpoint: "a", Max: 7}}})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, d := range done.Claimed {
				seen[d.Message.ID]++
			}
			n := len(seen)
			mu.Unlock()
			if n == total {
				return
			}
		}
	})
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(seen) != total {
		t.Errorf("%d of %d were claimed", len(seen), total)
	}
}

// A dispatcher that freezes loses its lease. Its outcome is refused from
// then on, both while the delivery waits and after another has claimed it;
// the holder writes its own once.
func testFence(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	// The lease of a millisecond is over at once.
	old := claimAs(t, s, "frozen", time.Millisecond, store.Lane{Endpoint: "a", Max: 1})[0]
	time.Sleep(5 * time.Millisecond)
	if n := must(s.Reclaim(t.Context(), 10))(t); n != 1 {
		t.Fatalf("reclaimed %d, want 1", n)
	}
	if ok := finish(t, s, outcome(old, store.Delivered)); ok[0] {
		t.Error("a lost lease wrote its outcome while the delivery waits")
	}
	d := claim(t, s, "a", 1)[0]
	if d.Fence <= old.Fence || d.Claims != 2 {
		t.Errorf("second claim: fence %d after %d, claims %d", d.Fence, old.Fence, d.Claims)
	}
	if ok := finish(t, s, outcome(old, store.Delivered)); ok[0] {
		t.Error("a lost lease wrote its outcome")
	}
	if ok := finish(t, s, outcome(d, store.Delivered)); !ok[0] {
		t.Error("the holder could not write its outcome")
	}
	if ok := finish(t, s, outcome(d, store.Delivered)); ok[0] {
		t.Error("an outcome was written twice")
	}
}

// A turn writes outcomes back before it claims, in one round trip: the next
// message of a finished key is in the same turn's claims. Next names the
// lanes that got less than they asked for. An empty turn is harmless.
func testTurn(t *testing.T, s Store) {
	accept(t, s, true, message("k1", "k", "a"), message("k2", "k", "a"), message("x", "", "b"))
	first := claim(t, s, "a", 10)
	if len(first) != 1 {
		t.Fatalf("claimed %d, want the first of the key", len(first))
	}
	lost := outcome(first[0], store.Delivered)
	// An outcome under a wrong fence stands beside the right one, and must
	// not harm it.
	lost.Fence++
	done := must(s.WriteBackAndClaim(t.Context(), store.Step{
		WriteBacks: []store.WriteBack{lost, outcome(first[0], store.Delivered)},
		Owner:      "test", Lease: lease, Lanes: []store.Lane{{Endpoint: "a", Max: 10}, {Endpoint: "b", Max: 10}, {Endpoint: "none", Max: 1}},
	}))(t)
	if fmt.Sprint(done.OK) != "[false true]" {
		t.Errorf("written back: %v, want the holder's alone", done.OK)
	}
	var ids []string
	for _, d := range done.Claimed {
		ids = append(ids, d.Message.ID)
	}
	slices.Sort(ids)
	if fmt.Sprint(ids) != "[k2 x]" {
		t.Errorf("claimed %v: an outcome comes before the claims of its turn", ids)
	}
	if len(done.Next) != 0 {
		t.Errorf("next is %+v, and nothing waits", done.Next)
	}
	later := message("later", "", "b")
	later.NotBefore = time.Now().Add(time.Hour)
	accept(t, s, false, later, message("now", "", "b"))
	done = must(s.WriteBackAndClaim(t.Context(), store.Step{Owner: "test", Lease: lease, Lanes: []store.Lane{{Endpoint: "a", Max: 5}, {Endpoint: "b", Max: 2}}}))(t)
	if len(done.Claimed) != 1 || len(done.Next) != 1 || done.Next[0].Endpoint != "b" || done.Next[0].In < 59*time.Minute || done.Next[0].In > time.Hour+time.Second {
		t.Errorf("got %d claimed and next %+v, want one in an hour", len(done.Claimed), done.Next)
	}
	if done := must(s.WriteBackAndClaim(t.Context(), store.Step{}))(t); len(done.OK) != 0 || len(done.Claimed) != 0 {
		t.Errorf("an empty turn came to %+v", done)
	}
}

// A crash burns no attempt, since no one knows whether the attempt was made;
// the history shows it as interrupted. Claims count each of them, so that a
// message that kills its dispatcher can be found.
func testReclaim(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	for range 3 {
		claimAs(t, s, "crashes", time.Millisecond, store.Lane{Endpoint: "a", Max: 1})
		time.Sleep(5 * time.Millisecond)
		must(s.Reclaim(t.Context(), 10))(t)
	}
	d := claim(t, s, "a", 1)[0]
	if d.Progress.Attempts != 0 || d.Progress.State.Attempt != 0 || d.Claims != 4 {
		t.Errorf("three crashes: %d attempts, %d claims; want 0 and 4", d.Progress.Attempts, d.Claims)
	}
	// Each crash shows in the history, with the worker that it happened to.
	info := must(s.Deliveries(t.Context(), "m1"))(t)
	if len(info) != 1 || len(info[0].History) != 3 || info[0].History[0].ErrorType != "interrupted" || info[0].History[0].Worker != "crashes" {
		t.Errorf("the interrupted attempts do not show: %+v", info)
	}
}

// What a delivery has learned survives its lease: attempts, the state of its
// policy, and the failure that is pending. Start never moves, because the
// total duration of R-3 counts from it.
func testProgress(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	d := claim(t, s, "a", 1)[0]
	o := outcome(d, store.Retried)
	o.After = time.Millisecond
	o.Progress.Attempts, o.Progress.State.Attempt, o.Progress.Postponed = 1, 2, 3
	// The failure that the next claim has to decide about anew.
	o.Progress.Pending = &edge.Pending{Type: "http_503", At: d.Due}
	finish(t, s, o)
	time.Sleep(5 * time.Millisecond)
	d2 := claim(t, s, "a", 1)
	if len(d2) != 1 {
		t.Fatal("not due again")
	}
	p := d2[0].Progress
	if p.Attempts != 1 || p.State.Attempt != 2 || p.Postponed != 3 || p.Pending == nil || p.Pending.Type != "http_503" || !p.Pending.At.Equal(d.Due) {
		t.Errorf("got %+v", p)
	}
	if !d2[0].Start.Equal(d.Start) {
		t.Errorf("start moved from %v to %v", d.Start, d2[0].Start)
	}
	// Giving a delivery back without an attempt keeps what is known of it.
	released := outcome(d2[0], store.Released)
	released.Attempt = nil
	finish(t, s, released)
	if d3 := claim(t, s, "a", 1); len(d3) != 1 || d3[0].Progress.State.Attempt != 2 {
		t.Errorf("a released delivery lost its progress: %+v", d3)
	}
	if h := must(s.Deliveries(t.Context(), "m1"))(t)[0].History; len(h) != 1 || h[0].Status != 503 || h[0].Took != time.Millisecond {
		t.Errorf("history is %+v", h)
	}
}

// Overdue finds what has waited longer than its total allows, even when it
// is not due: an endpoint that stays disabled would otherwise keep its
// deliveries for ever.
func testOverdue(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	d := claim(t, s, "a", 1)[0]
	// Put off for an hour, and so not due when the test looks.
	o := outcome(d, store.Postponed)
	o.After, o.Attempt = time.Hour, nil
	finish(t, s, o)
	if list := must(s.Overdue(t.Context(), "test", lease, time.Hour, store.Lane{Endpoint: "a", Max: 10}))(t); len(list) != 0 {
		t.Errorf("%d are overdue at once", len(list))
	}
	time.Sleep(5 * time.Millisecond)
	if list := must(s.Overdue(t.Context(), "test", lease, time.Millisecond, store.Lane{Endpoint: "a", Max: 10}))(t); len(list) != 1 {
		t.Errorf("%d are overdue, want the postponed one", len(list))
	}
}
