package storetest

import (
	"fmt"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What is sent of a message can be read whatever its state, for each content that its
// id stands for.
func testContents(t *testing.T, s Store) {
	m := message("m1", "k", "a")
	m.Headers, m.Subject = []webhook.Header{{Name: "X-Plan", Value: "gold"}}, "s"
	other := message("m1", "", "b")
	other.Body = []byte("other")
	accept(t, s, false, m, other)
	list := must(s.Contents(t.Context(), "m1", nil, 10))(t)
	if len(list) != 2 || fmt.Sprint(list[0].Endpoints, list[1].Endpoints) != "[a] [b]" || string(list[0].Payload) != `{"n":1}` || string(list[1].Payload) != "other" ||
		list[0].Subject != "s" || list[0].Key != "k" || list[0].IdempotencyKey != "key-m1" || len(list[0].Headers) != 1 {
		t.Errorf("got %+v", list)
	}
	if list = must(s.Contents(t.Context(), "m1", nil, 1))(t); len(list) != 1 {
		t.Errorf("at most one: %+v", list)
	}
	if list = must(s.Contents(t.Context(), "m1", []string{"b", "none"}, 1))(t); len(list) != 1 || string(list[0].Payload) != "other" {
		t.Errorf("at one endpoint: %+v", list)
	}
	if list = must(s.Contents(t.Context(), "none", nil, 10))(t); len(list) != 0 {
		t.Errorf("of none: %+v", list)
	}
}

// Of an erased message there are its id, its states and times. What waited is
// canceled, what was dead is not redriven, and the same message is known. What is
// under way is refused.
func testErase(t *testing.T, s Store) {
	serve(t, s, "a", "b", "c")
	m := message("m1", "k", "a", "b", "c")
	m.Headers = []webhook.Header{{Name: "X-Plan", Value: "gold"}}
	accept(t, s, true, m, message("next", "k", "b"))
	o := outcome(claim(t, s, "a", 1)[0], store.Delivered)
	o.Attempt.Response = "quoted"
	finish(t, s, o)
	under := claim(t, s, "c", 1)[0]
	erase := func(endpoints ...string) (int, error) { return s.Erase(t.Context(), "m1", endpoints, "ann") }
	wantErr(t, "under way", errOf(erase()), store.ErrSending)
	if c := must(s.Contents(t.Context(), "m1", nil, 10))(t); c[0].Erased || c[0].Subject != m.Subject {
		t.Errorf("refused, and erased: %+v", c)
	}
	finish(t, s, deadLettered(under, "l1"))
	// At one endpoint, and then at all of them.
	if n := must(erase("a"))(t); n != 1 {
		t.Errorf("%d erased at one endpoint", n)
	}
	for _, c := range must(s.Contents(t.Context(), "m1", nil, 10))(t) {
		if c.Erased != (c.Endpoints[0] == "a") || !c.Erased && string(c.Payload) != `{"n":1}` {
			t.Errorf("after one endpoint: %+v", c)
		}
	}
	for range 2 {
		if n := must(erase())(t); n != 4 {
			t.Errorf("%d erased, want 3 deliveries and a letter", n)
		}
	}
	for _, c := range must(s.Contents(t.Context(), "m1", nil, 10))(t) {
		if !c.Erased || c.Payload != nil || c.Headers != nil || c.Type != "" || c.Key != "" || c.IdempotencyKey != "" {
			t.Errorf("kept is %+v", c)
		}
	}
	for _, i := range must(s.Messages(t.Context(), store.MessageFilter{Endpoints: []string{"a", "b", "c"}}, 0, 10))(t).Messages {
		if i.Erased != (i.ID == "m1") {
			t.Errorf("the list has %+v", i)
		}
	}
	if got := fmt.Sprint(states(t, s, "m1")); got != "[delivered canceled dead]" {
		t.Errorf("the states are %s", got)
	}
	for _, d := range must(s.Deliveries(t.Context(), "m1"))(t) {
		if !d.Due.IsZero() {
			t.Errorf("%s has ended, and is due at %s", d.State, d.Due)
		}
		for _, a := range d.History {
			if a.Response != "" || a.Error != "" || a.Status != 503 {
				t.Errorf("the history has %+v", a)
			}
		}
	}
	l := must(s.Get(t.Context(), "l1"))(t)
	if l.State != deadletter.Discarded || l.Discard != "erased" || l.Payload != nil || l.Type != "" || l.Reason == "" || l.EventID != "m1" {
		t.Errorf("the letter is %+v", l)
	}
	for _, r := range must(s.SendAgain(t.Context(), numbers(t, s, store.MessageFilter{ID: "m1"}), 3, "ann"))(t) {
		if r.Done {
			t.Errorf("sent again: %+v", r)
		}
	}
	wantErr(t, "redriven", s.Requeue(t.Context(), deadletter.Letter{ID: "l1", Queue: webhook.Queue, EventID: "m1", Destination: "c", Payload: m.Body}, false), webhook.ErrConflict)
	if a := accept(t, s, true, m); !a[0].Duplicate {
		t.Errorf("the same again: %+v", a)
	}
	m.Headers[0].Value = "silver"
	wantErr(t, "another one", errOf(s.Accept(t.Context(), []webhook.Message{m}, nil)), webhook.ErrConflict)
	if d := claim(t, s, "b", 10); len(d) != 1 || d[0].Message.ID != "next" {
		t.Errorf("the next of the key: %+v", d)
	}
	if n := must(s.Erase(t.Context(), "none", nil, "ann"))(t); n != 0 {
		t.Errorf("%d of none", n)
	}
	if trail := must(s.AuditTrail(t.Context(), 10))(t); len(trail) == 0 || trail[0].Who != "ann" || trail[0].Action != "message-erase" || trail[0].Target != "m1" {
		t.Errorf("the audit has %+v", trail)
	}
}
