package sqltest

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A step is written back in two parts on PostgreSQL. When the second one fails, the caller
// learns of the first, and writes the rest once more.
func TestSecondPartOfAStepFails(t *testing.T) {
	place := pgtest.Database(t)
	w, raw := open(t, place).Webhooks(), outside(t, place)
	msgs := []webhook.Message{{ID: "m1", Endpoints: []string{"a"}, Body: []byte("{}")}, {ID: "m2", Endpoints: []string{"a"}, Body: []byte("{}")}}
	if _, err := w.Accept(t.Context(), msgs, nil); err != nil {
		t.Fatal(err)
	}
	claimed, err := w.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 2}}})
	if err != nil || len(claimed.Claimed) != 2 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	var step store.Step
	for i, d := range claimed.Claimed {
		o := store.WriteBack{ID: d.ID, Fence: d.Fence, Endpoint: "a", Kind: store.Delivered}
		if i == 0 {
			o.Kind, o.Dead = store.Dead, &deadletter.Letter{ID: "dlq_1", Queue: webhook.Queue, Destination: "a", EventID: d.Message.ID, Reason: "exhausted", State: deadletter.Dead}
		}
		step.WriteBacks = append(step.WriteBacks, o)
	}
	rename := func(from, to string) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to); err != nil {
			t.Fatal(err)
		}
	}
	rename("forbear_letters", "away")
	done, err := w.WriteBackAndClaim(t.Context(), step)
	if err == nil || len(done.OK) != 2 || done.OK[0] || !done.OK[1] {
		t.Fatalf("written %v, %v, want the second one and an error", done.OK, err)
	}
	rename("away", "forbear_letters")
	step.WriteBacks = step.WriteBacks[:1]
	if done, err = w.WriteBackAndClaim(t.Context(), step); err != nil || !done.OK[0] {
		t.Errorf("the rest: %v, %v", done.OK, err)
	}
}
