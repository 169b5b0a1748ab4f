package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// letter is a dead letter as a consumer writes it. Its payload holds a zero
// byte and its headers a repeated name out of order: a store that keeps text
// or a map would lose both.
func letter(id string) deadletter.Letter {
	return deadletter.Letter{
		ID: id, Queue: "orders", Destination: "worker", EventID: "ev-" + id, IdempotencyKey: "key-" + id, Reason: "exhausted", ErrorType: "http_500",
		Payload: []byte{1, 0, 2}, Headers: []deadletter.Header{{Name: "B", Value: "1"}, {Name: "A", Value: "2"}, {Name: "B", Value: "3"}}, State: deadletter.Dead,
	}
}

// A delivery that dies leaves a letter with the original body, its headers
// in order, and the history of attempts; and it raises one alert in the same
// write. R-8 asks for all of them: an alert without its letter, or a letter
// that no one hears of, is of no use.
func testLetter(t *testing.T, s Store) {
	m := message("m1", "", "a")
	m.Headers = []webhook.Header{{Name: "X-B", Value: "1"}, {Name: "X-A", Value: "2"}, {Name: "X-B", Value: "3"}}
	accept(t, s, false, m)
	d := claim(t, s, "a", 1)[0]
	// One failed attempt first: the history has to survive the claim that
	// ends it.
	retry := outcome(d, store.Retried)
	finish(t, s, retry)
	d = claim(t, s, "a", 1)[0]
	if ok := finish(t, s, deadLettered(d, "l1")); !ok[0] {
		t.Fatal("not written")
	}
	l := must(s.Get(t.Context(), "l1"))(t)
	if string(l.Payload) != string(m.Body) || fmt.Sprint(l.Headers) != fmt.Sprint(m.Headers) || l.EventID != "m1" || l.IdempotencyKey != "key-m1" || l.CorrelationID != "corr-m1" {
		t.Errorf("the original did not survive: %+v", l)
	}
	if len(l.History) != 2 || l.FirstAttempt.IsZero() || l.LastAttempt.Before(l.FirstAttempt) || l.DeadAt.IsZero() {
		t.Errorf("the history did not survive: %+v", l)
	}
	alerts := must(s.AlertPage(t.Context(), 0, 10))(t)
	if len(alerts) != 1 || alerts[0].Reason != "exhausted" || alerts[0].Queue != webhook.Queue || alerts[0].Letter != "l1" {
		t.Errorf("alerts are %+v", alerts)
	}
	if n := len(claim(t, s, "a", 1)); n != 0 {
		t.Error("a dead delivery was claimed")
	}
}

// Filters, pages, counts and statistics agree with one another. A redrive is
// begun from the count that an operator has seen, so that a count which
// differs from the pages would redrive more than was asked for.
func testFilter(t *testing.T, s Store) {
	for i := range 10 {
		l := letter(fmt.Sprint("l", i))
		if i%2 == 0 {
			l.Reason = "terminal"
		}
		check(t, s.Put(t.Context(), l))
		// A consumer repeats a Put whose response was lost.
		check(t, s.Put(t.Context(), l)) // once more: left as it is
	}
	f := queue.Filter{Queue: "orders", Reason: "terminal", State: deadletter.Dead}
	if n := must(s.Count(t.Context(), f))(t); n != 5 {
		t.Errorf("counted %d, want 5", n)
	}
	// Five letters in pages of two: the last page is short, and the next
	// one empty.
	f.Limit = 2
	var ids []string
	for {
		page := must(s.List(t.Context(), f))(t)
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			ids = append(ids, l.ID)
		}
		f.After = page[len(page)-1].ID
	}
	if fmt.Sprint(ids) != "[l0 l2 l4 l6 l8]" {
		t.Errorf("pages gave %v", ids)
	}
	f.Newest, f.After = true, "l6"
	if page := must(s.List(t.Context(), f))(t); len(page) != 2 || page[0].ID != "l4" || page[1].ID != "l2" {
		t.Errorf("the newest before l6 are %v", page)
	}
	stats := must(s.Stats(t.Context()))(t)
	if len(stats) != 2 || stats[0].Count != 5 || stats[0].Queue != "orders" || stats[0].Oldest.IsZero() {
		t.Errorf("stats are %+v", stats)
	}
	if n := must(s.Count(t.Context(), queue.Filter{Since: time.Now().Add(time.Hour)}))(t); n != 0 {
		t.Errorf("%d letters of the future", n)
	}
	if n := must(s.Remove(t.Context(), []string{"l0", "l1", "none"}))(t); n != 2 {
		t.Errorf("removed %d, want 2", n)
	}
	wantErr(t, "removed letter", errOf(s.Get(t.Context(), "l0")), queue.ErrNotFound)
}

// Discarding is final, needs a reason, and leaves an entry in the audit
// trail. A second discard fails and adds no entry.
func testDiscard(t *testing.T, s Store) {
	check(t, s.Put(t.Context(), letter("l1")))
	check(t, s.Discard(t.Context(), "l1", "ann", "test data"))
	if l := must(s.Get(t.Context(), "l1"))(t); l.State != deadletter.Discarded || l.Discard != "test data" {
		t.Errorf("got %+v", l)
	}
	wantErr(t, "second time", s.Discard(t.Context(), "l1", "ann", "again"), queue.ErrState)
	wantErr(t, "unknown", s.Discard(t.Context(), "none", "ann", ""), queue.ErrNotFound)
	// One entry: the refused attempts are not in the trail.
	a := must(s.AuditTrail(t.Context(), 10))(t)
	if len(a) != 1 || a[0].Who != "ann" || a[0].Action != "discard" || a[0].Target != "l1" || a[0].At.IsZero() {
		t.Errorf("audit is %+v", a)
	}
}

// What a filter chooses is discarded in bounded steps, each letter with its line in the
// audit trail. Other letters, and those in another state, stay as they are, and a filter
// that chooses everything is refused.
func testDiscardMany(t *testing.T, s Store) {
	const many = queue.MaxList + 20
	for i := range many + 3 {
		l := letter(fmt.Sprint("l", i))
		if l.Destination = "gone"; i >= many {
			l.Destination = "stays"
		}
		check(t, s.Put(t.Context(), l))
	}
	check(t, s.Discard(t.Context(), "l0", "ann", "by itself"))
	f := queue.Filter{Destination: "gone"}
	if n := must(s.DiscardMany(t.Context(), f, "ann", "one step"))(t); n != queue.MaxList {
		t.Errorf("one step discarded %d", n)
	}
	if n := must(queue.DiscardAll(t.Context(), s, f, "bob", "the rest"))(t); n != many-1-queue.MaxList {
		t.Errorf("the rest were %d", n)
	}
	for id, want := range map[string]string{"l0": "by itself", "l1": "one step", fmt.Sprint("l", many-1): "the rest", fmt.Sprint("l", many): ""} {
		if l := must(s.Get(t.Context(), id))(t); l.Discard != want || (l.State == deadletter.Discarded) != (want != "") {
			t.Errorf("%s is %s, %q; want %q", id, l.State, l.Discard, want)
		}
	}
	if n := must(s.Count(t.Context(), queue.Filter{State: deadletter.Dead}))(t); n != 3 {
		t.Errorf("%d letters are dead", n)
	}
	audited := map[string]string{}
	for _, e := range must(s.AuditTrail(t.Context(), 2*many))(t) {
		audited[e.Target] = e.Who + " " + e.Action + " " + e.Detail
	}
	if len(audited) != many || audited["l1"] != "ann discard one step" || audited[fmt.Sprint("l", many-1)] != "bob discard the rest" {
		t.Errorf("%d lines in the audit trail, that of l1 is %q", len(audited), audited["l1"])
	}
	for _, f := range []queue.Filter{{}, {Destination: "gone", State: deadletter.Resolved}} {
		if n, err := queue.DiscardAll(t.Context(), s, f, "ann", "why"); n != 0 || err == nil {
			t.Errorf("%+v: discarded %d, %v", f, n, err)
		}
	}
}

// A redrive keeps the message's id and idempotency key, so that the receiver
// recognises the event, and begins with fresh attempts. The letter follows
// it: failing while it is tried, dead again without a second letter,
// resolved at the end.
func testRedrive(t *testing.T, s Store) {
	accept(t, s, false, message("m1", "", "a"))
	d := claim(t, s, "a", 1)[0]
	spent := deadLettered(d, "l1")
	// The attempts are used up; a redrive has to begin with none.
	spent.Progress.State.Attempt = 5
	finish(t, s, spent)
	l := must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 3))(t)
	if l.State != deadletter.Redriving || l.Redrives != 1 || l.RedrivenBy != "ann" || l.Job != "job" {
		t.Errorf("got %+v", l)
	}
	check(t, s.Requeue(t.Context(), l, false))
	// As after a crash between sending and recording.
	check(t, s.Requeue(t.Context(), l, false)) // harmless
	again := claim(t, s, "a", 10)
	if len(again) != 1 {
		t.Fatalf("%d deliveries, want 1", len(again))
	}
	a := again[0]
	if a.Message.ID != "m1" || a.Message.IdempotencyKey != "key-m1" || a.Progress.State.Attempt != 0 || a.Letter != "l1" || !a.Start.After(d.Start) {
		t.Errorf("got %+v", a)
	}
	finish(t, s, outcome(a, store.Retried))
	if l := must(s.Get(t.Context(), "l1"))(t); l.Outcome != deadletter.RedriveFailing || l.State != deadletter.Redriving {
		t.Errorf("after a failed attempt: %s, %s", l.State, l.Outcome)
	}
	finish(t, s, deadLettered(claim(t, s, "a", 1)[0], "new"))
	if l := must(s.Get(t.Context(), "l1"))(t); l.Outcome != deadletter.RedriveDead || l.State != deadletter.Dead || l.Redrives != 1 || len(l.History) != 3 {
		t.Errorf("dead again: %+v", l)
	}
	wantErr(t, "a second letter was written", errOf(s.Get(t.Context(), "new")), queue.ErrNotFound)
	l = must(s.BeginRedrive(t.Context(), "l1", "job2", "ann", 3))(t)
	check(t, s.Requeue(t.Context(), l, false))
	finish(t, s, outcome(claim(t, s, "a", 1)[0], store.Delivered))
	if l := must(s.Get(t.Context(), "l1"))(t); l.State != deadletter.Resolved || l.Outcome != deadletter.RedriveDelivered {
		t.Errorf("delivered: %s, %s", l.State, l.Outcome)
	}
}

// The limit counts redrives begun, whatever their outcome. A letter that dies
// each time would otherwise circulate for ever.
func testRedriveLimit(t *testing.T, s Store) {
	check(t, s.Put(t.Context(), letter("l1")))
	for range 2 {
		must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 2))(t)
		wantErr(t, "while it is being redriven", errOf(s.BeginRedrive(t.Context(), "l1", "job", "ann", 2)), queue.ErrState)
		check(t, s.RecordRedrive(t.Context(), "l1", deadletter.RedriveDead))
	}
	wantErr(t, "third time", errOf(s.BeginRedrive(t.Context(), "l1", "job", "ann", 2)), queue.ErrRedriveLimit)
	for job, want := range map[string]int{"other": 1, "job": 0} {
		if n := must(s.Count(t.Context(), queue.Filter{State: deadletter.Dead, NotJob: job}))(t); n != want {
			t.Errorf("%d letters that are not of %s, want %d", n, job, want)
		}
	}
	// What the limit refuses is not counted for a new job either.
	if n := must(s.Count(t.Context(), queue.Filter{State: deadletter.Dead, MaxRedrives: 2}))(t); n != 0 {
		t.Errorf("%d letters left for a redrive", n)
	}
}

// A job's holder may die at any time: its lease ends, another process takes
// the job over, and the first holder's progress is refused. A pause or a
// cancellation by an operator wins over progress that was on its way.
func testJobs(t *testing.T, s Store) {
	check(t, s.PutJob(t.Context(), queue.Job{ID: "j1", By: "ann", State: queue.JobRunning, Rate: 10, Total: 3}))
	j, ok, err := s.ClaimJob(t.Context(), "w1", time.Millisecond)
	if check(t, err); !ok || j.ID != "j1" || j.Rate != 10 || j.Total != 3 {
		t.Fatalf("got %+v, %v", j, ok)
	}
	time.Sleep(5 * time.Millisecond)
	j2, ok, err := s.ClaimJob(t.Context(), "w2", lease)
	if check(t, err); !ok || j2.Fence <= j.Fence {
		t.Fatalf("an expired lease was not taken over: %+v", j2)
	}
	if _, ok, err := s.ClaimJob(t.Context(), "w3", lease); ok || err != nil {
		t.Fatalf("a held job was given away: %v", err)
	}
	wantErr(t, "the old holder wrote", errOf(s.UpdateJob(t.Context(), j, lease)), queue.ErrFenced)
	// The pause arrives while the holder has not yet written its progress.
	check(t, s.SetJobState(t.Context(), "j1", queue.JobPaused, "bob"))
	j2.Begun = 2
	now := must(s.UpdateJob(t.Context(), j2, lease))(t)
	if now.State != queue.JobPaused {
		t.Errorf("the pause was overwritten: %s", now.State)
	}
	if got := must(s.Job(t.Context(), "j1"))(t); got.Begun != 2 || got.State != queue.JobPaused {
		t.Errorf("got %+v", got)
	}
	check(t, s.SetJobState(t.Context(), "j1", queue.JobCanceled, "bob"))
	wantErr(t, "a canceled job was resumed", s.SetJobState(t.Context(), "j1", queue.JobRunning, "bob"), queue.ErrState)

	// Jobs of one application take turns; those of others, and the operator's, do not wait.
	for _, j := range []struct{ id, application string }{{"a1", "a"}, {"a2", "a"}, {"b1", "b"}, {"all", ""}, {"all2", ""}} {
		check(t, s.PutJob(t.Context(), queue.Job{ID: j.id, By: "ann", State: queue.JobRunning, Rate: 10, Total: 1, Filter: queue.Filter{Application: j.application}}))
	}
	held := map[string]queue.Job{}
	for range 6 {
		j, ok, err := s.ClaimJob(t.Context(), "w1", lease)
		if check(t, err); ok {
			held[j.ID] = j
		}
	}
	if _, first := held["a1"]; len(held) != 4 || !first {
		t.Errorf("held are %v", held)
	}
	first := held["a1"]
	first.State = queue.JobDone
	must(s.UpdateJob(t.Context(), first, lease))(t)
	if j, ok, err = s.ClaimJob(t.Context(), "w1", lease); err != nil || !ok || j.ID != "a2" {
		t.Errorf("after the first of its application: %+v, %v", j, ok)
	}
}

// Many letters of one queue and reason make one alert with a count, so that
// an outage does not page once per message. A claimed alert whose sender
// dies becomes due again; what follows a sent alert is gathered before it is
// sent.
func testAlerts(t *testing.T, s Store) {
	for range 100 {
		check(t, s.Raise(t.Context(), queue.Alert{Queue: "q", Reason: "exhausted", Letter: "l"}))
	}
	// Another reason is another alert: it needs another remedy.
	check(t, s.Raise(t.Context(), queue.Alert{Queue: "q", Reason: "tls_certificate"}))
	list := must(s.ClaimAlerts(t.Context(), 10, time.Millisecond))(t)
	if len(list) != 2 {
		t.Fatalf("%d alerts, want one for each reason", len(list))
	}
	counts := map[string]int{}
	for _, a := range list {
		counts[a.Reason] = a.Count
	}
	if counts["exhausted"] != 100 || counts["tls_certificate"] != 1 {
		t.Errorf("counts are %v", counts)
	}
	// A sender that dies loses nothing.
	time.Sleep(5 * time.Millisecond)
	list = must(s.ClaimAlerts(t.Context(), 10, lease))(t)
	if len(list) != 2 {
		t.Fatalf("%d alerts after the sender's death, want 2", len(list))
	}
	if again := must(s.ClaimAlerts(t.Context(), 10, lease))(t); len(again) != 0 {
		t.Errorf("claimed alerts were given away: %+v", again)
	}
	for _, a := range list {
		// Sent names who has the alert, so that a repetition skips them.
		a.Sent, a.Tries = []string{"log"}, 1
		check(t, s.WriteBackAlert(t.Context(), a, true, 0))
	}
	// What comes right after is gathered, not dropped and not sent at once.
	check(t, s.Raise(t.Context(), queue.Alert{Queue: "q", Reason: "exhausted"}))
	if again := must(s.ClaimAlerts(t.Context(), 10, lease))(t); len(again) != 0 {
		t.Errorf("the next alert did not wait: %+v", again)
	}
	all := must(s.AlertPage(t.Context(), 0, 10))(t)
	if len(all) != 3 || all[0].Done || !all[1].Done || all[2].Count+all[1].Count != 101 {
		t.Errorf("alerts are %+v", all)
	}
}
