package deliverycheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

var oneOrdered = []Endpoint{{ID: "e", Ordered: true}}

// What waits in the outbox is relayed in order by any number of processes that
// start together.
func TestOrderedRelay(t *testing.T) {
	orderedRelay(t, pgtest.Database(t), 6000, 60, 2)
}

func TestSoakOrderedRelay(t *testing.T) {
	ringtest.OnlyNightly(t, "the long form")
	t.Run("SQLite", func(t *testing.T) { orderedRelay(t, filepath.Join(t.TempDir(), "forbear.db"), 15_000, 300, 1) })
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("PostgreSQL by %d", n), func(t *testing.T) { orderedRelay(t, pgtest.Database(t), 15_000, 300, n) })
	}
}

// writers is how many write at the same time.
const writers = 8

func orderedRelay(t *testing.T, database string, rows, keys, processes int) {
	b := newBench(t, database, oneOrdered, 0)
	b.fleet.Stop()
	ledger := &Ledger{}
	began := time.Now()
	b.write(t, ledger, rows, keys)
	t.Logf("%d rows written in %v", rows, time.Since(began).Round(time.Millisecond))

	began = time.Now()
	if err := b.fleet.Launch(processes); err != nil {
		t.Fatal(err)
	}
	relayed := b.waitUntil(t, b.empty)
	promised := Promised(ledger.Offers())
	arrived := b.waitUntil(t, func(context.Context) (bool, error) { return b.receiver.Missing(promised) == 0, nil })
	t.Logf("%d rows, %d processes: the outbox was empty after %v (%.0f rows/s), all had arrived after %v", rows, processes,
		relayed.Sub(began).Round(time.Millisecond), float64(rows)/relayed.Sub(began).Seconds(), arrived.Sub(began).Round(time.Millisecond))
	b.verdict(t, ledger, time.Time{})
}

// write inserts rows, each in a transaction of its own, by several writers; a
// key is always written by the same one.
func (b *bench) write(t *testing.T, ledger *Ledger, rows, keys int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range rows / keys {
				for k := w; k < keys && errs[w] == nil; k += writers {
					o := numbered(Outbox, w, k, i)
					o.Tx = 1 + i*keys + k
					ledger.Add(o)
					errs[w] = InsertRows(t.Context(), b.db, b.postgres, b.clock, true, []*Offer{o}, []row{o.row()})
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// numbered is the i-th offer of a key at the one endpoint.
func numbered(c Channel, producer, key, i int) *Offer {
	id := fmt.Sprintf("k%d-%d", key, i)
	return &Offer{
		Producer: producer, Channel: c, Kind: Fresh, ID: id, Endpoints: []string{"e"},
		Content: Content{Key: keyName(key), Body: fmt.Sprintf(`{"token":%q}`, id)},
	}
}

func (b *bench) empty(ctx context.Context) (bool, error) {
	var rest int
	err := b.db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM forbear_outbox LIMIT 1) x`).Scan(&rest)
	return rest == 0, err
}

// waitUntil returns when the condition came true. A run that makes no progress
// is left to the verdict.
func (b *bench) waitUntil(t *testing.T, done func(context.Context) (bool, error)) time.Time {
	t.Helper()
	moved, before := time.Now(), 0
	for time.Since(moved) < stuck {
		ok, err := done(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			break
		}
		if n := b.receiver.Count(); n != before {
			moved, before = time.Now(), n
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Now()
}

// A burst over HTTP at an ordered endpoint, at several processes at once.
func TestOrderedBurst(t *testing.T) {
	const clients, posts, processes = 64, 3000, 4
	b := newBench(t, pgtest.Database(t), oneOrdered, 0)
	for range processes - 1 {
		if err := b.fleet.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ledger := &Ledger{}
	traffic := &Traffic{Seed: b.seed, Addrs: b.fleet.Addrs(), Clock: b.clock, Ledger: ledger}
	traffic.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute}
	took := make([][]time.Duration, clients)
	errs := make([]error, clients)
	began := time.Now()
	var wg sync.WaitGroup
	for c := range clients {
		p := &producer{Traffic: traffic, n: c, channel: HTTP, r: rand.New(rand.NewPCG(b.seed, uint64(100+c)))}
		wg.Go(func() {
			for i := 0; i < posts/clients+1 && errs[c] == nil; i++ {
				o := numbered(HTTP, c, c, i)
				ledger.Add(o)
				start := time.Now()
				errs[c] = p.offer(t.Context(), o)
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	t.Logf("%d posts by %d clients to %d processes in %v: p50 %v, p99 %v", len(all), clients, processes,
		time.Since(began).Round(time.Millisecond), all[len(all)/2].Round(time.Millisecond), all[len(all)*99/100].Round(time.Millisecond))
	b.verdict(t, ledger, time.Time{})
}
