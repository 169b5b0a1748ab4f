package sqltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

// Rows of an application with many endpoints share a transaction with fewer others: it
// has some thousands of deliveries at the most.
func TestRelayIsBoundByFanOut(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		endpoints := make([]string, 900)
		for i := range endpoints {
			endpoints[i] = fmt.Sprint("e", i)
		}
		tx := s.begin(t)
		for i := range 12 {
			if _, err := s.box.Insert(t.Context(), tx, webhook.Message{ID: fmt.Sprint("m", i), Application: "customer"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{4, 4, 4, 0} {
			done, err := s.store.Relay(t.Context(), 500, func(m *webhook.Message) (map[string]bool, error) {
				m.Endpoints = endpoints
				return nil, nil
			})
			if err != nil || done.Rows != want || done.Accepted != want {
				t.Fatalf("relayed %+v, %v, want %d", done, err, want)
			}
		}
		for _, id := range []string{"m0", "m11"} {
			if list, err := s.store.Deliveries(t.Context(), id); err != nil || len(list) != 900 {
				t.Errorf("%s has %d deliveries, %v", id, len(list), err)
			}
		}
	})
}

// A transaction with a burst of rows holds no one up: not while it is open, when others'
// rows pass it, and not while it is relayed, when messages are accepted in between. On
// SQLite any transaction that writes holds up all others.
func TestBurstHoldsNoOneUp(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		burst := ringtest.Size(6_000, 10_000)
		admit := func(*webhook.Message) (map[string]bool, error) { return nil, nil }
		msgs := make([]webhook.Message, burst)
		for i := range msgs {
			msgs[i].Endpoints = []string{"a"}
		}
		open := s.begin(t)
		if _, err := s.box.Insert(t.Context(), open, msgs...); err != nil {
			t.Fatal(err)
		}
		if !s.box.SQLite {
			tx := s.begin(t)
			if _, err := s.box.Insert(t.Context(), tx, webhook.Message{Endpoints: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if done, err := s.store.Relay(t.Context(), 500, admit); err != nil || done.Accepted != 1 {
				t.Fatalf("beside the open transaction: %+v, %v", done, err)
			}
		}
		if err := open.Commit(); err != nil {
			t.Fatal(err)
		}
		var relays atomic.Int64 // that have ended
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			defer cancel()
			for n := 0; n < burst; relays.Add(1) {
				done, err := s.store.Relay(ctx, 500, admit)
				if err != nil || done.Rows > 500 {
					t.Errorf("behind %d rows: %+v, %v", n, done, err)
					return
				}
				n += done.Rows
			}
		})
		accepts, most := 0, int64(0)
		for ; ctx.Err() == nil; accepts++ {
			before := relays.Load()
			_, err := s.store.Accept(ctx, []webhook.Message{{ID: fmt.Sprint("x", accepts), Endpoints: []string{"a"}}}, nil)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			most = max(most, relays.Load()-before)
		}
		wg.Wait()
		t.Logf("%d messages were accepted beside %d relays, one of them during %d", accepts, relays.Load(), most)
		if accepts < 3 || most > int64(burst/500/2) {
			t.Errorf("%d messages were accepted beside %d relays, one of them during %d", accepts, relays.Load(), most)
		}
	})
}
