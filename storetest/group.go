package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
)

// A store may group the writes of several callers into one transaction. A
// caller that gives up must not roll back what it shares with others: each
// of those had its write acknowledged.
func testCanceled(t *testing.T, s Store) {
	parallel(40, func(i int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// Every second caller gives up at some moment of its write.
		if i%2 == 0 {
			go cancel()
		}
		_, err := s.Accept(ctx, []webhook.Message{message(fmt.Sprint("m", i), "", "a")}, nil)
		// A caller that gave up may see either result; the others
		// must see success.
		if err != nil && i%2 == 1 {
			t.Errorf("message %d: %v", i, err)
		}
	})
	// What the even callers wrote may be there or not.
	seen := map[string]bool{}
	for _, d := range claim(t, s, "a", 100) {
		seen[d.Message.ID] = true
	}
	for i := 1; i < 40; i += 2 {
		if !seen[fmt.Sprint("m", i)] {
			t.Errorf("message %d was acknowledged and is lost", i)
		}
	}
}

// A write that the database refuses must not take down those that share its
// transaction. The duplicate job is such a write: its key violates a
// constraint, and PostgreSQL then aborts the whole transaction.
func testBadMember(t *testing.T, s Store) {
	job := queue.Job{ID: "j", By: "ann", State: queue.JobPaused}
	check(t, s.PutJob(t.Context(), job))
	parallel(60, func(i int) {
		// A third of the writes are refused, so that groups with and
		// without one occur.
		if i%3 == 0 {
			if err := s.PutJob(t.Context(), job); err == nil {
				t.Error("the same job twice")
			}
			return
		}
		if _, err := s.Accept(t.Context(), []webhook.Message{message(fmt.Sprint("m", i), "", "a")}, nil); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	})
	// Two thirds of sixty are messages, and none may be missing.
	if n := len(claim(t, s, "a", 100)); n != 40 {
		t.Errorf("%d messages of 40", n)
	}
}
