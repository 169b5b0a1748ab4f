package sqltest

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// While one process empties the outbox the others keep away: what they took
// from behind would overtake it.
func TestOneRelayAtATime(t *testing.T) {
	name := pgtest.Database(t)
	first, second := open(t, name).Webhooks(), open(t, name).Webhooks()
	raw, err := sql.Open("pgx", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	for i := range 6 {
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, order_key, body) VALUES ($1, 'a', 'k', 'x')`, fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		done, err := first.Relay(t.Context(), 3, func(*webhook.Message) (map[string]bool, error) {
			once.Do(func() { close(begun); <-goOn })
			return map[string]bool{"a": true}, nil
		})
		if err != nil || done.Accepted != 3 {
			t.Errorf("the first relayed %+v, %v", done, err)
		}
	})
	<-begun
	ordered := func(*webhook.Message) (map[string]bool, error) { return map[string]bool{"a": true}, nil }
	if done, err := second.Relay(t.Context(), 3, ordered); err != nil || done.Rows != 0 {
		t.Errorf("beside the first, the second relayed %+v, %v", done, err)
	}
	close(goOn)
	wg.Wait()
	if done, err := second.Relay(t.Context(), 3, ordered); err != nil || done.Accepted != 3 {
		t.Errorf("behind the first, the second relayed %+v, %v", done, err)
	}
	for i := range 6 {
		turn, err := second.WriteBackAndClaim(t.Context(), store.Step{Owner: "test", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 9}}})
		if err != nil || len(turn.Claimed) != 1 || turn.Claimed[0].Message.ID != fmt.Sprint("m", i) {
			t.Fatalf("claim %d: %+v, %v", i, turn.Claimed, err)
		}
		d := turn.Claimed[0]
		o := store.WriteBack{ID: d.ID, Fence: d.Fence, Endpoint: d.Endpoint, OrderKey: d.OrderKey, Kind: store.Delivered}
		if _, err := second.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{o}}); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that is frozen in the middle of a transaction does not hold up the
// others for good: PostgreSQL ends it.
func TestFrozenTransactionEnds(t *testing.T) {
	t.Parallel()
	name := pgtest.Database(t)
	frozen, other := open(t, name).Webhooks(), open(t, name).Webhooks()
	raw, err := sql.Open("pgx", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, order_key, body) VALUES ('m', 'a', 'k', 'x')`); err != nil {
		t.Fatal(err)
	}
	begun, thaw := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(thaw)
	wg.Go(func() {
		_, _ = frozen.Relay(t.Context(), 3, func(*webhook.Message) (map[string]bool, error) {
			once.Do(func() { close(begun); <-thaw })
			return map[string]bool{"a": true}, nil
		})
	})
	<-begun
	ordered := func(*webhook.Message) (map[string]bool, error) { return map[string]bool{"a": true}, nil }
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		done, err := other.Relay(t.Context(), 3, ordered)
		if err != nil {
			t.Fatal(err)
		}
		if done.Accepted == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the outbox is still held by a process that does nothing")
		}
	}
}
