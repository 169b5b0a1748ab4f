package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// serve puts endpoints, which messages can be sent to again.
func serve(t *testing.T, s Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(s.PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/"}))(t)
	}
}

// list returns the messages that a filter chooses as "id@endpoint", in pages of a
// size.
func list(t *testing.T, s Store, f store.MessageFilter, size int) (names []string) {
	t.Helper()
	for before := int64(0); ; {
		page := must(s.Messages(t.Context(), f, before, size))(t)
		if len(page.Messages) > size {
			t.Fatalf("a page of %d has %d", size, len(page.Messages))
		}
		for _, m := range page.Messages {
			names = append(names, m.ID+"@"+m.Endpoint)
		}
		if page.Next == 0 {
			return names
		}
		before = page.Next
	}
}

// numbers returns those of the messages that a filter chooses.
func numbers(t *testing.T, s Store, f store.MessageFilter) (n []int64) {
	t.Helper()
	for _, m := range must(s.Messages(t.Context(), f, 0, 100))(t).Messages {
		n = append(n, m.Number)
	}
	return n
}

// states returns the states of a message, at its endpoints in their order.
func states(t *testing.T, s Store, id string) (list []string) {
	t.Helper()
	for _, m := range slices.Backward(must(s.Messages(t.Context(), store.MessageFilter{ID: id}, 0, 10))(t).Messages) {
		list = append(list, m.State)
	}
	return list
}

// Messages are listed from the newest, in pages that come to all of them once,
// and chosen by all that a filter has, together.
func testMessages(t *testing.T, s Store) {
	began := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	for i := range 6 {
		m := message(fmt.Sprint("m", i), fmt.Sprint("k", i%2), "a", "b")
		m.Type, m.Created = fmt.Sprint("t", i%3), began.Add(time.Duration(i)*time.Minute)
		accept(t, s, false, m)
	}
	finish(t, s, outcome(claim(t, s, "a", 1)[0], store.Delivered)) // m0
	finish(t, s, deadLettered(claim(t, s, "a", 1)[0], "l1"))       // m1
	for _, c := range []struct {
		name string
		f    store.MessageFilter
		want string
	}{
		{"endpoint", store.MessageFilter{Endpoints: []string{"b", "none"}}, "[m5@b m4@b m3@b m2@b m1@b m0@b]"},
		{"type", store.MessageFilter{Type: "t1", Endpoints: []string{"a"}}, "[m4@a m1@a]"},
		{"key", store.MessageFilter{Key: "k1", Endpoints: []string{"a"}}, "[m5@a m3@a m1@a]"},
		{"state", store.MessageFilter{States: []string{store.StateDelivered, store.StateDead}}, "[m1@a m0@a]"},
		{"a state that there is not", store.MessageFilter{States: []string{"none"}}, "[]"},
		{"time", store.MessageFilter{Endpoints: []string{"a"}, Since: began.Add(2 * time.Minute), Until: began.Add(4 * time.Minute)}, "[m3@a m2@a]"},
		{"later", store.MessageFilter{Since: began.Add(time.Hour)}, "[]"},
		{"earlier", store.MessageFilter{Until: began}, "[]"},
		{"id", store.MessageFilter{ID: "m3"}, "[m3@b m3@a]"},
		{"all of them", store.MessageFilter{ID: "m4", Endpoints: []string{"a"}, Type: "t1", Key: "k0", States: []string{store.StateWaiting}, Since: began, Until: began.Add(time.Hour)}, "[m4@a]"},
	} {
		for _, size := range []int{1, 2, 100} {
			if got := fmt.Sprint(list(t, s, c.f, size)); got != c.want {
				t.Errorf("by %s, in pages of %d: got %s, want %s", c.name, size, got, c.want)
			}
		}
	}
	if got := list(t, s, store.MessageFilter{}, 5); len(got) != 12 || got[0] != "m5@b" || got[11] != "m0@a" {
		t.Errorf("all are %v", got)
	}
	i := must(s.Messages(t.Context(), store.MessageFilter{ID: "m1", Endpoints: []string{"a"}}, 0, 10))(t).Messages[0]
	if i.Type != "t1" || i.Key != "k1" || i.State != store.StateDead || !i.Created.Equal(began.Add(time.Minute)) || i.Attempts != 1 || i.Status != 503 || i.ErrorType != "http_503" || i.Finished.IsZero() || !i.Due.IsZero() {
		t.Errorf("got %+v", i)
	}
}

// What waits or is held is canceled at once, and the next of its key goes. What is
// under way is canceled unless its attempt ends it, and is sent no more.
func testCancel(t *testing.T, s Store) {
	accept(t, s, true, message("k1", "k", "a"), message("k2", "k", "a"), message("k3", "k", "a"), message("s1", "", "a"), message("s2", "", "a"))
	under := claim(t, s, "a", 10) // k1, s1, s2
	cancel := func(ids ...string) (results []store.MessageResult) {
		t.Helper()
		var n []int64
		for _, id := range ids {
			n = append(n, numbers(t, s, store.MessageFilter{ID: id})...)
		}
		return must(s.Cancel(t.Context(), n, "ann"))(t)
	}
	if r := cancel("k2", "s1", "s2"); len(r) != 3 || r[0].State != store.StateCanceled || r[1].State != store.StateCanceling || !r[0].Done || !r[1].Done {
		t.Errorf("got %+v", r)
	}
	if got := states(t, s, "s1"); fmt.Sprint(got) != "[canceling]" {
		t.Errorf("under way: %v", got)
	}
	for state, want := range map[string]string{store.StateCanceling: "[s2@a s1@a]", store.StateSending: "[k1@a]", store.StateCanceled: "[k2@a]"} {
		if got := fmt.Sprint(list(t, s, store.MessageFilter{States: []string{state}}, 10)); got != want {
			t.Errorf("those that are %s: %s, want %s", state, got, want)
		}
	}
	for _, d := range under {
		kind := map[string]store.WriteBackKind{"k1": store.Retried, "s1": store.Retried, "s2": store.Delivered}[d.Message.ID]
		finish(t, s, outcome(d, kind))
	}
	for _, d := range claim(t, s, "a", 10) {
		if d.Canceled != (d.Message.ID == "s1") {
			t.Errorf("%s: canceled %v", d.Message.ID, d.Canceled)
		}
		finish(t, s, outcome(d, store.Released)) // as a dispatcher does that must not send it
	}
	must(s.Reclaim(t.Context(), 10))(t)
	for id, want := range map[string]string{"k1": "[waiting]", "k2": "[canceled]", "k3": "[held]", "s1": "[canceled]", "s2": "[delivered]"} {
		if got := fmt.Sprint(states(t, s, id)); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if r := cancel("k1", "s2"); r[0].State != store.StateCanceled || r[1].Done || r[1].Why == "" || r[1].State != store.StateDelivered {
		t.Errorf("got %+v", r)
	}
	if got := deliverAll(t, s, "a"); fmt.Sprint(got) != "[k3]" {
		t.Errorf("delivered %v: the next of the key did not go, or a canceled one did", got)
	}
	if a := accept(t, s, true, message("k2", "k", "a")); !a[0].Duplicate {
		t.Error("a canceled message was accepted again")
	}
	if trail := must(s.AuditTrail(t.Context(), 10))(t); len(trail) == 0 || trail[0].Who != "ann" || trail[0].Action != "message-cancel" {
		t.Errorf("audit is %+v", trail)
	}
}

// A message that is canceled while its letter is redriven ends the redrive: a
// person has given it up.
func testCancelRedriven(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	finish(t, s, deadLettered(claim(t, s, "a", 1)[0], "l1"))
	l := must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 3))(t)
	check(t, s.Requeue(t.Context(), l, false))
	must(s.Cancel(t.Context(), numbers(t, s, store.MessageFilter{ID: "m1"}), "ann"))(t)
	if l := must(s.Get(t.Context(), "l1"))(t); l.State != deadletter.Discarded || l.Discard == "" {
		t.Errorf("the letter is %s, %q", l.State, l.Discard)
	}
}

// What has ended is sent again as the same message, with a fresh count of
// attempts and its history. What is dead goes by its letter, which counts.
func testSendAgain(t *testing.T, s Store) {
	serve(t, s, "a")
	accept(t, s, false, message("m1", "", "a"))
	again := func() store.MessageResult {
		t.Helper()
		r := must(s.SendAgain(t.Context(), numbers(t, s, store.MessageFilter{ID: "m1"}), 2, "ann"))(t)
		if len(r) != 1 {
			t.Fatalf("got %+v", r)
		}
		return r[0]
	}
	if r := again(); r.Done || r.Why != store.WhyUnderWay {
		t.Errorf("waiting: got %+v", r)
	}
	o := outcome(claim(t, s, "a", 1)[0], store.Delivered)
	o.Progress.State.Attempt = 3
	finish(t, s, o)
	if r := again(); !r.Done || r.State != store.StateWaiting {
		t.Errorf("delivered: got %+v", r)
	}
	d := claim(t, s, "a", 1)[0]
	if d.Message.ID != "m1" || d.Message.IdempotencyKey != "key-m1" || string(d.Message.Body) != `{"n":1}` || d.Progress.State.Attempt != 0 || d.Claims != 2 {
		t.Errorf("got %+v", d)
	}
	finish(t, s, outcome(d, store.Retried))
	must(s.Cancel(t.Context(), numbers(t, s, store.MessageFilter{ID: "m1"}), "ann"))(t)
	if r := again(); !r.Done {
		t.Errorf("canceled: got %+v", r)
	}
	for i := range 3 {
		finish(t, s, deadLettered(claim(t, s, "a", 1)[0], fmt.Sprint("l", i)))
		l := must(s.Get(t.Context(), "l0"))(t)
		if l.State != deadletter.Dead || l.Redrives != i {
			t.Errorf("dead %d times: %s, %d redrives", i+1, l.State, l.Redrives)
		}
		if r := again(); r.Done != (i < 2) || i == 2 && r.Why != store.WhyLimit {
			t.Errorf("dead %d times: got %+v", i+1, r)
		}
	}
	if h := must(s.Deliveries(t.Context(), "m1"))(t)[0].History; len(h) != 5 {
		t.Errorf("the history has %d attempts, want 5", len(h))
	}
}

// What cannot be sent as it was is refused, with the reason.
func testSendAgainRefused(t *testing.T, s Store) {
	serve(t, s, "a")
	accept(t, s, false, message("m1", "", "a"), message("m2", "", "b"))
	for _, e := range []string{"a", "b"} {
		finish(t, s, outcome(claim(t, s, e, 1)[0], store.Delivered))
	}
	time.Sleep(2 * time.Millisecond)
	for must(s.DropBodies(t.Context(), time.Microsecond, 10))(t) > 0 {
	}
	for id, why := range map[string]string{"m1": store.WhyBodyDropped, "m2": store.WhyBodyDropped} {
		if r := must(s.SendAgain(t.Context(), numbers(t, s, store.MessageFilter{ID: id}), 3, "ann"))(t); len(r) != 1 || r[0].Done || r[0].Why != why {
			t.Errorf("%s: got %+v, want %q", id, r, why)
		}
	}
	accept(t, s, false, message("m3", "", "b"))
	finish(t, s, outcome(claim(t, s, "b", 1)[0], store.Delivered))
	if r := must(s.SendAgain(t.Context(), numbers(t, s, store.MessageFilter{ID: "m3"}), 3, "ann"))(t); r[0].Why != store.WhyNoEndpoint {
		t.Errorf("no endpoint: got %+v", r)
	}
	if r := must(s.SendAgain(t.Context(), []int64{1 << 40}, 3, "ann"))(t); len(r) != 0 {
		t.Errorf("no message: got %+v", r)
	}
}

// What waits for a deleted endpoint becomes dead letters with one alert, whatever
// it waits for, and nothing of it reaches one that is put under the same id.
func testAbandon(t *testing.T, s Store) {
	serve(t, s, "a", "b")
	late := message("late", "", "a")
	late.NotBefore = time.Now().AddDate(100, 0, 0)
	accept(t, s, true, message("k1", "k", "a"), message("k2", "k", "a"), message("k3", "k", "a"), message("s1", "", "a", "b"), late)
	under := claim(t, s, "a", 2) // k1, s1
	must(s.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{outcome(under[0], store.Released)}}))(t)
	if n := must(s.Abandon(t.Context(), 10))(t); n != 0 {
		t.Fatalf("%d abandoned before the endpoint was deleted", n)
	}
	check(t, s.DeleteEndpoint(t.Context(), "a", 0))
	put := func() error {
		_, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/2"})
		return err
	}
	wantErr(t, "put while messages wait", put(), store.ErrDeleting)
	// In batches: what one of them left is found by the next, of any process.
	total := 0
	for n := 1; n > 0; total += n {
		n = must(s.Abandon(t.Context(), 2))(t)
	}
	if total != 4 {
		t.Errorf("%d abandoned, want 4", total)
	}
	wantErr(t, "put while one is under way", put(), store.ErrDeleting)
	finish(t, s, outcome(under[1], store.Retried))
	if n := must(s.Abandon(t.Context(), 10))(t); n != 1 {
		t.Errorf("%d abandoned after the last attempt, want 1", n)
	}
	letters := must(s.List(t.Context(), queue.Filter{Reason: deadletter.ReasonDeleted, Destination: "a"}))(t)
	if len(letters) != 5 || string(letters[0].Payload) != `{"n":1}` {
		t.Errorf("letters are %+v", letters)
	}
	if alerts := must(s.AlertPage(t.Context(), 0, 10))(t); len(alerts) != 1 || alerts[0].Reason != deadletter.ReasonDeleted || alerts[0].Count != 5 {
		t.Errorf("alerts are %+v", alerts)
	}
	if n := len(claim(t, s, "b", 10)); n != 1 {
		t.Errorf("%d for another endpoint, want 1", n)
	}
	check(t, put())
	if n := len(claim(t, s, "a", 10)); n != 0 {
		t.Errorf("%d reach the new endpoint", n)
	}
	l := must(s.BeginRedrive(t.Context(), letters[0].ID, "job", "ann", 3))(t)
	check(t, s.Requeue(t.Context(), l, false))
	if n := len(claim(t, s, "a", 10)); n != 1 {
		t.Errorf("%d were redriven, want 1", n)
	}
}
