package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook/store"
)

// A letter comes back with all that says why it is dead, and letters of one cause
// are counted and found together.
func testCauses(t *testing.T, s Store) {
	failing := func(id, text string) deadletter.Letter {
		l := letter(id)
		l.Error, l.Chain, l.TraceID = text, []string{"*fmt.wrapError", "*net.OpError"}, "0af7651916cd43dd8448eb211c80319c"
		l.Panic, l.Stack = `bad key "quoted"`, "main.charge()\n\t/app/main.go:7"
		l.History = []deadletter.Attempt{{Number: 1, Claim: 1, ErrorType: "http_500", Class: "transient", Error: text, Chain: l.Chain}}
		return l
	}
	put := failing("l0", `order 1 of "Ann" failed`)
	check(t, s.Put(t.Context(), put))
	check(t, s.Put(t.Context(), failing("l1", `order 2 of "Bob" failed`)))
	other := failing("l2", "no such account")
	other.Panic, other.Stack = "", ""
	check(t, s.Put(t.Context(), other))
	check(t, s.Put(t.Context(), letter("old"))) // as an earlier version wrote it
	got := must(s.Get(t.Context(), "l0"))(t)
	if got.Error != put.Error || got.Panic != put.Panic || got.Stack != put.Stack || got.TraceID != put.TraceID || !reflect.DeepEqual(got.Chain, put.Chain) {
		t.Errorf("it does not say why: %+v", got)
	}
	if len(got.History) != 1 || !reflect.DeepEqual(got.History[0].Chain, put.Chain) || got.History[0].Error != put.Error || got.History[0].Class != "transient" {
		t.Errorf("its history does not say why: %+v", got.History)
	}
	if got.Cause != put.Fingerprint() {
		t.Errorf("cause %q, want %q", got.Cause, put.Fingerprint())
	}
	causes := must(s.Causes(t.Context(), 10))(t)
	if len(causes) != 3 {
		t.Fatalf("causes are %+v", causes)
	}
	first := causes[0]
	if first.Cause != got.Cause || first.Count != 2 || first.Letter != "l1" || first.Queue != "orders" || first.Reason != "exhausted" || first.Destination != "worker" ||
		first.ErrorType != "http_500" || first.Error != `bad key "***"` || first.Oldest.IsZero() || first.Newest.Before(first.Oldest) {
		t.Errorf("the most frequent cause is %+v", first)
	}
	if n := len(must(s.Causes(t.Context(), 1))(t)); n != 1 {
		t.Errorf("%d causes, want the one that was asked for", n)
	}
	list := must(s.List(t.Context(), queue.Filter{Cause: got.Cause}))(t)
	if len(list) != 2 || list[0].ID != "l0" || list[1].ID != "l1" {
		t.Errorf("the cause chose %+v", list)
	}
	again := failing("l2", "the account is closed")
	check(t, s.Put(t.Context(), again)) // the source was not acknowledged
	if l := must(s.Get(t.Context(), "l2"))(t); l.Error != "no such account" {
		t.Errorf("a second letter has changed the first: %+v", l)
	}
	began := must(s.BeginRedrive(t.Context(), "l2", "job", "ann", 3))(t)
	check(t, s.Put(t.Context(), again)) // it has died again
	check(t, s.RecordRedrive(t.Context(), "l2", deadletter.RedriveDead))
	if l := must(s.Get(t.Context(), "l2"))(t); l.Error != "the account is closed" || l.Cause != again.Fingerprint() || l.State != deadletter.Dead ||
		l.Outcome != deadletter.RedriveDead || l.Redrives != 1 || l.RedrivenBy != "ann" || !l.DeadAt.Equal(began.DeadAt) {
		t.Errorf("after a failed redrive: %+v", l)
	}
	check(t, s.Discard(t.Context(), "l1", "ann", "test data"))
	causes = must(s.Causes(t.Context(), 10))(t)
	n := 0
	for _, c := range causes {
		n += c.Count
	}
	if n != 3 {
		t.Errorf("what is no longer dead counts: %+v", causes)
	}
}

// The letter of a delivery says why from its attempts, in whatever process they
// were; and when a redrive fails it says why that did.
func testCauseOfDelivery(t *testing.T, s Store) {
	fail := func(o store.WriteBack, text string) store.WriteBack {
		o.Attempt.Class, o.Attempt.Error, o.Attempt.Chain = "transient", text, []string{"*net.OpError", "syscall.Errno"}
		return o
	}
	accept(t, s, false, message("m1", "", "a"))
	finish(t, s, fail(outcome(claim(t, s, "a", 1)[0], store.Retried), "connection refused"))
	d := claim(t, s, "a", 1)[0]
	last := fail(deadLettered(d, "l1"), "broken pipe")
	finish(t, s, last)
	l := must(s.Get(t.Context(), "l1"))(t)
	if l.Error != "broken pipe" || fmt.Sprint(l.Chain) != "[*net.OpError syscall.Errno]" || l.Cause != l.Fingerprint() || len(l.History) != 2 || l.History[0].Error != "connection refused" ||
		l.History[0].Class != "transient" || fmt.Sprint(l.History[0].Chain) != "[*net.OpError syscall.Errno]" {
		t.Errorf("got %+v", l)
	}
	again := must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 3))(t)
	check(t, s.Requeue(t.Context(), again, false))
	finish(t, s, fail(deadLettered(claim(t, s, "a", 1)[0], "new"), "no such host"))
	was := l.Cause
	if l = must(s.Get(t.Context(), "l1"))(t); l.Error != "no such host" || l.Cause == was || l.Cause != l.Fingerprint() || string(l.Payload) != `{"n":1}` {
		t.Errorf("after a failed redrive: %+v", l)
	}
}
