package durable

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/internal/pgtest"
	"github.com/forbear-go/forbear/webhook"
)

// What the store takes for a delivery that succeeds at once: accepted, claimed
// and written back, a hundred at a time.
func BenchmarkStore(b *testing.B) {
	const group = 100
	body := bytes.Repeat([]byte("x"), 1024)
	names := map[string]func() string{
		"SQLite":     func() string { return filepath.Join(b.TempDir(), "forbear.db") },
		"PostgreSQL": func() string { return pgtest.Start(b).Database(b) },
	}
	for kind, name := range names {
		b.Run(kind, func(b *testing.B) {
			db, err := database.Open(b.Context(), name())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			if _, err := db.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			n := 0
			var in, out, back time.Duration
			b.ReportAllocs()
			for b.Loop() {
				msgs := make([]webhook.Message, group)
				for i := range msgs {
					n++
					id := fmt.Sprintf("msg_%024d", n)
					msgs[i] = webhook.Message{ID: id, Endpoints: []string{"a"}, Body: body, CorrelationID: id, Created: time.Now()}
				}
				at := time.Now()
				if _, err := db.Webhooks().Accept(b.Context(), msgs, nil); err != nil {
					b.Fatal(err)
				}
				in += time.Since(at)
				at = time.Now()
				turn, err := db.Webhooks().WriteBackAndClaim(b.Context(), webhook.Step{Owner: "host-name-12345-abcdef", Lease: time.Minute, Lanes: []webhook.Lane{{Endpoint: "a", Max: group}}})
				if err != nil || len(turn.Claimed) != group {
					b.Fatal(len(turn.Claimed), err)
				}
				out += time.Since(at)
				outcomes := make([]webhook.WriteBack, group)
				for i, d := range turn.Claimed {
					outcomes[i] = webhook.WriteBack{
						ID: d.ID, Fence: d.Fence, Endpoint: d.Endpoint, Kind: webhook.Delivered,
						Attempt: &webhook.Attempt{Number: 1, Claim: d.Claims, Due: d.Due, At: d.Due, Took: time.Millisecond, Status: 200, Worker: "host-name-12345-abcdef"},
					}
				}
				at = time.Now()
				if _, err := db.Webhooks().WriteBackAndClaim(b.Context(), webhook.Step{WriteBacks: outcomes}); err != nil {
					b.Fatal(err)
				}
				back += time.Since(at)
			}
			for what, took := range map[string]time.Duration{"accept": in, "claim": out, "finish": back} {
				b.ReportMetric(float64(took.Nanoseconds())/1000/float64(n), what+"-us/delivery")
			}
		})
	}
}
