package durable

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// What the store takes for a delivery that succeeds at once: accepted, claimed
// and written back, a hundred at a time.
func BenchmarkStore(b *testing.B) {
	const group = 100
	body := bytes.Repeat([]byte("x"), 1024)
	names := map[string]func() string{
		"SQLite":     func() string { return filepath.Join(b.TempDir(), "forbear.db") },
		"PostgreSQL": func() string { return pgtest.Shared(b).Database(b) },
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
				turn, err := db.Webhooks().WriteBackAndClaim(b.Context(), store.Step{Owner: "host-name-12345-abcdef", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: group}}})
				if err != nil || len(turn.Claimed) != group {
					b.Fatal(len(turn.Claimed), err)
				}
				out += time.Since(at)
				outcomes := make([]store.WriteBack, group)
				for i, d := range turn.Claimed {
					outcomes[i] = store.WriteBack{
						ID: d.ID, Fence: d.Fence, Endpoint: d.Endpoint, Kind: store.Delivered,
						Attempt: &deadletter.Attempt{Number: 1, Claim: d.Claims, Due: d.Due, At: d.Due, Took: time.Millisecond, Status: 200, Worker: "host-name-12345-abcdef"},
					}
				}
				at = time.Now()
				if _, err := db.Webhooks().WriteBackAndClaim(b.Context(), store.Step{WriteBacks: outcomes}); err != nil {
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

// What a change of one endpoint costs the process that makes it, and another one
// that reads it: the same, however many endpoints there are.
func BenchmarkEndpointChange(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		for kind, name := range map[string]func() string{
			"SQLite":     func() string { return filepath.Join(b.TempDir(), "forbear.db") },
			"PostgreSQL": func() string { return pgtest.Shared(b).Database(b) },
		} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				place := name()
				var list []*dispatch.Dispatcher
				for range 2 {
					db, err := database.Open(b.Context(), place)
					if err != nil {
						b.Fatal(err)
					}
					defer func() { _ = db.Close() }()
					if _, err := db.Migrate(b.Context()); err != nil {
						b.Fatal(err)
					}
					if len(list) == 0 {
						putMany(b, db.Webhooks(), n)
					}
					d, err := dispatch.New(dispatch.Config{Store: db.Webhooks(), Alerts: db.DeadLetters()})
					if err != nil {
						b.Fatal(err)
					}
					if err := d.Load(b.Context()); err != nil {
						b.Fatal(err)
					}
					list = append(list, d)
				}
				var reads time.Duration
				for b.Loop() {
					if _, err := list[0].PutEndpoint(b.Context(), webhook.Endpoint{ID: "e7", URL: "https://example.com/"}); err != nil {
						b.Fatal(err)
					}
					at := time.Now()
					if err := list[1].Load(b.Context()); err != nil {
						b.Fatal(err)
					}
					reads += time.Since(at)
				}
				b.ReportMetric(float64(reads.Microseconds())/float64(b.N), "read-us/op")
			})
		}
	}
}

// putMany puts endpoints e0, e1 ..., many at a time.
func putMany(b *testing.B, s store.Store, n int) {
	var wg sync.WaitGroup
	ids := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range ids {
				if _, err := s.PutEndpoint(b.Context(), webhook.Endpoint{ID: fmt.Sprint("e", i), URL: "https://example.com/"}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		ids <- i
	}
	close(ids)
	wg.Wait()
}
