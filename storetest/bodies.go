package storetest

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A body goes when it has arrived everywhere, and the message stays known: the same
// one again is a duplicate, another one is refused, and the history is there.
func testBodies(t *testing.T, s Store) {
	m := message("m1", "", "a", "b")
	accept(t, s, false, m, message("dead", "", "a"))
	for _, d := range claim(t, s, "a", 2) {
		o := outcome(d, store.Delivered)
		if o.Attempt.Response = "quoted"; d.Message.ID == "dead" {
			o = deadLettered(d, "dlq_1")
		}
		finish(t, s, o)
	}
	drop := func() int {
		t.Helper()
		time.Sleep(5 * time.Millisecond)
		return must(s.DropBodies(t.Context(), time.Millisecond, 10))(t)
	}
	drop()
	if d := claim(t, s, "b", 1); len(d) != 1 || string(d[0].Message.Body) != string(m.Body) {
		t.Fatalf("b was not sent to yet, and its delivery is %+v", d)
	} else {
		finish(t, s, outcome(d[0], store.Delivered))
	}
	if n := drop(); n != 1 {
		t.Errorf("looked at %d deliveries, want the one of b", n)
	}
	if n := drop(); n != 0 {
		t.Errorf("looked at %d deliveries again", n)
	}
	if a := accept(t, s, false, m); !a[0].Duplicate {
		t.Errorf("the same again: %+v", a)
	}
	other := m
	other.Body = []byte(`{"n":2}`)
	wantErr(t, "another body", errOf(s.Accept(t.Context(), []webhook.Message{other}, nil)), webhook.ErrConflict)
	other = m
	other.Body = m.Dropped().Body
	wantErr(t, "the digest as a body", errOf(s.Accept(t.Context(), []webhook.Message{other}, nil)), webhook.ErrConflict)
	for _, d := range must(s.Deliveries(t.Context(), "m1"))(t) {
		if d.State != "delivered" || len(d.History) != 1 || d.History[0].Response != "" || d.History[0].Status != 503 {
			t.Errorf("the history is %+v", d)
		}
	}
	// What may be redriven keeps its body.
	check(t, errOf(s.BeginRedrive(t.Context(), "dlq_1", "job", "test", 3)))
	check(t, s.Requeue(t.Context(), must(s.Get(t.Context(), "dlq_1"))(t), false))
	if d := claim(t, s, "a", 1); len(d) != 1 || string(d[0].Message.Body) != `{"n":1}` {
		t.Errorf("redriven: %+v", d)
	}
}
