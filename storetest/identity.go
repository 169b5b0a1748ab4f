package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// saying is a message with a body of its own, for tests that distinguish
// messages by content.
func saying(id, key, body string, endpoints ...string) webhook.Message {
	m := message(id, key, endpoints...)
	m.Body = []byte(body)
	return m
}

// wantBodies claims what is due at an endpoint and holds it to a list of id=body.
func wantBodies(t *testing.T, s Store, endpoint, want string) {
	t.Helper()
	var got []string
	for _, d := range claim(t, s, endpoint, 100) {
		got = append(got, d.Message.ID+"="+string(d.Message.Body))
	}
	if fmt.Sprint(got) != want {
		t.Errorf("endpoint %s gets %v, want %s", endpoint, got, want)
	}
}

// A message is its id and its endpoint: the same id at another endpoint is
// another message, whether it comes in the same call or a later one. A call
// is a duplicate only when it adds no delivery at all.
func testIdentity(t *testing.T, s Store) {
	accept(t, s, false, saying("m1", "", "for a", "a"))
	if r := accept(t, s, false, saying("m1", "", "for b", "b")); r[0].Duplicate {
		t.Error("another endpoint's message was called a duplicate")
	}
	if r := accept(t, s, false, saying("m2", "", "for both", "a", "b")); r[0].Duplicate {
		t.Error("a new message was called a duplicate")
	}
	if r := accept(t, s, false, saying("m2", "", "for both", "b", "c")); r[0].Duplicate {
		t.Error("a message that is new at one of its endpoints was called a duplicate")
	}
	if r := accept(t, s, false, saying("m2", "", "for both", "c", "b", "a", "a")); !r[0].Duplicate {
		t.Error("a message that is known at each of its endpoints was not called a duplicate")
	}
	for endpoint, want := range map[string]string{"a": "[m1=for a m2=for both]", "b": "[m1=for b m2=for both]", "c": "[m2=for both]"} {
		wantBodies(t, s, endpoint, want)
	}
	if list := must(s.Deliveries(t.Context(), "m1"))(t); len(list) != 2 || list[0].Endpoint != "a" || list[1].Endpoint != "b" {
		t.Errorf("m1 is listed as %+v", list)
	}
}

// Other content under a known identity is refused, and nothing of its call
// is added. What differs without being content makes no conflict: a
// correlation id changes with each try, and NotBefore says when to send, not
// what.
func testConflict(t *testing.T, s Store) {
	first := saying("m1", "", "first", "a")
	first.Headers = []webhook.Header{{Name: "X-A", Value: "1"}, {Name: "X-B", Value: "2"}}
	accept(t, s, false, first)
	again := first
	// application/json is the default content type: writing it out changes
	// nothing.
	again.CorrelationID, again.NotBefore, again.ContentType = "another", time.Now().Add(time.Hour), "application/json"
	if r := accept(t, s, false, again); !r[0].Duplicate {
		t.Error("the same content was not called a duplicate")
	}
	for name, change := range map[string]func(*webhook.Message){
		"body":            func(m *webhook.Message) { m.Body = []byte("second") },
		"no body":         func(m *webhook.Message) { m.Body = nil },
		"type":            func(m *webhook.Message) { m.Type = "other" },
		"source":          func(m *webhook.Message) { m.Source = "other" },
		"subject":         func(m *webhook.Message) { m.Subject = "other" },
		"key":             func(m *webhook.Message) { m.Key = "other" },
		"idempotency key": func(m *webhook.Message) { m.IdempotencyKey = "other" },
		"content type":    func(m *webhook.Message) { m.ContentType = "text/plain" },
		"header":          func(m *webhook.Message) { m.Headers = m.Headers[:1] },
		"order":           func(m *webhook.Message) { m.Headers = []webhook.Header{m.Headers[1], m.Headers[0]} },
	} {
		m := first
		change(&m)
		// New endpoints stand around the known one: a store that adds as
		// it goes would leave a delivery to c behind.
		m.Endpoints = []string{"c", "a", "b"}
		_, err := s.Accept(t.Context(), []webhook.Message{saying("before "+name, "", "x", "b"), m, saying("behind "+name, "", "x", "b")}, nil)
		wantErr(t, "another "+name, err, webhook.ErrConflict)
	}
	_, err := s.Accept(t.Context(), []webhook.Message{saying("m2", "", "one", "b"), saying("m2", "", "two", "b")}, nil)
	wantErr(t, "one call that contradicts itself", err, webhook.ErrConflict)
	if r := accept(t, s, false, saying("m3", "", "x", "a"), saying("m3", "", "x", "a")); r[0].Duplicate || !r[1].Duplicate {
		t.Errorf("one call that says the same twice: got %+v", r)
	}
	for endpoint, want := range map[string]string{"a": "[m1=first m3=x]", "b": "[]", "c": "[]"} {
		wantBodies(t, s, endpoint, want)
	}
}

// Of many calls that claim an identity at the same time one wins. The others
// are duplicates or refused, and what was accepted is what is delivered.
// Half of the callers go through the ids backwards, so that a store that
// locks rows in the order of arrival would deadlock.
func testConflictRace(t *testing.T, s Store) {
	const ids, callers = 40, 8
	var mu sync.Mutex
	taken := map[string]string{}
	parallel(callers, func(c int) {
		for i := range ids {
			if c%2 == 1 {
				i = ids - 1 - i // against the others' order
			}
			id, body := fmt.Sprintf("m%02d", i), fmt.Sprint("body ", c%3)
			endpoints := [][]string{{"a"}, {"b", "a"}, {"a", "c"}}[(c+i)%3]
			_, err := s.Accept(t.Context(), []webhook.Message{saying(id, fmt.Sprint("k", i%5), body, endpoints...)}, map[string]bool{"a": true})
			// Another caller was first with other content, which is
			// a right result.
			if errors.Is(err, webhook.ErrConflict) {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, e := range endpoints {
				if other, ok := taken[id+e]; ok && other != body {
					t.Errorf("%s to %s was accepted with %q and with %q", id, e, other, body)
				}
				taken[id+e] = body
			}
			mu.Unlock()
		}
	})
	// Everything is delivered in the end, key by key, since finishing lets
	// the next one go.
	got := map[string]string{}
	for _, e := range []string{"a", "b", "c"} {
		for {
			list := claim(t, s, e, 100)
			if len(list) == 0 {
				break
			}
			for _, d := range list {
				got[d.Message.ID+e] = string(d.Message.Body)
				finish(t, s, outcome(d, store.Delivered))
			}
		}
	}
	for name, body := range taken {
		if got[name] != body {
			t.Errorf("%s was accepted with %q and delivered with %q", name, body, got[name])
		}
	}
	if len(got) != len(taken) {
		t.Errorf("%d delivered, %d accepted", len(got), len(taken))
	}
}

// A duplicate or refused message of a key delays no later one of that key:
// nothing will ever finish on its behalf.
func testDuplicateHoldsNoKey(t *testing.T, s Store) {
	accept(t, s, true, saying("k1", "k", "1", "a"))
	finish(t, s, outcome(claim(t, s, "a", 1)[0], store.Delivered))
	accept(t, s, true, saying("k1", "k", "1", "a"), saying("k2", "k", "2", "a"), saying("k3", "k", "3", "a"))
	if got := deliverAll(t, s, "a"); fmt.Sprint(got) != "[k2 k3]" {
		t.Errorf("behind a duplicate came %v, want k2 and k3", got)
	}
}

// A letter's redrive sends the letter's own payload to its own endpoint and
// nothing else, even when another message was accepted under its id
// meanwhile. The second half has such a message at the same endpoint: there
// the redrive is refused.
func testRedriveIdentity(t *testing.T, s Store) {
	l := letter("l1")
	l.EventID, l.Destination, l.Payload = "m1", "a", []byte("the letter's")
	check(t, s.Put(t.Context(), l))
	accept(t, s, false, saying("m1", "", "another's", "b"))
	l = must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 5))(t)
	check(t, s.Requeue(t.Context(), l, false))
	wantBodies(t, s, "a", "[m1=the letter's]")
	wantBodies(t, s, "b", "[m1=another's]")

	// The second half: the id stands for another message at the very
	// endpoint of the letter.
	l = letter("l2")
	l.EventID, l.Destination, l.Payload = "m2", "a", []byte("the letter's")
	check(t, s.Put(t.Context(), l))
	accept(t, s, false, saying("m2", "", "another's", "a"))
	l = must(s.BeginRedrive(t.Context(), "l2", "job", "ann", 5))(t)
	wantErr(t, "the id stands for another message", s.Requeue(t.Context(), l, false), webhook.ErrConflict)
	wantBodies(t, s, "a", "[m2=another's]")
}

// A producer may send a message again while its letter lies dead. The letter
// is then resolved by that delivery, before or after the redrive begins, and
// the message is not sent twice.
func testRedriveOfDelivered(t *testing.T, s Store) {
	for _, id := range []string{"m1", "m2"} {
		m := message(id, "", "a")
		l := letter("l-" + id)
		l.EventID, l.Destination, l.Type, l.Source, l.Subject, l.PartitionKey, l.ContentType = id, "a", m.Type, "", "", "", ""
		// The letter has the same content as the message, so that they are
		// one.
		l.IdempotencyKey, l.Payload, l.Headers = m.IdempotencyKey, m.Body, nil
		check(t, s.Put(t.Context(), l))
		accept(t, s, false, m)
	}
	d := claim(t, s, "a", 2)
	finish(t, s, outcome(d[0], store.Delivered)) // before the redrive
	for _, id := range []string{"m1", "m2"} {
		l := must(s.BeginRedrive(t.Context(), "l-"+id, "job", "ann", 5))(t)
		check(t, s.Requeue(t.Context(), l, false))
	}
	finish(t, s, outcome(d[1], store.Delivered)) // after it
	for _, id := range []string{"l-m1", "l-m2"} {
		if l := must(s.Get(t.Context(), id))(t); l.State != deadletter.Resolved || l.Outcome != deadletter.RedriveDelivered {
			t.Errorf("%s is %s, %q", id, l.State, l.Outcome)
		}
	}
	if n := len(claim(t, s, "a", 10)); n != 0 {
		t.Errorf("%d were sent again", n)
	}
}

// A redriven message keeps to its key: it goes next, ahead of those that
// were held, and never beside one that is already on its way.
func testRedriveKeepsKey(t *testing.T, s Store) {
	accept(t, s, true, message("k1", "k", "a"), message("k2", "k", "a"), message("k3", "k", "a"))
	finish(t, s, deadLettered(claim(t, s, "a", 1)[0], "l1"))
	second := claim(t, s, "a", 10)
	l := must(s.BeginRedrive(t.Context(), "l1", "job", "ann", 3))(t)
	check(t, s.Requeue(t.Context(), l, true))
	if list := claim(t, s, "a", 10); len(second) != 1 || len(list) != 0 {
		t.Fatalf("%d and %d of one key at once", len(second), len(list))
	}
	finish(t, s, outcome(second[0], store.Delivered))
	// k2 was on its way when k1 was redriven, and is finished above.
	if got := deliverAll(t, s, "a"); fmt.Sprint(got) != "[k1 k3]" {
		t.Errorf("then came %v, want the redriven one and the rest", got)
	}
}
