package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// What a process left of a deletion when it died is done by the next one, and so
// is what a process accepted that had not heard of the deletion.
func TestDeletionGoesOnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		if _, err := s.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/"}); err != nil {
			t.Fatal(err)
		}
		offer := func(id string) {
			if _, err := s.Accept(t.Context(), []webhook.Message{{ID: id, Endpoints: []string{"a"}, Body: []byte("{}")}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		offer("m1")
		if err := s.DeleteEndpoint(t.Context(), "a", 0); err != nil { // and no more, as if it was killed
			t.Fatal(err)
		}
		to := &receiver{respond: always(200)}
		began := time.Now()
		run(t, s, dispatch.Config{Transport: to})
		time.Sleep(time.Minute)
		offer("m2")
		time.Sleep(time.Minute)
		letters, err := s.List(t.Context(), queue.Filter{Reason: deadletter.ReasonDeleted})
		if err != nil || len(letters) != 2 || to.since(began) != 0 {
			t.Errorf("%d letters, %v, and %d sends, want 2 and none", len(letters), err, to.since(began))
		}
	})
}

// A message that is canceled while it is sent gets no further attempt.
func TestCanceledMessageIsSentNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		to := &receiver{respond: always(503), takes: time.Second}
		began := time.Now()
		d := run(t, s, dispatch.Config{Transport: to}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		accept(t, d, 1)
		for to.since(began) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		page, err := s.Messages(t.Context(), store.MessageFilter{}, 0, 10)
		if err != nil || len(page.Messages) != 1 || page.Messages[0].State != store.StateSending {
			t.Fatalf("got %+v, %v", page, err)
		}
		if r, err := d.Cancel(t.Context(), []int64{page.Messages[0].Number}, "ann"); err != nil || r[0].State != store.StateCanceling {
			t.Fatalf("got %+v, %v", r, err)
		}
		time.Sleep(time.Hour)
		if page, _ = s.Messages(t.Context(), store.MessageFilter{}, 0, 10); page.Messages[0].State != store.StateCanceled || to.since(began) != 1 {
			t.Errorf("%s after %d sends, want canceled after one", page.Messages[0].State, to.since(began))
		}
	})
}
